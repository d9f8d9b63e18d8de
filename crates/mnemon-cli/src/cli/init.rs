//! `mnemon init`

use std::path::PathBuf;

use super::door::Door;
use mnemon_operations::config::without_passwords;
use mnemon_operations::{Error, api};

/// Create a separate memory for a project
///
/// Creates .mnemon in the folder. Commands run there or in a folder below use this memory instead
/// of your own. Existing files are not changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon init                      in the current folder\n  \
    mnemon init ~/code/shop          in another folder\n  \
    mnemon mcp install claude        then connect a client to it")]
pub(super) struct Args {
    /// Folder of the project
    #[arg(value_name = "PATH", default_value = ".")]
    folder: PathBuf,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    // A server would be used instead of the new memory.
    door.local()?;
    let folder = door.config.cwd.join(args.folder);
    let made = api::init::run(&door.config, &folder)?;
    return_json!(door, &made);
    let folder = made.folder.display();
    door.out.line(match made.created {
        true => format!("created {folder}; it is used here and in all folders below"),
        false => format!("{folder} exists already; nothing was changed"),
    })?;
    if let Some(name) = made.overruled_by {
        let store = without_passwords(&door.config.store.value);
        return say!(
            door,
            "but not where {name} names another store, as it does now: {store}"
        );
    }
    match made.before {
        // A URL with a space in it is one word to a shell only in quotes.
        Some(before) if made.created => say!(
            door,
            "records of the previous memory are not visible from here; list them with: \
             mnemon --store '{before}' list"
        ),
        _ => Ok(()),
    }
}
