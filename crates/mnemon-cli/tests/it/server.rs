//! `mnemon serve`: the API, its contract, and the command line that uses it from afar.

mod access;
mod feed;
#[cfg(unix)]
mod hangup;
mod isolation;
#[cfg(all(unix, feature = "postgres"))]
pub(crate) mod many;
mod metrics;
mod page_actions;
mod pages;
mod remote;
#[cfg(unix)]
mod soak;
mod surface;
mod tls;
mod tokens;
#[cfg(feature = "otel")]
mod traces;
mod transfer;
mod webhooks;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mnemon_server::http::openapi;
use serde_json::{Value, json};

use crate::docs::keep;
use crate::sandbox::Sandbox;

/// Long enough for the slowest machine: waiting ends as soon as something happens.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// The lines that it printed up to the command that is to be tried.
    said: String,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

impl Server {
    pub(crate) fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        Self::of(sandbox.command(), args)
    }

    pub(crate) fn of(mut command: Command, args: &[&str]) -> Self {
        let child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "none"])
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self {
            child,
            address: String::new(),
            said: String::new(),
        };
        let stderr = BufReader::new(server.child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // On a thread of its own, which goes on reading: a full pipe would stop the server.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        while !server.said.contains("try: ") {
            let line = lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no address: {}", server.said));
            if let Some((_, rest)) = line.split_once("serving at http") {
                let rest = rest.split(',').next().unwrap();
                let (_, address) = rest.split_once("://").unwrap();
                address.clone_into(&mut server.address);
            }
            server.said += &(line + "\n");
        }
        server
    }

    /// Ends it and waits until it is gone: by SIGKILL, or by SIGTERM.
    #[cfg(unix)]
    pub(crate) fn end(&mut self, is_killed: bool) {
        if is_killed {
            self.child.kill().unwrap();
        } else {
            let asked = Command::new("kill")
                .arg(self.child.id().to_string())
                .status();
            assert!(asked.unwrap().success());
        }
        self.child.wait().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        ask_at(&self.address, method, path, headers, body)
    }

    /// Sends these bytes, and reads until the server hangs up.
    pub(crate) fn send(&self, text: &str) -> Answer {
        send_to(&self.address, text)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(
            "POST",
            path,
            &[("Content-Type", "application/json")],
            &body.to_string(),
        )
    }
}

/// A request to the server at an address.
fn ask_at(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    send_to(address, &format!("{text}\r\n{body}"))
}

fn send_to(address: &str, text: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may have refused already, and closed.
    let _ = stream.write_all(text.as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_contract_is_the_one_in_the_documentation() {
    let document = serde_json::to_string_pretty(&openapi::document(&mnemon_cli::cli::command()))
        .unwrap()
        + "\n";
    keep("openapi.json", &document);
}

#[test]
fn every_route_has_an_answer_with_a_shape_and_an_id_of_its_own() {
    let document = openapi::document(&mnemon_cli::cli::command());
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            assert!(ids.insert(id.clone()), "{method} {path}: {id} twice");
            assert!(
                operation["summary"]
                    .as_str()
                    .is_some_and(|text| text.len() > 5),
                "{path}"
            );
        }
    }
}

#[test]
fn records_are_added_found_changed_and_forgotten() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let added = server.post(
        "/v1/records",
        &json!({"content": "Ann prefers green tea", "id": "a1", "user": "ann"}),
    );
    assert_eq!(added.status, 200, "{added:?}");
    assert_eq!(added.json()["items"][0]["id"], "a1");
    let found = server.post(
        "/v1/search",
        &json!({"query": "what does Ann drink", "user": "ann"}),
    );
    assert_eq!(found.json()["hits"][0]["record"]["id"], "a1", "{found:?}");
    let one = server.get("/v1/records/a1");
    assert_eq!(one.header("etag"), Some("\"1\""));
    let same = server.ask("GET", "/v1/records/a1", &[("If-None-Match", "\"1\"")], "");
    assert_eq!((same.status, same.body.as_str()), (304, ""));
    let kind = ("Content-Type", "application/json");
    let body = json!({"content": "Ann prefers black tea"}).to_string();
    let changed = server.ask(
        "PATCH",
        "/v1/records/a1",
        &[kind, ("If-Match", "\"1\"")],
        &body,
    );
    assert_eq!(changed.status, 200, "{changed:?}");
    let late = server.ask(
        "PATCH",
        "/v1/records/a1",
        &[kind, ("If-Match", "\"1\"")],
        &body,
    );
    assert_eq!(
        (late.status, late.json()["code"].as_str()),
        (412, Some("conflict")),
        "{late:?}"
    );
    let gone = server.post("/v1/forget", &json!({"ids": ["a1"]}));
    assert_eq!(gone.status, 200, "{gone:?}");
    let missing = server.get("/v1/records/a1");
    assert_eq!(missing.status, 404, "{missing:?}");
    assert_eq!(
        missing.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(server.post("/v1/undo", &json!({})).status, 200);
    assert_eq!(server.get("/v1/records/a1").status, 200);
}

#[test]
fn a_record_is_forgotten_if_it_has_the_version() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let body = json!({"content": "Ann prefers green tea", "id": "a1"});
    assert_eq!(server.post("/v1/records", &body).status, 200);
    let delete = |headers: &[(&str, &str)]| server.ask("DELETE", "/v1/records/a1", headers, "");
    let late = delete(&[("If-Match", "\"2\"")]);
    assert_eq!(
        (late.status, late.json()["code"].as_str()),
        (412, Some("conflict")),
        "{late:?}"
    );
    assert_eq!(server.get("/v1/records/a1").status, 200);
    let headers = [("If-Match", "\"1\""), ("Idempotency-Key", "k1")];
    let gone = delete(&headers);
    assert_eq!(
        (gone.status, gone.json()["items"][0]["id"].as_str()),
        (200, Some("a1")),
        "{gone:?}"
    );
    assert_eq!(server.get("/v1/records/a1").status, 404);
    assert_eq!(delete(&headers).json(), gone.json(), "a retry");
    assert_eq!(delete(&[]).status, 404);
    assert_eq!(server.post("/v1/undo", &json!({})).status, 200);
    assert_eq!(server.get("/v1/records/a1").status, 200);
}

#[test]
fn a_long_operation_is_watched() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let events = |path: &str, body: &str| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream"),
        ];
        server.ask("POST", path, &headers, body)
    };
    let done = events("/v1/upkeep", "{}");
    assert_eq!(
        (done.status, done.header("content-type")),
        (200, Some("text/event-stream"))
    );
    assert!(done.body.contains("event: result\ndata: {"), "{done:?}");
    assert!(done.body.contains("\"more\":false"), "{done:?}");
    // What is wrong with the request itself has a status.
    assert_eq!(events("/v1/upkeep", "{\"limit\":0}").status, 400);
    let failed = events("/v1/learn/improve", "{}");
    assert!(failed.body.contains("event: error\ndata: {"), "{failed:?}");
    assert!(failed.body.contains("\"code\":\"invalid\""), "{failed:?}");
    let short = events("/v1/search", "{\"query\":\"tea\"}");
    assert_eq!(short.header("content-type"), Some("application/json"));
}

#[test]
fn an_idempotency_key_stores_once() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let headers = [
        ("Content-Type", "application/json"),
        ("Idempotency-Key", "k1"),
    ];
    let body = json!({"content": "Ann prefers tea"}).to_string();
    let first = server.ask("POST", "/v1/records", &headers, &body);
    let second = server.ask("POST", "/v1/records", &headers, &body);
    assert_eq!(first.json()["items"], second.json()["items"]);
    let other = json!({"content": "Ann prefers coffee"}).to_string();
    let third = server.ask("POST", "/v1/records", &headers, &other);
    assert_eq!(third.status, 409, "{third:?}");
    let stats = server.get("/v1/stats").json();
    assert_eq!(stats["records"], 1);
    let refused = server.ask("POST", "/v1/undo", &headers, "{}");
    assert_eq!(
        (refused.status, refused.json()["field"].as_str()),
        (400, Some("idempotency-key"))
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table of wrong requests")]
fn bad_requests_are_refused_with_the_reason_and_change_nothing() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let kind = ("Content-Type", "application/json");
    let post = |path: &str, body: &str| server.ask("POST", path, &[kind], body);
    let deep = format!("{{\"query\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let cases = [
        (post("/v1/search", "not json"), 400, "is not JSON"),
        (post("/v1/search", "[1]"), 400, "is not a JSON object"),
        (post("/v1/search", &deep), 400, "recursion limit"),
        (
            post("/v1/search", r#"{"query":"tea","foo":1}"#),
            400,
            "the fields are: query, limit",
        ),
        (
            post("/v1/search", r#"{"query":5}"#),
            400,
            "must be a text, not a number",
        ),
        (
            post("/v1/search", r#"{"query":"tea","limit":"5"}"#),
            400,
            "must be a whole number",
        ),
        (
            post("/v1/search", r#"{"query":"tea","limit":0}"#),
            400,
            "from 1 to",
        ),
        (
            post("/v1/search", r#"{"query":"tea","kind":["zebra"]}"#),
            400,
            "is not one of",
        ),
        (
            post("/v1/search?limit=5", r#"{"query":"tea"}"#),
            400,
            "send the fields as a JSON body",
        ),
        (post("/v1/records", "{}"), 400, "is missing"),
        (post("/v1/records", r#"{"content":null}"#), 400, "not null"),
        (
            post("/v1/records", r#"{"content":"x","file":"/etc/passwd"}"#),
            400,
            "is not a known field",
        ),
        (
            server.get("/v1/records?limit=x"),
            400,
            "must be a whole number",
        ),
        (
            server.get("/v1/records?limit=1&limit=2"),
            400,
            "is sent twice",
        ),
        (
            server.get("/v1/records?after=nonsense"),
            400,
            "is not a cursor",
        ),
        (
            server.get("/v1/records/..%2f..%2fetc%2fpasswd"),
            404,
            "there is no record",
        ),
        (
            server.get("/v1/agents/..%2F..%2Fetc/context"),
            405,
            "another method",
        ),
        (post("/v1/agents/..%2F..%2Fetc/context", "{}"), 400, ""),
        (server.get("/v1/nosuch"), 404, "there is no such route"),
        (
            server.ask("DELETE", "/v1/search", &[], ""),
            405,
            "another method",
        ),
        (
            server.ask(
                "POST",
                "/v1/search",
                &[("Content-Type", "text/plain")],
                "{}",
            ),
            415,
            "application/json",
        ),
        (
            server.ask("GET", "/v1/stats", &[("Host", "evil.example")], ""),
            403,
            "not served",
        ),
        (
            server.ask(
                "GET",
                "/v1/stats",
                &[("Origin", "https://evil.example")],
                "",
            ),
            403,
            "origin",
        ),
    ];
    for (answer, status, said) in &cases {
        assert_eq!(answer.status, *status, "{answer:?}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{answer:?}"
        );
        let problem = answer.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{said}: {detail}");
        assert_eq!(
            problem["request_id"].as_str(),
            answer.header("x-request-id")
        );
    }
    assert_eq!(server.get("/v1/stats").json()["records"], 0);
}

#[test]
fn answers_have_headers_that_protect_browsers_and_name_the_request() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for path in [
        "/healthz",
        "/readyz",
        "/docs",
        "/openapi.json",
        "/v1/stats",
        "/v1/nosuch",
    ] {
        let answer = server.ask("GET", path, &[("X-Request-Id", "req-7")], "");
        assert_eq!(answer.header("x-request-id"), Some("req-7"), "{path}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert!(answer.header("content-security-policy").is_some(), "{path}");
    }
    let page = server.get("/docs").body;
    assert!(
        !page.contains("https://"),
        "the page asks another server: {page}"
    );
    let zipped = server.ask("GET", "/openapi.json", &[("Accept-Encoding", "gzip")], "");
    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
    let metrics = server.get("/metrics");
    assert!(
        metrics.body.contains(
            "mnemon_http_requests_total{method=\"GET\",route=\"/v1/stats\",status=\"200\"} 1"
        ),
        "{}",
        metrics.body
    );
}

#[test]
fn a_page_of_a_named_origin_may_call_the_server_and_others_may_not() {
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", "0123456789abcdef0123");
    let server = Server::start(&sandbox, &["--allow-origin", "https://app.example"]);
    let question = |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
        ];
        server.ask("OPTIONS", "/v1/search", &headers, "")
    };
    let allowed = question("https://app.example");
    assert_eq!(allowed.status, 204, "{allowed:?}");
    let origin = allowed.header("access-control-allow-origin");
    assert_eq!(origin, Some("https://app.example"));
    let other = question("https://evil.example");
    assert_eq!(
        (other.status, other.header("access-control-allow-origin")),
        (403, None)
    );
    let headers = [
        ("Origin", "https://app.example"),
        ("Authorization", "Bearer 0123456789abcdef0123"),
    ];
    let answer = server.ask("GET", "/v1/stats", &headers, "");
    assert_eq!(answer.status, 200);
    assert!(
        answer.header("access-control-allow-origin").is_some(),
        "{answer:?}"
    );
}

#[test]
fn a_key_is_needed_where_one_is_set() {
    let key = "0123456789abcdef0123";
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", key);
    let server = Server::start(&sandbox, &[]);
    let bearer = format!("Bearer {key}");
    for path in ["/v1/stats", "/metrics", "/mcp"] {
        assert_eq!(server.get(path).status, 401, "{path}");
        let wrong = server.ask("GET", path, &[("Authorization", "Bearer wrong")], "");
        assert_eq!(
            (wrong.status, wrong.header("www-authenticate")),
            (401, Some("Bearer"))
        );
    }
    let right = server.ask("GET", "/v1/stats", &[("Authorization", &bearer)], "");
    assert_eq!(right.status, 200, "{right:?}");
    assert_eq!(server.get("/healthz").status, 200);
    let elsewhere = Sandbox::new();
    let (code, said) = elsewhere.run(&["serve", "--listen", "0.0.0.0:0"]).failed();
    assert_eq!(code, 2, "{said}");
    let taken = elsewhere
        .run(&["serve", "--listen", &server.address])
        .failed();
    assert!(taken.1.contains("cannot be listened on"), "{taken:?}");
}
