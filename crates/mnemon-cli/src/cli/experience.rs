//! `mnemon experience`

use mnemon_core::{Invalid, Receipt};
use mnemon_engine::{LoggedStep, Step};

use super::door::Door;
use super::shared::{Shared, Shown};
use super::{add, input, text};
use mnemon_operations::operation::{FailedSteps, Failures, LogStep, TracedSteps, Traces};
use mnemon_operations::{Error, api};

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
    Failures(Shared<Failures>),
    /// List the newest traces that succeeded
    Traces(Shared<Traces>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Log { step, fields } => log(step, fields, door).await,
        Args::Failures(args) => args.run(door).await,
        Args::Traces(args) => args.run(door).await,
    }
}

impl Shown for FailedSteps {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let mut failures = self.failures.iter();
        failures.try_for_each(|step| door.out.line(line(step)))
    }
}

impl Shown for TracedSteps {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        for trace in &self.traces {
            let name = trace.trace_id.as_deref().unwrap_or("(without a trace id)");
            door.out.line(text::one_line(name))?;
            for step in &trace.steps {
                say!(door, "  {}", line(step))?;
            }
        }
        Ok(())
    }
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
    if door.remote.is_some() {
        return fields.with_json("step", json)?.call(door).await;
    }
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
