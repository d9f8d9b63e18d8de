//! Records that were exported elsewhere, as JSON lines that are written while they arrive.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::BodyExt;
use mnemon_core::{Ctx, Invalid, Record};
use mnemon_engine::OnConflict;
use mnemon_engine::access::{Amount, Caller, Rights};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::api::{Api, Refused, json_response, note, problem_of};
use super::caller::Lock;
use super::events::{self, Progress};
use super::export::MEDIA_TYPE;
use super::gate::JsonValues;
use super::problem::Problem;
use super::request_fields::{KEY_HEADER, from_query};
use super::shares::{Share, Shares};
use mnemon_operations::api::import::Response as Imported;
use mnemon_operations::api::lines::{self, Batch, Numbered};
use mnemon_operations::operation::routes::{Method, Reach, Route, Seat};
use mnemon_operations::operation::{Arguments, Field, Interface, Watch, unwatched};
use mnemon_operations::{Error, wiring};

pub const ROUTE: Route = Route {
    method: Method::Post,
    path: "/v1/import",
    right: Rights::Write,
    reach: Reach::Tenant,
    is_long: true,
    is_text: false,
};

/// Names of the lines; the second is for clients that do not know the first.
pub const MEDIA_TYPES: [&str; 2] = [MEDIA_TYPE, "application/octet-stream"];
/// A whole import, in bytes.
const BYTES: u64 = 16 * 1024 * 1024 * 1024;
/// Imports at the same time, and those of one tenant. Each holds a batch and a line in memory.
const IMPORTS: usize = 4;
const TENANT_IMPORTS: usize = 2;
/// Values in the JSON of one line: each takes much more memory than its text.
const LINE_VALUES: usize = 100_000;
/// A longer line is parsed on a thread of its own, so that other requests go on.
const INLINE_BYTES: usize = 64 * 1024;
/// How long the rest of an import that failed is read, so that its sender reads the answer.
const REST: Duration = Duration::from_secs(5);
/// What an error calls the lines.
const PLACE: &str = "body";

pub const CONFLICTS: [(&str, OnConflict); 3] = [
    ("fail", OnConflict::Fail),
    ("skip", OnConflict::Skip),
    ("replace", OnConflict::Replace),
];

pub(super) fn fields() -> Vec<Field> {
    let about = "Action if a different record has the same id";
    let words = CONFLICTS.iter().map(|(word, _)| *word);
    vec![Field::one_of("on_conflict", words, about).default("fail")]
}

/// `patience` is how long a line may take to arrive.
pub(super) fn router(api: &Arc<Api>, lock: &Arc<Lock>, patience: Duration) -> Router {
    let importing = Arc::new(Importing {
        api: api.clone(),
        lock: lock.clone(),
        slots: Arc::new(Semaphore::new(IMPORTS)),
        shares: Shares::new(TENANT_IMPORTS, TENANT_IMPORTS),
        patience,
    });
    let answer = move |Extension(caller): Extension<Caller>, request: Request| {
        answer(importing.clone(), caller, request)
    };
    Router::new().route(ROUTE.path, post(answer))
}

/// What all imports share.
struct Importing {
    api: Arc<Api>,
    lock: Arc<Lock>,
    slots: Arc<Semaphore>,
    shares: Shares,
    patience: Duration,
}

async fn answer(importing: Arc<Importing>, caller: Caller, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let lines = Lines::new(body, importing.patience);
    let api = importing.api.clone();
    let mut import = match begin(importing, caller, &head, lines).await {
        Ok(import) => import,
        Err(refused) => return closing(refused.problem(&HeaderMap::new())),
    };
    if events::are_wanted(&head.headers) {
        return events::answer(|progress| {
            Box::pin(async move {
                let done = api.finish(async move {
                    let watch = |done, total| {
                        let _ = progress.send(Progress { done, total });
                    };
                    import.run(&watch).await
                });
                done.await.map_err(|error| problem_of(&error)).flatten()
            })
        });
    }
    let done = api.finish(async move { import.run(&unwatched).await });
    match done.await.map_err(|error| problem_of(&error)).flatten() {
        Ok(answer) => json_response(&answer),
        Err(problem) => closing(problem),
    }
}

/// The connection ends, as the rest of the request may still be on its way.
fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

async fn begin(
    importing: Arc<Importing>,
    caller: Caller,
    head: &Parts,
    lines: Lines,
) -> Result<Import, Refused> {
    let api = importing.api.clone();
    api.allow(&caller, &ROUTE)?;
    let kind = head.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !MEDIA_TYPES
        .iter()
        .any(|known| kind.eq_ignore_ascii_case(known))
    {
        let what = format!("send a record on each line as Content-Type: {MEDIA_TYPE}");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(refused(status, "unsupported-media-type", what));
    }
    if head.headers.contains_key(KEY_HEADER) {
        let what = "is not used by this route: records keep their ids, so send the same lines again, \
                    and records that are stored already count as `duplicate`";
        return Err(Invalid::new(KEY_HEADER.as_str(), what).into());
    }
    let fields = fields();
    let sent = from_query(&fields, head.uri.query().unwrap_or_default())?;
    let arguments = Arguments::check_on(Interface::Http, &fields, sent)?;
    let word = arguments.text("on_conflict");
    let mut known = CONFLICTS.iter();
    let known = known.find(|(known, _)| Some(*known) == word.as_deref());
    let seat = api.seat(&caller.tenant)?;
    let ctx = api.ctx(&seat, &caller)?;
    api.check_request(&ctx)?;
    api.check_audit()?;
    let (slot, share) = (
        importing.slots.clone().try_acquire_owned(),
        importing.shares.take(&caller),
    );
    let (Ok(slot), Ok(share)) = (slot, share) else {
        let what = "too many imports are being worked on; try again later";
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, "busy", what));
    };
    Ok(Import {
        api,
        lock: importing.lock.clone(),
        headers: head.headers.clone(),
        caller,
        seat,
        ctx,
        on_conflict: known.map_or(OnConflict::Fail, |(_, meant)| *meant),
        lines,
        done: Imported::default(),
        _slot: (slot, share),
    })
}

fn refused(status: StatusCode, code: &str, what: impl Into<String>) -> Refused {
    Refused::Problem(Box::new(Problem::new(status, code, what)))
}

/// An import that is being carried out.
struct Import {
    api: Arc<Api>,
    lock: Arc<Lock>,
    headers: HeaderMap,
    caller: Caller,
    seat: Arc<Seat>,
    ctx: Ctx,
    on_conflict: OnConflict,
    lines: Lines,
    done: Imported,
    _slot: (OwnedSemaphorePermit, Share),
}

impl Import {
    async fn run(&mut self, watch: Watch<'_>) -> Result<Value, Problem> {
        let failed = match self.all(watch).await {
            Ok(()) => None,
            Err(refused) => Some(refused.problem(&HeaderMap::new())),
        };
        if let Some(problem) = failed {
            self.record(Vec::new(), problem.status).await;
            let _ = timeout(REST, self.lines.pass_over()).await;
            return Err(problem);
        }
        let answer = serde_json::to_value(&self.done).map_err(Error::no_json);
        let mut answer = answer.map_err(|error| problem_of(&error))?;
        note(&self.ctx, &mut answer);
        Ok(answer)
    }

    async fn all(&mut self, watch: Watch<'_>) -> Result<(), Refused> {
        let mut batch = Batch::default();
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(refused) => return Err(self.located(refused)),
            };
            let number = self.lines.line;
            let item = decode(number, line).await;
            let Some(item) = item.map_err(|error| self.at(number, error))? else {
                continue;
            };
            let id = item.value.id.clone();
            if let Err(item) = batch.take(item, Some(id.clone())) {
                self.write(std::mem::take(&mut batch)).await?;
                watch(self.done.records, None);
                // An empty batch takes anything.
                let _ = batch.take(item, Some(id));
            }
        }
        self.write(batch).await?;
        watch(self.done.records, Some(self.done.records));
        Ok(())
    }

    async fn write(&mut self, batch: Batch<Record>) -> Result<(), Refused> {
        if batch.items.is_empty() {
            return Ok(());
        }
        // The key may have been revoked since the last batch.
        if !self.lock.still_allows(&self.headers, &self.caller).await {
            let what = format!("the key is no longer valid{}", self.before());
            let status = StatusCode::UNAUTHORIZED;
            return Err(refused(status, "unauthorized", what));
        }
        self.ctx.now = wiring::now()?;
        let items = batch.items;
        let ids: Vec<_> = items
            .iter()
            .map(|item| (item.line, Some(item.value.id.clone())))
            .collect();
        let first = ids.first().map_or(1, |(line, _)| *line);
        let weights = items.iter().map(|item| item.value.weight() as u64);
        let added = Amount {
            records: items.len() as u64,
            bytes: weights.sum(),
        };
        let room = self.api.check_write(&self.ctx, added).await;
        room.map_err(|error| self.at(first, error))?;
        let imported = items.into_iter().map(|item| item.value).collect();
        let records = self.seat.memory.records();
        let receipt = records.import(&self.ctx, imported, self.on_conflict).await;
        let receipt = receipt.map_err(|error| {
            let error = Error::from(error);
            self.at(lines::blamed(&ids, &error), error)
        })?;
        self.done.add(receipt);
        let ids = ids.into_iter().filter_map(|(_, id)| id);
        let ids = ids.map(|id| id.to_string()).collect();
        self.record(ids, StatusCode::OK.as_u16()).await;
        Ok(())
    }

    async fn record(&mut self, ids: Vec<String>, status: u16) {
        let operation = "import".to_owned();
        self.api
            .record(&self.ctx, &self.caller, operation, ids, status)
            .await;
    }

    /// The error with its line, and with how many records were stored before.
    fn at(&self, line: u64, error: Error) -> Error {
        lines::at(PLACE, line, &self.before(), error)
    }

    fn before(&self) -> String {
        match self.done.records {
            0 => lines::NOTHING_DONE.to_owned(),
            1 => " (1 record before it was imported)".to_owned(),
            many => format!(" ({many} records before it were imported)"),
        }
    }

    /// The same for lines that did not arrive.
    fn located(&self, refused: Refused) -> Refused {
        match refused {
            Refused::Error(error) => Refused::Error(self.at(self.lines.line, error)),
            Refused::Problem(mut problem) => {
                let (line, before) = (self.lines.line, self.before());
                problem.detail = format!("{}, at line {line}{before}", problem.detail);
                Refused::Problem(problem)
            }
        }
    }
}

/// The record of a line, unless it is blank.
async fn decode(number: u64, line: Vec<u8>) -> Result<Option<Numbered<Record>>, Error> {
    if JsonValues::default().count(&line) > LINE_VALUES {
        let what = format!("holds more than {LINE_VALUES} values");
        return Err(Invalid::new("line", what).into());
    }
    let decode = move |line: Vec<u8>| {
        let item = lines::decode::<Record>(number, line)?;
        item.iter().try_for_each(|item| item.value.check())?;
        Ok(item)
    };
    match line.len() > INLINE_BYTES {
        true => tokio::task::spawn_blocking(move || decode(line))
            .await
            .map_err(|error| Error::Internal(error.to_string()))?,
        false => decode(line),
    }
}

/// The lines of a body, as they arrive.
struct Lines {
    body: Body,
    /// Bytes that have arrived and were not read.
    arrived: Vec<u8>,
    /// How many of them belong to lines that were read.
    passed: usize,
    /// How many of them are known to hold no line break.
    searched: usize,
    /// Bytes of the whole body so far.
    bytes: u64,
    /// The number of the line that was read last.
    line: u64,
    ended: bool,
    patience: Duration,
}

impl Lines {
    fn new(body: Body, patience: Duration) -> Self {
        Self {
            body,
            arrived: Vec::new(),
            passed: 0,
            searched: 0,
            bytes: 0,
            line: 0,
            ended: false,
            patience,
        }
    }

    /// The next line that is not blank, with its number in `line`.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Refused> {
        let patience = self.patience;
        let reading = async {
            loop {
                // Lines that are there already are read without waiting: others want to go on, too.
                tokio::task::coop::consume_budget().await;
                self.line += 1;
                match self.read().await {
                    Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                    read => return read,
                }
            }
        };
        match timeout(patience, reading).await {
            Ok(line) => line,
            Err(_) => {
                let what = "a line of the body took too long to arrive";
                Err(refused(StatusCode::REQUEST_TIMEOUT, "timeout", what))
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Vec<u8>>, Refused> {
        loop {
            let waiting = self.arrived.get(self.passed..).unwrap_or_default();
            let new = waiting.get(self.searched..).unwrap_or_default();
            if let Some(at) = new.iter().position(|byte| *byte == b'\n') {
                let (line, _) = waiting.split_at(self.searched + at + 1);
                let line = line.to_vec();
                self.passed += line.len();
                self.searched = 0;
                return Ok(Some(line));
            }
            // Once for each part of the body, not for each line.
            self.arrived.drain(..self.passed);
            self.passed = 0;
            self.searched = self.arrived.len();
            if self.ended {
                self.searched = 0;
                let last = std::mem::take(&mut self.arrived);
                return Ok((!last.is_empty()).then_some(last));
            }
            if self.searched > lines::LINE_BYTES {
                return Err(lines::too_long().into());
            }
            match self.part().await? {
                Some(part) => self.arrived.extend_from_slice(&part),
                None => self.ended = true,
            }
        }
    }

    /// The next bytes of the body.
    async fn part(&mut self) -> Result<Option<Bytes>, Refused> {
        let Some(frame) = self.body.frame().await else {
            return Ok(None);
        };
        let Ok(frame) = frame else {
            let what = "the request ends before its body does";
            return Err(refused(StatusCode::BAD_REQUEST, "incomplete", what));
        };
        let part = frame.into_data().unwrap_or_default();
        self.bytes += part.len() as u64;
        if self.bytes > BYTES {
            let what = format!("the request body has more than {BYTES} bytes");
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "too-large", what));
        }
        Ok(Some(part))
    }

    /// Reads the rest without keeping it.
    async fn pass_over(&mut self) {
        while !self.ended {
            self.arrived.clear();
            self.passed = 0;
            self.ended = !matches!(self.part().await, Ok(Some(_)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt, stream};

    use super::*;

    /// The lines of these parts, and the status that ends them.
    async fn read(mut lines: Lines) -> (Vec<String>, Option<u16>) {
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => all.push(String::from_utf8(line).unwrap()),
                Ok(None) => return (all, None),
                Err(refused) => return (all, Some(refused.problem(&HeaderMap::new()).status)),
            }
        }
    }

    fn parts(
        parts: &'static [&'static str],
    ) -> impl stream::Stream<Item = Result<&'static str, Infallible>> {
        stream::iter(parts.iter().map(|part| Ok(*part)))
    }

    #[tokio::test]
    async fn lines_may_arrive_in_any_parts() {
        let body = Body::from_stream(parts(&["a", "b\nc\n", "", "\nd", "e"]));
        let (lines, ended) = read(Lines::new(body, Duration::from_secs(60))).await;
        assert_eq!(lines, ["ab\n", "c\n", "de"]);
        assert_eq!(ended, None);
    }

    #[tokio::test]
    async fn a_line_that_does_not_come_is_not_waited_for() {
        let body = parts(&["a\nb"]).chain(stream::pending());
        let lines = Lines::new(Body::from_stream(body), Duration::from_millis(100));
        assert_eq!(read(lines).await, (vec!["a\n".to_owned()], Some(408)));
    }
}
