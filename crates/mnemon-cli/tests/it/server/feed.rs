//! `GET /v1/changes`: listeners that are cut and resumed see every change once and in order.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mnemon_testkit::talks::Dice;
use serde_json::{Value, json};

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

/// How many write and listen. `MNEMON_FEED_RECORDS` says how many records a soak has.
struct Size {
    writers: usize,
    listeners: usize,
    records: usize,
}

impl Size {
    fn of_this_run() -> Self {
        let records = std::env::var("MNEMON_FEED_RECORDS");
        let (writers, listeners, records) = match records {
            Ok(records) => (8, 50, records.parse().unwrap()),
            Err(_) => (4, 6, 160),
        };
        Self {
            writers,
            listeners,
            records,
        }
    }
}

/// The numbers and ids of changes after this number, until `count` have come.
fn listen(address: &str, secret: &str, after: u64, count: usize) -> Vec<(u64, String)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = format!(
        "GET /v1/changes?after={after} HTTP/1.1\r\nHost: {address}\r\nLast-Event-ID: {after}\r\n\
         Authorization: Bearer {secret}\r\n\r\n"
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

/// All changes of a tenant, heard on connections that are cut at random.
fn listen_in_pieces(address: &str, secret: &str, seed: u64, all: usize) -> Vec<(u64, String)> {
    let mut dice = Dice::new(seed);
    let mut seen: Vec<(u64, String)> = Vec::new();
    while seen.len() < all {
        let after = seen.last().map_or(0, |(seq, _)| *seq);
        let count = (1 + dice.below(all / 3)).min(all - seen.len());
        seen.extend(listen(address, secret, after, count));
    }
    seen
}

#[test]
fn listeners_that_are_cut_see_every_change_of_their_tenant_once_and_in_order() {
    let (sandbox, size) = (Sandbox::new(), Size::of_this_run());
    let tenants = ["acme", "beta"];
    let secrets = tenants.map(|tenant| {
        let args = [
            "key", "create", tenant, "--rights", "write", "--tenant", tenant, "--json",
        ];
        let made = sandbox.run(&args).json();
        made["secret"].as_str().unwrap().to_owned()
    });
    let secret = |number: usize| &secrets[number % tenants.len()];
    let server = Server::start(&sandbox, &[]);
    let (each, all) = (size.records / size.writers, size.records / tenants.len());
    std::thread::scope(|scope| {
        for writer in 0..size.writers {
            let (server, secret) = (&server, secret(writer));
            scope.spawn(move || {
                for number in 0..each {
                    let id = format!("w{writer}-{number}");
                    let body = json!({"content": format!("{writer} wrote {number}"), "id": id});
                    let bearer = format!("Bearer {secret}");
                    let headers = [
                        ("Authorization", &*bearer),
                        ("Content-Type", "application/json"),
                    ];
                    let answer = server.ask("POST", "/v1/records", &headers, &body.to_string());
                    assert_eq!(answer.status, 200, "{answer:?}");
                }
            });
        }
        let listeners: Vec<_> = (0..size.listeners)
            .map(|number| {
                let (address, secret) = (&server.address, secret(number));
                scope.spawn(move || listen_in_pieces(address, secret, number as u64, all))
            })
            .collect();
        for (number, listener) in listeners.into_iter().enumerate() {
            let seen = listener.join().unwrap();
            let in_order = seen.is_sorted_by(|one, next| one.0 < next.0);
            assert!(in_order, "in order, each once");
            let ids: BTreeSet<String> = seen.into_iter().map(|(_, id)| id).collect();
            let of_tenant = (0..size.writers).filter(|writer| writer % 2 == number % 2);
            let written: BTreeSet<String> = of_tenant
                .flat_map(|writer| (0..each).map(move |number| format!("w{writer}-{number}")))
                .collect();
            assert_eq!(ids, written);
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
