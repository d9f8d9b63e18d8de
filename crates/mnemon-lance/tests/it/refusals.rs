//! Folders and inputs that cannot be used.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use mnemon_adapters::external_index::{DocumentChange, IndexServer, IndexUrl, Marked};
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, SearchIndex, StoreError, Tenant};
use mnemon_lance::Lance;
use mnemon_testkit::index_operations::{put, words};
use mnemon_testkit::make::{at, grant, id};

use crate::{Indexed, found, index_at, server_at};

#[tokio::test]
async fn a_folder_that_is_absent_is_made_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let indexed = Indexed::new();
    let folder = indexed.place.path().join("a/b");
    put(&*indexed.store, "a", "green tea").await;
    let index = index_at(&indexed.store, &folder);
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn an_index_that_was_deleted_is_made_again() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    let index = indexed.index();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    fs::remove_dir_all(indexed.folder()).unwrap();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    let generation = indexed.server().current().await.unwrap();
    fs::remove_dir_all(indexed.folder().join(&generation.0)).unwrap();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
}

#[tokio::test]
async fn a_path_through_a_file_is_reported() {
    let indexed = Indexed::new();
    let file = indexed.place.path().join("file");
    fs::write(&file, "mine").unwrap();
    let index = index_at(&indexed.store, &file.join("vectors"));
    let error = found(&index, "tea").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains("cannot make the folder"),
        "{error}"
    );
}

#[tokio::test]
async fn a_folder_of_another_program_is_left_alone() {
    let indexed = Indexed::new();
    fs::write(indexed.place.path().join("notes.txt"), "mine").unwrap();
    let index = index_at(&indexed.store, indexed.place.path());
    let error = found(&index, "tea").await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    let there: Vec<_> = fs::read_dir(indexed.place.path()).unwrap().collect();
    assert_eq!(there.len(), 1, "nothing was made in it");
}

#[tokio::test]
async fn an_index_of_a_newer_version_is_left_alone() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    let marker = indexed.folder().join("mnemon-index.json");
    let newer = fs::read_to_string(&marker).unwrap();
    let newer = newer.replace("\"format\":1", "\"format\":2");
    fs::write(&marker, &newer).unwrap();
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    let index = indexed.index();
    let rebuilt = index.rebuild(&ctx, &|_, _| {}).await;
    for error in [found(&index, "tea").await.err(), rebuilt.err()] {
        let error = error.unwrap();
        assert!(matches!(error, StoreError::TooNew { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&marker).unwrap(), newer);
}

/// A file of the table, which the folder is of.
fn manifests(indexed: &Indexed, generation: &str) -> std::path::PathBuf {
    let table = indexed.folder().join(generation).join("documents.lance");
    table.join("_versions")
}

#[tokio::test]
async fn a_damaged_table_is_reported_and_a_rebuild_repairs_it() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    let generation = indexed.server().current().await.unwrap();
    for manifest in fs::read_dir(manifests(&indexed, &generation.0)).unwrap() {
        fs::write(manifest.unwrap().path(), "torn").unwrap();
    }
    let index = indexed.index();
    let error = found(&index, "tea").await.unwrap_err().to_string();
    assert!(error.contains("mnemon index rebuild"), "{error}");
    let ctx = Ctx::new(Tenant::default(), "test", at(0));
    index.rebuild(&ctx, &|_, _| {}).await.unwrap();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
}

#[tokio::test]
async fn a_table_without_a_column_is_not_used() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    let generation = indexed.server().current().await.unwrap();
    let table = indexed.folder().join(&generation.0).join("documents.lance");
    let mut table = lance::Dataset::open(table.to_str().unwrap()).await.unwrap();
    table.drop_columns(&["tags"]).await.unwrap();
    let error = found(&indexed.index(), "tea").await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("`tags`"), "{error}");
}

#[tokio::test]
async fn a_process_that_writes_too_long_is_reported() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    let lock = fs::File::open(indexed.folder().join("mnemon-index.lock")).unwrap();
    lock.lock().unwrap();
    let mut url = IndexUrl::parse(&format!("lance:{}", indexed.folder().display())).unwrap();
    url.timeout = std::time::Duration::from_millis(20);
    let server = Lance::new(&url).unwrap();
    let generation = server.current().await.unwrap();
    let gone = DocumentChange::Delete {
        id: id("a"),
        seq: 9,
    };
    let written = server
        .write(&generation, &Tenant::default(), vec![gone])
        .await;
    let error = written.unwrap_err().to_string();
    assert!(error.contains("locked by other processes"), "{error}");
    assert_eq!(
        found(&indexed.index(), "tea").await.unwrap(),
        1,
        "reading needs no lock"
    );
}

/// A child's work, where the folder is mounted read-only.
#[tokio::test]
async fn reader_of_a_read_only_folder() {
    let Some(folder) = std::env::var_os("MNEMON_TEST_READ_ONLY") else {
        return;
    };
    let folder = Path::new(&folder);
    let server = server_at(&folder.join("vectors"));
    let generation = server.current().await.unwrap();
    let tenant = Tenant::default();
    assert_eq!(server.count(&generation, &tenant).await.unwrap(), 1);
    let gone = DocumentChange::Delete {
        id: id("a"),
        seq: 9,
    };
    let error = server
        .write(&generation, &tenant, vec![gone])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("is read-only"), "{error}");
    let error = server.create().await.unwrap_err();
    assert!(error.to_string().contains("is read-only"), "{error}");
    let error = server_at(&folder.join("none")).current().await.unwrap_err();
    assert!(error.to_string().contains("is read-only"), "{error}");
}

#[tokio::test]
async fn a_read_only_folder_can_be_searched() {
    let indexed = Indexed::new();
    put(&*indexed.store, "a", "green tea").await;
    let index = index_at(&indexed.store, &indexed.place.path().join("vectors"));
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    let script = r#"mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 77
        exec "$1" refusals::reader_of_a_read_only_folder --exact --nocapture"#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(indexed.place.path())
        .arg(std::env::current_exe().unwrap())
        .env("MNEMON_TEST_READ_ONLY", indexed.place.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stdout))
        }
        _ => eprintln!("SKIPPED: this system has no mounts of its own"),
    }
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
    let server = indexed.server();
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
    let server = indexed.server();
    let generation = server.current().await.unwrap();
    let late = vec![DocumentChange::Delete {
        id: id("a"),
        seq: 1,
    }];
    server.write(&generation, g.tenant(), late).await.unwrap();
    assert_eq!(found(&index, "tea").await.unwrap(), 1);
    let marked = server.watermark(&generation, g.tenant()).await.unwrap();
    assert_eq!(marked.watermark.seq, 2);
    let stale = Marked::default();
    let moved = server.mark(&generation, g.tenant(), &stale, marked.watermark);
    assert_eq!(moved.await.unwrap(), None, "it was read before it moved");
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
    let index = index_at(&empty, &indexed.folder());
    let error = index.find(&grant(at(0)), &words("tea")).await.unwrap_err();
    assert!(
        error.to_string().contains("mnemon index rebuild"),
        "{error}"
    );
}
