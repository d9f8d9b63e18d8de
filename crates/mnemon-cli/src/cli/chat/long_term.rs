//! `mnemon chat prepare|record`

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_engine::longterm::Mode;

use super::super::door::Door;
use super::super::shared::{Shared, Shown};
use super::super::text;
use super::messages::line;
use super::show::print_body;
use mnemon_operations::Error;
use mnemon_operations::api::chat::{Format, Remembered, RequestBody};
use mnemon_operations::operation::{ChatRead, MODES};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PrepareArgs {
    #[command(flatten)]
    conversation: Shared<ChatRead>,
    /// Print the request body for this provider
    #[arg(long, value_enum, value_name = "PROVIDER")]
    format: Option<Format>,
    /// Model in the request body; without it, the configured one
    #[arg(long, value_name = "NAME", requires = "format")]
    model: Option<String>,
}

pub(in crate::cli) fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(MODES.map(|(word, _)| word)).map(|word| {
        let mode = MODES.iter().find(|(known, _)| *known == word);
        mode.map_or(Mode::default(), |(_, mode)| *mode)
    })
}

pub(super) async fn prepare(args: PrepareArgs, door: &mut Door) -> Result<(), Error> {
    let prepared = args.conversation.call(door).await?;
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
    let names: Vec<&str> = prepared
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    match names.is_empty() {
        true => Ok(()),
        false => say!(door, "tools: {}", names.join(", ")),
    }
}

impl Shown for Remembered {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let count = text::count(self.messages as u64, "message");
        door.out.line(match self.recorded {
            true => format!("recorded: {count}"),
            false => "nothing was recorded: in agent mode the model records with its own tools"
                .to_owned(),
        })
    }
}
