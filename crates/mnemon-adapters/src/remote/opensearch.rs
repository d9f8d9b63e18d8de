//! An OpenSearch index that others fill: its text field is searched with BM25.

use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use mnemon_core::{Ctx, Invalid};
use serde_json::{Value, json};

use super::client::{RemoteClient, Request};
use super::source::{FieldMapping, SourceConfig, client_of};

pub(super) struct OpenSearch {
    client: RemoteClient,
    /// `/INDEX`.
    path: String,
    fields: FieldMapping,
}

impl OpenSearch {
    pub(super) fn open(config: &SourceConfig) -> Result<Self, Invalid> {
        // The key is `user:password`, encoded as for HTTP basic authentication.
        let mut config = config.clone();
        config.key = config.key.map(|key| key.base64());
        let (client, path) = client_of(&config, "OpenSearch", "Basic")?;
        let index = path.trim_start_matches('/');
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if index.is_empty() || index.starts_with(['_', '-']) || !index.chars().all(is_name) {
            let what = "must end with the name of one index: opensearch+https://HOST/INDEX";
            return Err(Invalid::new("url", what));
        }
        Ok(Self {
            client,
            path,
            fields: config.fields,
        })
    }

    fn body(&self, ctx: &Ctx, query: &str, limit: usize) -> Value {
        let text = self.fields.text.as_str();
        let mut searched = vec![text];
        searched.extend(self.fields.title.as_deref());
        let fetched = [&self.fields.title, &self.fields.source, &self.fields.time];
        let fetched = fetched.into_iter().flatten().map(String::as_str);
        let fetched: Vec<&str> = [text].into_iter().chain(fetched).collect();
        let tenant = self.fields.tenant.as_deref();
        let filter = tenant.map(|field| json!({"term": { field: ctx.tenant.as_str() }}));
        let filter: Vec<Value> = filter.into_iter().collect();
        json!({
            "size": limit,
            "_source": fetched,
            "query": {"bool": {
                "must": [{"multi_match": {"query": query, "fields": searched}}],
                "filter": filter,
            }},
        })
    }

    pub(super) async fn find(
        &self,
        ctx: &Ctx,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let path = format!("{}/_search", self.path);
        let request = Request::post(path, self.body(ctx, query, limit));
        let reply = self.client.send(request).await?.body;
        let entries = self.client.list(&reply, "/hits/hits")?.iter();
        let mut found = Vec::new();
        for entry in entries {
            let id = self.client.text(entry, "_id")?;
            let Some(source) = entry.get("_source").filter(|source| source.is_object()) else {
                return Err(self.client.unreadable("`_source` is not an object"));
            };
            found.extend(self.fields.hit(id, source));
        }
        Ok(found)
    }

    pub(super) async fn check(&self) -> Result<RemoteReport, LongTermError> {
        let path = format!("{}/_mapping", self.path);
        let reply = self.client.send(Request::get(path)).await?.body;
        let Some(indexes) = reply.as_object() else {
            return Err(self.client.unreadable("it is not an object"));
        };
        let place = self.fields.text.replace('.', "/properties/");
        let place = format!("/mappings/properties/{place}");
        let mut remarks = Vec::new();
        if !indexes
            .values()
            .all(|index| index.pointer(&place).is_some())
        {
            remarks.push(format!(
                "The index has no field `{}`; correct `text` of the field mapping.",
                self.fields.text
            ));
        }
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "OpenSearch".to_owned(),
            capabilities: vec!["search".to_owned()],
            remarks,
        })
    }
}
