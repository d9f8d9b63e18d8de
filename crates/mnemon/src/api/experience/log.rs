//! Log a step that was tried.

use mnemon_core::{Ctx, Invalid, Owner, Receipt};
use mnemon_engine::{Memory, Step};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    #[serde(default)]
    pub owner: Owner,
    pub step: Step,
}

pub type Response = Receipt;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let owner = &request.owner;
    let policy = memory
        .policies()
        .of(owner.flow.as_deref(), owner.agent.as_deref());
    if !policy.write_experience {
        let what = "is not kept: the policy says write_experience = false";
        return Err(Invalid::new("step", what).into());
    }
    let experience = memory.experience();
    let logged = experience.log_step(ctx, &request.owner, request.step, None);
    Ok(logged.await?)
}
