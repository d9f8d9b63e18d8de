//! `mnemon export`

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mnemon_core::{Ctx, Order, Scan, limits};
use mnemon_engine::Memory;

use super::door::Door;
use super::remote::{LONG_TIMEOUT, query};
use super::shared::{Shared, call, call_on};
use super::{progress, text};
use mnemon_operations::api::lines::utf8;
use mnemon_operations::operation::{Arguments, Selection, Stats};
use mnemon_operations::{Error, api, wiring};
use mnemon_server::http::export;

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
    let mut source = Source::open(args.filter.arguments()?, door).await?;
    let path = args.file.filter(|path| path != Path::new("-"));
    let mut target = path
        .map(|path| Target::create(path, args.force))
        .transpose()?;
    let bar = progress::bar(&door.out, source.total(door).await?, "records");
    let mut count = 0;
    while let Some(lines) = source.next(door).await? {
        for line in &lines {
            match &mut target {
                Some(target) => target.write(line)?,
                None => door.out.line(line)?,
            }
        }
        count += lines.len() as u64;
        bar.inc(lines.len() as u64);
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

/// Where the records come from.
enum Source {
    Here {
        memory: Arc<Memory>,
        ctx: Ctx,
        /// The next page; none after the last.
        scan: Option<Box<Scan>>,
    },
    There {
        response: reqwest::Response,
        /// The beginning of a line whose end has not arrived.
        rest: Vec<u8>,
    },
}

impl Source {
    async fn open(filter: Arguments, door: &Door) -> Result<Self, Error> {
        if let Some(remote) = &door.remote {
            let path = format!("{}{}", export::ROUTE.path, query(&filter.into_fields()));
            let request = remote.request(reqwest::Method::GET, &path);
            return Ok(Self::There {
                response: remote.answered(request.timeout(LONG_TIMEOUT)).await?,
                rest: Vec::new(),
            });
        }
        let (memory, ctx) = (door.memory()?, door.ctx()?);
        let filter = call_on::<Selection, _>(&memory, filter, door).await?;
        // In order of creation: a record that is changed meanwhile keeps its place, and comes out
        // once.
        let scan = Scan {
            order: Order::Oldest,
            ..Scan::new(filter, limits::PAGE)
        };
        Ok(Self::Here {
            memory,
            ctx,
            scan: Some(Box::new(scan)),
        })
    }

    /// How far the bar goes; with filters it will not get there.
    async fn total(&self, door: &Door) -> Result<u64, Error> {
        let stats = match self {
            Self::Here { memory, ctx, .. } => api::stats::run(memory, ctx).await?,
            Self::There { .. } => call::<Stats>(Arguments::default(), door).await?,
        };
        Ok(stats.records)
    }

    /// The next lines; none at the end.
    async fn next(&mut self, door: &Door) -> Result<Option<Vec<String>>, Error> {
        match (self, &door.remote) {
            (Self::Here { memory, ctx, scan }, _) => {
                let Some(mut now) = scan.take() else {
                    return Ok(None);
                };
                let page = api::list::run(memory, ctx, Scan::clone(&now)).await?;
                now.after = page.next;
                *scan = now.after.is_some().then_some(now);
                let lines = page.records.iter().map(serde_json::to_string);
                let lines = lines.collect::<Result<_, _>>().map_err(Error::no_json)?;
                Ok(Some(lines))
            }
            (Self::There { response, rest }, Some(remote)) => {
                let Some(part) = remote.part(response).await? else {
                    return match rest.is_empty() {
                        true => Ok(None),
                        false => Err(remote.unreadable("it ends within a line")),
                    };
                };
                rest.extend_from_slice(&part);
                let end = part.iter().rposition(|byte| *byte == b'\n');
                let end = end.map_or(0, |at| rest.len() - part.len() + at + 1);
                let whole: Vec<u8> = rest.drain(..end).collect();
                let text = utf8("answer", whole)?;
                Ok(Some(text.lines().map(str::to_owned).collect()))
            }
            (Self::There { .. }, None) => Ok(None),
        }
    }
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

    fn write(&mut self, line: &str) -> Result<(), Error> {
        writeln!(self.file, "{line}").map_err(Error::file("written", &self.path))
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
