//! The experience agent: reads what was tried, and draws skills and rules from it.
//!
//! ```text
//! Learning::slice          a bounded piece of work, in upkeep or by hand
//!   fold                   steps that were written since → runs            one commit, or none
//!   distil                 runs of a type of task that is due → skills, rules
//!     core::learn          patterns, rules, evidence: pure
//! ```
//!
//! Two sorts of records keep what it knows, in the scope experience and without words that a search
//! would find: a *diary* (how far it has read, which types of task are due), and a *run* for each
//! trace, derived from its steps. Skills and rules are derived from runs. Every write expects the version that was read: of several servers at work one
//! gets through, and the others go on from there.

mod books;
mod contest;
mod distil;
mod dry;
mod files;
mod fold;
mod improve;
mod judge;
mod review;

use mnemon_core::{Ctx, ErrorKind, Id, Scope, limits};
use serde::{Deserialize, Serialize};

pub use files::{SkillFile, read_skill_file, skill_file, skill_folder};
pub use improve::Improved;
pub use review::{LearnStatus, Lesson, LessonBody, Review, RuleBody, TaskStatus as LearningTask};

use crate::memory::Memory;
use crate::records::Error;

/// What was learnt by itself, and how it is looked after.
#[derive(Clone, Copy)]
pub struct Learning<'a> {
    pub(crate) memory: &'a Memory,
}

/// What became of a skill or a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transition {
    /// It is new, and waits for more evidence or for approval.
    Proposed,
    /// It is told to agents from now on.
    Activated,
    /// There is more evidence, for or against.
    Confirmed,
    /// There is enough evidence, but something speaks against telling it.
    Held,
    Retired,
}

/// A skill or a rule that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    pub id: Id,
    pub task_type: String,
    pub turn: Transition,
    /// What it says, on one line.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A procedure or a rule that was found and is not told to agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotKept {
    pub task_type: String,
    /// The procedure or the rule, on one line.
    pub found: String,
    /// Why it is not told, with the numbers.
    pub why: String,
}

impl NotKept {
    /// A procedure on one line.
    fn procedure(tools: &[String]) -> String {
        let steps = tools.len();
        format!("a procedure of {steps} steps ({})", tools.join(" → "))
    }
}

/// What a slice of learning did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnReport {
    /// Steps that were read.
    pub steps: u64,
    /// Of these, steps that nothing is learnt from: they name no type of task, or the policy says
    /// so.
    pub skipped: u64,
    /// Runs that they belong to.
    pub runs: u64,
    /// Types of task that were looked at.
    pub tasks: u64,
    pub learnt: Vec<Learnt>,
    /// What was found and is not told to agents, at most [`limits::NOT_KEPT_LISTED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<NotKept>,
    /// Whether there is more to do now.
    pub more: bool,
    /// Somebody else was at work; nothing is lost, the next slice goes on.
    pub contended: bool,
}

impl LearnReport {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.skipped += other.skipped;
        self.runs += other.runs;
        self.tasks += other.tasks;
        self.learnt.extend(other.learnt);
        self.list_not_kept(other.not_kept);
        self.more = other.more;
        self.contended |= other.contended;
    }

    /// Lists these, too. A type of task that was looked at again is listed as it is now.
    fn list_not_kept(&mut self, more: Vec<NotKept>) {
        let known = |one: &NotKept| more.iter().any(|other| other.task_type == one.task_type);
        self.not_kept.retain(|one| !known(one));
        self.not_kept.extend(more);
        self.not_kept.truncate(limits::NOT_KEPT_LISTED);
    }
}

/// Types of task that one slice looks at.
const TASKS: usize = 20;

impl Memory {
    /// What is learnt by itself.
    pub fn learning(&self) -> Learning<'_> {
        Learning { memory: self }
    }
}

impl Learning<'_> {
    /// Reads at most `steps` new steps, and looks at the types of task that are due.
    pub async fn slice(&self, ctx: &Ctx, steps: usize) -> Result<LearnReport, Error> {
        let mut report = LearnReport::default();
        let outdated = self.renew_diary(ctx).await;
        if contended(outdated, &mut report)?.is_none() {
            return Ok(report);
        }
        let folded = self.fold(ctx, steps, &mut report).await;
        if contended(folded, &mut report)?.is_none() {
            return Ok(report);
        }
        let distilled = self.distil_due(ctx, TASKS, &mut report).await;
        contended(distilled, &mut report)?;
        Ok(report)
    }

    /// What an earlier version learnt is judged again as it is done now.
    async fn renew_diary(&self, ctx: &Ctx) -> Result<(), Error> {
        let records = self.memory.records_of(Scope::Experience);
        let mut diary = books::diary(records, ctx).await?;
        if self.judge_again(ctx, &mut diary.value).await? {
            let diary = vec![books::diary_draft(&diary)];
            records.put_screened(ctx, diary, None).await?;
        }
        Ok(())
    }
}

/// A conflict is no error here: somebody else did the same work.
fn contended<T>(done: Result<T, Error>, report: &mut LearnReport) -> Result<Option<T>, Error> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == ErrorKind::Conflict => {
            report.contended = true;
            report.more = true;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
