//! Compaction, and removal of old versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mnemon_adapters::external_index::{DocumentChange, ExternalIndex, IndexServer, Question};
use mnemon_core::Tenant;
use mnemon_lance::Upkeep;
use mnemon_testkit::index_operations::{put, words};
use mnemon_testkit::make::{at, grant, id};

use crate::{Indexed, OFTEN, found, server_at};

/// The files in a folder of the table.
pub(crate) fn files(folder: &Path, generation: &str, inner: &str) -> Vec<PathBuf> {
    let inner = folder.join(generation).join("documents.lance").join(inner);
    let Ok(entries) = fs::read_dir(inner) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn files_and_versions_do_not_grow_with_the_number_of_writes() {
    let indexed = Indexed::new();
    let index = indexed.index();
    let generation = indexed.server().current().await.unwrap().0;
    let most = OFTEN.versions_most as usize + 4;
    for number in 0..30 {
        // Half of them replace an older version.
        put(&*indexed.store, &format!("n{}", number % 15), "green tea").await;
        found(&index, "tea").await.unwrap();
        for inner in ["data", "_versions", "_transactions", "_deletions"] {
            let files = files(&indexed.folder(), &generation, inner);
            assert!(files.len() <= 2 * most, "{inner} has {} files", files.len());
        }
    }
    assert_eq!(found(&index, "tea").await.unwrap(), 15);
    let compared = index.compare(&grant(at(0))).await.unwrap();
    assert!(
        compared.is_complete() && compared.leftover == 0,
        "{compared:?}"
    );
}

#[tokio::test]
async fn deleted_documents_leave_the_files() {
    let indexed = Indexed::new();
    for number in 0..4 {
        put(&*indexed.store, &format!("n{number}"), "green tea").await;
    }
    let index = indexed.index();
    assert_eq!(found(&index, "tea").await.unwrap(), 4);
    let server = server_at(&indexed.folder()).with_upkeep(Upkeep {
        versions_kept: 1,
        ..OFTEN
    });
    let generation = server.current().await.unwrap();
    let gone = |name: &str| DocumentChange::Delete {
        id: id(name),
        seq: 99,
    };
    let tenant = Tenant::default();
    let changes = ["n0", "n1", "n2", "n3"].map(gone).to_vec();
    server.write(&generation, &tenant, changes).await.unwrap();
    server.compact(&generation).await.unwrap();
    let folder = indexed.folder();
    assert_eq!(files(&folder, &generation.0, "data"), Vec::<PathBuf>::new());
    let versions = files(&folder, &generation.0, "_versions");
    let is_manifest = |path: &&PathBuf| path.extension().is_some_and(|it| it == "manifest");
    assert_eq!(
        versions.iter().filter(is_manifest).count(),
        1,
        "{versions:?}"
    );
}

#[tokio::test]
async fn searches_go_on_while_versions_are_removed() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    let writing = server_at(&indexed.folder()).with_upkeep(Upkeep {
        versions_most: 1,
        versions_kept: 1,
        rows_per_file: 64,
    });
    let writing = ExternalIndex::new(indexed.store.clone(), Arc::new(writing));
    assert_eq!(found(&writing, "tea").await.unwrap(), 1);
    let is_done = AtomicBool::new(false);
    let write = async {
        for number in 0..10 {
            put(&*indexed.store, &format!("n{number}"), "green tea").await;
            found(&writing, "tea").await.unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    };
    let read = async {
        let server = indexed.server();
        let generation = server.current().await.unwrap();
        let (tenant, probe) = (Tenant::default(), words("tea"));
        let asked = Question {
            tenant: &tenant,
            probe: &probe,
            now: at(0),
        };
        let mut searches = 0;
        while !is_done.load(Ordering::Relaxed) {
            let answer = server.find(&generation, &asked).await.unwrap();
            assert!(!answer.words.is_empty());
            searches += 1;
        }
        searches
    };
    let ((), searches) = futures::join!(write, read);
    assert!(searches > 1, "both ran at the same time");
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 11);
}
