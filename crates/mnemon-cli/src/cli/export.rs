//! `mnemon export`

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use mnemon_core::{Order, Record, Scan, limits};
use mnemon_engine::Memory;

use super::door::Door;
use super::shared::{Shared, call_on};
use super::{progress, text};
use crate::operation::Selection;
use crate::{Error, api, wiring};

/// Export records as JSON lines
///
/// Writes every visible record in its canonical form, oldest first, without history. `mnemon
/// import` reads the result into this or another store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon export memory.jsonl\n  \
    mnemon export --user ann | gzip > ann.jsonl.gz\n  \
    mnemon export --store sqlite:old.db | mnemon import - --store sqlite:new.db")]
pub(super) struct Args {
    /// File to write; it must not exist yet [default: stdout]
    file: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    filter: Shared<Selection>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let filter = call_on::<Selection, _>(&memory, args.filter.arguments()?, door).await?;
    // In order of creation: a record that is changed meanwhile keeps its place, and comes out once.
    let mut scan = Scan {
        order: Order::Oldest,
        ..Scan::new(filter, limits::PAGE)
    };
    let path = args.file.filter(|path| path != Path::new("-"));
    let mut target = path
        .map(|path| Target::create(path, args.force))
        .transpose()?;
    let bar = progress::bar(&door.out, total(&memory, door).await?, "records");
    let mut count = 0;
    loop {
        let page = api::list::run(&memory, &ctx, scan.clone()).await?;
        for record in &page.records {
            match &mut target {
                Some(target) => target.write(record)?,
                None => door.out.json_line(record)?,
            }
        }
        count += page.records.len() as u64;
        bar.inc(page.records.len() as u64);
        scan.after = page.next;
        if scan.after.is_none() {
            break;
        }
    }
    bar.finish_and_clear();
    let Some(target) = target else {
        return Ok(());
    };
    let path = target.finish()?;
    if door.out.json {
        let done = serde_json::json!({ "file": path, "records": count });
        return door.out.json(&done);
    }
    let count = text::count(count, "record");
    say!(door, "wrote {count} to {}", path.display())
}

/// How far the bar goes; with filters it will not get there.
async fn total(memory: &Memory, door: &Door) -> Result<u64, Error> {
    let stats = api::stats::run(memory, &door.ctx()?).await?;
    Ok(stats.records)
}

/// What an export is called until it is whole.
const UNFINISHED: &str = ".mnemon-export";

/// The file, written beside its place and put there when it is whole.
struct Target {
    path: PathBuf,
    force: bool,
    file: BufWriter<tempfile::NamedTempFile>,
}

impl Target {
    fn create(path: PathBuf, force: bool) -> Result<Self, Error> {
        if !force && path.exists() {
            let what = format!("{} exists; pass --force to write over it", path.display());
            return Err(mnemon_core::Invalid::new("file", what).into());
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // What an export that was killed left here; one that is under way is younger.
        let _ = wiring::sweep_stale(folder, UNFINISHED);
        let made = tempfile::Builder::new()
            .prefix(".")
            .suffix(UNFINISHED)
            .rand_bytes(16)
            .tempfile_in(folder);
        let file = made.map_err(Error::file("written", &path))?;
        let file = BufWriter::new(file);
        Ok(Self { path, force, file })
    }

    fn write(&mut self, record: &Record) -> Result<(), Error> {
        let json = serde_json::to_string(record).map_err(Error::no_json)?;
        writeln!(self.file, "{json}").map_err(Error::file("written", &self.path))
    }

    fn finish(self) -> Result<PathBuf, Error> {
        let path = self.path;
        let failed = Error::file("written", &path);
        let whole = self.file.into_inner();
        let file = whole.map_err(|error| failed(error.into_error()))?;
        file.as_file().sync_all().map_err(failed)?;
        if let Ok(there) = std::fs::metadata(&path) {
            let kept = file.as_file().set_permissions(there.permissions());
            kept.map_err(failed)?;
        }
        let placed = match self.force {
            true => file.persist(&path),
            false => file.persist_noclobber(&path),
        };
        placed.map_err(|error| failed(error.error))?;
        Ok(path)
    }
}
