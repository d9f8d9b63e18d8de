//! Writing documents.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use mnemon_adapters::external_index::{DocumentChange, Generation};
use mnemon_core::Tenant;
use mnemon_core::embed::ModelId;

use super::Milvus;
use crate::client::Failure;
use crate::proto::{Column, Delete, Mutated, Upsert};
use crate::rows::Row;
use crate::{filter, rows, schema};

/// Bytes of one request, about.
const REQUEST_BYTES: usize = 16 << 20;

/// A change with what Milvus needs of it.
struct Written {
    key: String,
    row: Option<Row>,
    model: Option<ModelId>,
}

impl Milvus {
    /// Vectors are written before documents. So a document of a version means that its vector is
    /// there, too, and a write that stopped half-way is repeated.
    pub(super) async fn write_changes(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> Result<(), Failure> {
        let changes = self.newer(generation, tenant, changes).await?;
        let written: Vec<Written> = changes
            .into_iter()
            .map(|change| prepare(tenant, &change))
            .collect();
        self.write_vectors(generation, &written).await?;
        let rows: Vec<&Row> = written.iter().filter_map(|it| it.row.as_ref()).collect();
        self.put_documents(generation, &rows).await?;
        let deleted = written.iter().filter(|it| it.row.is_none());
        let deleted: Vec<&str> = deleted.map(|it| it.key.as_str()).collect();
        self.delete(&generation.0, &deleted).await
    }

    /// The changes that are not older than their documents.
    async fn newer(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        mut changes: Vec<DocumentChange>,
    ) -> Result<Vec<DocumentChange>, Failure> {
        if changes.is_empty() {
            return Ok(changes);
        }
        let of = |change: &DocumentChange| schema::key(tenant, change.id().as_str());
        let keys: Vec<String> = changes.iter().map(of).collect();
        let wanted = filter::keys(keys.iter().map(String::as_str));
        let fields = [schema::KEY, "version"];
        let known = self.client.rows(&generation.0, wanted, &fields, keys.len());
        let known = known.await?;
        let versions = self.client.longs(&known, "version")?;
        let known = self.client.strings(&known, schema::KEY)?.iter();
        let known: HashMap<&String, &i64> = known.zip(versions).collect();
        changes.retain(|change| {
            let version = known.get(&of(change)).copied();
            let version = version.and_then(|version| u64::try_from(*version).ok());
            version.is_none_or(|version| version <= change.version())
        });
        Ok(changes)
    }

    async fn write_vectors(
        &self,
        generation: &Generation,
        written: &[Written],
    ) -> Result<(), Failure> {
        let mut of_models: BTreeMap<String, Vec<&Written>> = BTreeMap::new();
        let mut models: HashMap<String, &ModelId> = HashMap::new();
        for one in written {
            if let Some(model) = &one.model {
                let collection = schema::vectors_of(generation, model);
                models.insert(collection.clone(), model);
                of_models.entry(collection).or_default().push(one);
            }
        }
        let there: HashSet<String> = self.collections().await?.into_iter().collect();
        for (collection, model) in models {
            let index = schema::meaning_index(&collection);
            if !there.contains(&collection) {
                let made = self.make(schema::vectors(&collection, model), index);
                made.await?;
            } else if !self.completed().contains(&collection) {
                self.complete(&collection, index).await?;
            }
            self.completed().insert(collection);
        }
        let others = there.into_iter().filter(|collection| {
            *collection != generation.0
                && schema::generation_of(&self.name, collection) == Some(generation.0.as_str())
        });
        // A version without a vector of a model replaces one that had it.
        for collection in others {
            let placed = of_models.get(&collection);
            let placed = placed.map_or(&[][..], |placed| placed.as_slice());
            let placed: HashSet<&str> = placed.iter().map(|it| it.key.as_str()).collect();
            let keys = written.iter().map(|it| it.key.as_str());
            let gone: Vec<&str> = keys.filter(|key| !placed.contains(key)).collect();
            self.delete(&collection, &gone).await?;
        }
        for (collection, placed) in of_models {
            let placed = placed.iter().filter_map(|it| it.row.as_ref());
            let placed: Vec<&Row> = placed.collect();
            self.put(&collection, &placed, rows::vectors).await?;
        }
        Ok(())
    }

    fn completed(&self) -> MutexGuard<'_, HashSet<String>> {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn put_documents(
        &self,
        generation: &Generation,
        rows: &[&Row],
    ) -> Result<(), Failure> {
        self.put(&generation.0, rows, rows::documents).await
    }

    async fn put(
        &self,
        collection: &str,
        rows: &[&Row],
        columns: fn(&[&Row]) -> Vec<Column>,
    ) -> Result<(), Failure> {
        for rows in by_size(rows) {
            let upsert = Upsert {
                collection: collection.to_owned(),
                columns: columns(rows),
                rows: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            };
            let _: Mutated = self.client.ask(collection, "Upsert", &upsert).await?;
        }
        Ok(())
    }

    async fn delete(&self, collection: &str, keys: &[&str]) -> Result<(), Failure> {
        if keys.is_empty() {
            return Ok(());
        }
        let delete = Delete {
            collection: collection.to_owned(),
            filter: filter::keys(keys.iter().copied()),
        };
        let _: Mutated = self.client.ask(collection, "Delete", &delete).await?;
        Ok(())
    }
}

fn prepare(tenant: &Tenant, change: &DocumentChange) -> Written {
    let key = schema::key(tenant, change.id().as_str());
    match change {
        DocumentChange::Put(document) => Written {
            key,
            row: Some(Row::of(tenant, document, change.version())),
            model: document.vector.as_ref().map(|it| it.model.clone()),
        },
        DocumentChange::Delete { .. } => Written {
            key,
            row: None,
            model: None,
        },
    }
}

/// Parts that each fit into a request.
fn by_size<'a, 'b>(mut rows: &'a [&'b Row]) -> Vec<&'a [&'b Row]> {
    let mut parts = Vec::new();
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = rows.iter().take_while(|row| {
            bytes += row.bytes();
            bytes <= REQUEST_BYTES
        });
        let end = fits.count().max(1);
        let (part, rest) = rows.split_at(end);
        parts.push(part);
        rows = rest;
    }
    parts
}
