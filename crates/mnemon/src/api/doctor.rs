//! Is the store whole, ours, writable, and is there room?
//!
//! The one operation that does not go through a memory: a store that is ill cannot be opened.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Config;
use crate::wiring::{self, Examination};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Do what the findings propose, then look again.
    pub repair: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    #[serde(flatten)]
    pub examination: Examination,
    /// Whether nothing is wrong (any more).
    pub clean: bool,
    /// What a repair did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repaired: Vec<String>,
}

pub fn run(config: &Config, request: Request) -> Result<Response, Error> {
    let repaired = if request.repair {
        wiring::repair(config)?
    } else {
        Vec::new()
    };
    let examination = wiring::examine(config)?;
    Ok(Response {
        clean: examination.is_clean(),
        examination,
        repaired,
    })
}
