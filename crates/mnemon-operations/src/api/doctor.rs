//! Is the store whole, ours, writable, and is there room?
//!
//! The one operation that does not go through a memory: a store that is ill cannot be opened.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::config::{Config, LlmProvider};
use crate::wiring::{self, Examination, Finding};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    #[serde(flatten)]
    pub examination: Examination,
    /// Whether nothing is wrong (any more).
    pub clean: bool,
    /// What a repair did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired: Vec<String>,
}

/// `repair` does what the findings propose, then looks again.
pub fn run(config: &Config, repair: bool) -> Result<Response, Error> {
    let repaired = if repair {
        wiring::repair(config)?
    } else {
        Vec::new()
    };
    let mut examination = wiring::examine(config)?;
    examination.findings.extend(language_model(config));
    Ok(Response {
        clean: examination.is_clean(),
        examination,
        repaired,
    })
}

/// Whether the language model could be used, as far as it can be told without asking it.
fn language_model(config: &Config) -> Option<Finding> {
    let settings = &config.llm;
    if settings.provider.value == LlmProvider::None {
        return None;
    }
    let problem = settings
        .problem()
        .or_else(|| Some(wiring::llm_accounts(config).err()?.to_string()));
    Some(match problem {
        Some(problem) => Finding::bad("llm", problem),
        None => {
            let model = settings.model.value.as_deref().unwrap_or_default();
            let url = &settings.url.value;
            Finding::good("llm", format!("{model} at {url}; it was not asked"))
        }
    })
}
