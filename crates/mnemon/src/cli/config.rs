//! `mnemon config`

use serde_json::Value;

use super::door::Door;
use super::text;
use crate::Error;

/// Show every setting and where it came from
///
/// A flag beats an environment variable, a variable beats the file, the file beats the default.
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
    /// Show only which file was read
    Path,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        Some(What::Path) => path(door),
        None => all(door),
    }
}

fn path(door: &mut Door) -> Result<(), Error> {
    let file = door.config.file.clone();
    if door.out.json {
        return door.out.json(&serde_json::json!({ "file": file }));
    }
    match file {
        Some(file) => door.out.line(file.display()),
        None => door.out.line("no file was read"),
    }
}

fn all(door: &mut Door) -> Result<(), Error> {
    let rows = door.config.rows();
    if door.out.json {
        let answer = serde_json::json!({ "file": door.config.file, "settings": rows });
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
    door.out.table(&["SETTING", "VALUE", "FROM"], cells)
}
