//! Whatever can go wrong at a door.

use std::error::Error as Cause;
use std::io;
use std::path::{Path, PathBuf};

use mnemon_core::embed::EmbedError;
use mnemon_core::files::FilesError;
use mnemon_core::llm::LlmError;
use mnemon_core::longterm::LongTermError;
use mnemon_core::{ErrorKind, Id, Invalid, StoreError, Time};

use crate::code;
use crate::config::ConfigError;
use crate::wiring::AuditError;

/// Every error of this crate, with the one it came from.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Engine(#[from] mnemon_engine::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Llm(#[from] LlmError),
    #[error("{what} is not included in this build: rebuild with --features {feature}")]
    NotBuilt {
        what: &'static str,
        feature: &'static str,
    },
    #[error("there is no record {}", list(.0))]
    Missing(Vec<Id>),
    #[error("there is no store at {}", .0.display())]
    NoStore(PathBuf),
    #[error("{}", no_conversation(.session, .user, .nearest))]
    NoConversation {
        session: String,
        user: String,
        /// Names of existing conversations, the most alike first.
        nearest: Vec<String>,
    },
    #[error(
        "There is no replaced message with this uuid in this conversation: it was undone or deleted, \
         or belongs to another conversation"
    )]
    NotReplaced,
    #[error("{0}")]
    LongTerm(String),
    /// A service that was asked whether it can be used.
    #[error(transparent)]
    Service(#[from] LongTermError),
    #[error("{}", nothing_to_undo(.0))]
    NothingToUndo(Option<Id>),
    /// One of many lines; `done` says what became of those before it.
    #[error("{place}, line {line}{done}")]
    Line {
        place: String,
        line: u64,
        done: String,
        #[source]
        source: Box<Error>,
    },
    #[error("{what} has more than {most} bytes, which is the limit")]
    TooLarge { what: String, most: usize },
    #[error("{} cannot be {verb}", path.display())]
    File {
        path: PathBuf,
        verb: &'static str,
        #[source]
        source: io::Error,
    },
    /// The rest was taken in, and was told before.
    #[error("{path} was not ingested: {why}{}", more_paths(*.more))]
    NotIngested {
        path: String,
        why: String,
        kind: ErrorKind,
        /// Other paths that were named and not taken in.
        more: usize,
    },
    /// What was erased, and what was not, was told before.
    #[error("partly purged: {}", not_erased(*.left, *.more))]
    NotErased {
        /// Files and records that still hold the text.
        left: usize,
        /// Whether records were written as fast as they were erased.
        more: bool,
    },
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    #[error("the input cannot be read")]
    Input(#[source] io::Error),
    #[error("{found} of {checks} checks of {place} failed")]
    Unwell {
        place: String,
        found: usize,
        checks: usize,
        /// Whether a repair, which was not asked for, proposes something.
        mendable: bool,
    },
    #[error("{count} of the {records} records cannot be found through the index {index}")]
    IncompleteIndex {
        index: String,
        count: u64,
        records: u64,
    },
    /// The warnings were printed before.
    #[error("the check found {}", count(*.0, "warning"))]
    Lint(usize),
    #[error("the repair failed; nothing was changed")]
    NotRepaired(#[source] StoreError),
    #[error("the backup cannot be used; nothing was changed")]
    DamagedBackup(#[source] StoreError),
    #[error("nothing was changed: {0}")]
    Unconfirmed(String),
    /// An error that a server had.
    #[error("{message}")]
    Remote {
        kind: ErrorKind,
        message: String,
        /// Errors that it came from.
        causes: Vec<String>,
        hint: Option<String>,
    },
    #[error("the server {url} does not answer")]
    Server {
        url: String,
        #[source]
        source: Box<dyn Cause + Send + Sync>,
    },
    /// The caller of a server may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The receiver of a webhook did not take a delivery.
    #[error("the delivery did not arrive: {0}")]
    NotDelivered(String),
    #[error("`mnemon {0}` works on this machine only")]
    LocalCommand(String),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    /// Why a file cannot be read, written or made.
    pub fn file(verb: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::File {
            path: path.to_owned(),
            verb,
            source,
        }
    }

    pub fn no_json(error: serde_json::Error) -> Self {
        Self::Internal(format!("an answer has no JSON form: {error}"))
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::Unconfirmed(_) => ErrorKind::Invalid,
            Self::Config(
                ConfigError::Unreadable { source, .. } | ConfigError::Unwritable { source, .. },
            ) => match kind_of_io(source) {
                // It is there, and not a configuration file.
                ErrorKind::Unavailable => ErrorKind::Invalid,
                kind => kind,
            },
            Self::Config(_) => ErrorKind::Invalid,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Engine(error) => error.kind(),
            Self::Store(error) | Self::NotRepaired(error) | Self::DamagedBackup(error) => {
                error.kind()
            }
            Self::Embed(error) => match error.source().and_then(<dyn Cause>::downcast_ref) {
                Some(cause) => kind_of_io(cause),
                None => error.kind(),
            },
            Self::Llm(error) => error.kind(),
            Self::NotBuilt { .. } => ErrorKind::Unsupported,
            Self::Missing(_)
            | Self::NoStore(_)
            | Self::NothingToUndo(_)
            | Self::NoConversation { .. }
            | Self::NotReplaced => ErrorKind::NotFound,
            Self::LongTerm(_) | Self::NotDelivered(_) => ErrorKind::Unavailable,
            Self::Service(error) => error.kind(),
            Self::Line { source, .. } => source.kind(),
            Self::File { source, .. } | Self::Output(source) | Self::Input(source) => {
                kind_of_io(source)
            }
            Self::NotIngested { kind, .. } => *kind,
            Self::NotErased { left: 0, .. } => ErrorKind::Busy,
            Self::NotErased { .. } => ErrorKind::Denied,
            Self::Unwell { .. } | Self::Lint(_) | Self::IncompleteIndex { .. } => {
                ErrorKind::Corrupt
            }
            Self::Remote { kind, .. } => *kind,
            Self::Server { .. } => ErrorKind::Unavailable,
            Self::Forbidden(_) => ErrorKind::Denied,
            Self::LocalCommand(_) => ErrorKind::Unsupported,
            Self::Audit(error) => error.kind(),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// What to do about it, in a sentence, where the message does not say so already.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Remote { hint, .. } => hint.clone(),
            other => other.own_hint().map(str::to_owned),
        }
    }

    fn own_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Engine(error) => return engine_hint(error),
            Self::Line { source, .. } => return source.own_hint(),
            Self::Server { .. } => "check the URL, and that `mnemon serve` runs there",
            Self::Forbidden(_) => return None,
            Self::NotDelivered(_) => "it stays in the list of failed deliveries; try again later",
            Self::LocalCommand(_) => {
                "leave out --server and MNEMON_SERVER, and run it on the machine that is meant"
            }
            Self::NoConversation { .. } => {
                "`mnemon chat list` shows the conversations of all users, `mnemon chat append` begins one"
            }
            Self::NoStore(_) => "check the path; the first `mnemon add` creates a store",
            Self::Audit(AuditError::Broken { .. }) => {
                "entries before that line are intact; compare the others with a backup of the log"
            }
            Self::Audit(AuditError::Missing(_)) => {
                "a server and `mnemon key create` write the log; `mnemon config` shows its path as server.audit"
            }
            Self::NotReplaced => {
                "`mnemon chat show SESSION` lists the uuids of the messages that were replaced"
            }
            Self::LongTerm(_) => "the conversation itself is unharmed; try again",
            Self::Service(error) => return service_hint(error),
            Self::NotErased { left: 1.., .. } => {
                "`mnemon chat delete SESSION --files ROOT --purge` erases a project's log; erase other files yourself"
            }
            Self::Unwell { mendable: true, .. } => {
                "`mnemon doctor --repair` makes the proposed repairs; it asks first"
            }
            Self::Unwell { .. } => "the remaining findings cannot be repaired automatically",
            Self::IncompleteIndex { .. } => "`mnemon index rebuild` builds the index again",
            Self::Lint(_) => "each warning names the file, the line and the rule",
            Self::DamagedBackup(_) => {
                "use another backup; `mnemon doctor --repair --store sqlite:FILE` recovers the readable \
                 records of this one"
            }
            Self::NotRepaired(StoreError::Corrupt { .. }) => {
                "restore a backup with `mnemon restore FILE`, or move the file away"
            }
            Self::File { source, .. } | Self::Config(ConfigError::Unreadable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                "check the path; relative paths start at the current folder"
            }
            Self::TooLarge { .. }
            | Self::NotIngested {
                kind: ErrorKind::TooLarge,
                ..
            } => "split it into several files",
            Self::NotIngested { .. } => return None,
            // Messages of these kinds name the remedy.
            Self::NotBuilt { .. } | Self::Embed(_) => return None,
            Self::File { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "another process listens there; choose another port with --listen (or --http of `mnemon mcp`)"
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                "name a file in it; `mnemon ingest FOLDER` ingests a whole folder"
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                "save it as UTF-8 text and try again; `mnemon ingest` reads HTML and PDF, too"
            }
            _ => return kind_hint(self.kind()),
        })
    }

    /// In how many seconds the call may be repeated, if that is known.
    pub fn retry_seconds(&self, now: Time) -> Option<u64> {
        match self {
            Self::Engine(error) => error.retry_seconds(now),
            _ => None,
        }
    }

    /// The same error with the name that an interface has for the field that is wrong.
    pub fn spelling(mut self, spelled: impl Fn(&str) -> Option<String>) -> Self {
        use mnemon_engine::Error as Engine;
        let (Self::Invalid(wrong)
        | Self::Store(StoreError::Invalid(wrong))
        | Self::Engine(Engine::Invalid(wrong) | Engine::Store(StoreError::Invalid(wrong)))) =
            &mut self
        else {
            return self;
        };
        // `tags[2]` is a part of `tags`.
        let end = wrong.field.find(['[', '.']).unwrap_or(wrong.field.len());
        let (name, part) = wrong.field.split_at(end);
        if let Some(name) = spelled(name) {
            wrong.field = format!("{name}{part}");
        }
        self
    }

    /// Whether the reader of our output went away, which is no error: `mnemon list | head`.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What is asked for in files is not found by looking into the store.
fn engine_hint(error: &mnemon_engine::Error) -> Option<&'static str> {
    use mnemon_engine::Error::{
        AgentExists, Ambiguous, BadFile, ConversationExists, Files, KeySpent, NoAgent, NoKey,
        NoSession, NoSessionFile, NoSnapshot, NotThere, Quota, SessionExists, SnapshotExists,
        Store,
    };
    Some(match error {
        Store(StoreError::KeyReused { .. }) => {
            "use another key, or repeat the same request with this one"
        }
        Store(StoreError::Conflict { expected, .. }) if expected == "no record" => {
            "change it with `mnemon update ID TEXT`, or choose another id"
        }
        AgentExists(_) => {
            "choose another name; `mnemon agent list` and `mnemon team list` show them"
        }
        Ambiguous { .. } => "write more characters of the id",
        KeySpent { .. } => "use another key to add them again",
        NoSession(_) => "`mnemon session list` shows the saved sessions",
        SessionExists(_) => "`mnemon session list` shows the names that are taken",
        NoSessionFile { .. } => "use another folder or session; the file is unchanged",
        ConversationExists(_) => "`mnemon chat list` shows the names that are taken",
        NoSnapshot { .. } | SnapshotExists { .. } => "`mnemon chat list` shows the snapshots",
        Files(FilesError::Outside { .. }) => {
            "name a file below the folder, without links that lead out; for notes, `mnemon config` shows the folder as notes.root"
        }
        Files(FilesError::TooLarge { .. }) => "split it into several files",
        BadFile { .. } => "correct the file as described; it is unchanged",
        NoAgent(_) => {
            "`mnemon agent list` and `mnemon team list` show the names; `mnemon agent new` creates an agent"
        }
        NoKey { .. } => "`mnemon key list` shows the keys of the tenant",
        Quota { seconds: None, .. } => {
            "delete records, or let an administrator raise it under [server.quota] in mnemon.toml"
        }
        Quota { .. } => "an administrator can raise it under [server.quota] in mnemon.toml",
        NotThere(_) => return None,
        other => return kind_hint(other.kind()),
    })
}

/// An invalid value needs no general advice: its message says what would be right.
fn service_hint(error: &LongTermError) -> Option<&'static str> {
    Some(match error {
        LongTermError::Unavailable { .. } => "check the URL, and that the service runs there",
        LongTermError::Refused { .. } => {
            "set MNEMON_LONG_TERM_KEY, or the variable that `key_env` of an external source names, to \
             the key of this service"
        }
        LongTermError::Unreadable { .. } => {
            "check that the word before the + of the URL names the service and its version"
        }
        LongTermError::Rejected { .. } => "check the URL; docs/backends.md lists the forms",
        LongTermError::TooOften { .. } => "wait and try again",
        LongTermError::Store(_) => return kind_hint(error.kind()),
    })
}

fn kind_hint(kind: ErrorKind) -> Option<&'static str> {
    (kind != ErrorKind::Invalid).then(|| code::of(kind).hint)
}

fn kind_of_io(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
        io::ErrorKind::IsADirectory => ErrorKind::Invalid,
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Unavailable,
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn not_erased(left: usize, more: bool) -> String {
    let written = "records were written to it meanwhile; run it again";
    match (left, more) {
        (0, _) => written.to_owned(),
        (1, false) => "one file or record still holds the text".to_owned(),
        (left, false) => format!("{left} files or records still hold the text"),
        (left, true) => format!("{left} files or records still hold the text, and {written}"),
    }
}

/// How many ids a message names before it only counts the rest.
const NAMED: usize = 5;

fn list(ids: &[Id]) -> String {
    let named: Vec<&str> = ids.iter().take(NAMED).map(Id::as_str).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn more_paths(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => "; nor was another path".to_owned(),
        _ => format!("; nor were {more} other paths"),
    }
}

fn no_conversation(session: &str, user: &str, nearest: &[String]) -> String {
    let missing = format!("user `{user}` has no conversation `{session}`");
    match nearest.is_empty() {
        true => format!("{missing}, nor any other"),
        false => format!("{missing}; the nearest: {}", nearest.join(", ")),
    }
}

fn nothing_to_undo(record: &Option<Id>) -> String {
    match record {
        Some(id) => format!("there is no change of record {id} that could be undone"),
        None => "there is nothing to undo".to_owned(),
    }
}
