//! Reading by scope: four scopes at once should cost little more than the slowest of them.

use std::sync::Arc;

use mnemon_adapters::embed::Builtin;
use mnemon_core::{Ctx, Ids, Kind, Owner, Role, Scope, Tenant, Time};
use mnemon_engine::{Draft, Memory, MemoryQuery, Sop, Step, ToolSop, Utterance};

use crate::measure::{Table, Times, median};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const FOUR: [Scope; 4] = [
    Scope::Dialog,
    Scope::Semantic,
    Scope::Procedural,
    Scope::Profile,
];
const BATCH: usize = 1000;
const CALLS: usize = 60;
const ROUNDS: usize = 15;
const WORDS: [&str; 16] = [
    "tea", "green", "market", "river", "price", "ticket", "garden", "deploy", "index", "token",
    "letter", "summer", "engine", "paper", "window", "coffee",
];

pub(crate) fn run(sizes: &[usize]) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let mut table = Table::new(sizes);
    for size in sizes {
        runtime.block_on(measure(*size, &mut table))?;
    }
    table.print();
    Ok(())
}

async fn measure(size: usize, table: &mut Table) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("m.db").display());
    let memory = Memory::builder(mnemon_adapters::open(&url)?.backend, Ids::new(3))
        .embedder(Arc::new(Builtin::new()?))
        .build();
    let ctx = Ctx::new(
        Tenant::default(),
        "bench",
        Time::from_millis(1_700_000_000_000)?,
    );
    fill(&memory, &ctx, size).await?;
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for scope in Scope::ALL {
            round.push(middle(&memory, &ctx, &[*scope]).await?);
        }
        round.push(middle(&memory, &ctx, &FOUR).await?);
        rounds.push(round);
    }
    let names = Scope::ALL.iter().map(|scope| scope.to_string());
    for (at, name) in names.chain(["four scopes".to_owned()]).enumerate() {
        let times = rounds.iter().filter_map(|round| round.get(at).copied());
        table.add(&format!("{name} p50, µs"), median(times));
    }
    // The machine is faster in some rounds than in others: compared is within each.
    let ratios = rounds.iter().filter_map(|round| {
        let alone = Scope::ALL.iter().zip(round);
        let alone = alone.filter(|(scope, _)| FOUR.contains(scope));
        let slowest = alone.map(|(_, time)| *time).fold(0.0, f64::max);
        Some(round.last()? / slowest)
    });
    let ratio = median(ratios);
    table.add("four scopes / the slowest of them", ratio);
    Ok(())
}

async fn middle(memory: &Memory, ctx: &Ctx, scopes: &[Scope]) -> Outcome<f64> {
    let query = MemoryQuery {
        query: Some("the price of green tea at the market".to_owned()),
        task_type: Some("shop".to_owned()),
        ..MemoryQuery::new("user1", "session1", "planner", scopes)
    };
    memory.read(ctx, &query).await?;
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = std::time::Instant::now();
        let items = memory.read(ctx, &query).await?;
        times.push(start.elapsed());
        if items.iter().any(|item| item.payload().is_none()) {
            return Err("a scope did not answer".into());
        }
    }
    Ok(Times::from(times).percentile(0.5))
}

fn sentence(number: usize) -> String {
    let word = |n: usize| {
        WORDS
            .get((number / n) % WORDS.len())
            .copied()
            .unwrap_or_default()
    };
    format!(
        "{} {} {} {} number {number}",
        word(1),
        word(3),
        word(7),
        word(31)
    )
}

/// Three in five are messages, one in five documents, the rest steps and skills.
async fn fill(memory: &Memory, ctx: &Ctx, size: usize) -> Outcome<()> {
    let owner = |number: usize| Owner {
        user: Some(format!("user{}", number % 20)),
        session: Some(format!("session{}", number % 200)),
        ..Owner::default()
    };
    for batch in 0..(size * 3 / 5).div_ceil(BATCH) {
        let said = (0..BATCH).map(|n| Utterance::text(Role::User, sentence(batch * BATCH + n)));
        let owner = owner(batch);
        memory
            .dialog()
            .append_all(ctx, &owner, said.collect(), None)
            .await?;
    }
    let documents: Vec<Draft> = (0..size / 5)
        .map(|number| Draft {
            kind: Some(Kind::Fact),
            ..Draft::note(sentence(number))
        })
        .collect();
    for batch in documents.chunks(BATCH) {
        memory.records().add(ctx, batch.to_vec(), None).await?;
    }
    // These come one by one through their own doors: enough of them to be found.
    for number in 0..(size / 10).min(500) {
        let step = Step {
            task_type: Some("shop".to_owned()),
            tool: Some("pay".to_owned()),
            error: (number % 2 == 0).then(|| "no money".to_owned()),
            ..Step::default()
        };
        let owner = owner(number);
        memory
            .experience()
            .log_step(ctx, &owner, step, None)
            .await?;
        let sop = Sop {
            use_when: sentence(number),
            tool_sops: vec![ToolSop {
                tool: "shop".to_owned(),
                action: "order".to_owned(),
            }],
            preferences: String::new(),
            task_type: None,
            derived_from: Vec::new(),
            shared: true,
        };
        memory
            .procedural()
            .add_skill(ctx, &owner, sop, None)
            .await?;
    }
    let profile = serde_json::json!({"name": "Ann", "style": "brief"});
    let changes = profile.as_object().cloned().unwrap_or_default();
    memory
        .profile()
        .update_profile(ctx, "user1", &changes, None, None)
        .await?;
    Ok(())
}
