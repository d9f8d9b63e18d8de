//! What happened, told after a node ran.

use mnemon_core::{Ctx, Receipt};
use mnemon_engine::{Memory, MemoryWriteEvent};

use crate::Error;

pub type Request = MemoryWriteEvent;

/// What became of it. What the policy does not want is rejected here, with the reason.
pub type Response = Receipt;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.write(ctx, &request).await?)
}
