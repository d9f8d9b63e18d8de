//! Indexes that follow their store: late vectors, and more tenants than fit into the cache.

use std::path::Path;
use std::time::Instant;

use futures::future::try_join_all;
use mnemon_adapters::Sqlite;
use mnemon_core::embed::ModelId;
use mnemon_core::limits::Limits;
use mnemon_core::{
    Batch, Ctx, Embedding, Grant, Ids, Op, Policy, Probe, QueryTerm, Record, Right, SearchIndex,
    Store, Time,
};

use crate::measure::{Outcome, Times};

/// Values of a vector, as many as the built-in model's.
const DIMENSION: usize = 256;
const BATCH: usize = 1000;
/// Tenants that are filled at the same time, so that they share commits.
const ABREAST: usize = 100;
const ROUNDS: usize = 20;

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
}

fn ctx(tenant: &str) -> Outcome<Ctx> {
    let now = Time::from_millis(1_700_000_000_000)?;
    Ok(Ctx::new(tenant.parse()?, "bench", now))
}

/// A vector that is the same for the same number.
fn embedding(number: usize) -> Embedding {
    let mut state = number as u64 + 1;
    let values = (0..DIMENSION).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    });
    Embedding {
        model: ModelId {
            name: "bench".to_owned(),
            dimension: DIMENSION,
        },
        vector: values.collect(),
    }
}

fn probe() -> Probe {
    Probe {
        terms: QueryTerm::words_of("tea note"),
        vectors: vec![embedding(7)],
        depth: 100,
        may_run_inline: true,
        ..Probe::new(mnemon_core::Filter::all_of_tenant(), 0)
    }
}

/// Notes with vectors, numbered from here.
async fn fill(
    store: &Sqlite,
    ctx: &Ctx,
    ids: &Ids,
    numbers: std::ops::Range<usize>,
) -> Outcome<()> {
    let grant = Policy::default().check(ctx, Right::Write)?;
    let mut batch = Batch::default();
    for number in numbers {
        let id = ids.next(ctx.now);
        let words = ["tea", "garden", "invoice", "train", "letter"];
        let word = words.get(number % words.len()).unwrap_or(&"tea");
        let text = format!("note {number} about the {word} and what came of it");
        batch.vectors.push((id.clone(), embedding(number)));
        batch.ops.push(Op::append(Record::note(id, ctx, text)));
    }
    store.apply(&grant, batch).await?;
    Ok(())
}

/// A search after late vectors of another handle, beside one after nothing.
pub(crate) fn late(records: usize, vectors: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("m.db");
    let (one, other) = (Sqlite::open(&path)?, Sqlite::open(&path)?);
    let (ctx, ids) = (ctx("default")?, Ids::new(1));
    let grant = Policy::default().check(&ctx, Right::Write)?;
    runtime()?.block_on(async {
        for start in (0..records).step_by(BATCH) {
            let numbers = start..records.min(start + BATCH);
            fill(&other, &ctx, &ids, numbers).await?;
        }
        let start = Instant::now();
        one.find(&grant, &probe()).await?;
        let loaded = start.elapsed();
        let (mut plain, mut after) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for _ in 0..ROUNDS {
                plain.push(timed(&one, &grant).await?);
            }
            let seqs = (0..vectors).map(|number| (round * vectors + number) % records + 1);
            let made = seqs.map(|seq| (seq as u64, embedding(seq + round + 1)));
            other.embed(&grant, made.collect()).await?;
            after.push(timed(&one, &grant).await?);
        }
        let (plain, after) = (Times::from(plain), Times::from(after));
        let (plain, after) = (plain.percentile(0.5), after.percentile(0.5));
        println!("| {records} records | first search, ms | search, µs | after {vectors} late vectors, µs | ratio |");
        println!("|---|---|---|---|---|");
        let loaded = loaded.as_secs_f64() * 1e3;
        println!("| | {loaded:.0} | {plain:.0} | {after:.0} | {:.2} |", after / plain);
        Ok(())
    })
}

async fn timed(store: &Sqlite, grant: &Grant) -> Outcome<std::time::Duration> {
    let start = Instant::now();
    std::hint::black_box(store.find(grant, &probe()).await?);
    Ok(start.elapsed())
}

/// Searches all tenants, twice, and tells by how much the memory of the process grew.
pub(crate) fn tenants(tenants: usize, records: usize, budget: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("m.db");
    let names: Vec<String> = (0..tenants).map(|number| format!("t{number}")).collect();
    let runtime = runtime()?;
    runtime.block_on(fill_tenants(&path, &names, records))?;
    let limits: &'static Limits = Box::leak(Box::new(Limits {
        index_cache_bytes: budget << 20,
        ..Limits::DEFAULT
    }));
    let policy = Policy {
        limits,
        ..Policy::default()
    };
    let store = Sqlite::open(&path)?;
    runtime.block_on(async {
        let (before, mut peak, start) = (resident()?, 0.0_f64, Instant::now());
        for name in names.iter().chain(&names) {
            let grant = policy.check(&ctx(name)?, Right::Read)?;
            let found = store.find(&grant, &probe()).await?;
            if found.matches.is_empty() {
                return Err(format!("nothing was found for {name}").into());
            }
            peak = peak.max(resident()? - before);
        }
        let after = resident()? - before;
        let each = start.elapsed().as_secs_f64() * 1e6 / (2 * tenants) as f64;
        println!("| tenants | records each | budget, MB | grown by, MB | at the most, MB | a search, µs |");
        println!("|---|---|---|---|---|---|");
        println!("| {tenants} | {records} | {budget} | {after:.1} | {peak:.1} | {each:.0} |");
        Ok(())
    })
}

async fn fill_tenants(path: &Path, names: &[String], records: usize) -> Outcome<()> {
    let (store, ids) = (Sqlite::open(path)?, Ids::new(1));
    for some in names.chunks(ABREAST) {
        let fills = some.iter().map(|name| async {
            let ctx = ctx(name)?;
            fill(&store, &ctx, &ids, 0..records).await
        });
        try_join_all(fills).await?;
    }
    Ok(())
}

/// Memory of this process that no file stands behind, in MB.
fn resident() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kb = line.and_then(|line| line.split_whitespace().next());
    Ok(kb.ok_or("the system does not tell")?.parse::<f64>()? / 1024.0)
}
