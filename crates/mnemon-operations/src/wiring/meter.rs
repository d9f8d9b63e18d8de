//! Measures the store, the embedders and the language model: each is wrapped in a type that does the
//! same and counts. Only a server measures.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};
use mnemon_core::llm::{Completion, Llm, LlmError, Prompt};
use mnemon_core::{
    Answer, Backend, Batch, Capabilities, Change, ChangeHandler, Changes, Claim, Claimed,
    Embedding, ErrorKind, Filter, Grant, Hidden, HiddenScan, Id, IndexCapabilities, IndexUsage,
    Page, Probe, Receipt, Record, Scan, SearchIndex, SessionCount, SessionWindow, Store,
    StoreError, Tally, Upkept,
};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: [f64; 15] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    60.0,
];

/// Latencies by label.
pub type Latencies<L> = Family<L, Histogram, fn() -> Histogram>;

/// Latencies with the buckets that all of ours have.
pub fn latencies<L: Clone + std::hash::Hash + Eq>() -> Latencies<L> {
    Family::new_with_constructor(|| Histogram::new(BUCKETS))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailedOperation {
    operation: &'static str,
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Model {
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailedModel {
    model: String,
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Task {
    model: String,
    task: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    model: String,
    task: String,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailedTask {
    model: String,
    task: String,
    kind: String,
}

/// What the ports of one memory have done. Labels are operations, models and tasks, of which there
/// are few.
pub struct Meter {
    store: Latencies<Operation>,
    store_failures: Family<FailedOperation, Counter>,
    embedder: Latencies<Model>,
    embedder_texts: Family<Model, Counter>,
    embedder_failures: Family<FailedModel, Counter>,
    llm: Latencies<Task>,
    llm_tokens: Family<Tokens, Counter>,
    llm_failures: Family<FailedTask, Counter>,
    index: Mutex<Option<Arc<dyn SearchIndex>>>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            store: latencies(),
            store_failures: Family::default(),
            embedder: latencies(),
            embedder_texts: Family::default(),
            embedder_failures: Family::default(),
            llm: latencies(),
            llm_tokens: Family::default(),
            llm_failures: Family::default(),
            index: Mutex::default(),
        }
    }
}

impl Meter {
    /// Adds the metrics of the ports to those of a server.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Time of a call of the store";
        registry.register("store_seconds", text, self.store.clone());
        let text = "Calls of the store that failed; conflicts and refusals are among them";
        registry.register("store_failures", text, self.store_failures.clone());
        let text = "Time of a call of the embedder";
        registry.register("embedder_seconds", text, self.embedder.clone());
        let text = "Texts that were embedded";
        registry.register("embedder_texts", text, self.embedder_texts.clone());
        let text = "Calls of the embedder that failed";
        registry.register("embedder_failures", text, self.embedder_failures.clone());
        let text = "Time of a call of the language model, retries included";
        registry.register("llm_seconds", text, self.llm.clone());
        let text = "Tokens that the language model read (input) and wrote (output)";
        registry.register("llm_tokens", text, self.llm_tokens.clone());
        let text = "Calls of the language model that failed or were over the budget";
        registry.register("llm_failures", text, self.llm_failures.clone());
    }

    /// The memory that the search index takes.
    pub fn index(&self) -> IndexUsage {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index
            .as_ref()
            .map(|index| index.usage())
            .unwrap_or_default()
    }

    pub(super) fn backend(self: &Arc<Self>, backend: Backend) -> Backend {
        let index = backend.index.clone();
        *self.index.lock().unwrap_or_else(PoisonError::into_inner) = Some(index);
        Backend::from(Arc::new(MeteredStore {
            inner: backend,
            meter: self.clone(),
        }))
    }

    pub(super) fn embedder(self: &Arc<Self>, inner: Arc<dyn Embedder>) -> Arc<dyn Embedder> {
        let meter = self.clone();
        Arc::new(MeteredEmbedder { inner, meter })
    }

    pub(super) fn llm(self: &Arc<Self>, inner: Arc<dyn Llm>) -> Arc<dyn Llm> {
        let meter = self.clone();
        Arc::new(MeteredLlm { inner, meter })
    }
}

/// The word for a kind of error in a label.
fn word(kind: ErrorKind) -> String {
    let word = serde_json::to_value(kind).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

struct MeteredStore {
    inner: Backend,
    meter: Arc<Meter>,
}

impl MeteredStore {
    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let result = work.await;
        let seconds = self.meter.store.get_or_create(&Operation { operation });
        seconds.observe(began.elapsed().as_secs_f64());
        if let Err(error) = &result {
            let kind = word(error.kind());
            let failed = FailedOperation { operation, kind };
            self.meter.store_failures.get_or_create(&failed).inc();
        }
        result
    }
}

#[async_trait]
impl SearchIndex for MeteredStore {
    fn capabilities(&self) -> IndexCapabilities {
        self.inner.index.capabilities()
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let work = self.inner.index.find(grant, probe);
        self.timed("search", work).await
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let work = self.inner.index.speakers(grant, audience, words);
        self.timed("speakers", work).await
    }

    fn usage(&self) -> IndexUsage {
        self.inner.index.usage()
    }
}

/// Every method is passed on, those with a default included: the store's own are faster.
#[async_trait]
impl Store for MeteredStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.store.capabilities()
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.timed("commit", self.inner.store.apply(grant, batch))
            .await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        self.timed("get", self.inner.store.get(grant, ids)).await
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        self.timed("scan", self.inner.store.scan(grant, scan)).await
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        let work = self.inner.store.hidden(grant, scan);
        self.timed("hidden", work).await
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        let work = self.inner.store.changes(grant, changes);
        self.timed("changes", work).await
    }

    async fn newest_change(&self, grant: &Grant) -> Result<u64, StoreError> {
        let work = self.inner.store.newest_change(grant);
        self.timed("newest_change", work).await
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        self.timed("tally", self.inner.store.tally(grant)).await
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        let work = self.inner.store.upkeep(grant, limit);
        self.timed("upkeep", work).await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let work = self.inner.store.lacking(grant, model, after, limit);
        self.timed("lacking", work).await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        let work = self.inner.store.embed(grant, vectors);
        self.timed("embed", work).await
    }

    async fn neighbours(
        &self,
        grant: &Grant,
        ids: &[Id],
        reach: usize,
    ) -> Result<Vec<Option<SessionWindow>>, StoreError> {
        let work = self.inner.store.neighbours(grant, ids, reach);
        self.timed("neighbours", work).await
    }

    async fn sessions(
        &self,
        grant: &Grant,
        filter: &Filter,
    ) -> Result<Vec<SessionCount>, StoreError> {
        let work = self.inner.store.sessions(grant, filter);
        self.timed("sessions", work).await
    }

    async fn ids_with_prefix(
        &self,
        grant: &Grant,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<Id>, StoreError> {
        let work = self.inner.store.ids_with_prefix(grant, prefix, limit);
        self.timed("ids_with_prefix", work).await
    }

    async fn claim(&self, grant: &Grant, claim: &Claim<'_>) -> Result<Claimed, StoreError> {
        self.timed("claim", self.inner.store.claim(grant, claim))
            .await
    }

    fn listen(&self, handler: ChangeHandler) {
        self.inner.store.listen(handler);
    }

    fn hears_others(&self) -> bool {
        self.inner.store.hears_others()
    }
}

struct MeteredEmbedder {
    inner: Arc<dyn Embedder>,
    meter: Arc<Meter>,
}

#[async_trait]
impl Embedder for MeteredEmbedder {
    fn model(&self) -> &ModelId {
        self.inner.model()
    }

    async fn ready(&self) -> Result<(), EmbedError> {
        self.inner.ready().await
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let began = Instant::now();
        let result = self.inner.embed(texts).await;
        let model = self.inner.model().name.clone();
        let label = Model { model };
        let seconds = self.meter.embedder.get_or_create(&label);
        seconds.observe(began.elapsed().as_secs_f64());
        match &result {
            Ok(vectors) => {
                let texts = self.meter.embedder_texts.get_or_create(&label);
                texts.inc_by(vectors.len() as u64);
            }
            Err(error) => {
                let (model, kind) = (label.model, word(error.kind()));
                let failed = FailedModel { model, kind };
                self.meter.embedder_failures.get_or_create(&failed).inc();
            }
        }
        result
    }

    fn similar_words(&self, word: &str) -> Vec<(&'static str, f32)> {
        self.inner.similar_words(word)
    }

    fn fluency(&self, text: &str) -> f32 {
        self.inner.fluency(text)
    }
}

struct MeteredLlm {
    inner: Arc<dyn Llm>,
    meter: Arc<Meter>,
}

impl MeteredLlm {
    fn count(&self, task: &str, taken: Duration, result: &Result<Completion, LlmError>) {
        let (model, task) = (self.inner.model().to_owned(), task.to_owned());
        let meter = &self.meter;
        match result {
            Ok(done) => {
                let directions = [("input", done.input_tokens), ("output", done.output_tokens)];
                for (direction, count) in directions {
                    let (model, task) = (model.clone(), task.clone());
                    let label = Tokens {
                        model,
                        task,
                        direction,
                    };
                    meter.llm_tokens.get_or_create(&label).inc_by(count);
                }
            }
            Err(error) => {
                let (model, task) = (model.clone(), task.clone());
                let kind = word(error.kind());
                let failed = FailedTask { model, task, kind };
                meter.llm_failures.get_or_create(&failed).inc();
            }
        }
        let seconds = meter.llm.get_or_create(&Task { model, task });
        seconds.observe(taken.as_secs_f64());
    }
}

#[async_trait]
impl Llm for MeteredLlm {
    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, prompt: &Prompt) -> Result<Completion, LlmError> {
        let began = Instant::now();
        let result = self.inner.complete(prompt).await;
        self.count(&prompt.account.task, began.elapsed(), &result);
        result
    }
}

#[cfg(test)]
mod tests;
