//! Export and import: any number of records in constant memory, and nothing of anybody else.

use serde_json::Value;

use super::{Answer, Server};
use crate::sandbox::Sandbox;

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
        let headers = [&[("Content-Type", "application/x-ndjson")], more].concat();
        let path = format!("/v1/import{query}");
        self.ask("POST", &path, &headers, &lines.join("\n"))
    }
}

fn count(server: &Server) -> u64 {
    server.get("/v1/stats").json()["records"].as_u64().unwrap()
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
    let conflict = server.import("", &[], &[other.clone()]);
    assert_eq!(conflict.status, 409, "{conflict:?}");
    assert_eq!(
        conflict.json()["detail"],
        "body, line 1 (nothing was written)"
    );
    let skipped = server.import("?on_conflict=skip", &[], &[other.clone()]);
    assert_eq!(skipped.json()["skipped"], 1, "{skipped:?}");
    let replaced = server.import("?on_conflict=replace", &[], &[other]);
    assert_eq!(replaced.json()["replaced"], 1, "{replaced:?}");
    let plain = server.ask("POST", "/v1/import", &[("Content-Type", "text/plain")], "x");
    assert_eq!(plain.status, 415, "{plain:?}");
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
        .run(&["add", "Secret of beta", "--tenant", "beta"])
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
}
