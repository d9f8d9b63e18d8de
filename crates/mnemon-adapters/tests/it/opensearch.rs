//! An index in OpenSearch: against a strict double, and against a live server if `OPENSEARCH_URL`
//! names one.

mod double;
mod matching;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mnemon_adapters::Sqlite;
use mnemon_adapters::external_index::{ExternalIndex, IndexAccess, IndexUrl, OpenSearch};
use mnemon_core::embed::Embedder;
use mnemon_core::ram::Ram;
use mnemon_core::{
    Backend, Batch, Ctx, Embedding, Filter, Op, Probe, Replica, SearchIndex, StoreError, Tenant,
};
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::index_operations::{Random, ids_of, operate, put, words};
use mnemon_testkit::make::{Remade, at, grant, id, note};
use mnemon_testkit::{Fixture, index_conformance};

use double::{Data, Double, Fault};

/// A store in memory with its index in the double.
struct Indexed {
    store: Arc<Ram>,
    double: Double,
}

impl Indexed {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            double: Double::start(Arc::new(Mutex::new(Data::default()))),
        }
    }

    fn index(&self) -> ExternalIndex {
        index_at(&self.store, &self.double.url())
    }

    fn data(&self) -> std::sync::MutexGuard<'_, Data> {
        self.double.data.lock().unwrap()
    }
}

fn index_at(store: &Arc<Ram>, url: &str) -> ExternalIndex {
    let url = IndexUrl::parse(url).unwrap();
    let server = OpenSearch::new(&url, IndexAccess::default()).unwrap();
    ExternalIndex::new(store.clone(), Arc::new(server))
}

#[async_trait]
impl Fixture for Indexed {
    async fn open(&self) -> Backend {
        Backend {
            store: self.store.clone(),
            index: Arc::new(self.index()),
        }
    }
}

index_conformance!(on_the_double, Indexed::new());

async fn found(index: &ExternalIndex, query: &str) -> Result<usize, StoreError> {
    let answer = index.find(&grant(at(0)), &words(query)).await?;
    Ok(answer.matches.len())
}

#[tokio::test]
async fn passing_failures_are_repeated_and_others_reported() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    let index = indexed.index();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    for fault in [
        Fault::Status(429, "{}".to_owned()),
        Fault::Status(503, "busy".to_owned()),
        Fault::Truncated,
    ] {
        indexed.data().faults = vec![fault.clone()];
        let found = found(&index, "tea").await;
        assert_eq!(found.unwrap(), 1, "{fault:?}");
    }
    let denied = || Fault::Status(401, "Unauthorized".to_owned());
    for (faults, expected) in [
        (vec![denied()], "MNEMON_INDEX_USER"),
        (vec![Fault::WrongTypes], "answered without"),
        (vec![Fault::Status(200, "<html>".to_owned())], "not JSON"),
        (vec![Fault::Status(500, "{}".to_owned()); 4], "status 500"),
        (vec![Fault::Hang], "did not answer in time"),
    ] {
        indexed.data().faults = faults;
        let error = found(&index, "tea").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        indexed.data().faults.clear();
    }
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_reported() {
    let store: Arc<Ram> = Arc::default();
    let absent = index_at(&store, "opensearch://127.0.0.1:1/memory");
    let error = found(&absent, "tea").await.unwrap_err().to_string();
    assert!(error.contains("start the server"), "{error}");

    let indexed = Indexed::new();
    indexed.data().version = Some("1.3.9".to_owned());
    let error = found(&indexed.index(), "tea").await.unwrap_err();
    assert!(error.to_string().contains("1.3.9 is too old"), "{error}");

    let indexed = Indexed::new();
    indexed.data().is_read_only = true;
    let error = found(&indexed.index(), "tea").await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");

    let indexed = Indexed::new();
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 0);
    for index in indexed.data().indexes.values_mut() {
        index.mappings["_meta"]["mnemon_format"] = 99.into();
    }
    let error = found(&indexed.index(), "tea").await.unwrap_err();
    assert!(error.to_string().contains("name another index"), "{error}");
}

#[tokio::test]
async fn a_rebuild_replaces_the_index_while_it_is_searched() {
    let indexed = Indexed::new();
    for name in ["a", "b", "c"] {
        put(&*indexed.store, name, "green tea").await;
    }
    let searching = indexed.index();
    assert_eq!(found(&searching, "tea").await.unwrap(), 3);
    let old: Vec<String> = indexed.data().indexes.keys().cloned().collect();
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    let shown = Mutex::new(Vec::new());
    let watch = |done, all| shown.lock().unwrap().push((done, all));
    let rebuilt = indexed.index().rebuild(&ctx, &watch).await.unwrap();
    assert_eq!((rebuilt.tenants, rebuilt.records), (1, 3));
    assert_eq!(shown.lock().unwrap().last(), Some(&(3, 3)));
    let new: Vec<String> = indexed.data().indexes.keys().cloned().collect();
    assert!(new.len() == 1 && new != old, "{old:?} {new:?}");
    put(&*indexed.store, "d", "black tea").await;
    assert_eq!(found(&searching, "tea").await.unwrap(), 4);
}

#[tokio::test]
async fn a_comparison_counts_what_differs_and_a_rebuild_mends_it() {
    let indexed = Indexed::new();
    for name in ["a", "b", "c"] {
        put(&*indexed.store, name, "green tea").await;
    }
    let index = indexed.index();
    let g = grant(at(0));
    let compared = index.compare(&g).await.unwrap();
    assert_eq!(compared.records, 3);
    assert!(compared.is_complete() && compared.leftover == 0);
    for index in indexed.data().indexes.values_mut() {
        let of = |name: &str| {
            let mut docs = index.docs.iter();
            let found = docs.find(|(_, doc)| doc.source["id"] == name);
            found.unwrap().0.clone()
        };
        let [a, b, c] = ["a", "b", "c"].map(of);
        index.docs.remove(&a);
        index.docs.get_mut(&b).unwrap().source["seq"] = 1.into();
        index.docs.get_mut(&c).unwrap().source["id"] = "x".into();
    }
    let compared = index.compare(&g).await.unwrap();
    let counts = (compared.missing, compared.outdated, compared.leftover);
    assert_eq!(counts, (2, 1, 1), "{compared:?}");
    assert!(!compared.is_complete());
    assert_eq!(compared.examples, ["a", "b", "c"].map(id));
    let again = index.compare(&g).await.unwrap();
    assert_eq!(again, compared, "nothing was corrected");
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    index.rebuild(&ctx, &|_, _| {}).await.unwrap();
    let compared = index.compare(&g).await.unwrap();
    assert!(compared.is_complete() && compared.leftover == 0);
}

/// A vector that comes after its record leaves no change behind.
#[tokio::test]
async fn late_vectors_of_a_file_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("m.db")).unwrap();
    let store: Arc<dyn Replica> = Arc::new(store);
    let double = Double::start(Arc::new(Mutex::new(Data::default())));
    let url = IndexUrl::parse(&double.url()).unwrap();
    let server = OpenSearch::new(&url, IndexAccess::default()).unwrap();
    let index = ExternalIndex::new(store.clone(), Arc::new(server));
    let g = grant(at(0));
    let records = ["a", "b", "c"].map(|name| Op::put(note(name).saying("green tea")));
    let batch = Batch::from(records.to_vec());
    store.apply(&g, batch).await.unwrap();
    let embedder = HashEmbedder::default();
    let vector = embedder.embed(&["green tea"]).await.unwrap().remove(0);
    let model = embedder.model().clone();
    let vector = vector.unwrap();
    let embedding = Embedding { model, vector };
    let near = Probe {
        vectors: vec![embedding.clone()],
        ..Probe::new(Filter::all_of_tenant(), 10)
    };
    let found = async || index.find(&g, &near).await.unwrap().matches.len();
    assert_eq!(found().await, 0);
    let lacking = store.lacking(&g, &embedding.model, 0, 3).await.unwrap();
    let vectors = lacking.iter().map(|it| (it.seq, embedding.clone()));
    let vectors: Vec<_> = vectors.collect();
    store.embed(&g, vectors[..1].to_vec()).await.unwrap();
    assert_eq!(found().await, 1);
    store.embed(&g, vectors[1..].to_vec()).await.unwrap();
    assert_eq!(found().await, 3);
    let page = store.embedded_after(&g, 0, 2).await.unwrap();
    assert_eq!((page.records.len(), page.reached, page.more), (2, 2, true));
    let page = store.embedded_after(&g, 2, 2).await.unwrap();
    assert_eq!((page.records.len(), page.reached, page.more), (1, 3, false));
}

/// Random operations with a server that is killed and restarted: after it has caught up, index and
/// store agree exactly, and both indexes find the same records.
#[tokio::test]
async fn random_operations_and_restarts_end_in_agreement() {
    let is_full = std::env::var_os("MNEMON_TEST_FULL").is_some();
    let operations = if is_full { 10_000 } else { 1_000 };
    let mut random = Random(20);
    let mut indexed = Indexed::new();
    let mut now = 0;
    for round in 0..operations {
        now = operate(&*indexed.store, &mut random, now).await;
        match random.below(25) {
            0 => {
                // Killed: the data stay, the address changes.
                let data = indexed.double.data.clone();
                indexed.double = Double::start(data);
            }
            1 => {
                // It fails at one of the requests of the next search: reading, writing or marking.
                let mut data = indexed.data();
                data.good_requests = random.below(8);
                data.faults = vec![Fault::Status(500, "{}".to_owned()); 4];
            }
            2 => {
                let g = grant(at(now));
                let ours = indexed.index().find(&g, &words("tea")).await;
                indexed.data().faults.clear();
                // A search that failed half-way has lost nothing for the next one.
                let ours = match ours {
                    Ok(ours) => ours,
                    Err(_) => indexed.index().find(&g, &words("tea")).await.unwrap(),
                };
                let theirs = indexed.store.find(&g, &words("tea")).await.unwrap();
                assert_eq!(ids_of(ours), ids_of(theirs), "operation {round}");
            }
            _ => {}
        }
    }
    indexed.data().faults.clear();
    let g = grant(at(now));
    let compared = indexed.index().compare(&g).await.unwrap();
    assert!(compared.is_complete(), "{compared:?}");
    // The next write removes documents of records that have expired.
    put(&*indexed.store, "last", "tea").await;
    found(&indexed.index(), "tea").await.unwrap();
    let again = indexed.index().compare(&g).await.unwrap();
    assert_eq!((again.missing, again.outdated, again.leftover), (0, 0, 0));
    let documents = indexed.data();
    let documents = documents
        .indexes
        .values()
        .flat_map(|index| index.docs.values());
    let documents = documents.filter(|doc| doc.source.get("seq").is_some());
    assert_eq!(documents.count() as u64, again.records);
}

/// The index suite on the server that `OPENSEARCH_URL` names, such as `opensearch://HOST:9200`. Its
/// indexes `mnemon_test_…` stay there.
mod live {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mnemon_adapters::embed::Secret;
    use mnemon_testkit::conformance::{self, Subject};

    use super::*;

    struct Live {
        store: Arc<Ram>,
        url: String,
    }

    impl Live {
        /// With an index that no other case has.
        fn new() -> Option<Self> {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let server = std::env::var("OPENSEARCH_URL").ok()?;
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("mnemon_test_{}_{number}", std::process::id());
            Some(Self {
                store: Arc::default(),
                url: format!("{}/{name}", server.trim_end_matches('/')),
            })
        }
    }

    #[async_trait]
    impl Fixture for Live {
        async fn open(&self) -> Backend {
            let url = IndexUrl::parse(&self.url).unwrap();
            let access = IndexAccess {
                user: std::env::var("OPENSEARCH_USER").ok(),
                password: std::env::var("OPENSEARCH_PASSWORD").ok().map(Secret::new),
                ..IndexAccess::default()
            };
            let server = OpenSearch::new(&url, access).unwrap();
            Backend {
                store: self.store.clone(),
                index: Arc::new(ExternalIndex::new(self.store.clone(), Arc::new(server))),
            }
        }
    }

    fn run_if_named<C, F>(live: Option<Live>, case: C)
    where
        C: FnOnce(Subject) -> F,
        F: Future<Output = ()>,
    {
        match live {
            Some(live) => conformance::run(live, case),
            None => eprintln!("SKIPPED: OPENSEARCH_URL names no live server"),
        }
    }

    index_conformance!(on_a_live_server, Live::new(), run_if_named);
}
