//! What these tests share: stores by URL, a clock that stands still, child processes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use mnemon_adapters::Finding;
use mnemon_core::{
    Backend, Ctx, Filter, Grant, Ids, Order, Policy, Record, Right, Scan, Store, StoreError,
    Tenant, Time, Viewer, limits,
};

/// The stores on disk, as URLs of a fresh place in the folder.
pub(crate) fn on_disk(folder: &Path) -> Vec<String> {
    vec![
        format!("sqlite:{}", folder.join("m.db").display()),
        format!("jsonl:{}", folder.join("log").display()),
    ]
}

pub(crate) fn open(url: &str) -> Arc<dyn Store> {
    open_backend(url).store
}

pub(crate) fn open_backend(url: &str) -> Backend {
    match mnemon_adapters::open(url) {
        Ok(opened) => opened.backend,
        Err(error) => panic!("{url}: {error}"),
    }
}

pub(crate) fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

pub(crate) fn ctx() -> Ctx {
    Ctx::new(Tenant::default(), "test", now())
}

pub(crate) fn grant() -> Grant {
    Policy::default().check(&ctx(), Right::Purge).unwrap()
}

/// Ids that no other process makes.
pub(crate) fn ids() -> Ids {
    Ids::new(u64::from(std::process::id()) << 20)
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

/// A store from before there were audiences shows everybody what has no user, and a user their own.
pub(crate) fn assert_default_audiences(store: &dyn Store) {
    let records = everything(store);
    assert!(records.iter().all(|record| record.audience.is_none()));
    for viewer in [Viewer::Tenant, Viewer::ANYONE, Viewer::user("ann")] {
        let scan = Scan::new(Filter::seen_by(viewer.clone()), limits::PAGE);
        let seen = wait(store.scan(&grant(), &scan)).unwrap().records.len();
        let meant = records.iter().filter(|record| match &viewer {
            Viewer::Tenant => true,
            Viewer::Person { user, .. } => {
                record.owner.user.is_none() || record.owner.user == *user
            }
        });
        assert_eq!(seen, meant.count(), "{viewer:?}");
    }
}

/// Every live record, in the order of writing.
pub(crate) fn everything(store: &dyn Store) -> Vec<Record> {
    let mut all = Vec::new();
    let mut scan = Scan {
        order: Order::Written,
        ..Scan::new(Filter::all_of_tenant(), limits::PAGE)
    };
    loop {
        let page = wait(store.scan(&grant(), &scan)).unwrap();
        all.extend(page.records);
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return all,
        }
    }
}

/// This very test binary, told to run one test that is a child's work and does nothing otherwise.
pub(crate) fn child(test: &str, url: &str, work: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("MNEMON_TEST_STORE", url)
        .env("MNEMON_TEST_WORK", work)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// In a child: the store to use and the work to do.
pub(crate) fn childs_work() -> Option<(String, String)> {
    let url = std::env::var("MNEMON_TEST_STORE").ok()?;
    Some((url, std::env::var("MNEMON_TEST_WORK").ok()?))
}

/// Nothing is wrong with a store whose writer was killed, but for the unacknowledged bytes and the
/// rewritten files that a kill may leave behind; and a repair leaves nothing of these.
pub(crate) fn assert_healthy_after_a_kill(url: &str) {
    const LEFT_BY_A_KILL: [&str; 2] = ["tail", "leftovers"];
    assert_healthy(url);
    mnemon_adapters::repair(url).unwrap();
    let examination = mnemon_adapters::examine(url).unwrap();
    let left = examination
        .findings
        .iter()
        .filter(|finding| LEFT_BY_A_KILL.contains(&&*finding.check) && finding.warning)
        .collect::<Vec<_>>();
    assert!(left.is_empty(), "{left:#?}");
}

/// Nothing is wrong with the store on disk.
pub(crate) fn assert_healthy(url: &str) {
    let examination = mnemon_adapters::examine(url).unwrap();
    assert!(examination.is_clean(), "{examination:#?}");
}

/// Long tests run in full with `MNEMON_TEST_FULL=1`.
pub(crate) fn rounds(full: u32, quick: u32) -> u32 {
    if std::env::var_os("MNEMON_TEST_FULL").is_some() {
        full
    } else {
        quick
    }
}

pub(crate) fn examine_jsonl(folder: &Path) -> Vec<Finding> {
    let url = format!("jsonl:{}", folder.display());
    mnemon_adapters::examine(&url).unwrap().findings
}

pub(crate) fn repair_jsonl(folder: &Path) -> Result<Vec<String>, StoreError> {
    mnemon_adapters::repair(&format!("jsonl:{}", folder.display()))
}
