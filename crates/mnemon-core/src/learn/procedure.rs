//! From runs to procedures: which patterns are worth keeping, and what there is to say about them.

mod align;
mod complete;
mod complexity;
mod occasion;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::act::add_words;
use super::{
    LearnSettings, Outcome, Pattern, Rate, Run, chance, contains, died_at, follows, patterns,
};
use crate::model::{Audience, Id, Time, limits};

pub use complete::{Missing, missing, usual_beside};
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
    /// Who may be told it; see [`Audience::of_sources`].
    pub audience: Audience,
    /// The probability that chance made it, as a logarithm.
    pub ln_chance: f64,
}

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
    pub fn tools(&self) -> Vec<String> {
        self.steps.iter().map(|step| step.tool.clone()).collect()
    }

    /// When it is of use, in words.
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

/// Why a pattern that recurs is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// It lacks a step that most of its successful runs have.
    Incomplete,
    /// Too few of the runs that followed it succeeded.
    Unreliable,
    /// Chance may have made it.
    Chance,
    /// The task goes right by itself.
    TooEasy,
}

/// A pattern that recurs and is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotKept {
    pub tools: Vec<String>,
    pub obstacle: Obstacle,
    /// The reason in words, with its numbers.
    pub why: String,
    /// The successful runs that have it, the oldest first.
    pub runs: Vec<Id>,
}

/// What the runs of one type of task show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// The best supported first.
    pub kept: Vec<Procedure>,
    /// At most [`limits::TASK_NOT_KEPT`].
    pub not_kept: Vec<NotKept>,
}

impl Findings {
    /// Takes down the first pattern that met this obstacle; the others are variations of it.
    fn reject(&mut self, tools: &[String], obstacle: Obstacle, why: String, told: &[Told<'_>]) {
        let known = self.not_kept.iter().any(|one| one.obstacle == obstacle);
        if known || self.not_kept.len() == limits::TASK_NOT_KEPT {
            return;
        }
        let having = succeeded(told).filter(|run| contains(&run.done(), tools));
        self.not_kept.push(NotKept {
            tools: tools.to_vec(),
            obstacle,
            why,
            runs: having.map(|run| run.id.clone()).collect(),
        });
    }
}

/// A run and how it ended.
pub(super) type Told<'a> = (&'a Run, Outcome);

/// The procedures that the runs of one type of task show; see [`findings`].
pub fn procedures(told: &[(Run, Outcome)], settings: &LearnSettings) -> Vec<Procedure> {
    findings(told, settings).kept
}

/// The procedures that the runs of one type of task show, the best supported first, and the
/// patterns that are not kept. The runs come with how they ended, the oldest first.
///
/// Of all closed patterns the best is held against the thresholds and against chance: a step more
/// is better if seven of ten runs that do the rest do it, too. If it stands, the runs that have it
/// are set aside and the rest is searched again, for another way of doing the same.
pub fn findings(told: &[(Run, Outcome)], settings: &LearnSettings) -> Findings {
    let told: Vec<Told<'_>> = told.iter().map(|(run, outcome)| (run, *outcome)).collect();
    let mut left: Vec<&Run> = succeeded(&told).collect();
    let mut findings = Findings::default();
    for _ in 0..limits::TASK_PROCEDURES {
        let Some((tools, ln_chance)) = best(&left, &told, settings, &mut findings) else {
            break;
        };
        let known = findings
            .kept
            .iter()
            .any(|one| is_part(&tools, &one.tools()) || is_part(&one.tools(), &tools));
        if known {
            break;
        }
        let procedure = described(&tools, &told, ln_chance);
        left.retain(|run| !contains(&run.done(), &tools));
        // Too easy to be worth keeping; the next one may not be.
        match procedure {
            Some(procedure) if procedure.complexity.points() >= settings.complexity => {
                findings.kept.push(procedure);
            }
            Some(procedure) => {
                let why = too_easy(&procedure.complexity, settings.complexity);
                findings.reject(&tools, Obstacle::TooEasy, why, &told);
            }
            None => {}
        }
    }
    let Findings { kept, not_kept } = &mut findings;
    // Parts of a procedure that is kept, and chance beside one, are variations of it.
    not_kept.retain(|one| {
        let part = kept.iter().any(|kept| is_part(&one.tools, &kept.tools()));
        !part && (kept.is_empty() || one.obstacle != Obstacle::Chance)
    });
    findings
}

fn too_easy(complexity: &Complexity, needed: u32) -> String {
    let Complexity {
        parameter_errors,
        wrong_ways,
        of,
        ..
    } = complexity;
    format!(
        "too easy: {} of {needed} complexity points (wrong parameters in {parameter_errors} and \
         wrong ways in {wrong_ways} of {of} runs, no correction by a user)",
        complexity.points()
    )
}

fn succeeded<'a>(told: &[Told<'a>]) -> impl Iterator<Item = &'a Run> {
    let good = told
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::Success);
    good.map(|(run, _)| *run)
}

/// The closed patterns of these sequences, those first that are worth most, and how many patterns
/// were looked at.
fn candidates(sequences: &[Vec<&str>], least: usize) -> (Vec<Pattern>, usize) {
    let mut mined = patterns(sequences, least);
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
    (mined.patterns, mined.looked_at)
}

/// The best pattern of these runs that is neither rare, nor incomplete, nor of no use, nor chance.
fn best(
    runs: &[&Run],
    told: &[Told<'_>],
    settings: &LearnSettings,
    findings: &mut Findings,
) -> Option<(Vec<String>, f64)> {
    let least = (runs.len() as f64 * settings.support).ceil() as usize;
    let least = least.max(settings.candidate_runs).max(2);
    if runs.len() < least {
        return None;
    }
    let sequences: Vec<Vec<&str>> = runs.iter().map(|run| run.done()).collect();
    let successes: Vec<Vec<&str>> = succeeded(told).map(Run::done).collect();
    let (patterns, looked_at) = candidates(&sequences, least);
    let bar = CHANCE.ln() - (looked_at.max(1) as f64).ln();
    let mut tried: BTreeSet<Vec<String>> = BTreeSet::new();
    patterns.into_iter().take(TRIED).find_map(|pattern| {
        let tools = complete::without_helpers(&pattern.tools, &sequences);
        if tools.len() < SHORTEST || !tried.insert(tools.clone()) {
            return None;
        }
        let lacks = missing(&tools, &successes);
        if !lacks.is_empty() {
            let lacks: Vec<String> = lacks.iter().map(Missing::text).collect();
            let why = format!("incomplete: {}", lacks.join("; "));
            findings.reject(&tools, Obstacle::Incomplete, why, told);
            return None;
        }
        let (with, _) = rates(&tools, told);
        if with.of == 0 || with.rate() < settings.confidence {
            let needed = settings.confidence * 100.0;
            let why = format!(
                "unreliable: {} of {} runs that followed it succeeded, {needed:.0} % are needed",
                with.good, with.of
            );
            findings.reject(&tools, Obstacle::Unreliable, why, told);
            return None;
        }
        let ln_chance = chance(&sequences, &tools);
        if ln_chance > bar {
            let why = "its order may be chance: more runs are needed".to_owned();
            findings.reject(&tools, Obstacle::Chance, why, told);
            return None;
        }
        Some((tools, ln_chance))
    })
}

/// For each success that did these tools in one of these ways, or all but one tool of the first,
/// whether it did all; the oldest first. Successes in which one of these things was not the case
/// are another situation.
pub fn uses(
    ways: &[Vec<String>],
    context: &[(String, String)],
    told: &[(Run, Outcome)],
) -> Vec<bool> {
    let good = told
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::Success);
    let fits = |run: &Run| {
        let known = |name: &str, value: &str| {
            let mut acts = run.acts.iter();
            acts.any(|act| act.context.get(name).is_some_and(|known| known == value))
        };
        context.iter().all(|(name, value)| known(name, value))
    };
    let uses = good.filter(|(run, _)| fits(run)).filter_map(|(run, _)| {
        let done = run.done();
        let all = ways.iter().any(|tools| contains(&done, tools));
        let nearly = || {
            ways.first()
                .is_some_and(|tools| complete::lacks_one(&done, tools))
        };
        (all || nearly()).then_some(all)
    });
    uses.collect()
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
    let successes: Vec<Vec<&str>> = succeeded(told).map(Run::done).collect();
    let beside = usual_beside(tools, &successes);
    for (run, outcome) in told {
        if *outcome == Outcome::Abandoned {
            continue;
        }
        let followed = follows(run, *outcome, tools) || died_at(run, *outcome, &beside);
        let rate = match followed {
            true => &mut with,
            false => &mut without,
        };
        rate.of += 1;
        rate.good += usize::from(*outcome == Outcome::Success);
    }
    (with, without)
}

/// All that there is to say about a pattern.
///
/// `None` if its runs have no common audience.
fn described(tools: &[String], told: &[Told<'_>], ln_chance: f64) -> Option<Procedure> {
    let (with, without) = rates(tools, told);
    let followers = succeeded(told).filter(|run| contains(&run.done(), tools));
    let followers: Vec<&Run> = followers.collect();
    let audience = Audience::of_sources(followers.iter().map(|run| &run.audience))?;
    let others = told.iter().filter(|(run, outcome)| {
        *outcome == Outcome::Failure
            || *outcome == Outcome::Success && !contains(&run.done(), tools)
    });
    let others: Vec<&Run> = others.map(|(run, _)| *run).collect();
    let steps = align::steps(tools, &followers, &audience);
    let mut words = occasion::words(&followers, &others, &audience);
    if !followers.iter().any(|run| run.is_asked()) {
        // What a step is always called with is told with the step; it is no occasion.
        let told = steps.iter().flat_map(|step| step.constant.values());
        let mut always = Vec::new();
        told.for_each(|value| add_words(value, &mut always));
        words.retain(|word| !always.contains(word));
    }
    Some(Procedure {
        steps,
        words,
        context: occasion::context(&followers, &audience),
        preferences: occasion::preferences(told, &audience),
        complexity: complexity(tools, told),
        with,
        without,
        last_confirmed: followers.iter().map(|run| run.last).max(),
        runs: followers.iter().map(|run| run.id.clone()).collect(),
        audience,
        ln_chance,
    })
}

/// How often each value was seen, and in runs for whom.
#[derive(Default)]
pub(super) struct Sightings<'a> {
    pub(super) times: usize,
    pub(super) audiences: BTreeSet<&'a Audience>,
}

impl<'a> Sightings<'a> {
    pub(super) fn by(&mut self, audience: &'a Audience) {
        self.times += 1;
        self.audiences.insert(audience);
    }

    /// Whether a lesson for this audience may tell it.
    pub(super) fn may_be_told(&self, audience: &Audience) -> bool {
        may_be_told(&self.audiences, audience)
    }
}

/// A value may be told to whom the runs are for that used it, and to everyone if several users did.
/// Runs for everyone keep no secrets.
pub(in crate::learn) fn may_be_told(used_for: &BTreeSet<&Audience>, audience: &Audience) -> bool {
    used_for.contains(audience)
        || used_for.contains(&Audience::Everyone)
        || Audience::of_sources(used_for.iter().copied()) == Some(Audience::Everyone)
}
