//! Webhooks of a running server, with a receiver that answers as a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use mnemon_adapters::webhook::{DELIVERY, HttpWebhooks, SIGNATURE, signature};
use mnemon_core::{Ctx, Tenant};
use mnemon_engine::webhooks::{ATTEMPTS, MOST_WAIT_MS, Webhooks};
use mnemon_operations::config::Config;
use mnemon_operations::wiring;
use serde_json::{Value, json};

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

pub(super) const ALLOWED: &str = "[server]\nwebhook_hosts = \"127.0.0.1\"\n";

/// A delivery as it arrived.
pub(super) struct Delivery {
    head: String,
    body: String,
}

impl Delivery {
    pub(super) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found
            .unwrap_or_else(|| panic!("no {name}: {}", self.head))
            .1
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The contents of the changed records.
    pub(super) fn contents(&self) -> Vec<String> {
        let changes = self.json()["changes"].as_array().unwrap().clone();
        let contents = changes.iter().map(|change| &change["after"]["content"]);
        contents
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    }
}

/// Answers every delivery with one status.
pub(super) struct Receiver {
    pub(super) url: String,
    pub(super) status: Arc<AtomicU16>,
    /// Answers wait as long as somebody holds it.
    pub(super) hold: Arc<Mutex<()>>,
    pub(super) arrived: mpsc::Receiver<Delivery>,
}

impl Receiver {
    pub(super) fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let status = Arc::new(AtomicU16::new(status));
        let (sender, arrived) = mpsc::channel();
        let hold = Arc::new(Mutex::new(()));
        let (answer, held) = (status.clone(), hold.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if reader.read_line(&mut head).unwrap_or(0) == 0 {
                        break;
                    }
                }
                let mut delivery = Delivery {
                    head,
                    body: String::new(),
                };
                let length: u64 = delivery.header("Content-Length").parse().unwrap();
                let mut body = reader.by_ref().take(length);
                body.read_to_string(&mut delivery.body).unwrap();
                let status = answer.load(Ordering::SeqCst);
                let said = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                if sender.send(delivery).is_err() {
                    return;
                }
                drop(held.lock());
                let _ = reader.get_mut().write_all(said.as_bytes());
            }
        });
        Self {
            url,
            status,
            hold,
            arrived,
        }
    }

    pub(super) fn next(&self) -> Delivery {
        self.arrived.recv_timeout(PATIENCE).expect("a delivery")
    }
}

pub(super) fn create(sandbox: &Sandbox, url: &str, more: &[&str]) -> (String, String) {
    let made = sandbox
        .run(&[&["webhook", "create", url, "--json"], more].concat())
        .json();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

#[test]
fn changes_of_the_tenant_arrive_signed_and_in_order() {
    let sandbox = Sandbox::new();
    sandbox.config(ALLOWED);
    let receiver = Receiver::start(204);
    let (id, secret) = create(&sandbox, &receiver.url, &["--kind", "note"]);
    let server = Server::start(&sandbox, &[]);
    let add = |content: &str, kind: &str| {
        let body = json!({"content": content, "kind": kind});
        assert_eq!(server.post("/v1/records", &body).status, 200);
    };
    add("one", "note");
    let first = receiver.next();
    assert_eq!(first.contents(), ["one"]);
    assert_eq!(
        (&first.json()["webhook"], &first.json()["tenant"]),
        (&json!(id), &json!("default"))
    );
    let signed = first.header(SIGNATURE).to_owned();
    let seconds = signed
        .split(',')
        .next()
        .unwrap()
        .strip_prefix("t=")
        .unwrap();
    let expected = signature(
        secret.as_bytes(),
        seconds.parse().unwrap(),
        first.body.as_bytes(),
    );
    assert_eq!(signed, expected);
    // Neither another kind, another tenant nor another process's change of it comes.
    add("a fact", "fact");
    sandbox
        .run(&["add", "of another tenant", "--tenant", "beta"])
        .ok();
    sandbox.run(&["add", "two", "--kind", "note"]).ok();
    let mut contents = Vec::new();
    while contents.last().is_none_or(|last| last != "three") {
        if contents.last().is_some_and(|last| last == "two") {
            add("three", "note");
        }
        contents.extend(receiver.next().contents());
    }
    assert_eq!(contents, ["two", "three"]);
    let shown = server.get("/v1/webhooks");
    assert!(!shown.body.contains(&secret), "{shown:?}");
    assert_eq!(shown.json()["webhooks"][0]["failures"], 0);
    let url = server.url();
    let removed = sandbox
        .run(&["webhook", "delete", &id, "--server", &url])
        .ok();
    assert_eq!(removed, format!("deleted webhook {id}\n"));
    let (code, said) = sandbox
        .run(&["webhook", "failed", &id, "--server", &url])
        .failed();
    assert!(
        code == 3 && said.contains("there is no webhook"),
        "{code} {said}"
    );
    let log = sandbox.run(&["audit", "list", "--json"]).ok();
    for operation in ["webhook create", "webhook delete"] {
        let entry = format!("\"ids\":[\"{id}\"],\"operation\":\"{operation}\"");
        assert!(log.contains(&entry), "{log}");
    }
}

#[test]
fn a_failure_is_noted_and_repeated_later() {
    let sandbox = Sandbox::new();
    sandbox.config(ALLOWED);
    let receiver = Receiver::start(500);
    create(&sandbox, &receiver.url, &[]);
    let server = Server::start(&sandbox, &[]);
    assert_eq!(
        server
            .post("/v1/records", &json!({"content": "one"}))
            .status,
        200
    );
    let first = receiver.next();
    receiver.status.store(200, Ordering::SeqCst);
    let mut state = Value::Null;
    while state["failures"] != 1 {
        state = server.get("/v1/webhooks").json()["webhooks"][0].clone();
    }
    assert_eq!(
        state["last_error"],
        "the receiver answered 500 Internal Server Error"
    );
    assert!(state["next_attempt"].is_string(), "{state}");
    let second = receiver.next();
    assert_eq!(second.header(DELIVERY), first.header(DELIVERY));
    assert_eq!(second.body, first.body);
    while state["failures"] != 0 {
        state = server.get("/v1/webhooks").json()["webhooks"][0].clone();
    }
}

/// Fails every delivery of the store, as if hours went by.
pub(super) fn give_up(sandbox: &Sandbox) {
    let store = sandbox.path(".local/share/mnemon/mnemon.db");
    let config = Config::for_store(format!("sqlite:{}", store.display()));
    let wired = wiring::open(&config).unwrap();
    let sender = Arc::new(HttpWebhooks::new(Vec::new()).unwrap());
    let webhooks = Webhooks::new(wired.memory.records(), sender, "a test");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut now = wiring::now().unwrap();
    for _ in 0..ATTEMPTS {
        let ctx = Ctx::new(Tenant::default(), "test", now);
        let done = runtime.block_on(webhooks.deliver_due(&ctx, 9)).unwrap();
        assert_eq!((done.sent, done.failed), (0, 1));
        now = now.plus_millis(MOST_WAIT_MS);
    }
}

#[test]
fn a_delivery_that_was_given_up_is_listed_and_can_be_sent_again() {
    let sandbox = Sandbox::new();
    sandbox.config(ALLOWED);
    let receiver = Receiver::start(500);
    let (id, _) = create(&sandbox, &receiver.url, &[]);
    sandbox.run(&["add", "one", "--id", "a1"]).ok();
    // The address is not allowed there, so that nothing arrives.
    give_up(&sandbox);
    let server = Server::start(&sandbox, &[]);
    let failed = server.get(&format!("/v1/webhooks/{id}/failed")).json();
    let letter = &failed["dead_letters"][0];
    assert_eq!(
        (&letter["number"], &letter["attempts"]),
        (&json!(1), &json!(ATTEMPTS))
    );
    let said = letter["error"].as_str().unwrap();
    assert!(said.contains("not on the public internet"), "{said}");
    assert!(!failed.to_string().contains("one"), "{failed}");
    let path = format!("/v1/webhooks/{id}/redeliver");
    let again = || server.post(&path, &json!({"number": 1}));
    let refused = again();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(
        refused.body.contains("the receiver answered 500"),
        "{refused:?}"
    );
    assert_eq!(receiver.next().contents(), ["one"]);
    receiver.status.store(200, Ordering::SeqCst);
    let sent = again();
    assert_eq!(
        (sent.status, sent.json()),
        (200, json!({"id": id, "number": 1}))
    );
    assert_eq!(receiver.next().contents(), ["one"]);
    assert_eq!(again().status, 404, "it has arrived");
    let failed = sandbox.run(&["webhook", "failed", &id]).ok();
    assert_eq!(failed, "no delivery was given up\n");
}

#[test]
fn a_private_address_is_refused_unless_it_is_allowed() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for url in [
        "http://127.0.0.1:9/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "https://[::ffff:127.0.0.1]/",
    ] {
        let answer = server.post("/v1/webhooks", &json!({"url": url}));
        let problem = answer.json();
        assert_eq!(
            (answer.status, problem["field"].as_str()),
            (400, Some("url")),
            "{url}"
        );
        let said = problem["detail"].as_str().unwrap();
        assert!(said.contains("server.webhook_hosts"), "{said}");
    }
    for url in [
        "file:///etc/passwd",
        "https://ann:secret@example.org/",
        "nonsense",
    ] {
        let answer = server.post("/v1/webhooks", &json!({"url": url}));
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    drop(server);
    sandbox.config(ALLOWED);
    let server = Server::start(&sandbox, &[]);
    let allowed = server.post("/v1/webhooks", &json!({"url": "http://127.0.0.1:9/"}));
    assert_eq!(allowed.status, 200, "{allowed:?}");
}

#[cfg(unix)]
#[test]
fn deliveries_go_on_at_once_after_other_hosts_were_allowed() {
    let sandbox = Sandbox::new();
    sandbox.config(ALLOWED);
    let receiver = Receiver::start(200);
    create(&sandbox, &receiver.url, &["--kind", "note"]);
    let server = Server::start(&sandbox, &[]);
    let add = |content: &str| {
        let body = json!({"content": content, "kind": "note"});
        assert_eq!(server.post("/v1/records", &body).status, 200);
        receiver.next().contents()
    };
    assert_eq!(add("one"), ["one"]);
    sandbox.config("[server]\nwebhook_hosts = \"127.0.0.1, 10.0.0.9\"\n");
    let id = server.child.id().to_string();
    let kill = Command::new("kill").args(["-HUP", &id]).status();
    assert!(kill.unwrap().success());
    // It gets no notes.
    let other = json!({"url": "http://10.0.0.9/", "kind": ["fact"]});
    let began = Instant::now();
    while server.post("/v1/webhooks", &other).status != 200 {
        assert!(began.elapsed() < PATIENCE, "the hosts were not read again");
    }
    let began = Instant::now();
    assert_eq!(add("two"), ["two"]);
    assert!(began.elapsed() < PATIENCE / 2, "a lease was left");
}

#[cfg(unix)]
#[test]
fn a_delivery_that_is_on_its_way_at_the_end_is_not_sent_twice() {
    let sandbox = Sandbox::new();
    sandbox.config(ALLOWED);
    let receiver = Receiver::start(200);
    create(&sandbox, &receiver.url, &[]);
    let mut server = Server::start(&sandbox, &[]);
    let held = receiver.hold.lock().unwrap();
    let add = json!({"content": "one"});
    assert_eq!(server.post("/v1/records", &add).status, 200);
    receiver.next();
    let id = server.child.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &id]).status();
    assert!(kill.unwrap().success());
    drop(held);
    assert!(server.child.wait().unwrap().success());
    let state = sandbox.run(&["webhook", "list", "--json"]).json();
    let state = &state["webhooks"][0];
    assert_eq!(
        (&state["reached"], &state["failures"]),
        (&json!(1), &json!(0))
    );
}
