//! A long operation as server-sent events: how far it is, and at last its result or its error.
//!
//! The work goes on while the answer is read: it ends with the connection.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::changes::{ALIVE, Listening};
use super::problem::{Asked, Problem, REQUEST};

pub const MEDIA_TYPE: &str = "text/event-stream";
/// Time between two events.
const PAUSE: Duration = Duration::from_millis(100);

/// How much is done, and how much there is, if that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub done: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Whether the client wants events.
pub(super) fn are_wanted(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|kinds| {
        let kinds = kinds.to_str().unwrap_or_default();
        kinds.split(',').any(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case(MEDIA_TYPE)
        })
    })
}

type Work = Pin<Box<dyn Future<Output = Result<Value, Problem>> + Send>>;

/// Answers with the events of work, which is given a place for its progress.
pub(super) fn answer(work: impl FnOnce(watch::Sender<Progress>) -> Work) -> Response {
    let (sender, reports) = watch::channel(Progress::default());
    let running = Running {
        work: Some(work(sender)),
        reports,
        spoke: Instant::now(),
        request: REQUEST.try_with(Asked::clone).ok(),
    };
    let events = stream::unfold(running, |mut running| async move {
        let event = running.next().await?;
        Some((Ok::<Bytes, Infallible>(event.into()), running))
    });
    let kind = HeaderValue::from_static(MEDIA_TYPE);
    let headers = [(header::CONTENT_TYPE, kind)];
    let body = Body::from_stream(events.fuse());
    let mut response = (headers, body).into_response();
    response.extensions_mut().insert(Listening);
    response
}

struct Running {
    /// What is still to be done; nothing after the last event.
    work: Option<Work>,
    reports: watch::Receiver<Progress>,
    /// When something was sent last.
    spoke: Instant,
    request: Option<Asked>,
}

impl Running {
    async fn next(&mut self) -> Option<String> {
        let work = self.work.as_mut()?;
        let (reports, spoke) = (&mut self.reports, self.spoke);
        let report = async {
            sleep_until(spoke + PAUSE).await;
            reports.changed().await
        };
        let event = tokio::select! {
            biased;
            done = work => {
                self.work = None;
                match done {
                    Ok(answer) => event("result", &answer),
                    Err(problem) => event("error", &problem.to(self.request.take())),
                }
            }
            Ok(()) = report => event("progress", &*self.reports.borrow()),
            () = sleep_until(spoke + ALIVE) => ": the server is there\n\n".to_owned(),
        };
        self.spoke = Instant::now();
        Some(event)
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // All of them have a JSON form, and that has no line break.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
