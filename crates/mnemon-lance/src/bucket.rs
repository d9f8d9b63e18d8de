//! An index in a bucket of an object store.
//!
//! ```text
//! PATH/mnemon-index.json           the format, and the generation that searches use
//! PATH/gN/documents.lance          the table of a generation
//! PATH/gN/generation.json          is there while the generation is complete
//! PATH/gN/watermarks/TENANT.json   how far a tenant's documents follow the store
//! ```
//!
//! An object store has no locks. So a small object is replaced only if it is the one that was read, and a
//! version of the table is committed only after the version that was read ([`Succession`]). A process
//! that comes too late begins again. An object is durable as soon as it is written.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use lance::session::Session;
use lance_table::io::commit::CommitHandler;
use mnemon_adapters::external_index::{Generation, Watermark, unavailable};
use mnemon_core::{StoreError, Tenant};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::home::{self, Home, MARKER, Marker, TABLE, Turn, WATERMARKS, WatermarkFile};
use crate::s3::{self, Succession};

/// Says that a generation is complete.
const COMPLETE: &str = "generation.json";
/// How often a small object is read and replaced again because another process has replaced it.
const CONFLICTS: usize = 20;
/// Characters of an object store's own words in an error.
const SAID_CHARS: usize = 300;
/// The error code of S3 for a bucket that is absent.
const NO_BUCKET: &str = "NoSuchBucket";

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An index in a bucket.
pub(crate) struct Bucket {
    store: Arc<dyn ObjectStore>,
    name: String,
    path: Path,
    /// How messages name it.
    place: String,
    wait: Duration,
    session: Arc<Session>,
    /// Writers of one process wait for each other, as they would only get into each other's way.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl Bucket {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        name: &str,
        path: &str,
        place: &str,
        wait: Duration,
    ) -> Self {
        Self {
            session: s3::session(store.clone()),
            store,
            name: name.to_owned(),
            path: Path::from(path),
            place: place.to_owned(),
            wait,
            writing: Arc::default(),
        }
    }

    fn generation_path(&self, generation: &Generation) -> Path {
        self.path.clone().join(generation.0.as_str())
    }

    fn complete_path(&self, generation: &Generation) -> Path {
        self.generation_path(generation).join(COMPLETE)
    }

    fn watermark_path(&self, generation: &Generation, tenant: &Tenant) -> Path {
        let watermarks = self.generation_path(generation).join(WATERMARKS);
        watermarks.join(WatermarkFile::name(tenant).as_str())
    }

    /// A small object, and what recognises this version of it.
    async fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<(T, UpdateVersion)>> {
        let failed = |error| self.failed("cannot read the object store", &error);
        let found = match self.store.get(path).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(failed)?,
        };
        let version = UpdateVersion {
            e_tag: found.meta.e_tag.clone(),
            version: found.meta.version.clone(),
        };
        let text = found.bytes().await.map_err(failed)?;
        let name = path.filename().unwrap_or_default();
        let content = home::parsed(&self.place, name, &text)?;
        Ok(Some((content, version)))
    }

    /// Replaces the version of a small object that was read; `None` stands for a new object. The answer is
    /// whether it was still this version.
    async fn replace(
        &self,
        path: &Path,
        from: Option<UpdateVersion>,
        content: &impl Serialize,
    ) -> Result<bool> {
        let text = serde_json::to_vec(content).map_err(|e| StoreError::Internal(e.to_string()))?;
        let mode = from.map_or(PutMode::Create, PutMode::Update);
        let is_update = matches!(mode, PutMode::Update(_));
        let options = PutOptions::from(mode);
        let put = self.store.put_opts(path, PutPayload::from(text), options);
        match put.await {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(false),
            // It was deleted meanwhile.
            Err(object_store::Error::NotFound { .. }) if is_update => Ok(false),
            Err(object_store::Error::NotFound { .. }) => Err(self.without_bucket()),
            Err(error) => Err(self.failed("cannot write to the object store", &error)),
        }
    }

    async fn marker(&self) -> Result<Option<(Marker, UpdateVersion)>> {
        let marker = self.read(&self.path.clone().join(MARKER)).await?;
        if let Some((marker, _)) = &marker {
            let marker: &Marker = marker;
            marker.check(&self.place)?;
        }
        Ok(marker)
    }

    /// Has searches use a generation, unless `keeps` the one that they use. The answer is the one that they
    /// use then.
    async fn point_to(&self, generation: &Generation, keeps: bool) -> Result<Generation> {
        let path = self.path.clone().join(MARKER);
        for _ in 0..CONFLICTS {
            if keeps && let Some(current) = self.current().await? {
                return Ok(current);
            }
            let version = self.marker().await?.map(|(_, version)| version);
            let marker = Marker::new(Some(generation));
            if self.replace(&path, version, &marker).await? {
                return Ok(generation.clone());
            }
        }
        Err(StoreError::Busy {
            place: self.place.clone(),
            seconds: self.wait.as_secs(),
        })
    }

    async fn remove(&self, generation: &Generation) -> Result<()> {
        let failed = |error| self.failed("cannot delete an old generation", &error);
        // First what says that it is there, so that no process uses a half of it.
        match self.store.delete(&self.complete_path(generation)).await {
            Err(object_store::Error::NotFound { .. }) => {}
            done => done.map_err(failed)?,
        }
        let objects = self.store.list(Some(&self.generation_path(generation)));
        let paths = objects.map_ok(|object| object.location).boxed();
        let mut gone = self.store.delete_stream(paths);
        while let Some(done) = gone.next().await {
            match done {
                Err(object_store::Error::NotFound { .. }) => {}
                done => drop(done.map_err(failed)?),
            }
        }
        Ok(())
    }

    /// The names directly below the path.
    async fn names(&self) -> Result<Vec<String>> {
        let listed = self.store.list_with_delimiter(Some(&self.path)).await;
        let listed = listed.map_err(|error| self.failed("cannot list the bucket", &error))?;
        let objects = listed.objects.into_iter().map(|object| object.location);
        let paths = objects.chain(listed.common_prefixes);
        let names = paths.filter_map(|path| path.filename().map(str::to_owned));
        Ok(names.collect())
    }

    fn without_bucket(&self) -> StoreError {
        let what = format!("there is no bucket `{}`; create it first", self.name);
        unavailable(&self.place, what, "no such bucket")
    }

    fn failed(&self, what: &str, error: &object_store::Error) -> StoreError {
        use object_store::Error::{PermissionDenied, Unauthenticated};
        match error {
            // The store's own words may repeat a key.
            PermissionDenied { .. } | Unauthenticated { .. } => {
                let what = "the object store refused access; check AWS_ACCESS_KEY_ID, \
                            AWS_SECRET_ACCESS_KEY, AWS_REGION and the rights to the bucket";
                let denied = io::Error::from(io::ErrorKind::PermissionDenied);
                unavailable(&self.place, what, denied)
            }
            // `object_store` has an error for absent objects only.
            error if error.to_string().contains(NO_BUCKET) => self.without_bucket(),
            error => {
                let said: String = error.to_string().chars().take(SAID_CHARS).collect();
                let what = format!("{what}: {said}");
                unavailable(&self.place, what, said)
            }
        }
    }
}

#[async_trait]
impl Home for Bucket {
    fn place(&self) -> &str {
        &self.place
    }

    fn table(&self, generation: &Generation) -> String {
        let path = self.generation_path(generation).join(TABLE);
        format!("{}://{}/{path}", s3::SCHEME, self.name)
    }

    fn session(&self) -> Arc<Session> {
        self.session.clone()
    }

    fn commits(&self) -> Option<Arc<dyn CommitHandler>> {
        Some(Arc::new(Succession))
    }

    fn takes_turns(&self) -> bool {
        false
    }

    async fn turn(&self) -> Result<Turn> {
        let turn = self.writing.clone().lock_owned();
        match tokio::time::timeout(self.wait, turn).await {
            Ok(turn) => Ok(Box::new(turn)),
            Err(_) => Err(StoreError::Busy {
                place: self.place.clone(),
                seconds: self.wait.as_secs(),
            }),
        }
    }

    async fn has(&self, generation: &Generation) -> Result<bool> {
        match self.store.head(&self.complete_path(generation)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("cannot read the object store", &error)),
        }
    }

    async fn current(&self) -> Result<Option<Generation>> {
        let marker = self.marker().await?.map(|(marker, _)| marker);
        match marker.and_then(Marker::generation) {
            Some(named) if self.has(&named).await? => Ok(Some(named)),
            _ => Ok(None),
        }
    }

    async fn prepare(&self) -> Result<()> {
        if self.marker().await?.is_some() {
            return Ok(());
        }
        let other = self.names().await?.into_iter().find(|name| name != MARKER);
        // The marker is written before everything else, perhaps a moment ago.
        match other {
            Some(name) if self.marker().await?.is_none() => {
                let what = format!(
                    "the path holds `{}`, which is not of an index; name an empty path",
                    name.escape_debug()
                );
                Err(home::foreign(&self.place, what))
            }
            _ => Ok(()),
        }
    }

    async fn make(&self) -> Result<Generation> {
        let marker = self.path.clone().join(MARKER);
        // Another process may have written it meanwhile.
        self.replace(&marker, None, &Marker::new(None)).await?;
        Ok(home::new_generation())
    }

    async fn complete(&self, generation: &Generation) -> Result<()> {
        let path = self.complete_path(generation);
        self.replace(&path, None, &Marker::new(Some(generation)))
            .await?;
        Ok(())
    }

    async fn offer(&self, generation: Generation) -> Result<Generation> {
        let current = self.point_to(&generation, true).await?;
        if current != generation {
            self.remove(&generation).await?;
        }
        Ok(current)
    }

    async fn activate(&self, generation: &Generation) -> Result<()> {
        self.point_to(generation, false).await?;
        for name in self.names().await? {
            if home::is_generation(&name) && name != generation.0 {
                self.remove(&Generation(name)).await?;
            }
        }
        Ok(())
    }

    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Option<Watermark>> {
        let found = self.read(&self.watermark_path(generation, tenant)).await?;
        Ok(found.map(|(found, _): (WatermarkFile, _)| found.watermark()))
    }

    async fn move_watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: Option<Watermark>,
        to: Watermark,
    ) -> Result<bool> {
        let path = self.watermark_path(generation, tenant);
        let found: Option<(WatermarkFile, UpdateVersion)> = self.read(&path).await?;
        let (at, version) = found.unzip();
        if at.map(|at| at.watermark()) != from {
            return Ok(false);
        }
        let to = WatermarkFile::new(tenant, to);
        self.replace(&path, version, &to).await
    }

    fn sync(&self, _: &Generation) -> Result<()> {
        Ok(())
    }

    fn cause(&self, error: &(dyn Error + 'static)) -> Option<StoreError> {
        let error: &object_store::Error = home::found_in(error)?;
        match error {
            object_store::Error::NotFound { .. } => None,
            error => Some(self.failed("cannot use a table", error)),
        }
    }
}

#[cfg(test)]
mod tests;
