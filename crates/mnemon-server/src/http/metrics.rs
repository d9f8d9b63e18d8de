//! Counters and histograms in the format of Prometheus.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::samples::Samples;
use mnemon_operations::wiring::{Latencies, Meter, latencies};

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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Slice {
    outcome: &'static str,
}

/// All metrics of a server. Labels are routes, methods and statuses, so that there are few of them.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Outcome, Counter>,
    seconds: Latencies<Route>,
    running: Gauge,
    listeners: Gauge,
    upkeep: Family<Slice, Counter>,
    started: Instant,
    uptime: Gauge,
    /// Values that are read when somebody asks for the metrics.
    pub(super) samples: Samples,
    /// Where the spans of requests go.
    #[cfg(feature = "otel")]
    pub(super) traces: super::traces::Traces,
}

impl Metrics {
    pub(super) fn new(meter: Arc<Meter>) -> Self {
        let mut whole = Registry::default();
        let (requests, upkeep) = (Family::default(), Family::default());
        let seconds = latencies();
        let (running, listeners, uptime) = (Gauge::default(), Gauge::default(), Gauge::default());
        let samples = Samples::new(meter.clone());
        samples.register_process(&mut whole);
        let registry = whole.sub_registry_with_prefix("mnemon");
        let text = "Requests that were answered";
        registry.register("http_requests", text, Family::clone(&requests));
        let text = "Time to the beginning of an answer";
        registry.register("http_request_seconds", text, Latencies::clone(&seconds));
        let text = "Requests that are worked on";
        registry.register("http_requests_running", text, running.clone());
        let text = "Listeners of the change feed";
        registry.register("http_listeners", text, listeners.clone());
        let text = "Slices of upkeep that ended, one for each tenant that was served lately";
        registry.register("upkeep_slices", text, Family::clone(&upkeep));
        registry.register("uptime_seconds", "Time since the start", uptime.clone());
        meter.register(registry);
        samples.register(registry);
        Self {
            registry: whole,
            requests,
            seconds,
            running,
            listeners,
            upkeep,
            started: Instant::now(),
            uptime,
            samples,
            #[cfg(feature = "otel")]
            traces: super::traces::Traces::default(),
        }
    }

    #[cfg(feature = "otel")]
    pub(super) fn with_traces(self, traces: super::traces::Traces) -> Self {
        Self { traces, ..self }
    }

    /// Counts a request as running until the answer is dropped.
    pub(super) fn begin(&self) -> Running {
        Running::of(&self.running)
    }

    /// Counts a listener of the change feed until it is dropped.
    pub(super) fn listener(&self) -> Running {
        Running::of(&self.listeners)
    }

    pub(super) fn count_upkeep(&self, is_done: bool) {
        let outcome = match is_done {
            true => "done",
            false => "failed",
        };
        self.upkeep.get_or_create(&Slice { outcome }).inc();
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
    pub(super) fn text(&self) -> String {
        let uptime = i64::try_from(self.started.elapsed().as_secs());
        self.uptime.set(uptime.unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Any word can be sent as a method: those that no route has count as one.
pub(super) fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Something that is counted as long as it lasts.
pub(super) struct Running(Gauge);

impl Running {
    fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}
