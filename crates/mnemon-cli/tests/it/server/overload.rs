//! A server that has much to compute goes on reading requests.

use std::io::Write;
use std::net::TcpStream;

use serde_json::json;

use super::Server;
use crate::sandbox::Sandbox;

const NOTES: usize = 1500;
const SEARCHES: usize = 48;

#[test]
fn a_request_that_is_refused_or_simple_does_not_wait_for_searches() {
    let sandbox = Sandbox::new();
    let notes = (0..NOTES).map(|number| {
        let content = format!("the river is {number} miles long and the bridge is old");
        json!({ "content": content }).to_string() + "\n"
    });
    let notes: String = notes.collect();
    sandbox.pipe(notes.as_bytes(), &["add", "--jsonl"]).ok();
    let server = Server::start(&sandbox, &[]);
    // The first search reads the index.
    let query = json!({"query": "how long is the old river, and where is the bridge?"});
    assert_eq!(server.post("/v1/search", &query).status, 200);
    let body = query.to_string();
    let request = format!(
        "POST /v1/search HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut searches = Vec::new();
    for _ in 0..SEARCHES {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        searches.push(stream);
    }
    assert_eq!(server.get("/healthz").status, 200);
    let is_answered = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_ok()
    };
    let answered = searches.iter().filter(is_answered).count();
    assert!(
        answered < SEARCHES / 2,
        "{answered} searches were answered first"
    );
}
