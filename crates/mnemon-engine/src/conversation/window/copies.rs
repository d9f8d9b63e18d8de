//! Copies of a conversation: a fork goes its own way, a snapshot is gone back to.

use mnemon_core::{Ctx, Expect, Id, Invalid, Kind, Origin, Scan, Scope, StoreError, limits};

use serde_json::json;

use super::stored::{Covered, Working};
use super::{Read, Window, check_session, too_many};
use crate::conversation::session::FORK_OF;
use crate::records::naming::{check_name, fixed_id};
use crate::records::{Draft, Error};

impl<'a> Window<'a> {
    /// Says everything once more in another session of the same user, in which nothing was said
    /// yet; the window looks the same there. How many messages there are.
    pub async fn fork(&self, ctx: &Ctx, to: &str) -> Result<usize, Error> {
        let other = self.other(to)?;
        let state = self.state(ctx).await?;
        // It is all stored already, so that there is nothing to refuse.
        let safety = self.records.safety.never_refusing();
        let count = other.take(ctx, &state, safety).await?;
        other.mark_fork(ctx, self.owner.session.as_deref()).await?;
        Ok(count)
    }

    /// Notes which session this one was forked from, so that a purge of that one can tell.
    async fn mark_fork(&self, ctx: &Ctx, from: Option<&str>) -> Result<(), Error> {
        let (user, session) = (&self.owner.user, &self.owner.session);
        let names = [user.as_deref(), session.as_deref()];
        let mark = Draft {
            id: Some(fixed_id("window-fork", &names)),
            owner: self.session(),
            scope: Some(Scope::State),
            kind: Some(Kind::Event),
            body: Some(json!({ FORK_OF: from })),
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
        let read = self.read(ctx).await?;
        if read.more {
            return Err(too_many(
                read.messages.len(),
                self.records.limits().window_messages,
            ));
        }
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
            ..Draft::default()
        };
        match self
            .records
            .put_screened(ctx, vec![(draft, Expect::Absent)], None)
            .await
        {
            Err(Error::Store(StoreError::Conflict { .. })) => {
                let session = self.owner.session.as_deref().unwrap_or_default();
                Err(Error::SessionExists(format!("{session}@{label}")))
            }
            done => done.map(|_| shown),
        }
    }

    /// Shows the window as it was when the snapshot was taken; `None` if there is none. What was
    /// said since is kept, but not in view. How many messages it shows.
    pub async fn restore(&self, ctx: &Ctx, label: &str) -> Result<Option<usize>, Error> {
        let found = self.records.get(ctx, &[self.snapshot_id(label)?]).await?;
        let Some(kept) = found.into_iter().flatten().next() else {
            return Ok(None);
        };
        let kept = Working::of(&kept)?;
        for _ in 0..limits::CHANGE_TRIES {
            let (version, working) = self.working(ctx).await?;
            let newest = Scan::new(self.within(Kind::Message), 1);
            let newest = self.records.list(ctx, &newest).await?.records;
            let read = Read {
                version,
                covered: newest.first().map(Covered::by).or(working.covered),
                entries: kept.entries.clone(),
                messages: Vec::new(),
                more: false,
            };
            match self.write(ctx, &read, Vec::new()).await {
                Err(Error::Store(StoreError::Conflict { .. })) => {}
                done => return done.map(|_| Some(kept.entries.len())),
            }
        }
        Err(self.contended())
    }

    fn snapshot_id(&self, label: &str) -> Result<Id, Invalid> {
        check_name("label", label, limits::NAME_CHARS)?;
        let (user, session) = (&self.owner.user, &self.owner.session);
        let names = [user.as_deref(), session.as_deref(), Some(label)];
        Ok(fixed_id("window-snapshot", &names))
    }
}
