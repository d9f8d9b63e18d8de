use std::cell::Cell;
use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{ErrorKind, Ids, Role, Scope, Time, limits};
use mnemon_engine::{Ended, LoggedStep, Memory, Node, NodeOutcome, Policies, Whom};
use mnemon_testkit::faults::Flaky;
use serde_json::json;

use super::{at, nobody, query, say};
use crate::{all, ctx, memory, wait};

fn node() -> Node {
    let mut asked = query(&[Scope::Dialog]);
    asked.node_id = Some("plan".to_owned());
    Node {
        input: json!({"wish": "tea"}),
        trace_id: Some("t1".to_owned()),
        ..Node::new(asked)
    }
}

/// A clock that goes 250 ms further each time it is looked at.
fn clock() -> impl Fn() -> Time {
    let looks = Cell::new(0);
    move || {
        looks.set(looks.get() + 1);
        at(250 * looks.get()).now
    }
}

fn steps(memory: &Memory) -> Vec<LoggedStep> {
    let experience = memory.experience();
    let failed = wait(experience.get_failures(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        &nobody(),
        Some("shop"),
        9,
    ))
    .unwrap();
    let cancelled = wait(experience.get_cancelled(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        &nobody(),
        Some("shop"),
        9,
    ))
    .unwrap();
    let done = wait(experience.get_successful_traces(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        &nobody(),
        Some("shop"),
        9,
    ));
    let done = done.unwrap().into_iter().flat_map(|trace| trace.steps);
    failed.into_iter().chain(cancelled).chain(done).collect()
}

/// A server runs them on whichever thread is free.
#[test]
fn the_futures_can_be_sent_between_threads() {
    fn sent<T: Send>(_future: T) {}
    let (memory, now, node) = (memory(), ctx(), node());
    let event = super::event(Scope::Profile, json!({"a": 1}));
    sent(memory.read(&now, &node.query));
    sent(memory.write(&now, &event));
    sent(memory.delete_session(&now, "ann", "s1", false));
    sent(memory.after(&now, &node, NodeOutcome::default()));
    let clock = || ctx().now;
    sent(memory.around(&now, clock, &node, |_| async { Ok::<_, String>(1) }));
}

#[test]
fn before_reads_and_after_writes() {
    let memory = memory();
    say(&memory, 0, Role::User, "hello");
    let known = wait(memory.before(&ctx(), &node())).unwrap();
    assert!(known[0].payload().is_some());
    let outcome = NodeOutcome {
        output: json!({"plan": []}),
        latency_ms: Some(12),
        cost: Some(0.25),
        ..NodeOutcome::default()
    };
    wait(memory.after(&ctx(), &node(), outcome)).unwrap();
    let steps = steps(&memory);
    assert_eq!(steps.len(), 1);
    let step = &steps[0].step;
    assert_eq!(
        (step.tool.as_deref(), step.cost),
        (Some("plan"), Some(0.25))
    );
    assert_eq!(
        (step.latency_ms, &step.input),
        (Some(12), &json!({"wish": "tea"}))
    );
}

#[test]
fn around_reads_runs_measures_and_writes() {
    let memory = memory();
    say(&memory, 0, Role::User, "hello");
    let ran = wait(memory.around(&ctx(), clock(), &node(), |known| async move {
        assert!(known[0].payload().is_some());
        Ok::<_, String>(json!({"plan": ["search", "buy"]}))
    }));
    let ran = ran.unwrap();
    assert_eq!(ran.result.unwrap()["plan"][1], "buy");
    let steps = steps(&memory);
    assert_eq!(steps.len(), 1);
    assert_eq!(Some(&steps[0].id), ran.step.unwrap().as_ref());
    assert_eq!(steps[0].ended, Ended::Done);
    assert_eq!(steps[0].step.latency_ms, Some(250));
    assert_eq!(steps[0].step.output["plan"][0], "search");
    let owner = all(&memory)
        .into_iter()
        .find(|r| r.id == steps[0].id)
        .unwrap()
        .owner;
    assert_eq!(
        (owner.agent.as_deref(), owner.node.as_deref()),
        (Some("planner"), Some("plan"))
    );
}

#[test]
fn a_node_that_fails_is_written_too() {
    let memory = memory();
    let ran = wait(memory.around(&ctx(), clock(), &node(), |_| async {
        Err::<(), _>("no money")
    }));
    let ran = ran.unwrap();
    assert_eq!(ran.result.unwrap_err(), "no money");
    let steps = steps(&memory);
    assert_eq!((steps.len(), steps[0].ended), (1, Ended::Failed));
    assert_eq!(steps[0].step.error.as_deref(), Some("no money"));
    assert_eq!(steps[0].step.latency_ms, Some(250));
}

/// The future is dropped while the node is waiting for something that never comes.
#[test]
fn a_node_that_is_cancelled_is_written_too() {
    let memory = memory();
    let now = ctx();
    let node = node();
    let never = memory.around(&now, clock(), &node, |_| {
        std::future::pending::<Result<(), String>>()
    });
    {
        let mut never = std::pin::pin!(never);
        let waker = futures::task::noop_waker();
        let mut context = std::task::Context::from_waker(&waker);
        for _ in 0..10 {
            assert!(never.as_mut().poll(&mut context).is_pending());
        }
    }
    let steps = steps(&memory);
    assert_eq!((steps.len(), steps[0].ended), (1, Ended::Cancelled));
    assert_eq!(steps[0].step.input, json!({"wish": "tea"}));
}

#[test]
fn a_policy_that_wants_no_experience_gets_none() {
    let mut policies = Policies::default();
    policies
        .set(Whom::flow("buyer"), "write_experience", "false")
        .unwrap();
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .policies(policies)
        .build();
    let ran = wait(memory.around(&ctx(), clock(), &node(), |_| async { Ok::<_, String>(1) }));
    let ran = ran.unwrap();
    assert_eq!((ran.result, ran.step.unwrap()), (Ok(1), None));
    assert!(all(&memory).is_empty());
}

#[test]
fn a_memory_that_fails_does_not_cost_the_work() {
    let broken = Arc::new(Flaky::new(Ram::new(), 1, 100));
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .experience(broken)
        .build();
    let ran = wait(memory.around(&ctx(), clock(), &node(), |_| async { Ok::<_, String>(1) }));
    let ran = ran.unwrap();
    assert_eq!(ran.result, Ok(1));
    assert_eq!(ran.step.unwrap_err().kind(), ErrorKind::Unavailable);
    let mut wrong = node();
    wrong.query.user_id.clear();
    let not_run = wait(memory.around(&ctx(), clock(), &wrong, |_| async { Ok::<_, String>(1) }));
    assert_eq!(not_run.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_huge_output_is_cut() {
    let memory = memory();
    let huge = "ễ".repeat(limits::STEP_OUTPUT_BYTES);
    let ran = wait(memory.around(&ctx(), clock(), &node(), |_| async {
        Ok::<_, String>(huge.clone())
    }));
    assert_eq!(ran.unwrap().result.unwrap(), huge);
    let output = &steps(&memory)[0].step.output;
    assert_eq!(output["cut"], true);
    assert!(output["head"].as_str().unwrap().starts_with("\"ễễ"));
    assert!(output.to_string().len() <= limits::STEP_OUTPUT_BYTES);
}
