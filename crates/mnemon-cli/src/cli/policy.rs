//! `mnemon policy`

use serde_json::Value;

use super::door::Door;
use super::shared::Shared;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::config::Config;
use mnemon_operations::operation::PolicyShow;

/// Show what a flow reads and writes, and where this is set
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon policy show smart_buyer\n  \
    mnemon policy show smart_buyer --agent planner --json\n\n\
    A file may say:\n  \
    [policy.default]                      # everybody\n  \
    max_docs = 5\n  \
    [policy.smart_buyer]                  # a flow\n  \
    use_experience = false\n  \
    max_tokens = { dialog = 2000 }\n  \
    [policy.agents.planner]               # an agent in every flow\n  \
    max_skills = 5\n  \
    [policy.smart_buyer.agents.planner]   # an agent in a flow; the most specific wins\n  \
    writes_per_minute = { experience = 60 }")]
pub(super) enum Args {
    /// Show every value for a flow; without FLOW, those for a flow without its own policy
    Show(Shared<PolicyShow, Config>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let Args::Show(args) = args;
    let policy = args.call_on(&door.config, door).await?;
    return_json!(door, &policy);
    let rows = policy.values.into_iter().map(|row| {
        let value = match row.value {
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        let from = match row.table {
            Some(table) => format!("[{table}] {}", row.origin),
            None => row.origin,
        };
        vec![row.key, value, text::one_line(&from)]
    });
    door.out.table(&["KEY", "VALUE", "FROM"], rows.collect())
}
