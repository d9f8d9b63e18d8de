//! One summariser for windows and tiers: a model if there is one, or else the sentences that matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use mnemon_core::llm::{Account, Llm, LlmError, Prompt};
use mnemon_core::window::extract;
use mnemon_core::{Ctx, Message, Notices, Role, limits};

use super::Summarise;

/// Of so many characters a summary keeps one, or fewer.
const SHRINK: usize = 3;
/// What the model is asked.
const ASK: &str = "Summarise the text below in one short paragraph. Keep decisions, names, numbers, \
                   open questions and what tools gave back. Answer with the summary alone.";

/// Makes one text from several, as the window of a conversation does.
#[derive(Clone, Default)]
pub struct Summariser {
    model: Option<(Arc<dyn Llm>, Account)>,
    /// Set when the model did not answer: then it is not asked again for the other parts.
    is_silent: Arc<AtomicBool>,
    notices: Notices,
}

impl Summariser {
    /// Without a model: the sentences that a reader would miss most. The same every time.
    #[must_use]
    pub fn extractive() -> Self {
        Self::default()
    }

    /// Asks this model, on the account of this call; without one, or without an answer that can be
    /// used, the sentences that matter most.
    #[must_use]
    pub fn with(llm: Option<Arc<dyn Llm>>, ctx: &Ctx) -> Self {
        let account = Account::of(ctx, "tiers");
        Self {
            model: llm.map(|llm| (llm, account)),
            is_silent: Arc::default(),
            notices: ctx.notices.clone(),
        }
    }

    async fn by_model(&self, texts: &[String], chars: usize) -> Option<String> {
        let (llm, account) = self.model.as_ref()?;
        if self.is_silent.load(Ordering::Relaxed) {
            return None;
        }
        let prompt = Prompt {
            account: account.clone(),
            system: Some(ASK.to_owned()),
            messages: vec![Message::text("texts", Role::User, texts.join("\n"))],
            max_tokens: u32::try_from((chars / 2).clamp(64, 2048)).unwrap_or(2048),
            schema: None,
        };
        let answer = match llm.complete(&prompt).await {
            Ok(answer) => answer,
            Err(error) => {
                let is_silent = !matches!(error, LlmError::BadAnswer { .. });
                self.is_silent.store(is_silent, Ordering::Relaxed);
                extracted(&self.notices, &error.to_string());
                return None;
            }
        };
        let text = answer.text.trim().replace('\0', "");
        let most: usize = texts.iter().map(|text| text.chars().count()).sum();
        let is_summary = !text.is_empty() && text.chars().count() < most;
        if !is_summary {
            extracted(&self.notices, "it is empty or no shorter than the text");
        }
        is_summary.then_some(text)
    }
}

/// Reports that sentences were extracted, since the model's summary could not be used.
fn extracted(notices: &Notices, why: &str) {
    notices.add(format!(
        "The summary was extracted from the text, not written by the language model: {why}."
    ));
}

/// What a line of a log says, as a message: the extract tells who speaks from it.
fn message(text: &str) -> Message {
    let (role, said) = match text.split_once(": ") {
        Some(("User", said)) => (Role::User, said),
        Some(("Thought" | "Action", said)) => (Role::Assistant, said),
        Some(("Observation", said)) => (Role::Tool, said),
        _ => (Role::Assistant, text),
    };
    Message::text("line", role, said)
}

#[async_trait]
impl Summarise for Summariser {
    async fn summarise(&self, texts: &[String]) -> Result<String, String> {
        let all: usize = texts.iter().map(|text| text.chars().count()).sum();
        let chars = (all / SHRINK).min(limits::WINDOW_SUMMARY_CHARS);
        if let Some(text) = self.by_model(texts, chars).await {
            return Ok(text);
        }
        let messages: Vec<Message> = texts.iter().map(|text| message(text)).collect();
        Ok(extract(&messages, chars).replace('\0', ""))
    }
}
