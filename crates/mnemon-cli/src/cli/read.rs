//! `mnemon read`

use mnemon_engine::{Answer, DialogContext, LoggedStep, Payload, StatePayload};
use serde_json::{Map, Value};

use super::door::Door;
use super::shared::{Shared, call_with_files};
use super::{skill, text};
use mnemon_operations::Error;
use mnemon_operations::operation::Read;

/// Load the memory an agent step needs (history, state, facts, skills)
///
/// Scopes are read at the same time. Scopes that the policy switches off are left out, with the
/// reason; an error in one scope is reported and does not affect the others.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon read --user ann --session s1\n  \
    mnemon read --user ann --session s1 --agent planner --flow smart_buyer \\\n    \
    --scope dialog --scope semantic --query \"green tea\" --task-type shop --json")]
pub(super) struct Args {
    #[command(flatten)]
    query: Shared<Read>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let read = call_with_files::<Read>(args.query.arguments()?, door).await?;
    return_json!(door, &read);
    for item in &read.items {
        match &item.answer {
            Answer::LeftOut(why) => {
                let why = text::one_line(why);
                say!(door, "{}: left out: {why}", item.scope)?;
            }
            Answer::Error(failure) => {
                let why = text::one_line(&failure.message);
                say!(door, "{}: failed: {why}", item.scope)?;
            }
            Answer::Payload(payload) => {
                let more = match item.dropped {
                    0 => String::new(),
                    dropped => format!(" ({dropped} more have no room under the policy)"),
                };
                say!(door, "{}:{more}", item.scope)?;
                for line in lines(payload) {
                    let line = text::cut(&line, door.out.width.saturating_sub(2));
                    say!(door, "  {line}")?;
                }
            }
        }
    }
    Ok(())
}

/// What a scope says, a line for each thing.
fn lines(payload: &Payload) -> Vec<String> {
    let lines = match payload {
        Payload::Dialog(context) => dialog(context),
        Payload::State(held) => state(held),
        Payload::Semantic { docs } => docs
            .iter()
            .map(|doc| format!("{} ({})", doc.content, doc.id))
            .collect(),
        Payload::Procedural { skills, rules } => {
            let skills = skills.iter().flat_map(skill::found_lines);
            let rules = rules
                .iter()
                .map(|rule| format!("{} ({})", rule.rule, rule.id));
            skills.chain(rules).collect()
        }
        Payload::Profile { profile, .. } => members(profile),
        Payload::Experience {
            failures,
            cancelled,
            traces,
        } => {
            let done = traces.iter().flat_map(|trace| &trace.steps);
            failures
                .iter()
                .chain(cancelled)
                .chain(done)
                .map(step)
                .collect()
        }
    };
    match lines.is_empty() {
        true => vec!["nothing".to_owned()],
        false => lines,
    }
}

fn dialog(context: &DialogContext) -> Vec<String> {
    let summary = context.summary.iter();
    let mut lines: Vec<String> = summary
        .map(|summary| format!("summary: {}", summary.text))
        .collect();
    lines.extend(
        context
            .facts
            .iter()
            .map(|fact| format!("fact: {}", fact.text)),
    );
    let messages = context.turns.iter().flat_map(|turn| &turn.messages);
    lines.extend(messages.map(|said| format!("{}: {}", said.role.word(), said.content)));
    lines
}

fn state(held: &StatePayload) -> Vec<String> {
    let mut lines = members(&held.state);
    lines.extend(held.tasks.iter().map(|task| {
        let ready = held.startable.contains(&task.id);
        let ready = if ready { ", can start" } else { "" };
        format!("task {}: {}{ready}", task.id, task.status.as_str())
    }));
    lines
}

fn members(map: &Map<String, Value>) -> Vec<String> {
    let members = map.iter();
    members
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            other => format!("{name}: {other}"),
        })
        .collect()
}

fn step(step: &LoggedStep) -> String {
    let named = [&step.step.tool, &step.step.task_type];
    let named: Vec<&str> = named.into_iter().flatten().map(String::as_str).collect();
    let why = step.step.error.as_deref();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} {}{why}", step.ended.as_str(), named.join(", "))
}
