//! Spans of requests for OpenTelemetry, sent to a collector over HTTP (OTLP). They hold the method,
//! the route, the status and the time, and neither contents nor names.

use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, Method};
use mnemon_core::Invalid;
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;

use super::metrics;
use mnemon_operations::{Error, wiring};

/// The name of the service, unless OTEL_SERVICE_NAME gives another.
const SERVICE: &str = "mnemon";
/// How long the collector may take for a batch, and for the last one when the server stops.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where spans go; nowhere without a collector.
#[derive(Default)]
pub(super) struct Traces(Option<Sender>);

struct Sender {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// The span of one request.
pub(super) struct RequestSpan(Option<opentelemetry_sdk::trace::Span>);

impl Traces {
    /// Sends spans to the collector at this address. Batches are sent by a thread in the background,
    /// and dropped if the collector does not take them.
    pub(super) fn to(endpoint: Option<&str>) -> Result<Self, Error> {
        let Some(endpoint) = endpoint else {
            return Ok(Self::default());
        };
        let wrong = |error: &dyn std::error::Error| {
            let what = format!("cannot be used: {error}");
            Invalid::new("OTEL_EXPORTER_OTLP_ENDPOINT", what)
        };
        let client = wiring::http_client(TIMEOUT, &[]).map_err(|error| wrong(&error))?;
        let runtime = Handle::current();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(Client { client, runtime })
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .build()
            .map_err(|error| wrong(&error))?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource())
            .build();
        let tracer = provider.tracer(SERVICE);
        Ok(Self(Some(Sender { provider, tracer })))
    }

    /// Begins the span of a request, as a part of the trace that the request names.
    pub(super) fn begin(&self, method: &Method, route: &str, headers: &HeaderMap) -> RequestSpan {
        let Some(Sender { tracer, .. }) = &self.0 else {
            return RequestSpan(None);
        };
        let above = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        let method = metrics::name(method);
        let span = tracer
            .span_builder(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method),
                KeyValue::new("http.route", route.to_owned()),
            ]);
        RequestSpan(Some(span.start_with_context(tracer, &above)))
    }

    /// Sends what is left.
    pub(super) async fn stop(&self) {
        let Some(Sender { provider, .. }) = &self.0 else {
            return;
        };
        let provider = provider.clone();
        // It waits for a thread; spans that are lost are not worth an error.
        let _ = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(TIMEOUT)).await;
    }
}

impl RequestSpan {
    pub(super) fn end(self, status: u16) {
        let Some(mut span) = self.0 else {
            return;
        };
        span.set_attribute(KeyValue::new(
            "http.response.status_code",
            i64::from(status),
        ));
        if status >= 500 {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say of the process.
fn resource() -> Resource {
    let found = Resource::builder().build();
    let name = found.get(&"service.name".into());
    let is_named = name.is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    match is_named {
        true => found,
        false => Resource::builder().with_service_name(SERVICE).build(),
    }
}

/// Our client for HTTP.
#[derive(Debug)]
struct Client {
    client: reqwest::Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let request = self.client.request(head.method, head.uri.to_string());
        let request = request.headers(head.headers).body(body);
        // The thread that sends has no runtime.
        let sent = self.runtime.spawn(async move {
            let response = request.send().await?;
            let status = response.status();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        });
        let (status, body) = sent.await??;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}
