//! Answering questions from a context, and judging the answers.

use std::sync::Arc;

use mnemon_core::budget::{Compiled, Counter, Family};
use mnemon_core::llm::{Account, Completion, Llm, LlmError, Prompt};
use mnemon_core::{Ctx, Invalid, Message, Role, Time};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::dataset::{Dataset, Question};
use crate::config::{Config, Money};
use crate::{Error, api, wiring};

/// The model is asked to answer with these words; docs/evaluation.md has them, too.
const ANSWER_PROMPT: &str = include_str!("prompts/answer.txt");
/// The model is asked to judge an answer with these words.
const JUDGE_PROMPT: &str = include_str!("prompts/judge.txt");
const ANSWER_TOKENS: u32 = 512;
const JUDGE_TOKENS: u32 = 256;
/// The task under which calls are accounted.
const TASK: &str = "eval";

/// How questions are answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answering {
    /// Tokens of the context.
    pub context_tokens: usize,
    /// For a million tokens; by default the prices that are configured.
    pub input_price: Option<f64>,
    pub output_price: Option<f64>,
}

/// Tokens of some calls, as the model counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

/// How the questions were answered. Each recipe answers every question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerReport {
    pub model: String,
    pub context_tokens: usize,
    /// Answers that were judged.
    pub judged: usize,
    /// Answers and judgements that could not be used.
    pub failed: usize,
    pub answer_tokens: Tokens,
    pub judge_tokens: Tokens,
    /// Absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

#[derive(Deserialize)]
struct Verdict {
    right: bool,
}

/// A model that answers and judges, and its account.
pub(super) struct Answerer {
    llm: Arc<dyn Llm>,
    pub(super) counter: Box<dyn Counter>,
    account: Account,
    prices: Option<(f64, f64)>,
    report: AnswerReport,
}

impl Answerer {
    pub(super) fn new(
        config: &Config,
        ctx: &Ctx,
        how: Answering,
        dataset: &Dataset,
    ) -> Result<Self, Error> {
        let mut questions = dataset.conversations.iter().flat_map(|one| &one.questions);
        if !questions.any(|question| question.answer.is_some()) {
            let what = "the data set has no reference answers to judge by";
            return Err(Invalid::new("answer", what).into());
        }
        let llm = api::llm::configured(config)?;
        let price = |given: Option<f64>, configured: Money| {
            given.or((configured != Money(0)).then_some(configured.0 as f64 / 1e9))
        };
        let input = price(how.input_price, config.llm.input_price.value);
        let output = price(how.output_price, config.llm.output_price.value);
        Ok(Self {
            counter: wiring::counter(Family::of(llm.model()).family),
            account: Account::of(ctx, TASK),
            prices: (input.is_some() || output.is_some())
                .then(|| (input.unwrap_or_default(), output.unwrap_or_default())),
            report: AnswerReport {
                model: llm.model().to_owned(),
                context_tokens: how.context_tokens,
                judged: 0,
                failed: 0,
                answer_tokens: Tokens::default(),
                judge_tokens: Tokens::default(),
                cost: None,
            },
            llm,
        })
    }

    /// The budget of the context.
    pub(super) fn tokens(&self) -> usize {
        self.report.context_tokens
    }

    /// The answer, and whether it is right. An answer that cannot be used is counted and does not
    /// end the run; a model that cannot be reached does.
    pub(super) async fn answer(
        &mut self,
        question: &Question,
        context: &Compiled,
        today: Time,
    ) -> Result<(Option<String>, Option<bool>), Error> {
        let Some(reference) = &question.answer else {
            return Ok((None, None));
        };
        let today = today.to_string();
        let today = today.split('T').next().unwrap_or_default();
        let asked = format!(
            "Memory:\n\n{}\n\nToday is {today}.\n\nQuestion: {}",
            context.text, question.text
        );
        let prompt = self.prompt(ANSWER_PROMPT, asked, ANSWER_TOKENS);
        let answered = self.llm.complete(&prompt).await;
        let Some(answered) = self.usable(answered)? else {
            return Ok((None, None));
        };
        self.report.answer_tokens.add(&answered);
        let answer = answered.text.trim().to_owned();
        let judged = format!(
            "Question: {}\n\nReference answer: {reference}\n\nAnswer: {answer}",
            question.text
        );
        let prompt = Prompt {
            schema: Some(json!({
                "type": "object",
                "properties": {"right": {"type": "boolean"}},
                "required": ["right"],
            })),
            ..self.prompt(JUDGE_PROMPT, judged, JUDGE_TOKENS)
        };
        let judged = self.llm.complete(&prompt).await;
        let Some(judged) = self.usable(judged)? else {
            return Ok((Some(answer), None));
        };
        self.report.judge_tokens.add(&judged);
        let verdict: Option<Verdict> = serde_json::from_str(&judged.text).ok();
        match verdict {
            Some(_) => self.report.judged += 1,
            None => self.report.failed += 1,
        }
        Ok((Some(answer), verdict.map(|verdict| verdict.right)))
    }

    fn prompt(&self, system: &str, asked: String, max_tokens: u32) -> Prompt {
        Prompt {
            account: self.account.clone(),
            system: Some(system.trim().to_owned()),
            messages: vec![Message::text("question", Role::User, asked)],
            max_tokens,
            schema: None,
        }
    }

    fn usable(&mut self, done: Result<Completion, LlmError>) -> Result<Option<Completion>, Error> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(LlmError::BadAnswer { .. }) => {
                self.report.failed += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn into_report(mut self) -> AnswerReport {
        let (answers, judge) = (self.report.answer_tokens, self.report.judge_tokens);
        let cost = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        self.report.cost = self.prices.map(|(input, output)| {
            cost(answers.input + judge.input, input) + cost(answers.output + judge.output, output)
        });
        self.report
    }
}

impl Tokens {
    fn add(&mut self, done: &Completion) {
        self.input += done.input_tokens;
        self.output += done.output_tokens;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompts_are_documented() {
        let page = include_str!("../../../../../docs/evaluation.md");
        for prompt in [ANSWER_PROMPT, JUDGE_PROMPT] {
            let block = format!("```text\n{}\n```", prompt.trim());
            assert!(page.contains(&block), "docs/evaluation.md lacks:\n{block}");
        }
    }
}
