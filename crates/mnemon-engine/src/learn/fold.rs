//! From steps to runs.

use std::collections::{BTreeMap, BTreeSet};

use mnemon_core::learn::{Act, LearnSettings, Outcome, Run, error_class};
use mnemon_core::{
    Audience, Ctx, Cursor, Expect, Filter, Id, Kind, Limits, Order, Record, Scan, Scope, Time,
};
use serde_json::Value;

use super::books::{self, Diary, Versioned};
use super::{LearnReport, Learning};
use crate::memory::scopes::{LoggedStep, logged};
use crate::records::{Draft, Error};

/// A step, and where it belongs.
pub(super) struct Taken {
    run: Id,
    task_type: String,
    trace: Option<String>,
    audience: Audience,
    act: Act,
    said: Option<Outcome>,
    written: Time,
    seq: u64,
}

/// Everything that a page of steps changes.
pub(super) struct Folded {
    pub(super) diary: Versioned<Diary>,
    pub(super) runs: BTreeMap<Id, Versioned<Run>>,
    /// Whether there may be more to read.
    pub(super) more: bool,
}

impl Folded {
    /// What is to be written, all or nothing.
    pub(super) fn drafts(&self) -> Vec<(Draft, Expect)> {
        let runs = self.runs.values().map(books::run_draft);
        let diary = std::iter::once(books::diary_draft(&self.diary));
        runs.chain(diary).collect()
    }
}

impl Learning<'_> {
    /// Reads new steps, a chunk at a time, each chunk in one commit.
    pub(super) async fn fold(
        &self,
        ctx: &Ctx,
        steps: usize,
        report: &mut LearnReport,
    ) -> Result<(), Error> {
        let records = self.memory.records_of(Scope::Experience);
        let mut left = steps;
        while left > 0 {
            let diary = books::diary(records, ctx).await?;
            let before = diary.value.steps;
            let folded = self
                .folded(ctx, diary, left.min(records.limits().learn_chunk), report)
                .await?;
            let read = folded.diary.value.steps - before;
            if read == 0 {
                return Ok(());
            }
            left = left.saturating_sub(usize::try_from(read).unwrap_or(usize::MAX));
            // Made of steps that were screened when they came. As text, and under names that are
            // types of task, it would be taken for something else.
            records.put_screened(ctx, folded.drafts(), None).await?;
            if !folded.more {
                return Ok(());
            }
        }
        report.more = true;
        Ok(())
    }

    /// The next steps that have not been read.
    pub(super) async fn unread(
        &self,
        ctx: &Ctx,
        diary: &Diary,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let records = self.memory.records_of(Scope::Experience);
        let filter = Filter {
            scopes: vec![Scope::Experience],
            kinds: vec![Kind::Step],
            ..Filter::all_of_tenant()
        };
        let scan = Scan {
            order: Order::Written,
            after: (diary.read > 0).then(|| Cursor {
                key: i64::try_from(diary.read).unwrap_or(i64::MAX),
                seq: diary.read,
            }),
            ..Scan::new(filter, limit)
        };
        Ok(records.list(ctx, &scan).await?.records)
    }

    /// What the next steps change; nothing is written.
    pub(super) async fn folded(
        &self,
        ctx: &Ctx,
        mut diary: Versioned<Diary>,
        steps: usize,
        report: &mut LearnReport,
    ) -> Result<Folded, Error> {
        let settings = self.memory.policies().learning();
        let limits = self.memory.records_of(Scope::Experience).limits();
        let mut taken: Vec<Taken> = Vec::new();
        let mut more = true;
        let mut left = steps;
        while more && left > 0 {
            let wanted = left.min(limits.learn_page);
            let page = self.unread(ctx, &diary.value, wanted).await?;
            more = page.len() == wanted;
            left -= page.len();
            report.steps += page.len() as u64;
            diary.value.steps += page.len() as u64;
            diary.value.read = page.last().map_or(diary.value.read, |record| record.seq);
            for record in page {
                match self.taken(record, ctx.now) {
                    Some(step) if diary.value.has_room(&step.task_type, limits) => {
                        diary.value.expect(&step, &settings);
                        taken.push(step);
                    }
                    _ => report.skipped += 1,
                }
            }
        }
        let runs = self.joined(ctx, taken).await?;
        report.runs += runs.len() as u64;
        Ok(Folded { diary, runs, more })
    }

    /// The runs that these steps belong to, with them.
    async fn joined(
        &self,
        ctx: &Ctx,
        taken: Vec<Taken>,
    ) -> Result<BTreeMap<Id, Versioned<Run>>, Error> {
        let records = self.memory.records_of(Scope::Experience);
        let ids: BTreeSet<Id> = taken.iter().map(|step| step.run.clone()).collect();
        let ids: Vec<Id> = ids.into_iter().collect();
        let known = books::runs(records, ctx, &ids).await?.into_iter();
        let mut runs: BTreeMap<Id, Versioned<Run>> =
            known.map(|run| (run.value.id.clone(), run)).collect();
        for step in taken {
            let run = runs.entry(step.run.clone());
            let run = &mut run
                .or_insert_with(|| Versioned::new(step.fresh_run()))
                .value;
            if run.task_type.is_empty() {
                *run = step.fresh_run();
            }
            run.add(step.act, step.said, step.written);
            run.order = run.order.max(step.seq);
        }
        Ok(runs)
    }

    /// The step as something to learn from; `None` if nothing is to be learnt from it.
    fn taken(&self, record: Record, now: Time) -> Option<Taken> {
        let (owner, audience) = (record.owner.clone(), record.audience());
        let policy = self
            .memory
            .policies
            .of(owner.flow.as_deref(), owner.agent.as_deref());
        // A clock that is ahead would keep a run open for ever.
        let (written, seq) = (record.updated.min(now), record.seq);
        let LoggedStep {
            id, ended, step, ..
        } = logged(record)?;
        let task_type = step.task_type?;
        if !policy.learn || !policy.write_experience {
            return None;
        }
        let said = step.metadata.get("outcome").and_then(Value::as_str);
        let act = Act::new(id.clone(), step.tool.as_deref(), ended)
            .called_with(&step.input)
            .known(&step.metadata);
        let act = Act {
            error: step.error.as_deref().map(error_class),
            latency_ms: step.latency_ms,
            cost: step.cost,
            ..act
        };
        Some(Taken {
            run: books::run_id(&task_type, step.trace_id.as_deref(), &id, &audience),
            said: said.and_then(|word| word.parse().ok()),
            trace: step.trace_id,
            audience,
            task_type,
            act,
            written,
            seq,
        })
    }
}

impl Taken {
    fn fresh_run(&self) -> Run {
        Run {
            trace: self.trace.clone(),
            audience: self.audience.clone(),
            ..Run::new(self.run.clone(), &self.task_type, self.written)
        }
    }
}

impl Diary {
    fn has_room(&self, task_type: &str, limits: &Limits) -> bool {
        self.due.len() < limits.learn_tasks || self.due.contains_key(task_type)
    }

    /// Looks at the type of task when this run can have ended.
    fn expect(&mut self, step: &Taken, settings: &LearnSettings) {
        let due = match step.said {
            Some(_) => step.written,
            None => step.written.plus_millis(settings.settle_ms),
        };
        let known = self.due.entry(step.task_type.clone()).or_insert(due);
        *known = due.min(*known);
        *self.fresh.entry(step.task_type.clone()).or_default() += 1;
    }
}
