//! `mnemon import`

use std::io::Read;
use std::path::PathBuf;

use axum::body::Bytes;
use clap::ValueEnum;
use http_body_util::StreamBody;
use hyper::body::Frame;
use indicatif::ProgressBar;
use mnemon_core::Record;
use mnemon_engine::OnConflict;
use reqwest::header::CONTENT_TYPE;

use super::door::Door;
use super::lines::{self, Lines};
use super::remote::{Remote, noted, watched};
use super::{progress, text};
use mnemon_operations::Error;
use mnemon_operations::api::import::Response;
use mnemon_operations::operation::Watch;
use mnemon_server::http::{export, import};

/// Bytes that are read and sent at a time.
const PART_BYTES: u64 = 256 * 1024;

/// Import records that `mnemon export` wrote
///
/// Records keep their ids, times and links, and belong to the current tenant. All lines are checked
/// before the first is written. Records that already exist unchanged are skipped, so an import that
/// was interrupted can be run again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon import memory.jsonl\n  \
    zcat ann.jsonl.gz | mnemon import - --on-conflict skip")]
pub(super) struct Args {
    /// File to read; - is stdin
    file: PathBuf,
    /// Action if a different record has the same id
    #[arg(long, value_enum, default_value_t)]
    on_conflict: OnConflictArg,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum OnConflictArg {
    /// Stop with an error
    #[default]
    Fail,
    /// Keep the existing record
    Skip,
    /// Replace it by the imported record; the old version stays in the history
    Replace,
}

impl From<OnConflictArg> for OnConflict {
    fn from(arg: OnConflictArg) -> Self {
        match arg {
            OnConflictArg::Fail => Self::Fail,
            OnConflictArg::Skip => Self::Skip,
            OnConflictArg::Replace => Self::Replace,
        }
    }
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let mut lines = Lines::open(Some(&args.file))?;
    let count = lines.check::<Record>(Record::check)?;
    let bar = progress::bar(&door.out, count, "records");
    let done = match &door.remote {
        Some(remote) => {
            let watch = |done, _| bar.set_position(done);
            send(lines, args.on_conflict, remote, door, &watch).await
        }
        None => store(lines, args.on_conflict, door, &bar).await,
    };
    bar.finish_and_clear();
    show(&done?, door)
}

async fn store(
    mut lines: Lines,
    on_conflict: OnConflictArg,
    door: &Door,
    bar: &ProgressBar,
) -> Result<Response, Error> {
    let memory = door.memory()?;
    let place = lines.place.clone();
    let mut done = Response::default();
    for batch in lines.batches::<Record>(|record| Some(&record.id))? {
        let batch = batch?;
        let size = batch.len() as u64;
        let ids: Vec<_> = batch
            .iter()
            .map(|item| (item.line, Some(item.value.id.clone())))
            .collect();
        let imported = batch.into_iter().map(|item| item.value).collect();
        let (records, ctx) = (memory.records(), door.ctx()?);
        let receipt = records.import(&ctx, imported, on_conflict.into()).await;
        done.add(receipt.map_err(|error| lines::blame(&place, &ids, error.into()))?);
        bar.inc(size);
    }
    Ok(done)
}

/// Sends the lines while they are read.
async fn send(
    lines: Lines,
    on_conflict: OnConflictArg,
    remote: &Remote,
    door: &Door,
    watch: Watch<'_>,
) -> Result<Response, Error> {
    let mut file = lines.into_file()?;
    let parts = std::iter::from_fn(move || {
        let mut part = Vec::new();
        match (&mut file).take(PART_BYTES).read_to_end(&mut part) {
            Ok(0) => None,
            Ok(_) => Some(Ok(Frame::data(Bytes::from(part)))),
            Err(error) => Some(Err(error)),
        }
    });
    let body = StreamBody::new(futures::stream::iter(parts));
    let on_conflict = on_conflict.to_possible_value();
    let word = on_conflict.as_ref().map_or("fail", |word| word.get_name());
    let path = format!("{}?on_conflict={word}", import::ROUTE.path);
    let request = remote
        .request(reqwest::Method::POST, &path)
        .header(CONTENT_TYPE, export::MEDIA_TYPE)
        .body(reqwest::Body::wrap(body));
    let answer = remote.sent(watched(request), watch).await?;
    remote.read_value(noted(answer, &door.out.notices))
}

fn show(summary: &Response, door: &mut Door) -> Result<(), Error> {
    return_json!(door, summary);
    let mut parts = vec![format!("{} stored", summary.stored)];
    let others = [
        (summary.replaced, "replaced"),
        (summary.duplicate, "already there"),
        (summary.skipped, "skipped, a different one is there"),
        (
            summary.evicted.len() as u64,
            "evicted, the namespace is full",
        ),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{count} {what}")));
    let count = text::count(summary.records, "record");
    say!(door, "read {count}: {}", parts.join("; "))?;
    door.out.undo_with(summary.commit)
}
