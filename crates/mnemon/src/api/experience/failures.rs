//! The newest steps that failed.

use mnemon_core::{Ctx, Owner, Viewer};
use mnemon_engine::{LIMIT_STEPS, LoggedStep, Memory};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub owner: Owner,
    pub task_type: Option<String>,
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            owner: Owner::default(),
            task_type: None,
            limit: LIMIT_STEPS,
        }
    }
}

impl Request {
    /// The user and the agent that are named; the tenant if no user is.
    pub(super) fn viewer(&self) -> Viewer {
        Viewer::of_caller(self.owner.user.clone(), self.owner.agent.clone())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub failures: Vec<LoggedStep>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let task_type = request.task_type.as_deref();
    let viewer = request.viewer();
    let experience = memory.experience();
    let failures = experience.get_failures(ctx, &viewer, &request.owner, task_type, request.limit);
    let failures = failures.await?;
    Ok(Response { failures })
}
