//! `mnemon chat prepare|record`

use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_engine::longterm::Mode;

use super::super::door::Door;
use super::super::text;
use super::messages::line;
use super::show::print_body;
use super::{ConversationArgs, chat};
use crate::Error;
use crate::api::chat::{Format, RequestBody};

/// How long-term memory is used.
#[derive(Debug, clap::Args)]
struct ModeArgs {
    /// How long-term memory is used: static (added and recorded for the model), agent (the model
    /// calls tools), or both
    #[arg(long, value_parser = mode(), default_value = "both")]
    mode: Mode,
}

#[derive(Debug, clap::Args)]
pub(super) struct PrepareArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    #[command(flatten)]
    mode: ModeArgs,
    /// Print the request body for this provider
    #[arg(long, value_enum, value_name = "PROVIDER")]
    format: Option<Format>,
    /// Model in the request body; without it, the configured one
    #[arg(long, value_name = "NAME", requires = "format")]
    model: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    #[command(flatten)]
    mode: ModeArgs,
}

pub(in crate::cli) fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["static", "agent", "both"]).map(|word| match word.as_str() {
        "static" => Mode::Static,
        "agent" => Mode::Agent,
        _ => Mode::Both,
    })
}

pub(super) async fn prepare(args: PrepareArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
    let memory = Arc::new(door.memory()?);
    let prepared = chat.prepare(&memory, &door.ctx()?, args.mode.mode).await?;
    if let Some(format) = args.format {
        let model = args.model.or(door.config.llm.model.value.clone());
        let (messages, tools) = (&prepared.messages, &prepared.tools);
        let body = RequestBody::new(format, messages, tools, model.as_deref());
        return print_body(&body, door);
    }
    return_json!(door, &prepared);
    for message in &prepared.messages {
        door.out.line(text::clean(&line(message)))?;
    }
    let names: Vec<&str> = prepared.tools.iter().map(|tool| tool.name).collect();
    match names.is_empty() {
        true => Ok(()),
        false => door.out.line(format!("tools: {}", names.join(", "))),
    }
}

pub(super) async fn record(args: RecordArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
    let memory = Arc::new(door.memory()?);
    let done = chat.record(&memory, &door.ctx()?, args.mode.mode).await?;
    return_json!(door, &done);
    match done.recorded {
        true => {
            let count = text::count(done.messages as u64, "message");
            door.out.line(format!("recorded: {count}"))
        }
        false => door
            .out
            .line("nothing was recorded: in agent mode the model records with its own tools"),
    }
}
