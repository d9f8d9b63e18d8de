//! Files on a real disk: the contract, links, and writers that meet.

use std::fs;
use std::sync::Arc;

use mnemon_adapters::Disk;
use mnemon_core::ErrorKind;
use mnemon_core::files::{Files, Sweep};
use mnemon_core::log::Log;
use mnemon_testkit::block_on;
use mnemon_testkit::ports::{check_files, check_log};

#[test]
fn files_on_disk_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    block_on(check_files(&Disk::new(folder.path().join("not/there/yet"))));
    block_on(check_log(&Disk::new(folder.path().join("logs"))));
    // Without a runtime, too.
    let disk = Disk::new(folder.path().join("plain"));
    futures::executor::block_on(check_files(&disk));
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_and_those_inside_are_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
    fs::create_dir_all(root.join("real")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    fs::write(root.join("real/file"), "f").unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink(outside.join("secret"), root.join("leak")).unwrap();
    symlink(outside.join("new"), root.join("dangling")).unwrap();
    symlink("real", root.join("in")).unwrap();
    let disk = Disk::new(&root);
    block_on(async {
        for path in ["out/secret", "leak", "dangling", "out/new/deep"] {
            let read = disk.read(path).await.unwrap_err();
            assert_eq!(read.kind(), ErrorKind::Invalid, "{path}: {read}");
            let written = disk.write(path, b"x", None).await.unwrap_err();
            assert_eq!(written.kind(), ErrorKind::Invalid, "{path}: {written}");
            let appended = disk.append(path, b"x\n").await.unwrap_err();
            assert_eq!(appended.kind(), ErrorKind::Invalid, "{path}: {appended}");
        }
        let file = disk.read("in/file").await.unwrap().unwrap();
        disk.write("in/file", b"new", Some(&file.stamp))
            .await
            .unwrap();
        assert_eq!(fs::read(root.join("real/file")).unwrap(), b"new");
        let listed = disk.list("").await.unwrap();
        assert_eq!(listed.len(), 1, "links are not walked: {listed:?}");
    });
    assert!(!outside.join("new").exists());
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"s");
}

#[test]
fn of_writers_that_meet_one_wins_each_time_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::new(folder.path()));
    block_on(async {
        disk.write("count", b"0", None).await.unwrap();
        let tasks = (0..4).map(|_| {
            let disk = disk.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    loop {
                        let file = disk.read("count").await.unwrap().unwrap();
                        let number: u32 =
                            std::str::from_utf8(&file.bytes).unwrap().parse().unwrap();
                        let next = (number + 1).to_string();
                        let stamp = Some(&file.stamp);
                        match disk.write("count", next.as_bytes(), stamp).await {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                        }
                    }
                    disk.append("log", &[b'x'; 100].map(|b| b)).await.unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let count = disk.read("count").await.unwrap().unwrap();
        assert_eq!(count.bytes, b"100");
        // Each line had no break of its own, so that each was ended by the next.
        let log = disk.read("log").await.unwrap().unwrap();
        assert_eq!(log.bytes.len(), 100 * 101 - 1);
        assert_eq!(disk.list("").await.unwrap().len(), 2, "nothing unfinished");
    });
}

#[test]
fn a_file_that_was_left_unfinished_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".0123.mnemon-unfinished"), "half").unwrap();
    let listed = block_on(Disk::new(folder.path()).list("")).unwrap();
    assert!(listed.is_empty(), "{listed:?}");
}

#[cfg(unix)]
#[test]
fn what_may_not_be_read_says_so() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("closed");
    fs::write(&place, "x").unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    if fs::read(&place).is_ok() {
        return;
    }
    let error = block_on(Disk::new(folder.path()).read("closed")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[test]
fn a_folder_that_others_empty_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::new(folder.path()));
    block_on(async {
        let tasks = (0..4).map(|number| {
            let disk = disk.clone();
            tokio::spawn(async move {
                let path = format!("deep/er/{number}");
                for _ in 0..100 {
                    let stamp = disk.write(&path, b"x", None).await.unwrap();
                    disk.remove(&path, &stamp).await.unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    assert!(!folder.path().join("deep").exists());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path().join("pipe"))
        .status();
    // Not every machine has the program.
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    fs::create_dir(folder.path().join("folder")).unwrap();
    let disk = Disk::new(folder.path());
    for path in ["pipe", "folder"] {
        assert_eq!(block_on(disk.read(path)).unwrap(), None);
        assert_eq!(block_on(disk.read_before(path, None, 10)).unwrap(), None);
        assert!(block_on(disk.write(path, b"x", None)).is_err());
    }
    assert!(block_on(disk.list("")).unwrap().is_empty());
}

const STALE: &str = ".0123456789abcdef.mnemon-unfinished";
const FRESH: &str = ".fedcba9876543210.mnemon-unfinished";

fn leave(folder: &std::path::Path) {
    fs::create_dir_all(folder).unwrap();
    for name in [STALE, FRESH] {
        fs::write(folder.join(name), "left").unwrap();
    }
    let two_days = std::time::Duration::from_secs(2 * 24 * 60 * 60);
    let file = fs::File::options()
        .write(true)
        .open(folder.join(STALE))
        .unwrap();
    file.set_modified(std::time::SystemTime::now() - two_days)
        .unwrap();
}

#[test]
fn a_write_sweeps_what_a_killed_writer_left_a_day_ago() {
    let folder = tempfile::tempdir().unwrap();
    leave(folder.path());
    let disk = Disk::new(folder.path());
    block_on(disk.write("a.txt", b"x", None)).unwrap();
    assert!(!folder.path().join(STALE).exists());
    assert!(folder.path().join(FRESH).exists(), "it may be under way");
    assert_eq!(block_on(disk.sweep("", Sweep::All)).unwrap(), [FRESH]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_sweep_goes_below_if_asked_and_follows_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
    leave(&root.join("a/b"));
    leave(&outside);
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    let odd = root.join(".1111111111111111.mnemon-unfinished");
    std::os::unix::fs::symlink(outside.join(STALE), &odd).unwrap();
    fs::write(root.join(".short.mnemon-unfinished"), "not ours").unwrap();
    let disk = Disk::new(&root);
    assert!(block_on(disk.sweep("", Sweep::Stale)).unwrap().is_empty());
    let swept = block_on(disk.sweep("", Sweep::StaleBelow)).unwrap();
    assert_eq!(swept, [format!("a/b/{STALE}")]);
    assert!(block_on(disk.sweep("", Sweep::All)).unwrap().is_empty());
    assert!(
        block_on(disk.sweep("not/there", Sweep::All))
            .unwrap()
            .is_empty()
    );
    assert!(outside.join(STALE).exists() && outside.join(FRESH).exists());
    assert!(fs::symlink_metadata(&odd).is_ok());
}

#[test]
fn a_line_that_meets_an_erasure_is_in_the_new_log_or_gone_with_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    block_on(disk.append("logs/a.jsonl", b"old\n")).unwrap();
    assert!(block_on(disk.erase("logs/a.jsonl")).unwrap());
    assert!(!folder.path().join("logs").exists());
    assert!(!block_on(disk.erase("logs/a.jsonl")).unwrap());
    // A writer that has opened the old log and waits for its lock begins a new one.
    block_on(disk.append("a.jsonl", b"old\n")).unwrap();
    let held = fs::File::open(folder.path().join("a.jsonl")).unwrap();
    held.lock().unwrap();
    let writer = std::thread::spawn({
        let disk = disk.clone();
        move || block_on(disk.append("a.jsonl", b"new\n")).unwrap()
    });
    // Whether the writer waits already or comes later, its line must not be lost.
    fs::remove_file(folder.path().join("a.jsonl")).unwrap();
    drop(held);
    writer.join().unwrap();
    assert_eq!(fs::read(folder.path().join("a.jsonl")).unwrap(), b"new\n");
}
