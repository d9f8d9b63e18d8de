//! A store that fails on purpose, by a schedule that a seed decides.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::{
    Answer, Batch, Capabilities, Change, Changes, Embedding, Filter, Grant, Hidden, HiddenScan, Id,
    IndexCapabilities, Page, Probe, Receipt, Record, Scan, SearchIndex, Store, StoreError, Tally,
    Upkept,
};

/// When a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Before it took effect.
    Before,
    /// After it took effect: the answer is lost, and the caller cannot know.
    After,
}

/// A store of which some calls fail. The same seed gives the same failures.
pub struct Flaky<S> {
    inner: S,
    random: Mutex<u64>,
    in_hundred: u64,
    failed: AtomicU64,
    /// The one call that fails, counted from now, and how.
    armed: Mutex<Option<(u64, Fault)>>,
}

impl<S> Flaky<S> {
    /// Of a hundred calls, about so many fail.
    pub fn new(inner: S, seed: u64, in_hundred: u64) -> Self {
        Self {
            inner,
            random: Mutex::new(seed),
            in_hundred,
            failed: AtomicU64::new(0),
            armed: Mutex::new(None),
        }
    }

    /// Lets so many calls through, then one fails.
    pub fn arm(&self, calls: u64, fault: Fault) {
        *self.armed.lock().unwrap() = Some((calls, fault));
    }

    /// Lets all calls through that no other schedule makes fail. Whether the fault was still to
    /// come.
    pub fn disarm(&self) -> bool {
        self.armed.lock().unwrap().take().is_some()
    }

    fn struck(&self) -> Option<Fault> {
        let mut armed = self.armed.lock().unwrap();
        match armed.as_mut()? {
            (0, fault) => {
                let fault = *fault;
                *armed = None;
                Some(fault)
            }
            (calls, _) => {
                *calls -= 1;
                None
            }
        }
    }

    /// The store behind, which does not fail.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// How many calls have failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn next(&self) -> Option<Fault> {
        if let Some(fault) = self.struck() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return Some(fault);
        }
        let mut state = self.random.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let random = splitmix(*state);
        if random % 100 >= self.in_hundred {
            return None;
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        Some(if random >> 63 == 0 {
            Fault::Before
        } else {
            Fault::After
        })
    }

    async fn call<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match self.next() {
            None => work.await,
            Some(Fault::Before) => Err(lost("nothing was done")),
            Some(Fault::After) => work.await.and(Err(lost("the answer was lost"))),
        }
    }
}

fn splitmix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn lost(what: &str) -> StoreError {
    StoreError::Unavailable {
        place: "flaky".to_owned(),
        what: what.to_owned(),
        source: "a fault that the test put there".into(),
    }
}

#[async_trait]
impl<S: SearchIndex> SearchIndex for Flaky<S> {
    fn capabilities(&self) -> IndexCapabilities {
        self.inner.capabilities()
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        self.call(self.inner.find(grant, probe)).await
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let found = self.inner.speakers(grant, audience, words);
        self.call(found).await
    }
}

#[async_trait]
impl<S: Store> Store for Flaky<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.call(self.inner.apply(grant, batch)).await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        self.call(self.inner.get(grant, ids)).await
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        self.call(self.inner.scan(grant, scan)).await
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        self.call(self.inner.hidden(grant, scan)).await
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        self.call(self.inner.changes(grant, changes)).await
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        self.call(self.inner.tally(grant)).await
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        self.call(self.inner.upkeep(grant, limit)).await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.call(self.inner.lacking(grant, model, after, limit))
            .await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        self.call(self.inner.embed(grant, vectors)).await
    }
}
