//! Activation of an agent beside reading the bytes of its files, and indexing after one change.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mnemon_adapters::Disk;
use mnemon_core::{Ctx, Ids, Tenant, Time};
use mnemon_engine::Memory;
use mnemon_engine::agentfiles::{AgentFiles, Decision, ROOT};

use crate::measure::{Table, Times};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CALLS: usize = 20;

pub(crate) fn run(sizes: &[usize], agents: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut table = Table::new(sizes);
    for size in sizes {
        runtime.block_on(measure(*size, agents, &mut table))?;
    }
    table.print();
    Ok(())
}

async fn measure(decisions: usize, agents: usize, table: &mut Table) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let now = Time::from_millis(1_700_000_000_000)?;
    let ctx = Ctx::new(Tenant::default(), "bench", now);
    let files = AgentFiles::new(Arc::new(Disk::new(folder.path())), ROOT)?;
    files.begin(&ctx, "coder", "Writes the code").await?;
    let memory = folder.path().join(".microai/agents/coder/memory");
    std::fs::write(memory.join("decisions.md"), log(decisions))?;
    let one = read_and_activate(&files, &memory, "coder").await?;
    table.add("reading the bytes p50, µs", one.0);
    table.add("activation p50, µs", one.1);
    table.add("activation / reading", one.1 / one.0);
    let start = Instant::now();
    let decision = Decision {
        title: "One more".to_owned(),
        decision: "So be it".to_owned(),
        ..Decision::default()
    };
    files.decide(&ctx, "coder", &decision).await?;
    table.add("one more decision, µs", micros(start));
    hundred(&files, &ctx, folder.path(), agents, table).await
}

/// The same with many agents of ten decisions each, and the index over all of them.
async fn hundred(
    files: &AgentFiles,
    ctx: &Ctx,
    folder: &Path,
    agents: usize,
    table: &mut Table,
) -> Outcome<()> {
    let (mut floor, mut told) = (Vec::new(), Vec::new());
    for number in 0..agents {
        let name = format!("agent{number}");
        files.begin(ctx, &name, "One of many").await?;
        let memory = folder.join(format!(".microai/agents/{name}/memory"));
        std::fs::write(memory.join("decisions.md"), log(10))?;
        let (bytes, activation) = read_and_activate(files, &memory, &name).await?;
        floor.push(bytes);
        told.push(activation);
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
    table.add("of many agents: reading, µs", mean(&floor));
    table.add("of many agents: activation, µs", mean(&told));
    let url = format!("sqlite:{}", folder.join("m.db").display());
    let memory = Memory::builder(mnemon_adapters::open(&url)?.backend, Ids::new(3)).build();
    let start = Instant::now();
    files.index(ctx, &memory).await?;
    table.add("index everything, µs", micros(start));
    let path = folder.join(".microai/agents/agent0/memory/decisions.md");
    std::fs::write(path, log(11))?;
    let start = Instant::now();
    let done = files.index(ctx, &memory).await?;
    table.add("index after one changed file, µs", micros(start));
    if (done.files, done.written) != (1, 1) {
        return Err(format!("{} files were read for one change", done.files).into());
    }
    Ok(())
}

/// Middle times of reading an agent's files, and of telling it what is in them.
async fn read_and_activate(files: &AgentFiles, memory: &Path, name: &str) -> Outcome<(f64, f64)> {
    let (mut reads, mut tells) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let start = Instant::now();
        for file in ["context.md", "decisions.md", "../agent.md"] {
            std::hint::black_box(std::fs::read(memory.join(file))?);
        }
        reads.push(start.elapsed());
        let start = Instant::now();
        std::hint::black_box(files.activate(name, None).await?);
        tells.push(start.elapsed());
    }
    let middle = |times: Vec<std::time::Duration>| Times::from(times).percentile(0.5);
    Ok((middle(reads), middle(tells)))
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn log(decisions: usize) -> String {
    let mut text = String::from("# Key Decisions Log\n\n---\n");
    for number in 0..decisions {
        let day = format!(
            "20{:02}-{:02}-{:02}",
            number / 336 % 24,
            number / 28 % 12 + 1,
            number % 28 + 1
        );
        let _ = write!(
            text,
            "\n## {day}: Decision number {number}\n\n**Context | Bối cảnh**:\nWe had to choose, and **this** came up with `code {number}`.\n\n\
             **Decision | Quyết định**:\nThe first of the two.\n\n**Reason | Lý do**:\n- It is simple\n- It is there\n\n\
             **Impact | Ảnh hưởng**:\n- None to speak of\n\n**Reversible | Có thể đảo ngược**: Yes\n\n---\n"
        );
    }
    text
}
