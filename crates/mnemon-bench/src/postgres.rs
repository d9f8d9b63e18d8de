//! PostgreSQL beside SQLite and LangGraph's store: searches as a tenant grows, by the index in the
//! database and by the one in memory; searches of many tenants; durable writes.

mod servers;
mod writes;

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;
use mnemon_core::{
    Backend, Batch, Ctx, Embedding, Filter, Grant, Ids, Op, Policy, Probe, QueryTerm, Record,
    Right, Time,
};

use crate::measure::{Outcome, Table, Times};
use crate::recall::Vocabulary;

const BATCH: usize = 1000;
const QUERIES: usize = 100;
/// Messages of a session.
const SESSION: usize = 40;
/// Searches before the measured ones.
const WARM_UP: usize = 10;
/// Up to so many records the store compares all vectors.
const COMPARED: usize = 4000;
/// How long the index of vectors may take.
const INDEX_PATIENCE: Duration = Duration::from_secs(1800);

/// What is measured besides the searches of one tenant.
#[derive(clap::Args)]
pub(crate) struct Extras {
    /// Measure the index in memory, too.
    #[arg(long)]
    memory: bool,
    /// Measure searches in a database of this many tenants with 100 records each.
    #[arg(long)]
    tenants: Option<usize>,
    /// Measure single durable writes by 1, 8 and 64 writers, beside SQLite.
    #[arg(long)]
    writers: bool,
    /// Measure 1, 2 and 4 servers on the database, with 16 connections in all.
    #[arg(long)]
    servers: bool,
    /// A python with langgraph-checkpoint-postgres: measures its PostgresStore with the same texts
    /// and vectors, in the schema `public` of the same database.
    #[arg(long)]
    langgraph: Option<std::path::PathBuf>,
}

pub(crate) fn run(sizes: &[usize], url: &str, extras: &Extras) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut table = Table::new(sizes);
    for size in sizes {
        runtime.block_on(one(*size, url, extras.memory, &mut table))?;
    }
    table.print();
    if let Some(tenants) = extras.tenants {
        runtime.block_on(many_tenants(tenants, url))?;
    }
    if extras.writers {
        runtime.block_on(writes::singles(url))?;
    }
    if extras.servers {
        runtime.block_on(servers::fill(url))?;
        servers::run(url)?;
    }
    if let Some(python) = &extras.langgraph {
        for size in sizes {
            let material = runtime.block_on(material(*size))?;
            langgraph(python, url, *size, material.path())?;
        }
    }
    Ok(())
}

/// Texts with their vectors for another store, and the queries as the last lines.
async fn material(size: usize) -> Outcome<tempfile::NamedTempFile> {
    let (mut file, embedder) = (tempfile::NamedTempFile::new()?, Builtin::new()?);
    let (mut vocabulary, mut queries) = (Vocabulary::new(), Vocabulary::new());
    queries.text(1000);
    let texts: Vec<String> = (0..size)
        .map(|_| vocabulary.text(20))
        .chain((0..QUERIES).map(|_| queries.text(4)))
        .collect();
    for part in texts.chunks(BATCH) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        for (text, vector) in part.iter().zip(embedder.embed(&part).await?) {
            let vector = vector.unwrap_or_default();
            let line = serde_json::json!({ "text": text, "vector": vector });
            writeln!(file, "{line}")?;
        }
    }
    file.flush()?;
    Ok(file)
}

fn langgraph(python: &Path, url: &str, size: usize, material: &Path) -> Outcome<()> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/langgraph_store.py");
    println!("\nLangGraph PostgresStore, {size} records:\n");
    let ended = Command::new(python)
        .arg(script)
        .arg(url)
        .arg(material)
        .status()?;
    match ended.success() {
        true => Ok(()),
        false => Err("the script of LangGraph's store failed".into()),
    }
}

/// Searches of tenants in turn, each with 100 records.
async fn many_tenants(tenants: usize, url: &str) -> Outcome<()> {
    const EACH: usize = 100;
    let backend = mnemon_adapters::open(url)?.backend;
    let embedder = Builtin::new()?;
    let now = Time::from_millis(1_700_000_000_000)?;
    let mut grants = Vec::new();
    for number in 0..tenants {
        let ctx = Ctx::new(format!("tenant-{number}").parse()?, "bench", now);
        let grant = Policy::default().check(&ctx, Right::Write)?;
        if backend.store.tally(&grant).await?.records() == 0 {
            fill(&backend, &grant, &ctx, &embedder, 0..EACH).await?;
        }
        grants.push(grant);
    }
    let probes = probes(&embedder).await?;
    let mut table = Table::new(&[tenants]);
    for label in ["first search of a tenant", "next search"] {
        let mut times = Vec::new();
        for (grant, probe) in grants.iter().zip(probes.iter().cycle()) {
            let start = Instant::now();
            std::hint::black_box(backend.index.find(grant, probe).await?);
            times.push(start.elapsed());
        }
        let times = Times::from(times);
        table.add(&format!("{label}, p50, ms"), times.percentile(0.5) / 1e3);
        table.add(&format!("{label}, p99, ms"), times.percentile(0.99) / 1e3);
    }
    println!("\nTenants with {EACH} records each:\n");
    table.print();
    Ok(())
}

async fn one(size: usize, url: &str, with_memory: bool, table: &mut Table) -> Outcome<()> {
    let mark = if url.contains('?') { '&' } else { '?' };
    let open = |mode: &str| mnemon_adapters::open(&format!("{url}{mark}index={mode}"));
    let backend = open("database")?.backend;
    let now = Time::from_millis(1_700_000_000_000)?;
    // A tenant of an earlier run is used again if it is complete.
    let ctx = Ctx::new(format!("bench-{size}").parse()?, "bench", now);
    let grant = Policy::default().check(&ctx, Right::Write)?;
    let embedder = Builtin::new()?;
    let there = backend.store.tally(&grant).await?.records() as usize;
    if there < size {
        let took = fill(&backend, &grant, &ctx, &embedder, there..size).await?;
        let ours = (size - there) as f64 / took.as_secs_f64();
        table.add("ingest with vectors, records/s", ours);
        if there == 0 {
            let copied = writes::copy_rate(url, ctx.tenant.as_str(), size).await?;
            table.add("bare COPY of the same rows, records/s", copied);
            table.add("ingest / COPY", ours / copied);
        }
    }
    let probes = probes(&embedder).await?;
    let words: Vec<Probe> = probes
        .iter()
        .map(|probe| Probe {
            vectors: Vec::new(),
            ..probe.clone()
        })
        .collect();
    let meaning: Vec<Probe> = probes
        .iter()
        .map(|probe| Probe {
            terms: Vec::new(),
            // The engine asks for fewer where nothing is searched by its words.
            depth: 30,
            ..probe.clone()
        })
        .collect();
    wait_for_index(&backend, &grant, (url, size), &probes).await?;
    measure("database, hybrid", &backend, &grant, &probes, table).await?;
    measure("database, words", &backend, &grant, &words, table).await?;
    measure("database, meaning", &backend, &grant, &meaning, table).await?;
    if with_memory {
        let backend = open("memory")?.backend;
        measure("memory, hybrid", &backend, &grant, &probes, table).await?;
    }
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("m.db").display());
    let backend = mnemon_adapters::open(&file)?.backend;
    let took = fill(&backend, &grant, &ctx, &embedder, 0..size).await?;
    let rate = size as f64 / took.as_secs_f64();
    table.add("SQLite, ingest with vectors, records/s", rate);
    measure("SQLite, hybrid", &backend, &grant, &probes, table).await
}

/// Stores records in batches. Returns how long that took, without making the texts and vectors: other
/// stores get theirs ready-made.
async fn fill(
    backend: &Backend,
    grant: &Grant,
    ctx: &Ctx,
    embedder: &Builtin,
    numbers: std::ops::Range<usize>,
) -> Outcome<Duration> {
    let mut took = Duration::ZERO;
    let (mut vocabulary, ids) = (Vocabulary::new(), Ids::new(numbers.start as u64 + 1));
    for start in numbers.clone().step_by(BATCH) {
        let mut batch = Batch::default();
        let texts: Vec<String> = (start..numbers.end.min(start + BATCH))
            .map(|_| vocabulary.text(20))
            .collect();
        let vectors = embedder
            .embed(&texts.iter().map(String::as_str).collect::<Vec<_>>())
            .await?;
        for (at, (text, vector)) in texts.into_iter().zip(vectors).enumerate() {
            let id = ids.next(ctx.now);
            let mut record = Record::note(id.clone(), ctx, text);
            record.owner.session = Some(format!("s{}", (start + at) / SESSION));
            batch.ops.push(Op::append(record));
            batch.vectors.extend(vector.map(|vector| {
                let model = embedder.model().clone();
                (id, Embedding { model, vector })
            }));
        }
        let start = Instant::now();
        backend.store.apply(grant, batch).await?;
        took += start.elapsed();
    }
    Ok(took)
}

/// Queries of four words, as likely as in the texts.
async fn probes(embedder: &Builtin) -> Outcome<Vec<Probe>> {
    let mut vocabulary = Vocabulary::new();
    // Other words than those that the first texts begin with.
    vocabulary.text(1000);
    let mut probes = Vec::new();
    for _ in 0..QUERIES {
        let text = vocabulary.text(4);
        let vector = embedder.embed(&[&text]).await?.into_iter().flatten();
        probes.push(Probe {
            terms: QueryTerm::words_of(&text),
            vectors: vector
                .map(|vector| Embedding {
                    model: embedder.model().clone(),
                    vector,
                })
                .collect(),
            ..Probe::new(Filter::all_of_tenant(), 100)
        });
    }
    Ok(probes)
}

/// Searches until the index of vectors is complete, which the first search of a large tenant begins
/// to build, and answers as fast as it gets.
async fn wait_for_index(
    backend: &Backend,
    grant: &Grant,
    (url, size): (&str, usize),
    probes: &[Probe],
) -> Outcome<()> {
    let warm = probes.iter().take(WARM_UP);
    let began = Instant::now();
    loop {
        for probe in warm.clone() {
            backend.index.find(grant, probe).await?;
        }
        if size <= COMPARED || writes::has_vector_index(url, grant.tenant().as_str()).await? {
            break;
        }
        if began.elapsed() > INDEX_PATIENCE {
            return Err("the index of vectors is not built; does the server have pgvector?".into());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for probe in warm {
        backend.index.find(grant, probe).await?;
    }
    Ok(())
}

async fn measure(
    label: &str,
    backend: &Backend,
    grant: &Grant,
    probes: &[Probe],
    table: &mut Table,
) -> Outcome<()> {
    backend
        .index
        .find(grant, probes.first().ok_or("no probes")?)
        .await?;
    let mut times = Vec::new();
    for probe in probes {
        let start = Instant::now();
        std::hint::black_box(backend.index.find(grant, probe).await?);
        times.push(start.elapsed());
    }
    let times = Times::from(times);
    table.add(&format!("{label}, p50, ms"), times.percentile(0.5) / 1e3);
    table.add(&format!("{label}, p99, ms"), times.percentile(0.99) / 1e3);
    Ok(())
}
