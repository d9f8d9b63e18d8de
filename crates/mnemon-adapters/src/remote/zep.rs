//! Zep: threads of messages, and a graph of facts for each user. This is version 2 of the API, which
//! the clients of version 3 use.

use async_trait::async_trait;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use serde_json::{Value, json};

use super::Protocol;
use super::client::{RemoteClient, Request};
use super::subject::{Said, Subject};

/// Messages in one request, and characters in one message, that every plan of Zep accepts.
const MESSAGES: usize = 30;
const MESSAGE_CHARS: usize = 2_500;
/// Characters of a query that Zep accepts, and facts that it returns.
const QUERY_CHARS: usize = 400;
const FACTS: usize = 50;
/// Statuses by which Zep says that a user or a thread exists already.
const EXISTS: &[u16] = &[400, 409];

pub(super) struct Zep {
    client: RemoteClient,
}

impl Zep {
    pub(super) fn new(client: RemoteClient) -> Self {
        Self { client }
    }

    /// Makes the user and the thread. One that exists is left as it is.
    async fn begin(&self, subject: &Subject, thread: &str) -> Result<(), LongTermError> {
        let user = &subject.user;
        for (path, body) in [
            ("/users", json!({"user_id": user})),
            ("/threads", json!({"thread_id": thread, "user_id": user})),
        ] {
            let request = Request {
                expected: EXISTS,
                ..Request::post(path, body)
            };
            self.client.send(request).await?;
        }
        Ok(())
    }
}

/// Messages as Zep takes them: longer ones in several parts.
fn parts(said: &[Said]) -> Vec<Value> {
    let mut parts = Vec::new();
    for one in said {
        let chars: Vec<char> = one.text.chars().collect();
        parts.extend(chars.chunks(MESSAGE_CHARS).map(|chunk| {
            let text: String = chunk.iter().collect();
            let mut part = json!({"role": one.role, "content": text});
            if let (Some(part), Some(at)) = (part.as_object_mut(), one.at) {
                part.insert("created_at".to_owned(), at.to_string().into());
            }
            part
        }));
    }
    parts
}

#[async_trait]
impl Protocol for Zep {
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError> {
        let thread = subject.conversation();
        let path = format!("/threads/{thread}/messages");
        for part in parts(said).chunks(MESSAGES) {
            let request = || Request {
                expected: &[404],
                ..Request::post(path.clone(), json!({ "messages": part }))
            };
            let mut reply = self.client.send(request()).await?;
            if reply.status == 404 {
                self.begin(subject, &thread).await?;
                reply = self.client.send(request()).await?;
            }
            if reply.status == 404 {
                let what = "it has no thread for this conversation, although one was made";
                return Err(self.client.rejected(what));
            }
            if !reply.body.is_object() {
                return Err(self.client.unreadable("it is not an object"));
            }
        }
        Ok(())
    }

    async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let query: String = query.chars().take(QUERY_CHARS).collect();
        let body = json!({
            "query": query,
            "user_id": subject.user,
            "scope": "edges",
            "limit": limit.clamp(1, FACTS),
        });
        let request = Request {
            expected: &[404],
            ..Request::post("/graph/search", body)
        };
        let reply = self.client.send(request).await?;
        // Zep does not know the user yet, or found no edges.
        let edges = reply.body.get("edges").filter(|edges| !edges.is_null());
        if reply.status == 404 || edges.is_none() && reply.body.is_object() {
            return Ok(Vec::new());
        }
        let edges = self.client.list(&reply.body, "/edges")?.iter();
        // A fact with this time was replaced by another one.
        let valid = edges.filter(|edge| edge.get("invalid_at").is_none_or(Value::is_null));
        let hit = |edge| self.client.hit(edge, "uuid", "fact");
        valid.map(hit).collect()
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        let request = Request {
            query: vec![("page_size", "1".to_owned())],
            ..Request::get("/threads")
        };
        let reply = self.client.send(request).await?;
        let threads = reply.body.get("threads");
        let is_list = threads.is_none_or(|threads| threads.is_array() || threads.is_null());
        if !reply.body.is_object() || !is_list {
            return Err(self.client.unreadable("`threads` is not a list"));
        }
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "Zep API v2".to_owned(),
            capabilities: ["record", "retrieve", "search"].map(str::to_owned).to_vec(),
            remarks: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_message_have_its_role_and_time() {
        let said = Said {
            role: "assistant",
            text: "x".repeat(MESSAGE_CHARS + 1),
            at: Some("2026-01-31T12:00:00Z".parse().unwrap()),
        };
        let parts = parts(&[said]);
        assert_eq!(parts.len(), 2);
        let last = json!({"role": "assistant", "content": "x",
            "created_at": "2026-01-31T12:00:00.000Z"});
        assert_eq!(parts[1], last);
    }
}
