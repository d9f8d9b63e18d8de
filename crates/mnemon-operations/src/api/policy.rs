//! What a flow reads and writes, and who said so.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub flow: Option<String>,
    pub agent: Option<String>,
    pub values: Vec<Row>,
}

/// A value that applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub key: String,
    /// `null`: no limit.
    pub value: Value,
    /// The table that says so; absent for the built-in default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Where it stands.
    pub origin: String,
}

/// Without a flow: the policy of one that was never spoken of.
pub fn run(config: &Config, flow: Option<String>, agent: Option<String>) -> Response {
    let policies = &config.policies;
    let applied = policies.policies.explain(flow.as_deref(), agent.as_deref());
    let values = applied.into_iter().map(|applied| Row {
        origin: policies
            .origin(applied.from.as_ref(), &applied.key)
            .to_string(),
        table: applied.from.map(|whom| whom.to_string()),
        key: applied.key,
        value: applied.value,
    });
    Response {
        values: values.collect(),
        flow,
        agent,
    }
}
