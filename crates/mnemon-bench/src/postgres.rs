//! Searches in PostgreSQL as a tenant grows: by the index in the database, and by the one in memory.

use std::time::{Duration, Instant};

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;
use mnemon_core::{
    Backend, Batch, Ctx, Embedding, Filter, Grant, Ids, Op, Policy, Probe, QueryTerm, Record,
    Right, Time,
};

use crate::measure::{Outcome, Table, Times, rate};
use crate::recall::Vocabulary;

const BATCH: usize = 1000;
const QUERIES: usize = 100;
/// Messages of a session.
const SESSION: usize = 40;

pub(crate) fn run(sizes: &[usize], url: &str, with_memory: bool) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut table = Table::new(sizes);
    for size in sizes {
        runtime.block_on(one(*size, url, with_memory, &mut table))?;
    }
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
        let start = Instant::now();
        fill(&backend, &grant, &ctx, &embedder, there..size).await?;
        table.add("ingest with vectors, records/s", rate(size - there, start));
    }
    let probes = probes(&embedder).await?;
    let words: Vec<Probe> = probes
        .iter()
        .map(|probe| Probe {
            vectors: Vec::new(),
            ..probe.clone()
        })
        .collect();
    wait_for_index(&backend, &grant, &probes).await?;
    measure("database, hybrid", &backend, &grant, &probes, table).await?;
    measure("database, words", &backend, &grant, &words, table).await?;
    if with_memory {
        let backend = open("memory")?.backend;
        measure("memory, hybrid", &backend, &grant, &probes, table).await?;
    }
    Ok(())
}

async fn fill(
    backend: &Backend,
    grant: &Grant,
    ctx: &Ctx,
    embedder: &Builtin,
    numbers: std::ops::Range<usize>,
) -> Outcome<()> {
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
        backend.store.apply(grant, batch).await?;
    }
    Ok(())
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

/// Searches until searches are as fast as they get: the index of vectors is built beside them.
async fn wait_for_index(backend: &Backend, grant: &Grant, probes: &[Probe]) -> Outcome<()> {
    let mut known = f64::MAX;
    loop {
        let start = Instant::now();
        for probe in probes.iter().take(10) {
            backend.index.find(grant, probe).await?;
        }
        let took = start.elapsed().as_secs_f64();
        if took > known * 0.7 && took < known * 1.4 {
            return Ok(());
        }
        known = took;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
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
