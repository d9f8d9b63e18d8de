//! `mnemon chat`

mod append;
mod compress;
mod copies;
mod delete;
mod list;
mod long_term;
mod messages;
mod show;

pub(super) use long_term::mode;

use super::door::Door;
use super::shared::Shared;
use mnemon_operations::Error;
use mnemon_operations::operation::{
    ChatAppend, ChatClear, ChatEvents, ChatFork, ChatList, ChatQuery, ChatRecord, ChatReload,
    ChatRestore, ChatSnapshot, ChatTail,
};

/// Store conversations and keep each one within the context window of a model
#[derive(Debug, clap::Subcommand)]
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
pub(super) enum Args {
    /// List conversations with their messages and snapshots, the last used first
    ///
    /// SQLite counts messages without reading them; other stores read every message once. At most
    /// the 10000 conversations that were used last are listed.
    #[command(visible_alias = "ls")]
    List(Shared<ChatList>),
    /// Show the window: which messages are whole, summarised or offloaded, and their tokens
    ///
    /// With --format, print the request body for a provider instead.
    Show(show::ShowArgs),
    /// Add one message or many, and compress the window if it is due
    ///
    /// A conversation that does not exist is created.
    Append(Shared<ChatAppend>),
    /// Compress the window by the first strategy that makes it smaller
    ///
    /// Below the limits of the window only messages before the last ones are compressed.
    Compress(compress::CompressArgs),
    /// Print the messages that a CONTEXT_OFFLOAD tag in the window replaces
    Reload(Shared<ChatReload>),
    /// Print the last messages as they were appended
    Tail(Shared<ChatTail>),
    /// List the last 1000 compressions, oldest first
    Events(Shared<ChatEvents>),
    /// Find passages in conversations, pages, notes and documents
    Query(Shared<ChatQuery>),
    /// Copy a conversation, with its window, to a new name
    ///
    /// A fork that was interrupted is completed when it is repeated.
    Fork(Shared<ChatFork>),
    /// Save the window under a label, to be restored later
    Snapshot(Shared<ChatSnapshot>),
    /// Restore the window from a snapshot
    ///
    /// Messages appended since the snapshot stay in the conversation, but not in its window.
    Restore(Shared<ChatRestore>),
    /// Empty the window; every message stays in the conversation
    Clear(Shared<ChatClear>),
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
    Record(Shared<ChatRecord>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::List(args) => list::list(args, door).await,
        Args::Show(args) => show::show(args, door).await,
        Args::Append(args) => append::append(args, door).await,
        Args::Compress(args) => compress::compress(args, door).await,
        Args::Reload(args) => args.run(door).await,
        Args::Tail(args) => args.run(door).await,
        Args::Events(args) => args.run(door).await,
        Args::Query(args) => args.run(door).await,
        Args::Fork(args) => copies::fork(args, door).await,
        Args::Snapshot(args) => copies::snapshot(args, door).await,
        Args::Restore(args) => copies::restore(args, door).await,
        Args::Clear(args) => copies::clear(args, door).await,
        Args::Delete(args) => delete::delete(args, door).await,
        Args::Prepare(args) => long_term::prepare(args, door).await,
        Args::Record(args) => args.run(door).await,
    }
}
