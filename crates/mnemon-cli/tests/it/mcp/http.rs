//! The server over HTTP: who may talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::json;

use super::client::PATIENCE;
use crate::sandbox::Sandbox;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut child = sandbox
            .command()
            .args(["mcp", "--http", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).expect("an address");
        let address = address.split('/').next().unwrap().to_owned();
        Self { child, address }
    }

    /// Status and body of an initialize with these headers.
    fn greet(&self, headers: &[(&str, &str)]) -> (u16, String) {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        self.post("/mcp", &hello.to_string(), headers)
    }

    fn post(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream
            .write_all(format!("{request}\r\n{body}").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_this_machine_is_served_without_a_key() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let (status, body) = server.greet(&[]);
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("serverInfo"), "{body}");
    assert_eq!(server.greet(&[("Host", "evil.example")]).0, 403);
    assert_eq!(server.greet(&[("Origin", "https://evil.example")]).0, 403);
    assert_eq!(server.greet(&[("Origin", "http://localhost:5173")]).0, 200);
    assert_eq!(server.post("/", "{}", &[]).0, 404);
    assert!(server.post("/mcp", "not json", &[]).0 >= 400);
    let (code, said) = sandbox.run(&["mcp", "--http", "0.0.0.0:0"]).failed();
    assert!(code == 2 && said.contains("MNEMON_API_KEY"), "{said}");
}

#[test]
fn with_a_key_everybody_must_show_it() {
    let key = "0123456789abcdef0123";
    for name in ["MNEMON_API_KEY", "MNEMON_API_KEY_FILE"] {
        let mut sandbox = Sandbox::new();
        let file = sandbox.file("key", format!("{key}\n"));
        let value = if name.ends_with("FILE") {
            file.as_str()
        } else {
            key
        };
        sandbox = sandbox.with(name, value);
        let server = Server::start(&sandbox, &["--allow-host", "memory.example"]);
        assert_eq!(server.greet(&[]).0, 401);
        assert_eq!(
            server
                .greet(&[("Authorization", "Bearer 0123456789abcdef0124")])
                .0,
            401
        );
        let right = format!("Bearer {key}");
        assert_eq!(server.greet(&[("Authorization", &right)]).0, 200);
        let named = [
            ("Authorization", right.as_str()),
            ("Host", "memory.example"),
        ];
        assert_eq!(server.greet(&named).0, 200);
    }
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", "short");
    let (_, said) = sandbox.run(&["mcp", "--http", "127.0.0.1:0"]).failed();
    assert!(said.contains("at least 16"), "{said}");
}

#[test]
fn a_host_is_a_name_and_a_port_and_nothing_else() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for (host, status) in [
        ("localhost", 200),
        ("[::1]:8750", 200),
        ("evil.example", 403),
        ("evil.com@127.0.0.1", 400),
        ("127.0.0.1, evil.com", 400),
        ("127.0.0.1:port", 400),
    ] {
        let (told, body) = server.greet(&[("Host", host)]);
        assert_eq!(told, status, "{host}: {body}");
    }
    let (code, said) = sandbox
        .run(&["mcp", "--http", "127.0.0.1:0", "--allow-host", "a@b"])
        .failed();
    assert!(code == 2 && said.contains("HOST:PORT"), "{said}");
}

#[test]
fn no_session_is_kept() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    for _ in 0..200 {
        let (status, answer) = server.greet(&[]);
        assert_eq!(status, 200, "{answer}");
        assert!(
            !answer.to_lowercase().contains("mcp-session-id"),
            "{answer}"
        );
    }
    // A call needs no greeting before it, and an id of an older server does no harm.
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "memory_add", "arguments": {"content": "Ann prefers tea"},
    }});
    for headers in [
        &[][..],
        &[
            ("Mcp-Session-Id", "1"),
            ("MCP-Protocol-Version", "2025-11-25"),
        ],
    ] {
        let (status, answer) = server.post("/mcp", &call.to_string(), headers);
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains("\"success\":true"), "{answer}");
    }
}

#[cfg(unix)]
#[test]
fn a_server_that_is_asked_to_end_ends_well() {
    for signal in ["-TERM", "-INT"] {
        let sandbox = Sandbox::new();
        let mut server = Server::start(&sandbox, &[]);
        assert_eq!(server.greet(&[]).0, 200);
        // Somebody who is connected and says nothing does not hold it up.
        let silent = TcpStream::connect(&server.address).unwrap();
        let pid = server.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(server.child.wait().unwrap().code(), Some(0), "{signal}");
        drop(silent);
    }
}

#[test]
fn an_address_that_is_taken_is_told() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let (_, said) = sandbox.run(&["mcp", "--http", &server.address]).failed();
    assert!(said.contains(&server.address), "{said}");
}
