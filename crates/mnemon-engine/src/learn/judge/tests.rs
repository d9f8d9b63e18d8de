use std::collections::BTreeMap;

use mnemon_core::learn::{LearnSettings, Outcome, Run};
use mnemon_core::{Audience, Time};
use serde_json::json;

use super::Judge;

/// A successful run of this user in which one tool was called.
fn run(user: &str) -> (Run, Outcome) {
    let last: Time = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(format!("run-{user}").parse().unwrap(), "deploy", last);
    run.audience = Audience::User(user.to_owned());
    let act = json!({ "id": format!("step-{user}"), "tool": "push", "ended": "done" });
    run.acts.push(serde_json::from_value(act).unwrap());
    (run, Outcome::Success)
}

#[test]
fn a_users_own_skill_counts_no_run_of_another() {
    let runs = [run("ann"), run("bob")];
    let judge = Judge {
        task_type: "deploy",
        ended_runs: &runs,
        settings: &LearnSettings::default(),
        now: runs[0].0.last,
        older: &BTreeMap::new(),
    };
    let orders = [vec!["push".to_owned()]];
    for (audience, support) in [
        (Audience::User("ann".to_owned()), 1),
        (Audience::Everyone, 2),
    ] {
        let (evidence, counted) = judge.counted(&audience, &orders, &[]);
        assert_eq!((evidence.support, counted.len()), (support, support));
    }
}
