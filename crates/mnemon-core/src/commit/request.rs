//! A batch that passed every check that needs no store.

use super::replay;
use crate::model::{Grant, Record, Right};
use crate::ports::{Batch, CodedVector, Op, StoreError, StoredChange};

/// A batch under its grant, within the limits. Only such a batch can be planned.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) grant: Grant,
    pub(super) batch: Batch,
    bytes: usize,
}

impl Request {
    /// Refuses what can be refused without looking at the store.
    pub fn new(grant: &Grant, batch: Batch) -> Result<Self, StoreError> {
        let bytes = check(grant, &batch)?;
        Ok(Self {
            grant: grant.clone(),
            batch,
            bytes,
        })
    }

    /// Who asks.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// What is asked for, in order.
    pub fn ops(&self) -> &[Op] {
        &self.batch.ops
    }

    /// Content, body and metadata of all records together, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a retry is recognised by an idempotency key.
    pub fn has_key(&self) -> bool {
        self.batch.key.is_some()
    }

    /// Whether something is erased permanently.
    pub fn purges(&self) -> bool {
        let mut ops = self.batch.ops.iter();
        ops.any(|op| matches!(op, Op::Purge { .. }))
            || self.replayed().any(|change| change.version == 0)
            || (self.batch.replay.iter()).any(|replay| !replay.erased.is_empty())
    }

    /// Whether changes of another store are copied.
    pub fn is_replay(&self) -> bool {
        self.batch.replay.is_some()
    }

    /// How many operations or copied changes there are.
    pub fn len(&self) -> usize {
        self.batch.ops.len() + self.replayed().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The versions that are written if the batch succeeds, in order, those that are copied with
    /// their vectors.
    pub fn written(&self) -> impl Iterator<Item = (&Record, Option<&CodedVector>)> {
        let puts = self.batch.ops.iter().filter_map(|op| match op {
            Op::Put { record, .. } => Some((record.as_ref(), None)),
            Op::Delete { .. } | Op::Purge { .. } => None,
        });
        let copied = self.replayed().filter_map(|change| {
            let record = change.record.as_deref()?;
            Some((record, change.vector.as_ref()))
        });
        puts.chain(copied)
    }

    pub(super) fn replayed(&self) -> impl Iterator<Item = &StoredChange> {
        let replay = self.batch.replay.iter();
        replay.flat_map(|replay| &replay.changes)
    }
}

fn check(grant: &Grant, batch: &Batch) -> Result<usize, StoreError> {
    grant.require(Right::Write)?;
    let limits = grant.limits();
    at_most("operations in a batch", batch.ops.len(), limits.batch_ops)?;
    if let Some(key) = &batch.key {
        key.check()?;
    }
    let mut bytes = 0;
    for op in &batch.ops {
        match op {
            Op::Purge { .. } => grant.require(Right::Purge)?,
            Op::Delete { .. } => {}
            Op::Put { record, .. } => {
                check_tenant(grant, record)?;
                record.check()?;
                bytes += record.weight();
            }
        }
    }
    at_most("bytes in a batch", bytes, limits.batch_bytes)?;
    if let Some(replay) = &batch.replay {
        bytes += replay::check(grant, replay)?;
    }
    Ok(bytes)
}

fn at_most(what: &'static str, count: usize, most: usize) -> Result<(), StoreError> {
    match count > most {
        true => Err(StoreError::TooLarge { what, count, most }),
        false => Ok(()),
    }
}

pub(super) fn check_tenant(grant: &Grant, record: &Record) -> Result<(), StoreError> {
    if record.tenant == *grant.tenant() {
        return Ok(());
    }
    Err(crate::model::Denied::Tenant(record.tenant.clone()).into())
}
