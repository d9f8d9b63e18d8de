//! The skills and rules there are.

use mnemon_core::learn::Status;
use mnemon_core::{Ctx, Viewer};
use mnemon_engine::Memory;
use mnemon_engine::learn::Lesson;
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many are listed when nobody says.
pub const LIMIT: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Only what this user may see: their own, and what is shared.
    pub user: Option<String>,
    pub task_type: Option<String>,
    pub status: Option<Status>,
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            user: None,
            task_type: None,
            status: None,
            limit: LIMIT,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// The newest first.
    pub skills: Vec<Lesson>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let task_type = request.task_type.as_deref();
    let viewer = Viewer::of_caller(request.user, None);
    let found = memory.learning();
    let skills = found.lessons(ctx, &viewer, task_type, request.status, request.limit);
    let skills = skills.await?;
    Ok(Response { skills })
}
