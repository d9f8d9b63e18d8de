//! Counters and histograms in the format of Prometheus.

use std::time::{Duration, Instant};

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: [f64; 14] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    method: &'static str,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    method: &'static str,
    route: String,
    status: u32,
}

/// All metrics of a server. Labels are routes, methods and statuses, so that there are few of them.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Outcome, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    running: Gauge,
    started: Instant,
    uptime: Gauge,
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("mnemon");
        let requests = Family::default();
        let seconds = Family::new_with_constructor(histogram as fn() -> Histogram);
        let (running, uptime) = (Gauge::default(), Gauge::default());
        registry.register(
            "http_requests",
            "Requests that were answered",
            requests.clone(),
        );
        registry.register(
            "http_request_seconds",
            "Time to the beginning of an answer",
            seconds.clone(),
        );
        registry.register(
            "http_requests_running",
            "Requests that are worked on",
            running.clone(),
        );
        registry.register("uptime_seconds", "Time since the start", uptime.clone());
        Self {
            registry,
            requests,
            seconds,
            running,
            started: Instant::now(),
            uptime,
        }
    }

    /// Counts a request as running until the answer is dropped.
    pub(super) fn begin(&self) -> Running {
        self.running.inc();
        Running(self.running.clone())
    }

    pub(super) fn end(&self, method: &Method, route: &str, status: u16, taken: Duration) {
        let (method, route) = (name(method), route.to_owned());
        let outcome = Outcome {
            method,
            route: route.clone(),
            status: status.into(),
        };
        self.requests.get_or_create(&outcome).inc();
        let seconds = self.seconds.get_or_create(&Route { method, route });
        seconds.observe(taken.as_secs_f64());
    }

    /// The text of `/metrics`.
    pub(crate) fn text(&self) -> String {
        let uptime = i64::try_from(self.started.elapsed().as_secs());
        self.uptime.set(uptime.unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Any word can be sent as a method: those that no route has count as one.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

pub(super) struct Running(Gauge);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}
