//! What a flow reads and writes, and who said so.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Without it: the policy of a flow that was never spoken of.
    pub flow: Option<String>,
    pub agent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub flow: Option<String>,
    pub agent: Option<String>,
    pub values: Vec<Row>,
}

/// A value that applies.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

#[must_use]
pub fn run(config: &Config, request: Request) -> Response {
    let policies = &config.policies;
    let (flow, agent) = (request.flow.as_deref(), request.agent.as_deref());
    let values = policies.policies.explain(flow, agent).into_iter();
    let values = values.map(|applied| Row {
        origin: policies
            .origin(applied.from.as_ref(), &applied.key)
            .to_string(),
        table: applied.from.map(|whom| whom.to_string()),
        key: applied.key,
        value: applied.value,
    });
    Response {
        values: values.collect(),
        flow: request.flow,
        agent: request.agent,
    }
}
