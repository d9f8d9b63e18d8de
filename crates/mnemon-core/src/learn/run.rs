//! What became of one trace.

use serde::{Deserialize, Serialize};

use super::{Act, Ended};
use crate::error::words;
use crate::model::{Audience, Id, Time, limits};

words! {
    /// How a run ended.
    Outcome, "outcome" {
        Success = "success",
        Failure = "failure",
        /// Nobody brought it to an end: its last step was cancelled, or it never stopped.
        Abandoned = "abandoned",
    }
}

/// The steps of one trace that were taken for one type of task, in the order they were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The record that keeps it.
    pub id: Id,
    pub task_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Who may see it. The record that keeps the run says so, not the run itself.
    #[serde(skip, default = "everyone")]
    pub audience: Audience,
    pub acts: Vec<Act>,
    /// Steps that were left out because there were too many.
    #[serde(default)]
    pub left_out: usize,
    /// How it ended, if somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Outcome>,
    /// When its last step was written.
    pub last: Time,
    /// The `seq` of its last step: runs come in this order, whatever clocks say.
    #[serde(default)]
    pub order: u64,
}

fn everyone() -> Audience {
    Audience::Everyone
}

impl Run {
    /// A run of which nothing is known yet.
    pub fn new(id: Id, task_type: &str, last: Time) -> Self {
        Self {
            id,
            task_type: task_type.to_owned(),
            trace: None,
            audience: Audience::Everyone,
            acts: Vec::new(),
            left_out: 0,
            said: None,
            last,
            order: 0,
        }
    }

    /// Adds a step, or what became of one that was known already: it then counts as written last.
    /// Order is that of writing, so a clock that goes backwards changes nothing.
    pub fn add(&mut self, act: Act, said: Option<Outcome>, written: Time) {
        let known = self.acts.iter().position(|known| known.id == act.id);
        if let Some(at) = known {
            self.acts.remove(at);
        }
        if self.acts.len() < limits::RUN_STEPS {
            self.acts.push(act);
        } else {
            self.left_out += 1;
        }
        self.said = said.or(self.said);
        self.last = self.last.max(written);
    }

    /// How it ended; `None` while it may still go on. Silence for `settle_ms` ends it, and so does
    /// somebody who says how it ended. Otherwise its last step decides: what failed on the way was
    /// overcome.
    pub fn outcome(&self, now: Time, settle_ms: i64) -> Option<Outcome> {
        if self.said.is_some() {
            return self.said;
        }
        if self.last.plus_millis(settle_ms) > now {
            return None;
        }
        Some(match self.acts.last().map(|act| act.ended) {
            _ if self.left_out > 0 => Outcome::Abandoned,
            Some(Ended::Done) => Outcome::Success,
            Some(Ended::Failed) => Outcome::Failure,
            Some(Ended::Cancelled) | None => Outcome::Abandoned,
        })
    }

    /// The tools that did their work, in order.
    pub fn done(&self) -> Vec<&str> {
        let done = self.acts.iter().filter(|act| act.ended == Ended::Done);
        done.filter_map(|act| act.tool.as_deref()).collect()
    }

    /// The tools that were tried, in order.
    pub fn tried(&self) -> Vec<&str> {
        let acts = self.acts.iter();
        acts.filter_map(|act| act.tool.as_deref()).collect()
    }

    /// Words of what was asked for: those of the first step that says so, else of what the first
    /// step was called with.
    pub fn words(&self) -> &[String] {
        let said = self.acts.iter().find(|act| act.asked);
        let first = said.or(self.acts.first());
        first.map_or(&[], |act| act.words.as_slice())
    }

    /// Whether somebody said what was asked for.
    pub fn is_asked(&self) -> bool {
        self.acts.iter().any(|act| act.asked)
    }

    /// How long its steps took together.
    pub fn latency_ms(&self) -> u64 {
        let known = self.acts.iter().filter_map(|act| act.latency_ms);
        known.fold(0, u64::saturating_add)
    }

    /// What its steps cost together.
    pub fn cost(&self) -> f64 {
        self.acts.iter().filter_map(|act| act.cost).sum()
    }
}
