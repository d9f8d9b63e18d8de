//! Servers and inputs that cannot be used.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use mnemon_adapters::external_index::{DocumentChange, IndexAccess, IndexServer, IndexUrl};
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, SearchIndex, StoreError, Tenant};
use mnemon_milvus::Milvus;
use mnemon_testkit::index_operations::{put, words};
use mnemon_testkit::make::{at, grant, id};

use crate::lite::Lite;
use crate::{Indexed, found, index_at};

#[tokio::test]
async fn an_absent_server_is_reported_with_what_to_do() {
    let store: Arc<Ram> = Arc::default();
    let absent = index_at(&store, "milvus://127.0.0.1:1/memory");
    let error = found(&absent, "tea").await.unwrap_err().to_string();
    assert!(error.contains("start the server"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    // The connection is accepted by the system, and nothing is ever read from it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let store: Arc<Ram> = Arc::default();
    let index = index_at(&store, &format!("milvus://{address}/memory?timeout_s=1"));
    let error = found(&index, "tea").await.unwrap_err().to_string();
    assert!(error.contains("did not answer in time"), "{error}");
}

#[tokio::test]
async fn a_server_of_another_kind_is_reported() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::Write;
        for stream in other.incoming() {
            let _ = stream
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let store: Arc<Ram> = Arc::default();
    let index = index_at(&store, &format!("milvus://{address}/memory"));
    let error = found(&index, "tea").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}

#[test]
fn a_password_is_not_sent_in_the_clear() {
    let access = IndexAccess {
        user: Some("ann".to_owned()),
        password: Some(mnemon_adapters::embed::Secret::new("secret")),
        ..IndexAccess::default()
    };
    let url = IndexUrl::parse("milvus://search.example/n").unwrap();
    let error = Milvus::new(&url, &access).err().unwrap().to_string();
    assert!(error.contains("+https"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    let url = IndexUrl::parse("milvus+https://search.example/n").unwrap();
    assert!(Milvus::new(&url, &access).is_ok());
}

fn server_at(url: &str) -> Milvus {
    let url = IndexUrl::parse(url).unwrap();
    Milvus::new(&url, &IndexAccess::default()).unwrap()
}

#[tokio::test]
async fn a_document_that_was_lost_is_counted_and_a_rebuild_brings_it_back() {
    let indexed = Indexed::new();
    for name in ["a", "b", "c"] {
        put(&*indexed.store, name, "green tea").await;
    }
    let (index, g) = (indexed.index(), grant(at(0)));
    let compared = index.compare(&g).await.unwrap();
    assert_eq!((compared.records, compared.is_complete()), (3, true));
    let server = server_at(&indexed.url);
    let generation = server.current().await.unwrap();
    let lost = vec![DocumentChange::Delete {
        id: id("b"),
        seq: 99,
    }];
    server.write(&generation, g.tenant(), lost).await.unwrap();
    let compared = index.compare(&g).await.unwrap();
    assert_eq!((compared.missing, compared.outdated), (1, 0));
    assert_eq!(compared.examples, [id("b")]);
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    index.rebuild(&ctx, &|_, _| {}).await.unwrap();
    let compared = index.compare(&g).await.unwrap();
    assert!(compared.is_complete(), "{compared:?}");
    assert_eq!(found(&index, "tea").await.unwrap(), 3);
}

#[tokio::test]
async fn an_older_version_does_not_replace_a_newer_one() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    put(&*indexed.store, "a", "black tea").await;
    let (index, g) = (indexed.index(), grant(at(0)));
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    let server = server_at(&indexed.url);
    let generation = server.current().await.unwrap();
    let late = vec![DocumentChange::Delete {
        id: id("a"),
        seq: 1,
    }];
    server.write(&generation, g.tenant(), late).await.unwrap();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    let marked = server.watermark(&generation, g.tenant()).await.unwrap();
    assert_eq!(marked.watermark.seq, 2);
    let stale = mnemon_adapters::external_index::Marked::default();
    let moved = server.mark(&generation, g.tenant(), &stale, marked.watermark);
    assert_eq!(moved.await.unwrap(), None, "it was read before it moved");
}

#[tokio::test]
async fn a_collection_of_another_program_is_left_alone() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    // The name of a generation is taken for the name of an index: it is a collection, not an alias.
    let generation = server_at(&indexed.url).current().await.unwrap().0;
    let taken = format!("milvus://{}/{generation}", Lite::shared());
    let error = found(&index_at(&indexed.store, &taken), "tea").await;
    let error = error.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("name another index"), "{error}");
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
}

#[tokio::test]
async fn a_rebuild_replaces_the_index_while_it_is_searched() {
    let indexed = Indexed::new();
    for name in ["a", "b", "c"] {
        put(&*indexed.store, name, "green tea").await;
    }
    let searching = indexed.index();
    assert_eq!(found(&searching, "tea").await.unwrap(), 3);
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    let shown = Mutex::new(Vec::new());
    let watch = |done, all| shown.lock().unwrap().push((done, all));
    let rebuilt = indexed.index().rebuild(&ctx, &watch).await.unwrap();
    assert_eq!((rebuilt.tenants, rebuilt.records), (1, 3));
    assert_eq!(shown.lock().unwrap().last(), Some(&(3, 3)));
    put(&*indexed.store, "d", "black tea").await;
    assert_eq!(found(&searching, "tea").await.unwrap(), 4);
    let near = crate::answers::near("black tea").await;
    let near = searching.find(&grant(at(0)), &near).await.unwrap();
    assert_eq!(near.matches.len(), 4, "vectors were rebuilt, too");
}

#[tokio::test]
async fn an_index_ahead_of_its_store_is_refused() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    let empty: Arc<Ram> = Arc::default();
    let index = index_at(&empty, &indexed.url);
    let error = index.find(&grant(at(0)), &words("tea")).await.unwrap_err();
    assert!(
        error.to_string().contains("mnemon index rebuild"),
        "{error}"
    );
}
