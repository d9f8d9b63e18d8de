//! The skills that fit, and the rules of a type of task: what an agent would be told.

use mnemon_core::{Ctx, Viewer};
use mnemon_engine::{FoundRule, FoundSkill, Memory};
use serde::Serialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub query: String,
    pub task_type: Option<String>,
    /// Only what this user may see.
    pub user: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub skills: Vec<FoundSkill>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<FoundRule>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (viewer, limit) = (Viewer::of_caller(request.user, None), request.limit);
    let task_type = request.task_type.as_deref();
    let known = memory.procedural();
    let skills = known.search_skills(ctx, &viewer, task_type, &request.query, limit);
    let skills = skills.await?;
    let rules = match task_type {
        Some(task_type) => known.rules_for(ctx, &viewer, task_type, limit).await?,
        None => Vec::new(),
    };
    Ok(Response { skills, rules })
}
