//! Mem0: the platform in two generations of its API, and the self-hosted server.
//!
//! The platform splits what it extracts between `user_id` and `agent_id` by speaker, so an agent is
//! named by `app_id` there. The self-hosted server keeps both names as they are given.

use async_trait::async_trait;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use serde_json::{Map, Value, json};

use super::Protocol;
use super::address::Mem0Version;
use super::client::{RemoteClient, Request};
use super::subject::{Said, Subject};

/// Messages in one request.
const MESSAGES: usize = 100;
/// The user that the check of a self-hosted server asks for.
const CHECK_USER: &str = "mnemon-check";

pub(super) struct Mem0 {
    client: RemoteClient,
    version: Mem0Version,
}

impl Mem0 {
    pub(super) fn new(client: RemoteClient, version: Mem0Version) -> Self {
        Self { client, version }
    }

    /// The names of the owner.
    fn names(&self, subject: &Subject) -> Vec<(&'static str, String)> {
        let field = match self.version {
            Mem0Version::SelfHosted => "agent_id",
            Mem0Version::Platform3 | Mem0Version::Platform1 => "app_id",
        };
        let agent = subject.agent.clone().map(|agent| (field, agent));
        let user = ("user_id", subject.user.clone());
        [user].into_iter().chain(agent).collect()
    }

    fn filters(&self, subject: &Subject) -> Value {
        let names = self.names(subject).into_iter();
        match self.version {
            Mem0Version::SelfHosted => {
                let names = names.map(|(name, value)| (name.to_owned(), Value::from(value)));
                Value::Object(names.collect())
            }
            Mem0Version::Platform3 | Mem0Version::Platform1 => {
                let each = names.map(|(name, value)| json!({ name: value }));
                json!({"AND": each.collect::<Vec<Value>>()})
            }
        }
    }

    fn add_body(&self, subject: &Subject, said: &[Said]) -> Value {
        let mut body = Map::new();
        let messages: Vec<Value> = said.iter().map(Said::json).collect();
        body.insert("messages".to_owned(), messages.into());
        for (name, value) in self.names(subject) {
            body.insert(name.to_owned(), value.into());
        }
        if let Some(session) = &subject.session {
            body.insert("metadata".to_owned(), json!({ "session": session }));
        }
        if self.version == Mem0Version::Platform1 {
            body.insert("output_format".to_owned(), json!("v1.1"));
            body.insert("async_mode".to_owned(), json!(true));
        }
        Value::Object(body)
    }

    /// The platform answers before it has extracted anything. A failure that it reports at once is an
    /// error.
    fn check_added(&self, body: &Value) -> Result<(), LongTermError> {
        let answers = match body {
            Value::Array(answers) => answers.as_slice(),
            one => std::slice::from_ref(one),
        };
        if !answers.iter().all(Value::is_object) {
            return Err(self.client.unreadable("it is not an object"));
        }
        let is_failed = |answer: &&Value| answer.get("status").is_some_and(|is| is == "FAILED");
        match answers.iter().find(is_failed) {
            Some(failed) => {
                let message = failed.get("message").and_then(Value::as_str);
                Err(self.client.rejected(message.unwrap_or("status FAILED")))
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Protocol for Mem0 {
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError> {
        let path = match self.version {
            Mem0Version::Platform3 => "/v3/memories/add/",
            Mem0Version::Platform1 => "/v1/memories/",
            Mem0Version::SelfHosted => "/memories",
        };
        for part in said.chunks(MESSAGES) {
            let request = Request::post(path, self.add_body(subject, part));
            let reply = self.client.send(request).await?;
            self.check_added(&reply.body)?;
        }
        Ok(())
    }

    async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        // Additions of v1 belong to searches of v2, which answer with a bare list.
        let (path, place) = match self.version {
            Mem0Version::Platform3 => ("/v3/memories/search/", "/results"),
            Mem0Version::Platform1 => ("/v2/memories/search/", ""),
            Mem0Version::SelfHosted => ("/search", "/results"),
        };
        let filters = self.filters(subject);
        let body = json!({"query": query, "filters": filters, "top_k": limit});
        let reply = self.client.send(Request::post(path, body)).await?;
        let found = self.client.list(&reply.body, place)?.iter();
        let hit = |item| self.client.hit(item, "id", "memory");
        found.map(hit).collect()
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        let ping = Request::get("/v1/ping/");
        let (protocol, request) = match self.version {
            Mem0Version::Platform3 => ("Mem0 platform v3", ping),
            Mem0Version::Platform1 => ("Mem0 platform v1", ping),
            Mem0Version::SelfHosted => {
                let query = vec![
                    ("user_id", CHECK_USER.to_owned()),
                    ("top_k", "1".to_owned()),
                ];
                let request = Request {
                    query,
                    ..Request::get("/memories")
                };
                ("Mem0 self-hosted", request)
            }
        };
        let reply = self.client.send(request).await?;
        match self.version {
            Mem0Version::SelfHosted => self.client.list(&reply.body, "/results").map(drop)?,
            _ => self.client.text(&reply.body, "status").map(drop)?,
        }
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: protocol.to_owned(),
            capabilities: ["record", "retrieve", "search"].map(str::to_owned).to_vec(),
            remarks: Vec::new(),
        })
    }
}
