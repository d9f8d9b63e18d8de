use std::future::poll_fn;
use std::task::Poll;

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::{
    Answer, Backend, Batch, Capabilities, Change, Changes, Embedding, Filter, Grant, Hidden,
    HiddenScan, Id, IndexCapabilities, Page, Probe, Receipt, Record, Scan, SearchIndex,
    SessionWindow, Store, StoreError, Tally, Upkept,
};

use super::{Fault, Sim};

/// The store as the actors see it: before each call the scheduler may let other operations go on,
/// calls fail by the seed, and the model learns of every batch that took effect.
pub struct Gate {
    inner: Backend,
    sim: Sim,
}

/// A store call under way; the next one may begin when this is dropped.
struct InCall<'a>(&'a Sim);

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        self.0.lock().in_call = false;
    }
}

impl Gate {
    /// The store behind a gate.
    #[must_use]
    pub fn new(inner: Backend, sim: &Sim) -> Self {
        Self {
            inner,
            sim: sim.clone(),
        }
    }

    /// Stops once, so that the scheduler can choose who goes on, then takes the turn.
    async fn pass(&self) -> Option<Fault> {
        let mut has_stopped = false;
        poll_fn(|cx| {
            let mut state = self.sim.lock();
            if has_stopped && !state.in_call {
                state.in_call = true;
                return Poll::Ready(state.draw_fault());
            }
            has_stopped = true;
            state.paused = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    async fn call<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let fault = self.pass().await;
        let _in_call = InCall(&self.sim);
        match fault {
            None => work.await,
            Some(Fault::Before) => Err(injected("nothing was done")),
            Some(Fault::After) => work.await.and(Err(injected("the answer was lost"))),
        }
    }

    /// Applies the batch, and tells the model what became of it.
    async fn recorded(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        let result = self.inner.store.apply(grant, batch.clone()).await;
        let mut state = self.sim.lock();
        let (by, now) = (state.running, state.now);
        if let Err(what) = state.model.applied(by, now, grant, &batch, &result) {
            let told = match &result {
                Ok(receipt) => format!("{receipt:?}"),
                Err(error) => error.to_string(),
            };
            state.violate(format!("{what}\n  batch: {batch:?}\n  answer: {told}"));
        }
        drop(state);
        result
    }
}

fn injected(what: &str) -> StoreError {
    StoreError::Unavailable {
        place: "simulator".to_owned(),
        what: what.to_owned(),
        source: "an injected fault".into(),
    }
}

#[async_trait]
impl SearchIndex for Gate {
    fn capabilities(&self) -> IndexCapabilities {
        self.inner.index.capabilities()
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        self.call(self.inner.index.find(grant, probe)).await
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let found = self.inner.index.speakers(grant, audience, words);
        self.call(found).await
    }
}

#[async_trait]
impl Store for Gate {
    fn capabilities(&self) -> Capabilities {
        self.inner.store.capabilities()
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.call(self.recorded(grant, batch)).await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        self.call(self.inner.store.get(grant, ids)).await
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        self.call(self.inner.store.scan(grant, scan)).await
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        self.call(self.inner.store.hidden(grant, scan)).await
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        self.call(self.inner.store.changes(grant, changes)).await
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        self.call(self.inner.store.tally(grant)).await
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        self.call(self.inner.store.upkeep(grant, limit)).await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.call(self.inner.store.lacking(grant, model, after, limit))
            .await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        self.call(self.inner.store.embed(grant, vectors)).await
    }

    async fn neighbours(
        &self,
        grant: &Grant,
        ids: &[Id],
        reach: usize,
    ) -> Result<Vec<Option<SessionWindow>>, StoreError> {
        self.call(self.inner.store.neighbours(grant, ids, reach))
            .await
    }
}
