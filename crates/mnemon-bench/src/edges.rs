//! Unusual stores beside plain ones: the same search on both, in turn. Each ratio should stay
//! below two.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;
use mnemon_core::rank::Recipe;
use mnemon_core::{Batch, Ctx, Embedding, Filter, Ids, Op, Policy, Record, Right, Tenant, Time};
use mnemon_engine::{Memory, Query};

use crate::measure::{Outcome, Times, median};

const BATCH: usize = 1000;
const SEARCHES: usize = 200;
const LOADS: usize = 5;

/// How many records the cases with many have.
pub(crate) struct Sizes {
    pub(crate) speakers: usize,
    pub(crate) users: usize,
    pub(crate) expired: usize,
    pub(crate) session: usize,
}

pub(crate) const SIZES: Sizes = Sizes {
    speakers: 54_000,
    users: 5_000,
    expired: 400,
    session: 40_000,
};

struct World<'a> {
    folder: &'a Path,
    ctx: Ctx,
    ids: Ids,
    embedder: Arc<Builtin>,
}

pub(crate) fn run(sizes: &Sizes) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let world = World {
        folder: folder.path(),
        ctx: Ctx::new(
            Tenant::default(),
            "bench",
            Time::from_millis(1_700_000_000_000)?,
        ),
        ids: Ids::new(1),
        embedder: Arc::new(Builtin::new()?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    println!("| case | plain | unusual | ratio |");
    println!("|---|---|---|---|");
    runtime.block_on(async {
        world.speakers(sizes.speakers).await?;
        world.shared(sizes.users).await?;
        world.expired(sizes.expired).await?;
        world.newest_first(sizes.session).await
    })
}

impl World<'_> {
    /// Notes about tea and other things, a minute apart.
    fn notes(&self, count: usize, mut change: impl FnMut(usize, &mut Record)) -> Vec<Record> {
        let subjects = ["tea", "the garden", "an invoice", "the train", "a letter"];
        let notes = (0..count).map(|number| {
            let subject = subjects.get(number % subjects.len()).unwrap_or(&"tea");
            let text = format!("note {number} about {subject} and what came of it");
            let mut record = Record::note(self.ids.next(self.ctx.now), &self.ctx, text);
            change(number, &mut record);
            record
        });
        notes.collect()
    }

    /// As many speakers as records, beside one.
    async fn speakers(&self, count: usize) -> Outcome<()> {
        let named = |name: &dyn Fn(usize) -> String| {
            self.notes(count, |number, record| {
                let name = name(number).into();
                record.metadata.insert("speaker".to_owned(), name);
            })
        };
        let one = self.store(&named(&|_| "ann".to_owned())).await?;
        let many = self
            .store(&named(&|number| format!("speaker{number}")))
            .await?;
        let query = Query::new(
            "what did they say about the garden?",
            Filter::all_of_tenant(),
        );
        let case = format!("{count} speakers / one, µs");
        self.compare(&case, (&one, &query), (&many, &query)).await
    }

    /// The only shared record beside those of as many users, beside the same record of a user.
    async fn shared(&self, count: usize) -> Outcome<()> {
        let mut records = self.notes(count, |number, record| {
            record.owner.user = Some(format!("user{number}"));
        });
        let text = "how the service is deployed";
        records.push(Record::note(self.ids.next(self.ctx.now), &self.ctx, text));
        let memory = self.store(&records).await?;
        let everybody = Query::new("deploy the tea service", Filter::all_of_tenant());
        let shared = Query {
            filter: Filter::seen_by(mnemon_core::Viewer::ANYONE),
            ..everybody.clone()
        };
        must_find(&memory, &self.ctx, &shared, text).await?;
        let case = format!("the one shared of {count} / all, µs");
        self.compare(&case, (&memory, &everybody), (&memory, &shared))
            .await
    }

    /// One live record beside many that have expired, beside one among as many that live.
    async fn expired(&self, count: usize) -> Outcome<()> {
        let records = |expires: Time| {
            let mut records = self.notes(count, |_, record| record.expires = Some(expires));
            let text = "a hot beverage in the afternoon";
            records.push(Record::note(self.ids.next(self.ctx.now), &self.ctx, text));
            records
        };
        let live = self.store(&records(self.ctx.now.plus_days(10))).await?;
        let expired = self.store(&records(self.ctx.now.plus_millis(1))).await?;
        let query = Query {
            recipe: Recipe::Meaning,
            ..Query::new("tea", Filter::all_of_tenant())
        };
        let late = Ctx {
            now: self.ctx.now.plus_millis(1000),
            ..self.ctx.clone()
        };
        must_find(&expired, &late, &query, "a hot beverage in the afternoon").await?;
        let world = World {
            ctx: late,
            ids: Ids::new(3),
            embedder: Arc::clone(&self.embedder),
            folder: self.folder,
        };
        let case = format!("one beside {count} expired / beside {count} live, µs");
        world
            .compare(&case, (&live, &query), (&expired, &query))
            .await
    }

    /// The first search on a session that was imported newest first, beside oldest first.
    async fn newest_first(&self, count: usize) -> Outcome<()> {
        let said = |time: &dyn Fn(usize) -> i64| {
            self.notes(count, |number, record| {
                record.owner.session = Some("s".to_owned());
                record.created = self.ctx.now.plus_millis(time(number));
            })
        };
        let query = Query::new("tea", Filter::all_of_tenant());
        let forwards = self.fill(&said(&|number| number as i64)).await?;
        let backwards = self.fill(&said(&|number| -(number as i64))).await?;
        let (mut plain, mut unusual) = (Vec::new(), Vec::new());
        for _ in 0..LOADS {
            for (url, times) in [(&forwards, &mut plain), (&backwards, &mut unusual)] {
                // Without its file the index is made from the records.
                for entry in std::fs::read_dir(self.folder)? {
                    let path = entry?.path();
                    if path.to_string_lossy().contains("index") {
                        std::fs::remove_file(path)?;
                    }
                }
                let start = Instant::now();
                let memory = self.open(url)?;
                black_box(memory.records().search(&self.ctx, &query).await?);
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        let case = format!("first search, {count} newest first / oldest first, ms");
        row(
            &case,
            median(plain.into_iter()),
            median(unusual.into_iter()),
        );
        Ok(())
    }

    /// Medians of two searches that are made in turn.
    async fn compare(
        &self,
        case: &str,
        plain: (&Memory, &Query),
        unusual: (&Memory, &Query),
    ) -> Outcome<()> {
        let mut times = [Vec::new(), Vec::new()];
        for number in 0..SEARCHES {
            for ((memory, query), times) in [plain, unusual].into_iter().zip(&mut times) {
                let start = Instant::now();
                black_box(memory.records().search(&self.ctx, query).await?);
                // The first one loads the index.
                if number > 0 {
                    times.push(start.elapsed());
                }
            }
        }
        let [plain, unusual] = times.map(|times| Times::from(times).percentile(0.5));
        row(case, plain, unusual);
        Ok(())
    }

    async fn store(&self, records: &[Record]) -> Outcome<Memory> {
        let url = self.fill(records).await?;
        self.open(&url)
    }

    /// A new store with these records and their vectors.
    async fn fill(&self, records: &[Record]) -> Outcome<String> {
        let file = self
            .folder
            .join(format!("{}.db", self.ids.next(self.ctx.now)));
        let url = format!("sqlite:{}", file.display());
        let store = mnemon_adapters::open(&url)?.backend.store;
        let grant = Policy::default().check(&self.ctx, Right::Write)?;
        for chunk in records.chunks(BATCH) {
            let mut batch = Batch::from(chunk.iter().cloned().map(Op::append).collect::<Vec<_>>());
            let texts: Vec<&str> = chunk.iter().map(|record| record.content.as_str()).collect();
            let vectors = self.embedder.embed(&texts).await?;
            for (record, vector) in chunk.iter().zip(vectors) {
                let model = self.embedder.model().clone();
                let embedding = vector.map(|vector| Embedding { model, vector });
                let embedding = embedding.map(|embedding| (record.id.clone(), embedding));
                batch.vectors.extend(embedding);
            }
            store.apply(&grant, batch).await?;
        }
        Ok(url)
    }

    fn open(&self, url: &str) -> Outcome<Memory> {
        let embedder = Arc::clone(&self.embedder) as Arc<dyn Embedder>;
        let memory = Memory::builder(mnemon_adapters::open(url)?.backend, Ids::new(2));
        Ok(memory.embedder(embedder).build())
    }
}

async fn must_find(memory: &Memory, ctx: &Ctx, query: &Query, text: &str) -> Outcome<()> {
    let hits = memory.records().search(ctx, query).await?;
    match hits.iter().any(|hit| hit.record.content == text) {
        true => Ok(()),
        false => Err(format!("`{}` does not find `{text}`", query.text).into()),
    }
}

fn row(case: &str, plain: f64, unusual: f64) {
    println!(
        "| {case} | {plain:.0} | {unusual:.0} | {:.2} |",
        unusual / plain
    );
}
