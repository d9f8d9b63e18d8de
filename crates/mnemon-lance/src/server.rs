//! The index server, which is a folder.

mod find;
mod table;
mod write;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::FutureExt;
use lance::Dataset;
use lance::session::Session;
use mnemon_adapters::external_index::{
    Audience, DocumentChange, Entry, Generation, IndexServer, IndexUrl, Marked, Question,
    ServerAnswer, ServerError, Watermark,
};
use mnemon_core::embed::ModelId;
use mnemon_core::{Id, Tenant};

use crate::folder::Folder;
use crate::{filter, schema};

/// When tables are compacted and old versions are removed. Each commit is a version.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep {
    /// Versions after which a table is compacted.
    pub versions_most: u64,
    /// Versions that stay, for searches that read them.
    pub versions_kept: usize,
    /// Rows of a file. Files with fewer rows are merged.
    pub rows_per_file: usize,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            versions_most: 40,
            versions_kept: 20,
            rows_per_file: 16_384,
        }
    }
}

/// An index in a folder of Lance tables.
pub struct Lance {
    folder: Folder,
    upkeep: Upkeep,
    session: Arc<Session>,
    /// The table that was used last.
    opened: Mutex<Option<(Generation, Dataset)>>,
    /// Files that this process knows to be durable.
    synced: Mutex<HashSet<PathBuf>>,
}

impl Lance {
    /// Nothing is read or made yet.
    pub fn new(url: &IndexUrl) -> Self {
        let path = url.folder();
        let path = std::path::absolute(&path).unwrap_or(path);
        Self {
            folder: Folder::new(path, url.as_str().to_owned(), url.timeout),
            upkeep: Upkeep::default(),
            session: table::session(),
            opened: Mutex::default(),
            synced: Mutex::default(),
        }
    }

    /// The same with another schedule.
    #[must_use]
    pub fn with_upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = upkeep;
        self
    }

    fn opened(&self) -> MutexGuard<'_, Option<(Generation, Dataset)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A generation without documents. The caller holds the lock.
    async fn make(&self) -> Result<Generation, ServerError> {
        self.folder.claim()?;
        let generation = self.folder.make()?;
        self.make_table(&generation).await?;
        Ok(generation)
    }

    /// Has searches use a generation. The caller holds the lock.
    fn point_to(&self, generation: &Generation) -> Result<(), ServerError> {
        self.folder.mark_current(Some(generation))?;
        Ok(self.folder.remove_others(generation)?)
    }

    fn check_there(&self, generation: &Generation) -> Result<(), ServerError> {
        match self.folder.has(generation) {
            true => Ok(()),
            false => Err(ServerError::Gone),
        }
    }
}

#[async_trait]
impl IndexServer for Lance {
    fn place(&self) -> &str {
        self.folder.place()
    }

    async fn current(&self) -> Result<Generation, ServerError> {
        if let Some(current) = self.folder.current()? {
            return Ok(current);
        }
        self.folder.prepare()?;
        let _locked = self.folder.lock().await?;
        if let Some(current) = self.folder.current()? {
            return Ok(current);
        }
        let made = self.make().await?;
        self.point_to(&made)?;
        Ok(made)
    }

    async fn create(&self) -> Result<Generation, ServerError> {
        self.folder.prepare()?;
        let _locked = self.folder.lock().await?;
        self.make().await
    }

    async fn activate(&self, generation: &Generation) -> Result<(), ServerError> {
        let _locked = self.folder.lock().await?;
        self.check_there(generation)?;
        self.tidy(generation).await?;
        self.point_to(generation)
    }

    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Marked, ServerError> {
        let found = self.folder.watermark(generation, tenant)?;
        // Without its folder it looks as if nothing had been written.
        self.check_there(generation)?;
        Ok(found.map(marked).unwrap_or_default())
    }

    async fn mark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: &Marked,
        to: Watermark,
    ) -> Result<Option<Marked>, ServerError> {
        let _locked = self.folder.lock().await?;
        let now = self.watermark(generation, tenant).await?;
        if now.token != from.token {
            return Ok(None);
        }
        self.folder.set_watermark(generation, tenant, to)?;
        Ok(Some(marked(to)))
    }

    async fn write(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> Result<(), ServerError> {
        let _locked = self.folder.lock().await?;
        self.check_there(generation)?;
        self.write_changes(generation, tenant, changes).await
    }

    async fn count(&self, generation: &Generation, tenant: &Tenant) -> Result<u64, ServerError> {
        let wanted = filter::of_tenant(tenant);
        let count = |table: Dataset| {
            let wanted = wanted.clone();
            async move { table.count_rows(Some(wanted)).await }.boxed()
        };
        Ok(self.read(generation, count).await? as u64)
    }

    async fn entries(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<Entry>, ServerError> {
        let wanted = filter::after(tenant, after.map(Id::as_str));
        let list = |table| find::entries(table, &wanted, limit).boxed();
        self.read(generation, list).await
    }

    async fn vectors(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        model: &ModelId,
        ids: &[Id],
    ) -> Result<Option<HashMap<Id, Vec<f32>>>, ServerError> {
        let wanted = filter::ids(tenant, ids.iter().map(Id::as_str));
        let column = schema::vector_column(model);
        let read = |table| find::vectors(table, &wanted, &column).boxed();
        Ok(Some(self.read(generation, read).await?))
    }

    async fn find(
        &self,
        generation: &Generation,
        asked: &Question<'_>,
    ) -> Result<ServerAnswer, ServerError> {
        let find = |table| find::documents(table, asked).boxed();
        self.read(generation, find).await
    }

    async fn speakers(
        &self,
        generation: &Generation,
        asked: &Audience<'_>,
        words: &[&str],
    ) -> Result<Vec<String>, ServerError> {
        // Documents without a speaker have an empty word.
        let words = words.iter().copied().filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = filter::spoken(&filter::filter(asked), &words);
        let find = |table| find::speakers(table, &wanted).boxed();
        self.read(generation, find).await
    }
}

fn marked(watermark: Watermark) -> Marked {
    Marked {
        watermark,
        token: Some((watermark.seq, watermark.embedded)),
    }
}
