//! Change lines of an agent's context, replace it, or only show it.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, ContextChange};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    #[serde(default)]
    pub change: ContextChange,
    /// The whole context anew.
    #[serde(default)]
    pub rewrite: Option<Rewrite>,
}

/// A context that replaces the one that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewrite {
    pub text: String,
    /// What the writer had read: what others changed since then is merged.
    pub base: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// The context as it is now.
    pub context: String,
    /// Where two changes met in one place and both were kept.
    pub clashes: Vec<String>,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let name = &request.agent;
    let mut clashes = Vec::new();
    if let Some(Rewrite { text, base }) = &request.rewrite {
        clashes = agents.rewrite_context(ctx, name, text, base).await?;
    }
    if !request.change.is_empty() {
        agents.update_context(ctx, name, &request.change).await?;
    }
    let context = agents.show(name, "context.md").await?;
    let missing = || mnemon_engine::Error::NotThere(format!("`{name}` has no context yet"));
    let context = context.ok_or_else(missing)?;
    Ok(Response { context, clashes })
}
