//! The change feed: every change of a tenant once, in order, from any number on.
//!
//! A listener keeps one number, the change that it reached, and repeats:
//!
//! 1. `commits = feed.commits(tenant)`, before it reads;
//! 2. pages with [`Feed::next`] until [`FeedPage::more`] is false;
//! 3. waits for [`Feed::next_commit`] beyond `commits`, or for a second, and longer while
//!    [`Feed::hears_others`]: a commit of another process may not be heard, so it then compares
//!    [`Feed::newest`] with the number that it reached.
//!
//! Expired records are no changes: a listener reads the time in the record. Changes that upkeep has
//! dropped from the history are not in the feed either, so a listener that was away for longer than
//! the history is kept has to read the records again.

use mnemon_core::{Change, Changes, Ctx, Filter, Invalid, Record, Right, Tenant, Viewer};
use serde::Serialize;

use crate::records::{Error, NextCommit, Records};

/// The change feed of one store.
#[derive(Clone)]
pub struct Feed {
    records: Records,
}

/// Some changes, and how far the listener has come with them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeedPage {
    /// The changes that the listener may see and asked for, in order.
    pub changes: Vec<Change>,
    /// The number to go on after. It passes changes that were not meant, so that they are not read
    /// again.
    pub reached: u64,
    /// Whether there is another page already.
    pub more: bool,
}

impl Records {
    /// The changes of this store, in order.
    pub fn feed(&self) -> Feed {
        Feed {
            records: self.clone(),
        }
    }
}

impl Feed {
    /// Reads at most `limit` changes after this one, up to the weight
    /// [`feed_bytes`](mnemon_core::Limits::feed_bytes), and answers with those of which a version
    /// matches the filter. A version that the viewer may not see is left out: a record that was
    /// given to somebody else looks like a deletion. A purge, and a deletion whose content is gone,
    /// has no version to compare: it is shown to those who see the whole tenant, whatever else they
    /// filter by, as they may hold a copy of the record.
    pub async fn next(
        &self,
        ctx: &Ctx,
        filter: &Filter,
        after: u64,
        limit: usize,
    ) -> Result<FeedPage, Error> {
        filter.viewer.check()?;
        let grant = self.records.policy.check(ctx, Right::Read)?;
        let store = &self.records.store;
        // Read first: whatever has a number up to this one is in the page below, or not at all.
        let newest = store.newest_change(&grant).await?;
        check_reachable(after, newest)?;
        let limit = limit.clamp(1, grant.limits().changes);
        let bytes = grant.limits().feed_bytes;
        let wanted = Changes::feed(after, limit).within(bytes);
        let found = store.changes(&grant, &wanted).await?;
        let weight: usize = found.iter().map(Change::weight).sum();
        let more = found.len() == limit || weight >= bytes;
        let last = found.last().map_or(after, |change| change.seq);
        let shown = found
            .into_iter()
            .filter_map(|change| shown_to(filter, change));
        Ok(FeedPage {
            changes: shown.collect(),
            reached: if more { last } else { last.max(newest) },
            more,
        })
    }

    /// The number of the tenant's newest change, by whichever process: cheap enough to ask once a
    /// second.
    pub async fn newest(&self, ctx: &Ctx) -> Result<u64, Error> {
        let grant = self.records.policy.check(ctx, Right::Read)?;
        Ok(self.records.store.newest_change(&grant).await?)
    }

    /// How many commits of the tenant this process has acknowledged, or heard of.
    pub fn commits(&self, tenant: &Tenant) -> u64 {
        self.records.signal.commits(tenant)
    }

    /// Whether commits of other processes are heard of at present.
    pub fn hears_others(&self) -> bool {
        self.records.store.hears_others()
    }

    /// Waits until there are more commits of the tenant than `seen`.
    pub fn next_commit(&self, tenant: &Tenant, seen: u64) -> NextCommit {
        self.records.signal.listen_to(self.records.store.as_ref());
        self.records.signal.beyond(tenant, seen)
    }
}

/// A number that no change has yet belongs to another store, or to what was there before a backup
/// was restored: to wait until it is reached would hide changes.
fn check_reachable(after: u64, newest: u64) -> Result<(), Invalid> {
    if after <= newest {
        return Ok(());
    }
    let what = format!(
        "is {after}, but the newest change is {newest}: the store was replaced; read its records \
         again and continue from {newest}"
    );
    Err(Invalid::new("after", what))
}

/// The change as the viewer may see it, if the filter means it.
fn shown_to(filter: &Filter, mut change: Change) -> Option<Change> {
    let versions = || change.before.iter().chain(&change.after);
    let is_meant = match versions().next() {
        None => filter.viewer == Viewer::Tenant,
        Some(_) => versions().any(|version| filter.matches(version)),
    };
    if !is_meant {
        return None;
    }
    let sees = |version: &mut Record| filter.viewer.sees(&version.audience());
    if change.before.take_if(|version| !sees(version)).is_some() {
        change.before_known = false;
    }
    change.after.take_if(|version| !sees(version));
    Some(change)
}
