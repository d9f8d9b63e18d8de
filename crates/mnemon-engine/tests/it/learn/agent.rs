//! Slices, servers, policies, dry runs.

use mnemon_core::{Filter, Kind, Limits, Scan};
use mnemon_engine::learn::LearnReport;

use super::*;
use crate::memory;

#[test]
fn a_skill_is_learnt_and_told_with_its_evidence() {
    let (memory, world) = (memory(), world(9001, 20));
    live(&memory, &world.runs);
    assert_eq!(told(&memory, "ann"), (0, 0));
    let report = learn(&memory, &ctx());
    let steps: usize = world.runs.iter().map(|(run, _)| run.acts.len()).sum();
    assert_eq!(
        (report.steps, report.skipped, report.tasks),
        (steps as u64, 0, 1)
    );
    assert_eq!(turns(&report, Transition::Activated), 1);
    let skill = skill(&memory, &world).unwrap();
    let evidence = &skill.evidence;
    assert_eq!(evidence.status, Status::Active);
    assert_eq!(evidence.support, skill.runs.len());
    assert!(evidence.support >= 15, "{evidence:?}");
    assert!(evidence.with.rate() > evidence.without.unwrap().rate());
    assert!(evidence.interval.0 > 0.5 && evidence.interval.1 <= 1.0);
    assert!(evidence.last_confirmed.is_some() && evidence.chance < 0.01);
    assert_eq!(told(&memory, "ann").0, 1);
    let LessonBody::Skill(sop) = &skill.body else {
        panic!("no skill");
    };
    for (step, (_, constant)) in sop.tool_sops.iter().zip(&world.truth) {
        for (name, value) in constant {
            let said = format!("{name} = {value}");
            assert!(step.action.contains(&said), "{} lacks {said}", step.action);
        }
    }
}

#[test]
fn learning_again_changes_nothing() {
    let (memory, world) = (memory(), world(9002, 20));
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    let before = crate::all(&memory);
    let again = learn(&memory, &ctx());
    assert_eq!(again, LearnReport::default());
    assert_eq!(crate::all(&memory), before);
}

#[test]
fn small_slices_learn_what_one_large_does() {
    let world = world(9003, 20);
    let (one, many) = (memory(), memory());
    live(&one, &world.runs);
    learn(&one, &ctx());
    // A slice after every few runs, and each slice smaller than a run.
    for runs in world.runs.chunks(3) {
        live(&many, runs);
        for _ in 0..20 {
            wait(many.learning().slice(&ctx(), 5)).unwrap();
        }
    }
    learn(&many, &ctx());
    let (one, many) = (skill(&one, &world).unwrap(), skill(&many, &world).unwrap());
    assert_eq!(one.body, many.body);
    assert_eq!(one.evidence, many.evidence);
    assert_eq!(one.runs, many.runs);
}

#[test]
fn several_servers_learn_everything_once() {
    let world = world(9004, 20);
    let store = Arc::new(Ram::new());
    let servers: Vec<Memory> = (0..3)
        .map(|n| Memory::builder(store.clone(), Ids::new(n)).build())
        .collect();
    live(&servers[0], &world.runs);
    // All at the same time: their reads and writes meet at every await.
    let mut rounds = 0;
    loop {
        let now = ctx();
        let slices = servers
            .iter()
            .map(|server| async { server.learning().slice(&now, 7).await.unwrap() });
        let reports = wait(futures::future::join_all(slices));
        rounds += 1;
        assert!(rounds < 1000, "it never ends");
        if reports.iter().all(|report| !report.more) {
            break;
        }
    }
    let alone = memory();
    live(&alone, &world.runs);
    learn(&alone, &ctx());
    let (one, several) = (
        skill(&alone, &world).unwrap(),
        skill(&servers[0], &world).unwrap(),
    );
    assert_eq!(one.evidence, several.evidence);
    let status = wait(servers[1].learning().status(&ctx())).unwrap();
    let steps: usize = world.runs.iter().map(|(run, _)| run.acts.len()).sum();
    assert_eq!(status.steps, steps as u64, "each step was read once");
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let (memory, world) = (memory(), world(9005, 20));
    live(&memory, &world.runs);
    let before = crate::all(&memory);
    let dry = wait(memory.learning().dry_run(&ctx(), 10_000)).unwrap();
    assert!(turns(&dry, Transition::Activated) >= 1);
    assert_eq!(crate::all(&memory), before);
    let real = learn(&memory, &ctx());
    assert_eq!(real.learnt, dry.learnt);
}

#[test]
fn a_run_counts_when_it_has_been_silent_for_a_while() {
    let (memory, world) = (memory(), world(9006, 20));
    for (run, _) in &world.runs {
        for act in &run.acts {
            let step = step_of(run, act);
            wait(
                memory
                    .experience()
                    .log_step(&ctx(), &owner("ann", "s1"), step, None),
            )
            .unwrap();
        }
    }
    let report = learn(&memory, &ctx());
    assert_eq!((report.tasks, report.learnt.len()), (0, 0));
    let waiting = wait(memory.learning().status(&ctx())).unwrap().waiting;
    assert_eq!(waiting.len(), 1);
    let later = Ctx {
        now: waiting[0].due,
        ..ctx()
    };
    learn(&memory, &later);
    assert!(is(Status::Active, &skill(&memory, &world)));
    let status = wait(memory.learning().status(&later)).unwrap();
    assert_eq!(
        (status.waiting.len(), status.active),
        (0, lessons(&memory).len())
    );
}

#[test]
fn the_policy_decides_what_is_learnt() {
    let world = world(9007, 20);
    for (said, expected) in [
        (&[("learn", "false")][..], None),
        (&[("write_experience", "false")], None),
        (&[("learn_candidate_runs", "50")], None),
        (&[("learn_complexity", "6")], None),
        (&[("learn_active_runs", "100")], Some(Status::Candidate)),
        (&[("learn_approval", "true")], Some(Status::Candidate)),
        (&[], Some(Status::Active)),
    ] {
        let memory = with_policy(Arc::new(Ram::new()), said);
        live(&memory, &world.runs);
        learn(&memory, &ctx());
        let found = skill(&memory, &world).map(|skill| skill.evidence.status);
        assert_eq!(found, expected, "{said:?}");
        let shown = usize::from(expected == Some(Status::Active));
        assert_eq!(told(&memory, "ann").0, shown, "{said:?}");
    }
}

#[test]
fn rules_come_with_the_skills_of_a_task() {
    let memory = memory();
    let world = Maker::new(9008).with_cause(100);
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    let (tool, cause) = world.cause.unwrap();
    let found = lessons(&memory)
        .into_iter()
        .find_map(|lesson| match lesson.body {
            LessonBody::Rule(rule) if rule.tool == tool => Some((rule, lesson.evidence)),
            _ => None,
        });
    let (rule, evidence) = found.unwrap();
    assert_eq!(rule.condition, cause);
    assert!(evidence.with.rate() > evidence.without.unwrap().rate());
    assert!(
        rule.text
            .contains(&format!("{} of {}", evidence.with.good, evidence.with.of))
    );
    assert!(told(&memory, "ann").1 >= 1);
    assert_eq!(told(&memory, "bob").1, 0, "what Ann lived through is hers");
}

#[test]
fn what_keeps_the_books_is_found_by_nobody() {
    let (memory, world) = (memory(), world(9009, 20));
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    let filter = Filter {
        kinds: vec![Kind::Session],
        ..Filter::all_of_tenant()
    };
    let books = wait(memory.records().list(&ctx(), &Scan::new(filter, 1000))).unwrap();
    assert!(!books.records.is_empty());
    assert!(books.records.iter().all(|record| record.content.is_empty()));
}

#[test]
fn runs_that_were_kept_as_objects_are_still_read() {
    let (memory, plain, world) = (memory(), crate::memory(), world(9010, 20));
    let (first, second) = world.runs.split_at(world.runs.len() / 2);
    for memory in [&memory, &plain] {
        live(memory, first);
        learn(memory, &ctx());
    }
    let filter = Filter {
        kinds: vec![Kind::Session],
        ..Filter::all_of_tenant()
    };
    let books = wait(memory.records().list(&ctx(), &Scan::new(filter, 1000))).unwrap();
    let mut changed = 0;
    for mut record in books.records {
        if let Some(Value::String(text)) = &record.body {
            record.body = Some(serde_json::from_str(text).unwrap());
            wait(memory.records().update(&ctx(), record)).unwrap();
            changed += 1;
        }
    }
    assert_eq!(changed, first.len());
    for memory in [&memory, &plain] {
        live(memory, second);
        learn(memory, &ctx());
    }
    let (one, other) = (
        skill(&memory, &world).unwrap(),
        skill(&plain, &world).unwrap(),
    );
    assert_eq!((one.body, one.evidence), (other.body, other.evidence));
}

/// Many short runs of a type of task, in as few words as possible.
fn hurry(memory: &Memory, task_type: &str, steps: usize) {
    for number in 0..steps {
        let mut step = Step {
            task_type: Some(task_type.to_owned()),
            tool: Some("ping".to_owned()),
            trace_id: Some(format!("{task_type}-{number}")),
            ..Step::default()
        };
        step.metadata.insert("outcome".to_owned(), json!("success"));
        let owner = owner("ann", "s1");
        wait(memory.experience().log_step(&ctx(), &owner, step, None)).unwrap();
    }
}

#[test]
fn a_long_log_is_read_through_before_it_is_looked_at() {
    let memory = memory();
    hurry(&memory, "long", Limits::DEFAULT.learn_fresh);
    hurry(&memory, "short", 30);
    let slice = |steps: usize| wait(memory.learning().slice(&ctx(), steps)).unwrap();
    let first = slice(Limits::DEFAULT.learn_fresh - 1);
    assert_eq!(
        (first.tasks, first.more),
        (0, true),
        "little is new, and there is more to read"
    );
    let second = slice(10);
    assert_eq!(
        (second.tasks, second.more),
        (1, true),
        "much is new of one, and it does not wait"
    );
    let third = slice(10);
    assert_eq!((third.tasks, third.more), (0, true));
    let last = slice(100);
    assert_eq!((last.tasks, last.more), (1, false), "all is read");
    assert_eq!(slice(100).tasks, 0);
}

#[test]
fn a_type_of_task_may_be_called_after_a_secret() {
    let memory = memory();
    hurry(&memory, "reset_password", 30);
    hurry(&memory, "rotate_api_key", 30);
    let first = wait(memory.learning().slice(&ctx(), 50)).unwrap();
    assert_eq!((first.steps, first.more), (50, true));
    // What keeps the books is what it was: nothing is read twice, and both are looked at.
    let second = wait(memory.learning().slice(&ctx(), 50)).unwrap();
    assert_eq!((second.steps, second.tasks), (10, 2));
    assert_eq!(learn(&memory, &ctx()), LearnReport::default());
}

#[test]
fn a_lesson_of_two_types_of_task_is_written_once() {
    let (memory, world) = (memory(), world(9021, 20));
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    let id = skill(&memory, &world).unwrap().id;
    let get = wait(memory.records().get(&ctx(), std::slice::from_ref(&id))).unwrap();
    let mut record = get[0].clone().unwrap();
    record.tags.push("task:other".to_owned());
    wait(memory.records().update(&ctx(), record)).unwrap();
    live(&memory, &world.runs);
    hurry(&memory, "other", 30);
    // Nobody else writes, so nothing is refused, and nothing is left.
    learn(&memory, &ctx());
    assert_eq!(learn(&memory, &ctx()), LearnReport::default());
}

#[test]
fn those_that_wait_longest_come_first() {
    let memory = memory();
    let later = Ctx {
        now: ctx().now.plus_millis(60_000),
        ..ctx()
    };
    // More types than one slice looks at; the last ones by name have waited longest.
    for number in (0..30).rev() {
        let now = if number >= 20 { ctx() } else { later.clone() };
        let mut step = Step {
            task_type: Some(format!("task{number:02}")),
            tool: Some("ping".to_owned()),
            ..Step::default()
        };
        step.metadata.insert("outcome".to_owned(), json!("success"));
        wait(
            memory
                .experience()
                .log_step(&now, &owner("ann", "s1"), step, None),
        )
        .unwrap();
    }
    let report = wait(memory.learning().slice(&later, 1000)).unwrap();
    assert_eq!((report.tasks, report.more), (20, true));
    let waiting = wait(memory.learning().status(&later)).unwrap().waiting;
    let waiting: Vec<String> = waiting.into_iter().map(|one| one.task_type).collect();
    let expected: Vec<String> = (10..20).map(|number| format!("task{number:02}")).collect();
    assert_eq!(waiting, expected);
}
