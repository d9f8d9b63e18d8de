//! The index server, which is a folder or a bucket.

mod find;
mod table;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::FutureExt;
use lance::Dataset;
use mnemon_adapters::external_index::{
    Audience, DocumentChange, Entry, Generation, IndexServer, IndexUrl, Marked, Question,
    ServerAnswer, ServerError, Watermark,
};
use mnemon_core::embed::ModelId;
use mnemon_core::{Id, Invalid, Tenant};

use crate::bucket::Bucket;
use crate::folder::Folder;
use crate::home::Home;
use crate::{filter, s3, schema};

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

/// An index in Lance tables, in a folder or in a bucket.
pub struct Lance {
    home: Box<dyn Home>,
    upkeep: Upkeep,
    /// The table that was used last.
    opened: Mutex<Option<(Generation, Dataset)>>,
}

impl Lance {
    /// Nothing is read or made yet. The environment holds the keys of a bucket.
    pub fn new(url: &IndexUrl) -> Result<Self, Invalid> {
        let Some(bucket) = url.bucket() else {
            let path = url.folder();
            let path = std::path::absolute(&path).unwrap_or(path);
            let folder = Folder::new(path, url.as_str().to_owned(), url.timeout);
            return Ok(Self::at(Box::new(folder)));
        };
        let store = Arc::new(s3::client(s3::settings(), bucket, url.timeout)?);
        let bucket = Bucket::new(store, bucket, &url.name, url.as_str(), url.timeout);
        Ok(Self::at(Box::new(bucket)))
    }

    pub(crate) fn at(home: Box<dyn Home>) -> Self {
        Self {
            home,
            upkeep: Upkeep::default(),
            opened: Mutex::default(),
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

    /// A generation without documents. The caller has the turn.
    async fn make(&self) -> Result<Generation, ServerError> {
        let generation = self.home.make().await?;
        self.make_table(&generation).await?;
        self.home.complete(&generation).await?;
        Ok(generation)
    }

    async fn check_there(&self, generation: &Generation) -> Result<(), ServerError> {
        match self.home.has(generation).await? {
            true => Ok(()),
            false => Err(ServerError::Gone),
        }
    }
}

#[async_trait]
impl IndexServer for Lance {
    fn place(&self) -> &str {
        self.home.place()
    }

    async fn current(&self) -> Result<Generation, ServerError> {
        if let Some(current) = self.home.current().await? {
            return Ok(current);
        }
        self.home.prepare().await?;
        let _turn = self.home.turn().await?;
        if let Some(current) = self.home.current().await? {
            return Ok(current);
        }
        let made = self.make().await?;
        Ok(self.home.offer(made).await?)
    }

    async fn create(&self) -> Result<Generation, ServerError> {
        self.home.prepare().await?;
        let _turn = self.home.turn().await?;
        self.make().await
    }

    async fn activate(&self, generation: &Generation) -> Result<(), ServerError> {
        let _turn = self.home.turn().await?;
        self.check_there(generation).await?;
        self.tidy(generation).await?;
        Ok(self.home.activate(generation).await?)
    }

    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Marked, ServerError> {
        let found = self.home.watermark(generation, tenant).await?;
        // Without its generation it looks as if nothing had been written.
        self.check_there(generation).await?;
        Ok(found.map(marked).unwrap_or_default())
    }

    async fn mark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: &Marked,
        to: Watermark,
    ) -> Result<Option<Marked>, ServerError> {
        let from = from
            .token
            .map(|(seq, embedded)| Watermark { seq, embedded });
        let moved = self.home.move_watermark(generation, tenant, from, to).await;
        self.check_there(generation).await?;
        Ok(moved?.then(|| marked(to)))
    }

    async fn write(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> Result<(), ServerError> {
        let _turn = self.home.turn().await?;
        self.check_there(generation).await?;
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
