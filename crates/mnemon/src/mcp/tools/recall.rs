//! Tools for what an agent remembers of its sessions and its user.

use std::sync::Arc;

use mnemon_core::{Invalid, limits};
use mnemon_engine::library::{self, Excerpt};
use mnemon_engine::longterm::{Mode, NAME as MARK, OwnLongTerm, Remembering};
use serde_json::{Value, json};

use super::super::answer::{
    Answer, RECALLED, Room, TAIL_TOKENS, cut, discreet, excerpt, quote, quoted_message,
};
use super::super::field::Field;
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use crate::api::{self, chat::Chat};
use crate::{Error, wiring};

/// A user, a session or an agent, in characters.
const NAME: usize = limits::NAME_CHARS;
/// A query, in characters.
pub(super) const QUERY: usize = 10_000;
/// Excerpts that a query shows when nobody says.
const LIMIT: usize = 5;
/// One thing to record, in characters.
const THING: usize = 100_000;

pub(super) fn user() -> Field {
    let about = "Whose memory; leave it out for the one this server was started for";
    Field::text("user", NAME, about).or(&["user_id"])
}

fn session(about: &'static str) -> Field {
    Field::text("session", NAME, about).or(&["session_id", "conversation", "conversation_id"])
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        memory_context(),
        query_memory(),
        record_to_memory(),
        retrieve_from_memory(),
        context_reload(),
    ]
}

fn memory_context() -> Tool {
    let query = "What the task is about: chooses facts, documents and skills";
    let budget = "Tokens the context may have; never exceeded; 2000 unless you say";
    Tool {
        name: "memory_context",
        title: "Context for a prompt",
        about: "Put together what is known for the task at hand (profile, summary, recent turns, \
            facts, documents, skills) within a budget of tokens. Use it at the start of a task, \
            before you ask the user what memory may already know.",
        fields: vec![
            Field::text("query", QUERY, query).or(&["q", "text", "task", "topic"]),
            user(),
            session("The conversation; leave it out if there is none"),
            Field::text("agent", NAME, "The agent that asks"),
            Field::text(
                "task_type",
                limits::TASK_TYPE_CHARS,
                "The type of task, for skills",
            ),
            Field::whole(
                "budget",
                100,
                super::super::answer::MAX_TOKENS as u64,
                budget,
            )
            .or(&["max_tokens", "token_budget", "tokens"]),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Small, Profile::Notes, Profile::Agent],
        run: |served, call| Box::pin(run_context(served, call)),
    }
}

async fn run_context(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let user = served.user(call.arguments.text("user"));
    let named = |name: &str, other: &str| {
        let named = call.arguments.text(name);
        Some(Value::String(named.unwrap_or_else(|| other.to_owned())))
    };
    let (session, agent) = (named("session", "default"), named("agent", "mcp"));
    call.progress
        .tell(0, 2, "reading the files of agents")
        .await;
    served.index_files(&call.ctx).await;
    call.progress.tell(1, 2, "reading the memory").await;
    for name in ["user", "session", "agent"] {
        call.arguments.take(name);
    }
    let arguments = call.arguments.put("user", Some(user.into()));
    let arguments = arguments.put("session", session).put("agent", agent);
    let request: api::context::Request = arguments.read()?;
    let made = api::context::run(&served.memory, &call.ctx, request).await?;
    call.progress.tell(2, 2, "done").await;
    let text = made.context.compiled.text;
    Ok(match text.trim() {
        "" => Answer::text(match made.needs {
            Some(needs) => format!("Nothing fits: the first thing needs a budget of {needs}."),
            None => "Nothing is known about this yet.".to_owned(),
        }),
        _ => Answer::text(text),
    })
}

fn query_memory() -> Tool {
    Tool {
        name: "query_memory",
        title: "Query the memory",
        about: "Find passages from earlier sessions, from the library of summaries and from all \
            that is known. Use it to recall a decision or a pattern from weeks ago; trust the \
            summaries in your window for what is recent.",
        fields: vec![
            Field::text("query", QUERY, "What to recall, in words")
                .required()
                .or(&["q", "text", "question", "search"]),
            Field::whole(
                "limit",
                1,
                50,
                "How many passages at the most; 5 unless you say",
            )
            .or(&["max_results", "top_k", "k", "n"]),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_query(served, call)),
    }
}

async fn run_query(served: &Served, call: Call) -> Result<Answer, Error> {
    let query = call.arguments.needed("query");
    let limit = call.arguments.whole("limit");
    served.index_files(&call.ctx).await;
    let root = served.root();
    let memory = &served.memory;
    let pages = wiring::pages(&served.config, &call.ctx, memory, &root).await?;
    let limit = limit.unwrap_or(LIMIT);
    let asked = library::query_memory(memory, pages.as_deref(), &call.ctx, &query, limit);
    let excerpts = asked.await?;
    if excerpts.is_empty() {
        return Answer::with("Nothing was found.", &json!({"found": 0, "excerpts": []}));
    }
    Answer::fit(call.tokens(), excerpts.len(), |room| {
        passages(&excerpts, room)
    })
}

fn passages(excerpts: &[Excerpt], room: Room) -> Result<Answer, Error> {
    let shown = || excerpts.iter().take(room.items);
    let texts = shown().map(|one| {
        let quoted = quote(&excerpt(&one.text, room.chars));
        format!("\n[{}]\n{quoted}", excerpt(&one.source, 200))
    });
    let left = excerpts.len() - shown().count();
    let rest = match left {
        0 => String::new(),
        _ => format!("\n[{left} more did not fit: ask for a larger max_tokens]\n"),
    };
    let data: Vec<Value> = shown()
        .map(|one| {
            json!({
                "source": excerpt(&one.source, 200),
                "text": excerpt(&one.text, room.chars),
                "score": (one.score * 1000.0).round() / 1000.0,
            })
        })
        .collect();
    let text = format!("{RECALLED}\n{}{rest}", texts.collect::<String>());
    let data = json!({
        "found": excerpts.len(), "left_out": left, "note": RECALLED, "excerpts": data,
    });
    Answer::with(text, &data)
}

fn record_to_memory() -> Tool {
    Tool {
        name: "record_to_memory",
        title: "Record to long-term memory",
        about: "Record important info to long-term memory. Use it when the user states a fact, a \
            preference or a decision that should be known in later sessions. Not for secrets, nor \
            for what memory has just told you.",
        fields: vec![
            Field::texts("content", 100, THING, "What to remember, one thing each")
                .required()
                .or(&["contents", "text", "memory", "facts", "info"]),
            Field::text("thinking", THING, "Why it is worth remembering")
                .or(&["reason", "thought"]),
            user(),
        ],
        touch: Touch::Adds,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_record(served, call)),
    }
}

/// What the tools of the long-term memory say when they have failed.
const FAILED: [&str; 5] = [
    "No content",
    "No valid",
    "No keywords",
    "Error recording",
    "Error retrieving",
];

fn check(said: String) -> Result<String, Error> {
    match FAILED.iter().any(|word| said.starts_with(word)) {
        true => Err(Invalid::new("memory", said).into()),
        false => Ok(said),
    }
}

/// The long-term memory of the user that a call names.
fn remembering(served: &Served, call: &Call) -> Remembering {
    let own = Arc::new(OwnLongTerm::new(served.memory.clone()));
    let owner = served.owner(call.arguments.text("user"));
    Remembering::new(own, owner, Mode::Agent)
}

async fn run_record(served: &Served, call: Call) -> Result<Answer, Error> {
    let thinking = call.arguments.text("thinking");
    let content = call.arguments.texts("content");
    let remembering = remembering(served, &call);
    let said = remembering.record_to_memory(&call.ctx, thinking.as_deref(), &content);
    let said = check(said.await)?;
    Answer::with(said, &json!({"recorded": content.len()}))
}

fn retrieve_from_memory() -> Tool {
    Tool {
        name: "retrieve_from_memory",
        title: "Retrieve from long-term memory",
        about: "Retrieve info from long-term memory. Use it when the user refers to something \
            from an earlier session, or before you answer a question about them.",
        fields: vec![
            Field::texts("keywords", 100, 1000, "What to look for")
                .required()
                .or(&["keyword", "query", "q", "text"]),
            user(),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_retrieve(served, call)),
    }
}

async fn run_retrieve(served: &Served, call: Call) -> Result<Answer, Error> {
    let keywords = call.arguments.texts("keywords");
    let remembering = remembering(served, &call);
    let said = remembering.retrieve_from_memory(&call.ctx, &keywords).await;
    let said = check(said)?;
    // The text in the mark holds no `<`: the first and the last mark are the ones around it.
    let (open, close) = (format!("<{MARK}>\n"), format!("\n</{MARK}>"));
    let inside = said.split_once(&open).and_then(|(head, rest)| {
        let (known, _) = rest.rsplit_once(&close)?;
        Some((head, known))
    });
    let Some((head, known)) = inside else {
        return Ok(Answer::text(said));
    };
    let quoted = quote(known);
    let (text, rest) = cut(&quoted, call.tokens().saturating_sub(TAIL_TOKENS * 3));
    let end = match rest {
        0 => String::new(),
        _ => format!("\n[cut: {rest} more characters; ask for a larger max_tokens]"),
    };
    let text = text.trim_end();
    Ok(Answer::text(format!(
        "{RECALLED}\n{head}{open}{text}{end}{close}"
    )))
}

fn context_reload() -> Tool {
    let uuid = "The uuid in the CONTEXT_OFFLOAD mark";
    Tool {
        name: "context_reload",
        title: "Reload what was offloaded",
        about: "Read back the messages that a CONTEXT_OFFLOAD mark in the conversation stands for. \
            Use it when a summary or a shortened message lacks a detail that you need. Never show \
            the uuid to the user.",
        fields: vec![
            Field::text("working_context_offload_uuid", 200, uuid)
                .required()
                .or(&["uuid", "id", "offload_uuid", "context_offload_uuid"]),
            session("The conversation that the mark stands in").required(),
            user(),
            Field::whole(
                "from",
                0,
                100_000,
                "The first message to show; 0 unless you say",
            )
            .or(&["offset", "start"]),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_reload(served, call)),
    }
}

async fn run_reload(served: &Served, call: Call) -> Result<Answer, Error> {
    let uuid = call.arguments.needed("working_context_offload_uuid");
    let chat = Chat {
        user: served.user(call.arguments.text("user")),
        session: call.arguments.needed("session"),
        ..Chat::default()
    };
    let from = call.arguments.whole("from").unwrap_or(0);
    let reloaded = chat.reload(&served.memory, &call.ctx, &uuid).await;
    let messages = reloaded.map_err(|error| match error {
        Error::Missing(_) => mnemon_engine::Error::NotThere(format!(
            "No messages found for UUID: {}, The context may have been cleared or the UUID is \
             invalid.",
            discreet(&uuid, 200)
        ))
        .into(),
        other => other,
    })?;
    let messages: Vec<String> = messages.iter().map(quoted_message).collect();
    Ok(page(&messages, from, call.tokens()))
}

/// As many messages as fit, from this one on, and where to go on.
fn page(messages: &[String], from: usize, tokens: usize) -> Answer {
    let room = tokens.saturating_sub(2 * TAIL_TOKENS);
    let mut text = format!("{RECALLED}\n");
    let mut used = super::super::answer::count(&text);
    let mut shown = 0;
    for message in messages.iter().skip(from) {
        let more = super::super::answer::count(message) + 1;
        if used + more > room && shown > 0 {
            break;
        }
        let (head, rest) = cut(message, room.saturating_sub(used));
        text.push_str(head);
        if rest > 0 {
            text.push_str(&format!(
                "\n[cut: {rest} more characters; ask for a larger max_tokens]\n"
            ));
        }
        used += more;
        shown += 1;
    }
    let next = from + shown;
    let left = messages.len().saturating_sub(next);
    if left > 0 {
        text.push_str(&format!(
            "\n[{left} more messages: call again with from = {next}]\n"
        ));
    }
    Answer::text(text).within(tokens)
}
