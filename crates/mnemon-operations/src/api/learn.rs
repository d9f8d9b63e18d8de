//! Learning from experience.

use mnemon_core::learn::Status;
use mnemon_core::{Ctx, Invalid, Viewer};
use mnemon_engine::Memory;
use mnemon_engine::learn::Improved;

use crate::Error;

/// How many skills are reworded when nobody says.
pub const IMPROVED: usize = 20;
/// Skills that are looked through.
const LOOKED_AT: usize = 1000;

/// Gives at most so many skills that were learnt better words, by the language model that is
/// configured.
pub async fn improve(memory: &Memory, ctx: &Ctx, limit: usize) -> Result<Vec<Improved>, Error> {
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
        if skills.len() == limit {
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
    Ok(skills)
}
