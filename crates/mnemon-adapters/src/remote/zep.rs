//! Zep: threads of messages, and a graph of facts for each user.

use async_trait::async_trait;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use serde_json::{Value, json};

use super::Protocol;
use super::client::{RemoteClient, Request, escape};
use super::subject::{Said, Subject};

/// Messages in one request, and characters in one message, that Zep accepts.
const MESSAGES: usize = 30;
const MESSAGE_CHARS: usize = 4096;
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
        for (path, body) in [
            ("/users", json!({"user_id": subject.user})),
            (
                "/threads",
                json!({"thread_id": thread, "user_id": subject.user}),
            ),
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
            json!({"role": one.role, "content": text})
        }));
    }
    parts
}

#[async_trait]
impl Protocol for Zep {
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError> {
        let thread = subject.conversation();
        let path = format!("/threads/{}/messages", escape(&thread));
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
                return Err(self.client.rejected("it did not keep the new thread"));
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
        // A fact that another one has replaced is not known any longer.
        let valid = edges.filter(|edge| edge.get("invalid_at").is_none_or(Value::is_null));
        valid
            .map(|edge| {
                let created = edge.get("created_at").and_then(Value::as_str);
                Ok(ExternalHit {
                    id: self.client.text(edge, "uuid")?,
                    text: self.client.text(edge, "fact")?,
                    created: created.and_then(|at| at.parse().ok()),
                    ..ExternalHit::default()
                })
            })
            .collect()
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        let request = Request {
            query: vec![("page_size", "1".to_owned())],
            ..Request::get("/threads")
        };
        let reply = self.client.send(request).await?;
        if !reply.body.is_object() {
            return Err(self.client.unreadable("it is not an object"));
        }
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "Zep API v2".to_owned(),
            capabilities: ["record", "retrieve", "search"].map(str::to_owned).to_vec(),
            remarks: Vec::new(),
        })
    }
}
