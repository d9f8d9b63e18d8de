//! Tools for conversations: append to one, read its window, reload what it stands for.

use mnemon_core::{Fate, Message, Outcome};
use mnemon_engine::longterm::Mode;
use serde_json::{Value, json};

use super::super::answer::{
    Answer, RECALLED, TAIL_TOKENS, count, cut, discreet, quote, speaker_and_text,
};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch};
use mnemon_operations::Error;
use mnemon_operations::operation::{ChatAppend, ChatRead, ChatRecord, ChatReload, mode_word};

const AGENT: &[Profile] = &[Profile::Agent];

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::of::<ChatAppend, _>(
            Touch::Adds,
            "Append to a conversation",
            "Append a message to a stored conversation. Use it after each turn, for the user's \
             message and for your answer; a conversation that does not exist is created.",
            AGENT,
            |served, call| Box::pin(append(served, call)),
        ),
        Tool::of::<ChatRead, _>(
            Touch::Reads,
            "Read a conversation",
            "Read the window of a conversation: its newest messages, and summaries in the place of \
             older ones. Use it to continue a conversation that began elsewhere or was interrupted.",
            AGENT,
            |served, call| Box::pin(read(served, call)),
        )
        .with_max_tokens(),
        Tool::of::<ChatReload, _>(
            Touch::Reads,
            "Reload what was offloaded",
            "Read the messages that a CONTEXT_OFFLOAD mark in the conversation replaces. Use it \
             when a summary or a shortened message lacks a detail that you need; the session need \
             not be named. Never show the uuid to the user.",
            AGENT,
            |served, call| Box::pin(reload(served, call)),
        )
        .with_max_tokens(),
    ]
}

async fn append(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let given = call.arguments.clone();
    let done = call.run::<ChatAppend>(served).await?;
    let recorded = done.has_reply && served.long_term != Mode::Agent;
    if recorded {
        call.arguments = given;
        call.arguments.set("mode", mode_word(served.long_term));
        if let Err(error) = call.run::<ChatRecord>(served).await {
            call.ctx.notices.add(error.to_string());
        }
    }
    let ids = done.receipt.items.iter().map(|item| item.id.to_string());
    let ids: Vec<String> = ids.collect();
    let by = done.events.iter().find_map(|event| event.summariser());
    if by.is_some_and(|by| by.contains("pending")) {
        served.refine_in_background()?;
    }
    let more = match done.compressed {
        true => " The window was compressed.",
        false => "",
    };
    let data =
        json!({"ids": ids, "compressed": done.compressed, "summariser": by, "recorded": recorded});
    let is_duplicate = |item: &Outcome| matches!(item.fate, Fate::Duplicate { .. });
    let done = match done.receipt.items.iter().all(is_duplicate) {
        true => "Already there:",
        false => "Appended",
    };
    Answer::with(format!("{done} {}.{more}", ids.join(", ")), &data)
}

async fn read(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let from = call.arguments.whole("from").unwrap_or(0);
    call.arguments.set("mode", mode_word(served.long_term));
    let prepared = call.run::<ChatRead>(served).await?;
    page(&prepared.messages, from, &call)
}

async fn reload(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let from = call.arguments.whole("from").unwrap_or(0);
    let uuid = call.arguments.needed("working_context_offload_uuid");
    let reloaded = call.run::<ChatReload>(served).await;
    let reloaded = reloaded.map_err(|error| match error {
        Error::NotReplaced => {
            let what = format!(
                "No messages found for UUID: {}, The context may have been cleared or the UUID is \
                 invalid.",
                discreet(&uuid, 200)
            );
            mnemon_engine::Error::NotThere(what).into()
        }
        error => error,
    })?;
    page(&reloaded.messages, from, &call)
}

/// As many messages as fit, from the one that was asked for on, and where to go on.
fn page(messages: &[Message], from: usize, call: &Call) -> Result<Answer, Error> {
    let room = call.text_tokens().saturating_sub(2 * TAIL_TOKENS);
    let mut text = format!("{RECALLED}\n");
    let mut used = count(&text);
    let mut rows: Vec<Value> = Vec::new();
    for message in messages.iter().skip(from) {
        let (role, said) = speaker_and_text(message);
        let quoted = format!("[{role}]\n{}", quote(&said));
        let more = count(&quoted) + 1;
        if used + more > room && !rows.is_empty() {
            break;
        }
        let (head, rest) = cut(&quoted, room.saturating_sub(used));
        text.push_str(head);
        if rest > 0 {
            text.push_str(&format!(
                "\n[cut: {rest} more characters; ask for a larger max_tokens]\n"
            ));
        }
        used += more;
        let kept = said.chars().count().saturating_sub(rest);
        rows.push(json!({"role": role, "content": said.chars().take(kept).collect::<String>()}));
    }
    if from > 0 && from >= messages.len() {
        let all = messages.len();
        text.push_str(&format!(
            "\n[from = {from} is beyond the end: there are {all} messages, numbered from 0]\n"
        ));
    }
    let next = from + rows.len();
    let left = messages.len().saturating_sub(next);
    if left > 0 {
        text.push_str(&format!(
            "\n[{left} more messages: call again with from = {next}]\n"
        ));
    }
    let mut data = json!({"messages": rows, "left_out": left, "note": RECALLED});
    if let (1.., Some(fields)) = (left, data.as_object_mut()) {
        fields.insert("next".to_owned(), json!(next));
    }
    Answer::with(text, &data)
}
