//! `mnemon trust`

use std::path::{Path, PathBuf};

use serde_json::json;

use super::confirm::confirm;
use super::door::Door;
use super::{diff, text};
use mnemon_operations::Error;
use mnemon_operations::config::{
    ConfigError, Inspected, Risk, Trust, TrustList, inspect, without_passwords,
};

/// Trust a project's configuration file: all of its settings take effect until it changes
///
/// Any repository can contain a mnemon.toml. So a file in the folder of a project may only change
/// how results are shown; settings that send data, open files, weaken safety, delete data or choose
/// whose memory is used are ignored until you trust the file. The command shows those settings, and
/// what changed since you last trusted the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon trust                         the mnemon.toml that is used here\n  \
    mnemon trust mnemon.toml --dry-run   only show what it would set\n  \
    mnemon trust --list                  the files that are trusted\n  \
    mnemon trust --remove mnemon.toml    trust it no longer")]
pub(super) struct Args {
    /// File [default: the mnemon.toml of this project]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// List the trusted files, and whether they have changed
    #[arg(long, conflicts_with_all = ["file", "remove", "dry_run", "yes"])]
    list: bool,
    /// Remove the file from the list
    #[arg(long, conflicts_with = "dry_run")]
    remove: bool,
    /// Show the settings of the file, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let list = door.config.trust_list.clone();
    let list = list.ok_or(ConfigError::NoUserFolder)?;
    if args.list {
        return show_list(&list, door);
    }
    let named = args.file.map(|file| door.config.cwd.join(file));
    let Some(file) = named.or_else(|| door.config.project_file.clone()) else {
        let what = "no mnemon.toml was found in this project; name the file";
        return Err(mnemon_core::Invalid::new("FILE", what).into());
    };
    if args.remove {
        return remove(&file, &list, door);
    }
    let inspected = inspect(&file, &list)?;
    if !door.out.json {
        show(&inspected, door)?;
    }
    if args.dry_run || inspected.trust == Trust::Trusted {
        return tell(&inspected, inspected.trust == Trust::Trusted, door);
    }
    door.out.flush()?;
    let shown = file.display();
    confirm(&format!("Trust {shown} until it changes?"), args.yes)?;
    list.add(&file, &inspected.text)?;
    tell(&inspected, true, door)
}

/// What the file sets that needs trust, and what is new since it was trusted.
fn show(inspected: &Inspected, door: &mut Door) -> Result<(), Error> {
    let file = text::one_line(&inspected.path.display().to_string());
    if let Trust::Changed(before) = &inspected.trust {
        say!(door, "{file} has changed since it was trusted:")?;
        let (before, after) = (
            without_passwords(before),
            without_passwords(&inspected.text),
        );
        diff::lines(&before, &after, door)?;
        door.out.line("")?;
    }
    if !inspected.never.is_empty() {
        let names = text::one_line(&inspected.never.join(", "));
        say!(
            door,
            "{file} sets {names}, which has no effect: only your own mnemon.toml may set it"
        )?;
    }
    if inspected.risky.is_empty() {
        return say!(door, "{file} sets nothing that needs trust");
    }
    say!(door, "{file} sets, besides what any project may set:")?;
    let width = door.out.width;
    let cells = inspected.risky.iter().map(|setting| {
        vec![
            text::cut(&setting.key, width),
            text::one_line(&setting.value),
            setting.line.to_string(),
            setting.why.reason().to_owned(),
        ]
    });
    door.out
        .table(&["SETTING", "VALUE", "LINE", "BECAUSE IT"], cells.collect())?;
    match inspected.risky.iter().any(|one| one.why == Risk::Sends) {
        true => door.out.line(
            "The keys of these services (MNEMON_EMBEDDER_KEY, llm.key_env, llm.key_file) \
             are sent to the addresses above.",
        ),
        false => Ok(()),
    }
}

fn tell(inspected: &Inspected, is_trusted: bool, door: &mut Door) -> Result<(), Error> {
    if door.out.json {
        return door.out.json(&json!({
            "file": inspected.path,
            "trusted": is_trusted,
            "changed": matches!(inspected.trust, Trust::Changed(_)),
            "settings": inspected.risky,
            "without_effect": inspected.never,
        }));
    }
    let said = match (is_trusted, inspected.trust == Trust::Trusted) {
        (true, true) => "it is trusted already",
        (true, false) => "trusted until it changes",
        (false, _) => "nothing was changed",
    };
    door.out.line(said)
}

fn remove(file: &Path, list: &TrustList, door: &mut Door) -> Result<(), Error> {
    let removed = list.remove(file)?;
    return_json!(door, &json!({ "file": file, "removed": removed }));
    let file = text::one_line(&file.display().to_string());
    door.out.line(match removed {
        true => format!("{file} is no longer trusted"),
        false => format!("{file} was not trusted; nothing was changed"),
    })
}

fn show_list(list: &TrustList, door: &mut Door) -> Result<(), Error> {
    let files = list.files()?;
    let rows: Vec<(PathBuf, &'static str)> = files
        .into_iter()
        .map(|file| {
            let state = match inspect(&file.path, list).map(|now| now.trust) {
                Ok(Trust::Trusted) => "trusted",
                Ok(_) => "changed, so not trusted",
                Err(_) => "cannot be read",
            };
            (file.path, state)
        })
        .collect();
    if door.out.json {
        let files = rows
            .iter()
            .map(|(file, state)| json!({ "file": file, "state": state }));
        return door
            .out
            .json(&json!({ "files": files.collect::<Vec<_>>() }));
    }
    if rows.is_empty() {
        return door.out.line("no file is trusted");
    }
    let cells = rows.iter().map(|(file, state)| {
        let file = text::one_line(&file.display().to_string());
        vec![file, (*state).to_owned()]
    });
    door.out.table(&["FILE", "STATE"], cells.collect())
}
