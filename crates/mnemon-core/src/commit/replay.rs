//! Changes of another store, written as they are.

use super::request::check_tenant;
use super::{Effect, Entry, Move, Planned, Presence, Slot, View};
use crate::error::Invalid;
use crate::model::{Grant, Right};
use crate::ports::{Receipt, Replay, StoreError, StoredChange};

/// Refuses changes that are not in order, or of another tenant. How many bytes they have.
pub(super) fn check(grant: &Grant, replay: &Replay) -> Result<usize, StoreError> {
    grant.require(Right::Purge)?;
    let (mut before, mut bytes) = (replay.after, 0);
    for change in &replay.changes {
        if change.seq <= before || change.seq > replay.last_seq {
            let what = format!("change {} is out of order", change.seq);
            return Err(Invalid::new("replay", what).into());
        }
        before = change.seq;
        if let Some(record) = &change.record {
            check_tenant(grant, record)?;
            record.check()?;
            bytes += record.weight();
        }
    }
    Ok(bytes)
}

/// The moves that add the changes to what is there. No rule applies to them: the other store has
/// applied all of them.
pub(super) fn plan(view: &mut View, replay: Replay) -> Result<Planned, StoreError> {
    if view.last_seq != replay.after || replay.last_seq < replay.after {
        let (there, expected) = (view.last_seq, replay.after);
        let what = format!(
            "change {there} is the newest one, not {expected}: another process has written"
        );
        return Err(Invalid::new("replay", what).into());
    }
    let mut moves = Vec::with_capacity(replay.changes.len());
    for id in replay.erased {
        let leaves = slot(view.records.remove(&id));
        let effect = Effect::Erase { id, purged: None };
        moves.push(Move { effect, leaves });
    }
    if !replay.dropped.is_empty() || !replay.dropped_keys.is_empty() {
        let effect = Effect::Drop {
            seqs: replay.dropped,
            keys: replay.dropped_keys,
        };
        let leaves = None;
        moves.push(Move { effect, leaves });
    }
    for change in replay.changes {
        moves.push(add(view, change));
    }
    for kept in replay.receipts {
        let effect = Effect::Receipt {
            key: kept.key,
            at: kept.at,
            receipt: kept.receipt,
        };
        let leaves = None;
        moves.push(Move { effect, leaves });
    }
    view.last_seq = replay.last_seq;
    view.clock = replay.clock;
    let receipt = Receipt::default();
    Ok(Planned { receipt, moves })
}

fn slot(presence: Option<Presence>) -> Option<Slot> {
    presence.and_then(Presence::slot)
}

fn add(view: &mut View, change: StoredChange) -> Move {
    let StoredChange { id, version, .. } = change;
    let entry = Entry {
        seq: change.seq,
        commit: change.commit,
        at: change.at,
        actor: change.actor,
        cause: change.cause,
    };
    let is_purge = change.record.is_none() && version == 0;
    let presence = match &change.record {
        Some(record) => Some(Presence::Current(Slot::of(record))),
        None => (!is_purge).then_some(Presence::Deleted(version)),
    };
    let leaves = slot(match presence {
        Some(presence) => view.records.insert(id.clone(), presence),
        None => view.records.remove(&id),
    });
    let effect = match change.record {
        Some(record) => Effect::Write { entry, record },
        None if is_purge => Effect::Erase {
            id,
            purged: Some(entry),
        },
        None => Effect::Tombstone {
            entry,
            id,
            version,
            expires: change.expires,
        },
    };
    Move { effect, leaves }
}
