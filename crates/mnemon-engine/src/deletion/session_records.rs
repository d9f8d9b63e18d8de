//! Which records belong to a session.

use mnemon_core::{Ctx, Filter, Id, Kind, Owner, Record, Scope, limits};

use super::listing::{Shown, each};
use super::{NotErased, SessionForget};
use crate::conversation::library::pages_of;
use crate::conversation::session::{SNAPSHOT_OF, copied_from};
use crate::records::session_marks::{is_log_mark, is_root_mark};
use crate::records::{Error, Records};

/// Scopes whose records go with their session. Profiles, knowledge and skills outlive it.
const SCOPES: [Scope; 3] = [Scope::Dialog, Scope::State, Scope::Experience];

/// The records of a session, found on all stores.
#[derive(Default)]
pub(super) struct SessionRecords {
    /// For each store: the user's records and, unless others share the session, those of no user.
    pub(super) ids: Vec<Vec<Id>>,
    /// Records that are somebody else's now, or of another session, but whose older versions are
    /// of this one; with the number of their store.
    pub(super) moved: Vec<(usize, Record)>,
    /// Sessions that were forked from this one.
    pub(super) forks: Vec<String>,
    /// Records of no user that stay because another user has a session of this name.
    pub(super) shared: u64,
    /// Whether another user has records in a session of this name.
    pub(super) has_others: bool,
}

impl SessionRecords {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.iter().all(Vec::is_empty)
    }

    /// What stays because others share the session.
    pub(super) fn left_of_others(&self, session: &str) -> Option<NotErased> {
        (self.shared > 0).then(|| NotErased {
            path: format!(
                "{} records of session {session} without a user",
                self.shared
            ),
            why: format!(
                "another user has a session of this name; `mnemon forget --session {session}` \
                 deletes the records of all users"
            ),
        })
    }
}

/// Looks on every store. Records of no user (pages have none) belong to the session, and so to its
/// user, unless another user has a session of the same name. Copies and pages do not name the
/// session as their owner: they are looked for among all records, once.
pub(super) async fn find(
    stores: &[Records],
    ctx: &Ctx,
    asked: &SessionForget<'_>,
    is_first: bool,
) -> Result<SessionRecords, Error> {
    let mut own = SessionRecords::default();
    let mut unowned: Vec<Vec<Id>> = Vec::new();
    for (number, records) in stores.iter().enumerate() {
        let mut found = Sorted::default();
        in_session(records, ctx, asked, &mut found).await?;
        if is_first {
            copies(records, ctx, asked, &mut found).await?;
        }
        own.has_others |= found.has_others;
        own.forks.extend(found.forks);
        own.moved
            .extend(found.moved.into_iter().map(|one| (number, one)));
        own.ids.push(found.theirs);
        unowned.push(found.unowned);
    }
    if own.has_others {
        own.shared = unowned.iter().map(|ids| ids.len() as u64).sum();
    } else {
        for (number, records) in stores.iter().enumerate() {
            let mut found = Sorted::default();
            if is_first {
                pages(records, ctx, asked, &mut found).await?;
            }
            own.moved
                .extend(found.moved.into_iter().map(|one| (number, one)));
            if let (Some(ids), Some(more)) = (own.ids.get_mut(number), unowned.get_mut(number)) {
                ids.append(more);
                ids.append(&mut found.unowned);
                ids.sort();
                ids.dedup();
            }
        }
    }
    own.forks.sort();
    own.forks.dedup();
    Ok(own)
}

/// What was found on one store.
#[derive(Default)]
struct Sorted {
    theirs: Vec<Id>,
    unowned: Vec<Id>,
    moved: Vec<Record>,
    forks: Vec<String>,
    has_others: bool,
}

impl Sorted {
    fn take(&mut self, record: Record, shown: Shown, user: &str) {
        match (shown, record.owner.user.as_deref()) {
            (Shown::OlderVersion, _) => self.moved.push(record),
            (_, Some(name)) if name == user => self.theirs.push(record.id),
            (_, None) => self.unowned.push(record.id),
            // What others forgot is theirs to purge, and keeps nobody from erasing the rest.
            (Shown::Hidden, Some(_)) => {}
            (Shown::Listed, Some(_)) => self.has_others = true,
        }
    }
}

/// What names the session as its own: what was said, done and kept in it.
async fn in_session(
    records: &Records,
    ctx: &Ctx,
    asked: &SessionForget<'_>,
    found: &mut Sorted,
) -> Result<(), Error> {
    let filter = Filter {
        owner: Owner::of(None, Some(asked.session)),
        ..Filter::all_of_tenant()
    };
    let most = limits::SESSION_RECORDS;
    each(records, ctx, &filter, asked.purge, most, |record, shown| {
        // Where its files lie is known until they are erased, and how far its log was read until
        // then, too: what was forgotten is not read again.
        let is_mark = is_root_mark(&record) || (is_log_mark(&record) && !asked.purge);
        if SCOPES.contains(&record.scope) && !is_mark {
            found.take(record, shown, asked.user);
        }
    })
    .await
}

/// Saved states that are snapshots of the session go with it; forks are sessions of their own.
async fn copies(
    records: &Records,
    ctx: &Ctx,
    asked: &SessionForget<'_>,
    found: &mut Sorted,
) -> Result<(), Error> {
    let filter = Filter {
        scopes: vec![Scope::State],
        kinds: vec![Kind::Session, Kind::Event],
        ..Filter::all_of_tenant()
    };
    let most = limits::SESSION_RECORDS;
    each(records, ctx, &filter, asked.purge, most, |record, shown| {
        let Some((how, original)) = copied_from(record.body.as_ref()) else {
            return;
        };
        let name = record.owner.session.clone().unwrap_or_default();
        let user = record.owner.user.as_deref();
        let is_theirs = user.is_none_or(|user| user == asked.user);
        if original != asked.session || !is_theirs || shown == Shown::OlderVersion {
            return;
        }
        if how == SNAPSHOT_OF {
            found.take(record, shown, asked.user);
        } else if shown == Shown::Listed {
            found.forks.push(name);
        }
    })
    .await
}

/// Index entries of the pages of a project's conversation, which belong to no user. A page is
/// indexed again as long as its file is there.
async fn pages(
    records: &Records,
    ctx: &Ctx,
    asked: &SessionForget<'_>,
    found: &mut Sorted,
) -> Result<(), Error> {
    let most = limits::SESSION_RECORDS;
    let own = pages_of(asked.session);
    each(records, ctx, &own, asked.purge, most, |record, shown| {
        found.take(record, shown, asked.user);
    })
    .await
}
