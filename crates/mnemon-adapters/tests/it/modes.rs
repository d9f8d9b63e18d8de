//! What holds memory is its owner's only, however permissive the umask is.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mnemon_adapters::{Disk, Jsonl};
use mnemon_core::files::Files;
use mnemon_core::log::Log;
use mnemon_core::{Batch, Op, Record, Tenant};

use crate::kit::{child, childs_work, ctx, grant, ids, on_disk, open, wait};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Every file and folder below, with its mode.
fn modes(folder: &Path, found: &mut Vec<(String, u32)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push((path.display().to_string(), mode(&path)));
        if path.is_dir() {
            modes(&path, found);
        }
    }
}

/// Runs the test in a process whose umask takes nothing away.
fn with_open_umask(test: &str, folder: &Path) {
    let inner = child(test, &folder.display().to_string(), "make");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]);
    command.arg(inner.get_program()).args(inner.get_args());
    let vars = inner
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let output = command.envs(vars).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn stores_and_private_files_are_their_owners_only() {
    if let Some((folder, _)) = childs_work() {
        return wait(make_private_things(Path::new(&folder)));
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "modes::stores_and_private_files_are_their_owners_only";
    with_open_umask(test, folder.path());
    let mut found = Vec::new();
    modes(folder.path(), &mut found);
    assert!(found.len() > 12, "{found:#?}");
    for (path, mode) in &found {
        assert_eq!(mode & 0o077, 0, "{path} is {mode:o}");
    }
    let names: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    for name in [
        "m.db",
        "m.db-wal",
        "m.db-shm",
        "memory.jsonl",
        "memory.lock",
        "history.1.jsonl",
    ] {
        assert!(
            names.iter().any(|path| path.ends_with(name)),
            "{name} in {names:#?}"
        );
    }
}

async fn make_private_things(folder: &Path) {
    for url in on_disk(&folder.join("new/data")) {
        let store = open(&url);
        for _ in 0..2 {
            let note = Record::note("a".parse().unwrap(), &ctx(), "x");
            store
                .apply(&grant(), Batch::of(Op::put(note)))
                .await
                .unwrap();
        }
        let note = Record::note(ids().next(ctx().now), &ctx(), "x");
        store
            .apply(&grant(), Batch::of(Op::put(note)))
            .await
            .unwrap();
        // The files of a store that is in use stay when this process ends without closing it.
        std::mem::forget(store);
    }
    let log = folder.join("new/data/log");
    fs::write(log.join("memory.jsonl.tmp"), "half").unwrap();
    let jsonl = Jsonl::open(&log).unwrap();
    let damaged = fs::read(log.join("memory.jsonl")).unwrap();
    fs::write(
        log.join("memory.jsonl"),
        [&damaged[..], b"bad line\n"].concat(),
    )
    .unwrap();
    jsonl.compact(&Tenant::default()).unwrap();
    let disk = Disk::private(folder.join("sessions"));
    disk.write("s.json", b"{}", None).await.unwrap();
    disk.append("s/messages.jsonl", b"{}\n").await.unwrap();
}

#[test]
fn other_files_follow_the_umask_and_keep_their_mode() {
    if let Some((folder, _)) = childs_work() {
        let disk = Disk::new(folder);
        return wait(async {
            disk.write(".microai/new.md", b"# x\n", None).await.unwrap();
            for name in ["kept.md", "own.md"] {
                let there = disk.read(name).await.unwrap().unwrap();
                disk.write(name, b"# y\n", Some(&there.stamp))
                    .await
                    .unwrap();
            }
        });
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, mode) in [("kept.md", 0o664), ("own.md", 0o600)] {
        let path = folder.path().join(name);
        fs::write(&path, "# x\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let test = "modes::other_files_follow_the_umask_and_keep_their_mode";
    with_open_umask(test, folder.path());
    let at = |name: &str| mode(&folder.path().join(name));
    assert_eq!((at(".microai"), at(".microai/new.md")), (0o777, 0o666));
    assert_eq!((at("kept.md"), at("own.md")), (0o664, 0o600));
}

#[test]
fn existing_stores_keep_their_mode() {
    let folder = tempfile::tempdir().unwrap();
    let put = |url: &str| {
        let note = Record::note("a".parse().unwrap(), &ctx(), "x");
        wait(open(url).apply(&grant(), Batch::of(Op::put(note)))).unwrap();
    };
    let files = [
        folder.path().join("m.db"),
        folder.path().join("log/memory.jsonl"),
    ];
    for (url, file) in on_disk(folder.path()).iter().zip(&files) {
        put(url);
        fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();
        put(url);
        assert_eq!(mode(file), 0o640, "{url}");
    }
    let jsonl = Jsonl::open(&folder.path().join("log")).unwrap();
    jsonl.compact(&Tenant::default()).unwrap();
    assert_eq!(mode(&files[1]), 0o640);
}
