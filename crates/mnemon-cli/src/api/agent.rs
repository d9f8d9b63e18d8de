//! An agent's files, where a door needs more than one call of the engine.

use mnemon_core::{Ctx, Invalid};
use mnemon_engine::agentfiles::{AgentFiles, ContextChange};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The files that can be shown.
pub const FILES: [&str; 3] = ["context.md", "decisions.md", "learnings.md"];

/// One of an agent's [`FILES`] as it is.
pub async fn show(agents: &AgentFiles, agent: &str, file: &str) -> Result<String, Error> {
    if !FILES.contains(&file) {
        let what = format!("is not one of {}", FILES.join(", "));
        return Err(Invalid::new("file", what).into());
    }
    let missing = || mnemon_engine::Error::NotThere(format!("`{agent}` has no {file} yet"));
    Ok(agents.show(agent, file).await?.ok_or_else(missing)?)
}

/// A context that replaces the one that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewrite {
    pub text: String,
    /// What the writer had read: what others changed since then is merged.
    pub base: String,
}

/// An agent's context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Context {
    /// The context as it is now.
    pub context: String,
    /// Where two changes met in one place and both were kept.
    pub clashes: Vec<String>,
}

/// Replaces an agent's context or changes lines of it, and shows it.
pub async fn context(
    agents: &AgentFiles,
    ctx: &Ctx,
    agent: &str,
    change: &ContextChange,
    rewrite: Option<&Rewrite>,
) -> Result<Context, Error> {
    let clashes = match rewrite {
        Some(Rewrite { text, base }) => agents.rewrite_context(ctx, agent, text, base).await?,
        None => Vec::new(),
    };
    if !change.is_empty() {
        agents.update_context(ctx, agent, change).await?;
    }
    let context = agents.show(agent, "context.md").await?;
    let missing = || mnemon_engine::Error::NotThere(format!("`{agent}` has no context yet"));
    let context = context.ok_or_else(missing)?;
    Ok(Context { context, clashes })
}
