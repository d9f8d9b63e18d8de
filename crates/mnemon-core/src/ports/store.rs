//! The port to whatever keeps records.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, Invalid};
use crate::model::{
    Cursor, Denied, Filter, Grant, Id, Kind, Namespace, Order, Page, Record, Scan, Scope, Tenant,
    Time, Viewer, limits,
};
use crate::ports::embed::ModelId;
use crate::ports::{Embedding, Replay};

/// A place where records are kept.
///
/// What a commit means is not the backend's to decide: every store loads the view that
/// [`crate::commit`] asks for and writes what it planned, inside one transaction of its own.
/// `mnemon-testkit` holds the suite that each must pass.
#[async_trait]
pub trait Store: Send + Sync {
    /// What this backend can do. Constant for the life of the store.
    fn capabilities(&self) -> Capabilities;

    /// Applies the whole batch or nothing. When it returns, the batch survives whatever the store
    /// is made for: a store on disk keeps it through a kill and a power cut.
    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError>;

    /// The records with these ids, in the order asked; `None` for one that is missing, expired or
    /// another tenant's. At most [`Limits::page`](crate::model::Limits::page) ids.
    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError>;

    /// A page of live records in order.
    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError>;

    /// Records that no scan with the filter shows although a version of them matches it: they were
    /// deleted, have expired, or were changed since so that they match no more. A purge has to
    /// reach them, too. In the order of their ids; fewer than the limit only at the end. The cost
    /// is one pass over the tenant's history for all pages together.
    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError>;

    /// What was changed, newest first, with the record before and after. A change whose version
    /// has expired is not shown, nor is it known as what was before the next one, whether or not
    /// upkeep has erased it yet. A deletion expires with the version that it deleted.
    ///
    /// With [`Changes::after`] it is the change feed: oldest first, and purges are shown, too. A
    /// change becomes visible together with all changes of lower numbers, so a listener that asks
    /// for the changes after the last one it saw misses none and sees none twice. The cost does not
    /// depend on the number of changes before it.
    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError>;

    /// The number of the tenant's newest change, 0 if there is none: cheap enough to ask every
    /// second whether another process has written.
    async fn newest_change(&self, grant: &Grant) -> Result<u64, StoreError> {
        Ok(self.tally(grant).await?.seq)
    }

    /// How much there is. Does not read the records.
    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError>;

    /// Does at most `limit` pieces of housekeeping, in this order, and compacts:
    /// 1. records that have expired are erased with their history: by expiry, then id;
    /// 2. past changes that have expired: by expiry, then `seq`. If the record's newest change is
    ///    a deletion that has expired, too, the record is erased with its history, as it would
    ///    have been without the deletion: one piece. Otherwise that one change goes;
    /// 3. history past its time, by `seq`; a change counts from the next one of its record that is
    ///    kept, a deletion from itself if none came;
    /// 4. receipts past their time, by time, then key.
    ///
    /// A record of which no version is left is derived from nothing any more.
    ///
    /// Nothing of this is done while the clock is too far ahead of the newest write; see
    /// [`crate::model::clock`].
    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError>;

    /// Live records without a vector of this model, written after `after`, in order of writing.
    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError>;

    /// Gives records, named by their `seq`, vectors. Records that have changed since are left out.
    /// How many vectors were stored.
    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError>;

    /// Each of these records with up to `reach` live records before and after it in its session;
    /// `None` for a record that is missing. At most [`limits::PAGE`] ids. A store across a network
    /// should override this with one query.
    async fn neighbours(
        &self,
        grant: &Grant,
        ids: &[Id],
        reach: usize,
    ) -> Result<Vec<Option<SessionWindow>>, StoreError> {
        let mut windows = Vec::with_capacity(ids.len());
        for record in self.get(grant, ids).await? {
            windows.push(match record {
                None => None,
                Some(record) => {
                    let before = beside(self, grant, &record, Order::Newest, reach).await?;
                    let after = beside(self, grant, &record, Order::Oldest, reach).await?;
                    Some(SessionWindow::of(record, before, after))
                }
            });
        }
        Ok(windows)
    }

    /// The sessions of live records that the filter means, each with the number of its records and
    /// the time of its newest one: the session that was used last comes first, equals by user and
    /// name. At most [`Limits::sessions`](crate::model::Limits::sessions). Records without a
    /// session do not count. A store that can group should override this: it reads every record.
    async fn sessions(
        &self,
        grant: &Grant,
        filter: &Filter,
    ) -> Result<Vec<SessionCount>, StoreError> {
        sessions_by_scan(self, grant, filter).await
    }

    /// Ids of live records that begin with these characters, in order, at most `limit`. A store
    /// with an index of ids should override this: it reads every record.
    async fn ids_with_prefix(
        &self,
        grant: &Grant,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<Id>, StoreError> {
        let mut scan = Scan::new(Filter::all_of_tenant(), grant.limits().page);
        let mut ids = Vec::new();
        loop {
            let page = self.scan(grant, &scan).await?;
            let found = page.records.into_iter().map(|record| record.id);
            ids.extend(found.filter(|id| id.as_str().starts_with(prefix)));
            match page.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        ids.sort();
        ids.truncate(limit);
        Ok(ids)
    }

    /// Claims a job of the tenant for one holder, or extends its claim: until it ends, by the clock
    /// of the store, no other holder gets the job. Claims of dead processes end by themselves. A
    /// store that is not shared by servers need not keep claims.
    async fn claim(&self, _: &Grant, _: &Claim<'_>) -> Result<Claimed, StoreError> {
        Ok(Claimed::NotKept)
    }

    /// Calls the handler whenever another process has written for a tenant, as far as the store
    /// hears of it. A call may be missing or be one too many: the number of the newest change
    /// decides.
    fn listen(&self, _: ChangeHandler) {}

    /// Whether writes of other processes reach the handlers of [`Store::listen`] at present;
    /// otherwise listeners should ask for the newest change every second.
    fn hears_others(&self) -> bool {
        false
    }
}

/// Called with the tenant that another process has written for; `None` if it may be any tenant, as
/// calls may have been missed.
pub type ChangeHandler = Box<dyn Fn(Option<&Tenant>) + Send + Sync>;

/// A job that one process at a time does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    pub job: &'a str,
    /// Names the process.
    pub holder: &'a str,
    /// How long the claim lasts unless it is extended; zero ends it.
    pub lasts: Duration,
}

/// The answer to a [`Claim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// No other holder has the job while the claim lasts.
    Ours,
    /// Another holder has it.
    Others,
    /// This store keeps no claims: several processes may do the job at once.
    NotKept,
}

/// [`Store::sessions`] for a store or a filter that cannot be grouped: reads every record.
pub async fn sessions_by_scan<S: Store + ?Sized>(
    store: &S,
    grant: &Grant,
    filter: &Filter,
) -> Result<Vec<SessionCount>, StoreError> {
    let mut counts = SessionCounts::default();
    let mut scan = Scan::new(filter.clone(), grant.limits().page);
    loop {
        let page = store.scan(grant, &scan).await?;
        for record in page.records {
            if let Some(session) = &record.owner.session {
                counts.add(record.owner.user.as_deref(), session, record.created);
            }
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => break,
        }
    }
    Ok(counts.newest_first(grant.limits().sessions))
}

/// Counts records by session, for stores that read the columns of records without grouping them.
#[derive(Debug, Default)]
pub struct SessionCounts {
    found: HashMap<String, SessionCount>,
    /// The key of the last record, kept to save an allocation for each.
    key: String,
}

impl SessionCounts {
    /// Counts a record.
    pub fn add(&mut self, user: Option<&str>, session: &str, created: Time) {
        self.key.clear();
        // The length separates the names, whatever characters they have.
        self.key.push_str(&session.len().to_string());
        self.key.push(if user.is_some() { '+' } else { '-' });
        self.key.push_str(session);
        self.key.push_str(user.unwrap_or_default());
        match self.found.get_mut(&self.key) {
            Some(count) => {
                count.records += 1;
                count.last = count.last.max(created);
            }
            None => {
                let count = SessionCount {
                    user: user.map(str::to_owned),
                    session: session.to_owned(),
                    records: 1,
                    last: created,
                };
                self.found.insert(self.key.clone(), count);
            }
        }
    }

    /// The sessions, the one that was used last first, equals by user and name; at most this many.
    pub fn newest_first(self, most: usize) -> Vec<SessionCount> {
        let mut sessions: Vec<SessionCount> = self.found.into_values().collect();
        sessions.sort_by(|one, other| {
            let names = (&one.user, &one.session).cmp(&(&other.user, &other.session));
            other.last.cmp(&one.last).then(names)
        });
        sessions.truncate(most);
        sessions
    }
}

/// A session and how much there is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCount {
    pub user: Option<String>,
    pub session: String,
    pub records: u64,
    /// When the newest record was created.
    pub last: Time,
}

/// The records that come next in the record's session in this order.
async fn beside<S: Store + ?Sized>(
    store: &S,
    grant: &Grant,
    record: &Record,
    order: Order,
    reach: usize,
) -> Result<Vec<Record>, StoreError> {
    let Some(scan) = SessionWindow::scan_beside(record, order, reach) else {
        return Ok(Vec::new());
    };
    Ok(store.scan(grant, &scan).await?.records)
}

/// A part of a session: records by creation, equals by `seq`.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionWindow {
    pub records: Vec<Record>,
    /// Where the record stands among them that the window is around.
    pub at: usize,
}

impl SessionWindow {
    /// The scan for the records of the same session that come next in this order; `None` for a
    /// record without a session.
    pub fn scan_beside(record: &Record, order: Order, reach: usize) -> Option<Scan> {
        let mut filter = Filter::seen_by(record.audience().viewer());
        filter.owner.session = Some(record.owner.session.clone()?);
        if record.audience.is_none() {
            filter.owner.user.clone_from(&record.owner.user);
        }
        Some(Scan {
            order,
            after: Some(Cursor::after(record, order)),
            ..Scan::new(filter, reach)
        })
    }

    /// The window around a record: what was found before it, the nearest first, and after it.
    pub fn of(record: Record, mut before: Vec<Record>, mut after: Vec<Record>) -> Self {
        // Sessions of the same name that are for different people are different ones.
        let audience = record.audience();
        before.retain(|one| one.audience() == audience);
        after.retain(|one| one.audience() == audience);
        before.reverse();
        let at = before.len();
        let mut records = before;
        records.push(record);
        records.append(&mut after);
        Self { records, at }
    }
}

/// What a backend can do, so that the engine plans instead of failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The scheme it is opened with.
    pub backend: &'static str,
    /// It keeps vectors; otherwise they are made anew when the store was opened.
    pub keeps_vectors: bool,
}

/// Changes that happen together or not at all, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    pub ops: Vec<Op>,
    /// Makes a retry harmless: the second batch with the same key changes nothing and answers
    /// with the first one's receipt.
    pub key: Option<IdempotencyKey>,
    /// The commit that this batch goes on with: its changes get that number in the history, so
    /// that one undo reverts them together. `None` begins a new commit.
    pub continues: Option<u64>,
    /// The commit that this batch takes back, for the history.
    pub undoes: Option<u64>,
    /// Vectors of records that the batch puts. They are not needed: a record without one is found
    /// by its words, and gets one later.
    pub vectors: Vec<(Id, Embedding)>,
    /// Changes of another store that are copied; such a batch has no operations.
    pub replay: Option<Box<Replay>>,
}

impl Batch {
    /// A batch that copies changes of another store.
    pub fn replaying(replay: Replay) -> Self {
        Self {
            replay: Some(Box::new(replay)),
            ..Self::default()
        }
    }

    /// A batch of one operation.
    pub fn of(op: Op) -> Self {
        Self::from(vec![op])
    }

    /// The same batch under an idempotency key.
    #[must_use]
    pub fn with_key(mut self, key: Option<IdempotencyKey>) -> Self {
        self.key = key;
        self
    }
}

impl From<Vec<Op>> for Batch {
    fn from(ops: Vec<Op>) -> Self {
        Self {
            ops,
            ..Self::default()
        }
    }
}

/// The caller's name for one intended change, with a digest of what it intended: a key that comes
/// back with another intent is a mistake, not a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    pub name: String,
    pub digest: String,
}

impl IdempotencyKey {
    /// Not blank, not too long, one line.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::model::owner::check_line("key", &self.name, limits::KEY_CHARS)
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Writes this version of the record; `seq` and `version` are the store's to fill in.
    Put { record: Box<Record>, expect: Expect },
    /// Takes the record, and all that was derived from it, out of sight. It can be undone.
    Delete { id: Id, expect: Expect },
    /// Erases the record, all that was derived from it, and their history. It cannot be undone.
    Purge { id: Id },
}

impl Op {
    /// Writes the record whatever is there.
    pub fn put(record: Record) -> Self {
        Self::put_if(record, Expect::Anything)
    }

    /// Writes the record if there is none with its id yet.
    pub fn append(record: Record) -> Self {
        Self::put_if(record, Expect::Absent)
    }

    /// Writes the record if what is there is as expected.
    pub fn put_if(record: Record, expect: Expect) -> Self {
        Self::Put {
            record: Box::new(record),
            expect,
        }
    }

    /// Deletes the record if it is there.
    pub fn delete(id: Id) -> Self {
        Self::Delete {
            id,
            expect: Expect::Anything,
        }
    }

    /// The record it is about.
    pub fn id(&self) -> &Id {
        match self {
            Self::Put { record, .. } => &record.id,
            Self::Delete { id, .. } | Self::Purge { id } => id,
        }
    }
}

/// What must be there for an operation to go ahead; otherwise the batch is a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect {
    #[default]
    Anything,
    Absent,
    Version(u64),
}

/// What became of a batch. A retry with the same idempotency key gets an equal receipt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// The number under which history and undo know this commit; `None` when it left nothing
    /// that could be undone.
    pub commit: Option<u64>,
    /// One outcome per operation, in order.
    pub items: Vec<Outcome>,
    /// Deleted or purged because they were derived from something that was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cascaded: Vec<Id>,
    /// Deleted because a cap was reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evicted: Vec<Id>,
    /// What the store has to say about it, in sentences. The engine passes them on to
    /// [`crate::model::Ctx::notices`] and leaves none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The fate of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub id: Id,
    #[serde(flatten)]
    pub fate: Fate,
}

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It is new.
    Stored {
        version: u64,
    },
    /// It replaced the version before it.
    Updated {
        version: u64,
    },
    /// The same is already there.
    Duplicate {
        of: Id,
    },
    Deleted,
    Purged,
    /// There was nothing to delete.
    Missing,
    /// It was left out.
    Rejected {
        why: String,
    },
}

/// Which of the records that no scan shows.
#[derive(Debug, Clone, PartialEq)]
pub struct HiddenScan {
    pub filter: Filter,
    /// Only those whose id comes after this one, to page on.
    pub after: Option<Id>,
    /// At most this many, and never more than [`Limits::page`](crate::model::Limits::page).
    pub limit: usize,
}

impl HiddenScan {
    /// The first page of what the filter means.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            after: None,
            limit: limits::PAGE,
        }
    }
}

/// A record that a scan does not show.
#[derive(Debug, Clone, PartialEq)]
pub struct Hidden {
    /// Its newest version that has content.
    pub record: Record,
    /// Whether that version is current and has not expired. Then only an older one matches.
    pub is_live: bool,
}

impl Hidden {
    /// Whether the filter means the record, given its versions with content, the newest first.
    /// What a record was derived from counts for its newest version only: stores know no other
    /// links.
    pub fn of(filter: &Filter, versions: Vec<Record>, is_live: bool) -> Option<Self> {
        let has_older = || {
            versions
                .iter()
                .skip(1)
                .any(|version| filter.matches(version))
        };
        let is_meant = match versions
            .first()
            .is_some_and(|newest| filter.matches(newest))
        {
            true => !is_live,
            false => filter.derived_from.is_empty() && has_older(),
        };
        let record = versions.into_iter().next().filter(|_| is_meant)?;
        Some(Self { record, is_live })
    }
}

/// Which part of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Only those of which this viewer may see every version that is shown.
    pub viewer: Viewer,
    /// Only those of this record.
    pub id: Option<Id>,
    /// Only those of this commit.
    pub commit: Option<u64>,
    /// Only those older than this `seq`, to page on.
    pub before: Option<u64>,
    /// Only those newer than this `seq`, the oldest first and purges included: the change feed.
    pub after: Option<u64>,
    /// At most this many, and never more than [`Limits::changes`](crate::model::Limits::changes).
    pub limit: usize,
    /// The page ends with the change that reaches this [weight](Change::weight), so it has one change
    /// at least.
    pub bytes: usize,
}

impl Changes {
    /// The newest changes that this viewer may see.
    pub fn seen_by(viewer: Viewer, limit: usize) -> Self {
        Self {
            viewer,
            id: None,
            commit: None,
            before: None,
            after: None,
            limit,
            bytes: usize::MAX,
        }
    }

    /// The newest changes of the tenant.
    pub fn all_of_tenant(limit: usize) -> Self {
        Self::seen_by(Viewer::Tenant, limit)
    }

    /// The first changes of the tenant after this one.
    pub fn feed(after: u64, limit: usize) -> Self {
        Self {
            after: Some(after),
            ..Self::all_of_tenant(limit)
        }
    }

    /// The same, as long as the page has less than this weight.
    #[must_use]
    pub fn within(self, bytes: usize) -> Self {
        let bytes = bytes.max(1);
        Self { bytes, ..self }
    }

    /// Whether the change is asked for, as far as its number does not say so: by its commit, by
    /// its kind (only the feed shows purges), and because the viewer may see it.
    pub fn shows(&self, change: &Change) -> bool {
        if self.commit.is_some_and(|commit| commit != change.commit)
            || (self.after.is_none() && change.cause == Cause::Purged)
        {
            return false;
        }
        let mut versions = change.before.iter().chain(&change.after).peekable();
        // Of a deletion whose content is gone nobody can tell whom it was for.
        self.viewer == Viewer::Tenant
            || (versions.peek().is_some() && versions.all(|one| self.viewer.sees(&one.audience())))
    }
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub commit: u64,
    pub seq: u64,
    pub at: Time,
    pub actor: String,
    pub cause: Cause,
    pub id: Id,
    pub version: u64,
    /// The version right before this one. `None` when there was no record, or when it is not
    /// known any more.
    pub before: Option<Record>,
    /// Whether it is known what was there right before: not when that change was dropped from the
    /// history or has expired, even if an older one is still there.
    pub before_known: bool,
    /// `None` when the record was deleted.
    pub after: Option<Record>,
}

impl Change {
    /// The [weights](Record::weight) of both versions together, in bytes.
    pub fn weight(&self) -> usize {
        let versions = self.before.iter().chain(&self.after);
        versions.map(Record::weight).sum()
    }
}

/// Why a record changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    Written,
    Forgotten,
    /// It was derived from this record, which was deleted.
    Cascaded(Id),
    /// A cap was reached.
    Evicted,
    /// Another commit was taken back.
    Undone(u64),
    /// It was erased with its history. Its id is left, as a tombstone for the change feed.
    Purged,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written => f.write_str("written"),
            Self::Forgotten => f.write_str("forgotten"),
            Self::Cascaded(id) => write!(f, "cascaded:{id}"),
            Self::Evicted => f.write_str("evicted"),
            Self::Undone(commit) => write!(f, "undo:{commit}"),
            Self::Purged => f.write_str("purged"),
        }
    }
}

impl FromStr for Cause {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let unknown = || Invalid::new("cause", format!("`{}` is not a cause", text.escape_debug()));
        match text.split_once(':') {
            None if text == "written" => Ok(Self::Written),
            None if text == "forgotten" => Ok(Self::Forgotten),
            None if text == "evicted" => Ok(Self::Evicted),
            None if text == "purged" => Ok(Self::Purged),
            Some(("cascaded", id)) => Ok(Self::Cascaded(id.parse()?)),
            Some(("undo", commit)) => Ok(Self::Undone(commit.parse().map_err(|_| unknown())?)),
            _ => Err(unknown()),
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// How many records there are of which sort, expired ones that upkeep has not erased yet included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Sorted by scope, kind and namespace; none is empty.
    pub groups: Vec<Group>,
    /// How many of them have expired.
    pub expired: u64,
    /// Old versions and deletions that undo can go back to.
    pub history: u64,
    /// The number of the newest change.
    pub seq: u64,
}

impl Tally {
    pub fn records(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }
}

/// Records of one sort.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Group {
    pub scope: Scope,
    pub kind: Kind,
    pub namespace: Namespace,
    pub count: u64,
}

/// What a slice of housekeeping did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Upkept {
    /// Erased because they had expired: records, each with its history, and past changes.
    pub expired: u64,
    /// Old versions dropped because the policy keeps them no longer.
    pub history: u64,
    /// Receipts dropped because their idempotency keys are past their time.
    pub receipts: u64,
    /// Whether the store was rewritten without its dead parts.
    pub compacted: bool,
    /// Whether something that was due now is left because the limit was reached. Exact: `false`
    /// when the limit was just enough, `true` with a limit of 0 and anything due. Compacting is
    /// never left.
    pub more: bool,
    /// How many days the clock is ahead of the newest write, if nothing was cleared away because
    /// that is too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_days_ahead: Option<i64>,
}

impl Upkept {
    /// Nothing was done, as the clock is this far ahead.
    pub fn held_back(clock_days_ahead: i64) -> Self {
        Self {
            clock_days_ahead: Some(clock_days_ahead),
            ..Self::default()
        }
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("{}", conflict(.id, .expected, .current))]
    Conflict {
        id: Id,
        /// In words: `version 3`, `no record`.
        expected: String,
        /// The version that is there now.
        current: Option<u64>,
    },
    #[error("idempotency key `{key}` was already used for something else; choose a new key")]
    KeyReused { key: String },
    #[error("{what}: {count} is more than the limit of {most}")]
    TooLarge {
        what: &'static str,
        count: usize,
        most: usize,
    },
    #[error("{place}: no space left; nothing was written")]
    Full {
        place: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{place}: locked by other processes for {seconds} s")]
    Busy { place: String, seconds: u64 },
    #[error("{place} is damaged: {what}")]
    Corrupt { place: String, what: String },
    #[error(
        "{place} was written by a newer version of mnemon (format {found}, this one reads up to {known})"
    )]
    TooNew {
        place: String,
        found: i64,
        known: i64,
    },
    #[error("{place} is not a mnemon store: {what}")]
    Foreign { place: String, what: String },
    #[error("{place} is read-only")]
    ReadOnly { place: String },
    #[error("the {backend} store cannot {what}")]
    Unsupported {
        backend: &'static str,
        what: &'static str,
    },
    #[error("{place}: {what}")]
    Unavailable {
        place: String,
        what: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("internal error: {0}")]
    Internal(String),
}

fn conflict(id: &Id, expected: &str, current: &Option<u64>) -> String {
    match current {
        Some(version) if expected == "no record" => {
            format!("a record with id `{id}` already exists (version {version})")
        }
        Some(version) => {
            format!("record {id} has changed: {expected} was expected, version {version} is there")
        }
        None => format!("record {id} has changed: {expected} was expected, no record is there"),
    }
}

impl StoreError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Denied(_) | Self::ReadOnly { .. } => ErrorKind::Denied,
            Self::Conflict { .. } | Self::KeyReused { .. } => ErrorKind::Conflict,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Full { .. } => ErrorKind::Full,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::TooNew { .. } => ErrorKind::TooNew,
            Self::Foreign { .. } => ErrorKind::Foreign,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Unavailable { source, .. } => {
                let cause = source.downcast_ref().map(std::io::Error::kind);
                match cause == Some(std::io::ErrorKind::PermissionDenied) {
                    true => ErrorKind::Denied,
                    false => ErrorKind::Unavailable,
                }
            }
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

impl Page {
    /// A page of `records`, of which one more than `limit` was read if there was one.
    pub fn cut(mut records: Vec<Record>, limit: usize, order: crate::model::Order) -> Self {
        let more = records.len() > limit;
        records.truncate(limit);
        let next = records
            .last()
            .filter(|_| more)
            .map(|last| Cursor::after(last, order));
        Self { records, next }
    }
}
