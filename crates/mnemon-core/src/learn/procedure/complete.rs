//! Does a pattern hold every step of the work, and no call that lies there by chance?
//!
//! A pattern is laid over the successful runs that have it: each of its steps at its first place,
//! and every other call in the gap where it was made. A tool whose calls keep to the same gaps far
//! more often than if they were made anywhere in the run is a step. A tool that is called anywhere
//! is a helper, however often it is called.

use std::collections::{BTreeMap, BTreeSet};

use super::BELONGS;
use crate::learn::contains;
use crate::learn::statistics::binomial_tail;

/// How unlikely it must be that calls keep to one gap by chance.
const ONE_GAP: f64 = 0.01;
/// The same for the best of all rows of gaps, divided by their number: a tool that is in nearly all
/// runs is easily believed to be a step, another one is more likely a helper.
const BEST_ROW: f64 = 0.0005;
const BEST_ROW_OF_NEARLY_ALL: f64 = 0.02;
/// Nearly all runs.
const NEARLY_ALL: f64 = 0.95;
/// Tools that stand for each other are not called in the same run; so much is an exception.
const TOGETHER: f64 = 0.1;
/// Runs that a tool must be in before it may be one of several that do the same step.
const ALTERNATIVE_RUNS: usize = 3;

/// A step that most successful runs of a pattern have and the pattern lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The tool, or the tools of which each run has one.
    pub tools: Vec<String>,
    /// Runs that have it.
    pub runs: usize,
    /// Successful runs of the pattern.
    pub of: usize,
}

impl Missing {
    /// The step in words.
    pub fn text(&self) -> String {
        let tools = self.tools.join(" or ");
        format!(
            "lacks {tools}, which {} of {} successful runs contain",
            self.runs, self.of
        )
    }
}

/// The calls of a run that are not steps of the pattern, each with the gap that it is in: gap 0
/// is before the first step, gap 1 after it, and so on.
struct Laid<'a> {
    others: Vec<(&'a str, usize)>,
}

/// Lays the pattern over a run; `None` if the run lacks it.
fn lay<'a>(sequence: &[&'a str], tools: &[String]) -> Option<Laid<'a>> {
    let mut steps = tools.iter().peekable();
    let mut gap = 0;
    let mut others = Vec::new();
    for called in sequence {
        match steps.next_if(|step| step.as_str() == *called) {
            Some(_) => gap += 1,
            None => others.push((*called, gap)),
        }
    }
    (gap == tools.len()).then_some(Laid { others })
}

/// Where the calls of one tool lie in a run that has some.
struct Calls {
    /// A bit for each gap that holds one.
    gaps: u64,
    count: i32,
    /// For each gap how many places there are in it for a call.
    places: Vec<usize>,
}

impl Calls {
    fn of(laid: &Laid<'_>, tool: &str, gaps: usize) -> Option<Self> {
        let mut calls = Self {
            gaps: 0,
            count: 0,
            places: vec![1; gaps],
        };
        for (called, gap) in &laid.others {
            if *called == tool {
                calls.gaps |= window(*gap, *gap);
                calls.count += 1;
            } else if let Some(places) = calls.places.get_mut(*gap) {
                *places += 1;
            }
        }
        (calls.count > 0).then_some(calls)
    }

    /// How likely it is that one of the calls lies in the window, if they were made anywhere.
    fn by_chance(&self, wanted: u64) -> f64 {
        let places = self.places.iter().enumerate();
        let (mut within, mut all) = (0, 0);
        for (gap, places) in places {
            all += places;
            let counts = window(gap, gap) & wanted != 0;
            within += if counts { *places } else { 0 };
        }
        1.0 - (1.0 - within as f64 / all.max(1) as f64).powi(self.count)
    }
}

/// Runs with a call in the window, if that is more than chance would do.
fn keeping_to<'a>(
    calls: impl Iterator<Item = &'a Calls>,
    window: u64,
    chance: f64,
) -> Option<usize> {
    let (mut hits, mut of, mut expected) = (0, 0, 0.0);
    for calls in calls {
        hits += usize::from(calls.gaps & window != 0);
        of += 1;
        expected += calls.by_chance(window);
    }
    let unlikely = binomial_tail(hits, of, expected / of.max(1) as f64);
    (hits > 0 && unlikely <= chance.ln()).then_some(hits)
}

/// The gaps from one to another, both included.
fn window(from: usize, to: usize) -> u64 {
    (from..=to.min(63)).fold(0, |sum, gap| sum | 1 << gap)
}

/// Every row of neighbouring gaps, except all of them together.
fn windows(gaps: usize) -> impl Iterator<Item = u64> {
    let pairs = (0..gaps).flat_map(move |from| (from..gaps).map(move |to| (from, to)));
    let part = pairs.filter(move |(from, to)| to - from + 1 < gaps);
    part.map(|(from, to)| window(from, to))
}

/// The calls of each tool, with the number of the run that they are in.
type CallsOf<'a> = BTreeMap<&'a str, Vec<(usize, Calls)>>;

fn calls_of<'a>(laid: &[Laid<'a>], gaps: usize) -> CallsOf<'a> {
    let mut all: CallsOf<'a> = BTreeMap::new();
    for (number, run) in laid.iter().enumerate() {
        let called: BTreeSet<&str> = run.others.iter().map(|(tool, _)| *tool).collect();
        for tool in called {
            let calls = Calls::of(run, tool, gaps).map(|calls| (number, calls));
            all.entry(tool).or_default().extend(calls);
        }
    }
    all
}

/// The steps that seven of ten successful runs of the pattern have and that it lacks: a tool that
/// keeps to some of its gaps, or several of which each run has one, all in the same gap.
pub fn missing(tools: &[String], successes: &[Vec<&str>]) -> Vec<Missing> {
    let laid: Vec<Laid<'_>> = successes.iter().filter_map(|run| lay(run, tools)).collect();
    let gaps = tools.len() + 1;
    let calls = calls_of(&laid, gaps);
    let enough = ((BELONGS * laid.len() as f64).ceil() as usize).max(1);
    let rows = windows(gaps).count().max(1) as f64;
    let steps = calls.iter().filter(|(_, calls)| {
        let nearly_all = calls.len() as f64 >= NEARLY_ALL * laid.len() as f64;
        let chance = match nearly_all {
            true => BEST_ROW_OF_NEARLY_ALL / rows,
            false => BEST_ROW / rows,
        };
        let keeps = |window: u64| keeping_to(calls.iter().map(|(_, calls)| calls), window, chance);
        let is_step = |window: u64| keeps(window).is_some_and(|hits| hits >= enough);
        calls.len() >= enough && windows(gaps).any(is_step)
    });
    let mut missing: Vec<Missing> = steps
        .map(|(tool, calls)| Missing {
            tools: vec![(*tool).to_owned()],
            runs: calls.len(),
            of: laid.len(),
        })
        .collect();
    if missing.is_empty() {
        let split = (0..gaps).filter_map(|gap| alternatives(&calls, gap, laid.len()));
        missing.extend(split.filter(|split| split.runs >= enough));
    }
    missing
}

/// Tools that keep to this gap and stand for each other: hardly a run has two of them.
fn alternatives(calls: &CallsOf<'_>, gap: usize, of: usize) -> Option<Missing> {
    let window = window(gap, gap);
    let keeping = calls.iter().filter_map(|(tool, calls)| {
        let hits = keeping_to(calls.iter().map(|(_, calls)| calls), window, ONE_GAP)?;
        let runs = calls.iter().filter(|(_, calls)| calls.gaps & window != 0);
        let runs: BTreeSet<usize> = runs.map(|(number, _)| *number).collect();
        (hits >= ALTERNATIVE_RUNS).then_some((*tool, runs))
    });
    let mut keeping: Vec<(&str, BTreeSet<usize>)> = keeping.collect();
    keeping.sort_by_key(|(tool, runs)| (usize::MAX - runs.len(), *tool));
    let (mut tools, mut all) = (Vec::new(), BTreeSet::new());
    for (tool, runs) in keeping {
        let together = runs.intersection(&all).count();
        if together as f64 <= TOGETHER * runs.len() as f64 {
            tools.push(tool.to_owned());
            all.extend(runs);
        }
    }
    (tools.len() > 1).then_some(Missing {
        tools,
        runs: all.len(),
        of,
    })
}

/// The tools that half of the successful runs of the pattern call beside its steps. A run that died
/// at one of them was on its way.
pub fn usual_beside(tools: &[String], successes: &[Vec<&str>]) -> Vec<String> {
    let laid: Vec<Laid<'_>> = successes.iter().filter_map(|run| lay(run, tools)).collect();
    let calls = calls_of(&laid, tools.len() + 1);
    let usual = calls
        .iter()
        .filter(|(_, runs)| runs.len() * 2 >= laid.len());
    usual.map(|(tool, _)| (*tool).to_owned()).collect()
}

/// The pattern without the calls that lie in it by chance: tools that are called so often that
/// they are found in any gap.
pub(super) fn without_helpers(tools: &[String], successes: &[Vec<&str>]) -> Vec<String> {
    let mut kept = tools.to_vec();
    loop {
        let before = kept.len();
        let mut step = 0;
        while step < kept.len() && kept.len() > 1 {
            match is_placed(&kept, step, successes) {
                true => step += 1,
                false => drop(kept.remove(step)),
            }
        }
        // Without a helper, others may be seen to be one.
        if kept.len() == before {
            return kept;
        }
    }
}

/// Whether the step lies between its neighbours more often than if it were called anywhere.
fn is_placed(tools: &[String], step: usize, successes: &[Vec<&str>]) -> bool {
    let Some(tool) = tools.get(step) else {
        return false;
    };
    let mut rest = tools.to_vec();
    rest.remove(step);
    // Of calls of the same tool in a row none can be told from the others.
    let same = |at: &usize| tools.get(*at) == Some(tool);
    let from = (0..step).rev().take_while(same).last().unwrap_or(step);
    let to = (step..tools.len()).take_while(same).last().unwrap_or(step);
    let laid = successes.iter().filter_map(|run| lay(run, &rest));
    let calls = laid.filter_map(|run| Calls::of(&run, tool, tools.len()));
    let calls: Vec<Calls> = calls.collect();
    keeping_to(calls.iter(), window(from, to), ONE_GAP).is_some()
}

/// Whether the run has the whole pattern but for one step.
pub(super) fn lacks_one(sequence: &[&str], tools: &[String]) -> bool {
    let without = |step: usize| {
        let rest = tools.iter().enumerate().filter(|(at, _)| *at != step);
        rest.map(|(_, tool)| tool.clone()).collect::<Vec<String>>()
    };
    !contains(sequence, tools) && (0..tools.len()).any(|step| contains(sequence, &without(step)))
}
