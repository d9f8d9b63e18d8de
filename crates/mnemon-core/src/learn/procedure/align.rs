//! Which step of a run is which step of the procedure, and what its parameters have in common.

use std::collections::BTreeMap;

use super::{ProcedureStep, Sightings, may_be_told};
use crate::learn::{Act, Ended, Run};
use crate::model::Audience;

/// A parameter is constant if so much of the runs agree on its value.
const CONSTANT: f64 = 0.9;
/// A parameter belongs to the step if so much of the runs have it.
const USUAL: f64 = 0.6;
/// How often the steps are told apart anew by what they have in common.
const ROUNDS: usize = 3;

/// For each step of the procedure what its parameters usually are.
type Usual<'a> = Vec<BTreeMap<&'a str, (&'a str, f64)>>;

/// The steps with what was constant and what varied.
pub(super) fn steps(tools: &[String], runs: &[&Run], audience: &Audience) -> Vec<ProcedureStep> {
    let mut usual: Usual<'_> = vec![BTreeMap::new(); tools.len()];
    let mut aligned: Vec<Vec<&Act>> = Vec::new();
    // Where each tool was called as often as the procedure has it there is only one way to see it.
    let rounds = match runs.iter().all(|run| is_plain(tools, run)) {
        true => 1,
        false => ROUNDS,
    };
    for round in 1..=rounds {
        aligned = runs.iter().map(|run| align(tools, run, &usual)).collect();
        if round == rounds {
            break;
        }
        usual = (0..tools.len())
            .map(|step| usual_of(aligned.iter().filter_map(|acts| acts.get(step).copied())))
            .collect();
    }
    let steps = tools.iter().enumerate();
    steps
        .map(|(step, tool)| {
            let acts = aligned.iter().zip(runs);
            let acts = acts.filter_map(|(acts, run)| Some((*acts.get(step)?, &run.audience)));
            generalised(tool, &acts.collect::<Vec<_>>(), audience)
        })
        .collect()
}

/// Whether the run, which went through the procedure, called its tools no more often.
fn is_plain(tools: &[String], run: &Run) -> bool {
    let done = run.done();
    let calls = done
        .iter()
        .filter(|called| tools.iter().any(|tool| tool == *called));
    calls.count() == tools.len()
}

/// The acts of the run that are the steps of the procedure: of all ways to see it the one in which
/// parameters agree most with what is usual. The same tool may be called several times.
fn align<'a>(tools: &[String], run: &'a Run, usual: &Usual<'_>) -> Vec<&'a Act> {
    let acts = run.acts.iter().filter(|act| act.ended == Ended::Done);
    let acts: Vec<&Act> = acts.filter(|act| act.tool.is_some()).collect();
    // best[step] after an act: the best score with the first `step` steps found, and which acts.
    let mut best: Vec<Option<(f64, Vec<&Act>)>> = vec![None; tools.len() + 1];
    if let Some(first) = best.first_mut() {
        *first = Some((0.0, Vec::new()));
    }
    for act in acts {
        for step in (0..tools.len()).rev() {
            if tools.get(step).map(String::as_str) != act.tool.as_deref() {
                continue;
            }
            let Some((score, path)) = best.get(step).cloned().flatten() else {
                continue;
            };
            let score = score + usual.get(step).map_or(0.0, |usual| agreement(act, usual));
            if let Some(slot) = best.get_mut(step + 1)
                && slot.as_ref().is_none_or(|(known, _)| score > *known)
            {
                let path = path.into_iter().chain([act]).collect();
                *slot = Some((score, path));
            }
        }
    }
    best.pop()
        .flatten()
        .map(|(_, path)| path)
        .unwrap_or_default()
}

fn agreement(act: &Act, usual: &BTreeMap<&str, (&str, f64)>) -> f64 {
    let agree = usual.iter().filter_map(|(name, (value, share))| {
        let same = act.params.get(*name).map(String::as_str) == Some(*value);
        same.then_some(*share)
    });
    agree.sum()
}

fn usual_of<'a>(acts: impl Iterator<Item = &'a Act>) -> BTreeMap<&'a str, (&'a str, f64)> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut all = 0;
    for act in acts {
        all += 1;
        for (name, value) in &act.params {
            *counts.entry(name).or_default().entry(value).or_default() += 1;
        }
    }
    let usual = counts.into_iter().filter_map(|(name, values)| {
        let (value, count) = values.into_iter().max_by_key(|(_, count)| *count)?;
        // One alone is no habit.
        (count > 1).then_some((name, (value, count as f64 / f64::from(all.max(1)))))
    });
    usual.collect()
}

fn generalised(tool: &str, acts: &[(&Act, &Audience)], audience: &Audience) -> ProcedureStep {
    let mut values: BTreeMap<&str, BTreeMap<&str, Sightings<'_>>> = BTreeMap::new();
    for (act, used_for) in acts {
        for (name, value) in &act.params {
            let seen = values.entry(name).or_default().entry(value).or_default();
            seen.by(used_for);
        }
    }
    let mut step = ProcedureStep {
        tool: tool.to_owned(),
        ..ProcedureStep::default()
    };
    for (name, values) in values {
        let times: usize = values.values().map(|seen| seen.times).sum();
        if (times as f64) < USUAL * acts.len() as f64 {
            continue;
        }
        let used_for = values
            .values()
            .flat_map(|seen| seen.audiences.iter().copied());
        if !may_be_told(&used_for.collect(), audience) {
            continue;
        }
        let most = values.iter().max_by_key(|(_, seen)| seen.times);
        match most {
            Some((value, seen))
                if seen.times as f64 >= CONSTANT * times as f64 && seen.may_be_told(audience) =>
            {
                step.constant.insert(name.to_owned(), (*value).to_owned());
            }
            _ => step.varying.push(name.to_owned()),
        }
    }
    step
}
