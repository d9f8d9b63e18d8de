//! What would be learnt.

use std::collections::BTreeMap;

use mnemon_core::learn::Run;
use mnemon_core::{Ctx, Id, Scope};

use super::kept::{self, Ledger};
use super::{LearnReport, Learning, fold};
use crate::Error;

impl Learning<'_> {
    /// Reads at most `steps` new steps and says what a run would learn, as if every trace had
    /// ended. Nothing is written.
    pub async fn dry_run(&self, ctx: &Ctx, steps: usize) -> Result<LearnReport, Error> {
        let records = self.memory.records_of(Scope::Experience);
        let mut report = LearnReport::default();
        let mut runs: BTreeMap<Id, Run> = BTreeMap::new();
        let mut ledgers: BTreeMap<String, Ledger> = BTreeMap::new();
        let mut diary = kept::diary(records, ctx).await?;
        let mut left = steps;
        while left > 0 {
            let wanted = left.min(fold::PAGE);
            let page = self.unread(ctx, &diary.value, wanted).await?;
            if page.is_empty() {
                break;
            }
            left -= page.len();
            let folded = self.folded(ctx, diary, page, &mut report).await?;
            for (id, run) in folded.runs {
                merge(&mut runs, id, run.value);
            }
            for (task_type, ledger) in folded.ledgers {
                let known = ledgers
                    .entry(task_type)
                    .or_insert_with(|| ledger.value.clone());
                ledger.value.runs.iter().for_each(|run| known.note(run));
            }
            diary = folded.diary;
            report.more = left == 0;
        }
        let due = diary.value.due.keys().cloned();
        for task_type in due.collect::<Vec<String>>() {
            let ledger = match ledgers.remove(&task_type) {
                Some(ledger) => ledger,
                None => kept::ledger(records, ctx, &task_type).await?.value,
            };
            let there = kept::runs(records, ctx, &ledger.runs).await?.into_iter();
            let mut all: BTreeMap<Id, Run> =
                there.map(|run| (run.value.id.clone(), run.value)).collect();
            for id in &ledger.runs {
                if let Some(run) = runs.remove(id) {
                    all.insert(id.clone(), run);
                }
            }
            let ordered = ledger.runs.iter().filter_map(|id| all.remove(id));
            let settings = self.memory.policies().learning();
            let later = Ctx {
                now: ctx.now.plus_millis(settings.settle_ms),
                ..ctx.clone()
            };
            let ordered: Vec<Run> = ordered.collect();
            let (verdicts, _) = self
                .verdicts(&later, &task_type, &ledger.lessons, ordered)
                .await?;
            report.tasks += 1;
            let told = verdicts
                .iter()
                .filter_map(|verdict| verdict.told(&task_type));
            report.learnt.extend(told);
        }
        Ok(report)
    }
}

/// Steps of a page join those of the pages before it.
fn merge(runs: &mut BTreeMap<Id, Run>, id: Id, run: Run) {
    let Some(known) = runs.get_mut(&id) else {
        runs.insert(id, run);
        return;
    };
    let (said, last) = (run.said, run.last);
    for act in run.acts {
        known.add(act, said, last);
    }
    known.left_out += run.left_out;
}
