use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_core::llm::{Completion, Llm, LlmError, Prompt};

/// How long every answer is said to have taken.
const TOOK_MS: u64 = 1500;

/// A model that answers by a script, and remembers what it was asked. When the script is at its
/// end it cannot be reached.
#[derive(Debug, Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Result<String, LlmError>>>,
    asked: Mutex<Vec<Prompt>>,
}

impl Scripted {
    /// Answers these, in order.
    #[must_use]
    pub fn answering(answers: &[&str]) -> Self {
        let llm = Self::default();
        for answer in answers {
            llm.then(Ok((*answer).to_owned()));
        }
        llm
    }

    /// Answers this after all that is planned so far.
    pub fn then(&self, answer: Result<String, LlmError>) {
        self.answers.lock().unwrap().push_back(answer);
    }

    /// What it was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Prompt> {
        self.asked.lock().unwrap().clone()
    }
}

fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

#[async_trait]
impl Llm for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn complete(&self, prompt: &Prompt) -> Result<Completion, LlmError> {
        self.asked.lock().unwrap().push(prompt.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        let model = || "scripted".to_owned();
        let text = answer.unwrap_or_else(|| {
            Err(LlmError::Unavailable {
                model: model(),
                what: "the script is at its end".to_owned(),
                source: None,
            })
        })?;
        if text.trim().is_empty() {
            let what = "an empty answer".to_owned();
            return Err(LlmError::BadAnswer {
                model: model(),
                what,
            });
        }
        let asked = prompt.messages.iter().map(|m| words(&m.text_content()));
        Ok(Completion {
            input_tokens: asked.sum(),
            output_tokens: words(&text),
            took_ms: TOOK_MS,
            text,
        })
    }
}
