//! Writing documents.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use lance::dataset::{
    DeleteBuilder, InsertBuilder, MergeInsertBuilder, NewColumnTransform, WhenMatched,
    WhenNotMatched, WriteMode, WriteParams,
};
use lance::deps::arrow_array::RecordBatch;
use lance::deps::arrow_schema::{Field, Schema};
use lance::{Dataset, Result};
use mnemon_adapters::external_index::{DocumentChange, Generation, ServerError, unavailable};
use mnemon_core::embed::ModelId;
use mnemon_core::{StoreError, Tenant};

use super::Lance;
use super::table::Failure;
use crate::rows::{self, Row};
use crate::{filter, s3, schema};

/// How often a write begins again because another process has written.
const CONFLICTS: u64 = 20;
/// The longest wait before that, in milliseconds; it grows with each attempt.
const PAUSE_MS: u64 = 20;

impl Lance {
    /// The caller has the turn. Where processes do not take turns, a write that came too late is repeated.
    pub(super) async fn write_changes(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> std::result::Result<(), ServerError> {
        for attempt in 1..=CONFLICTS {
            match self.write_once(generation, tenant, changes.clone()).await {
                Ok(table) => return self.tidy_if_due(generation, &table).await,
                Err(Failure::Lance(error)) if s3::is_conflict(&error) => {
                    let pause = fastrand::u64(..PAUSE_MS * attempt);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                Err(failure) => return Err(self.explained(generation, failure).await),
            }
        }
        let what = "other processes write to the index all the time; try again";
        Err(unavailable(self.home.place(), what, "commits came too late").into())
    }

    /// Documents that are put and those that are deleted are a commit each. A document that is newer than
    /// its change stays, because no commit may lie between reading the versions and these commits.
    async fn write_once(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        mut changes: Vec<DocumentChange>,
    ) -> std::result::Result<Dataset, Failure> {
        let table = self.table(generation).await?;
        let known = versions(&table, tenant, &changes).await?;
        changes.retain(|change| {
            let version = known.get(change.id().as_str());
            version.is_none_or(|version| *version <= change.version())
        });
        let table = self.add_models(table, &changes).await?;
        let table = put(table, tenant, &changes, &known).await?;
        let table = delete(table, tenant, &changes, &known).await?;
        self.remember(generation, &table);
        Ok(table)
    }

    /// Adds columns for the vectors of models that the table does not have.
    async fn add_models(
        &self,
        mut table: Dataset,
        changes: &[DocumentChange],
    ) -> std::result::Result<Dataset, Failure> {
        let there = Schema::from(table.schema());
        let missing = |model: &&ModelId| {
            let column = schema::vector_column(model);
            there.field_with_name(&column).is_err()
        };
        let vectors = puts(changes).filter_map(|row| row.document.vector.as_ref());
        let models = vectors.map(|vector| &vector.model).filter(missing);
        let fields: BTreeMap<String, Field> = models
            .map(schema::vector_field)
            .map(|field| (field.name().clone(), field))
            .collect();
        let columns = there.fields().iter();
        let columns = columns.filter(|it| schema::dimension(it).is_some()).count();
        let count = columns + fields.len();
        if count > schema::MODELS {
            return Err(self.too_many_models(count).into());
        }
        if !fields.is_empty() {
            let fields = Schema::new(fields.into_values().collect::<Vec<Field>>());
            let added = NewColumnTransform::AllNulls(Arc::new(fields));
            table.add_columns(added, None, None).await?;
        }
        Ok(table)
    }

    fn too_many_models(&self, count: usize) -> StoreError {
        let most = schema::MODELS;
        let what = format!(
            "vectors of {count} models, and an index holds those of {most}; embed the records with \
             one model (`mnemon reembed`) and run `mnemon index rebuild`"
        );
        unavailable(self.home.place(), what, "too many models")
    }
}

fn puts(changes: &[DocumentChange]) -> impl Iterator<Item = Row<'_>> {
    changes.iter().filter_map(|change| match change {
        DocumentChange::Put(document) => Some(Row {
            document,
            version: change.version(),
        }),
        DocumentChange::Delete { .. } => None,
    })
}

/// The versions of the documents that changes are of.
async fn versions(
    table: &Dataset,
    tenant: &Tenant,
    changes: &[DocumentChange],
) -> Result<HashMap<String, u64>> {
    let mut known = HashMap::new();
    if changes.is_empty() {
        return Ok(known);
    }
    let ids = changes.iter().map(|change| change.id().as_str());
    let mut scan = table.scan();
    scan.filter(&filter::ids(tenant, ids))?;
    scan.project(&["id", "version"])?;
    let mut batches = scan.try_into_stream().await?;
    while let Some(batch) = batches.try_next().await? {
        let (ids, versions) = (rows::texts(&batch, "id")?, rows::longs(&batch, "version")?);
        for (id, version) in ids.iter().zip(versions) {
            let version = version.and_then(|version| u64::try_from(version).ok());
            known.insert(id.unwrap_or_default().to_owned(), version.unwrap_or(0));
        }
    }
    Ok(known)
}

/// Inserts and replaces documents in one commit.
async fn put(
    table: Dataset,
    tenant: &Tenant,
    changes: &[DocumentChange],
    known: &HashMap<String, u64>,
) -> Result<Dataset> {
    let puts: Vec<Row<'_>> = puts(changes).collect();
    if puts.is_empty() {
        return Ok(table);
    }
    let batch = rows::batch(tenant, &puts, &Schema::from(table.schema()))?;
    let is_known = |row: &Row<'_>| known.contains_key(row.document.id.as_str());
    match puts.iter().any(is_known) {
        true => merge(table, batch).await,
        false => append(table, batch).await,
    }
}

async fn merge(table: Dataset, batch: RecordBatch) -> Result<Dataset> {
    let keys = vec!["tenant".to_owned(), "id".to_owned()];
    let mut merge = MergeInsertBuilder::try_new(Arc::new(table), keys)?;
    merge
        .when_matched(WhenMatched::UpdateAll)
        .when_not_matched(WhenNotMatched::InsertAll)
        .conflict_retries(0);
    let (table, _) = merge.try_build()?.execute_batches(vec![batch]).await?;
    Ok(Arc::unwrap_or_clone(table))
}

/// The same for documents that are all new, without a join.
async fn append(table: Dataset, batch: RecordBatch) -> Result<Dataset> {
    let params = WriteParams {
        mode: WriteMode::Append,
        ..WriteParams::default()
    };
    let insert = InsertBuilder::new(Arc::new(table)).with_params(&params);
    insert.execute(vec![batch]).await
}

async fn delete(
    table: Dataset,
    tenant: &Tenant,
    changes: &[DocumentChange],
    known: &HashMap<String, u64>,
) -> Result<Dataset> {
    let deleted = changes.iter().filter_map(|change| match change {
        DocumentChange::Delete { id, .. } => Some(id.as_str()),
        DocumentChange::Put(_) => None,
    });
    let deleted: Vec<&str> = deleted.filter(|id| known.contains_key(*id)).collect();
    if deleted.is_empty() {
        return Ok(table);
    }
    let delete = DeleteBuilder::new(Arc::new(table), filter::ids(tenant, deleted));
    let done = delete.conflict_retries(0).execute().await?;
    Ok(Arc::unwrap_or_clone(done.new_dataset))
}
