//! Worlds in which it is easy to learn something misleading: a mandatory step that often fails,
//! steps in either order, a tool that was replaced, helper tools that are called all the time.

use std::collections::BTreeSet;

use mnemon_core::learn::{Act, Ended, Outcome, Run};
use serde_json::{Map, json};

use super::Maker;

/// What makes a world hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// Of a hundred runs so many die at one mandatory step; one success in ten goes without it.
    DiesAtAStep(usize),
    /// One step fails at first in so many of a hundred runs, and works when it is tried again.
    WorksOnRetry(usize),
    /// Two neighbouring steps, in one order in so many of a hundred runs, otherwise in the other.
    EitherOrder(usize),
    /// One tool was replaced by another, so many runs ago.
    Replaced(usize),
    /// The same, but each of these runs tries the old tool first, which fails.
    Broken(usize),
    /// Each run calls three helper tools eight to fifteen times.
    Chatty,
    /// Each run calls seven helper tools twenty to fifty times.
    VeryChatty,
    /// A step fails above a limit that no feature names, and works with a smaller number.
    AboveALimit,
    /// A tool that never works is tried first in so many of a hundred runs.
    WrongWay(usize),
}

/// Runs, and what somebody who knows the work would say about it.
#[derive(Debug, Clone)]
pub struct HardWorld {
    /// The oldest first.
    pub runs: Vec<(Run, Outcome)>,
    /// The orders of the true tools that are right.
    pub orders: Vec<Vec<String>>,
}

/// How what is active compares with what is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// One skill is active, and it is right.
    Exact,
    /// No skill is active, and no rule is wrong.
    Silent,
    /// Something is active that leads astray; says what.
    Misleading(String),
}

impl HardWorld {
    /// Judges what is active: the tools of each skill, and each rule's tool with its text.
    #[must_use]
    pub fn judge(&self, skills: &[Vec<String>], rules: &[(String, String)]) -> Verdict {
        let needed: BTreeSet<&String> = self.orders.iter().flatten().collect();
        for (tool, text) in rules {
            let turns_away = text.contains("avoid") || text.contains("it fails");
            if needed.contains(tool) && turns_away {
                return Verdict::Misleading(text.clone());
            }
            // A step that is done in any case replaces nothing.
            let next = needed
                .iter()
                .find(|tool| text.contains(&format!("use {tool} instead")));
            if next.is_some() {
                return Verdict::Misleading(text.clone());
            }
        }
        match skills {
            [] => Verdict::Silent,
            [only] if self.orders.contains(only) => Verdict::Exact,
            wrong => Verdict::Misleading(format!("{wrong:?}")),
        }
    }
}

/// Runs of a world, apart from those after a replacement.
const RUNS: usize = 60;
/// Runs of the old tool before it was replaced.
const BEFORE: usize = 40;
/// Of a hundred runs so many have a call in them that has nothing to do with the work.
const NOISE: usize = 15;

impl Maker {
    /// A world with this trap.
    pub fn with_trap(&mut self, trap: Trap) -> HardWorld {
        let long = 3 + self.dice.below(3);
        let tools = self.tools(long + 1);
        let (truth, spare) = tools.split_at(long);
        let spare = spare.first().cloned().unwrap_or_default();
        let at = self.dice.below(long - 1);
        let count = match trap {
            Trap::Replaced(since) | Trap::Broken(since) => BEFORE + since,
            _ => RUNS,
        };
        let mut runs = Vec::new();
        for number in 0..count {
            let (acts, outcome) = self.trapped(trap, truth, &spare, at, number);
            let acts = self.with_helpers(trap, acts);
            let mut run = self.run(number, acts);
            // What users put right makes a task worth learning.
            if let Some(first) = run.acts.first_mut().filter(|_| number % 20 == 7) {
                first.correction = Some("ask before you pay".to_owned());
            }
            runs.push((run, outcome));
        }
        let mut right = truth.to_vec();
        let mut orders = Vec::new();
        match trap {
            Trap::Replaced(_) | Trap::Broken(_) => right[at] = spare,
            Trap::EitherOrder(_) => {
                let mut other = right.clone();
                other.swap(at, at + 1);
                orders.push(other);
            }
            _ => {}
        }
        orders.push(right);
        HardWorld { runs, orders }
    }

    fn trapped(
        &mut self,
        trap: Trap,
        truth: &[String],
        spare: &str,
        at: usize,
        number: usize,
    ) -> (Vec<Act>, Outcome) {
        let mut order = truth.to_vec();
        if let Trap::EitherOrder(first) = trap
            && !self.percent(first)
        {
            order.swap(at, at + 1);
        }
        let new = number >= BEFORE;
        let mut acts = Vec::new();
        for (n, tool) in order.iter().enumerate() {
            if self.percent(NOISE / 3) {
                acts.push(self.chatter());
            }
            if n != at {
                acts.push(self.plain(tool, Ended::Done));
                continue;
            }
            match trap {
                Trap::DiesAtAStep(often) => {
                    if self.percent(often) {
                        acts.push(self.plain(tool, Ended::Failed));
                        return (acts, Outcome::Failure);
                    }
                    if self.percent(10) {
                        continue;
                    }
                }
                Trap::WorksOnRetry(often) if self.percent(often) => {
                    acts.push(self.plain(tool, Ended::Failed));
                }
                Trap::Replaced(_) if new => {
                    acts.push(self.plain(spare, Ended::Done));
                    continue;
                }
                Trap::Broken(_) if new => {
                    acts.push(self.plain(tool, Ended::Failed));
                    acts.push(self.plain(spare, Ended::Done));
                    continue;
                }
                Trap::AboveALimit => acts.extend(self.above_a_limit(tool)),
                Trap::WrongWay(often) if self.percent(often) => {
                    acts.push(self.plain(spare, Ended::Failed));
                }
                _ => {}
            }
            acts.push(self.plain(tool, Ended::Done));
        }
        (acts, Outcome::Success)
    }

    fn plain(&mut self, tool: &str, ended: Ended) -> Act {
        let mut input = Map::new();
        input.insert(
            "name".to_owned(),
            json!(format!("n{}", self.dice.below(9999))),
        );
        self.act(tool, ended, input)
    }

    /// In three of ten runs the number is too large at first.
    fn above_a_limit(&mut self, tool: &str) -> Option<Act> {
        let mut input = Map::new();
        input.insert("size".to_owned(), json!(500 + self.dice.below(5000)));
        self.percent(30)
            .then(|| self.act(tool, Ended::Failed, input))
    }

    /// Calls of helper tools between the steps, wherever they happen to be made.
    fn with_helpers(&mut self, trap: Trap, mut acts: Vec<Act>) -> Vec<Act> {
        let (kinds, least, most) = match trap {
            Trap::Chatty => (3, 8, 15),
            Trap::VeryChatty => (7, 20, 50),
            _ => return acts,
        };
        for _ in 0..least + self.dice.below(most - least + 1) {
            let helper = format!("helper_{}", self.dice.below(kinds));
            let act = self.plain(&helper, Ended::Done);
            let place = self.dice.below(acts.len() + 1);
            acts.insert(place, act);
        }
        acts
    }
}
