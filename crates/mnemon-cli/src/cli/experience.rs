//! `mnemon experience`

use mnemon_core::{Invalid, Owner, Receipt, Viewer};
use mnemon_engine::{LIMIT_STEPS, LoggedStep, Step};
use serde_json::json;

use super::door::Door;
use super::shared::Shared;
use super::{add, input, text};
use crate::operation::{LogStep, Ownership};
use crate::{Error, api};

/// Log the steps of tasks and show how they went
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon experience log '{\"task_type\":\"deploy\",\"tool\":\"run_cmd\",\"input\":{\"cmd\":\"npm install\"},\"trace_id\":\"t1\"}'\n  \
    mnemon experience failures --task-type deploy\n  \
    mnemon experience traces --user ann")]
pub(super) enum Args {
    /// Log a step of a task
    ///
    /// The step is given by options, or as a JSON object with task_type, tool, input, output, error,
    /// success, latency_ms, cost, trace_id and metadata. Metadata may have goal, outcome, correction
    /// and remember, which are options, too.
    Log {
        /// The step as JSON; - reads it from stdin, @PATH from a file
        #[arg(value_name = "JSON|-|@PATH")]
        step: Option<String>,
        #[command(flatten)]
        fields: Shared<LogStep>,
    },
    /// List the newest steps that failed
    Failures(Which),
    /// List the newest traces that succeeded
    Traces(Which),
}

#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// Select those of this type of task
    #[arg(long, value_name = "TYPE")]
    task_type: Option<String>,
    #[command(flatten)]
    owner: Shared<Ownership>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = LIMIT_STEPS)]
    limit: usize,
}

/// Whose steps, and who reads them: the user and the agent that are named, the tenant if no user
/// is.
fn owner(owner: Shared<Ownership>) -> Result<(Owner, Viewer), Error> {
    let owner = owner.arguments()?.take_owner();
    let viewer = Viewer::of_caller(owner.user.clone(), owner.agent.clone());
    Ok((owner, viewer))
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Log { step, fields } => log(step, fields, door).await,
        Args::Failures(which) => failures(which, door).await,
        Args::Traces(which) => traces(which, door).await,
    }
}

async fn failures(which: Which, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let (owner, viewer) = owner(which.owner)?;
    let (task_type, experience) = (which.task_type.as_deref(), memory.experience());
    let found = experience.get_failures(&ctx, &viewer, &owner, task_type, which.limit);
    let failures = found.await?;
    return_json!(door, &json!({ "failures": failures }));
    let mut failures = failures.iter();
    failures.try_for_each(|step| door.out.line(line(step)))
}

async fn traces(which: Which, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let (owner, viewer) = owner(which.owner)?;
    let (task_type, experience) = (which.task_type.as_deref(), memory.experience());
    let found = experience.get_successful_traces(&ctx, &viewer, &owner, task_type, which.limit);
    let traces = found.await?;
    return_json!(door, &json!({ "traces": traces }));
    for trace in &traces {
        let name = trace.trace_id.as_deref().unwrap_or("(without a trace id)");
        door.out.line(text::one_line(name))?;
        for step in &trace.steps {
            say!(door, "  {}", line(step))?;
        }
    }
    Ok(())
}

async fn log(step: Option<String>, fields: Shared<LogStep>, door: &mut Door) -> Result<(), Error> {
    let receipt = match step {
        Some(step) => log_json(&input::given_or_file(&step)?, fields, door).await?,
        None => fields.call(door).await?,
    };
    return_json!(door, &receipt);
    for item in &receipt.items {
        let fate = text::one_line(&add::fate(&item.fate));
        say!(door, "{fate} {}", item.id)?;
    }
    Ok(())
}

async fn log_json(json: &str, fields: Shared<LogStep>, door: &Door) -> Result<Receipt, Error> {
    let step: Step = serde_json::from_str(json)
        .map_err(|error| Invalid::new("step", format!("is not a step: {error}")))?;
    let mut fields = fields.arguments()?;
    let owner = fields.take_owner();
    if !fields.is_empty() {
        let what = "is given as JSON together with options; use one of the two";
        return Err(Invalid::new("step", what).into());
    }
    api::experience::log(&*door.memory()?, &door.ctx()?, &owner, step).await
}

fn line(step: &LoggedStep) -> String {
    let tool = step.step.tool.as_deref().or(step.step.task_type.as_deref());
    let error = step.step.error.as_ref().map(|error| format!(": {error}"));
    let line = format!(
        "{} {} {}{}",
        text::local(step.at),
        tool.unwrap_or_default(),
        step.ended.as_str(),
        error.unwrap_or_default()
    );
    text::one_line(&line)
}
