//! Checks a backup, and puts it in the place of the store.

use std::path::{Path, PathBuf};

use mnemon_core::StoreError;
use serde::Serialize;

use crate::Error;
use crate::config::Config;
use crate::wiring::{self, BackupSummary};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    #[serde(flatten)]
    pub backup: BackupSummary,
    pub restored: bool,
    /// Where the store lies that was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

/// `check` only checks the backup.
pub fn run(config: &Config, backup: &Path, check: bool) -> Result<Response, Error> {
    backup.metadata().map_err(Error::file("read", backup))?;
    if check {
        return Ok(Response {
            backup: wiring::check_backup(config, backup).map_err(not_usable)?,
            restored: false,
            kept: None,
        });
    }
    let restored = wiring::restore(config, backup).map_err(not_usable)?;
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
