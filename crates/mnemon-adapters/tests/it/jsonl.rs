//! The store of JSON lines.

mod compaction;
mod damage;
mod errors;
mod model;
mod original;
mod sharing;
mod torn;

use std::fs;
use std::path::{Path, PathBuf};

use mnemon_adapters::Jsonl;
use mnemon_core::{
    Batch, Changes, Ctx, Filter, Grant, Id, IdempotencyKey, Op, Order, Policy, Receipt, Record,
    Right, Scan, Store, StoreError, Tenant, Time,
};

/// The moment at which most tests play.
fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

fn ctx() -> Ctx {
    Ctx::new(Tenant::default(), "test", now())
}

fn grant() -> Grant {
    Policy::default().check(&ctx(), Right::Purge).unwrap()
}

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

fn note(name: &str, content: &str) -> Record {
    Record::note(id(name), &ctx(), content)
}

/// Without a runtime a store does its work right here.
fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match work.as_mut().poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => panic!("the store waits for somebody"),
    }
}

fn open(dir: &Path) -> Jsonl {
    Jsonl::open(dir).unwrap()
}

fn apply(store: &Jsonl, ops: Vec<Op>) -> Receipt {
    wait(store.apply(&grant(), Batch::from(ops))).unwrap()
}

fn put(store: &Jsonl, name: &str, content: &str) -> Receipt {
    apply(store, vec![Op::put(note(name, content))])
}

fn try_put(store: &Jsonl, name: &str, content: &str) -> Result<Receipt, StoreError> {
    wait(store.apply(&grant(), Batch::of(Op::put(note(name, content)))))
}

fn keyed(name: &str) -> IdempotencyKey {
    IdempotencyKey {
        name: name.to_owned(),
        digest: "d".to_owned(),
    }
}

fn get(store: &Jsonl, name: &str) -> Option<Record> {
    wait(store.get(&grant(), &[id(name)])).unwrap().remove(0)
}

fn content(store: &Jsonl, name: &str) -> Option<String> {
    get(store, name).map(|record| record.content)
}

/// The ids of all live records in the order they were written.
fn names(store: &Jsonl) -> Vec<String> {
    let scan = Scan {
        order: Order::Written,
        ..Scan::new(Filter::all_of_tenant(), 1000)
    };
    let page = wait(store.scan(&grant(), &scan)).unwrap();
    page.records.iter().map(|r| r.id.to_string()).collect()
}

fn history(store: &Jsonl, name: Option<&str>) -> Vec<mnemon_core::Change> {
    let changes = Changes {
        id: name.map(id),
        limit: 1000,
        ..Changes::all_of_tenant(0)
    };
    wait(store.changes(&grant(), &changes)).unwrap()
}

fn log(dir: &Path) -> PathBuf {
    dir.join("memory.jsonl")
}

fn lines(dir: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(log(dir)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The names of the files in the folder, sorted.
fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
