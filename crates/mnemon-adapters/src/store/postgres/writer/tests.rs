use mnemon_core::commit::Request;
use mnemon_core::{Ctx, Id, Op, Policy, Record, Time};
use tokio::runtime::Runtime;

use super::*;
use crate::store::postgres::Postgres;
use crate::store::postgres::url::Address;

/// Planning a record with this content panics.
const DEFECT: &str = "a record that no defect of ours survives";

pub(super) fn panic_if_asked(requests: &[Request]) {
    let mut records = requests.iter().flat_map(Request::written);
    assert!(
        records.all(|(record, _)| record.content != DEFECT),
        "planted"
    );
}

fn ctx(tenant: &str) -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(tenant.parse().unwrap(), "test", now)
}

fn grant_of(tenant: &str) -> Grant {
    Policy::default().check(&ctx(tenant), Right::Purge).unwrap()
}

fn batch(tenant: &str, id: &str, content: &str) -> Batch {
    let id: Id = id.parse().unwrap();
    Batch::of(Op::append(Record::note(id, &ctx(tenant), content)))
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

type Answer = oneshot::Receiver<Outcome>;

fn job() -> (Job, Answer) {
    let (caller, answer) = oneshot::channel();
    let slot = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let job = Job {
        grant: grant_of("acme"),
        work: Work::Upkeep(1),
        is_doubtful: false,
        caller,
        _slot: slot,
    };
    (job, answer)
}

fn error_of(answer: Answer) -> String {
    let outcome = wait(answer).expect("an answer");
    outcome.err().expect("it fails").to_string()
}

#[test]
fn a_task_that_ends_early_fails_what_waits_and_makes_room_for_another() {
    let queues = Arc::new(Queues::default());
    let (first, taken) = job();
    let (second, waiting) = job();
    let mut turn = queues.add(first).expect("no task yet");
    assert!(queues.add(second).is_none(), "the task has it");
    let group = turn.next_group().unwrap();
    assert_eq!(group.len(), 1, "only batches share a transaction");
    let task = std::thread::spawn(move || {
        let _held = (group, turn);
        panic!("planted");
    });
    assert!(task.join().is_err());
    assert!(wait(taken).is_err(), "its sender is gone");
    assert!(error_of(waiting).contains("nothing of this write was stored"));
    queues.wait_until_empty(Duration::ZERO);
    let (third, answer) = job();
    let mut turn = queues.add(third).expect("a new task is needed");
    drop(turn.next_group().unwrap());
    assert!(wait(answer).is_err());
    // A task that ends in order leaves a later one alone.
    assert!(turn.next_group().is_none());
    let (fourth, mut answer) = job();
    let later = queues.add(fourth).expect("a new task is needed");
    drop(turn);
    assert!(answer.try_recv().is_err(), "not answered yet");
    drop(later);
    assert!(error_of(answer).contains("ended early"));
}

#[test]
fn a_write_after_the_runtime_has_ended_fails_at_once() {
    let runtime = Runtime::new().unwrap();
    let address = Address::of("postgres://mnemon@127.0.0.1:1/none").unwrap();
    let pool = Arc::new(Pool::new(address, runtime.handle().clone()).unwrap());
    let wake = Wake::new(Arc::clone(&pool));
    let writer = Writer::new(pool, runtime.handle().clone(), wake);
    runtime.shutdown_background();
    for id in ["a", "b"] {
        let written = wait(writer.apply(&grant_of("acme"), batch("acme", id, "tea")));
        let error = written.expect_err("the runtime is gone").to_string();
        assert!(
            error.contains("nothing of this write was stored"),
            "{error}"
        );
    }
}

/// Needs the server that `TEST_DATABASE_URL` names; a tenant of its own keeps it apart.
#[test]
fn a_panic_fails_its_batch_and_no_other() {
    let Ok(url) = std::env::var("TEST_DATABASE_URL") else {
        return;
    };
    let store = Postgres::open(&url).unwrap();
    let writer = store.writer.as_ref().unwrap();
    let tenant = format!("panic-{}", std::process::id());
    let grant = grant_of(&tenant);
    let write = |id: &str, content: &str| writer.apply(&grant, batch(&tenant, id, content));
    let (before, defect, after) =
        wait(async { futures::join!(write("a", "tea"), write("b", DEFECT), write("c", "tea")) });
    let error = defect.expect_err("it panics").to_string();
    assert!(
        error.contains("planted") && error.contains("nothing of it was stored"),
        "{error}"
    );
    assert!(before.is_ok() && after.is_ok(), "{before:?} {after:?}");
    // The task goes on, and the failed batch left nothing.
    wait(write("b", "coffee")).unwrap();
    let (tally, erased) = wait(async {
        use mnemon_core::Store as _;
        let tally = store.tally(&grant).await;
        let erase = ["a", "b", "c"].map(|id| Op::Purge {
            id: id.parse().unwrap(),
        });
        (
            tally,
            store.apply(&grant, Batch::from(erase.to_vec())).await,
        )
    });
    assert_eq!(tally.unwrap().records(), 3);
    erased.unwrap();
}
