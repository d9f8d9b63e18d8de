//! Copies of a session: a fork goes its own way, a snapshot is gone back to.

use mnemon_core::{Ctx, ErrorKind, limits};
use serde_json::json;

use super::{SessionId, SessionState, Sessions, load};
use crate::Error;

/// What stands in the envelope of a copy: the session that it was made from.
const FORK_OF: &str = "forkOf";
const SNAPSHOT_OF: &str = "snapshotOf";

/// Saves the session once more under another id, which must be free.
pub async fn fork(
    place: &dyn Sessions,
    ctx: &Ctx,
    from: &SessionId,
    to: &SessionId,
) -> Result<SessionState, Error> {
    let (state, _) = load(place, ctx, from).await?;
    let mut copy = SessionState {
        session: to.clone(),
        timestamp: Some(ctx.now.to_string()),
        ..state
    };
    copy.extra.remove(SNAPSHOT_OF);
    copy.extra.insert(FORK_OF.to_owned(), json!(from));
    place_new(place, ctx, &copy).await?;
    Ok(copy)
}

/// Saves the session as it is now under `{session}@{label}`, which must be free.
pub async fn snapshot(
    place: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
    label: &str,
) -> Result<SessionId, Error> {
    let to = snapshot_id(id, label)?;
    let (state, _) = load(place, ctx, id).await?;
    let mut copy = SessionState {
        session: to.clone(),
        ..state
    };
    copy.extra.insert(SNAPSHOT_OF.to_owned(), json!(id));
    place_new(place, ctx, &copy).await?;
    Ok(to)
}

/// Makes the session what it was when the snapshot was taken, whole: also parts that were added
/// since are gone. The snapshot stays.
pub async fn restore(
    place: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
    label: &str,
) -> Result<SessionState, Error> {
    let from = snapshot_id(id, label)?;
    let (mut state, _) = load(place, ctx, &from).await?;
    if state.extra.remove(SNAPSHOT_OF) != Some(json!(id)) {
        return Err(Error::NoSession(format!("{from}, as a snapshot of {id}")));
    }
    state.session = id.clone();
    state.timestamp = Some(ctx.now.to_string());
    let mut tries = 0;
    loop {
        let seen = place.load(ctx, id).await?.map(|(_, mark)| mark);
        tries += 1;
        match place.save(ctx, &state, seen.as_ref()).await {
            Err(error) if error.kind() == ErrorKind::Conflict && tries < limits::CHANGE_TRIES => {}
            done => return done.map(|()| state),
        }
    }
}

fn snapshot_id(id: &SessionId, label: &str) -> Result<SessionId, Error> {
    super::id::check("label", label)?;
    Ok(format!("{id}@{label}").parse()?)
}

async fn place_new(place: &dyn Sessions, ctx: &Ctx, state: &SessionState) -> Result<(), Error> {
    match place.save(ctx, state, None).await {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            Err(Error::SessionExists(state.session.to_string()))
        }
        done => done,
    }
}
