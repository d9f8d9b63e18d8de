//! Why the engine did not do what it was asked.

use mnemon_core::embed::EmbedError;
use mnemon_core::files::FilesError;
use mnemon_core::{Denied, ErrorKind, Id, Invalid, Scope, StoreError, Tenant, Time};

/// Every error of the engine, with the one it came from.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(
        "{scope} accepts at most {per_minute} writes per minute from this agent; the next one is possible at {retry}"
    )]
    TooOften {
        scope: Scope,
        per_minute: u64,
        retry: Time,
    },
    #[error("the quota of tenant `{tenant}` is used up: {most} {what}{}", wait(*.seconds))]
    Quota {
        tenant: Tenant,
        /// What is limited, in the plural: `records`, `bytes`, `requests per minute`.
        what: &'static str,
        most: u64,
        /// When more is allowed; `None` if that needs a deletion or a larger quota.
        seconds: Option<u64>,
    },
    #[error("tenant `{tenant}` has no key `{prefix}`")]
    NoKey { prefix: String, tenant: Tenant },
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("there is no saved session {0}")]
    NoSession(String),
    #[error("there is a saved session {0} already; delete it first or choose another name")]
    SessionExists(String),
    #[error("there is already a conversation {0}; choose another name")]
    ConversationExists(String),
    #[error("conversation {session} has no snapshot `{label}`")]
    NoSnapshot { session: String, label: String },
    #[error("conversation {session} already has a snapshot `{label}`; choose another label")]
    SnapshotExists { session: String, label: String },
    #[error("{place} is not a saved session: {what}")]
    NoSessionFile { place: String, what: String },
    #[error(
        "session {session} has no state of `{component}`; it has {}", names(.there)
    )]
    NoComponent {
        session: String,
        component: String,
        there: Vec<String>,
    },
    #[error("the state of `{component}` in session {session} cannot be used: {what}")]
    BadState {
        session: String,
        component: String,
        #[source]
        what: Invalid,
    },
    /// What was asked for in a file or folder is not there.
    #[error("{0}")]
    NotThere(String),
    /// No agent, member or team has this name.
    #[error("{0}")]
    NoAgent(String),
    /// An agent or a team of this name has all its files.
    #[error("`{0}` exists already; nothing was changed")]
    AgentExists(String),
    #[error("{path}: {what}")]
    BadFile { path: String, what: String },
    #[error("{path} is being written by too many other processes; nothing was changed, try again")]
    Crowded { path: String },
    #[error(
        "key `{}` was used before, and the messages added with it have been deleted or \
         undone since; nothing was added", key.escape_debug()
    )]
    KeySpent { key: String },
    #[error("there is no record {0}")]
    NoRecord(Id),
    #[error("`{prefix}` is the beginning of several ids: {}", listed(.candidates))]
    Ambiguous { prefix: Id, candidates: Vec<Id> },
    #[error("there is no commit {0} to undo; it was purged, has expired, or never existed")]
    NoCommit(u64),
    #[error(
        "commit {0} marks that a session was purged, which cannot be undone; `mnemon history` shows earlier commits"
    )]
    PurgeMark(u64),
    #[error(
        "commit {commit} cannot be undone: the previous version of record {id} is no longer stored"
    )]
    Lost { commit: u64, id: Id },
    #[error(
        "document `{}` has {count} {what}, at most {most} are allowed: split it into several",
        uri.escape_debug()
    )]
    DocumentTooLarge {
        uri: String,
        what: &'static str,
        count: usize,
        most: usize,
    },
}

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Denied(_) => ErrorKind::Denied,
            Self::Store(error) => error.kind(),
            Self::Embed(error) => error.kind(),
            Self::TooOften { .. } | Self::Quota { .. } => ErrorKind::TooOften,
            Self::DocumentTooLarge { .. } => ErrorKind::TooLarge,
            Self::Files(error) => error.kind(),
            Self::NoSession(_)
            | Self::NoComponent { .. }
            | Self::NoSnapshot { .. }
            | Self::NoKey { .. } => ErrorKind::NotFound,
            Self::SessionExists(_)
            | Self::AgentExists(_)
            | Self::ConversationExists(_)
            | Self::SnapshotExists { .. }
            | Self::KeySpent { .. } => ErrorKind::Conflict,
            Self::NoSessionFile { .. } => ErrorKind::Foreign,
            Self::BadState { .. } => ErrorKind::Invalid,
            Self::BadFile { .. } => ErrorKind::Corrupt,
            Self::Crowded { .. } => ErrorKind::Busy,
            Self::PurgeMark(_) | Self::Ambiguous { .. } => ErrorKind::Invalid,
            Self::NotThere(_) | Self::NoAgent(_) => ErrorKind::NotFound,
            Self::NoRecord(_) | Self::NoCommit(_) | Self::Lost { .. } => ErrorKind::NotFound,
        }
    }
}

impl Error {
    /// In how many seconds the call may be repeated, if that is known.
    pub fn retry_seconds(&self, now: Time) -> Option<u64> {
        match self {
            Self::Quota { seconds, .. } => *seconds,
            Self::TooOften { retry, .. } => {
                let ms = u64::try_from(retry.millis() - now.millis()).unwrap_or(0);
                Some(ms.div_ceil(1000).max(1))
            }
            _ => None,
        }
    }
}

fn wait(seconds: Option<u64>) -> String {
    match seconds {
        Some(seconds) => format!("; try again in {seconds} s"),
        None => String::new(),
    }
}

/// Ids that an error names before it only counts the rest.
const NAMED: usize = 5;

fn listed(ids: &[Id]) -> String {
    let named: Vec<&str> = ids.iter().take(NAMED).map(Id::as_str).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        _ => format!("{} and others", named.join(", ")),
    }
}

fn names(there: &[String]) -> String {
    match there {
        [] => "none at all".to_owned(),
        there => there.join(", "),
    }
}
