//! Tools for what is known about a task and a user.

use std::sync::Arc;

use mnemon_core::limits;
use mnemon_engine::Passage;
use mnemon_engine::longterm::{Mode, NAME as MARK, OwnLongTerm, Remembering};
use serde_json::{Value, json};

use super::super::answer::{Answer, RECALLED, Room, TAIL_TOKENS, cut, excerpt, quote};
use super::super::field::Field;
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use crate::operation::{Context, Operation, Shape};
use crate::{Error, api, wiring};

/// A user, a session or an agent, in characters.
pub(super) const NAME: usize = limits::NAME_CHARS;
/// A query, in characters.
pub(super) const QUERY: usize = 10_000;
/// One thing to record, in characters.
const THING: usize = 100_000;

pub(super) fn user() -> Field {
    let about = "The owner; default: the user of this server";
    let field = Field::text("user", NAME, about).value("NAME");
    field.or(&["user_id"]).lenient().rare()
}

pub(super) fn session(about: &'static str) -> Field {
    Field::text("session", NAME, about).or(&["session_id", "conversation", "conversation_id"])
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        memory_context(),
        query_memory(),
        record_to_memory(),
        retrieve_from_memory(),
    ]
}

fn memory_context() -> Tool {
    let mut fields = Context::fields();
    for field in &mut fields {
        // The answer of a tool is shorter than a prompt may be.
        if let Shape::Whole { min, max } = &mut field.shape {
            (*min, *max) = (100, super::super::answer::MAX_TOKENS as u64);
        }
    }
    Tool {
        name: Context::TOOL,
        title: "Context for a prompt",
        about: "Load everything known for a task (profile, recent turns, facts, documents, \
            skills) within a token budget. Use it once, at the start of a task.",
        fields,
        touch: Touch::Reads,
        profiles: &[Profile::Small, Profile::Notes, Profile::Agent],
        run: |served, call| Box::pin(run_context(served, call)),
    }
}

async fn run_context(served: &Served, mut call: Call) -> Result<Answer, Error> {
    call.progress
        .tell(0, 2, "reading the files of agents")
        .await;
    served.index_files(&call.ctx).await;
    call.progress.tell(1, 2, "reading the memory").await;
    if !call.arguments.has("agent") {
        call.arguments.set("agent", "mcp");
    }
    let made = call.run::<Context>(served).await?;
    call.progress.tell(2, 2, "done").await;
    let text = made.context.compiled.text;
    Ok(match text.trim() {
        "" => Answer::text(match made.needs {
            Some(needs) => format!("Nothing fits: the first item needs a budget of {needs}."),
            None => "Nothing is known about this yet.".to_owned(),
        }),
        _ => Answer::text(text),
    })
}

fn query_memory() -> Tool {
    Tool {
        name: "query_memory",
        title: "Query the memory",
        about: "Find passages in the user's earlier conversations and their summaries, in the \
            project's pages, and in all facts, notes and documents that the user may see. Use it \
            to recall a decision or a pattern from weeks ago; trust the summaries in your window \
            for what is recent.",
        fields: vec![
            Field::text("query", QUERY, "Words or a question to search for")
                .required()
                .or(&["q", "text", "question", "search"]),
            Field::whole("limit", 1, 50, "Maximum number of passages; default: 5").or(&[
                "max_results",
                "top_k",
                "k",
                "n",
            ]),
            user(),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_query(served, call)),
    }
}

async fn run_query(served: &Served, call: Call) -> Result<Answer, Error> {
    let request = api::query::Request {
        viewer: served.viewer(call.arguments.text("user")),
        text: call.arguments.needed("query"),
        limit: call.arguments.whole("limit").unwrap_or(api::query::LIMIT),
        project: None,
    };
    let (config, memory) = (&served.config, &served.memory);
    let root = served.root();
    let pages = match root.is_dir() {
        true => Some(wiring::pages(config, &call.ctx, memory, &root).await?),
        false => None,
    };
    if let Some(pages) = &pages {
        served.read_files_into(&call.ctx, pages).await;
    }
    let found = api::query::run(memory, &call.ctx, &request, pages.as_deref()).await?;
    if found.is_empty() {
        return Answer::with("Nothing was found.", &json!({"found": 0, "excerpts": []}));
    }
    Answer::fit(&call, found.len(), |room| passages(&found, room))
}

fn passages(excerpts: &[Passage], room: Room) -> Result<Answer, Error> {
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
            for text that came from memory.",
        fields: vec![
            Field::texts("content", 100, THING, "Facts to remember, one per item")
                .required()
                .lenient()
                .or(&["contents", "text", "memory", "facts", "info"]),
            Field::text("thinking", THING, "Why it is worth remembering")
                .lenient()
                .or(&["reason", "thought"]),
            user(),
        ],
        touch: Touch::Adds,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_record(served, call)),
    }
}

/// The tool's answer; an error only if the memory failed. "No content provided" is an answer: the
/// model reads it and goes on.
fn check(said: String) -> Result<String, Error> {
    match said.strip_prefix("Error ") {
        Some(_) => Err(Error::LongTerm(said)),
        None => Ok(said),
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
    let recorded = content.iter().filter(|text| !text.trim().is_empty());
    Answer::with(said, &json!({"recorded": recorded.count()}))
}

fn retrieve_from_memory() -> Tool {
    Tool {
        name: "retrieve_from_memory",
        title: "Retrieve from long-term memory",
        about: "Retrieve info from long-term memory. Use it when the user refers to something \
            from an earlier session, or before you answer a question about them.",
        fields: vec![
            Field::texts("keywords", 100, 1000, "Words to search for")
                .required()
                .lenient()
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
