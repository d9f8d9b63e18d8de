//! The command line: arguments become requests, responses become text, tables or JSON.

/// Ends a command with its answer as JSON, where JSON was asked for.
macro_rules! return_json {
    ($door:expr, $answer:expr) => {
        if $door.out.json {
            return $door.out.json($answer);
        }
    };
}

/// Prints a line of text, which is formatted as by `println!`.
macro_rules! say {
    ($door:expr, $($text:tt)+) => {
        $door.out.line(format_args!($($text)+))
    };
}

mod add;
mod agent;
mod audit;
mod backup;
mod chat;
mod completions;
mod config;
mod confirm;
mod context;
mod demo;
mod diff;
mod doctor;
mod door;
mod eval;
mod experience;
mod export;
mod filters;
mod forget;
mod get;
mod history;
mod import;
mod index;
mod ingest;
mod init;
mod input;
mod key;
mod learn;
mod lines;
mod list;
mod llm;
mod man;
mod mcp;
mod migrate;
mod model;
mod note;
mod out;
mod policy;
mod progress;
mod read;
mod reembed;
mod remote;
mod remotes;
mod report;
mod restore;
mod search;
mod serve;
mod session;
mod shared;
mod skill;
mod stats;
mod team;
mod text;
mod top;
mod trust;
mod undo;
mod update;
mod upkeep;
mod webhook;
mod write;

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::Pin;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use door::Door;
use mnemon_operations::config::{Config, Environment, Flags, ignored_notice};
use mnemon_operations::{Error, wiring};

/// Memory for AI agents: one binary, one file, no key, no server.
///
/// Memory is kept in a store: by default one SQLite file in the user's data folder, which any
/// number of processes may use at once. Every change is recorded in the history and can be undone
/// until it is purged.
#[derive(Debug, Parser)]
#[command(
    name = "mnemon",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = after_help()
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// URL of the store, for example sqlite:notes.db [env: MNEMON_STORE]
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// URL of a server that runs the command, instead of this machine [env: MNEMON_SERVER]
    #[arg(long, value_name = "URL", global = true, conflicts_with_all = ["store", "tenant"])]
    server: Option<String>,
    /// Tenant whose memory is used [env: MNEMON_TENANT]
    #[arg(long, value_name = "NAME", global = true)]
    tenant: Option<String>,
    /// Print JSON, for programs [env: MNEMON_JSON]
    #[arg(long, global = true)]
    json: bool,
    /// Path of the configuration file [env: MNEMON_CONFIG]
    #[arg(long, value_name = "PATH", global = true)]
    config: Option<PathBuf>,
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", global = true, default_value_t, value_enum)]
    color: clap::ColorChoice,
    /// Print nothing on stderr but errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Print the store, the configuration files and the time taken on stderr
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(alias = "remember")]
    Add(Box<add::Args>),
    #[command(alias = "find")]
    Search(search::Args),
    Context(Box<context::Args>),
    #[command(visible_alias = "show")]
    Get(get::Args),
    #[command(visible_alias = "ls")]
    List(list::Args),
    #[command(visible_aliases = ["rm", "delete"], alias = "remove")]
    Forget(forget::Args),
    History(history::Args),
    Undo(undo::Args),
    Update(update::Args),
    Stats(stats::Args),
    Export(export::Args),
    Import(import::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Migrate(migrate::Args),
    Read(read::Args),
    Write(write::Args),
    #[command(subcommand)]
    Note(note::Args),
    #[command(subcommand)]
    Chat(chat::Args),
    #[command(subcommand)]
    Session(session::Args),
    Agent(agent::Args),
    Team(team::Args),
    #[command(subcommand)]
    Learn(learn::Args),
    #[command(subcommand)]
    Skill(skill::Args),
    #[command(subcommand)]
    Experience(experience::Args),
    #[command(subcommand)]
    Policy(policy::Args),
    Ingest(ingest::Args),
    Upkeep(upkeep::Args),
    Reembed(reembed::Args),
    #[command(subcommand)]
    Index(index::Args),
    #[command(subcommand)]
    Model(model::Args),
    #[command(subcommand)]
    Llm(llm::Args),
    #[command(subcommand)]
    Remote(remotes::Args),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Eval(eval::Args),
    Config(config::Args),
    Trust(trust::Args),
    Key(key::Args),
    Audit(audit::Args),
    Webhook(webhook::Args),
    Demo(demo::Args),
    Init(init::Args),
    Serve(serve::Args),
    Top(top::Args),
    Mcp(mcp::Args),
    Completions(completions::Args),
    Man(man::Args),
}

const EXAMPLES: &str = "Examples:
  mnemon demo                              see the main features, in a temporary folder
  mnemon add \"Ann prefers tea\" --user ann  remember something
  mnemon search what does Ann drink        find it again
  mnemon ingest docs/                      index a folder of documents
  mnemon list --user ann                   list the records that a user may see
  mnemon undo                              undo the newest change";

fn after_help() -> String {
    let stores = wiring::SCHEMES.iter();
    let stores: Vec<String> = stores
        .map(|(form, about)| format!("  {form:<12} {about}"))
        .collect();
    format!("{EXAMPLES}\n\nStores:\n{}", stores.join("\n"))
}

/// Runs the program.
pub fn main() -> u8 {
    run_with(std::env::args_os().collect())
}

/// The same with these arguments, the name of the program first.
pub fn run_with(args: Vec<OsString>) -> u8 {
    quiet_pdf_panics();
    run(args, &Environment::of_process())
}

/// A PDF that makes its reader panic is reported as such; the panic itself is nobody's business.
fn quiet_pdf_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(wiring::PDF_THREAD) {
            usual(panic);
        }
    }));
}

/// The whole command line, for completions and documentation.
pub fn command() -> clap::Command {
    Cli::command()
}

fn run(args: Vec<OsString>, env: &Environment) -> u8 {
    let wants_json = args.iter().any(|arg| arg == "--json");
    let started = std::time::Instant::now();
    let color = color_of(&args);
    use_color(color);
    let parsed = Cli::command()
        .color(color)
        .try_get_matches_from(args)
        .and_then(|matches| {
            let cli = Cli::from_arg_matches(&matches)?;
            Ok((cli, only_reads(&matches), name_of(&matches)))
        });
    let (cli, reads, name) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return report::usage(&error, wants_json),
    };
    let (quiet, verbose) = (cli.global.quiet, cli.global.verbose);
    let flags = Flags {
        config: cli.global.config,
        store: cli.global.store,
        tenant: cli.global.tenant,
        json: cli.global.json,
        server: cli.global.server,
    };
    let project = match &cli.command {
        Command::Mcp(args) => args.project(),
        _ => Ok(None),
    };
    let project = match project {
        Ok(project) => project,
        Err(error) => return report::failure(&error, wants_json),
    };
    if flags.server.is_some() && is_of_this_machine(&cli.command) {
        return report::failure(&Error::LocalCommand(name), wants_json);
    }
    let env = &project.map_or_else(|| env.clone(), |folder| env.clone().at(&folder));
    let config = match Config::load(&flags, env) {
        Ok(config) => config,
        Err(error) => return report::failure(&error.into(), wants_json),
    };
    let json = config.json.value;
    let surroundings = verbose.then(|| surroundings(&config));
    let reload = {
        let (flags, env) = (flags, env.clone());
        std::sync::Arc::new(move || Ok(Config::load(&flags, &env)?))
    };
    let done = start(cli.command, config, (quiet, reads), name, reload);
    if let Some(surroundings) = surroundings {
        let millis = started.elapsed().as_millis();
        out::error_line(format!("{surroundings}, {millis} ms"));
    }
    match done {
        Ok(()) => 0,
        Err(error) if error.is_broken_pipe() => 0,
        Err(error) => report::failure(&error, json),
    }
}

/// Whether the command never asks a server. `MNEMON_SERVER` may be set for other commands.
fn is_of_this_machine(command: &Command) -> bool {
    matches!(
        command,
        Command::Model(_)
            | Command::Eval(_)
            | Command::Config(_)
            | Command::Trust(_)
            | Command::Demo(_)
            | Command::Serve(_)
            | Command::Mcp(_)
            | Command::Completions(_)
            | Command::Man(_)
    )
}

/// Commands that only read the store, by group.
const READING: &[(&str, &[&str])] = &[
    ("search", &[]),
    ("context", &[]),
    ("get", &[]),
    ("list", &[]),
    ("history", &[]),
    ("stats", &[]),
    ("export", &[]),
    ("read", &[]),
    ("note", &["search", "get", "list", "stats"]),
    (
        "chat",
        &["list", "show", "tail", "events", "query", "reload"],
    ),
    ("session", &["load", "list"]),
    ("skill", &["list", "show", "search", "export"]),
    ("experience", &["failures", "traces"]),
    ("learn", &["status", "dry-run"]),
    ("key", &["list"]),
    ("webhook", &["list", "failed"]),
];

/// The command with its group, as it is typed.
fn name_of(matches: &ArgMatches) -> String {
    let Some((name, inner)) = matches.subcommand() else {
        return String::new();
    };
    match inner.subcommand_name() {
        Some(inner) => format!("{name} {inner}"),
        None => name.to_owned(),
    }
}

/// Whether this command only reads the store. A conversation in a project's files is read into it.
fn only_reads(matches: &ArgMatches) -> bool {
    let Some((name, matches)) = matches.subcommand() else {
        return false;
    };
    let (inner, matches) = matches.subcommand().unwrap_or(("", matches));
    let of_files = matches!(matches.try_get_raw("files"), Ok(Some(_)));
    let mut known = READING.iter().filter(|(group, _)| *group == name);
    !of_files && known.any(|(_, names)| inner.is_empty() || names.contains(&inner))
}

/// The colours that were asked for, before the arguments are parsed: errors of the parser have
/// colours, too.
fn color_of(args: &[OsString]) -> clap::ColorChoice {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let after = words.windows(2).find_map(|pair| match pair {
        ["--color", when] => Some(*when),
        _ => None,
    });
    let inline = words.iter().find_map(|word| word.strip_prefix("--color="));
    let when = after.or(inline).and_then(|when| when.parse().ok());
    when.unwrap_or_default()
}

fn use_color(color: clap::ColorChoice) {
    let forced = match color {
        clap::ColorChoice::Auto => return,
        clap::ColorChoice::Always => true,
        clap::ColorChoice::Never => false,
    };
    console::set_colors_enabled(forced);
    console::set_colors_enabled_stderr(forced);
}

/// What a command works on, for `--verbose`.
fn surroundings(config: &Config) -> String {
    let store = mnemon_operations::config::without_passwords(&config.store.value);
    let files = config.files.iter().map(|file| file.display().to_string());
    let files: Vec<String> = files.collect();
    let files = match files.is_empty() {
        true => "no configuration file".to_owned(),
        false => files.join(" and "),
    };
    format!("note: {store} (tenant {}), {files}", config.tenant.value)
}

/// The runtime panics if it cannot open the descriptors it needs, so they are tried first.
#[cfg(unix)]
fn check_descriptors() -> Result<(), Error> {
    let pairs = (0..4).map(|_| std::os::unix::net::UnixStream::pair());
    match pairs.collect::<std::io::Result<Vec<_>>>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Internal(format!(
            "no runtime: {error}; allow more open files (ulimit -n)"
        ))),
    }
}

#[cfg(not(unix))]
fn check_descriptors() -> Result<(), Error> {
    Ok(())
}

fn start(
    command: Command,
    config: Config,
    (quiet, reads): (bool, bool),
    name: String,
    reload: door::Reload,
) -> Result<(), Error> {
    check_descriptors()?;
    let mut runtime = match &command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        Command::Mcp(args) if args.serves_http() => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| Error::Internal(format!("no runtime: {error}")))?;
    let mut door = Door::new(config, quiet, reads, name, reload)?;
    // These two say it in their answers.
    if !matches!(command, Command::Config(_) | Command::Trust(_)) {
        let ignored = ignored_notice(&door.config.ignored);
        door.out.notes(ignored.as_slice());
    }
    // Boxed: the runtime's functions are generic over the future, and each of them would get a copy
    // of every command. Three copies were a tenth of the program.
    let command: Pin<Box<dyn Future<Output = _>>> = Box::pin(dispatch(command, &mut door));
    let done = runtime.block_on(command);
    // What was printed before an error is part of the answer.
    let flushed = door.out.flush();
    door.out.print_notices();
    // Somebody may still be waiting for input that never comes.
    runtime.shutdown_background();
    done.and(flushed)
}

async fn dispatch(command: Command, door: &mut Door) -> Result<(), Error> {
    match command {
        Command::Add(args) => add::run(*args, door).await,
        Command::Search(args) => search::run(args, door).await,
        Command::Context(args) => context::run(*args, door).await,
        Command::Get(args) => get::run(args, door).await,
        Command::List(args) => args.page.run(door).await,
        Command::Forget(args) => forget::run(args, door).await,
        Command::History(args) => args.run(door).await,
        Command::Undo(args) => undo::run(args, door).await,
        Command::Update(args) => args.change.run(door).await,
        Command::Stats(args) => args.stats.run(door).await,
        Command::Export(args) => export::run(args, door).await,
        Command::Import(args) => import::run(args, door).await,
        Command::Backup(args) => backup::run(args, door),
        Command::Restore(args) => restore::run(args, door),
        Command::Migrate(args) => migrate::run(args, door).await,
        Command::Read(args) => read::run(args, door).await,
        Command::Write(args) => write::run(args, door).await,
        Command::Note(args) => note::run(args, door).await,
        Command::Chat(args) => chat::run(args, door).await,
        Command::Session(args) => session::run(args, door).await,
        Command::Agent(args) => agent::run(args, door).await,
        Command::Team(args) => team::run(args, door).await,
        Command::Learn(args) => learn::run(args, door).await,
        Command::Skill(args) => skill::run(args, door).await,
        Command::Experience(args) => experience::run(args, door).await,
        Command::Policy(args) => policy::run(args, door).await,
        Command::Ingest(args) => ingest::run(args, door).await,
        Command::Upkeep(args) => upkeep::run(args, door).await,
        Command::Reembed(args) => reembed::run(args, door).await,
        Command::Index(args) => index::run(args, door).await,
        Command::Model(args) => model::run(args, door).await,
        Command::Llm(args) => llm::run(args, door).await,
        Command::Remote(args) => remotes::run(args, door).await,
        Command::Doctor(args) => doctor::run(args, door).await,
        Command::Eval(args) => eval::run(args, door).await,
        Command::Config(args) => config::run(args, door),
        Command::Trust(args) => trust::run(args, door),
        Command::Key(args) => key::run(args, door).await,
        Command::Audit(args) => audit::run(args, door),
        Command::Webhook(args) => webhook::run(args, door).await,
        Command::Demo(args) => demo::run(args, door).await,
        Command::Init(args) => init::run(args, door),
        Command::Serve(args) => serve::run(args, door).await,
        Command::Top(args) => top::run(args, door).await,
        Command::Mcp(args) => mcp::run(args, door).await,
        Command::Completions(args) => completions::run(args, door),
        Command::Man(args) => man::run(args, door),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        for command in command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let call = format!("mnemon {}", command.get_name());
            assert!(help.contains(&call), "{call}: {help}");
            assert!(command.get_about().is_some(), "{call}");
        }
    }
}

#[cfg(test)]
mod same_fields_tests;
