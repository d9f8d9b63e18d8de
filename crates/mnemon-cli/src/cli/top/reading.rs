//! A reading of a server's metrics, and what happened between two of them.

use std::collections::BTreeMap;

use serde::Serialize;

const REQUESTS: &str = "mnemon_http_requests_total";
const REQUEST_SECONDS: &str = "mnemon_http_request_seconds";
const STORE_SECONDS: &str = "mnemon_store_seconds";

type Labels = BTreeMap<String, String>;

/// The samples of `/metrics` by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading(BTreeMap<String, Vec<(Labels, f64)>>);

/// How a server does. Rates and latencies are those of the last `seconds`.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct View {
    pub(super) server: String,
    /// Whether the store can be used.
    pub(super) ready: bool,
    pub(super) uptime_seconds: u64,
    /// The time that rates and latencies are of.
    pub(super) seconds: f64,
    pub(super) requests_per_second: f64,
    /// Answers with a status of 400 to 499, and of 500 or more.
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) running: u64,
    pub(super) connections: u64,
    pub(super) connections_refused: u64,
    pub(super) listeners: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory_bytes: Option<u64>,
    pub(super) store_bytes: u64,
    pub(super) index_records: u64,
    pub(super) index_bytes: u64,
    /// Routes with requests, the busiest first.
    pub(super) routes: Vec<RouteView>,
    /// Calls of the store, the most frequent first.
    pub(super) store: Vec<CallView>,
    /// Tenants that were served lately, the largest first.
    pub(super) tenants: Vec<TenantView>,
    /// Records that wait, by what they wait for.
    pub(super) queues: BTreeMap<String, u64>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RouteView {
    pub(super) method: String,
    pub(super) route: String,
    pub(super) requests: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct CallView {
    pub(super) operation: String,
    pub(super) calls: u64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TenantView {
    pub(super) tenant: String,
    pub(super) records: u64,
}

impl Reading {
    /// Reads the text of `/metrics`; lines that are not samples are left out.
    pub(super) fn of(text: &str) -> Self {
        let mut samples: BTreeMap<String, Vec<(Labels, f64)>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse() else {
                continue;
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let named = samples.entry(name.to_owned()).or_default();
            named.push((labels_of(labels), value));
        }
        Self(samples)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &(Labels, f64)> {
        self.0.get(name).into_iter().flatten()
    }

    /// The one value of a name without labels.
    fn value(&self, name: &str) -> Option<u64> {
        self.all(name).next().map(|(_, value)| whole(*value))
    }

    /// Values since the earlier reading, of a counter or of the buckets of a histogram. A server
    /// that was started again counts from 0.
    fn since<'a>(
        &'a self,
        earlier: &'a Self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a Labels, f64)> {
        self.all(name).map(move |(labels, value)| {
            let before = earlier.all(name).find(|(known, _)| known == labels);
            let before = before.map_or(0.0, |(_, before)| *before);
            let since = match before <= *value {
                true => value - before,
                false => *value,
            };
            (labels, since)
        })
    }

    /// How often a histogram was observed, and its median and 99th percentile in milliseconds, by
    /// its labels.
    fn latencies(&self, earlier: &Self, name: &str) -> BTreeMap<Labels, (u64, f64, f64)> {
        let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        let name = format!("{name}_bucket");
        for (labels, count) in self.since(earlier, &name) {
            let mut labels = labels.clone();
            let bound = labels.remove("le").unwrap_or_default();
            let bound = bound.parse().unwrap_or(f64::INFINITY);
            buckets.entry(labels).or_default().push((bound, count));
        }
        let summed = buckets.into_iter().map(|(labels, buckets)| {
            let count = buckets.last().map_or(0.0, |(_, count)| *count);
            let ms = |share: f64| (quantile(&buckets, share) * 1e6).round() / 1e3;
            (labels, (whole(count), ms(0.5), ms(0.99)))
        });
        summed.filter(|(_, (count, ..))| *count > 0).collect()
    }

    /// How the server does. Without an earlier reading it is what happened since its start.
    pub(super) fn view(&self, earlier: Option<(&Self, f64)>, server: &str, ready: bool) -> View {
        let nothing = Self::default();
        let uptime = self.value("mnemon_uptime_seconds").unwrap_or(0);
        let (earlier, seconds) = earlier.unwrap_or((&nothing, uptime.max(1) as f64));
        let routes = self.routes(earlier);
        let sum = |part: fn(&RouteView) -> u64| routes.iter().map(part).sum();
        let requests: u64 = sum(|route| route.requests);
        let gauge = |name: &str| self.value(name).unwrap_or(0);
        View {
            server: server.to_owned(),
            ready,
            uptime_seconds: uptime,
            seconds: (seconds * 100.0).round() / 100.0,
            requests_per_second: (requests as f64 / seconds * 10.0).round() / 10.0,
            refused: sum(|route| route.refused),
            failed: sum(|route| route.failed),
            running: gauge("mnemon_http_requests_running"),
            connections: gauge("mnemon_http_connections"),
            connections_refused: gauge("mnemon_http_connections_refused_total"),
            listeners: gauge("mnemon_http_listeners"),
            memory_bytes: self.value("process_resident_memory_bytes"),
            store_bytes: gauge("mnemon_store_bytes"),
            index_records: gauge("mnemon_index_records"),
            index_bytes: gauge("mnemon_index_bytes"),
            store: self.store(earlier),
            tenants: self.tenants(),
            queues: self
                .all("mnemon_queue_depth")
                .filter_map(|(labels, depth)| Some((labels.get("queue")?.clone(), whole(*depth))))
                .collect(),
            routes,
        }
    }

    fn routes(&self, earlier: &Self) -> Vec<RouteView> {
        let latencies = self.latencies(earlier, REQUEST_SECONDS);
        let routes = latencies
            .into_iter()
            .map(|(labels, (requests, p50_ms, p99_ms))| {
                let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
                let (method, route) = (label("method"), label("route"));
                let answers = |statuses: std::ops::Range<u64>| {
                    let own = self.since(earlier, REQUESTS).filter(|(labels, _)| {
                        let status = labels.get("status").and_then(|status| status.parse().ok());
                        labels.get("method") == Some(&method)
                            && labels.get("route") == Some(&route)
                            && status.is_some_and(|status: u64| statuses.contains(&status))
                    });
                    whole(own.map(|(_, count)| count).sum())
                };
                RouteView {
                    requests,
                    refused: answers(400..500),
                    failed: answers(500..1000),
                    p50_ms,
                    p99_ms,
                    method,
                    route,
                }
            });
        let mut routes: Vec<RouteView> = routes.collect();
        routes.sort_by_key(|route| std::cmp::Reverse(route.requests));
        routes
    }

    fn store(&self, earlier: &Self) -> Vec<CallView> {
        let latencies = self.latencies(earlier, STORE_SECONDS).into_iter();
        let calls = latencies.map(|(labels, (calls, p50_ms, p99_ms))| CallView {
            operation: labels.get("operation").cloned().unwrap_or_default(),
            calls,
            p50_ms,
            p99_ms,
        });
        let mut calls: Vec<CallView> = calls.collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.calls));
        calls
    }

    fn tenants(&self) -> Vec<TenantView> {
        let tenants = self
            .all("mnemon_tenant_records")
            .map(|(labels, records)| TenantView {
                tenant: labels.get("tenant").cloned().unwrap_or_default(),
                records: whole(*records),
            });
        let mut tenants: Vec<TenantView> = tenants.collect();
        tenants.sort_by(|a, b| (b.records, &a.tenant).cmp(&(a.records, &b.tenant)));
        tenants
    }
}

/// The labels before the closing brace.
fn labels_of(text: &str) -> Labels {
    let mut labels = Labels::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        let (mut value, mut escaped, mut end) = (String::new(), false, after.len());
        for (at, c) in after.char_indices() {
            if !escaped && c == '"' {
                end = at;
                break;
            }
            let begins = !escaped && c == '\\';
            if !begins {
                value.push(if escaped && c == 'n' { '\n' } else { c });
            }
            escaped = begins;
        }
        let name = name.trim_start_matches(',');
        labels.insert(name.to_owned(), value);
        rest = after.get(end + 1..).unwrap_or_default();
    }
    labels
}

/// A count, which the format writes as a floating-point number.
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

/// Below which value this share of the observations is, by linear interpolation within the bucket.
/// Above the last bound it is the last bound.
fn quantile(buckets: &[(f64, f64)], share: f64) -> f64 {
    let total = buckets.last().map_or(0.0, |(_, count)| *count);
    let rank = share * total;
    let (mut below, mut fewer) = (0.0, 0.0);
    for (bound, count) in buckets {
        if *count >= rank && *count > fewer {
            return match bound.is_finite() {
                true => below + (bound - below) * ((rank - fewer) / (count - fewer)),
                false => below,
            };
        }
        if bound.is_finite() {
            (below, fewer) = (*bound, *count);
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(fast: u32, slow: u32, failed: u32) -> Reading {
        let all = fast + slow;
        Reading::of(&format!(
            "# TYPE mnemon_http_request_seconds histogram\n\
             mnemon_http_request_seconds_bucket{{le=\"0.001\",method=\"GET\",route=\"/a\"}} {fast}\n\
             mnemon_http_request_seconds_bucket{{le=\"0.1\",method=\"GET\",route=\"/a\"}} {all}\n\
             mnemon_http_request_seconds_bucket{{le=\"+Inf\",method=\"GET\",route=\"/a\"}} {all}\n\
             mnemon_http_requests_total{{method=\"GET\",route=\"/a\",status=\"503\"}} {failed}\n\
             mnemon_tenant_records{{tenant=\"a\"}} 2\n\
             mnemon_tenant_records{{tenant=\"b\"}} 5\n\
             mnemon_queue_depth{{queue=\"vectors\"}} 7\n\
             mnemon_uptime_seconds 50\n# EOF\n"
        ))
    }

    #[test]
    fn rates_and_percentiles_are_of_the_time_between_two_readings() {
        let (before, now) = (page(1000, 0, 1), page(1090, 10, 4));
        let view = now.view(Some((&before, 2.0)), "s", true);
        assert_eq!(
            (view.requests_per_second, view.failed, view.refused),
            (50.0, 3, 0)
        );
        let [route] = view.routes.as_slice() else {
            panic!("{view:?}");
        };
        assert_eq!((route.requests, route.failed), (100, 3));
        // The 50th of 90 within the first millisecond, and the 9th of 10 within the next 99.
        assert_eq!((route.p50_ms, route.p99_ms), (0.556, 90.1));
        let names: Vec<&str> = view.tenants.iter().map(|one| one.tenant.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(view.queues.get("vectors"), Some(&7));
        let whole = now.view(None, "s", true);
        assert_eq!((whole.seconds, whole.requests_per_second), (50.0, 22.0));
    }

    #[test]
    fn a_server_that_was_started_again_counts_from_the_start() {
        let (before, now) = (page(1000, 0, 1), page(10, 0, 0));
        let view = now.view(Some((&before, 1.0)), "s", true);
        assert_eq!((view.requests_per_second, view.failed), (10.0, 0));
        let quiet = now.view(Some((&now, 1.0)), "s", true);
        assert!(quiet.routes.is_empty(), "{quiet:?}");
    }

    #[test]
    fn labels_may_hold_any_character() {
        let labels = labels_of(r#"a="x\"y\\z\n,=",b="","#);
        assert_eq!(labels.get("a").map(String::as_str), Some("x\"y\\z\n,="));
        assert_eq!(labels.get("b").map(String::as_str), Some(""));
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[(0.1, 0.0), (f64::INFINITY, 3.0)], 0.5), 0.1);
    }
}
