//! What belongs to no user: all that somebody may see who is nobody in particular.

use mnemon_core::{Ctx, limits};

use crate::{Error, Hit, Query, Records};

/// The best hits among the records of no user. A filter cannot ask for that, so more are asked for
/// than are needed, and more again while users' stand in the way.
pub(crate) async fn search(records: &Records, ctx: &Ctx, query: Query) -> Result<Vec<Hit>, Error> {
    let wanted = query.limit;
    let mut limit = wanted.saturating_mul(2).saturating_add(4);
    loop {
        limit = limit.min(limits::HITS);
        let more = Query {
            limit,
            ..query.clone()
        };
        let mut hits = records.search(ctx, &more).await?;
        let is_all = hits.len() < limit || limit == limits::HITS;
        hits.retain(|hit| hit.record.owner.user.is_none());
        if hits.len() >= wanted || is_all {
            hits.truncate(wanted);
            return Ok(hits);
        }
        limit = limit.saturating_mul(4);
    }
}
