//! How a server begins and ends.

use std::io::Read;
use std::process::Stdio;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::client::{Client, PATIENCE};
use crate::sandbox::Sandbox;

#[test]
fn it_ends_with_its_input() {
    let sandbox = Sandbox::new();
    assert_eq!(Client::silent(&sandbox, &[]).leave(), 0);
    assert_eq!(Client::start(&sandbox, &[]).leave(), 0);
}

/// Searches by meaning, until the record has a vector of the current embedder.
#[test]
fn records_without_a_vector_are_embedded_in_the_background() {
    for http in [false, true] {
        let sandbox = Sandbox::new();
        let mut add = sandbox.command();
        let said = ["add", "The puppy chewed through my shoes", "--id", "dog"];
        let added = add.env("MNEMON_EMBEDDER", "none").args(said).status();
        assert!(added.unwrap().success());
        let (client, server) = match http {
            false => (Some(Client::start(&sandbox, &[])), None),
            true => (None, Some(http_server(&sandbox))),
        };
        let search = ["search", "destroyed footwear", "--recipe", "meaning"];
        let search = [&search[..], &["--min-score=0", "--json"]].concat();
        let start = std::time::Instant::now();
        while sandbox.run(&search).json()["hits"] == json!([]) {
            assert!(start.elapsed() < PATIENCE, "no vector was made");
        }
        if let Some(client) = client {
            client.leave();
        }
        if let Some(mut server) = server {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

fn http_server(sandbox: &Sandbox) -> std::process::Child {
    let mut server = sandbox.command();
    server.args(["mcp", "--http", "127.0.0.1:0"]);
    server.spawn().unwrap()
}

/// The shell stands for a client that crashes while somebody else holds the pipes.
#[test]
fn it_ends_when_its_client_is_gone() {
    let sandbox = Sandbox::new();
    let mnemon = env!("CARGO_BIN_EXE_mnemon");
    let mut shell = std::process::Command::new("sh")
        .args(["-c", &format!("{mnemon} mcp; true")])
        .env("HOME", sandbox.folder())
        .current_dir(sandbox.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    let mut stdout = shell.stdout.take().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    std::io::Write::write_all(&mut stdin, format!("{hello}\n").as_bytes()).unwrap();
    let mut first = [0; 1];
    stdout.read_exact(&mut first).unwrap();
    shell.kill().unwrap();
    shell.wait().unwrap();
    let (send, ended) = channel();
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = send.send(stdout.read_to_end(&mut rest).map(|_| ()));
    });
    // The input is still open: only the missing parent can have ended it.
    ended
        .recv_timeout(PATIENCE)
        .expect("the server ended")
        .unwrap();
    drop(stdin);
}

#[test]
fn a_client_of_the_newest_protocol_needs_no_greeting() {
    let sandbox = Sandbox::new();
    let mut client = Client::silent(&sandbox, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listed = client.ask("tools/list", json!({"_meta": meta}));
    assert_eq!(listed["tools"].as_array().unwrap().len(), 8);
    let call = json!({"name": "memory_add", "arguments": {"content": "tea"}, "_meta": meta});
    assert_eq!(client.ask("tools/call", call)["isError"], false);
}

#[test]
fn older_protocols_are_spoken_too() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let sandbox = Sandbox::new();
        let mut client = Client::silent(&sandbox, &[]);
        let hello = json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let greeted: Value = client.ask("initialize", hello);
        assert_eq!(greeted["protocolVersion"], version);
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        assert!(client.ask("tools/list", json!({}))["tools"].is_array());
    }
}
