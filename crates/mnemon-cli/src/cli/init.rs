//! `mnemon init`

use std::path::PathBuf;

use super::door::Door;
use crate::{Error, api};

/// Give a project a memory of its own
///
/// Makes .mnemon in the folder. From there and from any folder below, that memory is used instead
/// of the user's own. What is there already stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon init                      here\n  \
    mnemon init ~/code/shop          there\n  \
    mnemon mcp install claude        then: tell a client about it")]
pub(super) struct Args {
    /// The project's folder
    #[arg(value_name = "PATH", default_value = ".")]
    folder: PathBuf,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let folder = door.config.cwd.join(args.folder);
    let made = api::init::run(&door.config, &folder)?;
    return_json!(door, &made);
    let folder = made.folder.display();
    door.out.line(match made.created {
        true => format!("made {folder}; it is used here and in all folders below"),
        false => format!("{folder} is there already; nothing was changed"),
    })?;
    if let Some(name) = made.overruled_by {
        let store = &door.config.store.value;
        return door.out.line(format!(
            "but not where {name} names another store, as it does now: {store}"
        ));
    }
    match made.before {
        // A URL with a space in it is one word to a shell only in quotes.
        Some(before) if made.created => door.out.line(format!(
            "what was remembered before is not seen from here; look at it with: \
             mnemon --store '{before}' list"
        )),
        _ => Ok(()),
    }
}
