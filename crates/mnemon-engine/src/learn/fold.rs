//! From steps to runs.

use std::collections::{BTreeMap, BTreeSet};

use mnemon_core::learn::{Act, LearnSettings, Outcome, Run, error_class};
use mnemon_core::{
    Ctx, Cursor, Expect, Filter, Id, Kind, Order, Record, Scan, Scope, Time, limits,
};
use serde_json::Value;

use super::kept::{self, Diary, Ledger, Versioned};
use super::{LearnReport, Learning};
use crate::scoped::{LoggedStep, logged};
use crate::{Draft, Error};

/// Steps that are read at once: each may be large.
pub(super) const PAGE: usize = 100;

/// A step, and where it belongs.
pub(super) struct Taken {
    run: Id,
    task_type: String,
    trace: Option<String>,
    user: Option<String>,
    act: Act,
    said: Option<Outcome>,
    written: Time,
}

/// Everything that a page of steps changes.
pub(super) struct Folded {
    pub(super) diary: Versioned<Diary>,
    pub(super) runs: BTreeMap<Id, Versioned<Run>>,
    pub(super) ledgers: BTreeMap<String, Versioned<Ledger>>,
}

impl Folded {
    /// What is to be written, all or nothing.
    pub(super) fn drafts(&self) -> Vec<(Draft, Expect)> {
        let runs = self.runs.values().map(kept::run_draft);
        let ledgers = self.ledgers.values().map(kept::ledger_draft);
        let diary = std::iter::once(kept::diary_draft(&self.diary));
        runs.chain(ledgers).chain(diary).collect()
    }
}

impl Learning<'_> {
    /// Reads new steps, a page at a time, each page in one commit.
    pub(super) async fn fold(
        &self,
        ctx: &Ctx,
        steps: usize,
        report: &mut LearnReport,
    ) -> Result<(), Error> {
        let records = self.memory.records_of(Scope::Experience);
        let mut left = steps;
        loop {
            let diary = kept::diary(records, ctx).await?;
            let wanted = left.min(PAGE);
            let page = self.unread(ctx, &diary.value, wanted).await?;
            let full = page.len() == wanted;
            if page.is_empty() {
                return Ok(());
            }
            left = left.saturating_sub(page.len());
            let folded = self.folded(ctx, diary, page, report).await?;
            records.put(ctx, folded.drafts(), None).await?;
            if !full {
                return Ok(());
            }
            if left == 0 {
                report.more = true;
                return Ok(());
            }
        }
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
            ..Filter::default()
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

    /// What these steps change; nothing is written.
    pub(super) async fn folded(
        &self,
        ctx: &Ctx,
        mut diary: Versioned<Diary>,
        page: Vec<Record>,
        report: &mut LearnReport,
    ) -> Result<Folded, Error> {
        let records = self.memory.records_of(Scope::Experience);
        let settings = self.memory.policies().learning();
        report.steps += page.len() as u64;
        diary.value.steps += page.len() as u64;
        diary.value.read = page.last().map_or(diary.value.read, |record| record.seq);
        let mut taken: Vec<Taken> = Vec::new();
        for record in page {
            match self.taken(record, ctx.now) {
                Some(step) if diary.value.has_room(&step.task_type) => taken.push(step),
                _ => report.skipped += 1,
            }
        }
        let ids: BTreeSet<Id> = taken.iter().map(|step| step.run.clone()).collect();
        let ids: Vec<Id> = ids.into_iter().collect();
        report.runs += ids.len() as u64;
        let known = kept::runs(records, ctx, &ids).await?.into_iter();
        let mut runs: BTreeMap<Id, Versioned<Run>> =
            known.map(|run| (run.value.id.clone(), run)).collect();
        let mut ledgers: BTreeMap<String, Versioned<Ledger>> = BTreeMap::new();
        for step in taken {
            if !ledgers.contains_key(&step.task_type) {
                let ledger = kept::ledger(records, ctx, &step.task_type).await?;
                ledgers.insert(step.task_type.clone(), ledger);
            }
            if let Some(ledger) = ledgers.get_mut(&step.task_type) {
                ledger.value.note(&step.run);
            }
            diary.value.expect(&step, &settings);
            let run = runs.entry(step.run.clone());
            let run = run.or_insert_with(|| Versioned::new(step.fresh_run()));
            if run.value.task_type.is_empty() {
                run.value = step.fresh_run();
            }
            run.value.add(step.act, step.said, step.written);
        }
        Ok(Folded {
            diary,
            runs,
            ledgers,
        })
    }

    /// The step as something to learn from; `None` if nothing is to be learnt from it.
    fn taken(&self, record: Record, now: Time) -> Option<Taken> {
        let owner = record.owner.clone();
        let policy = self
            .memory
            .policies
            .of(owner.flow.as_deref(), owner.agent.as_deref());
        // A clock that is ahead would keep a run open for ever.
        let written = record.updated.min(now);
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
            run: kept::run_id(
                &task_type,
                step.trace_id.as_deref(),
                &id,
                owner.user.as_deref(),
            ),
            said: said.and_then(Outcome::named),
            trace: step.trace_id,
            user: owner.user,
            task_type,
            act,
            written,
        })
    }
}

impl Taken {
    fn fresh_run(&self) -> Run {
        Run {
            trace: self.trace.clone(),
            user: self.user.clone(),
            ..Run::new(self.run.clone(), &self.task_type, self.written)
        }
    }
}

impl Diary {
    fn has_room(&self, task_type: &str) -> bool {
        self.due.len() < limits::LEARN_TASKS || self.due.contains_key(task_type)
    }

    /// Looks at the type of task when this run can have ended.
    fn expect(&mut self, step: &Taken, settings: &LearnSettings) {
        let due = match step.said {
            Some(_) => step.written,
            None => step.written.plus_millis(settings.settle_ms),
        };
        let known = self.due.entry(step.task_type.clone()).or_insert(due);
        *known = due.min(*known);
    }
}
