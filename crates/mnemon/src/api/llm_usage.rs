//! What the language model was used for: by day, tenant and task.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::Config;
use crate::wiring::{self, LlmAccount};

/// Days that are shown when nobody says.
pub const DAYS: usize = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The last days on which it was used.
    pub days: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self { days: DAYS }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// The newest day first.
    pub accounts: Vec<LlmAccount>,
}

pub fn run(config: &Config, request: Request) -> Result<Response, Error> {
    let mut accounts = wiring::llm_accounts(config)?;
    let mut days: Vec<&str> = accounts.iter().map(|one| one.day.as_str()).collect();
    days.dedup();
    let last = days.get(request.days).map(|day| (*day).to_owned());
    if let Some(last) = last {
        accounts.retain(|one| one.day > last);
    }
    Ok(Response { accounts })
}
