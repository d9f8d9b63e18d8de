//! Showing a conversation from its log: only the end is read first, so that it costs the same however
//! long the log is. And appending to it, beside a bare write and sync.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use mnemon_adapters::Disk;
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Ids, Message, Role, Tenant, Time};
use mnemon_engine::{Memory, Project, ProjectConfig};

use crate::measure::{Outcome, Table, Times};

const LOG: &str = ".airsspec/contexts/agent/bench.jsonl";
const BOOTS: usize = 50;
const APPENDS: usize = 100;

pub(crate) fn run(megabytes: &[usize]) -> Outcome<()> {
    let mut table = Table::new(megabytes);
    for size in megabytes {
        measure(*size, &mut table)?;
    }
    table.print();
    Ok(())
}

fn measure(megabytes: usize, table: &mut Table) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    write_log(folder.path(), megabytes * 1024 * 1024)?;
    let disk = Arc::new(Disk::new(folder.path()));
    let root = folder.path().display().to_string();
    let project = Project::new(disk.clone(), disk, root, ProjectConfig::default())?;
    let now = Time::from_millis(1_700_000_000_000)?;
    let ctx = Ctx::new(Tenant::default(), "bench", now);
    let show = |memory: &Memory| -> Result<(), mnemon_engine::Error> {
        let window = memory.window("bench", "bench")?.in_project(&project)?;
        futures::executor::block_on(window.catch_up(&ctx))?;
        futures::executor::block_on(window.show(&ctx))?;
        Ok(())
    };
    let fresh = || Memory::builder(Arc::new(Ram::new()), Ids::new(3)).build();
    let first = Times::of(BOOTS, |_| show(&fresh()))?;
    table.add("first boot p50, µs", first.percentile(0.5));
    let memory = fresh();
    show(&memory)?;
    let boots = Times::of(BOOTS, |_| show(&memory))?;
    table.add("boot p50, µs", boots.percentile(0.5));
    let window = memory.window("bench", "bench")?.in_project(&project)?;
    let appends = Times::of(APPENDS, |number| {
        let said = Message::text("", Role::User, format!("line {number} of the benchmark"));
        futures::executor::block_on(window.add_message(&ctx, said)).map(drop)
    })?;
    table.add("append p50, µs", appends.percentile(0.5));
    let mut bare = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.path().join("bare"))?;
    let floor = Times::of(APPENDS, |_| {
        bare.write_all(&[b'x'; 80]).and_then(|()| bare.sync_data())
    })?;
    table.add("bare write and sync p50, µs", floor.percentile(0.5));
    Ok(())
}

fn write_log(folder: &Path, bytes: usize) -> Outcome<()> {
    let path = folder.join(LOG);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    let line = serde_json::json!({
        "type": "observation", "result": "x".repeat(400), "ts": "2026-01-31T12:00:00.000Z",
    });
    let line = line.to_string() + "\n";
    fs::write(path, line.repeat(bytes / line.len()))?;
    Ok(())
}
