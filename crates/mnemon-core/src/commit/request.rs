//! A batch that passed every check that needs no store.

use crate::model::{Grant, Record, Right};
use crate::ports::{Batch, Op, StoreError};

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

    /// Whether something is erased permanently.
    pub fn purges(&self) -> bool {
        let mut ops = self.batch.ops.iter();
        ops.any(|op| matches!(op, Op::Purge { .. }))
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
    Ok(bytes)
}

fn at_most(what: &'static str, count: usize, most: usize) -> Result<(), StoreError> {
    match count > most {
        true => Err(StoreError::TooLarge { what, count, most }),
        false => Ok(()),
    }
}

fn check_tenant(grant: &Grant, record: &Record) -> Result<(), StoreError> {
    if record.tenant == *grant.tenant() {
        return Ok(());
    }
    Err(crate::model::Denied::Tenant(record.tenant.clone()).into())
}
