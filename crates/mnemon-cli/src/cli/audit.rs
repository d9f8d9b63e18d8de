//! `mnemon audit`

use std::path::PathBuf;

use mnemon_core::Invalid;
use serde_json::json;

use super::door::Door;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::wiring::{self, AuditEntry, AuditLog};

/// Entries that are listed by default.
const LISTED: usize = 20;

/// Verify and list the audit log of a server
///
/// The log has one line for each audited request: time, caller, tenant, operation, ids and status. It
/// holds neither contents nor queries.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon audit verify\n  \
    mnemon audit verify --file archive/audit.jsonl.00000000000000000001\n  \
    mnemon audit list --limit 100\n\n\
    docs/server.md describes which changes verification detects.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Check that no entry was removed or altered; exit code 9 if one was
    Verify {
        /// Check one file alone, for example an archived one [default: the whole log]
        #[arg(long, value_name = "PATH")]
        file: Option<PathBuf>,
    },
    /// List the newest entries, oldest first
    #[command(visible_aliases = ["ls", "tail"])]
    List {
        /// Maximum number of entries
        #[arg(long, short = 'n', value_name = "N", default_value_t = LISTED)]
        limit: usize,
    },
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    door.local()?;
    match args.what {
        What::Verify { file } => verify(file, door),
        What::List { limit } => list(limit, door),
    }
}

fn log(door: &Door) -> Result<AuditLog, Error> {
    wiring::audit_log(&door.config).ok_or_else(|| {
        let what = "no audit log is configured; set server.audit to a path in mnemon.toml";
        Invalid::new("server.audit", what).into()
    })
}

fn verify(file: Option<PathBuf>, door: &mut Door) -> Result<(), Error> {
    let verified = match file {
        Some(file) => wiring::verify_audit_file(&door.config.cwd.join(file))?,
        None => log(door)?.verify()?,
    };
    return_json!(door, &verified);
    let count = text::count(verified.entries, "entry");
    let range = match (verified.first, verified.last) {
        (Some(first), Some(last)) => format!(", {first} to {last}"),
        _ => String::new(),
    };
    let files = text::count(verified.files as u64, "file");
    say!(
        door,
        "the audit log is complete: {count}{range}, in {files}"
    )?;
    if verified.unfinished {
        let what = "A process was stopped while it wrote the last line; the entry was not stored.";
        door.out.line(what)?;
    }
    Ok(())
}

fn list(limit: usize, door: &mut Door) -> Result<(), Error> {
    let entries = log(door)?.tail(limit)?;
    return_json!(door, &json!({ "entries": entries }));
    let rows = entries.iter().map(row).collect();
    let head = [
        "SEQ",
        "TIME",
        "CALLER",
        "TENANT",
        "OPERATION",
        "STATUS",
        "IDS",
    ];
    door.out.table(&head, rows)
}

fn row(entry: &AuditEntry) -> Vec<String> {
    let ids: Vec<&str> = entry.ids.iter().map(String::as_str).take(3).collect();
    let ids = match entry.count - ids.len().min(entry.count) {
        0 => ids.join(" "),
        more => format!("{} and {more} more", ids.join(" ")),
    };
    vec![
        entry.seq.to_string(),
        text::local(entry.at),
        text::cut(&entry.caller, 40),
        entry.tenant.to_string(),
        text::one_line(&entry.operation),
        entry.status.to_string(),
        text::one_line(&ids),
    ]
}
