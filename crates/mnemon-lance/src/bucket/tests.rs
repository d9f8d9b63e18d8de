use std::io::{Read, Write};
use std::net::TcpListener;

use mnemon_adapters::external_index::{Document, DocumentChange, IndexServer};
use mnemon_core::ErrorKind;
use mnemon_testkit::make::{Remade, note};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::memory::InMemory;

use super::*;
use crate::Lance;

const WAIT: Duration = Duration::from_secs(5);

fn bucket(store: &Arc<InMemory>) -> Bucket {
    let place = "lance:s3://bucket/team/memory";
    Bucket::new(store.clone(), "bucket", "team/memory", place, WAIT)
}

async fn put(store: &InMemory, path: &str, text: &str) {
    let payload = PutPayload::from(text.to_owned().into_bytes());
    store.put(&Path::from(path), payload).await.unwrap();
}

async fn paths(store: &InMemory) -> Vec<String> {
    let all: Vec<_> = store.list(None).try_collect().await.unwrap();
    let paths = all.into_iter().map(|object| object.location.to_string());
    paths.collect()
}

#[tokio::test]
async fn a_path_with_other_objects_is_refused() {
    let store = Arc::new(InMemory::new());
    put(&store, "team/memory2/x", "other").await;
    bucket(&store).prepare().await.unwrap();
    put(&store, "team/memory/notes/a.txt", "mine").await;
    let error = bucket(&store).prepare().await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("`notes`"), "{error}");
}

#[tokio::test]
async fn a_newer_format_and_a_damaged_marker_are_reported() {
    let store = Arc::new(InMemory::new());
    let marker = format!("team/memory/{MARKER}");
    put(&store, &marker, r#"{"format": 2, "generation": null}"#).await;
    let error = bucket(&store).current().await.unwrap_err();
    assert!(
        matches!(error, StoreError::TooNew { found: 2, .. }),
        "{error}"
    );
    put(&store, &marker, "{\"form").await;
    let error = bucket(&store).current().await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn of_two_first_generations_one_is_used() {
    let store = Arc::new(InMemory::new());
    let (one, other) = (bucket(&store), bucket(&store));
    let (first, second) = (one.make().await.unwrap(), other.make().await.unwrap());
    one.complete(&first).await.unwrap();
    other.complete(&second).await.unwrap();
    assert_eq!(one.offer(first.clone()).await.unwrap(), first);
    assert_eq!(other.offer(second.clone()).await.unwrap(), first);
    assert!(!one.has(&second).await.unwrap(), "it was removed");
    assert_eq!(other.current().await.unwrap(), Some(first));
}

#[tokio::test]
async fn a_rebuild_removes_other_generations_only() {
    let store = Arc::new(InMemory::new());
    let bucket = bucket(&store);
    let (old, new) = (bucket.make().await.unwrap(), bucket.make().await.unwrap());
    for generation in [&old, &new] {
        bucket.complete(generation).await.unwrap();
        let data = format!("team/memory/{}/documents.lance/data/x", generation.0);
        put(&store, &data, "rows").await;
    }
    put(&store, "team/memory/notes.txt", "mine").await;
    bucket.activate(&new).await.unwrap();
    assert_eq!(bucket.current().await.unwrap(), Some(new));
    let left = paths(&store).await;
    assert!(!left.iter().any(|path| path.contains(&old.0)), "{left:?}");
    assert!(left.contains(&"team/memory/notes.txt".to_owned()));
}

#[tokio::test]
async fn a_watermark_moves_only_from_the_value_that_was_read() {
    let store = Arc::new(InMemory::new());
    let (bucket, tenant) = (bucket(&store), Tenant::default());
    let generation = bucket.make().await.unwrap();
    let at = |seq| Watermark { seq, embedded: 0 };
    let moves = async |from, to| {
        let moved = bucket.move_watermark(&generation, &tenant, from, to);
        moved.await.unwrap()
    };
    assert!(!moves(Some(at(1)), at(2)).await);
    assert!(moves(None, at(1)).await);
    assert!(!moves(None, at(2)).await);
    assert!(moves(Some(at(1)), at(2)).await);
    let now = bucket.watermark(&generation, &tenant).await.unwrap();
    assert_eq!(now, Some(at(2)));
    // Another process has replaced the object between reading and writing.
    let path = bucket.watermark_path(&generation, &tenant);
    let read: Option<(WatermarkFile, _)> = bucket.read(&path).await.unwrap();
    let (_, version) = read.unwrap();
    assert!(moves(Some(at(2)), at(3)).await);
    let late = WatermarkFile::new(&tenant, at(9));
    assert!(!bucket.replace(&path, Some(version), &late).await.unwrap());
}

fn documents(names: std::ops::Range<u64>, seq: u64) -> Vec<DocumentChange> {
    let document = |name| {
        let mut record = note(&format!("n{name}")).saying("green tea");
        record.seq = seq;
        DocumentChange::Put(Box::new(Document::of(&record, None)))
    };
    names.map(document).collect()
}

/// Lance alone would keep the rows of both.
#[tokio::test]
async fn processes_that_write_at_the_same_moment_leave_each_document_once() {
    let store = Arc::new(InMemory::new());
    let server = || Lance::at(Box::new(bucket(&store)));
    let (one, other) = (server(), server());
    let generation = one.current().await.unwrap();
    assert_eq!(other.current().await.unwrap(), generation);
    let tenant = Tenant::default();
    for round in 0..5 {
        let names = 4 * round..4 * round + 4;
        let ours = one.write(&generation, &tenant, documents(names.clone(), 2));
        let theirs = other.write(&generation, &tenant, documents(names, 3));
        let (ours, theirs) = futures::join!(ours, theirs);
        ours.unwrap();
        theirs.unwrap();
    }
    let entries = one.entries(&generation, &tenant, None, 100).await.unwrap();
    assert_eq!(entries.len(), 20);
    assert!(
        entries.iter().all(|entry| entry.seq == 3),
        "newer versions stay: {entries:?}"
    );
}

#[tokio::test]
async fn compactions_go_on_while_others_write() {
    let store = Arc::new(InMemory::new());
    let often = crate::Upkeep {
        versions_most: 4,
        versions_kept: 2,
        rows_per_file: 64,
    };
    let server = || Lance::at(Box::new(bucket(&store))).with_upkeep(often);
    let (one, other) = (server(), server());
    let generation = one.current().await.unwrap();
    let tenant = Tenant::default();
    for round in 0..12 {
        let ours = one.write(&generation, &tenant, documents(round..round + 1, 2));
        let theirs = other.write(&generation, &tenant, documents(round + 50..round + 51, 2));
        let (ours, theirs) = futures::join!(ours, theirs);
        ours.unwrap();
        theirs.unwrap();
    }
    assert_eq!(one.count(&generation, &tenant).await.unwrap(), 24);
    let manifest = |path: &&String| path.ends_with(".manifest");
    let versions = paths(&store).await.iter().filter(manifest).count();
    assert!(versions < 12, "{versions} versions of 24 writes are left");
}

#[tokio::test]
async fn writes_to_a_generation_that_was_replaced_are_refused() {
    let store = Arc::new(InMemory::new());
    let server = || Lance::at(Box::new(bucket(&store)));
    let (one, other) = (server(), server());
    let old = one.current().await.unwrap();
    let new = other.create().await.unwrap();
    other.activate(&new).await.unwrap();
    let tenant = Tenant::default();
    let written = one.write(&old, &tenant, documents(0..1, 1));
    let error = written.await.unwrap_err();
    assert!(error.to_string().contains("was rebuilt"), "{error}");
    assert_eq!(one.current().await.unwrap(), new);
}

/// An object store at this address.
fn remote(endpoint: &str) -> Bucket {
    let settings = AmazonS3Builder::new()
        .with_config(AmazonS3ConfigKey::Endpoint, endpoint)
        .with_access_key_id("OURKEYID")
        .with_secret_access_key("oursecret");
    let client = crate::s3::client(settings, "bucket", WAIT).unwrap();
    let place = "lance:s3://bucket/memory";
    Bucket::new(Arc::new(client), "bucket", "memory", place, WAIT)
}

#[tokio::test]
async fn wrong_keys_and_an_absent_store_are_reported_without_the_keys() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let refusing = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let body = "<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>OURKEYID</AWSAccessKeyId>\
                    </Error>";
        let head = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length:";
        write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    });
    let error = remote(&endpoint).current().await.unwrap_err();
    refusing.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let text = format!("{error} {error:?}");
    assert!(text.contains("check AWS_ACCESS_KEY_ID"), "{text}");
    // Nobody listens there now.
    let error = remote(&endpoint).current().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let absent = format!("{error} {error:?}");
    for secret in ["OURKEYID", "oursecret"] {
        assert!(!text.contains(secret) && !absent.contains(secret));
    }
}
