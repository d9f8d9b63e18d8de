//! What may be told side by side: one procedure for a situation, and no rule against it.

use std::collections::BTreeMap;

use mnemon_core::Audience;
use mnemon_core::learn::{Condition, Outcome, Run, Status, contains};

use super::judge::{Verdict, tool_orders};
use super::review::{Lesson, LessonBody, RuleBody};
use crate::memory::scopes::ToolSop;

/// The newest successes that decide which of two procedures is the one in use.
const NEWEST: usize = 10;

/// Holds back every procedure that another one in the same situation is better than, and every rule
/// that contradicts a procedure that is told.
pub(super) fn settle(verdicts: &mut [Verdict], told: &[(Run, Outcome)]) {
    let mut situations: BTreeMap<(String, Audience), Vec<usize>> = BTreeMap::new();
    for (at, lesson) in active(verdicts) {
        if let LessonBody::Skill(sop) = &lesson.body {
            let situation = (sop.use_when.clone(), lesson.audience.clone());
            situations.entry(situation).or_default().push(at);
        }
    }
    for rivals in situations.into_values() {
        hold_all_but_the_best(verdicts, &rivals, told);
    }
    hold_private_copies(verdicts);
    hold_contradictions(verdicts);
}

/// The lessons that would be told, with their place in the list.
fn active(verdicts: &[Verdict]) -> impl Iterator<Item = (usize, &Lesson)> {
    let lessons = verdicts.iter().map(|verdict| &verdict.lesson).enumerate();
    lessons.filter(|(_, lesson)| lesson.evidence.status == Status::Active)
}

fn hold_all_but_the_best(verdicts: &mut [Verdict], rivals: &[usize], told: &[(Run, Outcome)]) {
    let lesson = |at: usize| verdicts.get(at).map(|verdict| &verdict.lesson);
    let lessons: Vec<(usize, &Lesson)> = rivals
        .iter()
        .filter_map(|at| Some((*at, lesson(*at)?)))
        .collect();
    let newest = in_use(&lessons, told);
    let best = lessons.iter().max_by_key(|(at, lesson)| {
        let evidence = &lesson.evidence;
        (
            evidence.pinned || evidence.approved,
            newest == Some(*at),
            evidence.support,
            evidence.last_confirmed,
            std::cmp::Reverse(&lesson.id),
        )
    });
    let Some((best, id)) = best.map(|(at, lesson)| (*at, lesson.id.clone())) else {
        return;
    };
    let why = match newest == Some(best) {
        true => format!("the last {NEWEST} successful runs did {id} instead"),
        false => format!("more runs did {id} in the same situation"),
    };
    for at in rivals.iter().filter(|at| **at != best) {
        if let Some(verdict) = verdicts.get_mut(*at) {
            verdict.hold(&why);
        }
    }
}

/// The one of them that all of the newest successes did, which did none of the others.
fn in_use(rivals: &[(usize, &Lesson)], told: &[(Run, Outcome)]) -> Option<usize> {
    let tools: Vec<(usize, Vec<Vec<String>>)> = rivals
        .iter()
        .map(|(at, lesson)| (*at, tool_orders(lesson.tools(), &lesson.evidence)))
        .collect();
    let successes = told.iter().rev();
    let successes = successes.filter(|(_, outcome)| *outcome == Outcome::Success);
    let did = successes.filter_map(|(run, _)| {
        let done = run.done();
        let did: Vec<usize> = tools
            .iter()
            .filter(|(_, tool_orders)| tool_orders.iter().any(|tools| contains(&done, tools)))
            .map(|(at, _)| *at)
            .collect();
        (!did.is_empty()).then_some(did)
    });
    let newest: Vec<Vec<usize>> = did.take(NEWEST).collect();
    let only = newest.first().filter(|_| newest.len() == NEWEST)?;
    match only.as_slice() {
        [one] if newest.iter().all(|did| did == only) => Some(*one),
        _ => None,
    }
}

/// A user's own procedure that everybody is told with the same steps would be told twice.
fn hold_private_copies(verdicts: &mut [Verdict]) {
    let shared: Vec<(String, Vec<String>)> = active(verdicts)
        .filter(|(_, lesson)| lesson.audience == Audience::Everyone)
        .map(|(_, lesson)| (lesson.id.to_string(), lesson.tools()))
        .collect();
    for verdict in verdicts.iter_mut() {
        let lesson = &verdict.lesson;
        let private = lesson.audience != Audience::Everyone;
        let live = private && lesson.evidence.status == Status::Active;
        let tools = lesson.tools();
        let copy = shared.iter().find(|(_, known)| *known == tools);
        if let Some((id, _)) = copy.filter(|_| live && !tools.is_empty()) {
            verdict.hold(&format!("the shared skill {id} has the same steps"));
        }
    }
}

fn hold_contradictions(verdicts: &mut [Verdict]) {
    let skills: Vec<(String, Audience, Vec<ToolSop>)> = active(verdicts)
        .filter_map(|(_, lesson)| match &lesson.body {
            LessonBody::Skill(sop) => Some((
                lesson.id.to_string(),
                lesson.audience.clone(),
                sop.tool_sops.clone(),
            )),
            LessonBody::Rule(_) => None,
        })
        .collect();
    for verdict in verdicts.iter_mut() {
        let lesson = &verdict.lesson;
        let LessonBody::Rule(rule) = &lesson.body else {
            continue;
        };
        if lesson.evidence.status != Status::Active {
            continue;
        }
        let contradicted = skills.iter().find(|(_, audience, steps)| {
            let meet = [audience, &lesson.audience].contains(&&Audience::Everyone)
                || *audience == lesson.audience;
            meet && contradicts(rule, steps)
        });
        if let Some((id, ..)) = contradicted {
            let why = format!(
                "contradicts the active skill {id}, which uses {}",
                rule.tool
            );
            verdict.hold(&why);
        }
    }
}

/// Whether the rule turns agents away from a step as the procedure has it.
fn contradicts(rule: &RuleBody, steps: &[ToolSop]) -> bool {
    let Some(at) = steps.iter().position(|step| step.tool == rule.tool) else {
        return false;
    };
    rule.advice.turns_away()
        && match &rule.condition {
            Condition::Always => true,
            Condition::Param { name, value } => {
                let said = format!("{name} = {value}");
                let mut own = steps.iter().filter(|step| step.tool == rule.tool);
                own.any(|step| step.action.contains(&said))
            }
            Condition::After { tool } => steps.iter().take(at).any(|step| step.tool == *tool),
            // An exception to the procedure is no contradiction.
            Condition::Context { .. } | Condition::Word { .. } | Condition::NotAfter { .. } => {
                false
            }
        }
}
