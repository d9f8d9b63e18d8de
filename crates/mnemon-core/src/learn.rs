//! Learning from what was tried: pure rules over runs, without a model.
//!
//! [`Run`] is what became of one trace, [`patterns`] finds the tool sequences that recur in the
//! successful ones, [`procedures`] makes something of them that can be followed, [`rules`] finds
//! what failures have in common, and [`Evidence`] holds each of them to its record.
//! `docs/learning.md` tells how each step decides, and why.

mod act;
mod evidence;
mod pattern;
mod procedure;
mod rule;
mod run;
mod settings;
mod statistics;
#[cfg(test)]
mod tests;

pub use act::{Act, Ended, error_class};
pub use evidence::{Evidence, Rate, Retired, Status, disused, regressed};
pub use pattern::{Mined, Pattern, chance, contains, died_at, follows, patterns};
pub use procedure::{
    Complexity, Findings, Missing, NotKept, Obstacle, Procedure, ProcedureStep, complexity,
    findings, missing, procedures, uses, usual_beside,
};
pub use rule::{Advice, Condition, Rule, rules};
pub use run::{Outcome, Run};
pub use settings::LearnSettings;
pub use statistics::{binomial_tail, fisher, wilson};
