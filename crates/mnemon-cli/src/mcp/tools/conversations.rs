//! Tools for conversations: append to one, read its window, reload what it stands for.

use mnemon_core::{Fate, Invalid, Message, Outcome};
use mnemon_engine::longterm::Mode;
use serde_json::{Value, json};

use super::super::answer::{Answer, RECALLED, TAIL_TOKENS, count, cut, discreet, quoted_message};
use super::super::field::Field;
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use super::recall::{NAME, session, user};
use crate::Error;
use crate::api::chat::{Append, Chat, messages_of};

/// The text of a message, in characters.
const TEXT: usize = 1_000_000;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        append_to_conversation(),
        read_conversation(),
        context_reload(),
    ]
}

fn from_field() -> Field {
    let about = "The first message to show; default: 0";
    Field::whole("from", 0, 100_000, about).or(&["offset", "start"])
}

fn append_to_conversation() -> Tool {
    let message = "Instead of content: a whole message with role and content blocks \
        (text, thinking, tool_use, tool_result, image), for example a call of a tool";
    let roles: &[&str] = &["user", "assistant", "system", "tool"];
    Tool {
        name: "append_to_conversation",
        title: "Append to a conversation",
        about: "Append a message to a stored conversation. Use it after each turn, for the user's \
            message and for your answer; a conversation that does not exist is created.",
        fields: vec![
            session("The conversation's name").required(),
            Field::text("content", TEXT, "Text of the message")
                .or(&["text", "message_text"])
                .joined(),
            Field::choice("role", roles, "The speaker; default: user"),
            Field::text("name", NAME, "The speaker's name").or(&["speaker"]),
            Field::object("message", message),
            Field::text(
                "key",
                200,
                "Idempotency key: the same key adds a message once",
            ),
            user(),
        ],
        touch: Touch::Adds,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_append(served, call)),
    }
}

fn chat(served: &Served, call: &Call) -> Chat {
    Chat {
        user: served.user(call.arguments.text("user")),
        session: call.arguments.needed("session"),
        settings: served.config.window.value,
        ..Chat::default()
    }
}

async fn run_append(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let chat = chat(served, &call);
    let wrong = |what: &str| Invalid::new("content", what);
    let content = call.arguments.take_text("content");
    let json = match (call.arguments.take("message"), content) {
        (Some(_), Some(_)) => {
            return Err(wrong("is sent together with a message; send one of them").into());
        }
        (None, None) => {
            let what = "is missing: send `content`, the text, or `message`, a whole message";
            return Err(wrong(what).into());
        }
        (Some(message), None) => message,
        (None, Some(content)) => {
            let text = |name: &str| call.arguments.text(name).map(Value::String);
            json!({"role": text("role"), "content": content, "name": text("name")})
        }
    };
    let messages = messages_of(&call.ctx, json)?;
    let replied = messages
        .iter()
        .any(|message| message.role == mnemon_core::Role::Assistant);
    let key = call.arguments.text("key");
    let append = Append {
        messages,
        key: key.as_deref(),
        ..Append::default()
    };
    let done = chat.append(&served.memory, &call.ctx, append).await?;
    let recorded = replied && served.long_term != Mode::Agent;
    if recorded {
        let recorded = chat.record(&served.memory, &call.ctx, served.long_term);
        if let Err(error) = recorded.await {
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

fn read_conversation() -> Tool {
    Tool {
        name: "read_conversation",
        title: "Read a conversation",
        about: "Read the window of a conversation: its newest messages, and summaries in the place \
            of older ones. Use it to continue a conversation that began elsewhere or was \
            interrupted.",
        fields: vec![
            session("The conversation's name").required(),
            user(),
            from_field(),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_read(served, call)),
    }
}

async fn run_read(served: &Served, call: Call) -> Result<Answer, Error> {
    let chat = chat(served, &call);
    let prepared = chat.prepare(&served.memory, &call.ctx, served.long_term);
    Ok(page(&prepared.await?.messages, &call))
}

fn context_reload() -> Tool {
    let uuid = "The uuid in the CONTEXT_OFFLOAD mark";
    Tool {
        name: "context_reload",
        title: "Reload what was offloaded",
        about: "Read the messages that a CONTEXT_OFFLOAD mark in the conversation replaces. \
            Use it when a summary or a shortened message lacks a detail that you need. Never show \
            the uuid to the user.",
        fields: vec![
            Field::text("working_context_offload_uuid", 200, uuid)
                .required()
                .or(&["uuid", "id", "offload_uuid", "context_offload_uuid"]),
            session("Not needed: the uuid identifies the conversation"),
            user(),
            from_field(),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_reload(served, call)),
    }
}

async fn run_reload(served: &Served, call: Call) -> Result<Answer, Error> {
    let uuid = call.arguments.needed("working_context_offload_uuid");
    let user = served.user(call.arguments.text("user"));
    let Some(messages) = served.memory.reload(&call.ctx, &user, &uuid).await? else {
        let what = format!(
            "No messages found for UUID: {}, The context may have been cleared or the UUID is \
             invalid.",
            discreet(&uuid, 200)
        );
        return Err(mnemon_engine::Error::NotThere(what).into());
    };
    Ok(page(&messages, &call))
}

/// As many messages as fit, from the one that was asked for on, and where to go on.
fn page(messages: &[Message], call: &Call) -> Answer {
    let from = call.arguments.whole("from").unwrap_or(0);
    let room = call.tokens().saturating_sub(2 * TAIL_TOKENS);
    let mut text = format!("{RECALLED}\n");
    let mut used = count(&text);
    let mut shown = 0;
    for message in messages.iter().skip(from) {
        let message = quoted_message(message);
        let more = count(&message) + 1;
        if used + more > room && shown > 0 {
            break;
        }
        let (head, rest) = cut(&message, room.saturating_sub(used));
        text.push_str(head);
        if rest > 0 {
            text.push_str(&format!(
                "\n[cut: {rest} more characters; ask for a larger max_tokens]\n"
            ));
        }
        used += more;
        shown += 1;
    }
    if from > 0 && from >= messages.len() {
        let all = messages.len();
        text.push_str(&format!(
            "\n[from = {from} is beyond the end: there are {all} messages, numbered from 0]\n"
        ));
    }
    let next = from + shown;
    let left = messages.len().saturating_sub(next);
    if left > 0 {
        text.push_str(&format!(
            "\n[{left} more messages: call again with from = {next}]\n"
        ));
    }
    Answer::text(text).within(call.tokens())
}
