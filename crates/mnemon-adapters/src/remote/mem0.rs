//! Mem0: the third generation of its platform's API.
//!
//! The platform splits what it extracts between `user_id` and `agent_id` by speaker, so an agent is
//! named by `app_id`.

use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use serde_json::{Map, Value, json};

use super::client::{RemoteClient, Request};
use super::subject::{Said, Subject};

/// Messages in one request.
const MESSAGES: usize = 100;

pub(super) struct Mem0 {
    client: RemoteClient,
}

/// The names of the owner.
fn names(subject: &Subject) -> impl Iterator<Item = (&'static str, &str)> {
    let agent = subject.agent.as_deref();
    let agent = agent.map(|agent| ("app_id", agent));
    [("user_id", subject.user.as_str())]
        .into_iter()
        .chain(agent)
}

fn add_body(subject: &Subject, said: &[Said]) -> Value {
    let mut body = Map::new();
    let messages: Vec<Value> = said.iter().map(Said::json).collect();
    body.insert("messages".to_owned(), messages.into());
    for (name, value) in names(subject) {
        body.insert(name.to_owned(), value.into());
    }
    if let Some(session) = &subject.session {
        body.insert("metadata".to_owned(), json!({ "session": session }));
    }
    Value::Object(body)
}

impl Mem0 {
    pub(super) fn new(client: RemoteClient) -> Self {
        Self { client }
    }

    /// The platform answers before it has extracted anything; that it failed at once is an error.
    fn check_added(&self, body: &Value) -> Result<(), LongTermError> {
        if !body.is_object() {
            return Err(self.client.unreadable("it is not an object"));
        }
        match body.get("status").is_some_and(|status| status == "FAILED") {
            true => {
                let message = body.get("message").and_then(Value::as_str);
                Err(self.client.rejected(message.unwrap_or("status FAILED")))
            }
            false => Ok(()),
        }
    }

    /// Hands over messages, of which there is at least one.
    pub(super) async fn record(
        &self,
        subject: &Subject,
        said: &[Said],
    ) -> Result<(), LongTermError> {
        for part in said.chunks(MESSAGES) {
            let request = Request::post("/v3/memories/add/", add_body(subject, part));
            let answer = self.client.send(request).await?;
            self.check_added(&answer)?;
        }
        Ok(())
    }

    /// The texts that fit the query best, at most `limit`.
    pub(super) async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let each = names(subject).map(|(name, value)| json!({ name: value }));
        let filters = json!({"AND": each.collect::<Vec<Value>>()});
        let body = json!({"query": query, "filters": filters, "top_k": limit});
        let request = Request::post("/v3/memories/search/", body);
        let answer = self.client.send(request).await?;
        let found = self.client.list(&answer, "/results")?.iter();
        found
            .map(|item| {
                let created = item.get("created_at").and_then(Value::as_str);
                Ok(ExternalHit {
                    id: self.client.text(item, "id")?,
                    text: self.client.text(item, "memory")?,
                    created: created.and_then(|at| at.parse().ok()),
                    ..ExternalHit::default()
                })
            })
            .collect()
    }

    /// Sends a request that changes nothing.
    pub(super) async fn check(&self) -> Result<RemoteReport, LongTermError> {
        let answer = self.client.send(Request::get("/v1/ping/")).await?;
        self.client.text(&answer, "status")?;
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "Mem0 platform v3".to_owned(),
            capabilities: ["record", "retrieve", "search"].map(str::to_owned).to_vec(),
            remarks: Vec::new(),
        })
    }
}
