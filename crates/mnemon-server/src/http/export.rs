//! Every record of a tenant as JSON lines: page by page, so that any number of them takes the memory of
//! one page.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::{StreamExt, stream};
use mnemon_core::{Ctx, Order, Scan};
use mnemon_engine::access::{Caller, Rights};

use super::api::Api;
use super::caller::Lock;
use super::changes::Listening;
use super::request_fields::from_query;
use mnemon_operations::operation::routes::{Method, Reach, Route, Seat};
use mnemon_operations::operation::{
    self, Access, Arguments, Field, Interface, Operation, Selection,
};
use mnemon_operations::{Error, api};

pub const MEDIA_TYPE: &str = "application/x-ndjson";

pub const ROUTE: Route = Route {
    method: Method::Get,
    path: "/v1/export",
    right: Rights::Read,
    reach: Reach::Tenant,
    is_long: false,
    is_text: false,
};

/// Records that are read first. Later pages have as many as give about this many bytes.
const FIRST_PAGE: usize = 20;
const PAGE_BYTES: usize = 1024 * 1024;
const MOST_RECORDS: usize = 1000;

/// Which records.
pub(super) fn fields() -> Vec<Field> {
    let fields = Selection::fields().into_iter();
    fields
        .filter(|field| field.is_on(Interface::Http))
        .collect()
}

pub(super) fn router(api: &Arc<Api>, lock: &Arc<Lock>) -> Router {
    let (api, lock) = (api.clone(), lock.clone());
    let answer = move |Extension(caller): Extension<Caller>, request: Request| {
        let (api, lock) = (api.clone(), lock.clone());
        async move {
            let (head, _) = request.into_parts();
            match export(&api, lock, &caller, head).await {
                Ok(response) => response,
                Err(error) => super::api::problem_of(&error).into_response(),
            }
        }
    };
    Router::new().route(ROUTE.path, get(answer))
}

async fn export(
    api: &Api,
    lock: Arc<Lock>,
    caller: &Caller,
    head: Parts,
) -> Result<Response, Error> {
    api.allow(caller, &ROUTE)?;
    let fields = fields();
    let sent = from_query(&fields, head.uri.query().unwrap_or_default())?;
    let arguments = Arguments::check_on(Interface::Http, &fields, sent)?;
    let seat = api.seat(&caller.tenant)?;
    let ctx = api.ctx(&seat, caller)?;
    api.check_request(&ctx)?;
    let access = Access {
        memory: &seat.memory,
        ctx: &ctx,
        config: &seat.config,
        interface: Interface::Http,
        user: None,
        agent: None,
        own_only: false,
        watch: &operation::unwatched,
    };
    let filter = operation::call::<Selection, _>(&access, arguments).await?;
    // In order of creation: a record that is changed meanwhile keeps its place, and comes out once.
    let scan = Scan {
        order: Order::Oldest,
        ..Scan::new(filter, FIRST_PAGE)
    };
    let mut pages = Pages {
        seat,
        ctx,
        scan: Some(scan),
        lock,
        headers: head.headers,
        caller: caller.clone(),
    };
    // What is wrong at the beginning has a status; an error further on cuts the answer off, so that
    // nobody takes it for whole.
    let first = pages.next().await.transpose()?.unwrap_or_default();
    api.record(&pages.ctx, caller, "export".to_owned(), Vec::new(), 200)
        .await;
    let rest = stream::unfold(pages, |mut pages| async move {
        let page = pages.next().await?;
        Some((page.map_err(io::Error::other), pages))
    });
    // Compression asks again after the end.
    let lines = stream::iter([Ok(first)]).chain(rest).fuse();
    let body = Body::from_stream(lines);
    let kind = HeaderValue::from_static(MEDIA_TYPE);
    let mut response = ([(header::CONTENT_TYPE, kind)], body).into_response();
    response.extensions_mut().insert(Listening);
    Ok(response)
}

struct Pages {
    seat: Arc<Seat>,
    ctx: Ctx,
    /// The next page; none after the last.
    scan: Option<Scan>,
    lock: Arc<Lock>,
    headers: HeaderMap,
    caller: Caller,
}

impl Pages {
    /// The lines of the next page.
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let scan = self.scan.take()?;
        Some(self.lines(scan).await)
    }

    async fn lines(&mut self, scan: Scan) -> Result<Bytes, Error> {
        // The key may have been revoked since the last page.
        if !self.lock.still_allows(&self.headers, &self.caller).await {
            return Err(Error::Forbidden("the key is no longer valid".to_owned()));
        }
        let page = api::list::run(&self.seat.memory, &self.ctx, scan.clone()).await?;
        let mut lines = Vec::new();
        for record in &page.records {
            serde_json::to_writer(&mut lines, record).map_err(Error::no_json)?;
            lines.push(b'\n');
        }
        let mean = lines.len() / page.records.len().max(1);
        self.scan = page.next.map(|after| Scan {
            after: Some(after),
            limit: (PAGE_BYTES / mean.max(1)).clamp(1, MOST_RECORDS),
            ..scan
        });
        Ok(lines.into())
    }
}
