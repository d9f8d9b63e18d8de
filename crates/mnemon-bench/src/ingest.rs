//! Taking in a folder, and taking it in again.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mnemon_adapters::Sqlite;
use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};
use mnemon_core::{Ctx, Ids, Tenant, Time};
use mnemon_engine::Memory;
use mnemon_operations::api::ingest::{Request, Response, run as ingest};

type Failure = Box<dyn std::error::Error>;

/// The built-in embedder, counting what it is asked for.
struct Counting {
    inner: Builtin,
    texts: AtomicUsize,
}

#[async_trait::async_trait]
impl Embedder for Counting {
    fn model(&self) -> &ModelId {
        self.inner.model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        self.inner.embed(texts).await
    }
}

/// One row of the table.
struct Round {
    seconds: f64,
    embedded: usize,
    told: Response,
}

/// Takes a folder of `files` files in, then again unchanged, touched, and with every hundredth file
/// edited.
pub(crate) fn run(files: usize, folder: Option<&Path>) -> Result<(), Failure> {
    let own = tempfile::tempdir()?;
    let root = folder.unwrap_or(own.path());
    let docs = root.join("docs");
    generate(&docs, files)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let embedder = Arc::new(Counting {
        inner: Builtin::new()?,
        texts: AtomicUsize::new(0),
    });
    let store = Sqlite::open(&root.join("ingest.db"))?;
    let memory = Memory::builder(Arc::new(store), Ids::new(1))
        .embedder(embedder.clone())
        .build();
    let round = |ahead_ms: i64| -> Result<Round, Failure> {
        let before = embedder.texts.load(Ordering::Relaxed);
        let request = Request {
            paths: vec![docs.clone()],
            ..Request::default()
        };
        let ctx = Ctx::new(Tenant::default(), "bench", now()?.plus_millis(ahead_ms));
        let start = Instant::now();
        let told = runtime.block_on(ingest(&memory, &ctx, request, &mut |_| {}))?;
        Ok(Round {
            seconds: start.elapsed().as_secs_f64(),
            embedded: embedder.texts.load(Ordering::Relaxed) - before,
            told,
        })
    };
    let floor = read_all(&docs)?;
    // The files are new, and their clock has not ticked: as if it had, so that stamps count.
    let first = round(10_000)?;
    let again = round(20_000)?;
    touch(&docs)?;
    let touched = round(30_000)?;
    edit(&docs)?;
    let edited = round(40_000)?;
    println!("| round | s | of the first | embedded | added | replaced | unchanged |");
    println!("|---|---|---|---|---|---|---|");
    println!("| read and hash all files (floor) | {floor:.3} | | | | | |");
    let rounds = [
        ("first", &first),
        ("again", &again),
        ("again, every file touched", &touched),
        ("every hundredth file edited", &edited),
    ];
    for (label, round) in rounds {
        let (seconds, share) = (round.seconds, round.seconds / first.seconds);
        let Round { embedded, told, .. } = round;
        let (added, replaced, unchanged) = (told.added, told.replaced, told.unchanged);
        println!(
            "| {label} | {seconds:.3} | {share:.3} | {embedded} | {added} | {replaced} | {unchanged} |"
        );
    }
    let kept = again.embedded == 0 && again.told.unchanged == files as u64;
    let fast = again.seconds < first.seconds / 10.0;
    match kept && fast {
        true => Ok(()),
        false => Err("taking in an unchanged folder again costs too much".into()),
    }
}

fn now() -> Result<Time, Failure> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    Ok(Time::from_millis(i64::try_from(since.as_millis())?)?)
}

/// Markdown of a few kilobytes each, in folders of a hundred.
fn generate(docs: &Path, files: usize) -> Result<(), Failure> {
    for n in 0..files {
        let folder = docs.join(format!("part{:03}", n / 100));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("page{n:05}.md")), page(n))?;
    }
    Ok(())
}

fn page(n: usize) -> String {
    let mut page = format!("# Page {n}\n\n");
    for section in 0..4 {
        page.push_str(&format!("## Section {section} of page {n}\n\n"));
        for sentence in 0..12 {
            let mut seed = n * 7919 + section * 104_729 + sentence * 1_299_709;
            let words = (0..10).map(|_| {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                WORDS
                    .get((seed >> 33) % WORDS.len())
                    .copied()
                    .unwrap_or_default()
            });
            let words: Vec<&str> = words.collect();
            page.push_str(&format!("The {}. ", words.join(" ")));
        }
        page.push_str("\n\n");
    }
    page
}

const WORDS: [&str; 32] = [
    "kettle", "water", "filter", "pressure", "valve", "boils", "cools", "measures", "sensor",
    "reading", "table", "index", "record", "memory", "agent", "plans", "before", "after", "slowly",
    "quickly", "with", "without", "under", "over", "morning", "evening", "report", "failure",
    "repair", "manual", "order", "supplier",
];

fn each_file(
    docs: &Path,
    mut work: impl FnMut(usize, &Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut n = 0;
    for folder in fs::read_dir(docs)? {
        for file in fs::read_dir(folder?.path())? {
            work(n, &file?.path())?;
            n += 1;
        }
    }
    Ok(())
}

/// What nobody who looks at the content can do without.
fn read_all(docs: &Path) -> Result<f64, Failure> {
    let start = Instant::now();
    each_file(docs, |_, path| {
        std::hint::black_box(blake3::hash(&fs::read(path)?));
        Ok(())
    })?;
    Ok(start.elapsed().as_secs_f64())
}

fn touch(docs: &Path) -> Result<(), Failure> {
    each_file(docs, |_, path| {
        let file = fs::File::options().append(true).open(path)?;
        Ok(file.set_modified(std::time::SystemTime::now())?)
    })
}

fn edit(docs: &Path) -> Result<(), Failure> {
    each_file(docs, |n, path| {
        if n % 100 == 0 {
            let page = fs::read_to_string(path)?;
            fs::write(path, page.replacen("The ", "The edited ", 1))?;
        }
        Ok(())
    })
}
