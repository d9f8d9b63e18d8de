//! `mnemon write`

use super::door::Door;
use super::shared::Shared;
use super::{add, text};
use mnemon_operations::Error;
use mnemon_operations::operation::Write;

/// Save the result of an agent step
///
/// The fields of the data depend on the scope:
///   dialog      role and content; or messages, summary, fact
///   state       state; or tasks; or task_id, step and status
///   semantic    content, with kind, tags, source, metadata, shared
///   procedural  use_when, tool_sops, preferences, task_type, shared
///   profile     the changes: null removes a field, an object is merged
///   experience  tool, task_type, input, output, error, latency_ms, cost, trace_id
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    mnemon write --user ann --session s1 --scope dialog --data '{\"role\":\"user\",\"content\":\"hi\"}'\n  \
    mnemon write --user ann --session s1 --scope profile --data '{\"style\":\"brief\"}'\n  \
    mnemon write --user ann --session s1 --scope procedural --data @skill.json"
)]
pub(super) struct Args {
    #[command(flatten)]
    event: Shared<Write>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let receipt = args.event.call(door).await?;
    return_json!(door, &receipt);
    for item in &receipt.items {
        let fate = text::one_line(&add::fate(&item.fate));
        match receipt.commit {
            Some(commit) => say!(door, "{fate} {} (commit {commit})", item.id)?,
            None => door.out.line(fate.trim_end_matches(':'))?,
        }
    }
    Ok(())
}
