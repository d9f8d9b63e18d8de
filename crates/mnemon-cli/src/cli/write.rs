//! `mnemon write`

use mnemon_core::{Invalid, Scope};
use mnemon_engine::MemoryWriteEvent;
use serde_json::{Map, Value};

use super::door::Door;
use super::filters;
use super::read::Caller;
use super::{add, input, text};
use crate::Error;

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
    caller: Caller,
    /// Scope to write to
    #[arg(long, value_parser = filters::scope())]
    scope: Scope,
    /// Data to save, as a JSON object; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "JSON|-|@PATH")]
    data: String,
    /// Options of the write: idempotency_key, expected_version, trace_id, or custom metadata
    #[arg(long, value_name = "JSON")]
    meta: Option<String>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let data = input::given_or_file(&args.data)?;
    let meta = args.meta.as_deref().map(|meta| object("meta", meta));
    let event = MemoryWriteEvent {
        user_id: args.caller.user,
        session_id: args.caller.session,
        agent_id: args.caller.agent,
        flow_id: args.caller.flow,
        node_id: args.caller.node,
        scope: args.scope,
        data: object("data", &data)?,
        meta: meta.transpose()?.unwrap_or_default(),
    };
    let receipt = door.memory()?.write(&door.ctx()?, &event).await?;
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

fn object(field: &str, json: &str) -> Result<Map<String, Value>, Invalid> {
    serde_json::from_str(json)
        .map_err(|error| Invalid::new(field, format!("is not a JSON object: {error}")))
}
