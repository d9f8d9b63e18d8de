//! The port for copying a store with everything that it keeps: what `mnemon migrate` reads and
//! compares. The copy is written with [`Store::apply`](crate::ports::Store::apply), as a
//! [`Replay`].

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::model::{Clock, Grant, Id, Record, Tenant, Time};
use crate::ports::embed::ModelId;
use crate::ports::{Cause, IdempotencyKey, Receipt, Store, StoreError};

/// A store that can be copied, and that a copy can be written to.
///
/// Its changes, played in the order of their numbers, rebuild it. Changes that the store has erased
/// or dropped leave gaps between the numbers, and no number is ever given out twice.
#[async_trait]
pub trait Replica: Store {
    /// Every tenant that ever wrote, the reserved one included, in order. Needs a grant to purge,
    /// because no grant is valid for more than one tenant.
    async fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, StoreError>;

    /// The tenant's changes after this number, expired ones included, in order. The page is read at
    /// one moment.
    async fn stored_changes(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<StoredPage, StoreError>;

    /// Current records that got a vector after they were written, by the number of that event: those
    /// after this number. A search server that follows the store needs them besides the changes. The
    /// vectors of other records are in [`StoredChange::vector`].
    async fn embedded_after(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<EmbeddedPage, StoreError>;

    /// The receipts whose keys come after this one, by key.
    async fn stored_receipts(
        &self,
        grant: &Grant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<StoredReceipt>, StoreError>;

    /// Gives current records, named by their `seq`, these vectors. A store that keeps no vectors
    /// does nothing.
    async fn restore_vectors(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, CodedVector)>,
    ) -> Result<(), StoreError>;
}

/// A part of a tenant's changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredPage {
    pub changes: Vec<StoredChange>,
    /// Whether there are changes after these.
    pub more: bool,
    /// The number of the tenant's newest change, and its clock, when the page was read.
    pub last_seq: u64,
    pub clock: Clock,
}

/// The bytes of content after which a page ends, so that pages of long records stay small.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

impl StoredPage {
    /// Adds changes, of which the iterator has all that are left, until the page is full.
    pub fn fill<E>(
        &mut self,
        changes: impl IntoIterator<Item = Result<StoredChange, E>>,
        limit: usize,
    ) -> Result<(), E> {
        let mut bytes = 0;
        for change in changes {
            if self.changes.len() >= limit || bytes >= PAGE_BYTES {
                self.more = true;
                break;
            }
            let change = change?;
            bytes += change.record.as_ref().map_or(0, |record| record.weight());
            self.changes.push(change);
        }
        Ok(())
    }

    /// The number up to which the page says everything.
    pub fn reached(&self) -> u64 {
        match self.changes.last() {
            Some(last) if self.more => last.seq,
            _ => self.last_seq,
        }
    }
}

/// One change with everything that a store keeps of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredChange {
    pub seq: u64,
    pub commit: u64,
    pub at: Time,
    pub actor: String,
    pub cause: Cause,
    pub id: Id,
    /// 0 for the tombstone of a purge.
    pub version: u64,
    /// When the version expires; of a deletion, when the version that it deleted does.
    pub expires: Option<Time>,
    /// `None` for a tombstone.
    pub record: Option<Box<Record>>,
    /// Whether this is the current version of its record.
    #[serde(skip)]
    pub is_current: bool,
    /// The vector of a current version.
    #[serde(skip)]
    pub vector: Option<CodedVector>,
}

impl StoredChange {
    /// Whether both are the same change, wherever it stands: a version that was replaced meanwhile
    /// is the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let facts = |it: &Self| (it.seq, it.commit, it.at, it.version, it.expires);
        facts(self) == facts(other)
            && self.id == other.id
            && self.actor == other.actor
            && self.cause == other.cause
            && self.record == other.record
    }
}

/// Records that got a vector after they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmbeddedPage {
    pub records: Vec<(Record, CodedVector)>,
    /// The number up to which the page says everything.
    pub reached: u64,
    /// Whether there are records after these.
    pub more: bool,
}

/// A vector as stores keep it: codes times a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct CodedVector {
    pub model: ModelId,
    pub scale: f32,
    pub codes: Vec<u8>,
}

/// A receipt under its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredReceipt {
    pub key: IdempotencyKey,
    pub at: Time,
    pub receipt: Receipt,
}

/// Changes of another store that are written as they are: with their numbers, times, actors and
/// versions, and without any rule that a new write is subject to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replay {
    /// The number of the newest change before it. If it is another one, another process has written,
    /// and nothing happens.
    pub after: u64,
    /// In the order of their numbers, all of which are higher than `after`.
    pub changes: Vec<StoredChange>,
    /// Records that have expired, which are erased with their history.
    pub erased: Vec<Id>,
    /// Past changes that are dropped.
    pub dropped: Vec<u64>,
    pub receipts: Vec<StoredReceipt>,
    /// Receipts that are dropped, by key; before others are kept.
    pub dropped_keys: Vec<String>,
    /// The number of the newest change, and the clock, afterwards.
    pub last_seq: u64,
    pub clock: Clock,
}
