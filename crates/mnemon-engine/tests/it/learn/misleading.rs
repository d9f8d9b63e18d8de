//! Worlds in which it is easy to learn something misleading. Nothing that leads astray may be
//! active in any of them; no skill at all is better than one that lacks a step.

use mnemon_testkit::worlds::{HardWorld, Trap, Verdict};

use super::*;
use crate::memory;

/// Worlds of each sort.
const WORLDS: u64 = 20;

/// What agents are told about, after all of this world was lived through.
fn active(memory: &Memory) -> (Vec<Vec<String>>, Vec<(String, String)>) {
    let (mut skills, mut rules) = (Vec::new(), Vec::new());
    for lesson in lessons(memory) {
        if lesson.evidence.status != Status::Active {
            continue;
        }
        match lesson.body {
            LessonBody::Skill(sop) => {
                let tools = sop.tool_sops.into_iter().map(|step| step.tool);
                skills.push(tools.collect());
            }
            LessonBody::Rule(rule) => rules.push((rule.tool, rule.text)),
        }
    }
    (skills, rules)
}

fn judged(world: &HardWorld, memory: &Memory) -> Verdict {
    let (skills, rules) = active(memory);
    world.judge(&skills, &rules)
}

/// Of so many worlds with this trap: how many are exact, how many silent, and what misleads in the
/// others.
fn tally(trap: Trap, seeds: std::ops::Range<u64>) -> (usize, usize, Vec<String>) {
    let (mut exact, mut silent, mut misleading) = (0, 0, Vec::new());
    for seed in seeds {
        let world = Maker::new(seed).with_trap(trap);
        let memory = memory();
        live(&memory, &world.runs);
        learn(&memory, &ctx());
        match judged(&world, &memory) {
            Verdict::Exact => exact += 1,
            Verdict::Silent => silent += 1,
            Verdict::Misleading(found) => {
                misleading.push(format!("seed {seed}: {found}; true: {:?}", world.orders));
            }
        }
    }
    (exact, silent, misleading)
}

/// Nothing misleads in any of the worlds, and in so many the true procedure is told.
fn check(trap: Trap, from: u64, least_exact: usize) {
    let (exact, silent, misleading) = tally(trap, from..from + WORLDS);
    assert_eq!(misleading, Vec::<String>::new(), "{trap:?}");
    assert!(
        exact >= least_exact,
        "{trap:?}: {exact} exact, {silent} silent"
    );
}

#[test]
fn a_step_at_which_runs_die_is_not_left_out() {
    check(Trap::DiesAtAStep(30), 20_000, 10);
    check(Trap::DiesAtAStep(40), 20_100, 0);
    check(Trap::DiesAtAStep(50), 20_200, 0);
}

#[test]
fn a_step_that_works_when_tried_again_is_not_avoided() {
    check(Trap::WorksOnRetry(25), 20_300, 19);
    check(Trap::WorksOnRetry(35), 20_400, 19);
    check(Trap::WorksOnRetry(50), 20_500, 19);
}

#[test]
fn steps_in_either_order_are_both_told() {
    check(Trap::EitherOrder(50), 20_600, 15);
    check(Trap::EitherOrder(65), 20_700, 15);
    check(Trap::EitherOrder(80), 20_800, 19);
}

#[test]
fn a_replaced_tool_is_not_told_beside_the_new_one() {
    check(Trap::Replaced(5), 20_900, 0);
    check(Trap::Replaced(10), 21_000, 15);
    check(Trap::Replaced(20), 21_100, 15);
    check(Trap::Replaced(50), 21_200, 15);
    check(Trap::Replaced(85), 21_300, 15);
}

#[test]
fn a_broken_tool_is_not_told_beside_the_new_one() {
    check(Trap::Broken(10), 21_400, 15);
    check(Trap::Broken(30), 21_500, 15);
}

#[test]
fn helper_calls_are_no_steps() {
    check(Trap::Chatty, 21_600, 10);
}

/// The search for patterns works up to its limit in each of these worlds, so a few must do; with
/// `MNEMON_TEST_FULL=1` they are as many as of the other sorts.
#[test]
fn very_many_helper_calls_are_no_steps() {
    let worlds = mnemon_testkit::talks::cases(2, WORLDS).min(WORLDS);
    let (_, _, misleading) = tally(Trap::VeryChatty, 21_700..21_700 + worlds);
    assert_eq!(misleading, Vec::<String>::new());
}

#[test]
fn a_tool_that_most_successes_need_is_not_avoided() {
    check(Trap::AboveALimit, 21_800, 15);
    check(Trap::WrongWay(40), 21_900, 15);
}

/// The world of the finding: forty runs with tests and four without succeed, and thirty-six end at
/// tests that fail.
fn tests_fail_often() -> Vec<(Run, Outcome)> {
    let mut runs = Vec::new();
    for n in 0..80 {
        let (tools, outcome): (&[&str], Outcome) = match n {
            n if n % 20 == 19 => (&["clone", "build", "push"], Outcome::Success),
            n if n % 2 == 0 => (&["clone", "run_tests", "build", "push"], Outcome::Success),
            _ => (&["clone", "run_tests"], Outcome::Failure),
        };
        let mut run = Run::new(format!("run-{n}").parse().unwrap(), TASK, ctx().now);
        run.trace = Some(format!("trace-{n}"));
        for (at, tool) in tools.iter().enumerate() {
            let failed = outcome == Outcome::Failure && at == 1;
            let ended = if failed { Ended::Failed } else { Ended::Done };
            let id = format!("step-{n}-{at}").parse().unwrap();
            let mut act = Act::new(id, Some(tool), ended);
            act.correction = (n == 0 && at == 0).then(|| "run the tests first".to_owned());
            run.add(act, None, ctx().now);
        }
        runs.push((run, outcome));
    }
    runs
}

#[test]
fn what_was_found_and_not_kept_is_listed_with_its_reason() {
    let memory = memory();
    live(&memory, &tests_fail_often());
    let dry = wait(memory.learning().dry_run(&ctx(), 10_000)).unwrap();
    let report = learn(&memory, &ctx());
    assert_eq!(report.not_kept, dry.not_kept);
    let (skills, _) = active(&memory);
    assert_eq!(skills, Vec::<Vec<String>>::new());
    let all: Vec<String> = report
        .not_kept
        .iter()
        .map(|one| format!("{}: {}: {}", one.task_type, one.found, one.why))
        .collect();
    let expected = [
        "ship_parcel: a procedure of 4 steps (clone → run_tests → build → push): unreliable: 40 of \
         76 runs that followed it succeeded, 60 % are needed",
        "ship_parcel: a procedure of 3 steps (clone → build → push): incomplete: lacks run_tests, \
         which 40 of 44 successful runs contain",
    ];
    assert_eq!(all, expected);
    let status = wait(memory.learning().status(&ctx())).unwrap();
    assert_eq!(status.not_kept, report.not_kept);
    // It goes with the runs that it was found in.
    wait(memory.delete_session(&ctx(), "ann", "s1", true)).unwrap();
    let status = wait(memory.learning().status(&ctx())).unwrap();
    assert_eq!(status.not_kept, []);
}

#[test]
fn what_goes_right_by_itself_is_said_to_be_too_easy() {
    let memory = memory();
    let mut runs = tests_fail_often();
    runs.retain(|(_, outcome)| *outcome == Outcome::Success);
    for (run, _) in &mut runs {
        run.acts.iter_mut().for_each(|act| act.correction = None);
    }
    live(&memory, &runs);
    let report = learn(&memory, &ctx());
    assert_eq!(report.learnt, []);
    let [easy] = &report.not_kept[..] else {
        panic!("{:?}", report.not_kept);
    };
    assert!(easy.found.contains("a procedure of 4 steps"), "{easy:?}");
    assert!(
        easy.why.starts_with("too easy: 0 of 2 complexity points"),
        "{easy:?}"
    );
}

/// A skill without the tests, as version 0 of the diary had it learnt.
fn learnt_before(memory: &Memory) -> mnemon_core::Id {
    let id: mnemon_core::Id = "learnt-before".parse().unwrap();
    let steps = ["clone", "build", "push"].map(|tool| json!({"tool": tool, "action": "call it"}));
    let rate = json!({"good": 44, "of": 44});
    let evidence = json!({
        "status": "active", "support": 44, "with": rate, "interval": [0.9, 1.0],
    });
    let draft = mnemon_engine::Draft {
        id: Some(id.clone()),
        kind: Some(mnemon_core::Kind::Skill),
        scope: Some(Scope::Procedural),
        owner: Owner {
            user: Some("ann".to_owned()),
            ..Owner::default()
        },
        body: Some(json!({"use_when": "ship parcel", "tool_sops": steps, "task_type": TASK})),
        tags: vec![format!("task:{TASK}"), "status:active".to_owned()],
        metadata: [("evidence".to_owned(), evidence)].into_iter().collect(),
        ..mnemon_engine::Draft::note("ship parcel")
    };
    wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
    id
}

#[test]
fn what_an_earlier_version_learnt_is_judged_again() {
    let memory = memory();
    live(&memory, &tests_fail_often());
    learn(&memory, &ctx());
    let id = learnt_before(&memory);
    assert_eq!(told(&memory, "ann").0, 1);
    // Nothing is due, and the diary is of this version.
    assert_eq!(learn(&memory, &ctx()).tasks, 0);
    let is_diary = |record: &mnemon_core::Record| {
        let body = record.body.as_ref().and_then(Value::as_object);
        body.is_some_and(|body| body.contains_key("method"))
    };
    let mut diary = crate::all(&memory).into_iter().find(is_diary).unwrap();
    diary
        .body
        .as_mut()
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("method");
    wait(memory.records().update(&ctx(), diary)).unwrap();
    learn(&memory, &ctx());
    let lesson = wait(memory.learning().lesson(&ctx(), &id)).unwrap();
    assert_eq!(lesson.evidence.status, Status::Candidate);
    let why = lesson.evidence.held.unwrap();
    let lacks = "incomplete: lacks run_tests, which 40 of 44 successful runs contain";
    assert_eq!(why, lacks);
    let with = lesson.evidence.with;
    assert_eq!(
        (with.good, with.of),
        (44, 80),
        "runs that died at the tests count"
    );
    assert_eq!(told(&memory, "ann").0, 0);
}
