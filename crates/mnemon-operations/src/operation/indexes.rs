//! Operations on an index in a search server.

use mnemon_core::Id;
use serde::{Deserialize, Serialize};

use super::{Access, Arguments, IndexCheck, IndexRebuild, Operation};
use crate::config::without_passwords;
use crate::{Error, wiring};

/// How an index differs from its store.
#[derive(Debug, Serialize, Deserialize)]
pub struct IndexChecked {
    /// The URL of the index, or `builtin`.
    pub index: String,
    /// Records of the tenant.
    pub records: u64,
    /// Records that the index does not have.
    pub missing: u64,
    /// Records of which the index has another version.
    pub outdated: u64,
    /// Entries of the index whose records are gone. No search shows them.
    pub leftover: u64,
    /// Vectors that were compared; absent if the server does not return vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<u64>,
    /// Records whose vector in the index is missing or another one.
    pub misplaced: u64,
    /// Whether a search can find every record.
    pub complete: bool,
    /// Some of the records that are missing, outdated or misplaced.
    pub examples: Vec<Id>,
}

/// An index that was rebuilt.
#[derive(Debug, Serialize, Deserialize)]
pub struct IndexRebuilt {
    /// The URL of the index, or `builtin`.
    pub index: String,
    pub tenants: usize,
    /// Records of all tenants.
    pub records: u64,
}

impl Operation for IndexCheck {
    const COMMAND: &'static str = "index check";
    type Answer = IndexChecked;

    /// The built-in index is made from its store, so there is nothing to compare.
    async fn run(access: &Access<'_>, _: Arguments) -> Result<IndexChecked, Error> {
        let index = without_passwords(&access.config.index.url.value);
        let Some(server) = wiring::external_index(access.config)? else {
            let records = crate::api::stats::run(access.memory, access.ctx).await?;
            return Ok(IndexChecked {
                index,
                records: records.records,
                missing: 0,
                outdated: 0,
                leftover: 0,
                vectors: None,
                misplaced: 0,
                complete: true,
                examples: Vec::new(),
            });
        };
        let grant = wiring::read_grant(access.ctx)?;
        let found = server.compare(&grant).await?;
        Ok(IndexChecked {
            index,
            records: found.records,
            missing: found.missing,
            outdated: found.outdated,
            leftover: found.leftover,
            vectors: found.vectors,
            misplaced: found.misplaced,
            complete: found.is_complete(),
            examples: found.examples,
        })
    }
}

impl Operation for IndexRebuild {
    const COMMAND: &'static str = "index rebuild";
    type Answer = IndexRebuilt;

    async fn run(access: &Access<'_>, _: Arguments) -> Result<IndexRebuilt, Error> {
        let index = without_passwords(&access.config.index.url.value);
        let (mut tenants, mut records) = (0, 0);
        if let Some(server) = wiring::external_index(access.config)? {
            let watch = |done, total| (access.watch)(done, Some(total));
            let rebuilt = server.rebuild(access.ctx, &watch).await?;
            (tenants, records) = (rebuilt.tenants, rebuilt.records);
        }
        Ok(IndexRebuilt {
            index,
            tenants,
            records,
        })
    }
}
