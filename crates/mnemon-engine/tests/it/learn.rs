//! The experience agent, over a store.

mod agent;
mod bad_input;
mod evidence;
mod files;
mod misleading;
mod users;
mod wording;

use std::sync::Arc;

use mnemon_core::learn::{Act, Ended, Outcome, Run, Status};
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Ids, Owner, Scope};
use mnemon_engine::learn::{LearnReport, Lesson, LessonBody, Transition};
use mnemon_engine::{Memory, MemoryQuery, Payload, Policies, Step, Whom};
use mnemon_testkit::worlds::{Maker, Plan, TASK, World};
use serde_json::{Map, Value, json};

use crate::{ctx, wait};

/// A world with a true procedure that is easy to see.
fn world(seed: u64, successes: usize) -> World {
    let plan = Plan {
        successes,
        noise: 5,
        ..Plan::default()
    };
    Maker::new(seed).with_procedure(plan)
}

fn owner(user: &str, session: &str) -> Owner {
    Owner {
        user: Some(user.to_owned()),
        session: Some(session.to_owned()),
        ..Owner::default()
    }
}

fn step_of(run: &Run, act: &Act) -> Step {
    let input: Map<String, Value> = act
        .params
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let context = act.context.iter();
    let mut metadata: Map<String, Value> = context.map(|(k, v)| (k.clone(), json!(v))).collect();
    if let Some(said) = &act.correction {
        metadata.insert("correction".to_owned(), json!(said));
    }
    Step {
        task_type: Some(run.task_type.clone()),
        tool: act.tool.clone(),
        input: Value::Object(input),
        error: (act.ended == Ended::Failed).then(|| act.error.clone().unwrap_or_default()),
        trace_id: run.trace.clone(),
        metadata,
        ..Step::default()
    }
}

/// Lives through a run as this owner. Its last step says how it ended.
pub(crate) fn live_as(memory: &Memory, ctx: &Ctx, owner: &Owner, run: &Run, outcome: Outcome) {
    for (n, act) in run.acts.iter().enumerate() {
        let mut step = step_of(run, act);
        if n + 1 == run.acts.len() {
            let said = json!(outcome.as_str());
            step.metadata.insert("outcome".to_owned(), said);
        }
        wait(memory.experience().log_step(ctx, owner, step, None)).unwrap();
    }
}

fn live(memory: &Memory, runs: &[(Run, Outcome)]) {
    for (run, outcome) in runs {
        live_as(memory, &ctx(), &owner("ann", "s1"), run, *outcome);
    }
}

/// Learns until there is nothing more to do.
pub(crate) fn learn(memory: &Memory, ctx: &Ctx) -> LearnReport {
    let mut all = LearnReport::default();
    for _ in 0..100 {
        all.add(wait(memory.learning().slice(ctx, 1000)).unwrap());
        if !all.more {
            return all;
        }
    }
    panic!("it never ends: {all:?}");
}

fn lessons(memory: &Memory) -> Vec<Lesson> {
    wait(
        memory
            .learning()
            .lessons(&ctx(), &mnemon_core::Viewer::Tenant, None, None, 100),
    )
    .unwrap()
}

/// The one skill with the true procedure.
fn skill(memory: &Memory, world: &World) -> Option<Lesson> {
    lessons(memory)
        .into_iter()
        .find(|lesson| match &lesson.body {
            LessonBody::Skill(sop) => {
                let tools: Vec<String> = sop.tool_sops.iter().map(|s| s.tool.clone()).collect();
                tools == world.tools()
            }
            LessonBody::Rule(_) => false,
        })
}

/// What Ann's planner is told before such a task.
fn told(memory: &Memory, user: &str) -> (usize, usize) {
    let query = MemoryQuery {
        task_type: Some(TASK.to_owned()),
        ..MemoryQuery::new(user, "s9", "planner", &[Scope::Procedural])
    };
    let items = wait(memory.read(&ctx(), &query)).unwrap();
    match items[0].payload() {
        Some(Payload::Procedural { skills, rules }) => (skills.len(), rules.len()),
        other => panic!("{other:?}"),
    }
}

fn with_policy(store: Arc<Ram>, said: &[(&str, &str)]) -> Memory {
    let mut policies = Policies::default();
    for (key, value) in said {
        policies.set(Whom::all(), key, value).unwrap();
    }
    Memory::builder(store, Ids::new(11))
        .policies(policies)
        .build()
}

fn is(status: Status, lesson: &Option<Lesson>) -> bool {
    lesson
        .as_ref()
        .is_some_and(|lesson| lesson.evidence.status == status)
}

fn turns(report: &LearnReport, turn: Transition) -> usize {
    report.learnt.iter().filter(|one| one.turn == turn).count()
}
