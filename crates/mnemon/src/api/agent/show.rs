//! One of an agent's files as it is.

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::AgentFiles;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The files that can be shown.
pub const FILES: [&str; 3] = ["context.md", "decisions.md", "learnings.md"];

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    /// One of [`FILES`].
    pub file: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub text: String,
}

pub async fn run(agents: &AgentFiles, request: Request) -> Result<Response, Error> {
    let Request { agent, file } = request;
    if !FILES.contains(&file.as_str()) {
        let what = format!("is not one of {}", FILES.join(", "));
        return Err(Invalid::new("file", what).into());
    }
    let text = agents.show(&agent, &file).await?;
    let missing = || mnemon_engine::Error::NotThere(format!("`{agent}` has no {file} yet"));
    let text = text.ok_or_else(missing)?;
    Ok(Response { text })
}
