//! Opening, making and compacting the table of a generation, and what its errors mean.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, PoisonError};

use futures::future::BoxFuture;
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use lance::deps::arrow_schema::Schema;
use lance::session::Session;
use lance::{Dataset, Error};
use mnemon_adapters::external_index::{Generation, ServerError};
use mnemon_core::StoreError;

use super::Lance;
use crate::{rows, schema};

/// Bytes of the caches of indexes and of metadata at the most.
const INDEX_CACHE_BYTES: usize = 16 << 20;
const METADATA_CACHE_BYTES: usize = 64 << 20;
/// How often a read begins again because its version was removed.
const READS: usize = 3;
/// Characters of Lance's own words in an error.
const SAID_CHARS: usize = 300;

/// The caches of a process.
pub(super) fn session() -> Arc<Session> {
    let registry = Arc::default();
    Arc::new(Session::new(
        INDEX_CACHE_BYTES,
        METADATA_CACHE_BYTES,
        registry,
    ))
}

impl Lance {
    fn uri(&self, generation: &Generation) -> String {
        self.folder.table(generation).to_string_lossy().into_owned()
    }

    pub(super) async fn make_table(&self, generation: &Generation) -> Result<(), ServerError> {
        let params = WriteParams {
            mode: WriteMode::Create,
            session: Some(self.session.clone()),
            ..WriteParams::default()
        };
        let uri = self.uri(generation);
        let made = InsertBuilder::new(uri.as_str()).with_params(&params);
        let made = made.execute(vec![rows::nothing()]).await;
        made.map_err(|error| self.lance_failed(&error))?;
        Ok(())
    }

    /// The newest version of the table.
    pub(super) async fn table(&self, generation: &Generation) -> Result<Dataset, ServerError> {
        let known = self.opened().clone();
        let known = known.filter(|(of, _)| of == generation);
        let opened = match known {
            Some((_, mut table)) => table.checkout_latest().await.map(|()| table),
            None => {
                let uri = self.uri(generation);
                let builder = DatasetBuilder::from_uri(uri).with_session(self.session.clone());
                builder.load().await
            }
        };
        let table = opened.map_err(|error| self.failed(generation, &error))?;
        if let Some(column) = schema::difference(&Schema::from(table.schema())) {
            let what = format!(
                "the table has another column `{column}`; run `mnemon index rebuild`, or name \
                 another folder"
            );
            return Err(self.folder.foreign(what).into());
        }
        self.remember(generation, &table);
        Ok(table)
    }

    pub(super) fn remember(&self, generation: &Generation, table: &Dataset) {
        *self.opened() = Some((generation.clone(), table.clone()));
    }

    /// The result of reading. It begins again if another process has removed the version meanwhile.
    pub(super) async fn read<'a, T>(
        &self,
        generation: &Generation,
        read: impl Fn(Dataset) -> BoxFuture<'a, lance::Result<T>> + Send,
    ) -> Result<T, ServerError> {
        let mut attempt = 1;
        loop {
            let table = self.table(generation).await?;
            let version = table.version_id();
            let error = match read(table.clone()).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let newest = table.latest_version_id().await;
            let is_old = newest.is_ok_and(|newest| newest != version);
            if attempt == READS || !is_old {
                return Err(self.failed(generation, &error));
            }
            attempt += 1;
        }
    }

    /// Compacts the table if it is time to. The caller holds the lock.
    pub(super) async fn tidy_if_due(
        &self,
        generation: &Generation,
        table: &Dataset,
    ) -> Result<(), ServerError> {
        let versions = table.count_versions().await;
        let versions = versions.map_err(|error| self.failed(generation, &error))?;
        match versions > self.upkeep.versions_most {
            true => self.tidy(generation).await,
            false => Ok(self.sync(generation)?),
        }
    }

    /// Merges small files, drops deleted rows of files that have many, and removes old versions. The caller holds the lock.
    pub(super) async fn tidy(&self, generation: &Generation) -> Result<(), ServerError> {
        let failed = |error: Error| self.failed(generation, &error);
        let mut table = self.table(generation).await?;
        let options = CompactionOptions {
            target_rows_per_fragment: self.upkeep.rows_per_file,
            num_threads: Some(1),
            ..CompactionOptions::default()
        };
        compact_files(&mut table, options, None)
            .await
            .map_err(failed)?;
        self.remember(generation, &table);
        // Old files are removed only when those that replace them are durable.
        self.sync(generation)?;
        let kept = CleanupPolicyBuilder::default();
        let kept = kept.retain_n_versions(&table, self.upkeep.versions_kept);
        // Nothing is being written, so files without a version were left by a process that died.
        let policy = kept.await.map_err(failed)?.delete_unverified(true);
        table
            .cleanup_with_policy(policy.build())
            .await
            .map_err(failed)?;
        Ok(())
    }

    /// Compacts the table now, for tests of processes that die meanwhile.
    #[doc(hidden)]
    pub async fn compact(&self, generation: &Generation) -> Result<(), ServerError> {
        let _locked = self.folder.lock().await?;
        self.tidy(generation).await
    }

    fn sync(&self, generation: &Generation) -> Result<(), StoreError> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        self.folder.sync(generation, &mut synced)
    }

    pub(super) fn failed(&self, generation: &Generation, error: &Error) -> ServerError {
        match self.folder.has(generation) {
            true => self.lance_failed(error).into(),
            false => ServerError::Gone,
        }
    }

    fn lance_failed(&self, error: &Error) -> StoreError {
        let mut source: Option<&dyn std::error::Error> = error.source();
        while let Some(inner) = source {
            if let Some(io) = inner.downcast_ref::<io::Error>() {
                let again = io::Error::new(io.kind(), io.to_string());
                let what = "cannot use a table (`mnemon index rebuild` makes a new one)";
                return self.folder.failed(what, again);
            }
            source = inner.source();
        }
        let said: String = error.to_string().chars().take(SAID_CHARS).collect();
        let place = self.folder.place().to_owned();
        let repair = "run `mnemon index rebuild`";
        match error {
            Error::CorruptFile { .. } | Error::DatasetNotFound { .. } | Error::NotFound { .. } => {
                StoreError::Corrupt {
                    place,
                    what: format!("{said}; {repair}"),
                }
            }
            _ => StoreError::Unavailable {
                place,
                what: format!("Lance failed: {said}; if it fails again, {repair}"),
                source: said.clone().into(),
            },
        }
    }
}
