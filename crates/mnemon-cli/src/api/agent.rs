//! Files of agents and teams, where a door needs more than one call of the engine.

use mnemon_core::{Ctx, Invalid};
use mnemon_engine::agentfiles::{AgentFiles, ContextChange, Warning, Whose};
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

/// The context of an agent or a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Context {
    /// The context as it is now.
    pub context: String,
    /// Each change, in a few words; empty if the context was only read.
    pub changes: Vec<String>,
    /// Where two changes met in one place and both were kept.
    pub clashes: Vec<String>,
}

/// Replaces a context or changes lines of it, and shows it.
pub async fn context(
    agents: &AgentFiles,
    ctx: &Ctx,
    whose: Whose<'_>,
    change: &ContextChange,
    rewrite: Option<&Rewrite>,
) -> Result<Context, Error> {
    let (mut changes, mut clashes) = (Vec::new(), Vec::new());
    if let Some(Rewrite { text, base }) = rewrite {
        clashes = agents.rewrite_context(ctx, whose, text, base).await?;
        changes.push("replaced the whole context".to_owned());
    }
    if !change.is_empty() {
        changes.extend(agents.update_context(ctx, whose, change).await?);
    }
    let context = agents.show(whose, "context.md").await?;
    let (Whose::Agent(name) | Whose::Team(name)) = whose;
    let missing = || mnemon_engine::Error::NotThere(format!("`{name}` has no context yet"));
    Ok(Context {
        context: context.ok_or_else(missing)?,
        changes,
        clashes,
    })
}

/// The warnings about one agent, or about all agents and teams.
pub async fn lint(
    agents: &AgentFiles,
    ctx: &Ctx,
    agent: Option<&str>,
) -> Result<Vec<Warning>, Error> {
    Ok(match agent {
        Some(agent) => agents.lint(ctx, agent).await?,
        None => agents.lint_all(ctx).await?,
    })
}
