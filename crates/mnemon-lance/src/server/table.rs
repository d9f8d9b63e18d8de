//! Opening, making and compacting the table of a generation, and what its errors mean.

use futures::future::BoxFuture;
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance::dataset::optimize::{CompactionOptions, compact_files};
use lance::dataset::{InsertBuilder, WriteMode, WriteParams};
use lance::deps::arrow_schema::Schema;
use lance::{Dataset, Error};
use mnemon_adapters::external_index::{Generation, ServerError};
use mnemon_core::StoreError;

use super::Lance;
use crate::{home, rows, s3, schema};

/// How often a read begins again because its version was removed.
const READS: usize = 3;
/// Characters of Lance's own words in an error.
const SAID_CHARS: usize = 300;

/// Why a table was not changed.
pub(super) enum Failure {
    Lance(Error),
    Server(ServerError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lance(error)
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Server(error.into())
    }
}

impl Lance {
    pub(super) async fn make_table(&self, generation: &Generation) -> Result<(), ServerError> {
        let params = WriteParams {
            mode: WriteMode::Create,
            session: Some(self.home.session()),
            commit_handler: self.home.commits(),
            ..WriteParams::default()
        };
        let uri = self.home.table(generation);
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
                let builder = DatasetBuilder::from_uri(self.home.table(generation));
                let builder = builder.with_session(self.home.session());
                match self.home.commits() {
                    Some(commits) => builder.with_commit_handler(commits).load().await,
                    None => builder.load().await,
                }
            }
        };
        let table = match opened {
            Ok(table) => table,
            Err(error) => return Err(self.failed(generation, &error).await),
        };
        if let Some(column) = schema::difference(&Schema::from(table.schema())) {
            let what = format!(
                "the table has another column `{column}`; run `mnemon index rebuild`, or name \
                 another place"
            );
            return Err(home::foreign(self.home.place(), what).into());
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
                return Err(self.failed(generation, &error).await);
            }
            attempt += 1;
        }
    }

    /// Compacts the table if it is time to. The caller has the turn.
    pub(super) async fn tidy_if_due(
        &self,
        generation: &Generation,
        table: &Dataset,
    ) -> Result<(), ServerError> {
        match table.count_versions().await {
            Ok(versions) if versions > self.upkeep.versions_most => self.tidy(generation).await,
            Ok(_) => Ok(self.home.sync(generation)?),
            Err(error) => Err(self.failed(generation, &error).await),
        }
    }

    /// Merges small files, drops deleted rows of files that have many, and removes old versions. The caller
    /// has the turn.
    pub(super) async fn tidy(&self, generation: &Generation) -> Result<(), ServerError> {
        let table = self.table(generation).await?;
        match self.compacted(generation, table).await {
            Ok(()) => Ok(()),
            // Another process has written meanwhile. It compacts the table if that is still necessary.
            Err(Failure::Lance(error)) if s3::is_conflict(&error) => Ok(()),
            Err(failure) => Err(self.explained(generation, failure).await),
        }
    }

    async fn compacted(&self, generation: &Generation, mut table: Dataset) -> Result<(), Failure> {
        let options = CompactionOptions {
            target_rows_per_fragment: self.upkeep.rows_per_file,
            num_threads: Some(1),
            ..CompactionOptions::default()
        };
        compact_files(&mut table, options, None).await?;
        self.remember(generation, &table);
        // Old files are removed only when those that replace them are durable.
        self.home.sync(generation)?;
        let kept = CleanupPolicyBuilder::default();
        let kept = kept.retain_n_versions(&table, self.upkeep.versions_kept);
        // Where nothing is being written, files without a version were left by a process that died.
        // Elsewhere Lance removes them after a week.
        let policy = kept.await?.delete_unverified(self.home.takes_turns());
        table.cleanup_with_policy(policy.build()).await?;
        Ok(())
    }

    /// Compacts the table now, for tests of processes that die meanwhile.
    #[doc(hidden)]
    pub async fn compact(&self, generation: &Generation) -> Result<(), ServerError> {
        let _turn = self.home.turn().await?;
        self.tidy(generation).await
    }

    pub(super) async fn explained(&self, generation: &Generation, failure: Failure) -> ServerError {
        match failure {
            Failure::Lance(error) => self.failed(generation, &error).await,
            Failure::Server(error) => error,
        }
    }

    async fn failed(&self, generation: &Generation, error: &Error) -> ServerError {
        match self.home.has(generation).await {
            Ok(true) => self.lance_failed(error).into(),
            Ok(false) => ServerError::Gone,
            Err(error) => error.into(),
        }
    }

    fn lance_failed(&self, error: &Error) -> StoreError {
        if let Some(known) = self.home.cause(error) {
            return known;
        }
        let said: String = error.to_string().chars().take(SAID_CHARS).collect();
        let place = self.home.place().to_owned();
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
