//! A knowledge base behind the contract of `docs/backends.md`: one POST with a query, one list of
//! entries.

use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use mnemon_core::{Ctx, Invalid};
use serde_json::{Value, json};

use super::client::{RemoteClient, Request};
use super::source::{FieldMapping, SourceConfig, client_of};

pub(super) struct HttpSource {
    client: RemoteClient,
    path: String,
    fields: FieldMapping,
}

impl HttpSource {
    pub(super) fn open(config: &SourceConfig) -> Result<Self, Invalid> {
        let (client, path) = client_of(config, "the knowledge base", "Bearer")?;
        Ok(Self {
            client,
            path: if path.is_empty() {
                "/".to_owned()
            } else {
                path
            },
            fields: config.fields.clone(),
        })
    }

    pub(super) async fn find(
        &self,
        ctx: &Ctx,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let body = json!({"query": query, "limit": limit, "tenant": ctx.tenant});
        let reply = self
            .client
            .send(Request::post(self.path.clone(), body))
            .await?;
        let entries = self.client.list(&reply.body, "/results")?.iter();
        let mut found = Vec::new();
        for (place, entry) in entries.enumerate() {
            if !entry.is_object() {
                let what = format!("/results/{place} is not an object");
                return Err(self.client.unreadable(what));
            }
            let id = match entry.get("id") {
                Some(Value::Number(number)) => number.to_string(),
                _ => self.client.text(entry, "id")?,
            };
            found.extend(self.fields.hit(id, entry));
        }
        Ok(found)
    }

    pub(super) async fn check(&self, ctx: &Ctx) -> Result<RemoteReport, LongTermError> {
        self.find(ctx, "mnemon", 1).await?;
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "HTTP contract of Mnemon".to_owned(),
            capabilities: vec!["search".to_owned()],
            remarks: Vec::new(),
        })
    }
}
