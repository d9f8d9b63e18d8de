//! The language model that is configured: whether it answers, and what it was used for.

use std::sync::Arc;

use mnemon_core::llm::{Account, Llm, Prompt};
use mnemon_core::{Ctx, Invalid, Message, Role};
use serde::Serialize;

use crate::Error;
use crate::config::Config;
use crate::wiring::{self, LlmAccount};

/// What is asked when nobody says.
pub const QUESTION: &str = "Answer with one word: what is the capital of France?";
/// Days of use that are shown when nobody says.
pub const DAYS: usize = 7;
/// Tokens of the answer.
const TOKENS: u32 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub model: String,
    pub answer: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// The model that is configured; an error if there is none.
pub fn configured(config: &Config) -> Result<Arc<dyn Llm>, Error> {
    let invalid = |what: String| Error::from(Invalid::new("llm", what));
    let what = "no language model is configured; write provider and model under [llm]";
    let llm = wiring::llm(config).map_err(invalid)?;
    llm.ok_or_else(|| invalid(what.to_owned()))
}

/// Asks the model something small, to see whether it answers.
pub async fn check(config: &Config, ctx: &Ctx, question: String) -> Result<Checked, Error> {
    let llm = configured(config)?;
    if question.trim().is_empty() {
        return Err(Invalid::new("question", "is empty").into());
    }
    let prompt = Prompt {
        account: Account::of(ctx, "check"),
        system: None,
        messages: vec![Message::text("question", Role::User, question)],
        max_tokens: TOKENS,
        schema: None,
    };
    let done = llm.complete(&prompt).await?;
    Ok(Checked {
        model: llm.model().to_owned(),
        answer: done.text,
        input_tokens: done.input_tokens,
        output_tokens: done.output_tokens,
    })
}

/// What the model was used for on the last days of use, by day, tenant and task; the newest first.
pub fn usage(config: &Config, days: usize) -> Result<Vec<LlmAccount>, Error> {
    let mut accounts = wiring::llm_accounts(config)?;
    let mut used: Vec<&str> = accounts.iter().map(|one| one.day.as_str()).collect();
    used.dedup();
    let last = used.get(days).map(|day| (*day).to_owned());
    if let Some(last) = last {
        accounts.retain(|one| one.day > last);
    }
    Ok(accounts)
}
