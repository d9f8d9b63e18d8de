//! Learning: how often it is right, on worlds of which the truth is known, and what it costs to
//! learn from a thousand new steps as the log grows.

use std::time::Instant;

use mnemon_core::learn::{
    Act, Condition, Ended as StepEnded, LearnSettings, Outcome as Ended, Run, Status, follows,
    procedures, regressed, rules,
};
use mnemon_core::{Ctx, Ids, Kind, Scope, Tenant, Time};
use mnemon_engine::learn::LessonBody;
use mnemon_engine::{Draft, Memory, Step};
use mnemon_testkit::worlds::{HardWorld, Maker, Plan, Trap, Verdict, World};
use serde_json::json;

use crate::measure::{Outcome, Table, median, rate};

/// Steps of one run.
const RUN: usize = 5;
/// Types of task in the log.
const TYPES: usize = 50;
/// New steps that are learnt from.
const NEW: usize = 1000;
/// How often that is measured; the median counts.
const ROUNDS: usize = 7;
const BATCH: usize = 5000;
/// Worlds of each sort that are lived through step by step.
const TRAP_WORLDS: u64 = 100;

pub(crate) fn run(sizes: &[usize], worlds: u64) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    if worlds > 0 {
        quality(worlds);
        runtime.block_on(traps(worlds.min(TRAP_WORLDS)))?;
    }
    if sizes.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(sizes);
    runtime.block_on(measure(sizes, &mut table))?;
    table.print();
    Ok(())
}

fn learnt(world: &World) -> Option<Vec<String>> {
    let found = procedures(&world.runs, &LearnSettings::default());
    found.first().map(|best| best.tools())
}

fn is_recovered(world: &World) -> bool {
    let found = procedures(&world.runs, &LearnSettings::default());
    found.first().is_some_and(|best| {
        let steps = best.steps.iter();
        let steps: Vec<_> = steps
            .map(|s| (s.tool.clone(), s.constant.clone()))
            .collect();
        steps == world.truth
    })
}

fn is_found(world: &World) -> bool {
    let Some((tool, cause)) = &world.cause else {
        return false;
    };
    let found = rules(&world.runs);
    let surest: Option<&Condition> = found
        .iter()
        .find(|rule| rule.tool == *tool)
        .map(|rule| &rule.condition);
    surest == Some(cause)
}

/// After how many runs a regression is noticed; `None` if never within 20.
fn noticed(seed: u64) -> Option<usize> {
    let mut maker = Maker::new(seed);
    let world = maker.with_procedure(Plan {
        successes: 40,
        ..Plan::default()
    });
    let tools = learnt(&world)?;
    let after = maker.after_a_change(&world, 20);
    let all: Vec<bool> = world
        .runs
        .iter()
        .chain(&after)
        .filter(|(run, outcome)| follows(run, *outcome, &tools))
        .map(|(_, outcome)| *outcome == Ended::Success)
        .collect();
    let before = all.len() - after.len();
    (0..=after.len()).find(|n| all.get(..before + n).and_then(regressed).is_some())
}

/// One line of the table: in how many of the worlds it holds.
fn line(what: &str, from: u64, worlds: u64, holds: impl Fn(u64) -> bool) {
    let good = (from..from + worlds).filter(|seed| holds(*seed)).count();
    let share = 100.0 * good as f64 / worlds as f64;
    println!("| {what} | {worlds} | {share:.1} % |");
}

fn quality(worlds: u64) {
    println!("| worlds | how many | right |\n|---|---:|---:|");
    let mut from = 100_000;
    for (successes, noise) in [(20, 0), (20, 10), (20, 20), (50, 20), (150, 20)] {
        let plan = Plan {
            successes,
            noise,
            ..Plan::default()
        };
        let what = format!("true procedure recovered: {successes} successes, {noise} % noise");
        line(&what, from, worlds, |seed| {
            is_recovered(&Maker::new(seed).with_procedure(plan))
        });
        from += 100_000;
    }
    for runs in [25, 60, 150] {
        let what = format!("no procedure, none proposed: {runs} runs");
        line(&what, from, worlds, |seed| {
            learnt(&Maker::new(seed).without_procedure(runs)).is_none()
        });
        from += 100_000;
    }
    for runs in [80, 200] {
        let what = format!("planted cause found, right way round: {runs} runs");
        line(&what, from, worlds, |seed| {
            is_found(&Maker::new(seed).with_cause(runs))
        });
        from += 100_000;
    }
    for runs in [40, 200] {
        let what = format!("random failures, no rule: {runs} runs");
        line(&what, from, worlds, |seed| {
            rules(&Maker::new(seed).with_random_failures(runs).runs).is_empty()
        });
        from += 100_000;
    }
    line(
        "a broken tool noticed within 8 runs",
        from,
        worlds,
        |seed| noticed(seed).is_some_and(|runs| runs <= 8),
    );
}

/// Worlds in which it is easy to learn something misleading.
const TRAPS: [(&str, Trap); 16] = [
    (
        "30 % of runs die at a mandatory step",
        Trap::DiesAtAStep(30),
    ),
    (
        "40 % of runs die at a mandatory step",
        Trap::DiesAtAStep(40),
    ),
    (
        "50 % of runs die at a mandatory step",
        Trap::DiesAtAStep(50),
    ),
    (
        "a step fails first in 25 %, works on retry",
        Trap::WorksOnRetry(25),
    ),
    (
        "a step fails first in 50 %, works on retry",
        Trap::WorksOnRetry(50),
    ),
    ("two steps in either order, 50/50", Trap::EitherOrder(50)),
    ("two steps in either order, 65/35", Trap::EitherOrder(65)),
    ("a tool replaced 5 runs ago", Trap::Replaced(5)),
    ("a tool replaced 10 runs ago", Trap::Replaced(10)),
    ("a tool replaced 20 runs ago", Trap::Replaced(20)),
    ("a tool replaced 85 runs ago", Trap::Replaced(85)),
    (
        "a tool broke 30 runs ago, another took over",
        Trap::Broken(30),
    ),
    ("8 to 15 calls of 3 helper tools", Trap::Chatty),
    ("20 to 50 calls of 7 helper tools", Trap::VeryChatty),
    ("a step fails above a limit", Trap::AboveALimit),
    (
        "a tool that never works is tried in 40 %",
        Trap::WrongWay(40),
    ),
];

/// What is active in worlds with a trap: the truth, nothing, or something misleading.
async fn traps(worlds: u64) -> Outcome<()> {
    println!("\n| worlds | how many | exact | silent | misleading |\n|---|---:|---:|---:|---:|");
    for (n, (name, trap)) in TRAPS.into_iter().enumerate() {
        let from = 10_000_000 + 100_000 * n as u64;
        let (mut exact, mut silent, mut misleading) = (0, 0, 0);
        for seed in from..from + worlds {
            match trapped(&Maker::new(seed).with_trap(trap)).await? {
                Verdict::Exact => exact += 1,
                Verdict::Silent => silent += 1,
                Verdict::Misleading(found) => {
                    println!("{name}, seed {seed}: {found}");
                    misleading += 1;
                }
            }
        }
        println!("| {name} | {worlds} | {exact} | {silent} | {misleading} |");
    }
    Ok(())
}

/// Lives through a world, learns, and judges what is told to agents.
async fn trapped(world: &HardWorld) -> Outcome<Verdict> {
    let now = Time::from_millis(1_700_000_000_000)?;
    let ctx = Ctx::new(Tenant::default(), "bench", now);
    let store = std::sync::Arc::new(mnemon_core::ram::Ram::new());
    let memory = Memory::builder(store, Ids::new(3)).build();
    for (run, outcome) in &world.runs {
        for (n, act) in run.acts.iter().enumerate() {
            let step = logged(run, act, (n + 1 == run.acts.len()).then_some(*outcome));
            let owner = mnemon_core::Owner::default();
            memory
                .experience()
                .log_step(&ctx, &owner, step, None)
                .await?;
        }
    }
    learn(&memory, &ctx).await?;
    let (mut skills, mut rules) = (Vec::new(), Vec::new());
    let active = Some(Status::Active);
    for lesson in memory
        .learning()
        .lessons(&ctx, &mnemon_core::Viewer::Tenant, None, active, 1000)
        .await?
    {
        match lesson.body {
            LessonBody::Skill(sop) => {
                skills.push(sop.tool_sops.into_iter().map(|step| step.tool).collect());
            }
            LessonBody::Rule(rule) => rules.push((rule.tool, rule.text)),
        }
    }
    Ok(world.judge(&skills, &rules))
}

fn logged(run: &Run, act: &Act, outcome: Option<Ended>) -> Step {
    let input = act.params.iter();
    let input = input.map(|(name, value)| (name.clone(), json!(value)));
    let mut metadata = serde_json::Map::new();
    if let Some(said) = &act.correction {
        metadata.insert("correction".to_owned(), json!(said));
    }
    if let Some(outcome) = outcome {
        metadata.insert("outcome".to_owned(), json!(outcome.as_str()));
    }
    let failed = act.ended == StepEnded::Failed;
    Step {
        task_type: Some(run.task_type.clone()),
        tool: act.tool.clone(),
        input: serde_json::Value::Object(input.collect()),
        error: failed.then(|| act.error.clone().unwrap_or_default()),
        trace_id: run.trace.clone(),
        metadata,
        ..Step::default()
    }
}

/// A log of some length that was learnt from.
struct Log {
    memory: Memory,
    written: usize,
    /// What each round of new steps cost.
    times: Vec<f64>,
    _folder: tempfile::TempDir,
}

/// All logs are made first; then each round is measured on all of them, one right after the other,
/// so that whatever else the machine does is the same for all.
async fn measure(sizes: &[usize], table: &mut Table) -> Outcome<()> {
    let now = Time::from_millis(1_700_000_000_000)?;
    let ctx = Ctx::new(Tenant::default(), "bench", now);
    let mut logs = Vec::new();
    for size in sizes {
        logs.push(made(&ctx, *size, table).await?);
    }
    for _ in 0..ROUNDS {
        for log in &mut logs {
            write(&log.memory, &ctx, &mut log.written, NEW).await?;
            let start = Instant::now();
            learn(&log.memory, &ctx).await?;
            log.times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let base = logs.first().map(|log| log.times.clone());
    let base = base.unwrap_or_default();
    for log in &logs {
        table.add(
            "learning from 1000 new steps, ms",
            median(log.times.iter().copied()),
        );
        let rounds = log.times.iter().zip(&base);
        let ratio = median(rounds.map(|(cost, base)| cost / base));
        table.add("… of the first column, in the same round", ratio);
        let learning = log.memory.learning();
        let lessons = learning
            .lessons(&ctx, &mnemon_core::Viewer::Tenant, None, None, 1000)
            .await?;
        table.add("skills and rules", lessons.len() as f64);
    }
    Ok(())
}

async fn made(ctx: &Ctx, size: usize, table: &mut Table) -> Outcome<Log> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("m.db").display());
    let memory = Memory::builder(mnemon_adapters::open(&url)?.backend, Ids::new(3)).build();
    let mut written = 0;
    write(&memory, ctx, &mut written, size).await?;
    let start = Instant::now();
    learn(&memory, ctx).await?;
    table.add("first learning, steps per second", rate(size, start));
    Ok(Log {
        memory,
        written,
        times: Vec::new(),
        _folder: folder,
    })
}

async fn learn(memory: &Memory, ctx: &Ctx) -> Outcome<()> {
    loop {
        let report = memory.learning().slice(ctx, NEW).await?;
        if !report.more {
            return Ok(());
        }
    }
}

/// Writes steps as they would be logged, but many in one commit.
async fn write(memory: &Memory, ctx: &Ctx, written: &mut usize, steps: usize) -> Outcome<()> {
    let mut left = steps;
    while left > 0 {
        let batch = left.min(BATCH);
        let drafts = (*written..*written + batch).map(step).collect();
        memory
            .records_of(Scope::Experience)
            .add(ctx, drafts, None)
            .await?;
        *written += batch;
        left -= batch;
    }
    Ok(())
}

fn step(number: usize) -> Draft {
    let (run, at) = (number / RUN, number % RUN);
    let task = format!("task{}", run % TYPES);
    let wrong = run % 7 == 0;
    let failed = wrong && at + 1 == RUN;
    let tool = match failed {
        true => "guess".to_owned(),
        false => format!("tool{at}"),
    };
    let mut metadata = serde_json::Map::new();
    if at + 1 == RUN {
        let said = if wrong { "failure" } else { "success" };
        metadata.insert("outcome".to_owned(), json!(said));
    }
    if at == 0 && run % 10 == 0 {
        metadata.insert("correction".to_owned(), json!("use the plain mode"));
    }
    let ended = if failed { "failed" } else { "done" };
    let mut body = json!({
        "ended": ended, "task_type": task, "tool": tool, "success": !failed,
        "input": {"mode": "plain", "number": number}, "trace_id": format!("t{run}"),
    });
    if failed && let Some(body) = body.as_object_mut() {
        body.insert("error".to_owned(), json!("it does not work"));
    }
    Draft {
        content: format!("{tool}, {task}: {ended}"),
        kind: Some(Kind::Step),
        body: Some(body),
        tags: vec![
            ended.to_owned(),
            format!("{ended}:{task}"),
            format!("trace:t{run}"),
        ],
        metadata,
        ..Draft::default()
    }
}
