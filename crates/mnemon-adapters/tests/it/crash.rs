//! An acknowledged write survives kill -9, and no batch is ever half there.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use mnemon_core::{Batch, Op, Record};

use crate::kit::{
    assert_healthy_after_a_kill, child, childs_work, ctx, everything, grant, ids, on_disk, open,
    rounds, wait,
};

/// Records in each batch; they name their batch, so that half a batch would show.
const TOGETHER: usize = 3;

/// A child's work: writes batches as fast as it can until it is killed, and says which are done.
/// Every fourth batch is also updated and every eighth deleted, so that history takes part.
#[test]
fn writer_until_killed() {
    let Some((url, round)) = childs_work() else {
        return;
    };
    let store = open(&url);
    let ids = ids();
    for number in 0.. {
        let batch = format!("{round}-{number}");
        let records: Vec<Record> = (0..TOGETHER)
            .map(|_| {
                let mut record = Record::note(ids.next(ctx().now), &ctx(), "x".repeat(200));
                record.source = Some(batch.clone());
                record
            })
            .collect();
        let ops: Vec<Op> = records.iter().cloned().map(Op::put).collect();
        wait(store.apply(&grant(), Batch::from(ops))).unwrap();
        say(&format!("stored {batch}"));
        if number % 4 == 3 {
            let updates = records.iter().cloned().map(Op::put).collect::<Vec<Op>>();
            wait(store.apply(&grant(), Batch::from(updates))).unwrap();
        }
        if number % 8 == 7 {
            let deletes = records.into_iter().map(|record| Op::delete(record.id));
            say(&format!("deleting {batch}"));
            wait(store.apply(&grant(), Batch::from(deletes.collect::<Vec<Op>>()))).unwrap();
            say(&format!("deleted {batch}"));
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may have stopped listening because it killed us.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// What a killed child had said: batches stored, batches deleted, and the one in between.
#[derive(Default)]
struct Said {
    stored: HashSet<String>,
    deleting: HashSet<String>,
    deleted: HashSet<String>,
}

fn run_and_kill(url: &str, round: u32) -> Said {
    let mut child = child("crash::writer_until_killed", url, &round.to_string())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Said::default();
    let mut note = |line: &str| {
        // The test harness's own first line has no newline before ours.
        for word in ["stored ", "deleting ", "deleted "] {
            if let Some((_, batch)) = line.split_once(word) {
                let set = match word {
                    "stored " => &mut said.stored,
                    "deleting " => &mut said.deleting,
                    _ => &mut said.deleted,
                };
                set.insert(batch.to_owned());
            }
        }
    };
    // Kill it somewhere in its work: after its first words, at a different moment each round.
    for line in lines.by_ref() {
        let line = line.unwrap();
        note(&line);
        if line.contains("stored ") {
            break;
        }
    }
    std::thread::sleep(Duration::from_micros(
        (u64::from(round) * 7919) % 30_000 + 500,
    ));
    child.kill().unwrap();
    for line in lines.map_while(Result::ok) {
        note(&line);
    }
    child.wait().unwrap();
    said
}

fn check(url: &str, said: &Said) {
    let store = open(url);
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for record in everything(store.as_ref()) {
        *there.entry(record.source.unwrap()).or_default() += 1;
    }
    for (batch, count) in &there {
        assert_eq!(*count, TOGETHER, "{url}: half of batch {batch}");
        assert!(!said.deleted.contains(batch), "{url}: {batch} is back");
    }
    for batch in said.stored.difference(&said.deleting) {
        assert!(there.contains_key(batch), "{url}: lost batch {batch}");
    }
    drop(store);
    assert_healthy_after_a_kill(url);
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        kill_again_and_again(&url);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn acknowledged_writes_to_postgres_survive_kill_9() {
    let database = crate::postgres::database!();
    kill_again_and_again(&database.url());
}

fn kill_again_and_again(url: &str) {
    let mut said = Said::default();
    for round in 0..rounds(200, 12) {
        let more = run_and_kill(url, round);
        assert!(!more.stored.is_empty(), "the child wrote nothing");
        said.stored.extend(more.stored);
        said.deleting.extend(more.deleting);
        said.deleted.extend(more.deleted);
        // Looking each time would hide what a second crash does to an unrepaired store.
        if round % 4 == 3 {
            check(url, &said);
        }
    }
    check(url, &said);
}

#[test]
fn a_truncated_wal_loses_the_end_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..rounds(60, 10) {
        let path = folder.path().join(format!("{round}.db"));
        let url = format!("sqlite:{}", path.display());
        let said = run_and_kill(&url, round);
        let wal = path.with_extension("db-wal");
        let length = std::fs::metadata(&wal).map_or(0, |metadata| metadata.len());
        let keep = length.saturating_sub(u64::from(round) * 1237 % length.max(1));
        let file = std::fs::OpenOptions::new().write(true).open(&wal).unwrap();
        file.set_len(keep).unwrap();
        // What the cut took is gone, but what is there is whole and opens.
        let nothing_promised = Said {
            stored: HashSet::new(),
            deleted: HashSet::new(),
            ..said
        };
        check(&url, &nothing_promised);
    }
}
