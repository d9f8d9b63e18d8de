//! Checks a backup, and puts it in the place of the store.

use std::path::PathBuf;

use mnemon_core::StoreError;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Config;
use crate::wiring::{self, BackupSummary};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The backup.
    pub file: PathBuf,
    /// Only check it.
    #[serde(default)]
    pub check: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    #[serde(flatten)]
    pub backup: BackupSummary,
    pub restored: bool,
    /// Where the store lies that was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

pub fn run(config: &Config, request: &Request) -> Result<Response, Error> {
    if request.check {
        return Ok(Response {
            backup: wiring::check_backup(config, &request.file).map_err(not_usable)?,
            restored: false,
            kept: None,
        });
    }
    let restored = wiring::restore(config, &request.file).map_err(not_usable)?;
    Ok(Response {
        backup: restored.summary,
        restored: true,
        kept: restored.kept,
    })
}

/// Of damage to the backup nobody should take the store itself for damaged.
fn not_usable(error: StoreError) -> Error {
    match error {
        StoreError::Corrupt { .. } => Error::DamagedBackup(error),
        other => other.into(),
    }
}
