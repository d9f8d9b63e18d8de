//! The file under the process: removed, replaced, copied, read-only, and busy with readers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mnemon_adapters::Sqlite;
use mnemon_core::{Backend, Batch, ErrorKind, Op, Probe, Record, SearchIndex, Store};
use rusqlite::Connection;

use crate::kit::{
    assert_healthy, childs_work, ctx, everything, grant, ids, on_disk, open, open_backend, wait,
};

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn put(store: &dyn Store, content: &str) {
    put_under(store, &content.replace(' ', "-"), content);
}

fn put_under(store: &dyn Store, id: &str, content: &str) {
    let record = Record::note(id.parse().unwrap(), &ctx(), content);
    wait(store.apply(&grant(), Batch::of(Op::put(record)))).unwrap();
}

fn contents(store: &dyn Store) -> Vec<String> {
    everything(store).into_iter().map(|r| r.content).collect()
}

/// The ids that a search for nothing in particular finds.
fn found(store: &dyn SearchIndex) -> Vec<String> {
    let probe = Probe {
        depth: 100,
        ..Probe::new(mnemon_core::Filter::all_of_tenant(), 0)
    };
    let found = wait(store.find(&grant(), &probe)).unwrap().matches;
    let mut ids: Vec<String> = found.into_iter().map(|hit| hit.id.to_string()).collect();
    ids.sort();
    ids
}

#[test]
fn a_write_after_the_file_was_removed_is_in_the_file_that_is_there_then() {
    for removed in [&["", "-wal", "-shm"][..], &[""][..]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("m.db");
        let store = Sqlite::open(&path).unwrap();
        put(&store, "before");
        assert_eq!(found(&store), ["before"]);
        for suffix in removed {
            std::fs::remove_file(beside(&path, suffix)).unwrap();
        }
        put(&store, "after");
        assert_eq!(contents(&store), ["after"]);
        assert_eq!(found(&store), ["after"]);
        // Whoever opens it now sees it, and so does everybody after the process has ended.
        assert_eq!(contents(&Sqlite::open(&path).unwrap()), ["after"]);
        drop(store);
        assert_eq!(contents(&Sqlite::open(&path).unwrap()), ["after"]);
        assert_healthy(&url(&path));
    }
}

#[test]
fn a_removed_folder_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".mnemon").join("m.db");
    let store = Sqlite::open(&path).unwrap();
    put(&store, "before");
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    // A reader comes first here.
    assert!(contents(&store).is_empty());
    put(&store, "after");
    drop(store);
    assert_eq!(contents(&Sqlite::open(&path).unwrap()), ["after"]);
}

#[test]
#[cfg(unix)]
fn a_link_leads_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("real")).unwrap();
    let link = folder.path().join("link.db");
    // The file need not be there yet.
    std::os::unix::fs::symlink("real/m.db", &link).unwrap();
    let store = Sqlite::open(&link).unwrap();
    put(&store, "before");
    drop(store);
    let store = Sqlite::open(&link).unwrap();
    std::fs::remove_dir_all(folder.path().join("real")).unwrap();
    put(&store, "after");
    drop(store);
    assert_eq!(contents(open(&url(&link)).as_ref()), ["after"]);
    assert!(folder.path().join("real/m.db").exists());
    assert_healthy(&url(&link));
}

#[test]
fn a_replaced_file_is_followed_by_writers_readers_and_searches() {
    for reads_first in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("m.db"), folder.path().join("other.db"));
        let newer = Sqlite::open(&other).unwrap();
        // As many changes as the old file has, so that counts alone do not tell them apart.
        put(&newer, "restored one");
        put(&newer, "restored two");
        drop(newer);

        let store = Sqlite::open(&path).unwrap();
        put(&store, "old one");
        put(&store, "old two");
        assert_eq!(found(&store).len(), 2);
        // Its write-ahead log, full of the old file's pages, stays where it is.
        assert!(std::fs::metadata(beside(&path, "-wal")).unwrap().len() > 0);
        std::fs::rename(&other, &path).unwrap();

        if reads_first {
            assert_eq!(found(&store), ["restored-one", "restored-two"]);
            assert_eq!(contents(&store), ["restored one", "restored two"]);
        }
        put(&store, "after");
        assert_eq!(contents(&store), ["restored one", "restored two", "after"]);
        assert_eq!(found(&store), ["after", "restored-one", "restored-two"]);
        drop(store);
        assert_eq!(
            contents(&Sqlite::open(&path).unwrap()),
            ["restored one", "restored two", "after"]
        );
        assert_healthy(&url(&path));
    }
}

#[test]
fn a_file_that_was_moved_away_has_all_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("m.db"), folder.path().join("moved.db"));
    let store = Sqlite::open(&path).unwrap();
    put(&store, "before");
    std::fs::rename(&path, &moved).unwrap();
    put(&store, "after");
    drop(store);
    assert_eq!(contents(&Sqlite::open(&path).unwrap()), ["after"]);
    assert_eq!(contents(&Sqlite::open(&moved).unwrap()), ["before"]);
}

#[test]
fn a_removed_log_costs_nothing_that_was_acknowledged() {
    for removed in [&["-wal"][..], &["-shm"][..], &["-wal", "-shm"][..]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        let store = Sqlite::open(&path).unwrap();
        put(&store, "before");
        assert_eq!(contents(&store), ["before"]);
        for suffix in removed {
            std::fs::remove_file(beside(&path, suffix)).unwrap();
        }
        put(&store, "after");
        assert_eq!(contents(&store), ["before", "after"], "{removed:?}");
        put(&store, "later");
        drop(store);
        assert_eq!(
            contents(&Sqlite::open(&path).unwrap()),
            ["before", "after", "later"],
            "{removed:?}"
        );
        assert_healthy(&url(&path));
    }
}

#[test]
fn the_file_of_an_idle_store_has_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let store = Sqlite::open(&path).unwrap();
    for number in 0..50 {
        put(&store, &format!("note {number}"));
    }
    assert_eq!(found(&store).len(), 50);
    let deadline = Instant::now() + Duration::from_secs(120);
    for round in 0.. {
        // The file alone, as somebody would copy it who knows of no other.
        let copy = folder.path().join(format!("copy-{round}.db"));
        std::fs::copy(&path, &copy).unwrap();
        let copied = Sqlite::open(&copy).map(|copy| contents(&copy).len());
        if matches!(copied, Ok(50)) {
            break;
        }
        assert!(Instant::now() < deadline, "{copied:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_purge_that_waits_for_a_reader_keeps_nobody_from_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let store = Sqlite::open(&path).unwrap();
    put_under(&store, "gone", "secret-hunter2");
    put(&store, "plain");
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen: i64 = reader
        .query_row("SELECT count(*) FROM records", [], |row| row.get(0))
        .unwrap();
    assert_eq!(seen, 2);

    let purge = || {
        let id = "gone".parse().unwrap();
        wait(store.apply(&grant(), Batch::of(Op::Purge { id })))
    };
    let written = std::thread::scope(|scope| {
        let purging = scope.spawn(purge);
        let other = Sqlite::open(&path).unwrap();
        let mut written = 0;
        while !purging.is_finished() {
            put(&other, &format!("note {written}"));
            put(&store, &format!("own {written}"));
            written += 1;
        }
        let error = purging.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        let text = error.to_string();
        assert!(text.contains("the records are gone"), "{text}");
        written
    });
    assert!(written > 0, "nobody could write while the purge waited");
    assert!(!contents(&store).contains(&"secret-hunter2".to_owned()));
    reader.execute_batch("COMMIT").unwrap();
    // The reader has gone: the same call comes to its end.
    purge().unwrap();
    for file in [path.clone(), beside(&path, "-wal")] {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(14).any(|window| window == b"secret-hunter2"));
    }
}

/// Somebody who holds the write lock and does not let go: the error says how long that was.
#[test]
fn a_busy_store_says_how_long_it_was_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let store = Sqlite::open(&path).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let since = Instant::now();
    let record = Record::note(ids().next(ctx().now), &ctx(), "x");
    let error = wait(store.apply(&grant(), Batch::of(Op::put(record)))).unwrap_err();
    let waited = since.elapsed().as_secs();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let text = error.to_string();
    let words: Vec<&str> = text.split(' ').collect();
    let said: u64 = words[words.len() - 2].parse().unwrap();
    // What was measured outside includes what came before and after the wait.
    assert!(said >= 30 && said <= waited, "{text}, after {waited} s");
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn read_only(path: &Path) {
    let mut permissions = std::fs::metadata(path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(path, permissions).unwrap();
}

/// Everything that can be read can be read; nothing can be written.
fn assert_readable(path: &Path) {
    let store = Sqlite::open(path).unwrap();
    assert_eq!(contents(&store), ["one"]);
    assert_eq!(found(&store), ["one"]);
    let record = Record::note(ids().next(ctx().now), &ctx(), "two");
    let error = wait(store.apply(&grant(), Batch::of(Op::put(record)))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let error = Sqlite::open(&path).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert!(error.to_string().contains("it is a pipe"), "{error}");
}

#[test]
fn a_read_only_file_can_be_read_and_searched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd name?#%.db");
    let store = Sqlite::open(&path).unwrap();
    put(&store, "one");
    drop(store);
    read_only(&path);
    let before = std::fs::read(&path).unwrap();
    assert_readable(&path);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// A child's work, where the folder is mounted read-only.
#[test]
fn reader_of_a_read_only_medium() {
    let Some((folder, _)) = childs_work() else {
        return;
    };
    let folder = Path::new(&folder);
    assert_readable(&folder.join("m.db"));
    assert_healthy_but_for_permissions(&folder.join("m.db"));
    let error = match Sqlite::open(&folder.join("pending.db")) {
        Ok(_) => panic!("a log cannot be replayed here"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("-wal"), "{error}");
    let Err(error) = Sqlite::open(&folder.join("none.db")) else {
        panic!("nothing can be made here");
    };
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

fn assert_healthy_but_for_permissions(path: &Path) {
    let examination = mnemon_adapters::examine(&url(path)).unwrap();
    let findings = examination.findings.iter();
    let wrong: Vec<_> = findings
        .filter(|finding| !finding.ok && !["permissions", "space"].contains(&&*finding.check))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_store_on_a_read_only_medium_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let store = Sqlite::open(&path).unwrap();
    put(&store, "one");
    // As it looks when it is copied while it is in use.
    for suffix in ["", "-wal"] {
        let copy = beside(&folder.path().join("pending.db"), suffix);
        std::fs::copy(beside(&path, suffix), copy).unwrap();
    }
    drop(store);
    let script = r#"mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 77
        exec "$1" sqlite_file::reader_of_a_read_only_medium --exact --nocapture"#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .env("MNEMON_TEST_STORE", folder.path())
        .env("MNEMON_TEST_WORK", "read")
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        refused => eprintln!("skipped: this system mounts nothing for us: {refused:?}"),
    }
}

#[test]
fn a_backup_of_a_store_in_use_is_whole_and_has_nothing_that_was_purged() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        let store = open(&url);
        put_under(store.as_ref(), "gone", "purged-hunter2");
        put(store.as_ref(), "kept");
        put(store.as_ref(), "kept");
        let id = "gone".parse().unwrap();
        wait(store.apply(&grant(), Batch::of(Op::Purge { id }))).unwrap();
        let scheme = url.split(':').next().unwrap();
        let to = folder.path().join(format!("{scheme}.backup"));
        let summary = mnemon_adapters::backup(&url, &to, false).unwrap();
        assert_eq!(
            (summary.records, summary.history, summary.tenants),
            (1, 1, 1),
            "{url}"
        );
        let copy = format!("{scheme}:{}", to.display());
        assert_eq!(everything(open(&copy).as_ref()), everything(store.as_ref()));
        assert_eq!(crate::purge::occurrences(&to, "purged-hunter2"), 0, "{url}");
        #[cfg(unix)]
        if to.is_file() {
            assert_eq!(mode(&to), 0o600);
        }
        // Neither another file nor the store itself is written over.
        let again = mnemon_adapters::backup(&url, &to, false).unwrap_err();
        assert!(again.to_string().contains("--force"), "{again}");
        put(store.as_ref(), "more");
        let forced = mnemon_adapters::backup(&url, &to, true).unwrap();
        assert_eq!(forced.records, 2);
        let (_, own) = url.split_once(':').unwrap();
        let itself = mnemon_adapters::backup(&url, Path::new(own), true).unwrap_err();
        assert!(itself.to_string().contains("the store itself"), "{itself}");
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("unfinished"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_restore_is_followed_by_those_who_use_the_store() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        let scheme = url.split(':').next().unwrap();
        let Backend { store, index } = open_backend(&url);
        put(store.as_ref(), "early");
        let to = folder.path().join(format!("{scheme}.backup"));
        mnemon_adapters::backup(&url, &to, false).unwrap();
        put(store.as_ref(), "late");
        assert_eq!(found(index.as_ref()), ["early", "late"]);

        assert_eq!(mnemon_adapters::check_backup(&url, &to).unwrap().records, 1);
        let restored = mnemon_adapters::restore(&url, &to).unwrap();
        assert_eq!(restored.summary.records, 1);
        assert_eq!(contents(store.as_ref()), ["early"], "{url}");
        assert_eq!(found(index.as_ref()), ["early"], "{url}");
        put(store.as_ref(), "after");
        assert_eq!(contents(store.as_ref()), ["early", "after"], "{url}");
        drop((store, index));
        assert_eq!(contents(open(&url).as_ref()), ["early", "after"], "{url}");
        assert_healthy(&url);
        let kept = format!("{scheme}:{}", restored.kept.unwrap().display());
        assert_eq!(contents(open(&kept).as_ref()), ["early", "late"], "{url}");
        // The backup itself is as it was.
        assert_eq!(mnemon_adapters::check_backup(&url, &to).unwrap().records, 1);
    }
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let to = folder.path().join("backup.db");
    let store = Sqlite::open(&path).unwrap();
    put(&store, "a text that will be damaged");
    mnemon_adapters::backup(&url(&path), &to, false).unwrap();
    let mut bytes = std::fs::read(&to).unwrap();
    let text = b"will be damaged";
    let at = bytes.windows(text.len()).position(|w| w == text).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&to, bytes).unwrap();
    let error = mnemon_adapters::restore(&url(&path), &to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(contents(&store), ["a text that will be damaged"]);
    // What is not a backup at all is refused as well.
    for wrong in [folder.path().join("none"), folder.path().to_owned()] {
        mnemon_adapters::restore(&url(&path), &wrong).unwrap_err();
    }
}
