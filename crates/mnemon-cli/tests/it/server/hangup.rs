//! Clients that do not wait for the answer: whatever they changed is in the audit log.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::Server;
use crate::sandbox::Sandbox;

fn entries(sandbox: &Sandbox, operation: &str) -> usize {
    let log = sandbox.run(&["audit", "list", "--limit", "1000", "--json"]);
    let log = log.json();
    let entries = log["entries"].as_array().unwrap().iter();
    let done = entries.filter(|entry| entry["operation"] == operation && entry["status"] == 200);
    done.count()
}

#[test]
fn a_change_whose_client_hangs_up_is_in_the_audit_log() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox, &[]);
    for number in 0..60 {
        let body = json!({"content": format!("record {number}")}).to_string();
        let text = format!(
            "POST /v1/records HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_micros(number * 100));
    }
    // It finishes its work first.
    server.end(false);
    let exported = sandbox.run(&["export"]).ok();
    let stored = exported.lines().count();
    assert!(stored > 0, "some of the records were stored");
    assert_eq!(entries(&sandbox, "add"), stored);
}

#[test]
fn nothing_is_changed_while_the_audit_log_cannot_be_written() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("log")).unwrap();
    let log = sandbox.path("log").display().to_string();
    sandbox.config(format!("[server]\naudit = {log:?}\n"));
    let server = Server::start(&sandbox, &[]);
    let answer = server.post("/v1/records", &json!({"content": "tea"}));
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.body.contains("nothing was changed"), "{answer:?}");
    let listed = server.get("/v1/records");
    assert_eq!(listed.json()["records"], json!([]), "{listed:?}");
}

#[test]
fn a_change_that_was_refused_is_in_the_audit_log() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let wrong = server.post("/v1/records", &json!({"contents": "tea"}));
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let log = sandbox.run(&["audit", "list", "--json"]).json();
    let entry = &log["entries"][0];
    assert_eq!(
        (&entry["operation"], &entry["status"]),
        (&json!("add"), &json!(400)),
        "{log}"
    );
}
