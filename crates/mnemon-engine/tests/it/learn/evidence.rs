//! What a skill rests on: it grows, it goes, and people have the last word.

use mnemon_core::{Id, Order};
use mnemon_engine::learn::Review;

use super::*;
use crate::memory;

fn later(days: i64) -> Ctx {
    Ctx {
        now: ctx().now.plus_days(days),
        ..ctx()
    }
}

/// A memory with one active skill, and the maker of more of the same world.
fn grown(seed: u64) -> (Memory, World, Maker) {
    let plan = Plan {
        successes: 30,
        noise: 5,
        ..Plan::default()
    };
    let mut maker = Maker::new(seed);
    let world = maker.with_procedure(plan);
    let memory = memory();
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    assert!(is(Status::Active, &skill(&memory, &world)));
    (memory, world, maker)
}

fn live_later(memory: &Memory, when: &Ctx, runs: &[(Run, Outcome)]) {
    for (run, outcome) in runs {
        live_as(memory, when, &owner("ann", "s2"), run, *outcome);
    }
}

#[test]
fn a_candidate_becomes_active_with_more_evidence() {
    let (memory, world) = (memory(), world(9101, 40));
    let successes = world.runs.iter().enumerate();
    let mut successes = successes.filter(|(_, (_, outcome))| *outcome == Outcome::Success);
    let (early, _) = successes.nth(7).unwrap();
    live(&memory, &world.runs[..early]);
    learn(&memory, &ctx());
    let before = skill(&memory, &world);
    live(&memory, &world.runs[early..]);
    learn(&memory, &ctx());
    let after = skill(&memory, &world);
    assert!(!is(Status::Active, &before) && is(Status::Active, &after));
    let support = before.map_or(0, |skill| skill.evidence.support);
    assert!(after.unwrap().evidence.support > support);
}

#[test]
fn a_regression_retires_the_skill_within_eight_runs() {
    for seed in 9110..9114 {
        let (memory, world, mut maker) = grown(seed);
        let bad = maker.after_a_change(&world, 8);
        let mut runs = 0;
        for (n, run) in bad.iter().enumerate() {
            live_later(&memory, &later(1), std::slice::from_ref(run));
            learn(&memory, &later(1));
            if is(Status::Retired, &skill(&memory, &world)) {
                runs = n + 1;
                break;
            }
        }
        assert!((1..=8).contains(&runs), "seed {seed}: {runs}");
        assert_eq!(told(&memory, "ann").0, 0);
        let retired = skill(&memory, &world).unwrap().evidence.retired.unwrap();
        assert!(retired.why.contains("failed in"), "{}", retired.why);
        // The old successes are still there, and do not bring it back.
        learn(&memory, &later(2));
        assert!(is(Status::Retired, &skill(&memory, &world)));
    }
}

#[test]
fn what_works_again_comes_back() {
    let (memory, world, mut maker) = grown(9120);
    live_later(&memory, &later(1), &maker.after_a_change(&world, 8));
    learn(&memory, &later(1));
    assert!(is(Status::Retired, &skill(&memory, &world)));
    let good = world
        .runs
        .iter()
        .filter(|(_, o)| *o == Outcome::Success)
        .take(12);
    for (n, (run, outcome)) in good.enumerate() {
        let again = Run {
            trace: Some(format!("again-{n}")),
            ..run.clone()
        };
        live_later(&memory, &later(3), &[(again, *outcome)]);
    }
    learn(&memory, &later(3));
    assert!(is(Status::Active, &skill(&memory, &world)));
}

#[test]
fn a_pinned_skill_is_not_retired_by_itself() {
    let (memory, world, mut maker) = grown(9130);
    let id = skill(&memory, &world).unwrap().id;
    wait(memory.learning().review(&ctx(), &id, Review::Pin)).unwrap();
    live_later(&memory, &later(1), &maker.after_a_change(&world, 10));
    learn(&memory, &later(1));
    let skill = skill(&memory, &world).unwrap();
    assert_eq!(skill.evidence.status, Status::Active);
    assert!(
        skill.evidence.with.good < skill.evidence.with.of,
        "it is counted all the same"
    );
}

#[test]
fn what_a_person_rejected_stays_away() {
    let (memory, world, mut maker) = grown(9140);
    let id = skill(&memory, &world).unwrap().id;
    let why = Some("it is unsafe".to_owned());
    wait(
        memory
            .learning()
            .review(&ctx(), &id, Review::Reject { why }),
    )
    .unwrap();
    assert_eq!(told(&memory, "ann").0, 0);
    let more = maker.with_procedure(Plan::default());
    let more: Vec<(Run, Outcome)> = world
        .runs
        .iter()
        .zip(more.runs)
        .map(|((run, outcome), (other, _))| {
            let trace = other.trace.map(|trace| format!("more-{trace}"));
            (
                Run {
                    trace,
                    ..run.clone()
                },
                *outcome,
            )
        })
        .collect();
    live_later(&memory, &later(1), &more);
    learn(&memory, &later(1));
    let skill = skill(&memory, &world).unwrap();
    assert_eq!(skill.evidence.status, Status::Retired);
    assert_eq!(skill.evidence.retired.unwrap().why, "it is unsafe");
    wait(memory.learning().review(&ctx(), &id, Review::Approve)).unwrap();
    assert_eq!(told(&memory, "ann").0, 1);
}

#[test]
fn approval_makes_a_candidate_active() {
    let memory = with_policy(Arc::new(Ram::new()), &[("learn_approval", "true")]);
    let world = world(9150, 20);
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    let id = skill(&memory, &world).unwrap().id;
    wait(memory.learning().review(&ctx(), &id, Review::Approve)).unwrap();
    assert_eq!(told(&memory, "ann").0, 1);
    let (run, outcome) = &world.runs[0];
    let trace = Some("one-more".to_owned());
    live(
        &memory,
        &[(
            Run {
                trace,
                ..run.clone()
            },
            *outcome,
        )],
    );
    learn(&memory, &ctx());
    assert!(
        is(Status::Active, &skill(&memory, &world)),
        "more evidence does not take it back"
    );
}

#[test]
fn a_persons_words_stay() {
    let (memory, world, _) = grown(9160);
    let id = skill(&memory, &world).unwrap().id;
    let edit = Review::Edit {
        use_when: Some("shipping a parcel abroad".to_owned()),
        preferences: Some("ask before you pay".to_owned()),
    };
    wait(memory.learning().review(&ctx(), &id, edit)).unwrap();
    let more: Vec<(Run, Outcome)> = world
        .runs
        .iter()
        .map(|(run, outcome)| {
            let trace = run.trace.as_ref().map(|trace| format!("more-{trace}"));
            (
                Run {
                    trace,
                    ..run.clone()
                },
                *outcome,
            )
        })
        .collect();
    let support = skill(&memory, &world).unwrap().evidence.support;
    live(&memory, &more);
    learn(&memory, &ctx());
    let after = skill(&memory, &world).unwrap();
    let LessonBody::Skill(sop) = &after.body else {
        panic!("no skill");
    };
    assert_eq!(sop.use_when, "shipping a parcel abroad");
    assert_eq!(sop.preferences, "ask before you pay");
    assert!(after.evidence.support > support);
    let empty = Review::Edit {
        use_when: Some(" ".to_owned()),
        preferences: None,
    };
    let error = wait(memory.learning().review(&ctx(), &id, empty)).unwrap_err();
    assert!(error.to_string().contains("use_when"), "{error}");
    let nobody: Id = "nobody".parse().unwrap();
    let error = wait(memory.learning().review(&ctx(), &nobody, Review::Pin)).unwrap_err();
    assert!(
        error.to_string().contains("no skill or rule nobody"),
        "{error}"
    );
}

#[test]
fn forgetting_the_session_takes_what_rested_on_it() {
    let (memory, world, _) = grown(9170);
    assert!(
        lessons(&memory)
            .iter()
            .all(|lesson| !lesson.runs.is_empty())
    );
    wait(memory.delete_session(&ctx(), "ann", "s1", true)).unwrap();
    assert_eq!(lessons(&memory), []);
    assert_eq!(skill(&memory, &world), None);
    // Of the books only the ones without content are left.
    let scan = mnemon_core::Scan {
        order: Order::Oldest,
        ..mnemon_core::Scan::new(mnemon_core::Filter::all_of_tenant(), 1000)
    };
    let left = wait(memory.records().list(&ctx(), &scan)).unwrap().records;
    let tools = world.tools();
    for record in left {
        let text = serde_json::to_string(&record).unwrap();
        assert!(!tools.iter().any(|tool| text.contains(tool)), "{text}");
    }
}

#[test]
fn forgetting_one_session_of_several_leaves_what_the_others_show() {
    let memory = memory();
    let world = world(9180, 30);
    let half = world.runs.len() / 2;
    live(&memory, &world.runs[..half]);
    live_later(&memory, &ctx(), &world.runs[half..]);
    learn(&memory, &ctx());
    let before = skill(&memory, &world).unwrap();
    wait(memory.delete_session(&ctx(), "ann", "s1", false)).unwrap();
    let after = skill(&memory, &world).unwrap();
    assert!(after.runs.len() < before.runs.len());
    // With the next experience it is counted anew.
    let (run, outcome) = &world.runs[0];
    let trace = Some("one-more".to_owned());
    live_later(
        &memory,
        &ctx(),
        &[(
            Run {
                trace,
                ..run.clone()
            },
            *outcome,
        )],
    );
    learn(&memory, &ctx());
    let counted = skill(&memory, &world).unwrap();
    assert!(counted.evidence.support < before.evidence.support);
    assert_eq!(counted.evidence.support, counted.runs.len());
}

#[test]
fn corrections_become_preferences() {
    let (memory, world) = (memory(), world(9190, 20));
    for (n, (run, outcome)) in world.runs.iter().enumerate() {
        for act in &run.acts {
            let mut step = step_of(run, act);
            if n % 4 == 0 && act.id == run.acts[0].id {
                let said = if n % 8 == 0 {
                    "Use pnpm, not npm"
                } else {
                    "use PNPM not npm!"
                };
                step.metadata.insert("correction".to_owned(), json!(said));
            }
            step.metadata
                .insert("outcome".to_owned(), json!(outcome.as_str()));
            wait(
                memory
                    .experience()
                    .log_step(&ctx(), &owner("ann", "s1"), step, None),
            )
            .unwrap();
        }
    }
    learn(&memory, &ctx());
    let skill = skill(&memory, &world).unwrap();
    let LessonBody::Skill(sop) = skill.body else {
        panic!("no skill");
    };
    assert_eq!(sop.preferences, "Use pnpm, not npm");
}

#[test]
fn what_only_one_user_said_is_not_told_to_others() {
    let memory = memory();
    let world = world(9200, 30);
    let secret = "use the account of my aunt";
    for (n, (run, outcome)) in world.runs.iter().enumerate() {
        let user = if n % 2 == 0 { "ann" } else { "bob" };
        for act in &run.acts {
            let mut step = step_of(run, act);
            if user == "ann" {
                step.metadata.insert("correction".to_owned(), json!(secret));
                if let Value::Object(input) = &mut step.input {
                    input.insert("account".to_owned(), json!("ann-4711"));
                }
            } else if let Value::Object(input) = &mut step.input {
                input.insert("account".to_owned(), json!(format!("bob-{n}")));
            }
            step.metadata
                .insert("outcome".to_owned(), json!(outcome.as_str()));
            wait(
                memory
                    .experience()
                    .log_step(&ctx(), &owner(user, "s1"), step, None),
            )
            .unwrap();
        }
    }
    learn(&memory, &ctx());
    let skill = skill(&memory, &world).unwrap();
    assert_eq!(skill.audience, mnemon_core::Audience::Everyone);
    let text = serde_json::to_string(&skill.body).unwrap();
    assert!(!text.contains(secret) && !text.contains("4711"), "{text}");
    assert_eq!(told(&memory, "carl").0, 1);
}

#[test]
fn what_somebody_wrote_by_hand_keeps_all_it_says() {
    let memory = memory();
    let by_hand = mnemon_engine::Draft {
        id: Some("by-hand".parse().unwrap()),
        kind: Some(mnemon_core::Kind::Skill),
        tags: vec!["mine".to_owned(), format!("task:{TASK}")],
        source: Some("the handbook".to_owned()),
        ..mnemon_engine::Draft::note("ring twice")
    };
    wait(memory.records().add(&ctx(), vec![by_hand], None)).unwrap();
    let id: Id = "by-hand".parse().unwrap();
    let retire = Review::Retire { why: None };
    // It has no steps, so it cannot become a skill with evidence; but it can be looked at.
    let lesson = wait(memory.learning().lesson(&ctx(), &id)).unwrap();
    assert_eq!(lesson.evidence.status, Status::Active);
    let refused = wait(memory.learning().review(&ctx(), &id, retire)).unwrap_err();
    assert!(refused.to_string().contains("tool_sops"), "{refused}");
}

#[test]
fn a_review_leaves_the_rest_of_a_record_alone() {
    let (memory, world, _) = grown(9210);
    let id = skill(&memory, &world).unwrap().id;
    let get = || wait(memory.records().get(&ctx(), std::slice::from_ref(&id))).unwrap();
    let mut record = get()[0].clone().unwrap();
    record.tags.push("mine".to_owned());
    record
        .metadata
        .insert("note".to_owned(), json!("seen by Carl"));
    wait(memory.records().update(&ctx(), record)).unwrap();
    wait(memory.learning().review(&ctx(), &id, Review::Pin)).unwrap();
    let after = get()[0].clone().unwrap();
    assert!(after.tags.contains(&"mine".to_owned()) && after.metadata.contains_key("note"));
    let status = after
        .tags
        .iter()
        .filter(|tag| tag.starts_with("status:"))
        .count();
    assert_eq!(status, 1);
    assert!(skill(&memory, &world).unwrap().evidence.pinned);
}
