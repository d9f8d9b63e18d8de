//! Summaries, by a model or without one.

use mnemon_core::llm::{Account, LlmError};
use mnemon_core::window::{Ask, Change, extract};
use mnemon_core::{Ctx, Message, Notices, limits};

use super::Window;

/// A summary, and where it came from.
pub(super) struct Summary {
    pub(super) text: String,
    /// `extractive`, or the name of the model.
    pub(super) by: String,
    /// Why the model's own was not used.
    pub(super) refused: Option<String>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// How long the model took; without one it is as good as nothing.
    pub(super) took_ms: u64,
}

/// Reports that sentences were extracted, since the model's summary could not be used.
pub(super) fn extracted(notices: &Notices, why: &str) {
    notices.add(format!(
        "The summary was extracted from the text, not written by the language model: {why}."
    ));
}

impl Window<'_> {
    /// What the model says, if there is one and what it says can be used. One that did not answer is
    /// not asked again in the same compression: somebody is waiting.
    pub(super) async fn by_model(
        &self,
        ctx: &Ctx,
        change: &Change,
        messages: &[Message],
        silent: &mut Option<String>,
    ) -> Option<Result<Summary, String>> {
        let llm = self.llm.as_ref()?;
        if let Some(why) = silent {
            return Some(Err(why.clone()));
        }
        let ask = Ask {
            prompts: &self.prompts,
            plan: self.plan.as_ref(),
        };
        let mut prompt = change.summary_prompt(messages, ask);
        prompt.account = Account::of(ctx, "window");
        let answer = match llm.complete(&prompt).await {
            Ok(answer) => answer,
            Err(error) => {
                if !matches!(error, LlmError::BadAnswer { .. }) {
                    *silent = Some(error.to_string());
                }
                return Some(Err(error.to_string()));
            }
        };
        // A record holds no NUL.
        let text = answer.text.replace('\0', "");
        let text = text.trim();
        let chars = text.chars().count();
        let most = change.original_chars.min(limits::SUMMARY_BYTES);
        if text.is_empty() {
            return Some(Err("the summary was empty".to_owned()));
        }
        if chars >= most {
            let what = format!("the summary had {chars} characters, what it was made from {most}");
            return Some(Err(what));
        }
        Some(Ok(Summary {
            text: text.to_owned(),
            by: llm.model().to_owned(),
            refused: None,
            input_tokens: answer.input_tokens,
            output_tokens: answer.output_tokens,
            took_ms: answer.took_ms,
        }))
    }

    /// The sentences that matter most.
    pub(super) fn by_extract(
        &self,
        change: &Change,
        messages: &[Message],
        refused: Option<String>,
    ) -> Summary {
        let text = extract(&change.to_summarise(messages), change.summary_chars);
        Summary {
            text: text.replace('\0', ""),
            by: "extractive".to_owned(),
            refused,
            input_tokens: 0,
            output_tokens: 0,
            took_ms: 0,
        }
    }
}
