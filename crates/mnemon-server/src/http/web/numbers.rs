//! Metrics of the server as its web page shows them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::metrics::Metrics;

/// Routes that are shown.
const ROUTES: usize = 50;

/// A histogram of latencies.
#[derive(Debug, Default)]
struct Histogram {
    count: f64,
    sum: f64,
    /// Upper bounds in seconds, with the number of answers up to each.
    buckets: Vec<(f64, f64)>,
}

impl Histogram {
    /// The latency in milliseconds that this share of the answers does not exceed, estimated within
    /// its bucket. Answers beyond the last bound count as that bound.
    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = self.count * share;
        let (mut low, mut before) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            if *count >= wanted && bound.is_finite() {
                let inside = (count - before).max(1.0);
                return (low + (bound - low) * ((wanted - before) / inside)) * 1000.0;
            }
            if bound.is_finite() {
                (low, before) = (*bound, *count);
            }
        }
        low * 1000.0
    }
}

/// The values of the metrics that pages show.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    uptime_seconds: u64,
    routes: BTreeMap<String, Histogram>,
    /// Failures since the start: of upkeep, of embedders and of language models.
    failures: BTreeMap<String, u64>,
}

impl Numbers {
    pub(super) fn of(metrics: &Metrics) -> Self {
        Self::read(&metrics.text())
    }

    fn read(text: &str) -> Self {
        let mut numbers = Self::default();
        for line in text.lines() {
            let parts = line
                .rsplit_once(' ')
                .and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
            if let Some((name, value)) = parts {
                let (name, labels) = name.split_once('{').unwrap_or((name, ""));
                numbers.take(name, labels, value);
            }
        }
        numbers
    }

    fn take(&mut self, name: &str, labels: &str, value: f64) {
        match name {
            "mnemon_uptime_seconds" => self.uptime_seconds = value as u64,
            "mnemon_http_request_seconds_count" => self.route(labels).count = value,
            "mnemon_http_request_seconds_sum" => self.route(labels).sum = value,
            "mnemon_http_request_seconds_bucket" => {
                let bound = label(labels, "le").unwrap_or_default();
                let bound = bound.parse().unwrap_or(f64::INFINITY);
                self.route(labels).buckets.push((bound, value));
            }
            "mnemon_upkeep_slices_total" if labels.contains("\"failed\"") => {
                self.add_failures("upkeep".to_owned(), value);
            }
            "mnemon_embedder_failures_total" => {
                let model = label(labels, "model").unwrap_or_default();
                self.add_failures(format!("the embedder {model}"), value);
            }
            "mnemon_llm_failures_total" => {
                let model = label(labels, "model").unwrap_or_default();
                self.add_failures(format!("the language model {model}"), value);
            }
            _ => {}
        }
    }

    fn route(&mut self, labels: &str) -> &mut Histogram {
        let [method, route] = ["method", "route"].map(|name| label(labels, name));
        let name = format!(
            "{} {}",
            method.unwrap_or_default(),
            route.unwrap_or_default()
        );
        self.routes.entry(name).or_default()
    }

    fn add_failures(&mut self, of: String, count: f64) {
        if count > 0.0 {
            *self.failures.entry(of).or_default() += count as u64;
        }
    }

    /// Adds the uptime, the routes with their latencies, and failures to the state of the server.
    pub(super) fn add_to(self, mut state: Value) -> Value {
        let used = self.routes.into_iter();
        let mut used: Vec<(String, Histogram)> = used.filter(|(_, one)| one.count > 0.0).collect();
        used.sort_by(|(_, one), (_, other)| other.count.total_cmp(&one.count));
        used.truncate(ROUTES);
        let routes: Vec<Value> = used
            .iter()
            .map(|(route, one)| {
                json!({
                    "route": route, "requests": one.count as u64,
                    "mean_ms": one.sum / one.count * 1000.0,
                    "p50_ms": one.quantile_ms(0.5), "p99_ms": one.quantile_ms(0.99),
                })
            })
            .collect();
        let failures: Vec<Value> = self
            .failures
            .iter()
            .map(|(of, count)| json!({ "of": of, "count": count }))
            .collect();
        if let Some(state) = state.as_object_mut() {
            state.insert("uptime_seconds".to_owned(), json!(self.uptime_seconds));
            state.insert("routes".to_owned(), json!(routes));
            state.insert("failures".to_owned(), json!(failures));
        }
        state
    }
}

/// The value of a label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("{name}=\"");
    let (_, rest) = labels.split_once(start.as_str())?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
mnemon_uptime_seconds 75
mnemon_http_request_seconds_sum{method=\"GET\",route=\"/\"} 1.0
mnemon_http_request_seconds_count{method=\"GET\",route=\"/\"} 100
mnemon_http_request_seconds_bucket{le=\"0.01\",method=\"GET\",route=\"/\"} 80
mnemon_http_request_seconds_bucket{le=\"0.1\",method=\"GET\",route=\"/\"} 100
mnemon_http_request_seconds_bucket{le=\"+Inf\",method=\"GET\",route=\"/\"} 100
mnemon_upkeep_slices_total{outcome=\"done\"} 5
mnemon_upkeep_slices_total{outcome=\"failed\"} 2
mnemon_embedder_failures_total{model=\"m\",kind=\"timeout\"} 1
mnemon_embedder_failures_total{model=\"m\",kind=\"refused\"} 3
";

    #[test]
    fn latencies_are_quantiles_and_failures_are_counted() {
        let state = Numbers::read(TEXT).add_to(json!({}));
        let route = &state["routes"][0];
        assert_eq!(route["route"], "GET /");
        assert_eq!(route["mean_ms"], 10.0);
        assert_eq!(route["p50_ms"], 6.25);
        let p99 = route["p99_ms"].as_f64().unwrap();
        assert!((90.0..100.0).contains(&p99), "{p99}");
        assert_eq!(state["uptime_seconds"], 75);
        let failures = json!([{"of": "the embedder m", "count": 4}, {"of": "upkeep", "count": 2}]);
        assert_eq!(state["failures"], failures);
    }

    #[test]
    fn answers_beyond_the_last_bound_count_as_that_bound() {
        let slow = Histogram {
            count: 10.0,
            sum: 900.0,
            buckets: vec![(60.0, 0.0), (f64::INFINITY, 10.0)],
        };
        assert_eq!(slow.quantile_ms(0.5), 60_000.0);
    }
}
