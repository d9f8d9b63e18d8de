//! OpenSearch: BM25 over hashed terms, and approximate nearest neighbours, over REST.
//!
//! A generation is an index `NAME-gN`; searches of other programs can use the alias `NAME`. Documents
//! are written through an alias of the generation, and only if it is an alias: a generation that a
//! rebuild has deleted is never made again by a write.

#![allow(
    clippy::indexing_slicing,
    reason = "a field that a JSON value lacks is null; no other values are indexed"
)]

mod answer;
mod client;
mod mapping;
mod query;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::{Id, Probe, StoreError, Tenant};
use serde_json::{Value, json};

use super::{
    Audience, DocumentChange, Entry, Found, Generation, IndexAccess, IndexServer, IndexUrl, Marked,
    Question, ServerAnswer, ServerError, Watermark, unavailable,
};
use answer::Answers;
use client::{Client, Request};

/// The oldest version with filters inside a search for nearest neighbours by Lucene and Faiss.
const OLDEST: (u64, u64) = (2, 9);
/// Bytes of one bulk request, as OpenSearch recommends.
const BULK_BYTES: usize = 5 << 20;
/// Digits of the number of a generation.
const GENERATION_DIGITS: usize = 16;

/// An index in an OpenSearch server.
pub struct OpenSearch {
    client: Client,
    name: String,
    /// Fields of vectors that were seen, with the generation that has them.
    fields: Mutex<HashSet<(Generation, String)>>,
}

impl OpenSearch {
    /// Nothing is asked of the server yet.
    pub fn new(url: &IndexUrl, access: IndexAccess) -> Result<Self, StoreError> {
        Ok(Self {
            client: Client::new(url, access)?,
            name: url.name.clone(),
            fields: Mutex::default(),
        })
    }

    fn known_fields(&self) -> std::sync::MutexGuard<'_, HashSet<(Generation, String)>> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn check_version(&self) -> Result<(), ServerError> {
        let server = self.client.ask(Request::get(String::new())).await?;
        let version = &server["version"];
        let number = version["number"].as_str().unwrap_or_default();
        if version["distribution"] != "opensearch" {
            let what = format!(
                "the server is not OpenSearch (version `{}`); Elasticsearch is not supported",
                number.escape_debug()
            );
            return Err(unavailable(self.place(), what, "distribution").into());
        }
        let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
        let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        if found < OLDEST {
            let (major, minor) = OLDEST;
            let what = format!("OpenSearch {number} is too old; use {major}.{minor} or later");
            return Err(unavailable(self.place(), what, "version").into());
        }
        Ok(())
    }

    /// Whether this is the name of a generation of this index.
    fn is_generation(&self, name: &str) -> bool {
        let number = name
            .strip_prefix(self.name.as_str())
            .and_then(|rest| rest.strip_prefix("-g"));
        number.is_some_and(|number| {
            number.len() == GENERATION_DIGITS && number.bytes().all(|it| it.is_ascii_hexdigit())
        })
    }

    /// The names of the indexes that this alias or pattern means.
    async fn indexes(&self, path: String) -> Result<Vec<String>, ServerError> {
        let reply = self.client.reply(Request::get(path)).await?;
        if reply.status == 404 {
            return Ok(Vec::new());
        }
        if !reply.is_success() {
            return Err(self.client.refused(reply.status, &reply.body));
        }
        let names = reply
            .body
            .as_object()
            .ok_or_else(|| self.client.unreadable("a list of indexes"))?;
        Ok(names.keys().cloned().collect())
    }

    async fn check_format(&self, index: &str) -> Result<(), ServerError> {
        let path = format!("{index}/_mapping");
        let mapping = self.client.ask(Request::get(path)).await?;
        let format = &mapping[index]["mappings"]["_meta"]["mnemon_format"];
        if !self.is_generation(index) || *format != mapping::FORMAT {
            let what = format!(
                "index `{index}` was made by another program or version; name \
                 another index"
            );
            return Err(StoreError::Foreign {
                place: self.place().to_owned(),
                what,
            }
            .into());
        }
        Ok(())
    }

    /// Makes the field for vectors of this model, if it is not there.
    async fn make_field(
        &self,
        generation: &Generation,
        model: &ModelId,
    ) -> Result<(), ServerError> {
        let known = (generation.clone(), mapping::vector_field(model));
        if self.known_fields().contains(&known) {
            return Ok(());
        }
        let path = format!("{}/_mapping", generation.0);
        let request = Request::put(path).json(&mapping::vector_mapping(model));
        self.client.ask(request).await?;
        self.known_fields().insert(known);
        Ok(())
    }

    /// Whether the index has a field for vectors of this model.
    async fn has_field(
        &self,
        generation: &Generation,
        model: &ModelId,
    ) -> Result<bool, ServerError> {
        let field = mapping::vector_field(model);
        let known = (generation.clone(), field.clone());
        if self.known_fields().contains(&known) {
            return Ok(true);
        }
        let path = format!("{}/_mapping", generation.0);
        let mapping = self.client.ask(Request::get(path)).await?;
        let fields = &mapping[generation.0.as_str()]["mappings"]["properties"];
        let has = fields.get(field).is_some();
        if has {
            self.known_fields().insert(known);
        }
        Ok(has)
    }

    async fn write_lines(&self, generation: &Generation, lines: String) -> Result<(), ServerError> {
        let path = format!("{}/_bulk?require_alias=true", writing_alias(generation));
        let answer = self.client.ask(Request::post(path).lines(lines)).await?;
        let items = answer["items"].as_array();
        let items = items.ok_or_else(|| self.client.unreadable("the results of a bulk request"))?;
        for item in items {
            let result = item.as_object().and_then(|item| item.values().next());
            let result = result.unwrap_or(&Value::Null);
            let status = result["status"].as_u64().unwrap_or(0);
            let is_missing = status == 404 && result.get("error").is_none();
            // 409: a newer version is there.
            if !(200..300).contains(&status) && status != 409 && !is_missing {
                let status = u16::try_from(status).unwrap_or(500);
                return Err(self.client.refused(status, result));
            }
        }
        Ok(())
    }

    async fn refresh(&self, generation: &Generation) -> Result<(), ServerError> {
        let path = format!("{}/_refresh", generation.0);
        self.client.ask(Request::post(path)).await.map(drop)
    }

    /// The searches that answer a question, each with what its hits are.
    async fn searches(
        &self,
        generation: &Generation,
        asked: &Question<'_>,
    ) -> Result<Vec<(Part, Value)>, ServerError> {
        let Probe { filter, .. } = asked.probe;
        let within = |filter| {
            query::filter(&Audience {
                tenant: asked.tenant,
                filter,
                now: asked.now,
            })
        };
        let (meant, probe) = (within(filter), asked.probe);
        if probe.terms.is_empty() && probe.vectors.is_empty() {
            return Ok(vec![(Part::Newest, query::newest(&meant, probe.depth))]);
        }
        let mut searches = Vec::new();
        if !probe.terms.is_empty() {
            searches.push((Part::Words, query::words(&meant, probe)));
        }
        for query in &probe.vectors {
            if self.has_field(generation, &query.model).await? {
                let search = query::meaning(&meant, query, probe.depth);
                searches.push((Part::Meaning, search));
            }
        }
        if query::has_statistics(probe) {
            let audience = within(&filter.audience_only());
            searches.push((Part::Statistics, query::statistics(&audience, probe)));
        }
        Ok(searches)
    }
}

/// What a search of a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Words,
    Meaning,
    Newest,
    Statistics,
}

fn writing_alias(generation: &Generation) -> String {
    format!("{}-writing", generation.0)
}

fn watermark(marked: &Watermark, tenant: &Tenant) -> Value {
    json!({
        "watermark_of": tenant.as_str(),
        "watermark_seq": marked.seq,
        "watermark_embedded": marked.embedded,
    })
}

#[async_trait]
impl IndexServer for OpenSearch {
    fn place(&self) -> &str {
        self.client.place()
    }

    async fn current(&self) -> Result<Generation, ServerError> {
        self.check_version().await?;
        let indexes = self.indexes(format!("_alias/{}", self.name)).await?;
        match indexes.as_slice() {
            [] => {
                let made = self.create().await?;
                self.activate(&made).await?;
                Ok(made)
            }
            [one] => {
                self.check_format(one).await?;
                Ok(Generation(one.clone()))
            }
            several => Err(StoreError::Foreign {
                place: self.place().to_owned(),
                what: format!(
                    "the alias `{}` names {} indexes; name another index",
                    self.name,
                    several.len()
                ),
            }
            .into()),
        }
    }

    async fn create(&self) -> Result<Generation, ServerError> {
        self.check_version().await?;
        let number = fastrand::u64(..);
        let generation = Generation(format!("{}-g{number:016x}", self.name));
        let body = mapping::index(&writing_alias(&generation));
        let request = Request::put(generation.0.clone()).json(&body);
        self.client.ask(request).await?;
        Ok(generation)
    }

    async fn activate(&self, generation: &Generation) -> Result<(), ServerError> {
        let all = self.indexes(format!("{}-g*/_alias", self.name)).await?;
        if !all.contains(&generation.0) {
            return Err(ServerError::Gone);
        }
        let others = all
            .into_iter()
            .filter(|name| *name != generation.0 && self.is_generation(name));
        let mut actions: Vec<Value> = others
            .map(|index| json!({"remove_index": {"index": index}}))
            .collect();
        actions.push(json!({"add": {"index": generation.0, "alias": self.name}}));
        let request = Request::post("_aliases".to_owned());
        let request = request.json(&json!({"actions": actions}));
        self.client.ask(request).await.map(drop)
    }

    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Marked, ServerError> {
        let path = format!("{}/_doc/{}", generation.0, mapping::watermark_id(tenant));
        let reply = self.client.reply(Request::get(path)).await?;
        if reply.status == 404 && reply.error_type().is_empty() {
            return Ok(Marked::default());
        }
        if !reply.is_success() {
            return Err(self.client.refused(reply.status, &reply.body));
        }
        let number = |at: &str| {
            let found = reply.body.pointer(at).and_then(Value::as_u64);
            found.ok_or_else(|| self.client.unreadable("a watermark"))
        };
        Ok(Marked {
            watermark: Watermark {
                seq: number("/_source/watermark_seq")?,
                embedded: number("/_source/watermark_embedded")?,
            },
            token: Some((number("/_seq_no")?, number("/_primary_term")?)),
        })
    }

    async fn mark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: &Marked,
        to: Watermark,
    ) -> Result<Option<Marked>, ServerError> {
        let (alias, id) = (writing_alias(generation), mapping::watermark_id(tenant));
        let path = match from.token {
            Some((number, term)) => format!(
                "{alias}/_doc/{id}?require_alias=true&if_seq_no={number}&if_primary_term={term}"
            ),
            None => format!("{alias}/_create/{id}?require_alias=true"),
        };
        let request = Request::put(path).json(&watermark(&to, tenant));
        let reply = self.client.reply(request).await?;
        if reply.status == 409 {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(self.client.refused(reply.status, &reply.body));
        }
        let number = |field: &str| {
            let found = reply.body.get(field).and_then(Value::as_u64);
            found.ok_or_else(|| self.client.unreadable("the number of a document"))
        };
        Ok(Some(Marked {
            watermark: to,
            token: Some((number("_seq_no")?, number("_primary_term")?)),
        }))
    }

    async fn write(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> Result<(), ServerError> {
        let mut lines = String::new();
        for change in &changes {
            if let DocumentChange::Put(document) = change
                && let Some(vector) = &document.vector
            {
                self.make_field(generation, &vector.model).await?;
            }
            mapping::bulk_lines(tenant, change, &mut lines);
            if lines.len() >= BULK_BYTES {
                let full = std::mem::take(&mut lines);
                self.write_lines(generation, full).await?;
            }
        }
        if !lines.is_empty() {
            self.write_lines(generation, lines).await?;
        }
        self.refresh(generation).await
    }

    async fn count(&self, generation: &Generation, tenant: &Tenant) -> Result<u64, ServerError> {
        let path = format!("{}/_count", generation.0);
        let body = json!({"query": {"term": {"tenant": tenant.as_str()}}});
        let answer = self.client.ask(Request::post(path).json(&body)).await?;
        let count = answer["count"].as_u64();
        Ok(count.ok_or_else(|| self.client.unreadable("a count"))?)
    }

    async fn entries(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<Entry>, ServerError> {
        let body = query::entries(tenant.as_str(), after.map(|id| id.as_str()), limit);
        let path = format!("{}/_search", generation.0);
        let answer = self.client.ask(Request::post(path).json(&body)).await?;
        let found = answer::hits(&self.client, &answer, |_| 0.0)?.into_iter();
        Ok(found
            .map(|Found { id, seq, .. }| Entry { id, seq })
            .collect())
    }

    async fn vectors(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        model: &ModelId,
        ids: &[Id],
    ) -> Result<Option<HashMap<Id, Vec<f32>>>, ServerError> {
        let field = mapping::vector_field(model);
        let path = format!("{}/_mget?_source_includes={field}", generation.0);
        let names: HashMap<String, &Id> = ids
            .iter()
            .map(|id| (mapping::document_id(tenant, id.as_str()), id))
            .collect();
        let wanted: Vec<&String> = names.keys().collect();
        let request = Request::post(path).json(&json!({"ids": wanted}));
        let answer = self.client.ask(request).await?;
        let held = answer::vectors(&self.client, &answer, &field)?.into_iter();
        let held = held.filter_map(|(name, vector)| Some(((*names.get(&name)?).clone(), vector)));
        Ok(Some(held.collect()))
    }

    async fn find(
        &self,
        generation: &Generation,
        asked: &Question<'_>,
    ) -> Result<ServerAnswer, ServerError> {
        let searches = self.searches(generation, asked).await?;
        let mut lines = String::new();
        for (_, search) in &searches {
            lines.push_str("{}\n");
            lines.push_str(&search.to_string());
            lines.push('\n');
        }
        if lines.is_empty() {
            return Ok(ServerAnswer::default());
        }
        let path = format!("{}/_msearch", generation.0);
        let answer = self.client.ask(Request::post(path).lines(lines)).await?;
        let parts = searches.into_iter().map(|(part, _)| part).collect();
        Answers::new(&self.client, parts).read(&answer)
    }

    async fn speakers(
        &self,
        generation: &Generation,
        asked: &Audience<'_>,
        words: &[&str],
    ) -> Result<Vec<String>, ServerError> {
        let body = query::speakers(query::filter(asked), words);
        let path = format!("{}/_search", generation.0);
        let answer = self.client.ask(Request::post(path).json(&body)).await?;
        let names = answer.pointer("/aggregations/names/buckets");
        let names = names.and_then(Value::as_array);
        let names = names.ok_or_else(|| self.client.unreadable("speakers"))?;
        let names = names.iter().filter_map(|bucket| bucket["key"].as_str());
        Ok(names.map(str::to_owned).collect())
    }
}
