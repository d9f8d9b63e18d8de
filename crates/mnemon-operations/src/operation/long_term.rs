//! The tools by which a model records to long-term memory and retrieves from it. Their names,
//! fields and answers are those of the frameworks that models know them from.

use mnemon_engine::longterm::{self, Mode, RECORD, RETRIEVE, Remembering};

use serde::{Deserialize, Serialize};

use super::{Access, Arguments, Field, Operation, Record, Retrieve};
use crate::Error;

/// Texts in one call.
const MOST: usize = 100;
/// One text to record, in characters.
const TEXT: usize = 100_000;
/// One word to search for, in characters.
const KEYWORD: usize = 1000;

/// The long-term memory of the user that a call names.
fn remembering(access: &Access<'_>, arguments: &mut Arguments) -> Result<Remembering, Error> {
    let owner = access.owned(arguments.take_owner());
    owner.check()?;
    Ok(Remembering::new(
        longterm::of(access.memory),
        owner,
        Mode::Agent,
    ))
}

/// The tool's answer; an error only if the memory failed. "No content provided" is an answer: the
/// model reads it and goes on.
fn check(said: String) -> Result<String, Error> {
    match said.strip_prefix("Error ") {
        Some(_) => Err(Error::LongTerm(said)),
        None => Ok(said),
    }
}

fn user() -> Field {
    super::notes::user("The owner; default: the user of this server")
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// For the model.
    pub message: String,
    /// How many texts were recorded.
    pub recorded: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Retrieved {
    /// What is known, as a text for the model.
    pub text: String,
}

impl Operation for Record {
    const TOOL: &'static str = RECORD;
    type Answer = Recorded;

    fn fields() -> Vec<Field> {
        vec![
            Field::texts("content", MOST, TEXT, "Facts to remember, one per item")
                .required()
                .lenient()
                .or(&["contents", "text", "memory", "facts", "info"]),
            Field::text("thinking", TEXT, "Why it is worth remembering")
                .lenient()
                .or(&["reason", "thought"]),
            user(),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let (thinking, content) = (arguments.text("thinking"), arguments.texts("content"));
        let remembering = remembering(access, &mut arguments)?;
        let said = remembering.record_to_memory(access.ctx, thinking.as_deref(), &content);
        let recorded = content.iter().filter(|text| !text.trim().is_empty());
        Ok(Recorded {
            message: check(said.await)?,
            recorded: recorded.count(),
        })
    }
}

impl Operation for Retrieve {
    const TOOL: &'static str = RETRIEVE;
    type Answer = Retrieved;

    fn fields() -> Vec<Field> {
        vec![
            Field::texts("keywords", MOST, KEYWORD, "Words to search for")
                .required()
                .lenient()
                .or(&["keyword", "query", "q", "text"]),
            user(),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Retrieved, Error> {
        let keywords = arguments.texts("keywords");
        let remembering = remembering(access, &mut arguments)?;
        let said = remembering.retrieve_from_memory(access.ctx, &keywords);
        Ok(Retrieved {
            text: check(said.await)?,
        })
    }
}
