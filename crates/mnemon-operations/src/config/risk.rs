//! Which settings a project's file may have, and why it may not have the others.

use serde::{Serialize, Serializer};

/// Whether a file that was found in a project's folder may set a key. Anybody can write such a
/// file and have it cloned, so every key must say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProjectRule {
    /// It changes how much is shown, and in which form.
    Harmless,
    /// Only after the user has trusted the file.
    NeedsTrust(Risk),
    /// Not even then: it says how far trust goes, or runs code.
    Never(Risk),
}

/// What a stranger could do with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    Sends,
    Opens,
    Weakens,
    Deletes,
    Impersonates,
    Runs,
}

impl Risk {
    /// In words that go on after "it".
    pub fn reason(self) -> &'static str {
        match self {
            Self::Sends => "can send memory, keys or files to another machine",
            Self::Opens => "chooses which files are read and written",
            Self::Weakens => "can weaken the protection of the memory",
            Self::Deletes => "can delete or shorten records",
            Self::Impersonates => "chooses whose memory is used and who is named in the history",
            Self::Runs => "chooses a library whose code is run",
        }
    }
}

impl Serialize for Risk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reason())
    }
}

impl ProjectRule {
    /// Why the key is ignored in a project's file, if it is.
    pub(super) fn forbids(self, is_trusted: bool) -> Option<Risk> {
        match self {
            Self::Harmless => None,
            Self::NeedsTrust(_) if is_trusted => None,
            Self::NeedsTrust(risk) | Self::Never(risk) => Some(risk),
        }
    }
}

pub(super) const HARMLESS: ProjectRule = ProjectRule::Harmless;
pub(super) const SENDS: ProjectRule = ProjectRule::NeedsTrust(Risk::Sends);
pub(super) const OPENS: ProjectRule = ProjectRule::NeedsTrust(Risk::Opens);
pub(super) const WEAKENS: ProjectRule = ProjectRule::NeedsTrust(Risk::Weakens);
pub(super) const DELETES: ProjectRule = ProjectRule::NeedsTrust(Risk::Deletes);
pub(super) const IMPERSONATES: ProjectRule = ProjectRule::NeedsTrust(Risk::Impersonates);
