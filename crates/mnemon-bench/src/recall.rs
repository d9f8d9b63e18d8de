//! Search beside the floor: a bare scan of the same bits and a bare walk of the same postings.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;
use mnemon_core::index::{Doc, Index, Terms, hash, stored};
use mnemon_core::rank::Recipe;
use mnemon_core::text::query_terms;
use mnemon_core::vector::{Candidates, ScanConfig, Scored, VectorSet, dot};
use mnemon_core::{Backend, Batch, Ctx, Embedding, Ids, Op, Policy, Record, Right, Tenant, Time};
use mnemon_engine::{Memory, Query};

use crate::measure::{Outcome, Table, Times, rate};

const QUERIES: usize = 200;
const BATCH: usize = 1000;
/// Queries after which it is another's turn.
const TURN: usize = 20;

/// Words by rank: the first are the common ones, as in a language.
pub(crate) struct Vocabulary {
    words: Vec<String>,
    state: u64,
}

impl Vocabulary {
    pub(crate) fn new() -> Self {
        // Whole words of the built-in model, so that they mean something to it.
        let vocabulary = include_str!("../../mnemon-adapters/assets/vocab.txt");
        let whole = |word: &&str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase());
        Self {
            words: vocabulary
                .lines()
                .filter(whole)
                .map(str::to_owned)
                .collect(),
            state: 42,
        }
    }

    fn random(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word, common ones more often.
    fn word(&mut self) -> String {
        let share = self.random();
        let rank = (self.words.len() as f64).powf(share) as usize - 1;
        self.words.get(rank).cloned().unwrap_or_default()
    }

    pub(crate) fn text(&mut self, words: usize) -> String {
        let words: Vec<String> = (0..words).map(|_| self.word()).collect();
        words.join(" ")
    }
}

pub(crate) fn run(sizes: &[usize], folder: Option<&Path>) -> Outcome<()> {
    let temporary = tempfile::tempdir()?;
    let folder = folder.unwrap_or(temporary.path());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let mut table = Table::new(sizes);
    for size in sizes {
        let place = folder.join(format!("recall-{size}"));
        std::fs::create_dir_all(&place)?;
        runtime.block_on(one(*size, &place, &mut table))?;
        std::fs::remove_dir_all(&place)?;
    }
    table.print();
    Ok(())
}

fn records(size: usize, ctx: &Ctx, ids: &Ids) -> (Vec<Record>, Vec<String>) {
    let mut vocabulary = Vocabulary::new();
    let records = (0..size).map(|number| {
        let words = 10 + number % 30;
        let mut record = Record::note(ids.next(ctx.now), ctx, vocabulary.text(words));
        record.owner.session = Some(format!("s{}", number / 40));
        record.owner.user = Some(format!("u{}", number % 100));
        record
    });
    let records: Vec<Record> = records.collect();
    let queries = (0..QUERIES).map(|_| vocabulary.text(5)).collect();
    (records, queries)
}

async fn one(size: usize, place: &Path, table: &mut Table) -> Outcome<()> {
    let ctx = Ctx::new(
        Tenant::default(),
        "bench",
        Time::from_millis(1_700_000_000_000)?,
    );
    let (records, queries) = records(size, &ctx, &Ids::new(1));
    let embedder = Arc::new(Builtin::new()?);
    let url = format!("sqlite:{}", place.join("m.db").display());

    let start = Instant::now();
    for record in &records {
        black_box(embedder.embed_one(&record.content));
    }
    table.add("embed, records/s", rate(size, start));
    let plain = format!("sqlite:{}", place.join("plain.db").display());
    let without = ingest(&plain, &records, &ctx, None).await?;
    let with = ingest(&url, &records, &ctx, Some(embedder.as_ref())).await?;
    table.add("ingest without vectors, records/s", without);
    table.add("ingest with vectors, records/s", with);
    table.add("with / without", with / without);
    let bytes = std::fs::metadata(place.join("m.db"))?.len();
    table.add("file, bytes per record", bytes as f64 / size as f64);

    let first = queries.first().cloned().unwrap_or_default();
    let (memory, cold) = cold(&url, &embedder, &ctx, &first).await?;
    table.add("cold open and first search, ms", cold);
    for recipe in [Recipe::Hybrid, Recipe::Words, Recipe::Meaning] {
        let mut times = Vec::new();
        for text in &queries {
            let query = Query {
                recipe,
                may_run_inline: true,
                ..Query::new(text.as_str(), mnemon_core::Filter::all_of_tenant())
            };
            let start = Instant::now();
            black_box(memory.records().search(&ctx, &query).await?);
            times.push(start.elapsed());
        }
        let times = Times::from(times);
        let name = recipe.as_str();
        table.add(&format!("{name} p50, µs"), times.percentile(0.5));
        table.add(&format!("{name} p99, µs"), times.percentile(0.99));
    }
    floor(&records, &queries, &embedder, (&memory, &ctx), table).await?;
    drop(memory);
    let (_, cold) = self::cold(&url, &embedder, &ctx, &first).await?;
    table.add("the same with a saved index, ms", cold);
    Ok(())
}

/// Opens the store and answers a first query; how long that takes, in milliseconds.
async fn cold(
    url: &str,
    embedder: &Arc<Builtin>,
    ctx: &Ctx,
    query: &str,
) -> Outcome<(Memory, f64)> {
    let start = Instant::now();
    let memory = memory(mnemon_adapters::open(url)?.backend, embedder);
    memory
        .records()
        .search(
            ctx,
            &Query::new(query, mnemon_core::Filter::all_of_tenant()),
        )
        .await?;
    Ok((memory, start.elapsed().as_secs_f64() * 1e3))
}

async fn ingest(
    url: &str,
    records: &[Record],
    ctx: &Ctx,
    embedder: Option<&Builtin>,
) -> Outcome<f64> {
    let store = mnemon_adapters::open(url)?.backend.store;
    let grant = Policy::default().check(ctx, Right::Write)?;
    let start = Instant::now();
    for chunk in records.chunks(BATCH) {
        let ops: Vec<Op> = chunk.iter().cloned().map(Op::append).collect();
        let mut batch = Batch::from(ops);
        if let Some(embedder) = embedder {
            let texts: Vec<&str> = chunk.iter().map(|record| record.content.as_str()).collect();
            let vectors = embedder.embed(&texts).await?;
            batch.vectors = chunk
                .iter()
                .zip(vectors)
                .filter_map(|(record, vector)| {
                    let model = embedder.model().clone();
                    Some((
                        record.id.clone(),
                        Embedding {
                            model,
                            vector: vector?,
                        },
                    ))
                })
                .collect();
        }
        store.apply(&grant, batch).await?;
    }
    Ok(rate(records.len(), start))
}

pub(crate) fn memory(backend: Backend, embedder: &Arc<Builtin>) -> Memory {
    let embedder: Arc<dyn Embedder> = Arc::clone(embedder) as Arc<dyn Embedder>;
    Memory::builder(backend, Ids::new(2))
        .embedder(embedder)
        .build()
}

/// The bare scan and the bare walk beside the hybrid search, the memory of the structures, and how
/// exact the scan is.
async fn floor(
    records: &[Record],
    queries: &[String],
    embedder: &Builtin,
    (memory, ctx): (&Memory, &Ctx),
    table: &mut Table,
) -> Outcome<()> {
    let model = embedder.model();
    let mut index = Index::new();
    let mut set = VectorSet::new(model.dimension)?;
    let mut exact: Vec<Vec<f32>> = Vec::new();
    let mut postings: HashMap<u32, Vec<(u32, u8)>> = HashMap::new();
    for (number, record) in (1_u32..).zip(records) {
        let mut record = record.clone();
        record.seq = u64::from(number);
        let terms = Terms::of(&record);
        let vector = embedder.embed_one(&record.content).unwrap_or_else(|| {
            let mut unit = vec![0.0; model.dimension];
            if let Some(first) = unit.first_mut() {
                *first = 1.0;
            }
            unit
        });
        let embedding = Embedding {
            model: model.clone(),
            vector: vector.clone(),
        };
        index.add(&Doc::of(&record), &terms, Some(&stored(&embedding)?))?;
        set.push(&vector)?;
        exact.push(vector);
        for term in query_terms(&record.content) {
            postings
                .entry(hash(&term.text))
                .or_default()
                .push((number - 1, 4));
        }
    }
    set.recentre();
    table.add(
        "index, bytes per record",
        index.bytes() as f64 / records.len() as f64,
    );
    let vectors: Vec<Vec<f32>> = queries
        .iter()
        .filter_map(|q| embedder.embed_one(q))
        .collect();
    let bare = Bare {
        set: &set,
        postings: &postings,
        records: records.len(),
    };
    let (hybrid, scan, walk) = in_turn(memory, ctx, queries, &vectors, &bare).await?;
    table.add("bare 1-bit scan p50, µs", scan);
    table.add("bare postings walk p50, µs", walk);
    table.add("hybrid p50 / (scan + walk)", hybrid / (scan + walk));
    let same = agreement(&set, &vectors)?;
    table.add("recall at 10 of an exact scan of the same vectors", same);
    let full = recall(&set, &exact, &vectors)?;
    table.add("recall at 10 of an exact scan of f32 vectors", full);
    Ok(())
}

/// What a search cannot do without.
struct Bare<'a> {
    set: &'a VectorSet,
    postings: &'a HashMap<u32, Vec<(u32, u8)>>,
    records: usize,
}

impl Bare<'_> {
    fn scan(&self, query: &[f32]) -> Outcome<Vec<Scored>> {
        let config = ScanConfig {
            exact_up_to: 0,
            ..ScanConfig::default()
        };
        Ok(self.set.search(query, 10, Candidates::All, &config)?)
    }

    fn walk(&self, query: &str) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.records];
        for term in query_terms(query) {
            for (doc, tf) in self.postings.get(&hash(&term.text)).into_iter().flatten() {
                if let Some(score) = scores.get_mut(*doc as usize) {
                    *score += f32::from(*tf);
                }
            }
        }
        scores
    }
}

/// Medians of a hybrid search, a bare scan and a bare walk, in microseconds; measured in turn, so
/// that whatever else the machine does is the same for all.
async fn in_turn(
    memory: &Memory,
    ctx: &Ctx,
    queries: &[String],
    vectors: &[Vec<f32>],
    bare: &Bare<'_>,
) -> Outcome<(f64, f64, f64)> {
    let (mut hybrids, mut scans, mut walks) = (Vec::new(), Vec::new(), Vec::new());
    for (texts, places) in queries.chunks(TURN).zip(vectors.chunks(TURN)) {
        for text in texts {
            let query = Query {
                may_run_inline: true,
                ..Query::new(text.as_str(), mnemon_core::Filter::all_of_tenant())
            };
            let start = Instant::now();
            black_box(memory.records().search(ctx, &query).await?);
            hybrids.push(start.elapsed());
        }
        for query in places {
            let start = Instant::now();
            black_box(bare.scan(query)?);
            scans.push(start.elapsed());
        }
        for text in texts {
            let start = Instant::now();
            black_box(bare.walk(text));
            walks.push(start.elapsed());
        }
    }
    let [hybrid, scan, walk] =
        [hybrids, scans, walks].map(|times| Times::from(times).percentile(0.5));
    Ok((hybrid, scan, walk))
}

/// How many of the ten nearest of all vectors in the set are among the ten that the scan finds.
fn agreement(set: &VectorSet, queries: &[Vec<f32>]) -> Outcome<f64> {
    let all = ScanConfig {
        exact_up_to: usize::MAX,
        rescore_factor: 10,
        ..ScanConfig::default()
    };
    let (mut same, mut count) = (0, 0);
    for query in queries.iter().take(100) {
        let nearest = set.search(query, 10, Candidates::All, &all)?;
        let bar = nearest.last().map_or(0.0, |worst| worst.score - 1e-6);
        let found = set.search(query, 10, Candidates::All, &ScanConfig::default())?;
        same += found.iter().filter(|found| found.score >= bar).count();
        count += nearest.len();
    }
    Ok(same as f64 / count.max(1) as f64)
}

/// How many of the ten nearest by exact arithmetic are among the ten that the scan finds.
fn recall(set: &VectorSet, exact: &[Vec<f32>], queries: &[Vec<f32>]) -> Outcome<f64> {
    let (mut hits, mut all) = (0, 0);
    for query in queries.iter().take(100) {
        let mut scored: Vec<(f32, usize)> = exact
            .iter()
            .enumerate()
            .map(|(at, vector)| (dot(query, vector), at))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Copies of one text are equally near: any of them counts.
        let bar = scored.get(9).map_or(f32::MIN, |(score, _)| score - 1e-6);
        let found = set.search(query, 10, Candidates::All, &ScanConfig::default())?;
        hits += found
            .iter()
            .filter(|found| {
                let vector = exact.get(found.slot as usize).map(Vec::as_slice);
                dot(query, vector.unwrap_or_default()) >= bar
            })
            .count();
        all += 10.min(exact.len());
    }
    Ok(hits as f64 / all.max(1) as f64)
}
