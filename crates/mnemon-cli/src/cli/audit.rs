//! `mnemon audit`

use std::path::PathBuf;

use mnemon_core::Invalid;
use serde::Serialize;
use serde_json::json;

use super::confirm::confirm;
use super::door::Door;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::when;
use mnemon_operations::wiring::{self, AuditEntry, AuditEvent, AuditLog};

/// Entries that are listed by default.
const LISTED: usize = 20;

/// Verify, list and prune the audit log of a server
///
/// The log has one line for each audited request: time, caller, tenant, operation, ids and status. It
/// holds neither contents nor queries.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon audit verify\n  \
    mnemon audit verify --file archive/audit.jsonl.00000000000000000001\n  \
    mnemon audit list --limit 100\n  \
    mnemon audit prune --before 2y --dry-run\n\n\
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
    /// Remove old files of the log
    ///
    /// Verifies the log first. Adds an entry, by which the rest can be verified. The newest file stays.
    Prune {
        /// Remove files with entries before this time only, for example 2026-01-31 or 2y
        #[arg(long, value_name = "TIME")]
        before: String,
        /// Show which files would be removed
        #[arg(long)]
        dry_run: bool,
        /// Skip the confirmation
        #[arg(long, conflicts_with = "dry_run")]
        yes: bool,
    },
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    door.local()?;
    match args.what {
        What::Verify { file } => verify(file, door),
        What::List { limit } => list(limit, door),
        What::Prune {
            before,
            dry_run,
            yes,
        } => prune(&before, dry_run, yes, door),
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

/// Files that were removed, or would be, with the numbers of their entries.
#[derive(Debug, Serialize)]
struct Pruned {
    files: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
    dry_run: bool,
}

fn prune(before: &str, dry_run: bool, yes: bool, door: &mut Door) -> Result<(), Error> {
    let ctx = door.ctx()?;
    let before = when::past("--before", before, ctx.now)?;
    let log = log(door)?;
    let old = log.old_files(before)?;
    let files = text::count(old.paths.len() as u64, "file");
    let range = old
        .entries
        .map(|(first, last)| format!(" with entries {first} to {last}"));
    let removed = format!("{files}{}", range.unwrap_or_default());
    if !dry_run && !old.paths.is_empty() {
        confirm(&format!("Remove {removed} of the audit log?"), yes)?;
        let event = AuditEvent {
            at: ctx.now,
            caller: ctx.actor.clone(),
            tenant: ctx.tenant.clone(),
            operation: String::new(),
            ids: Vec::new(),
            status: 0,
        };
        log.prune(&old, event)?;
    }
    let (first, last) = old.entries.unzip();
    let pruned = Pruned {
        files: old.paths.len(),
        first,
        last,
        dry_run,
    };
    return_json!(door, &pruned);
    match (old.paths.is_empty(), dry_run) {
        (true, _) => say!(
            door,
            "nothing to remove: no full file has only entries before this time"
        ),
        (_, true) => say!(door, "would remove {removed}"),
        _ => say!(door, "removed {removed}"),
    }
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
