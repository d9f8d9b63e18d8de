//! From runs to skills and rules, each held to its record.

use std::collections::{BTreeMap, BTreeSet};

use mnemon_core::learn::{Outcome, Procedure, Rule, Run, procedures, rules};
use mnemon_core::{Ctx, Expect, Filter, Id, Kind, Scope, Time, limits};

use super::judge::{Bench, Verdict, evidence_of};
use super::kept::{self, Versioned};
use super::review::Lesson;
use super::{LearnReport, Learning, Learnt};
use crate::naming::{fixed_id, tag};
use crate::{Draft, Error};

impl Learning<'_> {
    /// Looks at the types of task that are due, at most so many, those that wait longest first.
    /// While there are steps to read, only at those of which much is new: a long log is read
    /// through before it is looked at, and no type of task waits for its end.
    ///
    /// Whatever stops it on the way, they are still due, and doing it again yields the same.
    pub(super) async fn distil_due(
        &self,
        ctx: &Ctx,
        tasks: usize,
        report: &mut LearnReport,
    ) -> Result<(), Error> {
        let records = self.memory.records_of(Scope::Experience);
        let diary = kept::diary(records, ctx).await?;
        let due = diary.value.to_look_at(ctx.now, report.more);
        let mut drafts: Vec<(Draft, Expect)> = Vec::new();
        let mut written: BTreeSet<Id> = BTreeSet::new();
        let mut learnt: Vec<Learnt> = Vec::new();
        let mut looked_at: Vec<(&String, Option<Time>)> = Vec::new();
        for task_type in due.iter().take(tasks) {
            let runs = kept::newest_runs(records, ctx, task_type).await?;
            let (verdicts, next) = self.verdicts(ctx, task_type, runs).await?;
            learnt.extend(verdicts.iter().filter_map(|one| one.told(task_type)));
            for verdict in verdicts.into_iter().filter(|verdict| verdict.changed) {
                let (draft, expect) = verdict.draft()?;
                // Of a lesson that is tagged with two types of task the first says what becomes of
                // it: a second version in the same commit would be refused, and all with it.
                let first = |id: &Id| written.insert(id.clone());
                if draft.id.as_ref().is_none_or(first) {
                    drafts.push((draft, expect));
                }
            }
            looked_at.push((task_type, next));
        }
        if looked_at.is_empty() {
            return Ok(());
        }
        if !drafts.is_empty() {
            let procedural = self.memory.records_of(Scope::Procedural);
            procedural.put(ctx, drafts, None).await?;
        }
        report.tasks += looked_at.len() as u64;
        report.learnt.extend(learnt);
        report.more |= due.len() > tasks;
        let mut now = kept::diary(records, ctx).await?;
        if now.value.read != diary.value.read {
            // Somebody read on meanwhile, and there may be runs that were not looked at.
            report.more = true;
            return Ok(());
        }
        for (task_type, next) in looked_at {
            now.value.looked_at(task_type, next);
        }
        let done = vec![kept::diary_draft(&now)];
        records.put_as_is(ctx, done, None).await?;
        Ok(())
    }

    /// What these runs say about each skill and rule, and when there will be more to say. Nothing
    /// is written.
    pub(super) async fn verdicts(
        &self,
        ctx: &Ctx,
        task_type: &str,
        runs: Vec<Run>,
    ) -> Result<(Vec<Verdict>, Option<Time>), Error> {
        let settings = self.memory.policies().learning();
        let (told, next) = ended(runs, ctx.now, settings.settle_ms);
        let bench = Bench {
            task_type,
            told: &told,
            settings: &settings,
            now: ctx.now,
        };
        let procedures = procedures(&told, &settings);
        let rules = rules(&told);
        let skills = procedures
            .iter()
            .map(|one| skill_id(task_type, &one.tools()));
        let found = skills.chain(rules.iter().map(|one| rule_id(task_type, one)));
        let found: Vec<Id> = found.collect();
        let mut there = self.known_lessons(ctx, task_type, &found).await?;
        let mut verdicts = Vec::new();
        let tools: Vec<Vec<String>> = procedures.iter().map(Procedure::tools).collect();
        for procedure in procedures {
            let id = skill_id(task_type, &procedure.tools());
            verdicts.extend(bench.skill(procedure, id.clone(), there.remove(&id)));
        }
        for rule in rules {
            let id = rule_id(task_type, &rule);
            verdicts.extend(bench.rule(rule, id.clone(), there.remove(&id)));
        }
        verdicts.extend(there.into_values().filter_map(|old| bench.old(old, &tools)));
        Ok((verdicts, next))
    }

    /// What was learnt about this type of task before, and what is there under these ids.
    async fn known_lessons(
        &self,
        ctx: &Ctx,
        task_type: &str,
        ids: &[Id],
    ) -> Result<BTreeMap<Id, Versioned<Lesson>>, Error> {
        let procedural = self.memory.records_of(Scope::Procedural);
        let filter = Filter {
            scopes: vec![Scope::Procedural],
            kinds: vec![Kind::Skill, Kind::Rule],
            tags: vec![tag("task", task_type)],
            ..Filter::default()
        };
        let mut records = procedural.latest(ctx, filter, limits::PAGE).await?;
        // What somebody wrote by hand is not ours to judge.
        records.retain(|record| evidence_of(record).is_some_and(|known| known.with.of > 0));
        records.extend(procedural.get(ctx, ids).await?.into_iter().flatten());
        let known = records.into_iter().filter_map(|record| {
            let (expect, created) = (Expect::Version(record.version), Some(record.created));
            let value = Lesson::of(record)?;
            let id = value.id.clone();
            Some((
                id,
                Versioned {
                    value,
                    expect,
                    created,
                },
            ))
        });
        Ok(known.collect())
    }
}

/// The runs that have ended, and when the next of the others will have.
pub(super) fn ended(
    runs: Vec<Run>,
    now: Time,
    settle_ms: i64,
) -> (Vec<(Run, Outcome)>, Option<Time>) {
    let mut next: Option<Time> = None;
    let mut told = Vec::new();
    for run in runs {
        match run.outcome(now, settle_ms) {
            Some(outcome) => told.push((run, outcome)),
            None => {
                let ends = run.last.plus_millis(settle_ms);
                next = Some(next.map_or(ends, |known| known.min(ends)));
            }
        }
    }
    (told, next)
}

fn skill_id(task_type: &str, tools: &[String]) -> Id {
    let names = std::iter::once(task_type).chain(tools.iter().map(String::as_str));
    let names: Vec<Option<&str>> = names.map(Some).collect();
    fixed_id("learnt-skill", &names)
}

fn rule_id(task_type: &str, rule: &Rule) -> Id {
    let condition = serde_json::to_string(&rule.condition).unwrap_or_default();
    let names = [
        Some(task_type),
        Some(rule.tool.as_str()),
        Some(condition.as_str()),
    ];
    fixed_id("learnt-rule", &names)
}
