//! `mnemon mcp`

mod install;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use mnemon_core::{Invalid, Owner};
use mnemon_engine::longterm::Mode;

use super::door::{Door, key, not_indexed};
use mnemon_operations::config::{Config, Origin};
use mnemon_operations::{Error, wiring};
use mnemon_server::http::{self, Access, HttpLimits, Routes};
use mnemon_server::mcp::{self, Options, Profile, Served};

/// Serve this memory to an MCP client, over standard input and output or over HTTP
///
/// Any number of servers may use one store at the same time. The server ends when its input does,
/// or when the process that started it is gone. Nothing but the protocol is written to standard
/// output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon mcp                                     the command that a client starts\n  \
    mnemon mcp --tools notes --user ann            other tools, for one user\n  \
    mnemon mcp --http 127.0.0.1:8750               over HTTP, at /mcp\n  \
    mnemon mcp install claude                      connect a client to this server\n\n\
    See docs/mcp.md for the setup of clients and the description of each tool.")]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Tools to offer to clients; may be repeated
    #[arg(
        long,
        value_name = "PROFILE",
        value_delimiter = ',',
        default_value = "small"
    )]
    tools: Vec<Profile>,
    /// Serve this user only: their own records and those without a user
    ///
    /// A call that names another user is refused. Without it, a call may name any user of the
    /// tenant, new notes are shared by the whole tenant, and every user's notes are visible.
    #[arg(long, value_name = "NAME", value_parser = user_name)]
    user: Option<String>,
    /// How long-term memory is used: agent (the model calls record_to_memory and
    /// retrieve_from_memory), static (read_conversation adds what is known, append_to_conversation
    /// records the conversation after a reply), or both
    #[arg(long, value_name = "MODE", value_parser = super::chat::mode(), default_value = "agent")]
    long_term: Mode,
    /// Return structured content from all tools, with its schemas, for programs that parse it
    ///
    /// Without it, tools that read send their answer once, as text: clients show a model either the
    /// text or the structured content. Tools that write always answer with both, as both are short.
    #[arg(long)]
    structured: bool,
    /// Folder in which to look for the project's memory, instead of the current one
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Serve over HTTP at this address; other machines need a key [env: MNEMON_API_KEY, MNEMON_API_KEY_FILE]
    #[arg(long, value_name = "ADDR", value_parser = super::serve::address)]
    http: Option<SocketAddr>,
    /// Additional host name of this server, besides localhost; may be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// Origin of a web page that may call this server, as https://NAME:PORT; may be repeated
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Install(install::Args),
}

impl Args {
    /// The folder to stand in, if one was named.
    pub(super) fn project(&self) -> Result<Option<PathBuf>, Error> {
        self.project.as_deref().map(existing_project).transpose()
    }

    /// Whether a server for several clients is started.
    pub(super) fn serves_http(&self) -> bool {
        self.http.is_some()
    }
}

/// A misspelt folder must not lead to another memory.
fn existing_project(path: &Path) -> Result<PathBuf, Error> {
    match path.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        _ => {
            let what = format!("{} is not a folder; check its name", path.display());
            Err(Invalid::new("--project", what).into())
        }
    }
}

/// A name that a user can have.
fn user_name(name: &str) -> Result<String, String> {
    let checked = Owner::of(Some(name), None).check();
    checked.map_err(|wrong| wrong.what)?;
    Ok(name.to_owned())
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    if let Some(What::Install(args)) = &args.what {
        return install::run(args, door);
    }
    let memory = door.memory()?;
    let options = Options {
        tools: args.tools,
        user: args.user,
        long_term: args.long_term,
        structured: args.structured,
        remote: None,
    };
    let folder = wiring::agents_folder(&door.config);
    if folder.is_dir() && !door.config.may_index_agents() {
        door.out.note(&not_indexed(&folder));
    }
    let config = as_server(&door.config, "mcp", options.user.as_deref());
    let served = Served::new(config, memory, options)?;
    let Some(address) = args.http else {
        if std::io::stdin().is_terminal() {
            door.out.note(
                "waiting for an MCP client on standard input; `mnemon mcp install` \
                connects one to this server",
            );
        }
        return mcp::serve_stdio(served).await;
    };
    let access = Access {
        key: key(&door.config)?,
        hosts: args.allow_host,
        origins: args.allow_origin,
        tls: None,
    };
    let out = &door.out;
    let limits = HttpLimits::default();
    http::serve(
        served,
        Routes::Mcp,
        address,
        access,
        limits,
        http::stop_signal(),
        |address, _| {
            out.note(&format!("serving at http://{address}/mcp"));
        },
    )
    .await
}

/// The configuration with an actor that the history, and undo, tell from the command line.
pub(super) fn as_server(config: &Config, door: &str, user: Option<&str>) -> Config {
    let mut config = config.clone();
    let actor = &mut config.actor;
    if let (Origin::Default, Some(account)) = (&actor.origin, actor.value.strip_prefix("cli")) {
        actor.value = format!("{door}{account}");
    }
    if let Some(user) = user {
        actor.value = format!("{}/{user}", actor.value);
    }
    config
}
