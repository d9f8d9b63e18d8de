//! The log of a conversation in a project's files, which is the source of truth there.
//!
//! The message records of the store are a copy of it. A watermark, a record, says up to which byte
//! the log was read; it moves in the commit of the messages that it covers, and only if nobody else
//! moved it. So two processes, a kill or lines of another tool leave nothing unread, and nothing is
//! read twice.

mod catch_up;
mod line;
mod read;

pub use catch_up::CaughtUp;
pub(crate) use catch_up::LogCopy;
pub use line::Said;
pub(crate) use line::{Writer, after_purge};

use mnemon_core::{Kind, Record};

use super::session::SessionId;

/// The folder that a project's conversations lie in.
pub(crate) const ROOT: &str = ".airsspec";

/// The folder of the logs, below the root.
pub(crate) fn log_folder() -> String {
    format!("{ROOT}/contexts/agent")
}

/// The log of a session, below the root.
pub(crate) fn log_path(session: &SessionId) -> String {
    format!("{}/{session}.jsonl", log_folder())
}

/// Whether the record is a message that lies in a log, too.
pub(crate) fn is_log_line(record: &Record) -> bool {
    let source = record.source.as_deref().unwrap_or_default();
    record.kind == Kind::Message && source.starts_with(&log_folder())
}
