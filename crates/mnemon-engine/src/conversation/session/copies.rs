//! Copies of a session: a fork goes its own way, a snapshot is gone back to.

use mnemon_core::{Ctx, ErrorKind, limits};
use serde_json::{Value, json};

use super::{SessionId, SessionState, Sessions, load};
use crate::records::Error;

/// What stands in the envelope of a copy: the session that it was made from.
pub(crate) const FORK_OF: &str = "forkOf";
pub(crate) const SNAPSHOT_OF: &str = "snapshotOf";

/// Which sort of copy an envelope is, and of which session; `None` when it is none.
pub(crate) fn copied_from(envelope: Option<&Value>) -> Option<(&'static str, &str)> {
    let envelope = envelope?;
    let of = |how: &'static str| Some((how, envelope.get(how)?.as_str()?));
    of(SNAPSHOT_OF).or_else(|| of(FORK_OF))
}

/// Copies of a session.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pub(crate) snapshots: Vec<SessionId>,
    pub(crate) forks: Vec<String>,
    /// Sessions that are named like snapshots and cannot be read, and why.
    pub(crate) unreadable: Vec<(String, String)>,
}

/// The copies of a session that lie in the same place.
pub(crate) async fn copies_of(
    place: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
) -> Result<Copies, Error> {
    let mut copies = Copies::default();
    let prefix = format!("{id}@");
    for name in place.list(ctx).await? {
        let Ok(other) = name.parse::<SessionId>() else {
            continue;
        };
        let state = match place.load(ctx, &other).await {
            Ok(Some((state, _))) => state,
            Ok(None) => continue,
            Err(error) => {
                if name.starts_with(&prefix) {
                    copies.unreadable.push((name, error.to_string()));
                }
                continue;
            }
        };
        let envelope = Value::Object(state.extra);
        match copied_from(Some(&envelope)) {
            Some((how, of)) if of == id.as_str() => match how {
                SNAPSHOT_OF => copies.snapshots.push(other),
                _ => copies.forks.push(name),
            },
            _ => {}
        }
    }
    Ok(copies)
}

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
    replace(place, ctx, state).await
}

/// Saves the state now, in place of whatever was saved of the session before.
pub async fn replace(
    place: &dyn Sessions,
    ctx: &Ctx,
    mut state: SessionState,
) -> Result<SessionState, Error> {
    state.timestamp = Some(ctx.now.to_string());
    let mut tries = 0;
    loop {
        let seen = place.load(ctx, &state.session).await?;
        let seen = seen.map(|(_, mark)| mark);
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
