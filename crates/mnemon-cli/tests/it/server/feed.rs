//! `GET /v1/changes`: listeners that are cut and resumed see every change once and in order.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

const WRITERS: usize = 4;
const WRITES: usize = 40;
const LISTENERS: usize = 6;

/// The numbers and ids of changes after this number, until `count` have come or the listener was cut
/// after `cut` of them.
fn listen(address: &str, after: u64, count: usize) -> Vec<(u64, String)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = format!(
        "GET /v1/changes?after={after} HTTP/1.1\r\nHost: {address}\r\nLast-Event-ID: {after}\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut seen = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(data) = line.strip_prefix("data: ") {
            let change: Value = serde_json::from_str(data).unwrap();
            let id = change["id"].as_str().unwrap().to_owned();
            seen.push((change["seq"].as_u64().unwrap(), id));
        }
        if seen.len() >= count {
            break;
        }
    }
    seen
}

#[test]
fn listeners_that_are_cut_see_every_change_once_and_in_order() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let all = WRITERS * WRITES;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let server = &server;
            scope.spawn(move || {
                for number in 0..WRITES {
                    let body = json!({"content": format!("{writer} wrote {number}"), "id": format!("w{writer}-{number}")});
                    assert_eq!(server.post("/v1/records", &body).status, 200);
                }
            });
        }
        let listeners = (0..LISTENERS).map(|listener| {
            let address = server.address.clone();
            scope.spawn(move || {
                let mut seen: Vec<(u64, String)> = Vec::new();
                // Each listener is cut after another number of changes.
                while seen.len() < all {
                    let after = seen.last().map_or(0, |(seq, _)| *seq);
                    let count = (7 + 13 * listener).min(all - seen.len());
                    seen.extend(listen(&address, after, count));
                }
                seen
            })
        });
        let seen: Vec<_> = listeners
            .collect::<Vec<_>>()
            .into_iter()
            .map(|one| one.join().unwrap())
            .collect();
        for seen in &seen {
            assert!(
                seen.is_sorted_by(|one, next| one.0 < next.0),
                "in order, each once"
            );
            let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
            for (_, id) in seen {
                *ids.entry(id).or_default() += 1;
            }
            assert_eq!(ids.len(), all);
        }
    });
}

#[test]
fn a_listener_with_a_key_hears_only_what_the_key_may_see() {
    let sandbox = Sandbox::new();
    let make = |args: &[&str]| {
        let made = sandbox
            .run(&[&["key", "create"], args, &["--json"]].concat())
            .json();
        (
            made["secret"].as_str().unwrap().to_owned(),
            made["key"]["prefix"].as_str().unwrap().to_owned(),
        )
    };
    let (ann, prefix) = make(&["ann", "--rights", "read", "--user", "ann"]);
    let server = Server::start(&sandbox, &[]);
    for user in ["bob", "ann", "bob", "ann"] {
        sandbox
            .run(&["add", &format!("{user} drinks tea"), "--user", user])
            .ok();
    }
    sandbox
        .run(&["add", "of another tenant", "--tenant", "beta"])
        .ok();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = format!(
        "GET /v1/changes?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ann}\r\n\r\n",
        server.address
    );
    stream.write_all(text.as_bytes()).unwrap();
    let revoked = Arc::new(AtomicBool::new(false));
    let mut heard = Vec::new();
    // The stream ends when the key is revoked.
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(data) = line.strip_prefix("data: ") {
            heard.push(data.to_owned());
        }
        if heard.len() == 2 && !revoked.swap(true, Ordering::Relaxed) {
            sandbox.run(&["key", "revoke", &prefix]).ok();
        }
    }
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(
        heard.iter().all(|data| data.contains("ann drinks")),
        "{heard:?}"
    );
    let later = server.ask(
        "GET",
        "/v1/stats",
        &[("Authorization", &format!("Bearer {ann}"))],
        "",
    );
    assert_eq!(later.status, 401, "{later:?}");
}

#[test]
fn a_number_of_another_store_is_refused() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let answer = server.get("/v1/changes?after=99");
    assert_eq!(
        (answer.status, answer.json()["field"].as_str()),
        (400, Some("after")),
        "{answer:?}"
    );
    let answer = server.ask("GET", "/v1/changes", &[("Last-Event-ID", "x")], "");
    assert_eq!(answer.status, 400, "{answer:?}");
    let answer = server.get("/v1/changes?nosuch=1");
    assert_eq!(answer.status, 400, "{answer:?}");
}
