//! `mnemon learn`

use mnemon_core::limits;
use mnemon_engine::learn::{Improved, LearnReport, NotKept, Transition};
use serde_json::json;

use super::door::Door;
use super::text;
use crate::{Error, api};

/// Steps that a dry run reads when nobody says.
const DRY_RUN_STEPS: usize = 100_000;

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
    Run {
        /// Maximum number of steps to read [default: all]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Show the steps read and waiting, the skills and rules learnt, and the findings rejected
    Status,
    /// Preview what would be learnt if every trace had ended; write nothing
    DryRun {
        /// Maximum number of steps to read
        #[arg(long, value_name = "N", default_value_t = DRY_RUN_STEPS)]
        limit: usize,
    },
    /// Let the language model improve the wording of skills; tools and order stay the same
    Improve {
        /// Maximum number of skills
        #[arg(long, value_name = "N", default_value_t = api::learn::IMPROVED)]
        limit: usize,
    },
}

/// How often others may be faster before the rest is left to them.
const TRIES: usize = 16;
/// Findings that were not kept and are listed as text.
const NOT_KEPT: usize = 20;

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Run { limit } => learn(limit, door).await,
        Args::Status => status(door).await,
        Args::DryRun { limit } => {
            let (memory, ctx) = (door.memory()?, door.ctx()?);
            show(&memory.learning().dry_run(&ctx, limit).await?, door)
        }
        Args::Improve { limit } => improve(limit, door).await,
    }
}

async fn learn(limit: Option<usize>, door: &mut Door) -> Result<(), Error> {
    let memory = door.memory()?;
    let mut all = LearnReport::default();
    let mut left = limit.unwrap_or(usize::MAX);
    let mut contended = 0;
    // In slices, so that other processes get their turn in between.
    loop {
        let steps = left.min(limits::LEARN_SLICE);
        let slice = memory.learning().slice(&door.ctx()?, steps).await?;
        contended += usize::from(slice.contended);
        left = left.saturating_sub(usize::try_from(slice.steps).unwrap_or(usize::MAX));
        all.add(slice);
        if !all.more || left == 0 || contended > TRIES {
            break;
        }
    }
    show(&all, door)
}

fn show(report: &LearnReport, door: &mut Door) -> Result<(), Error> {
    return_json!(door, report);
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

async fn status(door: &mut Door) -> Result<(), Error> {
    let memory = door.memory()?;
    let status = memory.learning().status(&door.ctx()?).await?;
    return_json!(door, &status);
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

async fn improve(limit: usize, door: &mut Door) -> Result<(), Error> {
    let skills = api::learn::improve(&*door.memory()?, &door.ctx()?, limit).await?;
    return_json!(door, &json!({ "skills": skills }));
    for skill in &skills {
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
