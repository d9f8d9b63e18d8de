//! From runs to procedures: which patterns are worth keeping, and what there is to say about them.

mod align;
mod complexity;
mod occasion;

use std::collections::{BTreeMap, BTreeSet};

use super::act::add_words;
use super::{LearnSettings, Outcome, Pattern, Rate, Run, chance, contains, follows, patterns};
use crate::{Id, Time, limits};

pub use complexity::{Complexity, complexity};

/// How unlikely it must be that chance alone made the best of all patterns that were looked at.
const CHANCE: f64 = 0.01;
/// The shortest procedure: one tool is no procedure.
const SHORTEST: usize = 2;
/// A step belongs to a procedure if so much of the runs that do the rest do it, too.
const BELONGS: f64 = 0.7;
/// Patterns of one search that are held against chance, the best first.
const TRIED: usize = 20;

/// Something that can be followed, mined from runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    pub steps: Vec<ProcedureStep>,
    /// Words that what was asked for has in common, and that failures lack.
    pub words: Vec<String>,
    /// What was the case in all of them.
    pub context: Vec<(String, String)>,
    /// What users put right or asked to remember.
    pub preferences: Vec<String>,
    pub complexity: Complexity,
    /// How runs went that followed it, and how the others did.
    pub with: Rate,
    pub without: Rate,
    /// The runs that went through it with success, the oldest first.
    pub runs: Vec<Id>,
    /// The newest of them.
    pub last_confirmed: Option<Time>,
    /// Whose it is, if all runs are one user's.
    pub user: Option<String>,
    /// The probability that chance made it, as a logarithm.
    pub ln_chance: f64,
}

/// One step of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcedureStep {
    pub tool: String,
    /// Parameters that were always the same.
    pub constant: BTreeMap<String, String>,
    /// Parameters that varied.
    pub varying: Vec<String>,
}

impl ProcedureStep {
    /// What to do with the tool, in words.
    #[must_use]
    pub fn action(&self) -> String {
        let set = self.constant.iter();
        let set: Vec<String> = set
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let fill = self.varying.join(", ");
        match (set.is_empty(), fill.is_empty()) {
            (true, true) => "call it".to_owned(),
            (true, false) => format!("fill in {fill} as the task needs"),
            (false, true) => format!("with {}", set.join(", ")),
            (false, false) => format!("with {}; fill in {fill} as the task needs", set.join(", ")),
        }
    }
}

impl Procedure {
    /// Its tools, in order.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.steps.iter().map(|step| step.tool.clone()).collect()
    }

    /// When it is of use, in words.
    #[must_use]
    pub fn use_when(&self, task_type: &str) -> String {
        let mut text = task_type.replace(['_', '-', '.', '/'], " ");
        if !self.words.is_empty() {
            text.push_str(&format!(
                "; the request speaks of {}",
                self.words.join(", ")
            ));
        }
        if !self.context.is_empty() {
            let context = self.context.iter();
            let context: Vec<String> = context
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            text.push_str(&format!("; where {}", context.join(", ")));
        }
        text
    }
}

/// A run and how it ended.
pub(super) type Told<'a> = (&'a Run, Outcome);

/// The procedures that the runs of one type of task show, the best supported first. The runs come
/// with how they ended, the oldest first.
///
/// Of all closed patterns the best is held against the thresholds and against chance: a step more
/// is better if seven of ten runs that do the rest do it, too. If it stands, the runs that have it are set aside and the rest
/// is searched again, for another way of doing the same.
#[must_use]
pub fn procedures(told: &[(Run, Outcome)], settings: &LearnSettings) -> Vec<Procedure> {
    let told: Vec<Told<'_>> = told.iter().map(|(run, outcome)| (run, *outcome)).collect();
    let mut left: Vec<&Run> = succeeded(&told).collect();
    let mut found: Vec<Procedure> = Vec::new();
    while found.len() < limits::TASK_PROCEDURES {
        let Some((tools, ln_chance)) = best(&left, &told, settings) else {
            break;
        };
        let known = found
            .iter()
            .any(|one| is_part(&tools, &one.tools()) || is_part(&one.tools(), &tools));
        if known {
            break;
        }
        let procedure = described(&tools, &told, ln_chance);
        left.retain(|run| !contains(&run.done(), &tools));
        // Too easy to be worth keeping; the next one may not be.
        if procedure.complexity.points() >= settings.complexity {
            found.push(procedure);
        } else {
            break;
        }
    }
    found
}

fn succeeded<'a>(told: &[Told<'a>]) -> impl Iterator<Item = &'a Run> {
    let good = told
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::Success);
    good.map(|(run, _)| *run)
}

/// The best pattern of these runs that is neither rare, nor of no use, nor chance.
fn best(runs: &[&Run], told: &[Told<'_>], settings: &LearnSettings) -> Option<(Vec<String>, f64)> {
    let least = (runs.len() as f64 * settings.support).ceil() as usize;
    let least = least.max(settings.candidate_runs).max(2);
    if runs.len() < least {
        return None;
    }
    let sequences: Vec<Vec<&str>> = runs.iter().map(|run| run.done()).collect();
    let mut mined = patterns(&sequences, least);
    let worth = |pattern: &Pattern| {
        let steps = i32::try_from(pattern.tools.len()).unwrap_or(i32::MAX);
        pattern.support as f64 * (1.0 / BELONGS).powi(steps)
    };
    mined
        .patterns
        .retain(|pattern| pattern.tools.len() >= SHORTEST);
    mined.patterns.sort_by(|one, other| {
        let order = worth(other).total_cmp(&worth(one));
        order.then_with(|| one.tools.cmp(&other.tools))
    });
    let bar = CHANCE.ln() - (mined.looked_at.max(1) as f64).ln();
    mined.patterns.into_iter().take(TRIED).find_map(|pattern| {
        let (with, _) = rates(&pattern.tools, told);
        if with.of == 0 || with.rate() < settings.confidence {
            return None;
        }
        let ln_chance = chance(&sequences, &pattern.tools);
        (ln_chance <= bar).then_some((pattern.tools, ln_chance))
    })
}

/// Whether one has all of the other's tools in the same order.
fn is_part(part: &[String], whole: &[String]) -> bool {
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    contains(&whole, part)
}

/// How the runs went that followed the procedure, and how the others did. Runs that were abandoned
/// tell nothing.
pub(super) fn rates(tools: &[String], told: &[Told<'_>]) -> (Rate, Rate) {
    let (mut with, mut without) = (Rate::default(), Rate::default());
    for (run, outcome) in told {
        if *outcome == Outcome::Abandoned {
            continue;
        }
        let rate = match follows(run, *outcome, tools) {
            true => &mut with,
            false => &mut without,
        };
        rate.of += 1;
        rate.good += usize::from(*outcome == Outcome::Success);
    }
    (with, without)
}

/// All that there is to say about a pattern.
fn described(tools: &[String], told: &[Told<'_>], ln_chance: f64) -> Procedure {
    let (with, without) = rates(tools, told);
    let followers = succeeded(told).filter(|run| contains(&run.done(), tools));
    let followers: Vec<&Run> = followers.collect();
    let users: BTreeSet<Option<&str>> = followers.iter().map(|run| run.user.as_deref()).collect();
    let several = users.len() > 1;
    let user = match several {
        true => None,
        false => users.first().copied().flatten(),
    };
    let others = told.iter().filter(|(run, outcome)| {
        *outcome == Outcome::Failure
            || *outcome == Outcome::Success && !contains(&run.done(), tools)
    });
    let others: Vec<&Run> = others.map(|(run, _)| *run).collect();
    let steps = align::steps(tools, &followers, several);
    let mut words = occasion::words(&followers, &others, several);
    if !followers.iter().any(|run| run.is_asked()) {
        // What a step is always called with is told with the step; it is no occasion.
        let told = steps.iter().flat_map(|step| step.constant.values());
        let mut always = Vec::new();
        told.for_each(|value| add_words(value, &mut always));
        words.retain(|word| !always.contains(word));
    }
    Procedure {
        steps,
        words,
        context: occasion::context(&followers, several),
        preferences: occasion::preferences(told, user, several),
        complexity: complexity(tools, told),
        with,
        without,
        last_confirmed: followers.iter().map(|run| run.last).max(),
        runs: followers.iter().map(|run| run.id.clone()).collect(),
        user: user.map(str::to_owned),
        ln_chance,
    }
}

/// How often each value was seen, and by how many users.
#[derive(Default)]
pub(super) struct Seen<'a> {
    pub(super) times: usize,
    pub(super) users: BTreeSet<Option<&'a str>>,
}

impl<'a> Seen<'a> {
    pub(super) fn by(&mut self, user: Option<&'a str>) {
        self.times += 1;
        self.users.insert(user);
    }

    /// What goes to several users must have come from several: one's values are not the others'
    /// business.
    pub(super) fn may_be_told(&self, several: bool) -> bool {
        !several || self.users.len() > 1
    }
}
