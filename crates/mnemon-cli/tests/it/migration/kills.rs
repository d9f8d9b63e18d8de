//! A copy that is killed again and again while its source is written to.
//!
//! `MNEMON_MIGRATE_RECORDS=100000` copies this many records instead, and kills ten times;
//! `MNEMON_BIN` names another build of the program.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mnemon_core::embed::ModelId;
use mnemon_core::{Batch, Ctx, Embedding, Grant, IdempotencyKey, Op, Policy, Record, Replica};
use mnemon_core::{Right, Tenant, Time};

use super::{Draw, START, database, jsonl, sqlite, tenant, wait};
use crate::sandbox::Sandbox;

/// Operations of one batch of the source.
const BATCH: usize = 500;
/// The pause between two writes while the copy runs.
const PAUSE: Duration = Duration::from_millis(2);
/// How long the copy may take to reach a change.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much is copied, and how often the copy is killed.
#[derive(Clone, Copy)]
struct Scale {
    records: usize,
    kills: usize,
}

impl Scale {
    /// Several commits of the target, unless the environment says more.
    fn of_environment() -> Self {
        match std::env::var("MNEMON_MIGRATE_RECORDS") {
            Ok(records) => Self {
                records: records.parse().unwrap(),
                kills: 10,
            },
            Err(_) => Self {
                records: 2_500,
                kills: 3,
            },
        }
    }
}

/// A tenant of a store, whose records have a history.
struct Source {
    store: Arc<dyn Replica>,
    tenant: Tenant,
    draw: Draw,
    now: i64,
}

impl Source {
    fn new(url: &str, tenant: &Tenant) -> Self {
        Self {
            store: mnemon_adapters::open_replica(url).unwrap(),
            tenant: tenant.clone(),
            draw: Draw(11),
            now: START,
        }
    }

    fn ctx(&self) -> Ctx {
        let now = Time::from_millis(self.now).unwrap();
        Ctx::new(self.tenant.clone(), "test", now)
    }

    fn grant(&self) -> Grant {
        Policy::default().check(&self.ctx(), Right::Purge).unwrap()
    }

    fn note(&self, number: usize, text: &str) -> Record {
        let id = format!("n{number}").parse().unwrap();
        let text = format!("{text} {number}: Ann drinks green tea with Bob at nine");
        Record::note(id, &self.ctx(), text)
    }

    /// Writes these records; every third gets a vector.
    fn put(&mut self, numbers: &[usize], text: &str) {
        self.now += 1000;
        let records = numbers.iter().map(|number| self.note(*number, text));
        let mut batch = Batch::default();
        for (place, record) in records.enumerate() {
            if place % 3 == 0 {
                batch.vectors.push((record.id.clone(), vector(place)));
            }
            batch.ops.push(Op::put(record));
        }
        wait(self.store.apply(&self.grant(), batch)).unwrap();
    }

    /// Records, of which a third are written twice, some deleted and a few purged.
    fn fill(&mut self, records: usize) {
        let all: Vec<usize> = (0..records).collect();
        for numbers in all.chunks(BATCH) {
            self.put(numbers, "first");
        }
        let again: Vec<usize> = all.iter().copied().filter(|it| it % 3 == 1).collect();
        for numbers in again.chunks(BATCH) {
            self.put(numbers, "second");
        }
        let gone: Vec<usize> = all.iter().copied().filter(|it| it % 20 == 4).collect();
        for numbers in gone.chunks(BATCH) {
            let ops = numbers.iter().map(|number| {
                let id = format!("n{number}").parse().unwrap();
                match number % 100 {
                    4 => Op::Purge { id },
                    _ => Op::delete(id),
                }
            });
            let batch = Batch::from(ops.collect::<Vec<_>>());
            wait(self.store.apply(&self.grant(), batch)).unwrap();
        }
    }

    /// One of the writes that go on while the copy runs.
    fn step(&mut self, count: usize, records: usize) {
        self.now += 1000;
        let number = usize::try_from(self.draw.below(records as u64)).unwrap();
        let mut batch = match self.draw.below(8) {
            0 => Batch::of(Op::delete(format!("n{number}").parse().unwrap())),
            1 => Batch::of(Op::put(self.note(records + count, "new"))),
            _ => Batch::of(Op::put(self.note(number, "meanwhile"))),
        };
        let name = format!("key {count}");
        let digest = "d".to_owned();
        batch.key = Some(IdempotencyKey { name, digest });
        wait(self.store.apply(&self.grant(), batch)).unwrap();
    }

    fn newest(&self) -> u64 {
        wait(self.store.newest_change(&self.grant())).unwrap()
    }
}

fn vector(number: usize) -> Embedding {
    let model = ModelId {
        name: "test".to_owned(),
        dimension: 8,
    };
    let mut vector = vec![0.1; 8];
    vector[number % 8] = 0.9;
    Embedding { model, vector }
}

/// A hash of all that a tenant has, read from the store itself.
fn hash_of(url: &str, tenant: &Tenant, with_vectors: bool) -> (usize, u64) {
    let source = Source::new(url, tenant);
    let (store, grant) = (&source.store, source.grant());
    let (mut hasher, mut count, mut after) = (DefaultHasher::new(), 0, 0);
    loop {
        let page = wait(store.stored_changes(&grant, after, 1000)).unwrap();
        for change in &page.changes {
            let vector = change.vector.as_ref().filter(|_| with_vectors);
            let facts = serde_json::to_string(change).unwrap();
            format!("{facts} {} {vector:?}", change.is_current).hash(&mut hasher);
            after = change.seq;
        }
        count += page.changes.len();
        if !page.more {
            break;
        }
    }
    let mut key = String::new();
    loop {
        let receipts = wait(store.stored_receipts(&grant, &key, 1000)).unwrap();
        let Some(last) = receipts.last() else {
            return (count, hasher.finish());
        };
        key.clone_from(&last.key.name);
        format!("{receipts:?}").hash(&mut hasher);
    }
}

/// Lets the command run until the target has this change, and some milliseconds more, and kills it.
/// Returns whether it was still running.
fn kill_at(mut command: std::process::Command, target: &Source, (seq, more): (u64, u64)) -> bool {
    let mut child = command.spawn().unwrap();
    let since = Instant::now();
    while target.newest() < seq && child.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < PATIENCE, "change {seq} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(more));
    let was_running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    was_running
}

/// The changes that the target has when the copy is killed, ascending, each with milliseconds more:
/// the last ones are reached when everything is copied, and the copy is being verified.
fn moments(scale: Scale, newest: u64) -> Vec<(u64, u64)> {
    let mut draw = Draw(7);
    let mut moments: Vec<(u64, u64)> = (0..scale.kills)
        .map(|_| (draw.below(newest + newest / 5).min(newest), draw.below(50)))
        .collect();
    moments.sort_unstable();
    moments
}

#[allow(clippy::print_stdout, reason = "a measurement is read by people")]
fn survives_kills(from: &str, to: &str) {
    let (sandbox, scale, tenant) = (Sandbox::new(), Scale::of_environment(), tenant("kills"));
    let place = |url: &str| match url.split_once(':') {
        Some(("sqlite", name)) => sqlite(&sandbox, name),
        Some(("jsonl", name)) => jsonl(&sandbox, name),
        _ => url.to_owned(),
    };
    let (from, to) = (&place(from), &place(to));
    let mut source = Source::new(from, &tenant);
    source.fill(scale.records);
    let filled = source.newest();
    let name = tenant.as_str();
    let migrate = ["migrate", "--from", from, "--to", to, "--tenant", name];
    let target = Source::new(to, &tenant);
    let stop = AtomicBool::new(false);
    let (since, mut killed) = (Instant::now(), 0);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                source.step(count, scale.records);
                count += 1;
                std::thread::sleep(PAUSE);
            }
            count
        });
        for moment in moments(scale, filled) {
            let mut command = sandbox.command();
            command.args(migrate);
            killed += usize::from(kill_at(command, &target, moment));
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let interrupted = since.elapsed();
    let said = sandbox.run(&migrate).ok();
    let finished = since.elapsed() - interrupted;
    assert!(said.contains("the target has caught up"), "{said}");
    let verified = said.lines().find(|line| line.starts_with("verified: "));
    let with_vectors = !from.starts_with("jsonl:") && !to.starts_with("jsonl:");
    let ours = hash_of(from, &tenant, with_vectors);
    assert_eq!(hash_of(to, &tenant, with_vectors), ours, "{from} {to}");
    assert!(
        written > 0 && killed > 0,
        "{written} writes, {killed} kills"
    );
    let scheme = |url: &str| url.split(':').next().unwrap().to_owned();
    println!(
        "{} to {}: {} changes, {written} of them meanwhile; killed {killed} times in \
         {interrupted:.1?}, finished {finished:.1?} later; hash {:x}; {}",
        scheme(from),
        scheme(to),
        ours.0,
        ours.1,
        verified.unwrap()
    );
}

#[test]
fn a_copy_of_files_survives_kills() {
    survives_kills("sqlite:a.db", "jsonl:j");
    survives_kills("jsonl:k", "sqlite:b.db");
}

#[test]
fn a_copy_into_a_database_survives_kills() {
    if let Some(url) = database() {
        survives_kills("sqlite:a.db", &url);
    }
}

#[test]
fn a_copy_out_of_a_database_survives_kills() {
    if let Some(url) = database() {
        survives_kills(&url, "sqlite:b.db");
    }
}

#[test]
fn logs_are_copied_into_a_database_and_back_despite_kills() {
    if let Some(url) = database() {
        survives_kills("jsonl:j", &url);
        survives_kills(&url, "jsonl:k");
    }
}
