//! The newest traces that went well.

use mnemon_core::Ctx;
use mnemon_engine::{Memory, Trace};
use serde::Serialize;

use crate::Error;

pub use super::failures::Request;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub traces: Vec<Trace>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let task_type = request.task_type.as_deref();
    let viewer = request.viewer();
    let experience = memory.experience();
    let traces =
        experience.get_successful_traces(ctx, &viewer, &request.owner, task_type, request.limit);
    let traces = traces.await?;
    Ok(Response { traces })
}
