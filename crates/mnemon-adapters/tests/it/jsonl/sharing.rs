//! Several handles, threads and processes on one folder.

use std::process::{Child, Command, Stdio};

use super::*;

#[test]
fn two_handles_see_each_others_writes_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()), open(dir.path()));
    put(&one, "a", "1");
    assert_eq!(content(&two, "a").unwrap(), "1");
    put(&two, "a", "2");
    assert_eq!(get(&one, "a").unwrap().version, 2);
    two.compact(&Tenant::default()).unwrap();
    put(&two, "b", "x");
    assert_eq!(names(&one), ["a", "b"]);
    // Twice: the number of the first file may by now belong to the third.
    one.compact(&Tenant::default()).unwrap();
    one.compact(&Tenant::default()).unwrap();
    put(&one, "c", "x");
    assert_eq!(names(&two), ["a", "b", "c"]);
    apply(&one, vec![Op::Purge { id: id("a") }]);
    assert_eq!(names(&two), ["b", "c"]);
    assert!(history(&two, Some("a")).is_empty());
    // A stale write is refused, whoever made the newer one.
    let stale = Op::put_if(note("b", "y"), mnemon_core::Expect::Absent);
    let refused = wait(two.apply(&grant(), Batch::of(stale)));
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
}

#[test]
fn tenants_have_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let ctx = Ctx::new("other".parse().unwrap(), "test", now());
    let other = Policy::default().check(&ctx, Right::Write).unwrap();
    let record = Record::note(id("theirs"), &ctx, "hers");
    wait(store.apply(&other, Batch::of(Op::put(record)))).unwrap();
    put(&store, "mine", "x");
    assert_eq!(names(&store), ["mine"]);
    let file = dir.path().join("tenants/other/memory.jsonl");
    assert!(fs::read_to_string(file).unwrap().contains("hers"));
    assert!(
        !fs::read_to_string(log(dir.path()))
            .unwrap()
            .contains("hers")
    );
    let found = wait(open(dir.path()).get(&other, &[id("theirs"), id("mine")])).unwrap();
    assert_eq!(found[0].as_ref().unwrap().tenant, ctx.tenant);
    assert!(found[1].is_none());
}

#[test]
fn reading_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("new"));
    assert!(names(&store).is_empty());
    wait(store.upkeep(&grant(), 10)).unwrap();
    store.compact(&Tenant::default()).unwrap();
    let refused = try_put(&store, "a", "");
    assert!(matches!(refused, Err(StoreError::Invalid(_))));
    assert!(files(dir.path()).is_empty());
}

async fn write_many(store: Jsonl, writer: usize, count: usize) {
    for n in 0..count {
        let batch = Batch::of(Op::append(note(&format!("w{writer}-{n}"), "x")));
        store.apply(&grant(), batch).await.unwrap();
    }
}

#[test]
fn many_tasks_on_two_handles_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let handles = [open(dir.path()), open(dir.path())];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|writer| tokio::spawn(write_many(handles[writer % 2].clone(), writer, 20)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(names(&handles[0]).len(), 160);
    assert_eq!(names(&open(dir.path())), names(&handles[1]));
}

#[test]
fn works_on_a_runtime_of_one_thread() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::join!(
            write_many(store.clone(), 1, 10),
            write_many(store.clone(), 2, 10)
        );
    });
    assert_eq!(names(&store).len(), 20);
}

/// Runs this test binary again, for one test that does nothing unless it is told where.
pub(super) fn helper(test: &str, dir: &Path, shell: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{shell} exec \"$0\" \"$@\"");
    command.args(["-c", &script]);
    command.arg(std::env::current_exe().unwrap());
    command.args([&format!("jsonl::{test}"), "--exact", "--nocapture"]);
    command.env("MNEMON_TEST_DIR", dir).stdout(Stdio::null());
    command
}

#[test]
fn a_writing_process() {
    let (Ok(dir), Ok(writer)) = (
        std::env::var("MNEMON_TEST_DIR"),
        std::env::var("MNEMON_TEST_WRITER"),
    ) else {
        return;
    };
    let store = open(Path::new(&dir));
    wait(write_many(store, writer.parse().unwrap(), each()));
}

/// How many writes each process makes; the long run sets it to 500.
fn each() -> usize {
    let asked = std::env::var("MNEMON_TEST_WRITES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(40)
}

#[test]
fn eight_processes_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let processes: Vec<Child> = (0..8)
        .map(|writer| {
            let mut command = helper("sharing::a_writing_process", dir.path(), "");
            let command = command.env("MNEMON_TEST_WRITER", writer.to_string());
            command.spawn().unwrap()
        })
        .collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let tally = wait(open(dir.path()).tally(&grant())).unwrap();
    assert_eq!(tally.records(), 8 * each() as u64);
    assert_eq!(tally.seq, tally.records(), "none was written twice");
}

#[test]
fn deleting_the_lock_file_lets_no_second_writer_in() {
    let dir = tempfile::tempdir().unwrap();
    put(&open(dir.path()), "first", "x");
    let mut processes: Vec<Child> = (0..4)
        .map(|writer| {
            let mut command = helper("sharing::a_writing_process", dir.path(), "");
            let command = command.env("MNEMON_TEST_WRITER", writer.to_string());
            command.spawn().unwrap()
        })
        .collect();
    // Somebody cleans up what looks like a leftover, again and again.
    while processes
        .iter_mut()
        .any(|one| one.try_wait().unwrap().is_none())
    {
        let _ = fs::remove_file(dir.path().join("memory.lock"));
    }
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let store = open(dir.path());
    let tally = wait(store.tally(&grant())).unwrap();
    assert_eq!(tally.records(), 1 + 4 * each() as u64);
    assert_eq!(tally.seq, tally.records(), "none was written twice");
    assert_eq!(store.notices(), Default::default());
}

#[test]
fn a_log_that_was_deleted_or_replaced_is_noticed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(dir.path());
    put(&store, "old", "x");
    fs::remove_file(log(dir.path())).unwrap();
    put(&store, "new", "x");
    assert_eq!(names(&open(dir.path())), ["new"]);
    put(&open(other.path()), "restored", "x");
    fs::copy(log(other.path()), other.path().join("copy")).unwrap();
    fs::rename(other.path().join("copy"), log(dir.path())).unwrap();
    put(&store, "after", "x");
    for store in [&store, &open(dir.path())] {
        assert_eq!(names(store), ["restored", "after"]);
    }
}

/// How often a writer is killed; the long run sets it to 200.
fn rounds() -> u64 {
    let asked = std::env::var("MNEMON_TEST_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(6)
}

#[test]
fn killed_while_writing_no_acknowledged_write_is_lost() {
    let mut dir = tempfile::tempdir().unwrap();
    for round in 0..rounds() {
        if round % 10 == 0 {
            dir = tempfile::tempdir().unwrap();
        }
        let mut command = helper("sharing::an_endless_writer", dir.path(), "");
        command.env("MNEMON_TEST_WRITER", round.to_string());
        let mut process = command.spawn().unwrap();
        let acknowledged = dir.path().join(format!("ack{round}"));
        // Some are killed early, some after the log was compacted once or twice.
        let enough = 20 + round * 397 % 1000;
        while fs::metadata(&acknowledged).map_or(0, |file| file.len()) < enough {
            assert!(process.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        process.kill().unwrap();
        process.wait().unwrap();
        check_after_kill(
            dir.path(),
            round,
            &fs::read_to_string(acknowledged).unwrap(),
        );
    }
}

fn check_after_kill(dir: &Path, round: u64, acknowledged: &str) {
    let store = open(dir);
    for line in acknowledged.split_inclusive('\n') {
        let Some(n) = line.strip_suffix('\n') else {
            continue;
        };
        for part in ["x", "y"] {
            let name = format!("r{round}-{n}{part}");
            assert!(get(&store, &name).is_some(), "{name} is lost");
        }
    }
    let tally = wait(store.tally(&grant())).unwrap();
    let hot = get(&store, "hot").unwrap().version;
    assert_eq!(tally.records(), 1 + 2 * hot / 8, "no half of a batch");
    assert_eq!(store.notices().skipped_total, 0);
    put(&store, "after", "x");
    apply(&store, vec![Op::Purge { id: id("after") }]);
    let findings = crate::kit::examine_jsonl(dir);
    assert!(findings.iter().all(|f| f.ok), "{findings:?}");
}

#[test]
fn an_endless_writer() {
    use std::io::Write;
    let (Ok(dir), Ok(round)) = (
        std::env::var("MNEMON_TEST_DIR"),
        std::env::var("MNEMON_TEST_WRITER"),
    ) else {
        return;
    };
    let dir = Path::new(&dir);
    let store = open(dir);
    let mut acknowledged = fs::File::create(dir.join(format!("ack{round}"))).unwrap();
    for n in 0..2000 {
        let (x, y) = (format!("r{round}-{n}x"), format!("r{round}-{n}y"));
        let mut ops = vec![Op::put(note(&x, "x"))];
        ops.extend((0..8).map(|_| Op::put(note("hot", "rewritten all the time"))));
        ops.push(Op::put(note(&y, "y")));
        apply(&store, ops);
        writeln!(acknowledged, "{n}").unwrap();
    }
}
