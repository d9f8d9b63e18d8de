//! Asks the language model something small, to see whether it answers.

use mnemon_core::llm::{Account, Prompt};
use mnemon_core::{Ctx, Invalid, Message, Role};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::{Error, wiring};

/// What is asked when nobody says.
pub const QUESTION: &str = "Answer with one word: what is the capital of France?";
/// Tokens of the answer.
const TOKENS: u32 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub question: String,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            question: QUESTION.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub model: String,
    pub answer: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

pub async fn run(config: &Config, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let invalid = |what: String| Error::from(Invalid::new("llm", what));
    let llm = wiring::llm(config).map_err(invalid)?;
    let Some(llm) = llm else {
        let what = "no language model is configured; write provider and model under [llm]";
        return Err(invalid(what.to_owned()));
    };
    if request.question.trim().is_empty() {
        return Err(Invalid::new("question", "is empty").into());
    }
    let prompt = Prompt {
        account: Account::of(ctx, "check"),
        system: None,
        messages: vec![Message::text("question", Role::User, request.question)],
        max_tokens: TOKENS,
        schema: None,
    };
    let done = llm.complete(&prompt).await?;
    Ok(Response {
        model: llm.model().to_owned(),
        answer: done.text,
        input_tokens: done.input_tokens,
        output_tokens: done.output_tokens,
    })
}
