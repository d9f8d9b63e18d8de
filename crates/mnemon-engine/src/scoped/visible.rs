//! Whose knowledge and skills somebody may see: their own, and what belongs to nobody.

use mnemon_core::{Ctx, limits};

use crate::{Error, Hit, Query, Records};

/// The best hits that this user may see. A filter can say "Ann's" but not "Ann's or nobody's", so
/// more are asked for than are needed, and more again while others' stand in the way.
pub(super) async fn search(
    records: &Records,
    ctx: &Ctx,
    user: Option<&str>,
    query: Query,
) -> Result<Vec<Hit>, Error> {
    let Some(user) = user else {
        return records.search(ctx, &query).await;
    };
    let wanted = query.limit;
    let mut limit = wanted.saturating_mul(4).saturating_add(16);
    loop {
        limit = limit.min(limits::HITS);
        let more = Query {
            limit,
            ..query.clone()
        };
        let mut hits = records.search(ctx, &more).await?;
        let exhausted = hits.len() < limit || limit == limits::HITS;
        hits.retain(|hit| match &hit.record.owner.user {
            Some(owner) => owner == user,
            None => true,
        });
        if hits.len() >= wanted || exhausted {
            hits.truncate(wanted);
            return Ok(hits);
        }
        limit = limit.saturating_mul(4);
    }
}
