//! Tools for what is known about a task and a user.

use mnemon_engine::Passage;
use mnemon_engine::longterm::NAME as MARK;
use serde_json::json;

use super::super::answer::{
    Answer, MAX_TOKENS, RECALLED, Room, TAIL_TOKENS, cut, excerpt, quote, recalled,
};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch};
use mnemon_operations::Error;
use mnemon_operations::operation::{ChatQuery, Context, Record, Retrieve, Shape};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        memory_context(),
        Tool::of::<ChatQuery, _>(
            Touch::Reads,
            "Query the memory",
            "Find passages in the user's earlier conversations and their summaries, in the \
             project's pages, and in all facts, notes and documents that the user may see. Use it \
             to recall a decision or a pattern from weeks ago; trust the summaries in your window \
             for what is recent.",
            &[Profile::Agent],
            |served, call| Box::pin(query(served, call)),
        )
        .with_max_tokens(),
        Tool::of::<Record, _>(
            Touch::Adds,
            "Record to long-term memory",
            "Record important info to long-term memory. Use it when the user states a fact, a \
             preference or a decision that should be known in later sessions. Not for secrets, nor \
             for text that came from memory.",
            &[Profile::Agent],
            |served, call| Box::pin(record(served, call)),
        ),
        Tool::of::<Retrieve, _>(
            Touch::Reads,
            "Retrieve from long-term memory",
            "Retrieve info from long-term memory. Use it when the user refers to something from an \
             earlier session, or before you answer a question about them.",
            &[Profile::Agent],
            |served, call| Box::pin(retrieve(served, call)),
        )
        .with_max_tokens(),
    ]
}

fn memory_context() -> Tool {
    let mut tool = Tool::of::<Context, _>(
        Touch::Reads,
        "Context for a prompt",
        "Load everything known for a task (profile, recent turns, facts, documents, skills) within \
         a token budget. Use it once, at the start of a task.",
        &[Profile::Small, Profile::Notes, Profile::Agent],
        |served, call| Box::pin(context(served, call)),
    );
    for field in &mut tool.fields {
        // The answer of a tool is shorter than a prompt may be.
        if let Shape::Whole { min, max } = &mut field.shape {
            (*min, *max) = (100, MAX_TOKENS as u64);
        }
    }
    tool
}

async fn context(served: &Served, mut call: Call) -> Result<Answer, Error> {
    call.progress
        .tell(0, 2, "reading the files of agents")
        .await;
    served.index_files(&call.ctx).await;
    call.progress.tell(1, 2, "reading the memory").await;
    if !call.arguments.has("agent") {
        call.arguments.set("agent", "mcp");
    }
    if call.has_schema {
        call.arguments.set("budget", call.text_tokens());
    }
    let made = call.run::<Context>(served).await?;
    call.progress.tell(2, 2, "done").await;
    let text = made.context.compiled.text;
    let text = match text.trim() {
        "" => match made.needs {
            Some(needs) => {
                let needs = if call.has_schema {
                    needs * 5 / 2 + 1
                } else {
                    needs
                };
                format!("Nothing fits: the first item needs a budget of {needs}.")
            }
            None => "Nothing is known about this yet.".to_owned(),
        },
        _ => text,
    };
    Ok(Answer::prose(text, &call))
}

async fn query(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let found = call.run::<ChatQuery>(served).await?.passages;
    if found.is_empty() {
        return Answer::with("Nothing was found.", &json!({"passages": []}));
    }
    Answer::fit(&call, found.len(), |room| passages(&found, room))
}

fn passages(passages: &[Passage], room: Room) -> Result<Answer, Error> {
    let shown = || passages.iter().take(room.items);
    let texts = shown().map(|one| {
        let quoted = quote(&excerpt(&one.text, room.chars));
        format!("\n[{}]\n{quoted}", excerpt(&one.source, 200))
    });
    let left = passages.len() - shown().count();
    let data = shown().map(|one| Passage {
        source: excerpt(&one.source, 200),
        text: excerpt(&one.text, room.chars),
        score: (one.score * 1000.0).round() / 1000.0,
        ..one.clone()
    });
    let data: Vec<Passage> = data.collect();
    let data = json!({"passages": data, "left_out": left, "note": RECALLED});
    Answer::with(recalled(texts, left), &data)
}

async fn record(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<Record>(served).await?;
    Answer::with(done.message, &json!({ "recorded": done.recorded }))
}

async fn retrieve(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let said = call.run::<Retrieve>(served).await?.text;
    // The text in the mark holds no `<`: the first and the last mark are the ones around it.
    let (open, close) = (format!("<{MARK}>\n"), format!("\n</{MARK}>"));
    let inside = said.split_once(&open).and_then(|(head, rest)| {
        let (known, _) = rest.rsplit_once(&close)?;
        Some((head, known))
    });
    let Some((head, known)) = inside else {
        return Ok(Answer::prose(said, &call));
    };
    let quoted = quote(known);
    let (text, rest) = cut(&quoted, call.text_tokens().saturating_sub(TAIL_TOKENS * 3));
    let end = match rest {
        0 => String::new(),
        _ => format!("\n[cut: {rest} more characters; ask for a larger max_tokens]"),
    };
    let text = text.trim_end();
    let text = format!("{RECALLED}\n{head}{open}{text}{end}{close}");
    Ok(Answer::prose(text, &call))
}
