//! What a doctor finds.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A look at a store from outside, without opening it for use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examination {
    pub place: String,
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Whether every check passed.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.ok)
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at: `integrity`, `format`, `permissions`, `space`, …
    pub check: Cow<'static, str>,
    /// Nothing is lost or about to be lost.
    pub ok: bool,
    /// Nothing is wrong with the store, but somebody should look at this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warning: bool,
    /// What was seen.
    pub detail: String,
    /// What a repair would do about it, if one can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn good(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            ok: true,
            warning: false,
            detail: detail.into(),
            repair: None,
        }
    }

    /// Nothing is wrong, but somebody should look at it.
    pub fn warning(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            warning: true,
            ..Self::good(check, detail)
        }
    }

    /// Something harmless that a repair would do this about.
    pub fn harmless(
        check: &'static str,
        detail: impl Into<String>,
        repair: impl Into<String>,
    ) -> Self {
        Self {
            repair: Some(repair.into()),
            ..Self::warning(check, detail)
        }
    }

    /// In a word: `ok`, `warning` or `WRONG`.
    pub fn state(&self) -> &'static str {
        match (self.ok, self.warning) {
            (false, _) => "WRONG",
            (true, true) => "warning",
            (true, false) => "ok",
        }
    }

    /// Something is wrong that a repair cannot help.
    pub fn bad(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            ok: false,
            ..Self::good(check, detail)
        }
    }

    /// Something is wrong, and this is what a repair would do.
    pub fn mendable(
        check: &'static str,
        detail: impl Into<String>,
        repair: impl Into<String>,
    ) -> Self {
        Self {
            ok: false,
            repair: Some(repair.into()),
            ..Self::good(check, detail)
        }
    }
}

/// A backup that was made or checked: everything in it agrees with its checksums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackupSummary {
    pub place: String,
    /// The scheme of the store that it is a backup of.
    pub backend: &'static str,
    /// The version of its format.
    pub format: i64,
    pub tenants: u64,
    pub records: u64,
    /// Old versions and deletions.
    pub history: u64,
}
