//! Better words for skills that were learnt, by the language model that is configured.

use mnemon_core::learn::Status;
use mnemon_core::{Ctx, Invalid, Viewer};
use mnemon_engine::Memory;
use mnemon_engine::learn::Improved;
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many skills are reworded when nobody says.
pub const LIMIT: usize = 20;
/// Skills that are looked through.
const LOOKED_AT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// At most this many skills.
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self { limit: LIMIT }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub skills: Vec<Improved>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let Some(llm) = memory.llm() else {
        let what = "is not configured; without one skills keep the words that were mined";
        return Err(Invalid::new("llm", what).into());
    };
    let lessons = memory
        .learning()
        .lessons(ctx, &Viewer::Tenant, None, None, LOOKED_AT)
        .await?;
    let mut skills = Vec::new();
    for lesson in lessons {
        let learnt = lesson.evidence.support > 0 && lesson.evidence.status != Status::Retired;
        if !learnt || lesson.evidence.worded_by.is_some() || lesson.evidence.edited {
            continue;
        }
        if skills.len() == request.limit {
            break;
        }
        let improved = memory
            .learning()
            .improve(ctx, llm.as_ref(), &lesson.id)
            .await?;
        if !matches!(improved, Improved::Left { .. }) {
            skills.push(improved);
        }
    }
    Ok(Response { skills })
}
