//! Copies of a conversation: a fork goes its own way, a snapshot is gone back to.

use mnemon_core::{Ctx, Expect, Id, Invalid, Kind, Origin, Scan, Scope, StoreError, Time, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::stored::Working;
use super::{Window, check_session};
use crate::conversation::session::FORK_OF;
use crate::records::naming::check_name;
use crate::records::{Draft, Error};

/// The metadata of a snapshot's record that holds its label.
const LABEL: &str = "snapshot";
/// Says in the mark of a fork that all messages are there.
const COMPLETE: &str = "complete";

/// A snapshot of a conversation's window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub label: String,
    pub taken: Time,
    /// Messages that the window shows.
    pub messages: usize,
}

impl<'a> Window<'a> {
    /// Copies the conversation to another session of the same user, in which nothing was said yet;
    /// the window looks the same there. The number of messages.
    ///
    /// A fork that was interrupted is completed when it is repeated: its mark is written first and
    /// says from which session it was forked, and each copy has an id that is made of the original.
    pub async fn fork(&self, ctx: &Ctx, to: &str) -> Result<usize, Error> {
        if self.project.is_some() {
            let what = "is a project's; a conversation in a project's files cannot be forked";
            return Err(Invalid::new("session", what).into());
        }
        let other = self.other(to)?;
        if !other.may_be_forked_to(ctx, self).await? {
            return Err(Error::ConversationExists(to.to_owned()));
        }
        other.mark_fork(ctx, self, false).await?;
        let (originals, state) = self.state_and_ids(ctx).await?;
        let ids: Vec<Id> = originals.iter().map(|id| other.copy_id(id)).collect();
        // The window is written last: with it an earlier try has done everything.
        if other.working(ctx).await?.0.is_none() {
            // It is all stored already, so that there is nothing to refuse.
            let safety = self.records.safety.never_refusing();
            other.take(ctx, &state, &ids, safety).await?;
        }
        other.mark_fork(ctx, self, true).await?;
        Ok(ids.len())
    }

    /// Whether nothing was said here, or only a part of an interrupted fork of that conversation.
    async fn may_be_forked_to(&self, ctx: &Ctx, from: &Window<'_>) -> Result<bool, Error> {
        if self.is_empty(ctx).await? {
            return Ok(true);
        }
        let mark = self.records.find(ctx, &self.fixed("window-fork")).await?;
        Ok(mark.and_then(|mark| mark.body).is_some_and(|mark| {
            mark.get(COMPLETE) == Some(&json!(false))
                && mark.get(FORK_OF) == Some(&json!(from.owner.session))
        }))
    }

    /// The id of the copy of a message in this conversation.
    fn copy_id(&self, original: &Id) -> Id {
        self.fixed_for("window-fork-message", &[original.as_str()])
    }

    /// Notes which session this one was forked from, so that a purge of that one can tell.
    async fn mark_fork(&self, ctx: &Ctx, from: &Window<'_>, complete: bool) -> Result<(), Error> {
        let mark = Draft {
            id: Some(self.fixed("window-fork")),
            owner: self.session(),
            scope: Some(Scope::State),
            kind: Some(Kind::Event),
            body: Some(json!({ FORK_OF: from.owner.session, COMPLETE: complete })),
            origin: Some(Origin::Derived),
            ..Draft::default()
        };
        let put = vec![(mark, Expect::Anything)];
        self.records.put_screened(ctx, put, None).await?;
        Ok(())
    }

    /// The same user's window of another session.
    pub(super) fn other(&self, session: &str) -> Result<Window<'a>, Invalid> {
        check_session(session)?;
        let mut other = self.clone();
        other.owner.session = Some(session.to_owned());
        Ok(other)
    }

    /// Keeps the window as it is now under a label that is free. What was said is never changed, so
    /// that only the window's entries are kept. How many messages it shows.
    pub async fn snapshot(&self, ctx: &Ctx, label: &str) -> Result<usize, Error> {
        let id = self.snapshot_id(label)?;
        self.records.safety.check_identifier("label", label)?;
        let read = self.whole(ctx).await?;
        let shown = read.entries.len();
        let working = Working {
            entries: read.entries,
            covered: read.covered,
        };
        let draft = Draft {
            id: Some(id),
            owner: self.session(),
            scope: Some(Scope::Dialog),
            kind: Some(Kind::Session),
            body: Some(working.to_json()?),
            origin: Some(Origin::Derived),
            metadata: Map::from_iter([(LABEL.to_owned(), json!(label))]),
            ..Draft::default()
        };
        match self
            .records
            .put_screened(ctx, vec![(draft, Expect::Absent)], None)
            .await
        {
            Err(Error::Store(StoreError::Conflict { .. })) => {
                let label = label.to_owned();
                let session = self.owner.session.clone().unwrap_or_default();
                Err(Error::SnapshotExists { session, label })
            }
            done => done.map(|_| shown),
        }
    }

    /// Shows the window as it was when the snapshot was taken; `None` if there is none. What was
    /// said since is kept, but not in view. How many messages it shows.
    pub async fn restore(&self, ctx: &Ctx, label: &str) -> Result<Option<usize>, Error> {
        let id = self.snapshot_id(label)?;
        let Some(kept) = self.records.find(ctx, &id).await? else {
            return Ok(None);
        };
        let entries = Working::of(&kept)?.entries;
        let count = entries.len();
        self.replace(ctx, entries).await?;
        Ok(Some(count))
    }

    /// The snapshots of this conversation, the newest first.
    pub async fn snapshots(&self, ctx: &Ctx) -> Result<Vec<Snapshot>, Error> {
        let scan = Scan::new(self.within(Kind::Session), self.records.limits().page);
        let mut kept = Vec::new();
        let take = |page| {
            kept.extend(page);
            true
        };
        self.records.each_page(ctx, scan, take).await?;
        let labelled = kept.iter().filter_map(|record| {
            let label = record.metadata.get(LABEL).and_then(Value::as_str)?;
            Some(Working::of(record).map(|working| Snapshot {
                label: label.to_owned(),
                taken: record.created,
                messages: working.entries.len(),
            }))
        });
        Ok(labelled.collect::<Result<_, _>>()?)
    }

    /// Deletes a snapshot; undo brings it back. Whether there was one.
    pub async fn delete_snapshot(&self, ctx: &Ctx, label: &str) -> Result<bool, Error> {
        let id = self.snapshot_id(label)?;
        if self.records.find(ctx, &id).await?.is_none() {
            return Ok(false);
        }
        self.records.forget(ctx, &[id], None).await?;
        Ok(true)
    }

    fn snapshot_id(&self, label: &str) -> Result<Id, Invalid> {
        check_name("label", label, limits::NAME_CHARS)?;
        Ok(self.fixed_for("window-snapshot", &[label]))
    }
}
