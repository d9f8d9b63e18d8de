//! Values that only one user used stay hidden from other users, whatever becomes of skills and rules.

use mnemon_core::budget::Bound;
use mnemon_core::learn::Advice;
use mnemon_engine::ContextQuery;
use mnemon_engine::learn::{RuleBody, skill_file};
use mnemon_testkit::talks::Dice;

use super::*;
use crate::memory;

/// A call of the tool with this region; it failed if there is an error.
fn call(trace: &str, tool: &str, region: &str, failed: bool) -> Step {
    Step {
        task_type: Some(TASK.to_owned()),
        tool: Some(tool.to_owned()),
        input: json!({ "region": region }),
        error: failed.then(|| "quota exceeded".to_owned()),
        trace_id: Some(trace.to_owned()),
        ..Step::default()
    }
}

fn log(memory: &Memory, user: Option<&str>, step: Step) {
    let owner = Owner {
        user: user.map(str::to_owned),
        session: Some("s1".to_owned()),
        ..Owner::default()
    };
    wait(memory.experience().log_step(&ctx(), &owner, step, None)).unwrap();
}

/// A run in which this region fails and that one is the way out.
fn detour(memory: &Memory, user: &str, trace: &str, way_out: &str) {
    log(memory, Some(user), call(trace, "deploy", "eu", true));
    let mut done = call(trace, "deploy", way_out, false);
    done.metadata.insert("outcome".to_owned(), json!("success"));
    log(memory, Some(user), done);
}

fn straight(memory: &Memory, user: &str, trace: &str) {
    let mut done = call(trace, "deploy", "us", false);
    done.metadata.insert("outcome".to_owned(), json!("success"));
    log(memory, Some(user), done);
}

/// The rules about this region that are active, with whose they are.
fn rules(memory: &Memory) -> Vec<(Option<String>, RuleBody)> {
    let active = lessons(memory)
        .into_iter()
        .filter(|lesson| lesson.evidence.status == Status::Active);
    let rules = active.filter_map(|lesson| match lesson.body {
        LessonBody::Rule(rule) => Some((lesson.audience.user().map(str::to_owned), rule)),
        LessonBody::Skill(_) => None,
    });
    rules.collect()
}

/// Everything that a user can read of what was learnt.
fn readable(memory: &Memory, user: &str) -> String {
    let now = ctx();
    let query = MemoryQuery {
        task_type: Some(TASK.to_owned()),
        ..MemoryQuery::new(user, "s9", "planner", &[Scope::Procedural])
    };
    let read = wait(memory.read(&now, &query)).unwrap();
    let mut all = serde_json::to_string(&read).unwrap();
    let context = ContextQuery::new(query, 4000);
    all += &wait(memory.context(&now, &context, &Bound))
        .unwrap()
        .compiled
        .text;
    let (skills, viewer) = (memory.procedural(), mnemon_core::Viewer::user(user));
    let found = skills.search_skills(&now, &viewer, Some(TASK), "deploy", 20);
    all += &serde_json::to_string(&wait(found).unwrap()).unwrap();
    let found = skills.rules_for(&now, &viewer, TASK, 20);
    all += &serde_json::to_string(&wait(found).unwrap()).unwrap();
    let learning = memory.learning();
    let lessons = wait(learning.lessons(&now, &viewer, None, None, 1000)).unwrap();
    all += &serde_json::to_string(&lessons).unwrap();
    for lesson in lessons {
        if let LessonBody::Skill(sop) = lesson.body {
            all += &skill_file("skill", &sop).text;
        }
    }
    all
}

#[test]
fn a_shared_rule_never_takes_one_users_values() {
    let memory = memory();
    for n in 0..12 {
        for user in ["ann", "bob"] {
            detour(&memory, user, &format!("{user}-{n}"), "us");
            straight(&memory, user, &format!("{user}-straight-{n}"));
        }
    }
    learn(&memory, &ctx());
    let shared = rules(&memory);
    let Some((None, rule)) = shared.first() else {
        panic!("the rule is everybody's: {shared:?}");
    };
    let us = Advice::Use {
        name: "region".to_owned(),
        value: "us".to_owned(),
    };
    assert_eq!(rule.advice, us);
    // From here on only Ann works, and her way out is her own.
    for n in 0..140 {
        detour(&memory, "ann", &format!("later-{n}"), "ann-private-7");
        straight(&memory, "ann", &format!("later-straight-{n}"));
    }
    learn(&memory, &ctx());
    assert!(!readable(&memory, "bob").contains("ann-private-7"));
    assert!(readable(&memory, "ann").contains("ann-private-7"));
    let shared = rules(&memory).into_iter().find(|(user, _)| user.is_none());
    assert_eq!(shared.map(|(_, rule)| rule.advice), Some(us));
}

#[test]
fn a_shared_rule_that_took_one_users_values_is_put_away() {
    let memory = memory();
    for n in 0..12 {
        for user in ["ann", "bob"] {
            detour(&memory, user, &format!("{user}-{n}"), "us");
            straight(&memory, user, &format!("{user}-straight-{n}"));
        }
    }
    learn(&memory, &ctx());
    let shared = lessons(&memory);
    let shared = shared
        .iter()
        .find(|lesson| lesson.audience.user().is_none())
        .unwrap();
    for n in 0..140 {
        detour(&memory, "ann", &format!("later-{n}"), "ann-private-7");
        straight(&memory, "ann", &format!("later-straight-{n}"));
    }
    learn(&memory, &ctx());
    let all = lessons(&memory);
    let own = all
        .iter()
        .find(|lesson| lesson.audience.user().is_some() && lesson.text().contains("ann-private-7"));
    // What an earlier version wrote over the shared rule.
    let ids = [shared.id.clone(), own.unwrap().id.clone()];
    let found = wait(memory.records().get(&ctx(), &ids)).unwrap();
    let [Some(mut leaked), Some(own)] = <[_; 2]>::try_from(found).unwrap() else {
        panic!("both are there");
    };
    leaked.content = own.content;
    leaked.body = own.body;
    leaked.derived_from = own.derived_from;
    wait(memory.records().update(&ctx(), leaked)).unwrap();
    assert!(readable(&memory, "bob").contains("ann-private-7"));
    // Its runs are not among the newest any more.
    for n in 0..100 {
        straight(&memory, "ann", &format!("last-{n}"));
    }
    detour(&memory, "ann", "last", "ann-private-7");
    learn(&memory, &ctx());
    assert!(!readable(&memory, "bob").contains("ann-private-7"));
    let put_away = wait(memory.learning().lesson(&ctx(), &ids[0])).unwrap();
    let why = put_away.evidence.retired.unwrap().why;
    assert_eq!(why, "it is based on the runs of one user only");
}

#[test]
fn a_rule_that_becomes_common_becomes_everybodys() {
    let memory = memory();
    for n in 0..12 {
        detour(&memory, "ann", &format!("ann-{n}"), "us");
        straight(&memory, "ann", &format!("ann-straight-{n}"));
    }
    learn(&memory, &ctx());
    let own = rules(&memory);
    assert!(!own.is_empty());
    assert!(own.iter().all(|(user, _)| user.as_deref() == Some("ann")));
    assert_eq!(told(&memory, "bob").1, 0);
    for n in 0..12 {
        detour(&memory, "bob", &format!("bob-{n}"), "us");
    }
    learn(&memory, &ctx());
    let common = rules(&memory);
    assert!(!common.is_empty());
    assert!(common.iter().all(|(user, _)| user.is_none()), "{common:?}");
    assert!(told(&memory, "bob").1 > 0);
}

#[test]
fn a_way_out_of_another_user_is_not_told() {
    let memory = memory();
    // Ann fails with one region; another one works, but only Bob uses it.
    for n in 0..15 {
        let mut failed = call(&format!("ann-{n}"), "deploy", "eu", true);
        failed
            .metadata
            .insert("outcome".to_owned(), json!("failure"));
        log(&memory, Some("ann"), failed);
        let mut done = call(&format!("bob-{n}"), "deploy", "bob-private-3", false);
        done.metadata.insert("outcome".to_owned(), json!("success"));
        log(&memory, Some("bob"), done);
    }
    learn(&memory, &ctx());
    assert!(!rules(&memory).is_empty());
    assert!(!readable(&memory, "ann").contains("bob-private-3"));
}

const USERS: [Option<&str>; 4] = [Some("ann"), Some("bob"), Some("carl"), None];

/// A value of the user alone, or one that all use.
fn value(dice: &mut Dice, user: Option<&str>, common: &str) -> String {
    match user {
        Some(user) if dice.once_in(2) => format!("only-{user}-{}", dice.below(2)),
        _ => common.to_owned(),
    }
}

/// A run of the user: regions fail by habit, and the way out may be the user's own.
fn random_run(memory: &Memory, dice: &mut Dice, user: Option<&str>, trace: &str) {
    let tools = ["prepare", "deploy", "announce"];
    let mut steps: Vec<Step> = Vec::new();
    for tool in tools {
        if dice.once_in(4) {
            let tool = value(dice, user, "look_up");
            steps.push(call(trace, &tool, "us", false));
        }
        if tool == "deploy" && !dice.once_in(3) {
            let region = value(dice, user, "eu");
            steps.push(call(trace, tool, &region, true));
        }
        let region = value(dice, user, "us");
        steps.push(call(trace, tool, &region, false));
    }
    let last = steps.len() - 1;
    for (n, mut step) in steps.into_iter().enumerate() {
        if n == 0 {
            let goal = format!("ship {}", value(dice, user, "parcel").replace('-', ""));
            step.metadata.insert("goal".to_owned(), json!(goal));
        }
        let place = value(dice, user, "office");
        step.metadata.insert("place".to_owned(), json!(place));
        if dice.once_in(5) {
            let said = value(dice, user, "ask before you pay");
            step.metadata.insert("correction".to_owned(), json!(said));
        }
        if n == last {
            let ended = if dice.once_in(5) {
                "failure"
            } else {
                "success"
            };
            step.metadata.insert("outcome".to_owned(), json!(ended));
        }
        log(memory, user, step);
    }
}

#[test]
fn what_one_user_used_is_readable_for_nobody_else() {
    let mut learnt = 0;
    for seed in 0..24 {
        let mut dice = Dice::new(7000 + seed);
        let memory = with_policy(Arc::new(Ram::new()), &[("learn_complexity", "0")]);
        for phase in 0..4 {
            // In some phases all work, in others one user alone.
            let alone = dice.once_in(2).then(|| USERS[dice.below(USERS.len())]);
            let runs = 10 + dice.below(40);
            for n in 0..runs {
                let user = alone.unwrap_or_else(|| USERS[dice.below(USERS.len())]);
                random_run(&memory, &mut dice, user, &format!("{phase}-{n}"));
            }
            learn(&memory, &ctx());
            learnt += lessons(&memory).len();
            for reader in ["ann", "bob", "carl", "dora"] {
                let text = readable(&memory, reader);
                for owner in ["ann", "bob", "carl"] {
                    let marks = [format!("only-{owner}"), format!("only{owner}")];
                    let leaks = marks.iter().any(|mark| text.contains(mark.as_str()));
                    assert!(
                        owner == reader || !leaks,
                        "seed {seed}, phase {phase}: {reader} reads what {owner} used: {text}"
                    );
                }
            }
        }
    }
    assert!(learnt > 100, "there is something to read: {learnt}");
}
