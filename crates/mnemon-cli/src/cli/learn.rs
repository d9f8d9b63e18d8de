//! `mnemon learn`

use mnemon_engine::learn::{Improved, LearnReport, LearnStatus, NotKept, Transition};

use super::door::Door;
use super::shared::{Shared, Shown};
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::{LearnDryRun, LearnImprove, LearnRun, LearnState, Reworded};

/// Learn skills and rules from logged steps
///
/// Groups steps (see mnemon experience) into runs, one for each trace and type of task. Successful
/// runs of a type become a skill, failed runs a rule, each with its evidence. No language model is
/// needed. Upkeep learns automatically, a slice at a time.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon learn dry-run\n  \
    mnemon learn run\n  \
    mnemon learn status\n  \
    mnemon learn improve --limit 5")]
pub(super) enum Args {
    /// Learn from the steps logged since the last run
    Run(Shared<LearnRun>),
    /// Show the steps read and waiting, the skills and rules learnt, and the findings rejected
    Status(Shared<LearnState>),
    /// Preview what would be learnt if every trace had ended; write nothing
    DryRun(Shared<LearnDryRun>),
    /// Let the language model improve the wording of skills; tools and order stay the same
    Improve(Shared<LearnImprove>),
}

/// Findings that were not kept and are listed as text.
const NOT_KEPT: usize = 20;

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Run(args) => args.run(door).await,
        Args::Status(args) => args.run(door).await,
        Args::DryRun(args) => args.run(door).await,
        Args::Improve(args) => args.run(door).await,
    }
}

impl Shown for LearnReport {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        report(self, door)
    }
}

fn report(report: &LearnReport, door: &mut Door) -> Result<(), Error> {
    let read = format!(
        "{} read ({} skipped), {} touched, {} analysed",
        text::count(report.steps, "step"),
        report.skipped,
        text::count(report.runs, "run"),
        text::count(report.tasks, "type")
            .replace("types", "types of task")
            .replace("1 type", "1 type of task"),
    );
    door.out.line(read)?;
    for one in &report.learnt {
        let turn = match one.turn {
            Transition::Proposed => "proposed",
            Transition::Activated => "active",
            Transition::Confirmed => "confirmed",
            Transition::Held => "held back",
            Transition::Retired => "retired",
        };
        let why = one
            .why
            .as_ref()
            .map(|why| format!(" ({why})"))
            .unwrap_or_default();
        let line = format!("{turn} {}: {}{why}", one.id, one.text);
        door.out.line(text::one_line(&line))?;
    }
    show_not_kept(&report.not_kept, door)?;
    if report.more {
        door.out.line("there is more to do")?;
    }
    Ok(())
}

/// What was found and is not told to agents, with the reason.
fn show_not_kept(not_kept: &[NotKept], door: &mut Door) -> Result<(), Error> {
    for one in not_kept.iter().take(NOT_KEPT) {
        let NotKept {
            task_type,
            found,
            why,
        } = one;
        let line = format!("{task_type}: {found} was found, not kept: {why}");
        door.out.line(text::one_line(&line))?;
    }
    let left = not_kept.len().saturating_sub(NOT_KEPT);
    if left > 0 {
        let line = format!("{left} more were found and not kept; --json lists them");
        door.out.line(line)?;
    }
    Ok(())
}

impl Shown for LearnStatus {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        status(self, door)
    }
}

fn status(status: &LearnStatus, door: &mut Door) -> Result<(), Error> {
    say!(door, "{} read", text::count(status.steps, "step"))?;
    say!(
        door,
        "{} active, {} proposed, {} retired",
        status.active,
        status.candidates,
        status.retired
    )?;
    for task in &status.waiting {
        let line = format!("{} waits until {}", task.task_type, text::local(task.due));
        door.out.line(text::one_line(&line))?;
    }
    show_not_kept(&status.not_kept, door)
}

impl Shown for Reworded {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        improved(&self.skills, door)
    }
}

fn improved(skills: &[Improved], door: &mut Door) -> Result<(), Error> {
    for skill in skills {
        let line = match skill {
            Improved::Reworded { id, use_when } => format!("reworded {id}: {use_when}"),
            Improved::Merged { id, into } => format!("merged {id} into {into}"),
            Improved::Refused { id, why } => format!("left {id} as it was: {why}"),
            Improved::Left { id } => format!("left {id} as it was"),
        };
        door.out.line(text::one_line(&line))?;
    }
    if skills.is_empty() {
        door.out.line("no wording to improve")?;
    }
    Ok(())
}
