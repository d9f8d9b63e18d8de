//! Is it worth keeping? What goes right by itself need not be written down.

use super::Told;
use crate::learn::{Ended, Outcome, Run, follows};

/// How hard a task proved to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Complexity {
    /// A tool failed and then did it with other parameters: one point.
    pub parameter_errors: usize,
    /// Something else was tried and failed: one point.
    pub wrong_ways: usize,
    /// The user put something right: two points.
    pub corrections: usize,
    /// The user asked to remember something: two points.
    pub remembered: usize,
    /// Runs that were looked at.
    pub of: usize,
}

impl Complexity {
    /// The points. What a user says counts at once; what goes wrong counts when it was no accident:
    /// in two runs, and in one of twenty.
    pub fn points(&self) -> u32 {
        let often = |runs: usize| runs >= 2 && runs * 20 >= self.of;
        u32::from(often(self.parameter_errors))
            + u32::from(often(self.wrong_ways))
            + 2 * u32::from(self.corrections > 0)
            + 2 * u32::from(self.remembered > 0)
    }
}

/// How hard the task proved to be in these runs.
pub fn complexity(tools: &[String], told: &[Told<'_>]) -> Complexity {
    let mut sum = Complexity {
        of: told.len(),
        ..Complexity::default()
    };
    for (run, outcome) in told {
        sum.parameter_errors += usize::from(has_parameter_error(run));
        let failed = *outcome == Outcome::Failure && !follows(run, *outcome, tools);
        sum.wrong_ways += usize::from(failed || has_wrong_way(run));
        sum.corrections += usize::from(run.acts.iter().any(|act| act.correction.is_some()));
        sum.remembered += usize::from(run.acts.iter().any(|act| act.remember.is_some()));
    }
    sum
}

fn has_parameter_error(run: &Run) -> bool {
    run.acts.iter().enumerate().any(|(at, failed)| {
        let mut later = run.acts.iter().skip(at + 1);
        failed.ended == Ended::Failed
            && failed.tool.is_some()
            && later.any(|act| {
                act.ended == Ended::Done && act.tool == failed.tool && act.params != failed.params
            })
    })
}

/// A tool failed, and another one took its place.
fn has_wrong_way(run: &Run) -> bool {
    run.acts.iter().enumerate().any(|(at, failed)| {
        let again = run
            .acts
            .iter()
            .skip(at + 1)
            .any(|act| act.tool == failed.tool);
        let next = run.acts.get(at + 1);
        failed.ended == Ended::Failed
            && failed.tool.is_some()
            && !again
            && next.is_some_and(|next| next.ended == Ended::Done)
    })
}
