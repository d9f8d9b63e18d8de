//! A copy of the whole store, every tenant's, while it is in use.
//!
//! Like [`super::doctor`] it does not go through a memory: a backup is made of files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Config;
use crate::wiring::{self, BackupSummary};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The file to write; of a `jsonl:` store a folder.
    pub file: PathBuf,
    /// Write over it if it exists.
    #[serde(default)]
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    #[serde(flatten)]
    pub backup: BackupSummary,
}

pub fn run(config: &Config, request: &Request) -> Result<Response, Error> {
    let backup = wiring::backup(config, &request.file, request.force)?;
    Ok(Response { backup })
}
