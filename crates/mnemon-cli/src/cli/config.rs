//! `mnemon config`

use serde_json::Value;

use super::door::Door;
use super::text;
use mnemon_operations::Error;

/// Show every setting and its origin
///
/// Options have priority over environment variables, these over the project's file, this over the
/// user's file, and this over the defaults. Settings of a project's file that have no effect are
/// listed with the reason; `mnemon trust` allows them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon config\n  \
    mnemon config path\n  \
    MNEMON_STORE=sqlite:/tmp/m.db mnemon config --json\n\n\
    A file may say:\n  \
    store = \"sqlite:~/notes.db\"\n  \
    tenant = \"team\"\n  \
    history_days = 90\n  \
    [namespaces.short-term]\n  \
    ttl_days = 7\n  \
    max_entries = 1000\n  \
    [policy.smart_buyer]\n  \
    max_docs = 8")]
pub(super) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show only the files that were read, highest priority first
    Path,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        Some(What::Path) => path(door),
        None => all(door),
    }
}

fn path(door: &mut Door) -> Result<(), Error> {
    let files = door.config.files.clone();
    if door.out.json {
        let answer = serde_json::json!({ "file": files.first(), "files": files });
        return door.out.json(&answer);
    }
    if files.is_empty() {
        return door.out.line("no file was read");
    }
    let mut files = files.iter();
    files.try_for_each(|file| door.out.line(file.display()))
}

fn all(door: &mut Door) -> Result<(), Error> {
    let rows = door.config.rows();
    if door.out.json {
        let answer = serde_json::json!({
            "file": door.config.files.first(),
            "files": door.config.files,
            "settings": rows,
            "ignored": door.config.ignored,
        });
        return door.out.json(&answer);
    }
    let cells = rows.into_iter().map(|row| {
        let value = match row.value {
            Value::Null => "none".to_owned(),
            Value::String(text) => text::one_line(&text),
            other => other.to_string(),
        };
        vec![text::one_line(&row.key), value, text::one_line(&row.origin)]
    });
    let cells = cells.collect();
    door.out.table(&["SETTING", "VALUE", "FROM"], cells)?;
    ignored(door)
}

/// What the project's file says in vain, why, and what to do.
fn ignored(door: &mut Door) -> Result<(), Error> {
    let ignored = door.config.ignored.clone();
    let Some(first) = ignored.first() else {
        return Ok(());
    };
    let file = text::one_line(&first.file.display().to_string());
    let state = match first.changed_since_trusted {
        true => "which has changed since it was trusted",
        false => "which is not trusted",
    };
    door.out.line("")?;
    say!(door, "These settings of {file}, {state}, are ignored:")?;
    let cells = ignored.iter().map(|one| {
        let key = text::one_line(&one.key);
        vec![key, one.line.to_string(), one.why.reason().to_owned()]
    });
    let cells = cells.collect();
    door.out.table(&["SETTING", "LINE", "BECAUSE IT"], cells)?;
    say!(door, "To allow them: mnemon trust '{file}'")
}
