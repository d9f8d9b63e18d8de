//! An index in a bucket: `./scripts/lance` starts an object store that speaks the protocol of S3.

use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_adapters::external_index::{ExternalIndex, IndexServer};
use mnemon_core::ram::Ram;
use mnemon_core::{Backend, Ctx, SearchIndex, StoreError, Tenant};
use mnemon_testkit::index_operations::{Random, ids_of, put, words};
use mnemon_testkit::make::{at, grant};
use mnemon_testkit::{Fixture, index_conformance};

use crate::killed::{self, operations, operations_of};
use crate::{found, server_of};

/// Operations of a run.
const SHORT: usize = 60;
const FULL: usize = 2000;

/// A new path in the bucket of the tests.
pub(crate) fn url() -> String {
    let bucket = std::env::var("MNEMON_LANCE_BUCKET")
        .expect("MNEMON_LANCE_BUCKET is not set: run ./scripts/lance");
    let number = fastrand::u64(..);
    format!("lance:s3://{bucket}/test/{number:x}")
}

/// A store in memory with its index in a bucket.
struct InBucket {
    store: Arc<Ram>,
    url: String,
}

impl InBucket {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            url: url(),
        }
    }

    fn index(&self) -> ExternalIndex {
        let server = server_of(&self.url);
        ExternalIndex::new(self.store.clone(), Arc::new(server))
    }

    /// The URL of the table, as other programs name it.
    async fn table(&self) -> String {
        let generation = server_of(&self.url).current().await.unwrap();
        let path = self.url.strip_prefix("lance:").unwrap();
        format!("{path}/{}/documents.lance", generation.0)
    }
}

#[async_trait]
impl Fixture for InBucket {
    async fn open(&self) -> Backend {
        Backend {
            store: self.store.clone(),
            index: Arc::new(self.index()),
        }
    }
}

index_conformance!(on_a_bucket, InBucket::new());

#[tokio::test]
async fn random_operations_and_kills_end_in_agreement() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    killed::prepare(place, &url());
    let mut random = Random(11);
    let wanted = operations(SHORT, FULL);
    let (mut processes, mut killed) = (0, 0);
    while operations_of(place) < wanted {
        processes += 1;
        let mut child = killed::start("child_that_operates", place, processes);
        let most = operations_of(place) + 1 + random.below(40) as usize;
        while operations_of(place) < most && child.try_wait().unwrap().is_none() {
            std::thread::sleep(killed::POLL);
        }
        // It is somewhere in the search after this operation, or in the next one.
        killed += u64::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        let now = i64::try_from(processes).unwrap() * 1000 + 900;
        killed::assert_agreement(place, now).await;
    }
    assert!(killed > 0, "{killed} of {processes} were killed");
}

#[tokio::test]
async fn versions_do_not_grow_with_the_number_of_writes() {
    let indexed = InBucket::new();
    let index = indexed.index();
    for number in 0..20 {
        put(&*indexed.store, &format!("n{}", number % 10), "green tea").await;
        found(&index, "tea").await.unwrap();
    }
    let listed = python(
        "import sys, lance; print(len(lance.dataset(sys.argv[1]).versions()))",
        &indexed.table().await,
    );
    let versions: u64 = listed.trim().parse().unwrap();
    assert!(versions <= crate::OFTEN.versions_most + 4, "{versions}");
    assert_eq!(found(&index, "tea").await.unwrap(), 10);
}

fn python(script: &str, argument: &str) -> String {
    let python = std::env::var_os("MNEMON_LANCE_PYTHON").unwrap();
    let output = Command::new(python)
        .args(["-c", script, argument])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_rebuild_replaces_the_index_while_it_is_searched() {
    let indexed = InBucket::new();
    for name in ["a", "b", "c"] {
        put(&*indexed.store, name, "green tea").await;
    }
    let searching = indexed.index();
    assert_eq!(found(&searching, "tea").await.unwrap(), 3);
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    indexed.index().rebuild(&ctx, &|_, _| {}).await.unwrap();
    put(&*indexed.store, "d", "black tea").await;
    assert_eq!(found(&searching, "tea").await.unwrap(), 4);
    let compared = searching.compare(&grant(at(0))).await.unwrap();
    assert!(compared.is_complete(), "{compared:?}");
}

#[tokio::test]
async fn two_indexes_follow_one_store_at_the_same_time() {
    let indexed = InBucket::new();
    let (one, other) = (indexed.index(), indexed.index());
    let g = grant(at(0));
    for number in 0..6 {
        put(&*indexed.store, &format!("n{number}"), "green tea").await;
        let query = words("tea");
        let (ours, theirs) = futures::join!(one.find(&g, &query), other.find(&g, &query));
        assert_eq!(ids_of(ours.unwrap()), ids_of(theirs.unwrap()));
    }
    let compared = one.compare(&g).await.unwrap();
    assert!(
        compared.is_complete() && compared.leftover == 0,
        "{compared:?}"
    );
}

#[tokio::test]
async fn an_absent_bucket_is_reported() {
    let server = server_of("lance:s3://no-such-bucket/memory");
    let error = server.current().await.unwrap_err().to_string();
    let expected = "there is no bucket `no-such-bucket`; create it first";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test]
async fn another_folder_stays_as_it_is() {
    let indexed = InBucket::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    // The parent of an index holds objects that are not of an index.
    let (parent, _) = indexed.url.rsplit_once('/').unwrap();
    let error = server_of(parent).current().await.unwrap_err().to_string();
    assert!(error.contains("name an empty path"), "{error}");
}

#[tokio::test]
async fn a_table_without_a_column_is_not_used() {
    let indexed = InBucket::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    python(
        "import sys, lance; lance.dataset(sys.argv[1]).drop_columns(['tags'])",
        &indexed.table().await,
    );
    let error = found(&indexed.index(), "tea").await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("`tags`"), "{error}");
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    indexed.index().rebuild(&ctx, &|_, _| {}).await.unwrap();
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
}
