//! What was tried, and how it went.

use mnemon_core::{Ctx, Invalid, Owner, Receipt};
use mnemon_engine::{Memory, Step};

use crate::Error;

/// Logs a step that was tried. Refused where the policy of the flow or the agent keeps no experience.
pub async fn log(memory: &Memory, ctx: &Ctx, owner: &Owner, step: Step) -> Result<Receipt, Error> {
    let (flow, agent) = (owner.flow.as_deref(), owner.agent.as_deref());
    if !memory.policies().of(flow, agent).write_experience {
        let what = "is not kept: the policy says write_experience = false";
        return Err(Invalid::new("step", what).into());
    }
    Ok(memory.experience().log_step(ctx, owner, step, None).await?)
}
