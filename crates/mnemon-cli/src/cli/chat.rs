//! `mnemon chat`

mod append;
mod compress;
mod copies;
mod delete;
mod list;
mod long_term;
mod messages;
mod query;
mod show;

use std::path::PathBuf;
use std::sync::Arc;

pub(super) use long_term::mode;

use super::door::Door;
use crate::api::chat::Chat;
use crate::{Error, wiring};

/// Store conversations and keep each one within the context window of a model
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon chat append s1 \"Where is the tea house?\" --user ann\n  \
    mnemon chat append s1 --user ann --role assistant \"In the old town.\"\n  \
    mnemon chat append s1 --user ann --jsonl talk.jsonl --key import-1\n  \
    mnemon chat list --user ann\n  \
    mnemon chat show s1 --user ann\n  \
    mnemon chat show s1 --user ann --format openai --model gpt-4o > body.json\n  \
    mnemon chat compress s1 --user ann --dry-run\n  \
    mnemon chat compress s1 --user ann --last-keep 10\n  \
    mnemon chat reload s1 01890a5d-ac96-774b-bcce-b302099a8057 --user ann\n  \
    mnemon chat tail s1 --user ann -n 5\n  \
    mnemon chat query \"tea house\" --user ann\n\n\
    docs/conversations.md explains windows, compression and long-term memory.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List conversations with their messages and snapshots, the last used first
    ///
    /// SQLite counts messages without reading them; other stores read every message once. At most
    /// the 10000 conversations that were used last are listed.
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show the window: which messages are whole, summarised or offloaded, and their tokens
    ///
    /// With --format, print the request body for a provider instead.
    Show(show::ShowArgs),
    /// Add one message or many, and compress the window if it is due
    ///
    /// A conversation that does not exist is created.
    Append(append::AppendArgs),
    /// Compress the window by the first strategy that makes it smaller
    ///
    /// Below the limits of the window only messages before the last ones are compressed.
    Compress(compress::CompressArgs),
    /// Print the messages that a CONTEXT_OFFLOAD tag in the window replaces
    Reload(messages::ReloadArgs),
    /// Print the last messages as they were appended
    Tail(messages::TailArgs),
    /// List the last 1000 compressions, oldest first
    Events(ConversationArgs),
    /// Find passages in conversations, pages, notes and documents
    Query(query::QueryArgs),
    /// Copy a conversation, with its window, to a new name
    ///
    /// A fork that was interrupted is completed when it is repeated.
    Fork(copies::ForkArgs),
    /// Save the window under a label, to be restored later
    Snapshot(copies::SnapshotArgs),
    /// Restore the window from a snapshot
    ///
    /// Messages appended since the snapshot stay in the conversation, but not in its window.
    Restore(copies::SnapshotArgs),
    /// Empty the window; every message stays in the conversation
    Clear(ConversationArgs),
    /// Delete a conversation and everything known only from it, or one of its snapshots
    ///
    /// Deletes its messages, summaries, state and experience, its snapshots, and all records that
    /// were derived only from them. The user's profile, knowledge and skills stay; records with
    /// other sources stay without this one. Records of the session that belong to no user are
    /// deleted as well, unless another user has a session of the same name.
    ///
    /// With --files the conversation of that project is deleted, without it the one outside
    /// projects: conversations of the same name in projects stay, and are listed.
    ///
    /// With --purge everything is erased permanently, including records deleted earlier and the log
    /// and pages of a project's conversation. Files that are not erased are listed, and the command
    /// exits with 5: the conversation is only partly purged.
    #[command(visible_alias = "rm", alias = "forget")]
    Delete(delete::DeleteArgs),
    /// Print the messages for the next call of a model, with long-term memory added
    ///
    /// In static mode a last message holds what is known about the last user message. In agent mode
    /// the request gets the tools record_to_memory and retrieve_from_memory.
    Prepare(long_term::PrepareArgs),
    /// Record the conversation to long-term memory, after the model has replied
    Record(long_term::RecordArgs),
}

#[derive(Debug, clap::Args)]
struct ConversationArgs {
    /// Name of the conversation: at most 255 characters, without / \ and ..
    #[arg(value_name = "SESSION")]
    session: String,
    /// User who owns the conversation
    #[arg(long, value_name = "NAME", default_value = USER)]
    user: String,
    /// The project whose files hold it: ROOT/.airsspec/contexts/agent/SESSION.jsonl
    #[arg(long, value_name = "ROOT")]
    files: Option<PathBuf>,
}

/// The owner of a conversation when no user is named.
const USER: &str = "default";

/// How large the window may be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The window")]
struct WindowArgs {
    /// Context size of the model; the window is due from three quarters of it on [default: 131072]
    #[arg(long, value_name = "TOKENS")]
    max_token: Option<usize>,
    /// Number of messages from which on the window is due, however few tokens they are [default: none]
    #[arg(long, value_name = "N")]
    msg_threshold: Option<usize>,
    /// Number of newest messages that the first strategies leave alone [default: 50, or half of
    /// --msg-threshold]
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
        settings.msg_threshold = window.msg_threshold.or(settings.msg_threshold);
        settings.last_keep = window.last_keep.or(settings.last_keep);
        model = window.model;
    }
    Ok(Chat {
        user: conversation.user,
        session: conversation.session,
        settings,
        model,
        names_other_users: true,
        project,
    })
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.command {
        Command::List(args) => list::list(args, door).await,
        Command::Show(args) => show::show(args, door).await,
        Command::Append(args) => append::append(args, door).await,
        Command::Compress(args) => compress::compress(args, door).await,
        Command::Reload(args) => messages::reload(args, door).await,
        Command::Tail(args) => messages::tail(args, door).await,
        Command::Events(args) => messages::events(args, door).await,
        Command::Query(args) => query::query(args, door).await,
        Command::Fork(args) => copies::fork(args, door).await,
        Command::Snapshot(args) => copies::snapshot(args, door).await,
        Command::Restore(args) => copies::restore(args, door).await,
        Command::Clear(args) => copies::clear(args, door).await,
        Command::Delete(args) => delete::delete(args, door).await,
        Command::Prepare(args) => long_term::prepare(args, door).await,
        Command::Record(args) => long_term::record(args, door).await,
    }
}
