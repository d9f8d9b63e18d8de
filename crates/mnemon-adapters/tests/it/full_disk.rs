//! A full disk: a clear error, nothing half written, and what was there stays readable.

use std::process::Command;

use mnemon_core::{Batch, ErrorKind, Op, Record};

use crate::kit::{childs_work, ctx, everything, grant, ids, on_disk, open, wait};

/// A child's work, on a disk of a few hundred kilobytes of its own: fills it.
#[test]
fn writer_until_full() {
    let Some((folder, _)) = childs_work() else {
        return;
    };
    for url in on_disk(std::path::Path::new(&folder)) {
        let store = open(&url);
        let ids = ids();
        let mut acknowledged = 0;
        let error = loop {
            let records =
                (0..3).map(|_| Record::note(ids.next(ctx().now), &ctx(), "x".repeat(5000)));
            let ops: Vec<Op> = records.map(Op::put).collect();
            match wait(store.apply(&grant(), Batch::from(ops))) {
                Ok(_) => acknowledged += 3,
                Err(error) => break error,
            }
            assert!(acknowledged < 10_000, "the disk is never full");
        };
        assert_eq!(error.kind(), ErrorKind::Full, "{url}: {error}");
        assert!(error.to_string().contains("no space left"), "{error}");
        assert_eq!(everything(store.as_ref()).len(), acknowledged, "{url}");
        drop(store);
        assert_eq!(everything(open(&url).as_ref()).len(), acknowledged, "{url}");
        // Make room for the next store.
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let child = std::env::current_exe().unwrap();
    // A name space of its own, so that the small disk is nobody else's and goes with the child.
    let script = r#"mount -t tmpfs -o size=600k none "$0" || exit 77
        exec "$1" full_disk::writer_until_full --exact --nocapture"#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(folder.path())
        .arg(child)
        .env("MNEMON_TEST_STORE", folder.path())
        .env("MNEMON_TEST_WORK", "fill")
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        refused => eprintln!("skipped: this system lends us no small disk: {refused:?}"),
    }
}
