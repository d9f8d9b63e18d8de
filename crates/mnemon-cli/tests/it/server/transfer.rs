//! Export and import: any number of records in constant memory, and nothing of anybody else.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Answer, Server};
use crate::sandbox::Sandbox;

const NDJSON: [(&str, &str); 1] = [("Content-Type", "application/x-ndjson")];

/// The lines of this many records.
fn lines(sandbox: &Sandbox, count: usize) -> Vec<String> {
    let other = ["--store", "sqlite:other.db"];
    let add = ["add", "--id", "r0", "Tea grows on hills"];
    sandbox.run(&[&add[..], &other].concat()).ok();
    let line = sandbox.run(&[&["export"][..], &other].concat()).ok();
    let id = |number: usize| format!("\"id\":\"r{number}\"");
    let line = line.trim_end();
    assert!(line.contains(&id(0)), "{line}");
    (0..count)
        .map(|number| line.replacen(&id(0), &id(number), 1))
        .collect()
}

impl Server {
    /// Without the parts that a newer protocol cuts an answer into.
    fn export(&self, headers: &str) -> Answer {
        let host = &self.address;
        let text = format!("GET /v1/export HTTP/1.0\r\nHost: {host}\r\n{headers}\r\n");
        self.send(&text)
    }

    fn import(&self, query: &str, more: &[(&str, &str)], lines: &[String]) -> Answer {
        let headers = [&NDJSON, more].concat();
        let path = format!("/v1/import{query}");
        self.ask("POST", &path, &headers, &lines.join("\n"))
    }
}

fn count(server: &Server) -> u64 {
    server.get("/v1/stats").json()["records"].as_u64().unwrap()
}

#[test]
fn an_import_refuses_an_idempotency_key_and_may_be_repeated_without_one() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let lines = lines(&sandbox, 3);
    let refused = server.import("", &[("Idempotency-Key", "k1")], &lines);
    assert_eq!(refused.status, 400, "{refused:?}");
    let problem = refused.json();
    assert_eq!(problem["field"], "idempotency-key", "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("send the same lines again"), "{detail}");
    assert_eq!(count(&server), 0);
    for expected in ["stored", "duplicate"] {
        let done = server.import("", &[], &lines).json();
        assert_eq!(done[expected], 3, "{done}");
    }
}

#[test]
fn what_was_exported_is_imported_and_exported_alike() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let lines = lines(&sandbox, 1234);
    let done = server.import("", &[], &lines);
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    assert_eq!(
        (done["records"].as_u64(), done["stored"].as_u64()),
        (Some(1234), Some(1234))
    );
    let again = server.import("", &[], &lines).json();
    assert_eq!(again["duplicate"], 1234, "{again}");
    let exported = server.export("");
    assert_eq!(
        exported.header("content-type"),
        Some("application/x-ndjson")
    );
    assert_eq!(exported.body.lines().count(), 1234);
    let zipped = server.export("Accept-Encoding: gzip\r\n");
    assert_eq!(
        (zipped.status, zipped.header("content-encoding")),
        (200, Some("gzip"))
    );
    assert!(zipped.body.len() < exported.body.len() / 2);
    assert_eq!(exported.body, sandbox.run(&["export"]).ok());
    // One undo takes all of it back.
    let commit = done["commit"].to_string();
    sandbox.run(&["undo", &commit]).ok();
    assert_eq!(count(&server), 0);
}

#[test]
fn a_bad_line_is_named_with_the_number_of_records_before_it() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut lines = lines(&sandbox, 1300);
    lines[1202] = "{\"id\":".to_owned();
    let wrong = server.import("", &[], &lines);
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert_eq!(
        wrong.json()["detail"],
        "body, line 1203 (1000 records before it were imported)"
    );
    assert_eq!(count(&server), 1000);
    let other = lines[3].replace("hills", "trees");
    let conflict = server.import("", &[], std::slice::from_ref(&other));
    assert_eq!(conflict.status, 409, "{conflict:?}");
    assert_eq!(
        conflict.json()["detail"],
        "body, line 1 (nothing was written)"
    );
    let skipped = server.import("?on_conflict=skip", &[], std::slice::from_ref(&other));
    assert_eq!(skipped.json()["skipped"], 1, "{skipped:?}");
    let replaced = server.import("?on_conflict=replace", &[], &[other]);
    assert_eq!(replaced.json()["replaced"], 1, "{replaced:?}");
    let plain = server.ask("POST", "/v1/import", &[("Content-Type", "text/plain")], "x");
    assert_eq!(
        (plain.status, plain.header("connection")),
        (415, Some("close")),
        "{plain:?}"
    );
    let unknown = server.import("?on_conflict=never", &[], &[]);
    assert_eq!(unknown.status, 400, "{unknown:?}");
    let cut = "POST /v1/import HTTP/1.1\r\nContent-Type: application/x-ndjson\r\n\
        Transfer-Encoding: chunked\r\nHost: 127.0.0.1\r\n\r\nnonsense\r\n";
    assert_eq!(server.send(cut).status, 400);
}

#[test]
fn an_import_is_watched() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let lines = lines(&sandbox, 1100);
    let accept = [("Accept", "text/event-stream")];
    let done = server.import("", &accept, &lines);
    assert!(done.body.contains("event: result\ndata: {"), "{done:?}");
    assert!(done.body.contains("\"stored\":1100"), "{done:?}");
    let wrong = server.import("", &accept, &["{}".to_owned()]);
    assert!(wrong.body.contains("event: error\ndata: {"), "{wrong:?}");
    assert!(wrong.body.contains("body, line 1"), "{wrong:?}");
}

#[test]
fn an_import_counts_towards_the_quota_and_stands_in_the_audit_log() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrecords = 1500\n");
    let server = Server::start(&sandbox, &[]);
    let lines = lines(&sandbox, 2500);
    let over = server.import("", &[], &lines);
    assert_eq!(over.status, 429, "{over:?}");
    assert!(over.header("retry-after").is_some(), "{over:?}");
    assert_eq!(
        over.json()["detail"],
        "body, line 1001 (1000 records before it were imported)"
    );
    assert_eq!(count(&server), 1000);
    let document = |number: u32| json!({"uri": format!("{number}.md"), "text": "Tea"});
    let documents: Vec<Value> = (0..600).map(document).collect();
    let many = server.post("/v1/documents", &json!({"documents": documents}));
    assert_eq!(many.status, 429, "{many:?}");
    assert_eq!(server.export("").status, 200);
    let log = sandbox.run(&["audit", "list", "--json"]).json();
    let entries = log["entries"].as_array().unwrap().iter();
    let entries = entries.map(|entry| {
        let of = |field: &str| entry[field].as_u64().unwrap_or(0);
        let operation = entry["operation"].as_str().unwrap().to_owned();
        (operation, of("count"), of("status"))
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    assert_eq!(
        entries,
        [
            ("export".to_owned(), 0, 200),
            ("import".to_owned(), 0, 429),
            ("import".to_owned(), 1000, 200)
        ]
    );
}

#[test]
fn only_keys_of_the_whole_tenant_export_and_import() {
    let sandbox = Sandbox::new();
    let lines = lines(&sandbox, 2);
    sandbox
        .run(&["add", "--id", "r0", "Secret of beta", "--tenant", "beta"])
        .ok();
    let key = |args: &[&str]| -> String {
        let args = [&["key", "create", "k", "--json"], args].concat();
        let made: Value = sandbox.run(&args).json();
        format!("Bearer {}", made["secret"].as_str().unwrap())
    };
    let bound = key(&["--rights", "write", "--user", "ann"]);
    let reads = key(&["--rights", "read"]);
    let writes = key(&["--rights", "write"]);
    let server = Server::start(&sandbox, &[]);
    let export = |key: &str| server.export(&format!("Authorization: {key}\r\n"));
    let import = |key: &str| server.import("", &[("Authorization", key)], &lines);
    assert_eq!(export(&bound).status, 403);
    assert_eq!(import(&bound).status, 403);
    assert_eq!(import(&reads).status, 403);
    assert_eq!(export(&reads).body, "");
    assert_eq!(import(&writes).status, 200);
    let seen = export(&reads);
    assert_eq!(seen.body.lines().count(), 2, "{seen:?}");
    assert!(!seen.body.contains("beta"), "{seen:?}");
    // The same id is another record, whatever tenant the line names.
    let line = lines[0].replace("\"tenant\":\"default\"", "\"tenant\":\"beta\"");
    let line = line.replace("hills", "trees");
    let replaced = "?on_conflict=replace";
    let done = server.import(replaced, &[("Authorization", &writes)], &[line]);
    assert_eq!(done.json()["replaced"], 1, "{done:?}");
    let beta = sandbox.run(&["export", "--tenant", "beta"]).ok();
    assert!(beta.contains("Secret of beta"), "{beta}");
}

#[test]
fn documents_are_sent_and_belong_to_the_user_of_the_key() {
    let sandbox = Sandbox::new();
    let key = |args: &[&str]| -> String {
        let args = [&["key", "create", "k", "--json"], args].concat();
        let made: Value = sandbox.run(&args).json();
        format!("Bearer {}", made["secret"].as_str().unwrap())
    };
    let ann = key(&["--rights", "write", "--user", "ann"]);
    let bob = key(&["--rights", "write", "--user", "bob"]);
    let server = Server::start(&sandbox, &[]);
    let ask = |key: &str, path: &str, body: &Value| {
        let headers = [("Authorization", key), ("Content-Type", "application/json")];
        server.ask("POST", path, &headers, &body.to_string())
    };
    let known = json!({"documents": [{"uri": "/home/tea.md"}]});
    let sent = |text: &str| json!({"documents": [{"uri": "/home/tea.md", "text": text}]});
    let fate = |answer: &Answer| answer.json()["documents"][0]["fate"].clone();
    let added = ask(&ann, "/v1/documents", &sent("# Tea\n\nOf ann"));
    assert_eq!(fate(&added), "added", "{added:?}");
    let other = ask(&bob, "/v1/documents/known", &known).json();
    assert_eq!(other["documents"], json!([null]));
    let other = ask(&bob, "/v1/documents", &sent("# Tea\n\nOf bob"));
    assert_eq!(fate(&other), "added", "{other:?}");
    let again = ask(&ann, "/v1/documents", &sent("# Tea\n\nOf ann"));
    assert_eq!(fate(&again), "unchanged", "{again:?}");
    let found = ask(&bob, "/v1/search", &json!({"query": "tea", "min_score": 0}));
    assert!(found.body.contains("Of bob"), "{found:?}");
    assert!(!found.body.contains("Of ann"), "{found:?}");
    let mut named = sent("mine");
    named["user"] = json!("ann");
    assert_eq!(ask(&bob, "/v1/documents", &named).status, 403);
    let path = json!({"documents": [{"uri": "/etc/passwd"}]});
    assert_eq!(ask(&ann, "/v1/documents", &path).status, 400);
}

#[test]
fn a_folder_of_this_machine_is_ingested_on_a_server() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    std::fs::create_dir(sandbox.path("docs")).unwrap();
    for name in ["tea", "milk", "rice"] {
        sandbox.file(
            &format!("docs/{name}.md"),
            format!("# {name}\n\nAbout {name}.\n"),
        );
    }
    let url = server.url();
    let ingest = |more: &[&str]| {
        let args = [
            "ingest", "docs", "--user", "ann", "--json", "--server", &url,
        ];
        sandbox.run(&[&args[..], more].concat()).json()
    };
    let counts = |done: &Value| {
        ["added", "replaced", "unchanged", "pruned"].map(|name| done[name].as_u64().unwrap())
    };
    assert_eq!(counts(&ingest(&["--dry-run"])), [3, 0, 0, 0]);
    assert_eq!(count(&server), 0);
    assert_eq!(counts(&ingest(&[])), [3, 0, 0, 0]);
    sandbox.file("docs/tea.md", "# tea\n\nAbout green tea.\n");
    std::fs::remove_file(sandbox.path("docs/rice.md")).unwrap();
    assert_eq!(counts(&ingest(&["--prune"])), [0, 1, 1, 1]);
    let here = sandbox
        .run(&["list", "--kind", "document", "--json"])
        .json();
    assert_eq!(here["records"].as_array().unwrap().len(), 2);
}

#[test]
fn many_messages_are_appended_on_a_server() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let url = server.url();
    let line = |number: usize| format!("{{\"role\":\"user\",\"content\":\"message {number}\"}}\n");
    let talk: String = (0..1500).map(line).collect();
    let talk = sandbox.file("talk.jsonl", &talk);
    let append = || {
        let args = [
            "chat", "append", "s1", "--jsonl", &talk, "--key", "k", "--json",
        ];
        sandbox
            .run(&[&args[..], &["--server", &url]].concat())
            .json()
    };
    assert_eq!(append()["messages"], 1500);
    let again = append();
    assert_eq!(
        (again["messages"].as_u64(), again["already_there"].as_u64()),
        (Some(0), Some(1500)),
        "{again}"
    );
}

#[test]
fn an_import_of_blank_lines_ends_soon() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let blank = "\n".repeat(8 * 1024 * 1024);
    let answer = server.ask("POST", "/v1/import", &NDJSON, &blank);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn a_line_of_very_many_values_is_refused_before_it_is_read() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let line = format!("{{\"a\":[{}0]}}", "0,".repeat(100_001));
    let answer = server.ask("POST", "/v1/import", &NDJSON, &line);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("100000 values"), "{answer:?}");
}

#[test]
fn an_import_ends_when_its_key_is_revoked() {
    let sandbox = Sandbox::new();
    let make = |name: &str, rights: &str| {
        let made = sandbox
            .run(&["key", "create", name, "--rights", rights, "--json"])
            .json();
        let secret = made["secret"].as_str().unwrap().to_owned();
        (secret, made["key"]["prefix"].as_str().unwrap().to_owned())
    };
    let lines = lines(&sandbox, 2);
    let (admin, _) = make("admin", "admin");
    let (secret, prefix) = make("ci", "write");
    let server = Server::start(&sandbox, &[]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /v1/import HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {secret}\r\n\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        server.address
    );
    let chunk = |line: &str| format!("{:x}\r\n{line}\n\r\n", line.len() + 1);
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(chunk(&lines[0]).as_bytes()).unwrap();
    sandbox.run(&["key", "revoke", &prefix]).ok();
    let bearer = format!("Bearer {secret}");
    let is_valid = || {
        let answer = server.ask("GET", "/v1/records", &[("Authorization", &bearer)], "");
        answer.status == 200
    };
    while is_valid() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let rest = format!("{}0\r\n\r\n", chunk(&lines[1]));
    stream.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let bearer = format!("Bearer {admin}");
    let export = server.ask("GET", "/v1/export", &[("Authorization", &bearer)], "");
    assert_eq!(export.body.matches("\"content\"").count(), 0, "{export:?}");
}
