//! Operations on conversations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mnemon_core::window::CompressionEvent;
use mnemon_core::{Invalid, Message, Role, limits};
use mnemon_engine::longterm::Mode;
use mnemon_engine::{LogLine, Memory, Passage, PassageQuery, Preview, Shown};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::context::QUERY;
use super::{
    Access, Arguments, ChatAppend, ChatClear, ChatCompress, ChatCompressPreview, ChatDelete,
    ChatDeleteSnapshot, ChatEvents, ChatFork, ChatList, ChatQuery, ChatRead, ChatRecord,
    ChatReload, ChatRestore, ChatShow, ChatSnapshot, ChatTail, Conversation, ConversationWindow,
    Field, Interface, Operation, Spelling, USER,
};
use crate::api::chat::{
    Append, Appended, Chat, Compressed, Compression, ListRequest, Page, Prepared, Remembered, Sort,
    Tail, messages_of,
};
use crate::api::session_forget;
use crate::{Error, api, wiring};

/// Passages that a query shows when nobody says.
const PASSAGES: usize = 5;
/// The identifier in a tag of a window, or the whole tag, in characters.
const UUID: usize = 200;

/// How long-term memory is used, by name.
pub const MODES: [(&str, Mode); 3] = [
    ("static", Mode::Static),
    ("agent", Mode::Agent),
    ("both", Mode::Both),
];

pub fn mode_word(mode: Mode) -> &'static str {
    let mut modes = MODES.iter().filter(|(_, known)| *known == mode);
    modes.next().map_or("both", |(word, _)| word)
}

fn session() -> Field {
    let about = "Name of the conversation: at most 255 characters, without / \\ and ..";
    Field::text("session", limits::NAME_CHARS, about)
        .or(&["session_id", "conversation", "conversation_id"])
        .positional(Spelling::Positional, "SESSION")
}

/// The conversation that is meant.
fn conversation(session: Field) -> Vec<Field> {
    let user = "User who owns the conversation; without it `default`, or the user of the server";
    let files = "The project whose files hold it: ROOT/.airsspec/contexts/agent/SESSION.jsonl";
    vec![
        session,
        super::notes::user(user),
        terminal(Field::text("files", limits::PATH_BYTES, files).value("ROOT")).local(),
    ]
}

fn terminal(field: Field) -> Field {
    field.only(Interface::CommandLine)
}

/// How large the window may be.
fn window() -> impl Iterator<Item = Field> {
    let number = |name, about| Field::whole(name, 0, u64::from(u32::MAX), about);
    let due = "Context size of the model; the window is due from three quarters of it on";
    let threshold =
        "Number of messages from which on the window is due, however few tokens they are";
    let keep = "Number of newest messages that the first strategies leave alone";
    let model = "Count the tokens of this model instead of estimating them";
    let fields = [
        number("max_token", due).value("TOKENS").default("131072"),
        number("msg_threshold", threshold).default("none"),
        number("last_keep", keep).default("50, or half of --msg-threshold"),
        Field::text("model", limits::NAME_CHARS, model).value("NAME"),
    ];
    let fields = fields.into_iter().map(terminal);
    fields.map(|field| field.under("The window"))
}

fn mode() -> Field {
    let about = "How long-term memory is used: static (added and recorded for the model), agent \
        (the model calls tools), or both";
    let words = MODES.iter().map(|(word, _)| *word);
    terminal(Field::one_of("mode", words, about).default("both"))
}

fn mode_of(arguments: &Arguments) -> Mode {
    let word = arguments.text("mode");
    let mut modes = MODES.iter();
    let mode = modes.find(|(known, _)| word.as_deref() == Some(*known));
    mode.map_or(Mode::default(), |(_, mode)| *mode)
}

fn from() -> Field {
    let about = "The first message to show, from 0 on; default: 0";
    let field = Field::whole("from", 0, 100_000, about).or(&["offset", "start"]);
    field.only(Interface::Mcp)
}

async fn open(access: &Access<'_>, arguments: &Arguments) -> Result<Chat, Error> {
    let user = arguments.text("user").or(access.user.map(str::to_owned));
    let user = user.unwrap_or_else(|| USER.to_owned());
    let mut chat = Chat::new(access.memory, access.ctx, user, arguments.needed("session"));
    chat.settings = access.config.window;
    chat.names_other_users = access.interface != Interface::Mcp && access.user.is_none();
    if let Some(root) = arguments.text("files") {
        let opened = wiring::open_project(access.config, Path::new(&root)).await?;
        chat.settings = opened.settings(chat.settings);
        chat.project = Some(Arc::new(opened));
    }
    let settings = &mut chat.settings;
    settings.max_token = arguments.whole("max_token").unwrap_or(settings.max_token);
    settings.msg_threshold = arguments.whole("msg_threshold").or(settings.msg_threshold);
    settings.last_keep = arguments.whole("last_keep").or(settings.last_keep);
    Ok(chat.count_tokens_of(arguments.text("model")))
}

impl Operation for Conversation {
    type Answer = Chat;

    fn fields() -> Vec<Field> {
        conversation(session().required())
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Chat, Error> {
        open(access, &arguments).await
    }
}

impl Operation for ConversationWindow {
    type Answer = Chat;

    fn fields() -> Vec<Field> {
        let conversation = conversation(session().required());
        conversation.into_iter().chain(window()).collect()
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Chat, Error> {
        open(access, &arguments).await
    }
}

impl Operation for ChatAppend {
    const COMMAND: &'static str = "chat append";
    const TOOL: &'static str = "append_to_conversation";
    type Answer = Appended;

    fn fields() -> Vec<Field> {
        let message = "Instead of content: a whole message with role and content blocks \
            (text, thinking, tool_use, tool_result, image), for example a call of a tool; or a \
            list of messages, which are added together";
        let jsonl = "Add many messages: a file, or - for stdin, with one JSON message per line. \
            All lines are checked first, and up to 1000 are added together; with --key an \
            interrupted import is completed when it is repeated";
        let line = "A line of the format of a project's log: user, thought, action or observation";
        let key = "Idempotency key: messages that were added under this key are not added again";
        let roles = [Role::User, Role::Assistant, Role::System, Role::Tool];
        let mut fields = conversation(session().required());
        fields.extend([
            Field::text("content", limits::CONTENT_BYTES, "Text of the message")
                .or(&["text", "message_text"])
                .joined()
                .or_else(&["message", "line", "jsonl"])
                .positional(Spelling::Words, "TEXT")
                .piped(),
            Field::one_of(
                "role",
                roles.into_iter().map(Role::word),
                "Role of the speaker",
            )
            .default("user")
            .excludes("message"),
            Field::text("name", limits::NAME_CHARS, "Name of the speaker")
                .or(&["speaker"])
                .excludes("message"),
            Field::json("message", message),
            terminal(Field::text("jsonl", limits::PATH_BYTES, jsonl).value("FILE|-")).local(),
            Field::text("key", limits::KEY_CHARS, key),
            terminal(Field::flag("leave_window", "Do not compress the window")),
            terminal(Field::json("line", line)).local(),
        ]);
        fields.extend(window());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Appended, Error> {
        let chat = open(access, &arguments).await?;
        let key = arguments.text("key");
        let leave_window = arguments.flag("leave_window").unwrap_or(false);
        if let Some(line) = arguments.take("line") {
            if chat.project.is_none() {
                return Err(Invalid::new("line", "needs --files, the project's folder").into());
            }
            let line: LogLine = serde_json::from_value(line).map_err(|error| {
                Invalid::new("line", format!("is not a line of a log: {error}"))
            })?;
            return chat.append_line(&line, key.as_deref(), leave_window).await;
        }
        let message = arguments.take("message").unwrap_or_else(|| {
            let [content, role, name] =
                ["content", "role", "name"].map(|name| arguments.text(name));
            json!({"role": role, "content": content, "name": name})
        });
        let append = Append {
            messages: messages_of(access.ctx, message)?,
            key: key.as_deref(),
            leave_window,
        };
        chat.append(append).await
    }
}

impl Operation for ChatRead {
    const COMMAND: &'static str = "chat prepare";
    const TOOL: &'static str = "read_conversation";
    type Answer = Prepared;

    fn fields() -> Vec<Field> {
        let mut fields = conversation(session().required());
        fields.extend([mode(), from()]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Prepared, Error> {
        let chat = open(access, &arguments).await?;
        chat.prepare(mode_of(&arguments)).await
    }
}

impl Operation for ChatRecord {
    const COMMAND: &'static str = "chat record";
    type Answer = Remembered;

    fn fields() -> Vec<Field> {
        let mut fields = conversation(session().required());
        fields.push(mode());
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Remembered, Error> {
        let chat = open(access, &arguments).await?;
        chat.record(mode_of(&arguments)).await
    }
}

/// Messages that are shown as they are.
#[derive(Debug, Serialize, Deserialize)]
pub struct Messages {
    pub messages: Vec<Message>,
}

impl Operation for ChatReload {
    const COMMAND: &'static str = "chat reload";
    const TOOL: &'static str = "context_reload";
    type Answer = Messages;

    fn fields() -> Vec<Field> {
        let uuid = "The uuid in the CONTEXT_OFFLOAD tag in the window, or the whole tag";
        let mut fields = conversation(session().required_on(Interface::CommandLine));
        fields.extend([
            Field::text("working_context_offload_uuid", UUID, uuid)
                .required()
                .or(&["uuid", "id", "offload_uuid", "context_offload_uuid"])
                .positional(Spelling::Positional, "UUID"),
            from(),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Messages, Error> {
        let uuid = arguments.needed("working_context_offload_uuid");
        let chat = open(access, &arguments).await?;
        let messages = match access.interface {
            Interface::CommandLine | Interface::Http => chat.reload(&uuid).await?,
            Interface::Mcp => access.memory.reload(access.ctx, &chat.user, &uuid).await?,
        };
        let messages = messages.ok_or(Error::NotReplaced)?;
        Ok(Messages { messages })
    }
}

/// Passages that answer a query, the best first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Passages {
    pub passages: Vec<Passage>,
}

impl Operation for ChatQuery {
    const COMMAND: &'static str = "chat query";
    const TOOL: &'static str = "query_memory";
    type Answer = Passages;

    fn fields() -> Vec<Field> {
        let files = "Search the pages of this project, too: ROOT/.airsspec/knowledge/library. \
            Conversations of other projects are left out";
        let user = "Search records that this user may see; without it, those of every user, or of \
            the server's user";
        let most = limits::HITS as u64;
        vec![
            Field::text("query", QUERY, "Words or a question to search for")
                .required()
                .or(&["q", "text", "question", "search"])
                .positional(Spelling::Words, "TEXT"),
            Field::whole("limit", 1, most, "Maximum number of passages")
                .default("5")
                .or(&["max_results", "top_k", "k", "n"]),
            super::notes::user(user),
            terminal(Field::text("files", limits::PATH_BYTES, files).value("ROOT")).local(),
        ]
    }

    /// Nothing is written: pages and agents' files are read into a memory of their own.
    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Passages, Error> {
        let (config, ctx) = (access.config, access.ctx);
        let files = arguments.take_text("files").map(PathBuf::from);
        let own = Some(&config.project).filter(|root| root.is_dir());
        let is_tool = access.interface == Interface::Mcp;
        let root = if is_tool { own } else { files.as_ref() };
        let pages = match root {
            Some(root) => Some(wiring::pages(config, ctx, access.memory, root).await?),
            None => None,
        };
        if let (true, Some(pages)) = (is_tool, &pages) {
            read_agents(access, pages).await?;
        }
        let project = files.map(|root| wiring::project_name(config, &root));
        let query = PassageQuery {
            viewer: &access.viewer(&arguments.take_owner()),
            text: &arguments.needed("query"),
            limit: arguments.whole("limit").unwrap_or(PASSAGES),
            pages: pages.as_deref(),
            project: project.as_deref(),
        };
        let passages = access.memory.passages(ctx, &query).await?;
        Ok(Passages { passages })
    }
}

/// Reads agents' files that the store does not have yet into this memory. A file that cannot be
/// read is said, and does not stop the query.
async fn read_agents(access: &Access<'_>, pages: &Memory) -> Result<(), Error> {
    let (config, ctx) = (access.config, access.ctx);
    let folder = wiring::agents_folder(config);
    if !folder.is_dir() {
        return Ok(());
    }
    let agents = wiring::agents(&config.tenant.value, &config.agents.value)?;
    let agents = agents.safety(config.safety());
    let is_behind = agents.is_index_behind(ctx, access.memory).await;
    if is_behind.unwrap_or(true)
        && let Err(error) = agents.index(ctx, pages).await
    {
        let what = format!("{} is not searched: {error}", folder.display());
        ctx.notices.add(what);
    }
    Ok(())
}

impl Operation for ChatList {
    const COMMAND: &'static str = "chat list";
    type Answer = Page;

    fn fields() -> Vec<Field> {
        let most = limits::PAGE as u64;
        let skip = "Leave out this many, to get the next page";
        let sorts = Sort::ALL.iter().map(|(word, _)| *word);
        let sort = "Order: newest message first, most messages first, or by name";
        vec![
            super::notes::user("List the conversations of this user only"),
            Field::whole("limit", 1, most, "Conversations on a page").default("50"),
            Field::whole("skip", 0, u64::from(u32::MAX), skip).default("0"),
            Field::one_of("sort", sorts, sort).default("last"),
            Field::flag("reverse", "Reverse the order"),
        ]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Page, Error> {
        let request = ListRequest {
            user: arguments.text("user").or(access.user.map(str::to_owned)),
            limit: arguments.whole("limit").unwrap_or(ListRequest::LIMIT),
            skip: arguments.whole("skip").unwrap_or(0),
            sort: Sort::of(arguments.text("sort").as_deref()),
            is_reversed: arguments.flag("reverse").unwrap_or(false),
        };
        api::chat::list(access.memory, access.ctx, &request).await
    }
}

impl Operation for ChatShow {
    type Answer = Shown;

    fn fields() -> Vec<Field> {
        let count = "Return at most this many messages, the newest";
        let skip = "Leave out this many of the newest messages";
        let mut fields = ConversationWindow::fields();
        fields.extend([
            Field::whole("count", 1, limits::PAGE as u64, count).default("all"),
            Field::whole("skip", 0, u64::from(u32::MAX), skip).default("0"),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Shown, Error> {
        let shown = open(access, &arguments).await?.show().await?;
        let count = arguments.whole("count").unwrap_or(usize::MAX);
        Ok(shown.part(count, arguments.whole("skip").unwrap_or(0)))
    }
}

impl Operation for ChatTail {
    const COMMAND: &'static str = "chat tail";
    type Answer = Tail;

    fn fields() -> Vec<Field> {
        let before = "The messages before this place, which the page after them names";
        let mut fields = conversation(session().required());
        fields.extend([
            Field::whole(
                "count",
                1,
                limits::PAGE as u64,
                "Maximum number of messages",
            )
            .default("10")
            .short('n'),
            Field::text("before", limits::ID_CHARS * 2, before).value("CURSOR"),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Tail, Error> {
        let chat = open(access, &arguments).await?;
        let count = arguments.whole("count").unwrap_or(api::chat::TAIL);
        chat.tail(count, arguments.text("before").as_deref()).await
    }
}

/// Compressions, oldest first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Events {
    pub events: Vec<CompressionEvent>,
}

impl Operation for ChatEvents {
    const COMMAND: &'static str = "chat events";
    type Answer = Events;

    fn fields() -> Vec<Field> {
        conversation(session().required())
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Events, Error> {
        let chat = open(access, &arguments).await?;
        let events = chat.existing().await?.events(&chat.ctx).await?;
        Ok(Events { events })
    }
}

impl Operation for ChatCompress {
    const COMMAND: &'static str = "chat compress";
    type Answer = Compressed;

    fn fields() -> Vec<Field> {
        let wait = "Wait for the language model to write the summaries; otherwise `mnemon upkeep` asks \
            it later";
        let mut fields = ConversationWindow::fields();
        fields.extend([
            Field::flag("if_needed", "Compress only if it is due"),
            Field::flag("wait", wait),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Compressed, Error> {
        let how = Compression {
            if_needed: arguments.flag("if_needed").unwrap_or(false),
            wait: arguments.flag("wait").unwrap_or(false),
        };
        open(access, &arguments).await?.compress(how).await
    }
}

/// What a compression would do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Previews {
    pub dry_run: bool,
    pub changes: Vec<Preview>,
}

impl Operation for ChatCompressPreview {
    type Answer = Previews;

    fn fields() -> Vec<Field> {
        ConversationWindow::fields()
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Previews, Error> {
        let chat = open(access, &arguments).await?;
        let changes = chat.existing().await?.preview(&chat.ctx).await?;
        Ok(Previews {
            dry_run: true,
            changes,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Forked {
    pub session: String,
    pub messages: usize,
}

fn with(name: &'static str, value: &'static str, about: &'static str) -> Vec<Field> {
    let field = Field::text(name, limits::NAME_CHARS, about).required();
    let mut fields = conversation(session().required());
    fields.insert(1, field.positional(Spelling::Positional, value));
    fields
}

impl Operation for ChatFork {
    const COMMAND: &'static str = "chat fork";
    type Answer = Forked;

    fn fields() -> Vec<Field> {
        with("to", "NEW", "Name of the copy")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Forked, Error> {
        let (chat, session) = (open(access, &arguments).await?, arguments.needed("to"));
        let messages = chat.existing().await?.fork(&chat.ctx, &session).await?;
        Ok(Forked { session, messages })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub snapshot: String,
    pub messages: usize,
}

impl Operation for ChatSnapshot {
    const COMMAND: &'static str = "chat snapshot";
    type Answer = Snapshot;

    fn fields() -> Vec<Field> {
        with("label", "LABEL", "Label of the snapshot")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Snapshot, Error> {
        let (chat, snapshot) = (open(access, &arguments).await?, arguments.needed("label"));
        let window = chat.existing().await?;
        let messages = window.snapshot(&chat.ctx, &snapshot).await?;
        Ok(Snapshot { snapshot, messages })
    }
}

impl Operation for ChatRestore {
    const COMMAND: &'static str = "chat restore";
    type Answer = Snapshot;

    fn fields() -> Vec<Field> {
        with("label", "LABEL", "Label of the snapshot")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Snapshot, Error> {
        let (chat, snapshot) = (open(access, &arguments).await?, arguments.needed("label"));
        let messages = chat.restore(&snapshot).await?;
        Ok(Snapshot { snapshot, messages })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Emptied {
    pub cleared: String,
}

impl Operation for ChatClear {
    const COMMAND: &'static str = "chat clear";
    type Answer = Emptied;

    fn fields() -> Vec<Field> {
        conversation(session().required())
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Emptied, Error> {
        let chat = open(access, &arguments).await?;
        chat.existing().await?.clear(&chat.ctx).await?;
        Ok(Emptied {
            cleared: chat.session,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct DeletedSnapshot {
    pub deleted: String,
}

impl Operation for ChatDeleteSnapshot {
    type Answer = DeletedSnapshot;

    fn fields() -> Vec<Field> {
        with("label", "LABEL", "Label of the snapshot")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<DeletedSnapshot, Error> {
        let (chat, deleted) = (open(access, &arguments).await?, arguments.needed("label"));
        chat.delete_snapshot(&deleted).await?;
        Ok(DeletedSnapshot { deleted })
    }
}

impl Operation for ChatDelete {
    const COMMAND: &'static str = "chat delete";
    type Answer = session_forget::Response;

    fn fields() -> Vec<Field> {
        let purge = "Erase permanently, with history and files: this cannot be undone";
        let folder = Field::texts(
            "folder",
            MOST_FOLDERS,
            limits::PATH_BYTES,
            "Folder in which its states were saved",
        );
        let mut fields = conversation(session().required());
        fields.extend([
            Field::flag("purge", purge),
            terminal(folder).value("DIR").excludes("files").local(),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Self::Answer, Error> {
        let chat = open(access, &arguments).await?;
        let request = forgetting(&chat, &arguments);
        let purge = request.purge;
        if !purge {
            // What lies in a log unread would be shown as if it was not deleted.
            chat.catch_up().await?;
        }
        let mut gone = session_forget::run(&chat.memory, &chat.ctx, request).await?;
        if gone.status == session_forget::Status::Nothing {
            return Err(chat.unknown().await?);
        }
        if purge {
            gone.list(wiring::kept_copies(access.config));
        }
        Ok(gone)
    }
}

/// Folders with saved states in one call.
const MOST_FOLDERS: usize = 100;

/// The session that is to be forgotten.
pub fn forgetting(chat: &Chat, arguments: &Arguments) -> session_forget::Request {
    session_forget::Request {
        user: chat.user.clone(),
        session: chat.session.clone(),
        purge: arguments.flag("purge").unwrap_or(false),
        files: arguments
            .text("files")
            .map(PathBuf::from)
            .into_iter()
            .collect(),
        folders: arguments
            .texts("folder")
            .into_iter()
            .map(PathBuf::from)
            .collect(),
    }
}
