//! Files of agents as they are.

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::AgentFiles;

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
