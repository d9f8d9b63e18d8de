//! `mnemon chat`

mod append;
mod compress;
mod messages;
mod show;

use std::path::PathBuf;
use std::sync::Arc;

use super::door::Door;
use crate::api::chat::Chat;
use crate::{Error, wiring};

/// Keep a conversation, and a window of it that fits the model
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon chat append s1 \"Where is the tea house?\" --user ann\n  \
    mnemon chat append s1 --user ann --role assistant \"In the old town.\"\n  \
    mnemon chat append s1 --user ann --message '{\"role\":\"TOOL\",\"content\":[{\"type\":\"tool_result\",\"id\":\"c1\",\"name\":\"ls\",\"output\":[{\"type\":\"text\",\"text\":\"a.txt\"}]}]}'\n  \
    mnemon chat show s1 --user ann\n  \
    mnemon chat compress s1 --user ann --last-keep 10\n  \
    mnemon chat reload s1 01890a5d-ac96-774b-bcce-b302099a8057 --user ann\n  \
    mnemon chat tail s1 --user ann -n 5\n\n\
    docs/conversations.md says how a window is compressed.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a message, and compress the window if it is due
    Append(append::AppendArgs),
    /// Draw the window: what is hot, summarised and offloaded, and the tokens of each
    Show(show::ShowArgs),
    /// Compress the window, by the gentlest way that makes it smaller
    Compress(compress::CompressArgs),
    /// Read back what a tag in the window stands for
    Reload(messages::ReloadArgs),
    /// Show the last messages as they were said
    Tail(messages::TailArgs),
}

/// Which conversation.
#[derive(Debug, clap::Args)]
struct ConversationArgs {
    /// The conversation: a plain name of at most 255 characters, without / \ and ..
    #[arg(value_name = "SESSION")]
    session: String,
    /// Whose conversation it is
    #[arg(long, value_name = "NAME", default_value = "default")]
    user: String,
    /// The project whose files hold it: ROOT/.airsspec/contexts/agent/SESSION.jsonl
    #[arg(long, value_name = "ROOT")]
    files: Option<PathBuf>,
}

/// How large the window may be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The window")]
struct WindowArgs {
    /// What the model can read; from three quarters of it on the window is due [default: 131072]
    #[arg(long, value_name = "TOKENS")]
    max_token: Option<usize>,
    /// From so many messages on the window is due [default: 100]
    #[arg(long, value_name = "N")]
    msg_threshold: Option<usize>,
    /// The last messages, which gentle ways leave alone [default: 50]
    #[arg(long, value_name = "N")]
    last_keep: Option<usize>,
    /// Count the tokens of this model instead of estimating them
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

async fn chat(
    conversation: ConversationArgs,
    window: Option<WindowArgs>,
    door: &Door,
) -> Result<Chat, Error> {
    let mut settings = door.config.window.value;
    let mut project = None;
    if let Some(root) = &conversation.files {
        let opened = wiring::open_project(&door.config, root).await?;
        settings = opened.settings(settings);
        project = Some(Arc::new(opened));
    }
    let mut model = None;
    if let Some(window) = window {
        settings.max_token = window.max_token.unwrap_or(settings.max_token);
        settings.msg_threshold = window.msg_threshold.unwrap_or(settings.msg_threshold);
        settings.last_keep = window.last_keep.unwrap_or(settings.last_keep);
        model = window.model;
    }
    Ok(Chat {
        user: conversation.user,
        session: conversation.session,
        settings,
        model,
        project,
    })
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.command {
        Command::Append(args) => append::append(args, door).await,
        Command::Show(args) => show::show(args, door).await,
        Command::Compress(args) => compress::compress(args, door).await,
        Command::Reload(args) => messages::reload(args, door).await,
        Command::Tail(args) => messages::tail(args, door).await,
    }
}
