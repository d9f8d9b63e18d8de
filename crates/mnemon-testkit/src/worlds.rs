//! Worlds to learn from, made up by a seed: tools, a true procedure or none, noise, flaky steps,
//! mistakes, decoys. What is true in them is known, so that what was learnt can be held against it.

mod hard;

use std::collections::BTreeMap;

use mnemon_core::learn::{Act, Condition, Ended, Outcome, Run, error_class};
use mnemon_core::{Id, Time};
use serde_json::{Map, Value, json};

use crate::make::at;
use crate::talks::Dice;

pub use hard::{HardWorld, Trap, Verdict};

/// The type of task of every world.
pub const TASK: &str = "ship_parcel";

/// How a world is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Runs that succeed.
    pub successes: usize,
    /// Of a hundred runs so many go another way, and before so many of a hundred steps something
    /// is done that has nothing to do with it.
    pub noise: usize,
    /// Of a hundred steps so many fail for no reason and are done again.
    pub flaky: usize,
    /// Of a hundred steps with a parameter that must have one value so many are tried with
    /// another one first. What nobody gets wrong is not worth learning.
    pub mistakes: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            successes: 20,
            noise: 10,
            flaky: 8,
            mistakes: 15,
        }
    }
}

/// What was lived through, and what is true.
#[derive(Debug, Clone)]
pub struct World {
    /// The oldest first.
    pub runs: Vec<(Run, Outcome)>,
    /// The tools of the true procedure and the parameters that never vary; empty if there is none.
    pub truth: Vec<(String, BTreeMap<String, String>)>,
    /// The tool and the cause that was planted.
    pub cause: Option<(String, Condition)>,
}

impl World {
    /// The tools of the true procedure.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.truth.iter().map(|(tool, _)| tool.clone()).collect()
    }
}

const VERBS: [&str; 6] = ["get", "make", "send", "check", "load", "mark"];
const NOUNS: [&str; 5] = ["label", "order", "box", "rate", "file"];
const CHATTER: [&str; 4] = ["ls", "note_down", "look_up", "wait_a_bit"];
const ERRORS: [&str; 3] = [
    "timeout after 30 s",
    "connection to 10.0.0.7 was reset",
    "HTTP 503 from https://example.org/api",
];

/// Makes worlds, one after the other.
pub struct Maker {
    dice: Dice,
    count: u64,
}

/// One step of what is true.
#[derive(Debug, Clone)]
struct Move {
    tool: String,
    constant: BTreeMap<String, String>,
    varying: Vec<String>,
}

impl Maker {
    /// The same seed makes the same worlds.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(seed));
        // Neighbouring seeds begin alike otherwise.
        for _ in 0..4 {
            dice.below(2);
        }
        Self { dice, count: 0 }
    }

    fn percent(&mut self, of_hundred: usize) -> bool {
        self.dice.below(100) < of_hundred
    }

    fn id(&mut self, sort: &str) -> Id {
        self.count += 1;
        format!("{sort}-{}", self.count).parse().unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.dice.below(from.len())]
    }

    fn tools(&mut self, many: usize) -> Vec<String> {
        let mut tools: Vec<String> = Vec::new();
        while tools.len() < many {
            let tool = format!("{}_{}", self.pick(&VERBS), self.pick(&NOUNS));
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        tools
    }

    fn truth(&mut self) -> Vec<Move> {
        let long = 3 + self.dice.below(5);
        let mut tools = self.tools(long);
        // Now and then the same tool twice, with something else to do.
        if self.percent(30) {
            tools[long - 1] = tools[0].clone();
        }
        let moves = tools.into_iter().enumerate();
        let moves: Vec<(usize, String)> = moves.collect();
        moves
            .into_iter()
            .map(|(n, tool)| Move {
                tool,
                constant: (0..self.dice.below(3).max(usize::from(n < 2)))
                    .map(|k| (format!("fix{k}"), format!("value-{n}-{k}")))
                    .collect(),
                varying: (0..self.dice.below(3)).map(|k| format!("var{k}")).collect(),
            })
            .collect()
    }

    fn input(&mut self, step: &Move) -> Map<String, Value> {
        let mut input = Map::new();
        for (name, value) in &step.constant {
            input.insert(name.clone(), json!(value));
        }
        for name in &step.varying {
            input.insert(
                name.clone(),
                json!(format!("v{}", self.dice.below(1_000_000))),
            );
        }
        input
    }

    fn act(&mut self, tool: &str, ended: Ended, input: Map<String, Value>) -> Act {
        let act = Act::new(self.id("step"), Some(tool), ended).called_with(&Value::Object(input));
        let error = match ended {
            Ended::Failed => {
                let error: &str = ERRORS[self.dice.below(ERRORS.len())];
                Some(error_class(error))
            }
            _ => None,
        };
        Act {
            error,
            latency_ms: Some(self.dice.below(2000) as u64),
            ..act
        }
    }

    fn run(&mut self, number: usize, acts: Vec<Act>) -> Run {
        let written = at(number as i64 * 60_000);
        let mut run = Run::new(self.id("run"), TASK, written);
        run.trace = Some(format!("trace-{number}"));
        for act in acts {
            run.add(act, None, written);
        }
        run
    }

    /// Something that has nothing to do with it.
    fn chatter(&mut self) -> Act {
        let tool = *self.pick(&CHATTER);
        let mut input = Map::new();
        input.insert("what".to_owned(), json!(self.dice.below(1000)));
        self.act(tool, Ended::Done, input)
    }

    /// A step as it happens: now and then after a failure for no reason, or after a mistake.
    fn happens(&mut self, step: &Move, plan: Plan) -> Vec<Act> {
        let mut acts = Vec::new();
        if self.percent(plan.noise) {
            acts.push(self.chatter());
        }
        let input = self.input(step);
        if self.percent(plan.flaky) {
            acts.push(self.act(&step.tool, Ended::Failed, input.clone()));
        }
        if !step.constant.is_empty() && self.percent(plan.mistakes) {
            let mut wrong = input.clone();
            wrong.insert("fix0".to_owned(), json!("something else"));
            acts.push(self.act(&step.tool, Ended::Failed, wrong));
        }
        acts.push(self.act(&step.tool, Ended::Done, input));
        acts
    }

    /// A run that succeeds, mostly by the true procedure.
    fn success(&mut self, truth: &[Move], others: &[String], plan: Plan) -> Vec<Act> {
        let mut steps = truth.to_vec();
        if self.percent(plan.noise) {
            let at = self.dice.below(steps.len() - 1);
            match self.dice.below(3) {
                0 => {
                    steps.remove(at);
                }
                1 => steps.swap(at, at + 1),
                _ => return self.wander(others, 3, 8, 0),
            }
        }
        let mut acts = Vec::new();
        for step in &steps {
            acts.extend(self.happens(step, plan));
        }
        // A decoy: nearly always there, at no place in particular.
        if self.percent(85) {
            let place = self.dice.below(acts.len() + 1);
            let decoy = self.act("log_progress", Ended::Done, Map::new());
            acts.insert(place, decoy);
        }
        acts
    }

    /// A run that fails: a part of the procedure, and then something else that does not work.
    fn failure(&mut self, truth: &[Move], others: &[String], plan: Plan) -> Vec<Act> {
        let mut acts = Vec::new();
        let far = self.dice.below(truth.len());
        for step in &truth[..far] {
            acts.extend(self.happens(step, plan));
        }
        acts.extend(self.wander(others, 0, 3, 0));
        let tool = self.pick(others).clone();
        acts.push(self.act(&tool, Ended::Failed, Map::new()));
        acts
    }

    /// Tools in no order. Of a hundred so many fail.
    fn wander(&mut self, tools: &[String], least: usize, most: usize, failing: usize) -> Vec<Act> {
        let long = least + self.dice.below(most - least + 1);
        (0..long)
            .map(|_| {
                let tool = self.pick(tools).clone();
                let ended = match self.percent(failing) {
                    true => Ended::Failed,
                    false => Ended::Done,
                };
                let mut input = Map::new();
                input.insert("what".to_owned(), json!(format!("w{}", self.dice.below(9))));
                self.act(&tool, ended, input)
            })
            .collect()
    }

    /// A world with a true procedure.
    pub fn with_procedure(&mut self, plan: Plan) -> World {
        let truth = self.truth();
        let mut others = self.tools(4);
        others.retain(|tool| truth.iter().all(|step| step.tool != *tool));
        others.push("guess".to_owned());
        let mut runs = Vec::new();
        let failures = plan.successes / 3 + 2;
        let mut left = (plan.successes, failures);
        while left != (0, 0) {
            let number = runs.len();
            let succeed = self.dice.below(left.0 + left.1) < left.0;
            let (acts, outcome) = match succeed {
                true => (self.success(&truth, &others, plan), Outcome::Success),
                false => (self.failure(&truth, &others, plan), Outcome::Failure),
            };
            match succeed {
                true => left.0 -= 1,
                false => left.1 -= 1,
            }
            runs.push((self.run(number, acts), outcome));
        }
        let truth = truth.into_iter().map(|step| (step.tool, step.constant));
        World {
            runs,
            truth: truth.collect(),
            cause: None,
        }
    }

    /// A world without any: tools in no order, or the same ones in any order, or an order that
    /// helps nobody.
    pub fn without_procedure(&mut self, runs: usize) -> World {
        let many = 3 + self.dice.below(8);
        let tools = self.tools(many);
        let sort = self.dice.below(3);
        let longest = 4 + self.dice.below(9);
        let habit = self.tools(4);
        let made = (0..runs).map(|number| {
            let mut acts = match sort {
                0 => self.wander(&tools, 2, longest, 10),
                1 => {
                    let mut order = tools.clone();
                    for last in (1..order.len()).rev() {
                        let other = self.dice.below(last + 1);
                        order.swap(last, other);
                    }
                    let acts = order
                        .iter()
                        .map(|tool| self.act(tool, Ended::Done, Map::new()));
                    acts.collect()
                }
                _ => {
                    let acts = habit
                        .iter()
                        .map(|tool| self.act(tool, Ended::Done, Map::new()));
                    acts.collect()
                }
            };
            // A habit is no help: it fails as often as not.
            let fails = self.percent(if sort == 2 { 55 } else { 30 });
            let last = self.pick(&tools).clone();
            let (ended, outcome) = match fails {
                true => (Ended::Failed, Outcome::Failure),
                false => (Ended::Done, Outcome::Success),
            };
            // The habit fails at its own last step, so that it was followed.
            match (sort, acts.last_mut()) {
                (2, Some(act)) => act.ended = ended,
                _ => acts.push(self.act(&last, ended, Map::new())),
            }
            (self.run(number, acts), outcome)
        });
        World {
            runs: made.collect(),
            truth: Vec::new(),
            cause: None,
        }
    }

    /// A world in which one tool fails for a reason, and everything else now and then for none.
    pub fn with_cause(&mut self, runs: usize) -> World {
        let tools = self.tools(5);
        let tool = tools[2].clone();
        let cause = match self.dice.below(4) {
            0 => Condition::Param {
                name: "mode".to_owned(),
                value: "fast".to_owned(),
            },
            1 => Condition::Context {
                name: "env".to_owned(),
                value: "prod".to_owned(),
            },
            2 => Condition::NotAfter {
                tool: tools[0].clone(),
            },
            _ => Condition::Always,
        };
        let made = (0..runs).map(|number| {
            let skipped = self.percent(40);
            let (prod, fast) = (self.percent(40), self.percent(40));
            let mut acts = Vec::new();
            let mut outcome = Outcome::Success;
            for (n, name) in tools.iter().enumerate() {
                if n == 0 && skipped {
                    continue;
                }
                let holds = *name == tool
                    && match &cause {
                        Condition::Param { .. } => fast,
                        Condition::Context { .. } => prod,
                        Condition::NotAfter { .. } => skipped,
                        _ => true,
                    };
                let failed = self.percent(if holds { 75 } else { 5 });
                let mut act = self.moody(name, failed, prod, fast);
                if failed {
                    act.error = Some(error_class(if holds { "it is locked" } else { ERRORS[0] }));
                }
                acts.push(act);
                if failed && self.percent(50) {
                    outcome = Outcome::Failure;
                    break;
                }
            }
            (self.run(number, acts), outcome)
        });
        let runs = made.collect();
        World {
            runs,
            truth: Vec::new(),
            cause: Some((tool, cause)),
        }
    }

    /// A world in which things fail for no reason.
    pub fn with_random_failures(&mut self, runs: usize) -> World {
        let tools = self.tools(5);
        let often = 5 + self.dice.below(30);
        let made = (0..runs).map(|number| {
            let (prod, fast) = (self.percent(40), self.percent(40));
            let mut acts = Vec::new();
            let mut outcome = Outcome::Success;
            for name in &tools {
                if self.percent(20) {
                    continue;
                }
                let failed = self.percent(often);
                acts.push(self.moody(name, failed, prod, fast));
                if failed && self.percent(50) {
                    outcome = Outcome::Failure;
                    break;
                }
            }
            (self.run(number, acts), outcome)
        });
        World {
            runs: made.collect(),
            truth: Vec::new(),
            cause: None,
        }
    }

    /// A call with a few parameters and circumstances.
    fn moody(&mut self, tool: &str, failed: bool, prod: bool, fast: bool) -> Act {
        let mut input = Map::new();
        input.insert("mode".to_owned(), json!(if fast { "fast" } else { "slow" }));
        input.insert("size".to_owned(), json!(self.dice.below(4)));
        input.insert(
            "name".to_owned(),
            json!(format!("n{}", self.dice.below(100_000))),
        );
        let mut known = Map::new();
        known.insert("env".to_owned(), json!(if prod { "prod" } else { "test" }));
        let ended = match failed {
            true => Ended::Failed,
            false => Ended::Done,
        };
        self.act(tool, ended, input).known(&known)
    }

    /// Runs that go on by the true procedure, in which from now on one tool fails.
    pub fn after_a_change(&mut self, world: &World, runs: usize) -> Vec<(Run, Outcome)> {
        let tools = world.tools();
        let broken = self.dice.below(tools.len());
        let start = world.runs.len();
        (0..runs)
            .map(|number| {
                let mut acts = Vec::new();
                for (n, (tool, constant)) in world.truth.iter().enumerate() {
                    let input = constant
                        .iter()
                        .map(|(k, v)| (k.clone(), json!(v)))
                        .collect();
                    let ended = match n == broken {
                        true => Ended::Failed,
                        false => Ended::Done,
                    };
                    acts.push(self.act(tool, ended, input));
                    if n == broken {
                        break;
                    }
                }
                (self.run(start + number, acts), Outcome::Failure)
            })
            .collect()
    }
}

/// When the last run of a world was written.
#[must_use]
pub fn end(runs: &[(Run, Outcome)]) -> Time {
    runs.iter().map(|(run, _)| run.last).max().unwrap_or(at(0))
}
