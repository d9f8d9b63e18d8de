//! `mnemon mcp install`

use std::path::{Path, PathBuf};

use super::super::confirm::confirm;
use super::super::diff;
use super::super::door::Door;
use mnemon_core::Invalid;
use mnemon_operations::Error;
use mnemon_operations::api::install::{self, Client, Level, NAME, Request, Response};
use mnemon_operations::config::{Config, Origin, PROJECT, Sourced, has_password};
use mnemon_server::mcp::Profile;

/// Add this server to the configuration of a client
///
/// Shows the change and asks before it is made. Other entries and comments are not changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon mcp install claude                # for this project, if it has its own memory\n  \
    mnemon mcp install cursor --user-level   # for all projects\n  \
    mnemon mcp install claude-desktop --project ~/code/shop\n  \
    mnemon mcp install codex --print         # only show what would be written")]
pub(in crate::cli) struct Args {
    /// The client
    #[arg(value_name = "CLIENT")]
    client: Client,
    /// Write to the project's configuration; the default if the project has its own memory
    #[arg(long, conflicts_with = "user_level")]
    project_level: bool,
    /// Write to the user's configuration; the default otherwise
    #[arg(long)]
    user_level: bool,
    /// Print the change and write nothing
    #[arg(long, alias = "dry-run")]
    print: bool,
    /// Skip the confirmation
    #[arg(long, conflicts_with = "print")]
    yes: bool,
    /// Name of the entry
    #[arg(long, value_name = "NAME", default_value = NAME)]
    name: String,
    /// Program that the client starts [default: this one; in a project's configuration, which is
    /// shared with others, `mnemon`]
    #[arg(long, value_name = "PATH")]
    command: Option<String>,
    /// Serve only this user's memory and records without a user
    #[arg(long, value_name = "NAME", value_parser = super::user_name)]
    user: Option<String>,
    /// Serve this project's memory, wherever the client starts the server
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Tools to offer to the client
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    tools: Vec<Profile>,
}

pub(in crate::cli) fn run(args: &Args, door: &mut Door) -> Result<(), Error> {
    let request = request(args, door)?;
    let planned = install::run(&request)?;
    let own = door.config.project.join(PROJECT).is_dir();
    if own && request.level == Level::User && args.project.is_none() {
        door.out.note(&format!(
            "this configuration counts for all projects; the client gets this project's memory only \
             if it starts the server in {}. `--project .` makes sure of it",
            door.config.project.display()
        ));
    }
    if door.out.json {
        door.out.json(&planned)?;
    } else {
        show(&planned, door)?;
    }
    if args.print || planned.is_done() {
        return Ok(());
    }
    door.out.flush()?;
    confirm(&format!("Write {}?", planned.path.display()), args.yes)?;
    install::write(&planned)?;
    if door.out.json {
        return Ok(());
    }
    say!(
        door,
        "wrote {}; restart the client to see it",
        planned.path.display()
    )
}

fn request(args: &Args, door: &Door) -> Result<Request, Error> {
    let config = &door.config;
    let has_memory = config.project.join(PROJECT).is_dir();
    let level = match (args.project_level, args.user_level) {
        (true, _) => Level::Project,
        (_, true) => Level::User,
        _ if has_memory && args.client.knows_projects() => Level::Project,
        _ => Level::User,
    };
    // A project's file is shared with people whose program lies elsewhere; a client that was not
    // started from a shell may not know where programs lie.
    let own = std::env::current_exe()
        .ok()
        .filter(|_| level == Level::User);
    let own = own.map(|path| path.display().to_string());
    let command = args.command.clone().or(own);
    let mut extra = said(config, level)?;
    if let Some(project) = &args.project {
        let path = super::existing_project(project)?;
        extra.extend(["--project".to_owned(), path.display().to_string()]);
    }
    if let Some(user) = &args.user {
        extra.extend(["--user".to_owned(), user.clone()]);
    }
    if !args.tools.is_empty() {
        use clap::ValueEnum;
        let words = args.tools.iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        extra.extend(["--tools".to_owned(), words.join(",")]);
    }
    Ok(Request {
        client: args.client,
        level,
        name: args.name.clone(),
        command: command.unwrap_or_else(|| NAME.to_owned()),
        args: extra,
        project: config.project.clone(),
        home: config.home.clone(),
        config_home: config.config_home.clone(),
    })
}

/// The store and the tenant that were named for this call, as arguments for the client's entry.
fn said(config: &Config, level: Level) -> Result<Vec<String>, Error> {
    let is_said = |origin: &Origin| matches!(origin, Origin::Flag(_) | Origin::Env(_));
    let mut said = Vec::new();
    if is_said(&config.store.origin) {
        check_no_password(&config.store)?;
        let store = match level {
            // Whoever shares the project's file begins in the project, too.
            Level::Project => config.store.value.clone(),
            Level::User => from_anywhere(&config.store.value, &config.cwd),
        };
        said.extend(["--store".to_owned(), store]);
    }
    if is_said(&config.tenant.origin) {
        said.extend(["--tenant".to_owned(), config.tenant.value.to_string()]);
    }
    Ok(said)
}

/// Configurations of clients are shared, synced and readable by other users, so a password does not
/// belong there.
fn check_no_password(store: &Sourced<String>) -> Result<(), Error> {
    if !has_password(&store.value) {
        return Ok(());
    }
    let what = "contains a password, which must not be in the configuration of a client; put the URL \
                into `store` of mnemon.toml in your own configuration folder (~/.config/mnemon), and \
                run this command without `--store` and MNEMON_STORE";
    Err(Invalid::new(store.origin.to_string(), what).into())
}

/// The same store for a program that begins in another folder.
fn from_anywhere(store: &str, cwd: &Path) -> String {
    match store.split_once(':') {
        Some((scheme @ ("sqlite" | "jsonl"), path)) if Path::new(path).is_relative() => {
            format!("{scheme}:{}", cwd.join(path).display())
        }
        _ => store.to_owned(),
    }
}

fn show(planned: &Response, door: &mut Door) -> Result<(), Error> {
    let path = planned.path.display();
    if planned.is_done() {
        return say!(door, "{path} has it already; nothing to change");
    }
    say!(door, "{path}:")?;
    let before = planned.before.as_deref().unwrap_or_default();
    diff::lines(before, &planned.after, door)
}
