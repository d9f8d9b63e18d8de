//! Searching: an index in memory for each tenant, which follows the file.
//!
//! What the index is made of (analysed words, vectors) is kept beside each record, so that
//! loading it needs neither analysis nor a model; and a large one is saved whole in a
//! [`snapshot_file`]. Before every search it catches up with what this or any other process has
//! committed. Indexes that were not searched for the longest time are dropped when there is no
//! room for them.
//!
//! Whoever loads an index, or brings it up to the file, holds [`Slot::following`]; others wait for
//! it without a thread, a connection or a turn. Loads and searches have turns of their own, so
//! that neither keeps a read or another tenant's search waiting.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use mnemon_core::index::{Cache, Index, TrackedIndex, wrong_vector};
use mnemon_core::{
    Answer, Filter, Grant, IndexUsage, Order, Probe, Scan, StoreError, Tenant, TenantIndex,
};
use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::errors::At;
use super::feed::TenantSnapshot;
use super::pool::{Pool, Reader};
use super::snapshot_file::{self, Saving};
use super::{reads, scans};

/// Searches of one handle that run at once.
const SEARCHES: usize = 8;
/// Indexes that are loaded at once: each takes a whole processor.
const LOADS: usize = 2;
/// Records among which a search takes no longer than waking a thread for it.
const AT_HAND: usize = 1000;
/// What a search that nothing else waits for may have to look at to be answered where it is asked:
/// two switches of threads cost 0.2 ms, and what comes after them finds its memory cold. Values of
/// vectors (of 150,000 of the built-in model's, which is below a millisecond), and words.
const VALUES_ALONE: usize = 150_000 * WIDTH;
const WORDS_ALONE: usize = 32;
/// Values of a vector of the built-in model; a record without one is no less work.
const WIDTH: usize = 256;
/// The size of a larger index is measured again only after as many changes as a sixteenth of its
/// records, or when a model is new.
const MEASURED_ALWAYS: usize = 4096;

/// The indexes of the tenants that were searched last.
pub(super) struct Indexes {
    pool: Arc<Pool>,
    saving: Saving,
    slots: Mutex<Cache<Tenant, Slot>>,
    searches: Semaphore,
    loads: Semaphore,
    /// Searches that found their index in memory, and those that loaded it.
    hits: AtomicU64,
    misses: AtomicU64,
    /// Threads that save or compact an index at the moment.
    background: Mutex<Vec<JoinHandle<()>>>,
    #[cfg(test)]
    before_load: Mutex<Option<BeforeLoad>>,
}

/// What a test does when the index of the tenant with this number is about to be loaded.
#[cfg(test)]
type BeforeLoad = Arc<dyn Fn(i64) + Send + Sync>;

/// The right to bring an index up to the file.
type Following = OwnedMutexGuard<()>;

/// One tenant's place for an index.
#[derive(Default)]
pub(super) struct Slot {
    following: Arc<tokio::sync::Mutex<()>>,
    open: RwLock<Option<OpenIndex>>,
    /// Whether a thread saves or compacts the index.
    in_background: AtomicBool,
}

/// An index of one opening of the file. Searches hold the lock around it; who works on it for
/// long shares the index itself, and a change then copies it.
pub(super) struct OpenIndex {
    pub(super) tracked: Arc<TrackedIndex>,
    /// The opening of the file that it follows.
    pub(super) generation: u64,
    /// The mark of the index that is saved beside the file.
    pub(super) mark: i64,
    /// Changes since it was saved.
    pub(super) unsaved: usize,
    pub(super) saved_at: Option<Instant>,
    /// Changes since its size was measured, and how many models its vectors were of then.
    unmeasured: usize,
    models: usize,
}

impl OpenIndex {
    pub(super) fn new(generation: u64, mark: i64, tracked: TrackedIndex, unsaved: usize) -> Self {
        Self {
            tracked: Arc::new(tracked),
            generation,
            mark,
            unsaved,
            saved_at: None,
            unmeasured: usize::MAX,
            models: 0,
        }
    }

    fn load(generation: u64, snapshot: &TenantSnapshot<'_>) -> Result<Self, StoreError> {
        let mut tracked = snapshot_file::load(snapshot).unwrap_or_default();
        let unsaved = tracked.follow(snapshot)?;
        Ok(Self::new(generation, snapshot.mark, tracked, unsaved))
    }

    fn follow(&mut self, snapshot: &TenantSnapshot<'_>) -> Result<(), StoreError> {
        let changes = Arc::make_mut(&mut self.tracked).follow(snapshot)?;
        self.unsaved += changes;
        self.unmeasured = self.unmeasured.saturating_add(changes);
        // Only now it knows of every purge under this mark, and may be saved.
        self.mark = snapshot.mark;
        Ok(())
    }

    /// Its size, if that may have changed much.
    fn measure(&mut self) -> Option<usize> {
        let index = self.tracked.index();
        let changed = self.unmeasured >= index.len() / 16 || index.models() != self.models;
        (index.len() <= MEASURED_ALWAYS || changed).then(|| {
            (self.unmeasured, self.models) = (0, index.models());
            index.bytes()
        })
    }
}

impl Slot {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Option<OpenIndex>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Option<OpenIndex>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index, unless it is being changed at this moment.
    fn at_hand(&self) -> Option<RwLockReadGuard<'_, Option<OpenIndex>>> {
        self.open.try_read().ok().filter(|open| open.is_some())
    }

    /// Whether an index of this opening of the file, or of a later one, is here.
    fn is_open(&self, generation: u64) -> bool {
        let open = self.read();
        open.as_ref()
            .is_some_and(|open| open.generation >= generation)
    }

    /// Whether the index is at hand and shows this moment.
    fn shows(&self, generation: u64, snapshot: &TenantSnapshot<'_>) -> bool {
        self.at_hand().is_some_and(|open| {
            let open = open.as_ref();
            open.is_some_and(|open| shows(open, generation, snapshot))
        })
    }

    /// Swaps in an index without the remains of removed records, which is made aside.
    fn compact(&self, make: impl FnOnce(&TrackedIndex) -> io::Result<TrackedIndex>) {
        let shared = self.read().as_ref().map(|open| Arc::clone(&open.tracked));
        let Some(tracked) = shared else { return };
        let Ok(compacted) = make(&tracked) else {
            return;
        };
        // A change in the meantime has copied the shared index, and may have been a purge: what
        // is from before it must not come back, least of all under the mark from after it.
        if let Some(open) = self.write().as_mut()
            && Arc::ptr_eq(&open.tracked, &tracked)
        {
            open.tracked = Arc::new(compacted);
            open.unmeasured = usize::MAX;
        }
    }
}

fn shows(open: &OpenIndex, generation: u64, snapshot: &TenantSnapshot<'_>) -> bool {
    open.generation > generation
        || (open.generation == generation && open.tracked.has_followed(snapshot))
}

/// One search on its way to its tenant's index.
struct Search {
    indexes: Arc<Indexes>,
    slot: Arc<Slot>,
    grant: Grant,
    following: Option<Following>,
}

impl Search {
    /// Searches the index as of now; `None` if another search is bringing it there.
    fn with_index<T>(
        &mut self,
        reader: &Reader<'_>,
        tenant: i64,
        work: impl FnOnce(&Index) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if !self.follow(reader, tenant)? {
            return Ok(None);
        }
        let open = self.slot.read();
        let answer = open.as_ref().map(|open| work(open.tracked.index()));
        drop(open);
        self.indexes.tend(&self.slot, reader, tenant);
        answer.transpose()
    }

    /// Brings the index to this moment, unless another search is at it.
    fn follow(&mut self, reader: &Reader<'_>, tenant: i64) -> Result<bool, StoreError> {
        let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
        let snapshot = TenantSnapshot::look(reader.connection, reader.place, tenant)?;
        let generation = reader.generation;
        let waited = self.following.take();
        if self.slot.shows(generation, &snapshot) {
            return Ok(true);
        }
        // Only who has waited for it loads: it has a turn for that.
        let may_load = waited.is_some();
        let following = waited.or_else(|| {
            let following = Arc::clone(&self.slot.following);
            following.try_lock_owned().ok()
        });
        if following.is_none() {
            return Ok(false);
        }
        let is_open = self.slot.is_open(generation);
        if !is_open && !may_load {
            return Ok(false);
        }
        let loaded = match is_open {
            true => None,
            false => Some(self.load(generation, &snapshot)?),
        };
        let mut slot = self.slot.write();
        if loaded.is_some() {
            *slot = loaded;
        }
        let Some(open) = slot.as_mut() else {
            return Ok(false);
        };
        if !shows(open, generation, &snapshot) {
            open.follow(&snapshot)?;
        }
        if let Some(bytes) = open.measure() {
            drop(slot);
            self.indexes.resize(&self.grant, &self.slot, bytes);
        }
        Ok(true)
    }

    /// Loads the index, aside.
    fn load(
        &self,
        generation: u64,
        snapshot: &TenantSnapshot<'_>,
    ) -> Result<OpenIndex, StoreError> {
        #[cfg(test)]
        self.indexes.before_load(snapshot.tenant);
        OpenIndex::load(generation, snapshot)
    }
}

impl Indexes {
    pub(super) fn new(pool: Arc<Pool>, saving: Saving) -> Self {
        Self {
            pool,
            saving,
            slots: Mutex::default(),
            searches: Semaphore::new(SEARCHES),
            loads: Semaphore::new(LOADS),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            background: Mutex::default(),
            #[cfg(test)]
            before_load: Mutex::default(),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Cache<Tenant, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn usage(&self) -> IndexUsage {
        let slots = self.slots();
        let tenants = slots.entries().map(|(tenant, slot, bytes)| TenantIndex {
            tenant: tenant.clone(),
            // An index that is being changed at this moment is not waited for.
            records: slot.at_hand().map_or(0, |open| {
                open.as_ref().map_or(0, |open| open.tracked.index().len())
            }),
            bytes,
        });
        IndexUsage {
            tenants: tenants.collect(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    #[cfg(test)]
    fn before_load(&self, tenant: i64) {
        let hook = self.before_load.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(tenant);
        }
    }

    /// Accounts for the size of an index.
    fn resize(&self, grant: &Grant, slot: &Arc<Slot>, bytes: usize) {
        let budget = grant.limits().index_cache_bytes;
        self.slots().resize(grant.tenant(), slot, bytes, budget);
    }

    /// Saves or compacts the index while nobody waits for it, if that is due.
    fn tend(&self, slot: &Arc<Slot>, reader: &Reader<'_>, tenant: i64) {
        let due = slot.read().as_ref().map(|open| {
            let stale = open.tracked.index().is_stale();
            (stale, self.saving.is_due(open))
        });
        let (stale, unsaved) = due.unwrap_or_default();
        let Some(database) = reader.connection.path().map(PathBuf::from) else {
            return;
        };
        if !(stale || unsaved) || slot.in_background.swap(true, Ordering::AcqRel) {
            return;
        }
        let (main, theirs) = (reader.main, Arc::clone(slot));
        let work = move || {
            if stale {
                theirs.compact(TrackedIndex::compacted);
            }
            if unsaved {
                snapshot_file::save(&database, main, tenant, &theirs);
            }
            theirs.in_background.store(false, Ordering::Release);
        };
        if !crate::blocking::is_worker() {
            // An executor of one thread, which has to do everything itself.
            return work();
        }
        let mut background = self.background();
        background.retain(|thread| !thread.is_finished());
        let thread = std::thread::Builder::new().name("mnemon-index".to_owned());
        match thread.spawn(work) {
            Ok(thread) => background.push(thread),
            // Without a thread it is done another time.
            Err(_) => slot.in_background.store(false, Ordering::Release),
        }
    }

    fn background(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        let background = self.background.lock();
        background.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until what is being saved is saved.
    pub(super) fn finish(&self) {
        for thread in self.background().drain(..) {
            // One that has panicked has saved nothing; nobody loses by it.
            let _ = thread.join();
        }
    }

    /// Answers by the tenant's index, brought up to the file; the default if it has no records.
    async fn ask<T, W>(self: &Arc<Self>, grant: &Grant, work: W) -> Result<T, StoreError>
    where
        T: Default + Send + 'static,
        W: Fn(&mut Search, &Reader<'_>, i64) -> Result<Option<T>, StoreError>,
        W: Send + Sync + 'static,
    {
        let budget = grant.limits().index_cache_bytes;
        let slot = self.slots().get_or_default(grant.tenant(), budget);
        let work = Arc::new(work);
        let search = |following| Search {
            indexes: Arc::clone(self),
            slot: Arc::clone(&slot),
            grant: grant.clone(),
            following,
        };
        // One that is locked is being changed, so that it is open; nobody waits for it here.
        let is_open = || slot.open.try_read().map_or(true, |open| open.is_some());
        let found = match is_open() {
            true => &self.hits,
            false => &self.misses,
        };
        found.fetch_add(1, Ordering::Relaxed);
        if is_open() {
            let answer = self.run(&self.searches, search(None), &work).await?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        let following = Arc::clone(&slot.following).lock_owned().await;
        let turns = match is_open() {
            true => &self.searches,
            false => &self.loads,
        };
        let answer = self.run(turns, search(Some(following)), &work).await?;
        answer.ok_or_else(|| StoreError::Internal("an index was lost".to_owned()))
    }

    /// Runs a search on a thread where it may block, when it has its turn.
    async fn run<T, W>(
        &self,
        turns: &Semaphore,
        mut search: Search,
        work: &Arc<W>,
    ) -> Result<Option<T>, StoreError>
    where
        T: Default + Send + 'static,
        W: Fn(&mut Search, &Reader<'_>, i64) -> Result<Option<T>, StoreError>,
        W: Send + Sync + 'static,
    {
        let turn = turns.acquire().await;
        let _turn = turn.map_err(|closed| StoreError::Internal(closed.to_string()))?;
        let (pool, work) = (Arc::clone(&self.pool), Arc::clone(work));
        let answer = crate::blocking::run(move || {
            pool.with(|reader| {
                let tenant = reads::tenant(reader, &search.grant)?;
                match tenant {
                    Some(tenant) => work(&mut search, reader, tenant),
                    None => Ok(Some(T::default())),
                }
            })
        });
        let lost = || Err(StoreError::Internal("a search was lost".to_owned()));
        answer.await.unwrap_or_else(lost)
    }

    /// What is found among few, if the index is up to the file: sooner than a thread is woken.
    pub(super) fn find_at_hand(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Option<Answer>, StoreError> {
        if probe.filter.needs_records() {
            return Ok(None);
        }
        let is_short = |index: &Index| {
            (probe.may_run_inline && is_short(probe, index))
                || index.is_among(&probe.filter, AT_HAND)
        };
        let find = |index: &Index| index.find(probe, grant.now(), None);
        let found = self.at_hand(reader, grant, is_short, find)?;
        let found = found.transpose();
        found.map_err(|error| wrong_vector(&error))
    }

    /// What the index has to say, if it is at hand, is asked something short, and is up to the
    /// file.
    fn at_hand<T>(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        is_short: impl FnOnce(&Index) -> bool,
        work: impl FnOnce(&Index) -> T,
    ) -> Result<Option<T>, StoreError> {
        let Some(tenant) = reads::tenant(reader, grant)? else {
            return Ok(None);
        };
        let slot = self.slots().get(grant.tenant());
        let open = slot.as_ref().and_then(|slot| slot.at_hand());
        let Some(open) = open.as_ref().and_then(|open| open.as_ref()) else {
            return Ok(None);
        };
        let index = open.tracked.index();
        if !is_short(index) {
            return Ok(None);
        }
        let snapshot = TenantSnapshot::look(reader.connection, reader.place, tenant)?;
        Ok(shows(open, reader.generation, &snapshot).then(|| {
            self.hits.fetch_add(1, Ordering::Relaxed);
            work(index)
        }))
    }

    pub(super) async fn find(
        self: &Arc<Self>,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Answer, StoreError> {
        let (held, probe) = (grant.clone(), probe.clone());
        let find = move |search: &mut Search, reader: &Reader<'_>, tenant: i64| {
            let filter = &probe.filter;
            let within = filter.needs_records().then(|| meant(reader, &held, filter));
            let within = within.transpose()?;
            search.with_index(reader, tenant, |index| {
                let found = index.find(&probe, held.now(), within.as_ref());
                found.map_err(|error| wrong_vector(&error))
            })
        };
        self.ask(grant, find).await
    }

    /// Speakers of this audience, if the index is up to the file.
    pub(super) fn speakers_at_hand(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Option<Vec<String>>, StoreError> {
        let speakers = |index: &Index| index.speakers(audience, words, grant.now());
        self.at_hand(reader, grant, |_| true, speakers)
    }

    pub(super) async fn speakers(
        self: &Arc<Self>,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let (held, audience) = (grant.clone(), audience.clone());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let find = move |search: &mut Search, reader: &Reader<'_>, tenant: i64| {
            search.with_index(reader, tenant, |index| {
                Ok(index.speakers(&audience, &words, held.now()))
            })
        };
        self.ask(grant, find).await
    }
}

/// Whether the whole index is looked through for this in about the time that it takes to have
/// another thread do it.
fn is_short(probe: &Probe, index: &Index) -> bool {
    let values: usize = probe.vectors.iter().map(|query| query.vector.len()).sum();
    let values = values.max(WIDTH).saturating_mul(index.len());
    values <= VALUES_ALONE && probe.terms.len() <= WORDS_ALONE
}

/// The records that a filter means which only whole records can answer.
fn meant(reader: &Reader<'_>, grant: &Grant, filter: &Filter) -> Result<HashSet<u64>, StoreError> {
    let mut scan = Scan {
        order: Order::Written,
        ..Scan::new(filter.clone(), grant.limits().page)
    };
    let mut seqs = HashSet::new();
    loop {
        let page = scans::scan(reader, grant, &scan)?;
        seqs.extend(page.records.iter().map(|record| record.seq));
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return Ok(seqs),
        }
    }
}

#[cfg(test)]
mod tests;
