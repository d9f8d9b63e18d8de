use mnemon_core::{ErrorKind, Kind, Scope, StoreError};
use mnemon_engine::{Error, Payload, Place, Task, TaskStatus, TaskStep};
use serde_json::json;

use super::{PLACE, event, map, payload, read, write};
use crate::{all, ctx, memory, wait};

#[test]
fn a_stale_save_is_a_conflict_that_names_the_version() {
    let memory = memory();
    let state = memory.state();
    let save = |value: i64, expected| {
        let saved = map(json!({"n": value}));
        wait(state.save_state(&ctx(), PLACE, saved, expected, None))
    };
    assert_eq!(wait(state.get_state(&ctx(), PLACE)).unwrap(), None);
    save(1, Some(0)).unwrap();
    let seen = wait(state.get_state(&ctx(), PLACE)).unwrap().unwrap();
    assert_eq!((seen.version, &seen.state["n"]), (1, &json!(1)));
    save(2, Some(1)).unwrap();
    let stale = save(3, Some(1)).unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Conflict);
    assert!(
        matches!(
            &stale,
            Error::Store(StoreError::Conflict {
                current: Some(2),
                ..
            })
        ),
        "{stale}"
    );
    assert!(save(3, Some(0)).is_err(), "there is one already");
    save(3, None).unwrap();
    let now = wait(state.get_state(&ctx(), PLACE)).unwrap().unwrap();
    assert_eq!((now.version, &now.state["n"]), (3, &json!(3)));
}

#[test]
fn every_flow_session_and_user_has_its_own() {
    let memory = memory();
    let state = memory.state();
    let places = [
        PLACE,
        Place {
            flow: None,
            ..PLACE
        },
        Place {
            session: "s2",
            ..PLACE
        },
        Place {
            user: "bob",
            ..PLACE
        },
    ];
    for (n, place) in places.iter().enumerate() {
        wait(state.save_state(&ctx(), *place, map(json!({"n": n})), Some(0), None)).unwrap();
    }
    for (n, place) in places.iter().enumerate() {
        let saved = wait(state.get_state(&ctx(), *place)).unwrap().unwrap();
        assert_eq!(saved.state["n"], n);
    }
}

#[test]
fn tasks_say_what_can_start() {
    let memory = memory();
    let state = memory.state();
    let tasks = vec![Task::new("search"), Task::new("buy").after(&["search"])];
    wait(state.save_tasks(&ctx(), PLACE, tasks, None)).unwrap();
    let startable = || {
        let tasks = wait(state.startable(&ctx(), PLACE)).unwrap();
        tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(startable(), ["search"]);
    let log = |task: &str, step: &str, status, error: Option<&str>| {
        let step = TaskStep {
            task_id: task.to_owned(),
            step: step.to_owned(),
            status,
            error: error.map(str::to_owned),
        };
        wait(state.log_task_step(&ctx(), PLACE, &step, None)).unwrap();
    };
    log("search", "ask the shop", TaskStatus::Running, None);
    assert!(startable().is_empty());
    log("search", "ask the shop", TaskStatus::Done, None);
    assert_eq!(startable(), ["buy"]);
    log("buy", "pay", TaskStatus::Failed, Some("no money"));
    log("extra", "look around", TaskStatus::Running, None);
    let list = wait(state.get_tasks(&ctx(), PLACE)).unwrap();
    assert_eq!(list.tasks.len(), 3);
    assert_eq!(list.tasks[1].error.as_deref(), Some("no money"));
    assert_eq!(list.tasks[1].depends_on, ["search"]);
    let steps = all(&memory).into_iter().filter(|r| r.kind == Kind::Event);
    assert_eq!(steps.count(), 4);
    let circle = vec![Task::new("search").after(&["buy"])];
    let refused = wait(state.save_tasks(&ctx(), PLACE, circle, None)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("cycle"), "{refused}");
    assert_eq!(wait(state.get_tasks(&ctx(), PLACE)).unwrap(), list);
}

#[test]
fn the_facade_writes_and_reads_all_of_it() {
    let memory = memory();
    write(&memory, Scope::State, json!({"state": {"cart": 2}})).unwrap();
    let tasks = json!({"tasks": [{"id": "a"}, {"id": "b", "depends_on": ["a"]}]});
    write(&memory, Scope::State, tasks).unwrap();
    let step = json!({"task_id": "a", "step": "one", "status": "done"});
    write(&memory, Scope::State, step).unwrap();
    let item = read(&memory, Scope::State);
    let Payload::State(held) = payload(&item) else {
        panic!("{item:?}");
    };
    assert_eq!((&held.state["cart"], held.version), (&json!(2), 1));
    assert_eq!(held.startable, ["b"]);
    let mut stale = event(Scope::State, json!({"state": {"cart": 3}}));
    stale.meta = map(json!({"expected_version": 0}));
    let refused = wait(memory.write(&ctx(), &stale)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

#[test]
fn writers_at_the_same_time_lose_no_task() {
    let memory = memory();
    let writes = (0..8).map(|n| {
        let tasks = vec![Task::new(format!("t{n}"))];
        let memory = &memory;
        async move { memory.state().save_tasks(&ctx(), PLACE, tasks, None).await }
    });
    for done in wait(futures::future::join_all(writes)) {
        done.unwrap();
    }
    assert_eq!(
        wait(memory.state().get_tasks(&ctx(), PLACE))
            .unwrap()
            .tasks
            .len(),
        8
    );
}
