//! `/metrics`, read as strictly as the format is defined, and `mnemon top`, which shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

/// The samples of a page, by name and labels.
#[derive(Debug, Default)]
pub(super) struct Page(BTreeMap<String, f64>);

impl Page {
    #[track_caller]
    pub(super) fn of(server: &Server, headers: &[(&str, &str)]) -> Self {
        let answer = server.ask("GET", "/metrics", headers, "");
        assert_eq!(answer.status, 200, "{answer:?}");
        let kind = answer.header("content-type").unwrap();
        assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"));
        Self::read(&answer.body)
    }

    /// Reads OpenMetrics text. Whatever the format does not allow is a panic.
    #[track_caller]
    fn read(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
        let (mut family, mut kind) = (String::new(), String::new());
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect(line);
                assert!(
                    !help.is_empty() && families.insert(name.to_owned()),
                    "{line}"
                );
                (family, kind) = (name.to_owned(), String::new());
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, of) = rest.split_once(' ').expect(line);
                assert_eq!((name, kind.as_str()), (family.as_str(), ""), "{line}");
                assert!(["counter", "gauge", "histogram"].contains(&of), "{line}");
                kind = of.to_owned();
            } else {
                let (series, value) = line.rsplit_once(' ').expect(line);
                let value: f64 = value.parse().expect(line);
                let name = series.split('{').next().unwrap();
                let suffixes: &[&str] = match kind.as_str() {
                    "counter" => &["_total"],
                    "gauge" => &[""],
                    _ => &["_bucket", "_count", "_sum"],
                };
                let fits = |suffix: &&str| name == format!("{family}{suffix}");
                assert!(suffixes.iter().any(fits), "{line}");
                check_labels(series.strip_prefix(name).unwrap());
                assert!(samples.insert(series.to_owned(), value).is_none(), "{line}");
            }
        }
        let page = Self(samples);
        page.check_histograms(body);
        page
    }

    /// Buckets grow, and the last one holds all.
    fn check_histograms(&self, body: &str) {
        let mut last: Option<(String, f64, f64)> = None;
        for line in body.lines().filter(|line| line.contains("_bucket{")) {
            let (name, rest) = line.split_once("_bucket{").unwrap();
            let (labels, count) = rest.rsplit_once("} ").expect(line);
            let (before, rest) = labels.split_once("le=\"").expect(line);
            let (bound, after) = rest.split_once('"').expect(line);
            let others = format!("{before}{after}");
            let others = others.trim_matches(',');
            let total = match others.is_empty() {
                true => format!("{name}_count"),
                false => format!("{name}_count{{{others}}}"),
            };
            let count: f64 = count.parse().unwrap();
            let bound: f64 = bound.replace("+Inf", "inf").parse().unwrap();
            if let Some((_, below, fewer)) = last.filter(|(known, ..)| *known == total) {
                assert!(below < bound && fewer <= count, "{line}");
            }
            if bound.is_infinite() {
                assert_eq!(self.0.get(&total), Some(&count), "{total}: {line}");
            }
            last = Some((total, bound, count));
        }
    }

    #[track_caller]
    pub(super) fn value(&self, series: &str) -> f64 {
        let value = self.0.get(series);
        *value.unwrap_or_else(|| panic!("{series} is missing: {:#?}", self.0.keys()))
    }

    fn names(&self, part: &str) -> Vec<&str> {
        let names = self.0.keys().map(String::as_str);
        names.filter(|name| name.contains(part)).collect()
    }
}

/// `{name="value",…}` with names that the format allows, or nothing.
#[track_caller]
fn check_labels(labels: &str) {
    if labels.is_empty() {
        return;
    }
    let inner = labels
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inner.expect(labels);
    loop {
        let (name, value) = rest.split_once("=\"").expect(labels);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(!name.is_empty() && name.chars().all(is_name), "{labels}");
        let mut escaped = false;
        let end = value.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (value, after) = value.split_at(end.expect(labels));
        assert!(!value.contains('\n'), "{labels}");
        match after.strip_prefix("\",") {
            Some(more) => rest = more,
            None => return assert_eq!(after, "\"", "{labels}"),
        }
    }
}

fn work(server: &Server) {
    for text in [
        "Ann drinks green tea",
        "Bob drinks coffee",
        "Cid likes rain",
    ] {
        let added = server.post("/v1/notes", &json!({"content": text}));
        assert_eq!(added.status, 200, "{added:?}");
    }
    for _ in 0..2 {
        let found = server.post("/v1/search", &json!({"query": "what does Ann drink"}));
        assert_eq!(found.status, 200, "{found:?}");
    }
    assert_eq!(server.get("/v1/records/none").status, 404);
}

#[test]
fn metrics_say_what_the_store_and_the_models_did() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--upkeep", "0"]);
    work(&server);
    let page = Page::of(&server, &[]);
    let note = "mnemon_http_requests_total{method=\"POST\",route=\"/v1/notes\",status=\"200\"}";
    for (series, value) in [
        (note, 3.0),
        (
            "mnemon_http_request_seconds_count{method=\"POST\",route=\"/v1/search\"}",
            2.0,
        ),
        ("mnemon_tenant_records{tenant=\"default\"}", 3.0),
        ("mnemon_index_records", 3.0),
        ("mnemon_queue_depth{queue=\"expired\"}", 0.0),
        ("mnemon_queue_depth{queue=\"vectors\"}", 0.0),
        ("mnemon_http_requests_running", 1.0),
        ("mnemon_http_connections_refused_total", 0.0),
        ("mnemon_http_listeners", 0.0),
        ("mnemon_scrape_incomplete", 0.0),
    ] {
        assert_eq!(page.value(series), value, "{series}");
    }
    for (series, least) in [
        ("mnemon_store_seconds_count{operation=\"commit\"}", 3.0),
        ("mnemon_store_seconds_count{operation=\"get\"}", 1.0),
        ("mnemon_store_seconds_count{operation=\"search\"}", 2.0),
        ("mnemon_cache_hits_total{cache=\"index\"}", 1.0),
        ("mnemon_cache_misses_total{cache=\"index\"}", 1.0),
        ("mnemon_http_connections", 1.0),
        ("mnemon_index_bytes", 1000.0),
        ("mnemon_tenant_index_bytes{tenant=\"default\"}", 1000.0),
        ("mnemon_store_bytes", 4096.0),
    ] {
        assert!(page.value(series) >= least, "{series}: {page:?}");
    }
    if cfg!(target_os = "linux") {
        assert!(page.value("process_resident_memory_bytes") > 1e6);
    }
    // Three notes and a query, each by one model.
    let texts = page.names("mnemon_embedder_texts_total");
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(page.value(texts[0]) >= 4.0, "{page:?}");
}

#[test]
fn a_listener_is_counted() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--upkeep", "0"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /v1/changes HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    assert_eq!(Page::of(&server, &[]).value("mnemon_http_listeners"), 1.0);
}

/// An administrator of one tenant learns nothing of the others; the server's own sees all.
#[test]
fn metrics_name_no_other_tenant() {
    let sandbox = Sandbox::new();
    let key = |tenant: &str| {
        let args = [
            "key", "create", "k", "--rights", "admin", "--json", "--tenant", tenant,
        ];
        let made: Value = serde_json::from_str(&sandbox.run(&args).ok()).unwrap();
        format!("Bearer {}", made["secret"].as_str().unwrap())
    };
    let (own, acme, bravo) = (key("default"), key("acme"), key("bravo"));
    let server = Server::start(&sandbox, &["--upkeep", "0"]);
    for (key, text) in [(&acme, "tea"), (&bravo, "coffee"), (&bravo, "rain")] {
        let headers = [
            ("Authorization", key.as_str()),
            ("Content-Type", "application/json"),
        ];
        let added = server.ask(
            "POST",
            "/v1/notes",
            &headers,
            &json!({"content": text}).to_string(),
        );
        assert_eq!(added.status, 200, "{added:?}");
    }
    let page = Page::of(&server, &[("Authorization", &acme)]);
    assert_eq!(page.value("mnemon_tenant_records{tenant=\"acme\"}"), 1.0);
    assert_eq!(page.names("bravo"), Vec::<&str>::new());
    assert_eq!(page.names("tenant=\"default\""), Vec::<&str>::new());
    let page = Page::of(&server, &[("Authorization", &own)]);
    assert_eq!(page.value("mnemon_tenant_records{tenant=\"bravo\"}"), 2.0);
    assert!(page.value("mnemon_cache_hits_total{cache=\"keys\"}") >= 1.0);
    assert!(page.value("mnemon_cache_misses_total{cache=\"keys\"}") >= 2.0);
}

/// Names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("mnemon_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

/// Every metric is described, and neither the page nor the alert rules name one that does not exist.
#[test]
fn every_metric_is_documented() {
    let sources = [
        include_str!("../../../../mnemon-server/src/http/metrics.rs"),
        include_str!("../../../../mnemon-server/src/http/samples.rs"),
        include_str!("../../../../mnemon-operations/src/wiring/meter.rs"),
    ];
    let registered = sources.iter().flat_map(|source| source.split(".register("));
    let registered = registered.filter_map(|call| call.trim_start().strip_prefix('"'));
    let registered = registered.filter_map(|call| call.split('"').next());
    let registered: BTreeSet<&str> = registered.collect();
    assert!(registered.len() > 20, "{registered:?}");
    let page = include_str!("../../../../../docs/server.md");
    let (_, page) = page.split_once("## Monitor").unwrap();
    let (page, _) = page.split_once("## Deploy").unwrap();
    let page = named(page);
    let short = |name: &str| {
        let name = name.strip_prefix("mnemon_").unwrap_or(name);
        name.trim_end_matches("_total").to_owned()
    };
    let documented: BTreeSet<String> = page.iter().map(|name| short(name)).collect();
    let documented: BTreeSet<&str> = documented.iter().map(String::as_str).collect();
    assert_eq!(documented, registered);
    let alerts = named(include_str!("../../../../../deploy/alerts.yml"));
    let alerts = alerts.iter().map(|name| name.trim_end_matches("_bucket"));
    let unknown: Vec<&str> = alerts.filter(|name| !page.contains(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    // The names on the page are those that are served.
    let server = Server::start(&Sandbox::new(), &["--upkeep", "0"]);
    work(&server);
    for line in server.get("/metrics").body.lines() {
        if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let name = match kind {
                "counter" => format!("{name}_total"),
                _ => name.to_owned(),
            };
            assert!(page.contains(&name), "{line}");
        }
    }
}

#[test]
fn top_shows_a_server_once() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--upkeep", "0"]);
    work(&server);
    let url = server.url();
    let view = sandbox.run(&["top", "--server", &url, "--json"]).json();
    assert_eq!(view["ready"], true);
    assert_eq!(
        view["tenants"],
        json!([{"tenant": "default", "records": 3}])
    );
    let routes = view["routes"].as_array().unwrap();
    let notes = routes
        .iter()
        .find(|route| route["route"] == "/v1/notes")
        .unwrap();
    assert_eq!(
        (&notes["requests"], &notes["refused"]),
        (&json!(3), &json!(0))
    );
    assert!(
        notes["p99_ms"].as_f64() >= notes["p50_ms"].as_f64(),
        "{notes}"
    );
    assert_eq!(view["refused"], 1, "{view}");
    // The output is not a terminal, so it is one reading.
    let text = sandbox.run(&["top", "--server", &url]).ok();
    for part in ["ready", "POST /v1/search", "commit", "default", "expired 0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        sandbox.run(&["top", "--ready", "--server", &url]).ok(),
        "ready\n"
    );
}

#[test]
fn top_says_why_it_shows_nothing() {
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", "0123456789abcdef");
    let server = Server::start(&sandbox, &[]);
    let url = server.url();
    assert_eq!(sandbox.run(&["top", "--server", &url]).code, 0);
    let stranger = Sandbox::new();
    let (code, error) = stranger.run(&["top", "--server", &url]).failed();
    assert!(
        code == 5
            && error.contains("key is missing or not valid")
            && error.contains("set MNEMON_API_KEY"),
        "{code}: {error}"
    );
    // Anybody may ask whether a server is ready.
    assert_eq!(stranger.run(&["top", "--ready", "--server", &url]).code, 0);
    drop(server);
    let (code, error) = sandbox.run(&["top", "--ready", "--server", &url]).failed();
    assert!(
        code == 13 && error.contains("does not answer"),
        "{code}: {error}"
    );
}
