use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use mnemon_core::embed::ModelId;
use mnemon_core::index::{Cursor, Doc, Terms, stored};
use mnemon_core::limits::Limits;
use mnemon_core::{Batch, Ctx, Embedding, Id, Op, Policy, Record, Right, SearchIndex, Store, Time};

use super::*;
use crate::Sqlite;

fn ctx(tenant: &str) -> Ctx {
    Ctx::new(tenant.parse().unwrap(), "test", Time::EPOCH)
}

fn grant(tenant: &str) -> Grant {
    Policy::default().check(&ctx(tenant), Right::Purge).unwrap()
}

fn id(number: usize) -> Id {
    format!("n{number}").parse().unwrap()
}

fn ids(count: usize) -> Vec<Id> {
    (0..count).map(id).collect()
}

fn embedding() -> Embedding {
    Embedding {
        model: ModelId {
            name: "m".to_owned(),
            dimension: 2,
        },
        vector: vec![1.0, 0.0],
    }
}

fn near(depth: usize) -> Probe {
    Probe {
        vectors: vec![embedding()],
        depth,
        ..Probe::new(Filter::all_of_tenant(), 0)
    }
}

/// A handle that never saves an index.
fn open(path: &Path) -> Sqlite {
    let saving = Saving {
        changes: usize::MAX,
        pause: Duration::ZERO,
    };
    Sqlite::open_with(path, saving).unwrap()
}

/// So many notes of the tenant, each with a vector.
async fn put(store: &Sqlite, tenant: &str, count: usize) {
    let note = |id: Id| Op::put(Record::note(id, &ctx(tenant), "tea"));
    let mut batch = Batch::from(ids(count).into_iter().map(note).collect::<Vec<_>>());
    batch.vectors = ids(count).into_iter().map(|id| (id, embedding())).collect();
    store.apply(&grant(tenant), batch).await.unwrap();
}

async fn found(store: &Sqlite, grant: &Grant) -> usize {
    let found = store.indexes.find(grant, &near(5000)).await;
    found.unwrap().matches.len()
}

/// Twelve searches, more than there are turns for reads, wait for one index.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_that_wait_for_a_load_keep_nobody_from_reading() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("m.db"));
    put(&store, "a", 3).await;
    put(&store, "b", 20).await;
    let (begun, has_begun) = mpsc::channel();
    let (end, has_ended) = mpsc::channel::<()>();
    let has_ended = Mutex::new(has_ended);
    *store.indexes.before_load.lock().unwrap() = Some(Arc::new(move |tenant| {
        if tenant == 1 {
            begun.send(()).unwrap();
            // Until the other end is dropped.
            let _ = has_ended.lock().unwrap().recv();
        }
    }));
    let (a, b, probe) = (grant("a"), grant("b"), near(100));
    let mut searches: Vec<_> = (0..12).map(|_| store.find(&a, &probe)).collect();
    for search in &mut searches {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(search).poll(&mut cx).is_pending());
    }
    has_begun.recv().unwrap();

    let records = store.get(&b, &ids(20)).await.unwrap();
    assert_eq!(records.iter().flatten().count(), 20);
    let all = Scan::new(Filter::all_of_tenant(), 100);
    assert_eq!(store.scan(&b, &all).await.unwrap().records.len(), 20);
    assert_eq!(store.find(&b, &probe).await.unwrap().matches.len(), 20);

    drop(end);
    for search in searches {
        assert_eq!(search.await.unwrap().matches.len(), 3);
    }
}

#[tokio::test]
async fn indexes_beyond_the_budget_are_dropped_and_loaded_again() {
    static LIMITS: Limits = Limits {
        index_cache_bytes: 100_000,
        ..Limits::DEFAULT
    };
    let policy = Policy {
        limits: &LIMITS,
        ..Policy::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("m.db"));
    let tenants: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    for (count, tenant) in (1..).zip(&tenants) {
        put(&store, tenant, count).await;
    }
    for _ in 0..2 {
        for (count, tenant) in (1..).zip(&tenants) {
            let grant = policy.check(&ctx(tenant), Right::Read).unwrap();
            assert_eq!(found(&store, &grant).await, count);
            assert!(store.indexes.slots().bytes() <= LIMITS.index_cache_bytes);
        }
    }
    let mut slots = store.indexes.slots();
    let held = tenants.iter().filter(|name| {
        let tenant = name.parse().unwrap();
        slots.get(&tenant).is_some()
    });
    let held = held.count();
    assert!((1..40).contains(&held), "{held}");
}

#[tokio::test]
async fn an_index_that_is_being_saved_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("m.db"));
    put(&store, "a", 3).await;
    let a = grant("a");
    assert_eq!(found(&store, &a).await, 3);
    let slot = store.indexes.slots().get(a.tenant()).unwrap();
    let saver = Arc::clone(&slot.read().as_ref().unwrap().tracked);
    put(&store, "a", 5).await;
    assert_eq!(found(&store, &a).await, 5);
    assert_eq!(saver.index().len(), 3);
}

#[tokio::test]
async fn a_stale_index_is_compacted_aside() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("m.db"));
    let a = grant("a");
    put(&store, "a", 1100).await;
    assert_eq!(found(&store, &a).await, 1100);
    let purge = |id: Id| Op::Purge { id };
    let purges: Vec<Op> = ids(1100).into_iter().skip(7).map(purge).collect();
    store.apply(&a, Batch::from(purges)).await.unwrap();
    assert_eq!(found(&store, &a).await, 7);
    store.indexes.finish();
    let slot = store.indexes.slots().get(a.tenant()).unwrap();
    assert!(!slot.read().as_ref().unwrap().tracked.index().is_stale());
    assert_eq!(found(&store, &a).await, 7);
}

#[tokio::test]
async fn a_compaction_that_a_change_overtakes_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("m.db"));
    let a = grant("a");
    put(&store, "a", 3).await;
    assert_eq!(found(&store, &a).await, 3);
    let slot = store.indexes.slots().get(a.tenant()).unwrap();
    let open = || Arc::clone(&slot.read().as_ref().unwrap().tracked);
    let mut followed = None;
    slot.compact(|early| {
        // A search follows a purge.
        slot.write().as_mut().unwrap().tracked = Arc::new(early.clone());
        followed = Some(open());
        early.compacted()
    });
    let followed = followed.unwrap();
    assert!(Arc::ptr_eq(&followed, &open()));
    slot.compact(TrackedIndex::compacted);
    assert!(!Arc::ptr_eq(&followed, &open()));
}

#[test]
fn a_large_index_is_measured_after_many_changes_and_for_a_new_model() {
    let mut index = Index::new();
    for seq in 1..=MEASURED_ALWAYS as u64 + 1 {
        let mut record = Record::note(id(0), &ctx("a"), "tea");
        record.seq = seq;
        index
            .add(&Doc::of(&record), &Terms::of(&record), None)
            .unwrap();
    }
    let tracked = |index: &Index| TrackedIndex::at(Cursor::default(), index.clone());
    let mut open = OpenIndex::new(0, 0, tracked(&index), 0);
    let before = open.measure().unwrap();
    assert_eq!(open.measure(), None);
    open.unmeasured = index.len() / 16;
    assert!(open.measure().is_some());
    index.embed(1, &stored(&embedding()).unwrap()).unwrap();
    open.tracked = Arc::new(tracked(&index));
    assert!(open.measure().unwrap() > before);
    assert_eq!(open.measure(), None);
}
