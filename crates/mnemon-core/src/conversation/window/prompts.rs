//! What a model is asked when it is to write a summary.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::predicates::output_text;
use super::{Change, Strategy};
use crate::model::{Block, Message, Role};
use crate::ports::llm::{Account, Prompt};

/// Tools that only keep a plan. The plan is told apart, so their calls are left out.
pub const PLAN_TOOLS: [&str; 10] = [
    "create_plan",
    "update_plan_info",
    "revise_current_plan",
    "update_subtask_state",
    "finish_subtask",
    "view_subtasks",
    "get_subtask_count",
    "finish_plan",
    "view_historical_plans",
    "recover_historical_plan",
];

/// What an agent's system prompt says about replaced messages.
pub const INSTRUCTIONS: &str = "\
Some earlier messages stand here as summaries or beginnings that end with <!-- CONTEXT_OFFLOAD uuid=... -->.
When you need what they replaced, call context_reload with that uuid as working_context_offload_uuid.
Never show these tags or uuids to the user, and never mention that they exist.";

const END: &str = "Above is the message list that needs to be compressed.";

const TOOLS: &str = "\
The messages below are calls of tools and what they gave back, from an earlier part of a conversation. \
Write down what was tried and what came of it, so that the conversation can go on without them. \
Keep names of tools, arguments that mattered, results, numbers, paths, ids, errors and how they were solved. \
Leave out what was repeated or led nowhere. Answer with the summary only.";
const ROUND: &str = "\
The messages below are one round of a conversation: a question, the work on it, and the answer. \
Write a summary of the work and the answer that can stand in their place. \
Keep decisions and their reasons, facts, names, numbers, dates, what tools found, and what is still open. \
Answer with the summary only.";
const LARGE: &str = "\
The message below is too long for the conversation it is part of. \
Write a shorter form that keeps every fact, name, number, path, error and decision that the work may still need. \
Answer with the shorter form only.";
const CURRENT: &str = "\
The messages below are the work of an agent on the question it was just asked, which is not finished. \
Write down where the work stands, so that the agent can go on from it alone: what was found, \
what was decided and why, exact names, values and paths, what failed, and what comes next. \
Answer with the summary only.";
const HISTORY: &str = "\
The messages below are the older part of a conversation. \
Write a summary from which both sides could go on: who wants what, what was decided and why, facts, names, \
numbers and dates, promises, and questions that are still open. Answer with the summary only.";

/// Prompts of your own; one that is missing or blank is ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prompts {
    pub tool_invocations: Option<String>,
    pub previous_rounds: Option<String>,
    pub current_large: Option<String>,
    pub current_round: Option<String>,
    pub history: Option<String>,
}

impl Prompts {
    /// The prompt for a strategy.
    pub fn of(&self, strategy: Strategy) -> &str {
        let (own, ours) = match strategy {
            Strategy::ToolInvocations => (&self.tool_invocations, TOOLS),
            Strategy::PreviousRounds => (&self.previous_rounds, ROUND),
            Strategy::CurrentLarge => (&self.current_large, LARGE),
            Strategy::CurrentRound => (&self.current_round, CURRENT),
            Strategy::HistoryPage
            | Strategy::History
            | Strategy::WholeHistory
            | Strategy::LargeProtected
            | Strategy::Large => (&self.history, HISTORY),
        };
        let own = own.as_deref().filter(|own| !own.trim().is_empty());
        own.unwrap_or(ours)
    }
}

/// The plan that an agent follows, for a summary that keeps what the plan needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    pub description: String,
    /// What is being worked on.
    pub current: Vec<String>,
    pub done: usize,
    pub total: usize,
    pub expected_outcome: Option<String>,
}

impl Plan {
    /// What a model is told of the plan.
    pub fn hint(&self) -> String {
        let mut lines = vec![format!("Goal: {}", self.description)];
        if !self.current.is_empty() {
            lines.push(format!("Current Progress: {}", self.current.join(", ")));
        }
        if self.total > 0 {
            let (done, total) = (self.done, self.total);
            lines.push(format!("Progress: {done}/{total} subtasks completed"));
        }
        if let Some(outcome) = &self.expected_outcome {
            lines.push(format!("Expected Outcome: {outcome}"));
        }
        let lines = lines.join("\n");
        format!("<plan_aware_hint>\n{lines}\n</plan_aware_hint>")
    }
}

/// How a summary is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub prompts: &'a Prompts,
    pub plan: Option<&'a Plan>,
}

impl Change {
    /// The messages that a summary is made from, out of the originals of what is offloaded.
    pub fn to_summarise(&self, originals: &[Message]) -> Vec<Message> {
        match self.strategy {
            Strategy::CurrentLarge => originals.iter().map(plain).collect(),
            _ => without_plan_tools(originals),
        }
    }

    /// What a model is asked about the originals. The caller says whom it is charged to.
    pub fn summary_prompt(&self, originals: &[Message], ask: Ask<'_>) -> Prompt {
        let user = |id: &str, text: &str| Message::text(id, Role::User, text);
        let mut list = vec![user("prompt", ask.prompts.of(self.strategy))];
        list.extend(self.to_summarise(originals));
        list.push(user("end", END));
        if self.strategy == Strategy::CurrentRound {
            list.push(user("length", &self.requirement()));
        }
        if let Some(plan) = ask.plan {
            list.push(user("plan", &plan.hint()));
        }
        let most = (self.summary_chars / 2).clamp(256, 8192);
        Prompt {
            account: Account::default(),
            system: None,
            messages: list,
            max_tokens: u32::try_from(most).unwrap_or(8192),
            schema: None,
        }
    }

    fn requirement(&self) -> String {
        let (all, target) = (self.original_chars, self.summary_chars);
        let percent = match all {
            0 => 0.0,
            _ => target as f64 * 100.0 / all as f64,
        };
        format!(
            "The messages have {all} characters. Write about {target} characters, \
             which is {percent:.0}% of them, and no more."
        )
    }
}

/// Only what can be read, without calls and results.
fn plain(message: &Message) -> Message {
    let mut said = vec![message.text_content()];
    said.extend(message.content.iter().filter_map(|block| match block {
        Block::ToolResult { output, .. } => Some(output_text(output)),
        _ => None,
    }));
    said.retain(|text| !text.is_empty());
    Message {
        content: vec![Block::Text {
            text: said.join("\n"),
        }],
        ..message.clone()
    }
}

/// The messages without the calls that only keep a plan, and without their results.
pub fn without_plan_tools(messages: &[Message]) -> Vec<Message> {
    let mut dropped: HashSet<&str> = HashSet::new();
    let mut kept = Vec::new();
    for message in messages {
        let before = message.content.len();
        let mut content = Vec::new();
        for block in &message.content {
            let plan = match block {
                Block::ToolUse { id, name, .. } => {
                    let plan = PLAN_TOOLS.contains(&name.as_str());
                    // An id that comes back may belong to another tool this time.
                    match plan {
                        true => dropped.insert(id),
                        false => dropped.remove(id.as_str()),
                    };
                    plan
                }
                Block::ToolResult { id, .. } => dropped.contains(id.as_str()),
                _ => false,
            };
            if !plan {
                content.push(block.clone());
            }
        }
        if !content.is_empty() || before == 0 {
            kept.push(Message {
                content,
                ..message.clone()
            });
        }
    }
    kept
}
