//! One summariser for windows and tiers: a model if there is one, or else the sentences that matter.

use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::llm::{Account, Llm, Prompt};
use mnemon_core::window::extract;
use mnemon_core::{Ctx, Message, Role, limits};

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
        }
    }

    async fn by_model(&self, texts: &[String], chars: usize) -> Option<String> {
        let (llm, account) = self.model.as_ref()?;
        let prompt = Prompt {
            account: account.clone(),
            system: Some(ASK.to_owned()),
            messages: vec![Message::text("texts", Role::User, texts.join("\n"))],
            max_tokens: u32::try_from((chars / 2).clamp(64, 2048)).unwrap_or(2048),
            schema: None,
        };
        let answer = llm.complete(&prompt).await.ok()?;
        let text = answer.text.trim().replace('\0', "");
        let most: usize = texts.iter().map(|text| text.chars().count()).sum();
        (!text.is_empty() && text.chars().count() < most).then_some(text)
    }
}

/// What a line of a log says, as a message: the extract tells who speaks from it.
fn message(text: &String) -> Message {
    let (role, said) = match text.split_once(": ") {
        Some(("User", said)) => (Role::User, said),
        Some(("Thought" | "Action", said)) => (Role::Assistant, said),
        Some(("Observation", said)) => (Role::Tool, said),
        _ => (Role::Assistant, text.as_str()),
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
        let messages: Vec<Message> = texts.iter().map(message).collect();
        Ok(extract(&messages, chars).replace('\0', ""))
    }
}
