//! What a scope answers, and how it is made to fit.

use mnemon_core::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::memory::MemoryPolicy;
use crate::memory::scopes::{
    DialogContext, FlowState, FoundDocument, FoundRule, FoundSkill, LoggedStep, Task, Trace, Turn,
};

/// What one scope has to say. No two scopes have the same fields, so that its JSON says which it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Payload {
    Dialog(DialogContext),
    State(StatePayload),
    Semantic {
        docs: Vec<FoundDocument>,
    },
    Procedural {
        skills: Vec<FoundSkill>,
        /// What failed before under the same circumstances.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<FoundRule>,
    },
    Profile {
        profile: Map<String, Value>,
        /// 0: there is none yet.
        version: u64,
    },
    Experience {
        failures: Vec<LoggedStep>,
        /// Begun, and not known how they ended.
        cancelled: Vec<LoggedStep>,
        traces: Vec<Trace>,
    },
}

/// Where a flow and its tasks stand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatePayload {
    pub state: Map<String, Value>,
    /// 0: there is none yet.
    pub version: u64,
    pub tasks: Vec<Task>,
    /// Tasks that can start now.
    pub startable: Vec<String>,
}

impl StatePayload {
    pub(crate) fn new(state: Option<FlowState>, tasks: crate::memory::TaskList) -> Self {
        let startable = tasks.startable().into_iter();
        let startable = startable.map(|task| task.id.clone()).collect();
        let (state, version) = match state {
            Some(saved) => (saved.state, saved.version),
            None => (Map::new(), 0),
        };
        Self {
            state,
            version,
            tasks: tasks.tasks,
            startable,
        }
    }
}

impl Payload {
    /// Leaves out what the policy has no room for, and says how many entries that were. What is
    /// worth most stays: of a dialog the summary, then the newest turns, then the facts.
    pub(crate) fn fit(&mut self, scope: Scope, policy: &MemoryPolicy) -> usize {
        let mut room = Room {
            items: policy.max_items.of(scope),
            tokens: policy.max_tokens.of(scope),
            dropped: 0,
        };
        if room.items.is_none() && room.tokens.is_none() {
            return 0;
        }
        match self {
            Self::Dialog(context) => {
                context.summary = context.summary.take().filter(|summary| room.take(summary));
                context.more |= room.keep_newest(&mut context.turns);
                room.keep(&mut context.facts);
            }
            Self::State(held) => {
                if !held.state.is_empty() && !room.take(&held.state) {
                    held.state.clear();
                }
                room.keep(&mut held.tasks);
                let tasks = &held.tasks;
                held.startable
                    .retain(|id| tasks.iter().any(|task| task.id == *id));
            }
            Self::Semantic { docs } => room.keep(docs),
            Self::Procedural { skills, rules } => {
                room.keep(skills);
                room.keep(rules);
            }
            Self::Profile { profile, .. } => profile.retain(|name, value| {
                let member = (name.as_str(), &*value);
                room.take(&member)
            }),
            Self::Experience {
                failures,
                cancelled,
                traces,
            } => {
                room.keep(traces);
                room.keep(failures);
                room.keep(cancelled);
            }
        }
        room.dropped
    }
}

/// What is left of a scope's share.
struct Room {
    items: Option<u64>,
    tokens: Option<u64>,
    dropped: usize,
}

impl Room {
    /// Whether there is room for this; if there is, it is used.
    fn take(&mut self, entry: &impl Serialize) -> bool {
        let weight = if self.tokens.is_some() {
            let text = serde_json::to_string(entry).unwrap_or_default();
            estimate(&text)
        } else {
            0
        };
        let fits = self.items != Some(0) && self.tokens.is_none_or(|left| weight <= left);
        if fits {
            self.items = self.items.map(|left| left - 1);
            self.tokens = self.tokens.map(|left| left - weight);
        } else {
            self.dropped += 1;
        }
        fits
    }

    /// The best first; one that is too large leaves its place to the next.
    fn keep<T: Serialize>(&mut self, entries: &mut Vec<T>) {
        entries.retain(|entry| self.take(entry));
    }

    /// The newest turns without a gap, and whether older ones were left out.
    fn keep_newest(&mut self, turns: &mut Vec<Turn>) -> bool {
        let mut kept = turns.len();
        for turn in turns.iter().rev() {
            if !self.take(turn) {
                break;
            }
            kept -= 1;
        }
        // One was counted when it was refused.
        self.dropped += kept.saturating_sub(1);
        turns.drain(..kept);
        kept > 0
    }
}

/// About how many tokens a text has: four letters of ASCII make one, every other character is
/// counted as one. Good enough for a cap; what must not exceed a budget is counted exactly where
/// a prompt is put together.
pub(crate) fn estimate(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    (ascii.div_ceil(4) + others) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("abcde"), 2);
        assert_eq!(estimate("記憶 ab"), 3);
    }

    #[test]
    fn one_that_is_too_large_leaves_its_place_to_the_next() {
        let mut room = Room {
            items: Some(2),
            tokens: Some(6),
            dropped: 0,
        };
        let mut texts = vec![
            "a".repeat(100),
            "b".to_owned(),
            "c".to_owned(),
            "d".to_owned(),
        ];
        room.keep(&mut texts);
        assert_eq!(texts, ["b", "c"]);
        assert_eq!(room.dropped, 2);
    }
}
