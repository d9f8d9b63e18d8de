//! Whatever comes in, learning goes on.

use mnemon_core::{Limits, limits};

use super::*;
use crate::memory;

fn plain(tool: Option<&str>, trace: &str) -> Step {
    Step {
        task_type: Some(TASK.to_owned()),
        tool: tool.map(str::to_owned),
        trace_id: Some(trace.to_owned()),
        ..Step::default()
    }
}

fn log(memory: &Memory, ctx: &Ctx, step: Step) {
    wait(
        memory
            .experience()
            .log_step(ctx, &owner("ann", "s1"), step, None),
    )
    .unwrap();
}

#[test]
fn a_step_without_a_tool_is_no_part_of_a_procedure() {
    let (memory, world) = (memory(), world(9301, 20));
    for (run, outcome) in &world.runs {
        log(&memory, &ctx(), plain(None, run.trace.as_ref().unwrap()));
        live(&memory, &[(run.clone(), *outcome)]);
    }
    learn(&memory, &ctx());
    assert!(is(Status::Active, &skill(&memory, &world)));
}

#[test]
fn a_step_without_a_type_of_task_is_skipped_and_counted() {
    let memory = memory();
    let step = Step {
        task_type: None,
        ..plain(Some("look"), "t1")
    };
    log(&memory, &ctx(), step);
    let report = learn(&memory, &ctx());
    assert_eq!((report.steps, report.skipped, report.runs), (1, 1, 0));
}

#[test]
fn a_trace_that_never_ends_is_cut_and_not_learnt_from() {
    let (memory, world) = (memory(), world(9302, 20));
    live(&memory, &world.runs);
    for n in 0..limits::RUN_STEPS * 3 {
        log(&memory, &ctx(), plain(Some("look"), "endless"));
        if n % 50 == 0 {
            learn(&memory, &ctx());
        }
    }
    let later = Ctx {
        now: ctx().now.plus_days(1),
        ..ctx()
    };
    learn(&memory, &later);
    let skill = skill(&memory, &world).unwrap();
    assert_eq!(skill.evidence.status, Status::Active);
    let all = skill.evidence.with.of + skill.evidence.without.unwrap().of;
    assert_eq!(all, world.runs.len(), "the endless one counts neither way");
}

#[test]
fn too_large_an_output_is_refused_with_its_size_and_a_way_out() {
    let memory = memory();
    for field in ["input", "output"] {
        let huge = json!("x".repeat(10 * 1024 * 1024));
        let mut step = plain(Some("look"), "t1");
        match field {
            "input" => step.input = huge,
            _ => step.output = huge,
        }
        let error = wait(
            memory
                .experience()
                .log_step(&ctx(), &owner("ann", "s1"), step, None),
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.starts_with(&format!("{field}: has 10485762 bytes")),
            "{error}"
        );
        assert!(error.contains("log its beginning"), "{error}");
    }
    assert!(crate::all(&memory).is_empty());
}

#[test]
fn long_and_deep_input_is_bounded_in_what_is_kept_of_it() {
    let memory = memory();
    let mut deep = json!("bottom");
    for _ in 0..60 {
        deep = json!({ "down": deep });
    }
    let wide: Map<String, Value> = (0..2000).map(|n| (format!("k{n:04}"), json!(n))).collect();
    let inputs = [
        deep,
        Value::Object(wide),
        json!("word ".repeat(100_000)),
        json!([1, [2]]),
    ];
    for input in inputs {
        let step = Step {
            input,
            ..plain(Some("look"), "t1")
        };
        log(&memory, &ctx(), step);
    }
    learn(&memory, &ctx());
    let run = crate::all(&memory)
        .into_iter()
        .find(|r| r.tags.iter().any(|tag| tag.starts_with("run:")));
    let kept = serde_json::to_string(&run.unwrap()).unwrap();
    assert!(kept.len() < 64 * 1024, "{} bytes", kept.len());
}

#[test]
fn a_clock_that_goes_backwards_changes_neither_order_nor_outcome() {
    let world = world(9303, 20);
    let (forwards, backwards) = (memory(), memory());
    live(&forwards, &world.runs);
    let mut now = ctx().now.plus_days(1);
    for (run, outcome) in &world.runs {
        for (n, act) in run.acts.iter().enumerate() {
            now = now.plus_millis(-500);
            let mut step = step_of(run, act);
            if n + 1 == run.acts.len() {
                step.metadata
                    .insert("outcome".to_owned(), json!(outcome.as_str()));
            }
            log(&backwards, &Ctx { now, ..ctx() }, step);
        }
    }
    let later = Ctx {
        now: ctx().now.plus_days(2),
        ..ctx()
    };
    learn(&forwards, &later);
    learn(&backwards, &later);
    let (one, other) = (
        skill(&forwards, &world).unwrap(),
        skill(&backwards, &world).unwrap(),
    );
    assert_eq!(one.body, other.body);
    assert_eq!(one.evidence.with, other.evidence.with);
}

#[test]
fn a_clock_that_is_ahead_keeps_no_run_open_for_ever() {
    let memory = memory();
    let ahead = Ctx {
        now: ctx().now.plus_days(3650 / 2),
        ..ctx()
    };
    log(&memory, &ahead, plain(Some("look"), "t1"));
    learn(&memory, &ctx());
    let waiting = wait(memory.learning().status(&ctx())).unwrap().waiting;
    assert!(waiting[0].due <= ctx().now.plus_days(1), "{waiting:?}");
}

#[test]
fn records_that_somebody_spoilt_are_stepped_over() {
    let (memory, world) = (memory(), world(9304, 20));
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    // The books, overwritten by hand with something else.
    for mut record in crate::all(&memory) {
        let book = record.content.is_empty();
        if book && record.kind != mnemon_core::Kind::Skill {
            record.body = Some(json!(["not", "what", "it", "was"]));
            wait(memory.records().update(&ctx(), record)).unwrap();
        }
    }
    // It begins anew: the log is the truth.
    learn(&memory, &ctx());
    let again = skill(&memory, &world).unwrap();
    assert_eq!(again.evidence.status, Status::Active);
}

#[test]
fn more_types_of_task_than_may_wait_are_skipped_and_counted() {
    let memory = memory();
    for n in 0..=Limits::DEFAULT.learn_tasks {
        let step = Step {
            task_type: Some(format!("type-{n}")),
            ..plain(Some("look"), "t1")
        };
        log(&memory, &ctx(), step);
    }
    let report = learn(&memory, &ctx());
    assert_eq!(report.skipped, 1);
    let status = wait(memory.learning().status(&ctx())).unwrap();
    assert_eq!(status.waiting.len(), Limits::DEFAULT.learn_tasks);
}

#[test]
fn only_the_newest_runs_count() {
    let (memory, world) = (memory(), world(9305, 30));
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    assert!(is(Status::Active, &skill(&memory, &world)));
    // Long after, everybody does something else.
    let later = Ctx {
        now: ctx().now.plus_days(30),
        ..ctx()
    };
    for n in 0..limits::LEARN_RUNS {
        let mut step = plain(Some("look"), &format!("later-{n}"));
        step.metadata.insert("outcome".to_owned(), json!("success"));
        log(&memory, &later, step);
    }
    learn(&memory, &later);
    let skill = skill(&memory, &world).unwrap();
    assert_eq!(skill.evidence.status, Status::Retired);
    assert_eq!(skill.evidence.support, 0);
    let why = skill.evidence.retired.unwrap().why;
    assert!(why.contains("none of the last 128 runs"), "{why}");
}
