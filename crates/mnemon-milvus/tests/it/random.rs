//! Random operations with a server that is killed and started again.

use mnemon_core::SearchIndex;
use mnemon_core::ram::Ram;
use mnemon_testkit::index_operations::{Random, ids_of, operate, put, words};
use mnemon_testkit::make::{at, grant};
use std::sync::Arc;

use crate::lite::{Doomed, Lite};
use crate::{found, index_at};

/// Operations of a short run; a full one has 10,000.
const SHORT: u64 = 300;
const FULL: u64 = 10_000;
/// Bytes of the requests of a search, about.
const MOST_BYTES: u64 = 12_000;

/// After catching up, index and store agree exactly, and both indexes find the same records. Searches
/// in between show nothing that was deleted.
#[tokio::test]
async fn random_operations_and_restarts_end_in_agreement() {
    let is_full = std::env::var_os("MNEMON_TEST_FULL").is_some();
    let operations = if is_full { FULL } else { SHORT };
    // Starting the server takes about two seconds.
    let restarts = 5 * operations / SHORT.min(operations);
    let kills_every = operations / restarts.min(50);
    let folder = tempfile::tempdir().unwrap();
    let mut server = Lite::start(folder.path());
    let store: Arc<Ram> = Arc::default();
    let mut random = Random(20);
    let (mut now, mut killed) = (0, 0);
    for round in 0..operations {
        now = operate(&*store, &mut random, now).await;
        let g = grant(at(now));
        if round % kills_every == kills_every / 2 {
            // Killed while it reads, writes or marks for a search.
            let doomed = Doomed::after(1 + random.below(MOST_BYTES), server);
            let index = index_at(&store, &format!("milvus://{}/memory", doomed.address()));
            let failed = index.find(&g, &words("tea")).await.is_err();
            let lived = doomed.kill();
            assert!(!failed || !lived, "operation {round}");
            killed += u64::from(failed);
            server = Lite::start(folder.path());
        }
        if random.below(12) == 0 {
            let index = index_at(&store, &format!("milvus://{}/memory", server.address()));
            let ours = index.find(&g, &words("tea")).await.unwrap();
            let theirs = store.find(&g, &words("tea")).await.unwrap();
            assert_eq!(ids_of(ours), ids_of(theirs), "operation {round}");
        }
    }
    assert!(killed > 1, "most searches end after the server was killed");
    let g = grant(at(now));
    let index = index_at(&store, &format!("milvus://{}/memory", server.address()));
    let compared = index.compare(&g).await.unwrap();
    assert!(compared.is_complete(), "{compared:?}");
    // The next write removes documents of records that have expired.
    put(&*store, "last", "tea").await;
    found(&index, "tea").await.unwrap();
    let again = index.compare(&g).await.unwrap();
    assert_eq!((again.missing, again.outdated, again.leftover), (0, 0, 0));
    let everything = ids_of(index.find(&g, &words("tea milk cup coffee")).await.unwrap());
    let theirs = store.find(&g, &words("tea milk cup coffee")).await.unwrap();
    assert_eq!(everything, ids_of(theirs));
}
