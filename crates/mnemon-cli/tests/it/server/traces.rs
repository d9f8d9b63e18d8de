//! Spans for OpenTelemetry, read by a collector that keeps the bytes.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;

use serde_json::json;

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

/// Takes batches, and hands on their bytes with the head of the request.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, batches) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let (mut batch, mut part) = (Vec::new(), [0; 4096]);
            while !is_whole(&batch) {
                match stream.read(&mut part) {
                    Ok(0) | Err(_) => break,
                    Ok(read) => batch.extend_from_slice(&part[..read]),
                }
            }
            let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
            let _ = sender.send(batch);
        }
    });
    (url, batches)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split("content-length: ").nth(1).unwrap();
    let length: usize = length.lines().next().unwrap().parse().unwrap();
    request.len() >= head.len() + 4 + length
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_request_is_a_span_of_the_trace_that_it_names() {
    let (url, batches) = collector();
    let sandbox = Sandbox::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let mut server = Server::start(&sandbox, &["--upkeep", "0"]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [
        ("Content-Type", "application/json"),
        ("traceparent", parent),
    ];
    let query = json!({"query": "violet umbrella"}).to_string();
    assert_eq!(
        server.ask("POST", "/v1/search", &headers, &query).status,
        200
    );
    assert_eq!(server.get("/v1/records/private-id").status, 404);
    // What is left is sent when the server stops.
    let pid = server.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(server.child.wait().unwrap().success());
    let mut sent = batches.recv_timeout(PATIENCE).unwrap();
    sent.extend(batches.try_iter().flatten());
    assert!(sent.starts_with(b"POST /v1/traces HTTP/1.1"));
    let trace = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    let span = 0xb7ad_6b71_6920_3331_u64.to_be_bytes();
    for part in [
        &trace[..],
        &span[..],
        b"POST /v1/search",
        b"http.response.status_code",
        b"GET /v1/records/{id}",
        b"mnemon",
    ] {
        assert!(has(&sent, part), "{}", String::from_utf8_lossy(part));
    }
    for part in ["violet", "umbrella", "private-id"] {
        assert!(!has(&sent, part.as_bytes()), "{part}");
    }
}

#[test]
fn a_collector_that_is_gone_holds_nobody_up() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let sandbox = Sandbox::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{gone}"));
    let server = Server::start(&sandbox, &["--upkeep", "0"]);
    for _ in 0..20 {
        assert_eq!(server.get("/v1/stats").status, 200);
    }
}
