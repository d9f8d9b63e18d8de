//! Many processes use one store at once: no error, nothing lost, nothing twice.

use std::collections::HashSet;

use mnemon_core::{Batch, Changes, Op, Record};

use crate::kit::{
    assert_healthy, child, childs_work, ctx, everything, grant, ids, on_disk, open, wait,
};

const PROCESSES: usize = 8;
const WRITES: usize = 500;

/// A child's work: single writes, one after the other.
#[test]
fn writer_of_many() {
    let Some((url, name)) = childs_work() else {
        return;
    };
    let store = open(&url);
    let ids = ids();
    for number in 0..WRITES {
        let content = format!("{name} {number}");
        let record = Record::note(ids.next(ctx().now), &ctx(), content);
        wait(store.apply(&grant(), Batch::of(Op::append(record)))).unwrap();
    }
}

/// Follows the change feed until every write is there: the numbers have no gap, so that no later
/// write can get one that was passed.
fn follow(url: &str) {
    let store = open(url);
    let most = (PROCESSES * WRITES) as u64;
    let mut reached = 0;
    while reached < most {
        let page = wait(store.changes(&grant(), &Changes::feed(reached, 100))).unwrap();
        for change in page {
            assert_eq!(change.seq, reached + 1, "{url}");
            reached = change.seq;
        }
        assert!(reached <= wait(store.newest_change(&grant())).unwrap());
    }
}

#[test]
fn eight_processes_write_into_one_store() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        write_by_eight_processes(&url);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn eight_processes_write_into_one_database() {
    let database = crate::postgres::database!();
    write_by_eight_processes(&database.url());
}

fn write_by_eight_processes(url: &str) {
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let work = format!("p{number}");
            child("processes::writer_of_many", url, &work)
                .spawn()
                .unwrap()
        })
        .collect();
    follow(url);
    for child in children {
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{url}: {errors}");
    }
    let all = everything(open(url).as_ref());
    assert_eq!(all.len(), PROCESSES * WRITES, "{url}");
    let contents: HashSet<&str> = all.iter().map(|r| r.content.as_str()).collect();
    assert_eq!(contents.len(), PROCESSES * WRITES, "{url}: something twice");
    let seqs: HashSet<u64> = all.iter().map(|record| record.seq).collect();
    assert_eq!(seqs.len(), PROCESSES * WRITES, "{url}: a number twice");
    assert_healthy(url);
}

#[test]
fn two_handles_see_each_others_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        write_by_two_handles(&url);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn two_handles_of_a_database_see_each_others_writes_at_once() {
    let database = crate::postgres::database!();
    write_by_two_handles(&database.url());
}

fn write_by_two_handles(url: &str) {
    let (one, two) = (open(url), open(url));
    let ids = ids();
    for number in 0..20 {
        let (writer, reader) = if number % 2 == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        let record = Record::note(ids.next(ctx().now), &ctx(), format!("note {number}"));
        let id = record.id.clone();
        wait(writer.apply(&grant(), Batch::of(Op::put(record)))).unwrap();
        let found = wait(reader.get(&grant(), &[id])).unwrap();
        assert!(found[0].is_some(), "{url}: note {number}");
    }
}

/// A child's work: opens the store, which may not be there yet, and writes once.
#[test]
fn opener() {
    let Some((url, name)) = childs_work() else {
        return;
    };
    let record = Record::note(ids().next(ctx().now), &ctx(), name);
    wait(open(&url).apply(&grant(), Batch::of(Op::append(record)))).unwrap();
}

#[test]
fn processes_that_make_the_store_at_the_same_moment_agree() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let folder = folder.path().join(round.to_string());
        std::fs::create_dir(&folder).unwrap();
        for url in on_disk(&folder) {
            let children: Vec<_> = (0..6)
                .map(|_| child("processes::opener", &url, "hello").spawn().unwrap())
                .collect();
            for child in children {
                let output = child.wait_with_output().unwrap();
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{url}: {errors}");
            }
            assert_eq!(everything(open(&url).as_ref()).len(), 6, "{url}");
        }
    }
}
