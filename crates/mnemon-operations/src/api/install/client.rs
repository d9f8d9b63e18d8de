//! The clients: where each keeps its servers, and how an entry looks there.

use std::path::PathBuf;

use clap::ValueEnum;
use mnemon_core::Invalid;
use serde_json::{Map, Value, json};

use super::Request;

/// A client that has a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Codex
    Codex,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Cline, in Visual Studio Code
    Cline,
    /// Junie, in JetBrains IDEs
    Jetbrains,
}

/// For one project, or for all that the user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Project,
    User,
}

impl Client {
    /// Whether it reads servers from a project's folder, too.
    pub fn knows_projects(self) -> bool {
        self.in_project().is_some()
    }

    /// The name of its entries.
    fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::Opencode => "mcp",
            _ => "mcpServers",
        }
    }

    fn in_project(self) -> Option<&'static str> {
        Some(match self {
            Self::Claude => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Zed => ".zed/settings.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Opencode => "opencode.json",
            Self::Jetbrains => ".junie/mcp/mcp.json",
            Self::Windsurf | Self::ClaudeDesktop | Self::Cline => return None,
        })
    }
}

/// A file and the part of it that holds servers.
pub(super) struct ConfigSection {
    pub(super) path: PathBuf,
    pub(super) section: &'static str,
    pub(super) is_toml: bool,
}

pub(super) fn place(request: &Request) -> Result<ConfigSection, Invalid> {
    let client = request.client;
    let path = match request.level {
        Level::Project => client
            .in_project()
            .map(|file| request.project.join(file))
            .ok_or_else(|| {
                let what = "has no effect: this client has one configuration for all projects; \
                    leave it out";
                Invalid::new("--project-level", what)
            })?,
        Level::User => users(request).ok_or_else(|| {
            let what = "is not known: set HOME to find the configuration of the client";
            Invalid::new("the user's folder", what)
        })?,
    };
    Ok(ConfigSection {
        path,
        section: client.section(),
        is_toml: client == Client::Codex,
    })
}

fn users(request: &Request) -> Option<PathBuf> {
    let home = request.home.as_ref()?;
    let config = request.config_home.clone();
    let config = config.unwrap_or_else(|| home.join(".config"));
    // Where desktop programs keep their settings.
    let programs = match () {
        () if cfg!(target_os = "macos") => home.join("Library/Application Support"),
        () if cfg!(windows) => home.join("AppData/Roaming"),
        () => config.clone(),
    };
    Some(match request.client {
        Client::Claude => home.join(".claude.json"),
        Client::Cursor => home.join(".cursor/mcp.json"),
        Client::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
        Client::Codex => home.join(".codex/config.toml"),
        Client::Zed if cfg!(windows) => home.join("AppData/Roaming/Zed/settings.json"),
        Client::Zed => config.join("zed/settings.json"),
        Client::Vscode => programs.join("Code/User/mcp.json"),
        Client::Cline => programs.join(CLINE),
        Client::ClaudeDesktop => programs.join("Claude/claude_desktop_config.json"),
        Client::Gemini => home.join(".gemini/settings.json"),
        Client::Opencode => config.join("opencode/opencode.json"),
        Client::Jetbrains => home.join(".junie/mcp/mcp.json"),
    })
}

/// The settings of an extension lie in a folder of the editor that is named for it.
const CLINE: &str =
    "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";

/// What these clients put in the place of the folder that is open. The others start a server in it.
const OPEN_FOLDER: &str = "${workspaceFolder}";

pub(super) fn entry(request: &Request) -> Map<String, Value> {
    let mut args = vec!["mcp".to_owned()];
    let client = request.client;
    if request.level == Level::Project && matches!(client, Client::Cursor | Client::Vscode) {
        args.extend(["--project".to_owned(), OPEN_FOLDER.to_owned()]);
    }
    args.extend(request.args.iter().cloned());
    let mut entry = Map::new();
    match client {
        Client::Claude | Client::Vscode => {
            entry.insert("type".to_owned(), json!("stdio"));
        }
        Client::Zed => {
            entry.insert("source".to_owned(), json!("custom"));
        }
        Client::Opencode => {
            // One list for the program and its arguments.
            args.insert(0, request.command.clone());
            return Map::from_iter([
                ("type".to_owned(), json!("local")),
                ("command".to_owned(), json!(args)),
                ("enabled".to_owned(), json!(true)),
            ]);
        }
        _ => {}
    }
    entry.insert("command".to_owned(), json!(request.command));
    entry.insert("args".to_owned(), json!(args));
    if client == Client::Zed {
        entry.insert("env".to_owned(), json!({}));
    }
    entry
}
