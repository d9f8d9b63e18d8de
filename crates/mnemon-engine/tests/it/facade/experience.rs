use mnemon_core::{ErrorKind, Limits, Owner, Scope};
use mnemon_engine::{Ended, LIMIT_STEPS, Memory, Payload, Step, Trace};
use serde_json::json;

use super::{ann, at, event, map, nobody, payload, read, write};
use crate::{ctx, memory, wait};

fn step(task: &str, tool: &str, trace: Option<&str>, error: Option<&str>) -> Step {
    Step {
        task_type: Some(task.to_owned()),
        tool: Some(tool.to_owned()),
        trace_id: trace.map(str::to_owned),
        error: error.map(str::to_owned),
        ..Step::default()
    }
}

fn log(memory: &Memory, ms: i64, step: Step) {
    wait(memory.experience().log_step(&at(ms), &ann(), step, None)).unwrap();
}

fn traces(memory: &Memory, task: Option<&str>, limit: usize) -> Vec<Trace> {
    let found = wait(memory.experience().get_successful_traces(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        &nobody(),
        task,
        limit,
    ));
    found.unwrap()
}

#[test]
fn a_step_comes_back_with_all_it_carries() {
    let memory = memory();
    let mut told = event(
        Scope::Experience,
        json!({
            "task_type": "call_external_api", "tool_name": "HttpRequestTool",
            "input": {"url": "x"}, "output": null, "error": "timeout", "success": false,
            "latency_ms": 1200, "cost": 0.5,
        }),
    );
    told.meta = map(json!({"trace_id": "t1", "attempt": 2}));
    wait(memory.write(&ctx(), &told)).unwrap();
    let failures = wait(memory.experience().get_failures(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        &nobody(),
        Some("call_external_api"),
        LIMIT_STEPS,
    ));
    let failures = failures.unwrap();
    let shown = serde_json::to_value(&failures[0]).unwrap();
    for (field, value) in [
        ("ended", json!("failed")),
        ("tool", json!("HttpRequestTool")),
        ("input", json!({"url": "x"})),
        ("error", json!("timeout")),
        ("success", json!(false)),
        ("latency_ms", json!(1200)),
        ("cost", json!(0.5)),
        ("trace_id", json!("t1")),
        ("metadata", json!({"attempt": 2})),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
}

#[test]
fn failures_are_those_of_the_task_newest_first() {
    let memory = memory();
    for n in 0..5 {
        log(
            &memory,
            n,
            step("build", &format!("b{n}"), None, Some("broke")),
        );
    }
    log(&memory, 5, step("build", "fine", None, None));
    log(&memory, 6, step("Build", "other case", None, Some("broke")));
    log(&memory, 7, step("ship", "sank", None, Some("broke")));
    let failures = |owner: &Owner, task, limit| {
        let found = wait(memory.experience().get_failures(
            &ctx(),
            &mnemon_core::Viewer::Tenant,
            owner,
            task,
            limit,
        ));
        let found = found.unwrap().into_iter();
        found
            .map(|step| step.step.tool.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        failures(&nobody(), Some("build"), 4),
        ["b4", "b3", "b2", "b1"]
    );
    assert_eq!(
        failures(&nobody(), Some("build"), 50),
        ["b4", "b3", "b2", "b1", "b0"]
    );
    assert_eq!(failures(&nobody(), None, 2), ["sank", "other case"]);
    let bob = Owner {
        user: Some("bob".into()),
        ..Owner::default()
    };
    assert!(failures(&bob, Some("build"), 50).is_empty());
    let too_many = wait(memory.experience().get_failures(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        &nobody(),
        None,
        Limits::DEFAULT.steps + 1,
    ));
    assert_eq!(too_many.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_trace_is_successful_if_its_last_step_was() {
    let memory = memory();
    log(&memory, 0, step("build", "plan", Some("good"), None));
    log(&memory, 1, step("ship", "send", Some("good"), None));
    log(&memory, 2, step("build", "plan", Some("bad"), None));
    log(&memory, 3, step("ship", "send", Some("bad"), Some("lost")));
    log(&memory, 4, step("build", "alone", None, None));
    log(&memory, 5, step("build", "plan", Some("GOOD"), None));
    let found = traces(&memory, Some("build"), 50);
    let shown: Vec<(Option<&str>, usize)> = found
        .iter()
        .map(|trace| (trace.trace_id.as_deref(), trace.steps.len()))
        .collect();
    assert_eq!(shown, [(Some("GOOD"), 1), (None, 1), (Some("good"), 2)]);
    assert_eq!(
        found[2].steps[0].step.tool.as_deref(),
        Some("plan"),
        "oldest first"
    );
    assert_eq!(traces(&memory, Some("build"), 1).len(), 1);
    assert_eq!(traces(&memory, Some("ship"), 9).len(), 1);
    assert_eq!(traces(&memory, None, 9).len(), 3);
}

#[test]
fn what_failed_on_the_way_was_overcome_and_what_is_said_counts_most() {
    let memory = memory();
    let said = |trace: &str, error: Option<&str>, outcome: &str| {
        let mut step = step("build", "check", Some(trace), error);
        step.metadata = map(json!({"outcome": outcome}));
        step
    };
    log(
        &memory,
        0,
        step("build", "make", Some("overcome"), Some("broke")),
    );
    log(&memory, 1, step("build", "make", Some("overcome"), None));
    log(&memory, 2, step("build", "make", Some("praised"), None));
    log(&memory, 3, said("praised", Some("late"), "success"));
    log(&memory, 4, step("build", "make", Some("blamed"), None));
    log(&memory, 5, said("blamed", None, "failure"));
    log(&memory, 6, step("build", "make", Some("lost"), None));
    log(
        &memory,
        7,
        step("build", "make", Some("lost"), Some("broke")),
    );
    let found = traces(&memory, Some("build"), 50);
    let shown: Vec<(Option<&str>, usize)> = found
        .iter()
        .map(|trace| (trace.trace_id.as_deref(), trace.steps.len()))
        .collect();
    assert_eq!(shown, [(Some("praised"), 2), (Some("overcome"), 2)]);
}

#[test]
fn an_outcome_that_nobody_knows_is_refused() {
    let memory = memory();
    let log = |outcome: serde_json::Value| {
        let mut step = step("build", "make", Some("t"), None);
        step.metadata = map(json!({ "outcome": outcome }));
        wait(memory.experience().log_step(&ctx(), &ann(), step, None))
    };
    for wrong in [json!("succeeded"), json!("Success"), json!(true), json!("")] {
        let refused = log(wrong).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(
            refused
                .to_string()
                .contains("success, failure or abandoned")
        );
    }
    for right in [
        json!("success"),
        json!("failure"),
        json!("abandoned"),
        json!(null),
    ] {
        log(right).unwrap();
    }
}

#[test]
fn what_was_begun_counts_as_cancelled_until_it_ends() {
    let memory = memory();
    let experience = memory.experience();
    let begun = step("build", "slow", Some("t"), None);
    let id = wait(experience.begin_step(&at(0), &ann(), begun.clone())).unwrap();
    log(&memory, 1, step("build", "quick", Some("t"), None));
    assert!(
        traces(&memory, Some("build"), 9).is_empty(),
        "it is not over"
    );
    let cancelled = || {
        wait(experience.get_cancelled(
            &ctx(),
            &mnemon_core::Viewer::Tenant,
            &nobody(),
            Some("build"),
            9,
        ))
        .unwrap()
    };
    assert_eq!(
        (cancelled()[0].ended, &cancelled()[0].id),
        (Ended::Cancelled, &id)
    );
    wait(experience.finish_step(&at(9), &id, begun.clone())).unwrap();
    assert!(cancelled().is_empty());
    let trace = &traces(&memory, Some("build"), 9)[0];
    assert_eq!(trace.steps[0].id, id, "it keeps its place");
    wait(
        memory
            .records()
            .forget(&ctx(), std::slice::from_ref(&id), None),
    )
    .unwrap();
    assert_eq!(
        wait(experience.finish_step(&at(9), &id, begun)).unwrap(),
        None
    );
}

#[test]
fn a_step_that_contradicts_itself_is_refused() {
    let memory = memory();
    for (bad, expected) in [
        (
            json!({"tool": "t", "success": true, "error": "x"}),
            "success: is true",
        ),
        (json!({"input": 1}), "tool: is missing"),
        (json!({"tool": "t", "cost": -1}), "cost: is -1"),
        (json!({"tool": "t", "latency_ms": -1}), "latency_ms"),
        (json!({"tool": "t", "trace_id": "x".repeat(81)}), "trace_id"),
        (
            json!({"tool": "t", "duration": 1}),
            "unknown field `duration`, expected one of `task_type`",
        ),
    ] {
        let error = write(&memory, Scope::Experience, bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(crate::all(&memory).is_empty());
}

#[test]
fn a_user_reads_their_own_experience() {
    let memory = memory();
    log(&memory, 0, step("shop", "mine", None, Some("broke")));
    let bob = Owner {
        user: Some("bob".into()),
        ..Owner::default()
    };
    let theirs = step("shop", "bob's", None, Some("secret"));
    wait(memory.experience().log_step(&ctx(), &bob, theirs, None)).unwrap();
    let item = read(&memory, Scope::Experience);
    let Payload::Experience { failures, .. } = payload(&item) else {
        panic!("{item:?}");
    };
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].step.tool.as_deref(), Some("mine"));
}
