//! Where an index is: in a folder or in a bucket. It says which generation searches use, how far the
//! documents of a tenant follow the store, and who may write.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use lance::session::Session;
use lance_io::object_store::ObjectStoreRegistry;
use lance_table::io::commit::CommitHandler;
use mnemon_adapters::external_index::{Generation, Watermark};
use mnemon_core::{StoreError, Tenant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The format of an index and of its tables.
const FORMAT: i64 = 1;
/// Says that an index is there, and which generation searches use.
pub(crate) const MARKER: &str = "mnemon-index.json";
pub(crate) const TABLE: &str = "documents.lance";
pub(crate) const WATERMARKS: &str = "watermarks";

/// Bytes of the caches of indexes and of metadata at the most.
const INDEX_CACHE_BYTES: usize = 16 << 20;
const METADATA_CACHE_BYTES: usize = 64 << 20;

/// The right to write. Nobody else of this home writes while it is held.
pub(crate) type Turn = Box<dyn Send + Sync>;

/// Where an index is.
#[async_trait]
pub(crate) trait Home: Send + Sync {
    /// How messages name it.
    fn place(&self) -> &str;

    /// The path or the URL of a table.
    fn table(&self, generation: &Generation) -> String;

    /// The caches of a process, which know how tables are read.
    fn session(&self) -> Arc<Session>;

    /// How versions of a table are committed, if not in the usual way.
    fn commits(&self) -> Option<Arc<dyn CommitHandler>>;

    /// Whether processes take turns, so that files without a version are of a process that died.
    fn takes_turns(&self) -> bool;

    /// Waits for the right to write.
    async fn turn(&self) -> Result<Turn, StoreError>;

    /// Whether the generation is complete. A rebuild removes those that it replaces.
    async fn has(&self, generation: &Generation) -> Result<bool, StoreError>;

    /// The generation that searches use, if there is one.
    async fn current(&self) -> Result<Option<Generation>, StoreError>;

    /// Makes sure that an index may be here. A place with files of another program is refused.
    async fn prepare(&self) -> Result<(), StoreError>;

    /// A name for a new generation, which has no table yet.
    async fn make(&self) -> Result<Generation, StoreError>;

    /// Says that a generation has its table.
    async fn complete(&self, generation: &Generation) -> Result<(), StoreError>;

    /// Has searches use a generation if they have none. The answer is the generation that they use.
    async fn offer(&self, generation: Generation) -> Result<Generation, StoreError>;

    /// Has searches use a generation, and deletes the others.
    async fn activate(&self, generation: &Generation) -> Result<(), StoreError>;

    /// How far a tenant's documents follow the store; `None` if nothing was written yet.
    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Option<Watermark>, StoreError>;

    /// Moves a watermark, unless it has another value than this one.
    async fn move_watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: Option<Watermark>,
        to: Watermark,
    ) -> Result<bool, StoreError>;

    /// Makes a table durable.
    fn sync(&self, generation: &Generation) -> Result<(), StoreError>;

    /// What an error of Lance means here, if its cause is known.
    fn cause(&self, error: &(dyn Error + 'static)) -> Option<StoreError>;
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) format: i64,
    pub(crate) generation: Option<String>,
}

impl Marker {
    pub(crate) fn new(generation: Option<&Generation>) -> Self {
        Self {
            format: FORMAT,
            generation: generation.map(|it| it.0.clone()),
        }
    }

    /// The generation that it names.
    pub(crate) fn generation(self) -> Option<Generation> {
        let named = self.generation.filter(|name| is_generation(name));
        named.map(Generation)
    }

    pub(crate) fn check(&self, place: &str) -> Result<(), StoreError> {
        match self.format > FORMAT {
            true => Err(StoreError::TooNew {
                place: place.to_owned(),
                found: self.format,
                known: FORMAT,
            }),
            false => Ok(()),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WatermarkFile {
    tenant: String,
    seq: u64,
    embedded: u64,
}

impl WatermarkFile {
    pub(crate) fn new(tenant: &Tenant, at: Watermark) -> Self {
        Self {
            tenant: tenant.to_string(),
            seq: at.seq,
            embedded: at.embedded,
        }
    }

    pub(crate) fn watermark(&self) -> Watermark {
        Watermark {
            seq: self.seq,
            embedded: self.embedded,
        }
    }

    /// The name of the file of a tenant.
    pub(crate) fn name(tenant: &Tenant) -> String {
        let digest = blake3::hash(tenant.as_str().as_bytes()).to_hex();
        format!("{digest}.json")
    }
}

/// The content of a small file.
pub(crate) fn parsed<T: DeserializeOwned>(
    place: &str,
    name: &str,
    text: &[u8],
) -> Result<T, StoreError> {
    serde_json::from_slice(text).map_err(|error| StoreError::Corrupt {
        place: place.to_owned(),
        what: format!("{name}: {error}; delete the index and run `mnemon index rebuild`"),
    })
}

pub(crate) fn new_generation() -> Generation {
    Generation(format!("g{:016x}", fastrand::u64(..)))
}

pub(crate) fn is_generation(name: &str) -> bool {
    let digits = name.strip_prefix('g').unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn session(registry: ObjectStoreRegistry) -> Arc<Session> {
    Arc::new(Session::new(
        INDEX_CACHE_BYTES,
        METADATA_CACHE_BYTES,
        Arc::new(registry),
    ))
}

pub(crate) fn foreign(place: &str, what: String) -> StoreError {
    StoreError::Foreign {
        place: place.to_owned(),
        what,
    }
}

/// The first error of this type in a chain of causes.
pub(crate) fn found_in<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
