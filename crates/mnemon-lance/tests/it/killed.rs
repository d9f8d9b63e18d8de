//! Processes that are killed while they write and compact.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mnemon_adapters::external_index::{DocumentChange, ExternalIndex, IndexServer, Watermark};
use mnemon_core::{Backend, SearchIndex, Tenant};
use mnemon_lance::Upkeep;
use mnemon_testkit::index_operations::{Random, ids_of, operate, put, words};
use mnemon_testkit::make::{at, grant, id};

use crate::upkeep::files;
use crate::{OFTEN, server_at, server_of};

/// Operations of a run.
const SHORT: usize = 300;
const FULL: usize = 10_000;
/// New files after which a process is killed at the latest. A search that follows makes about six.
const FILES: u64 = 50;
const FILES_FULL: u64 = 400;
/// The wait between two looks at a process.
pub(crate) const POLL: Duration = Duration::from_millis(1);
const QUERY: &str = "tea milk cup coffee";

fn store_url(place: &Path) -> String {
    format!("sqlite:{}", place.join("m.db").display())
}

/// Prepares a folder for processes that share a store and an index.
pub(crate) fn prepare(place: &Path, index: &str) {
    fs::write(place.join(DONE), "").unwrap();
    fs::write(place.join(INDEX), index).unwrap();
}

/// The same with the index in the folder.
fn prepare_with_tables(place: &Path) -> PathBuf {
    let folder = place.join("vectors");
    prepare(place, &format!("lance:{}", folder.display()));
    folder
}

fn opened(place: &Path) -> (Backend, ExternalIndex) {
    let backend = mnemon_adapters::open(&store_url(place)).unwrap().backend;
    let replica = mnemon_adapters::open_replica(&store_url(place)).unwrap();
    let server = server_of(&fs::read_to_string(place.join(INDEX)).unwrap());
    (backend, ExternalIndex::new(replica, Arc::new(server)))
}

/// Starts a test of this file as a process with work to do.
pub(crate) fn start(test: &str, place: &Path, number: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("killed::{test}"), "--exact", "--nocapture"])
        .env("MNEMON_TEST_PLACE", place)
        .env("MNEMON_TEST_NUMBER", number.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The work of this process, if it was started for one.
fn work() -> Option<(PathBuf, u64)> {
    let place = std::env::var_os("MNEMON_TEST_PLACE")?;
    let number = std::env::var("MNEMON_TEST_NUMBER").ok()?;
    Some((place.into(), number.parse().ok()?))
}

/// Adds the files below a folder to those that were seen.
fn look(folder: &Path, seen: &mut HashSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => look(&path, seen),
            false => drop(seen.insert(path)),
        }
    }
}

/// Kills the process when it has made so many new files. The answer is whether it was still alive; a
/// process that ended by itself must have succeeded.
fn kill_after(mut child: Child, folder: &Path, files: usize) -> bool {
    let mut seen = HashSet::new();
    look(folder, &mut seen);
    let enough = seen.len() + files;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "the process found an error by itself");
            return false;
        }
        look(folder, &mut seen);
        if seen.len() >= enough {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
        // The process needs the processor more than this loop does.
        std::thread::sleep(POLL);
    }
}

/// A child's work: random operations, and searches that bring the index up to them.
#[tokio::test]
async fn child_that_operates() {
    let Some((place, number)) = work() else {
        return;
    };
    let (backend, index) = opened(&place);
    let mut random = Random(number);
    let mut now = i64::try_from(number).unwrap() * 1000;
    let mut done = fs::File::options();
    let mut done = done.append(true).open(place.join(DONE)).unwrap();
    for _ in 0..500 {
        now = operate(&*backend.store, &mut random, now).await;
        done.write_all(b".").unwrap();
        if random.below(4) == 0 {
            let g = grant(at(now));
            let ours = index.find(&g, &words(QUERY)).await.unwrap();
            let theirs = backend.index.find(&g, &words(QUERY)).await.unwrap();
            assert_eq!(ids_of(ours), ids_of(theirs));
        }
    }
}

/// A file with a byte for each operation that was done, and one with the URL of the index.
const DONE: &str = "operations";
const INDEX: &str = "index";

/// How many operations were done.
pub(crate) fn operations_of(place: &Path) -> usize {
    fs::metadata(place.join(DONE)).unwrap().len() as usize
}

/// A number of a short run, or of a full one.
pub(crate) fn operations<T>(short: T, full: T) -> T {
    match std::env::var_os("MNEMON_TEST_FULL") {
        Some(_) => full,
        None => short,
    }
}

/// After catching up, index and store agree exactly.
pub(crate) async fn assert_agreement(place: &Path, now: i64) {
    let (backend, index) = opened(place);
    let g = grant(at(now));
    let ours = index.find(&g, &words(QUERY)).await.unwrap();
    let theirs = backend.index.find(&g, &words(QUERY)).await.unwrap();
    assert_eq!(ids_of(ours), ids_of(theirs));
    let compared = index.compare(&g).await.unwrap();
    assert!(compared.is_complete(), "{compared:?}");
    assert!(compared.vectors.is_some(), "vectors were compared");
    // The next write removes documents of records that have expired.
    put(&*backend.store, "last", "tea").await;
    index.find(&g, &words("tea")).await.unwrap();
    let compared = index.compare(&g).await.unwrap();
    assert!(
        compared.is_complete() && compared.leftover == 0,
        "{compared:?}"
    );
}

#[tokio::test]
async fn random_operations_and_kills_end_in_agreement() {
    let place = tempfile::tempdir().unwrap();
    let folder = prepare_with_tables(place.path());
    let done = || operations_of(place.path());
    let mut random = Random(7);
    let (wanted, most) = (operations(SHORT, FULL), operations(FILES, FILES_FULL));
    let (mut processes, mut killed) = (0, 0);
    while done() < wanted {
        processes += 1;
        let child = start("child_that_operates", place.path(), processes);
        let files = 1 + random.below(most) as usize;
        killed += u64::from(kill_after(child, &folder, files));
        let now = i64::try_from(processes).unwrap() * 1000 + 900;
        assert_agreement(place.path(), now).await;
    }
    assert!(
        killed > processes / 2,
        "{killed} of {processes} were killed"
    );
    println!("{} operations, {killed} processes killed", done());
}

/// A child's work: many small files, a line, and then the compaction of all.
#[tokio::test]
async fn child_that_compacts() {
    let Some((place, _)) = work() else {
        return;
    };
    let (_, index) = opened(&place);
    index.find(&grant(at(0)), &words(QUERY)).await.unwrap();
    let server = server_at(&place.join("vectors"));
    let generation = server.current().await.unwrap();
    println!("compacting");
    server.compact(&generation).await.unwrap();
}

#[tokio::test]
async fn a_compaction_that_is_killed_loses_nothing_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = prepare_with_tables(place.path());
    let mut killed = 0;
    for round in 0..4 {
        let (backend, index) = opened(place.path());
        for number in 0..4 {
            put(&*backend.store, &format!("n{round}{number}"), "green tea").await;
            index.find(&grant(at(0)), &words("tea")).await.unwrap();
        }
        put(&*backend.store, "n00", "black tea").await;
        let mut child = start("child_that_compacts", place.path(), round);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        assert!(lines.any(|line| line.contains("compacting")));
        killed += usize::from(kill_after(child, &folder, round as usize));
        let found = index.find(&grant(at(0)), &words("tea")).await.unwrap();
        let expected = 4 * (round as usize + 1);
        assert_eq!(found.matches.len(), expected, "round {round}");
    }
    assert!(killed > 1, "{killed} were killed");
    assert_agreement(place.path(), 0).await;
    let server = server_at(&folder).with_upkeep(Upkeep {
        versions_kept: 1,
        ..OFTEN
    });
    let generation = server.current().await.unwrap();
    server.compact(&generation).await.unwrap();
    let data = files(&folder, &generation.0, "data");
    assert_eq!(
        data.len(),
        1,
        "files of killed processes are removed: {data:?}"
    );
}

/// A process that was killed between the commit and the watermark writes the same documents again.
#[tokio::test]
async fn a_write_that_is_repeated_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    prepare_with_tables(place.path());
    let (backend, index) = opened(place.path());
    put(&*backend.store, "a", "green tea").await;
    put(&*backend.store, "b", "black tea").await;
    index.find(&grant(at(0)), &words("tea")).await.unwrap();
    let server = server_at(&place.path().join("vectors"));
    let generation = server.current().await.unwrap();
    let tenant = Tenant::default();
    let marked = server.watermark(&generation, &tenant).await.unwrap();
    let earlier = Watermark::default();
    let moved = server.mark(&generation, &tenant, &marked, earlier).await;
    assert!(moved.unwrap().is_some());
    let (_, index) = opened(place.path());
    let found = index.find(&grant(at(0)), &words("tea")).await.unwrap();
    assert_eq!(found.matches.len(), 2);
    assert_eq!(server.count(&generation, &tenant).await.unwrap(), 2);
    let gone = DocumentChange::Delete {
        id: id("nobody"),
        seq: 9,
    };
    server
        .write(&generation, &tenant, vec![gone])
        .await
        .unwrap();
    assert_eq!(server.count(&generation, &tenant).await.unwrap(), 2);
}
