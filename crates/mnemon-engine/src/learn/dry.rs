//! What would be learnt.

use std::collections::BTreeMap;

use mnemon_core::learn::Run;
use mnemon_core::{Ctx, Id, Scope};

use super::books;
use super::{LearnReport, Learning};
use crate::records::Error;

impl Learning<'_> {
    /// Reads at most `steps` new steps and says what a run would learn, as if every trace had
    /// ended. Nothing is written.
    pub async fn dry_run(&self, ctx: &Ctx, steps: usize) -> Result<LearnReport, Error> {
        let records = self.memory.records_of(Scope::Experience);
        let limits = records.limits();
        let mut report = LearnReport::default();
        let mut runs: BTreeMap<Id, Run> = BTreeMap::new();
        let mut diary = books::diary(records, ctx).await?;
        self.judge_again(ctx, &mut diary.value).await?;
        let mut left = steps;
        while left > 0 {
            let before = diary.value.steps;
            let folded = self
                .folded(ctx, diary, left.min(limits.learn_chunk), &mut report)
                .await?;
            let read = folded.diary.value.steps - before;
            left = left.saturating_sub(usize::try_from(read).unwrap_or(usize::MAX));
            for (id, run) in folded.runs {
                merge(&mut runs, id, run.value);
            }
            diary = folded.diary;
            report.more = folded.more && left == 0;
            if !folded.more {
                break;
            }
        }
        let settings = self.memory.policies().learning();
        let later = Ctx {
            now: ctx.now.plus_millis(settings.settle_ms),
            ..ctx.clone()
        };
        let due: Vec<String> = diary.value.due.keys().cloned().collect();
        for task_type in due {
            let mut all = books::newest_runs(records, ctx, &task_type).await?;
            let fresh = runs.values().filter(|run| run.task_type == task_type);
            let fresh: Vec<Run> = fresh.cloned().collect();
            all.retain(|run| !fresh.iter().any(|other| other.id == run.id));
            all.extend(fresh);
            all.sort_by_key(|run| run.order);
            let over = all.len().saturating_sub(limits.learn_runs);
            all.drain(..over);
            let look = self.look(&later, &task_type, all).await?;
            report.tasks += 1;
            look.tell(&mut report);
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
    known.order = known.order.max(run.order);
    for act in run.acts {
        known.add(act, said, last);
    }
    known.left_out += run.left_out;
}
