//! A server that is stopped or killed while clients write: acknowledged records are there afterwards,
//! and a server that is asked to stop answers each request it was sent.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mnemon_testkit::talks::{Dice, seeds};
use serde_json::json;

use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

const WRITERS: usize = 8;

/// A server that is asked to stop answers requests that are sent to it so soon afterwards. It waits
/// twice as long for them.
const LATE: Duration = Duration::from_millis(100);

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Asked,
}

/// A connection that is used again.
struct Client {
    stream: BufReader<TcpStream>,
    address: String,
}

/// Why a request has no answer.
#[derive(Debug, PartialEq, Eq)]
enum Lost {
    /// Nobody listens any more, so that nothing was sent.
    Refused,
    /// The connection ended after the request was sent, at this time.
    Cut(String, Instant),
}

impl Client {
    fn connect(address: &str) -> Result<Self, Lost> {
        let stream = TcpStream::connect(address).map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => Lost::Refused,
            _ => Lost::Cut(format!("connecting: {error}"), Instant::now()),
        })?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (stream, address) = (BufReader::new(stream), address.to_owned());
        Ok(Self { stream, address })
    }

    /// The status of the answer, and whether the connection can be used again.
    fn write(&mut self, id: &str) -> Result<(u16, bool), Lost> {
        let body = json!({"content": format!("record {id}"), "id": id}).to_string();
        let (address, length) = (&self.address, body.len());
        let text = format!(
            "POST /v1/records HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let sent = self.stream.get_mut().write_all(text.as_bytes());
        let sent_at = Instant::now();
        let cut = |error: std::io::Error| Lost::Cut(error.to_string(), sent_at);
        sent.map_err(cut)?;
        let (mut status, mut length, mut stays) = (0, 0, true);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).map_err(cut)? == 0 {
                return Err(Lost::Cut("closed without an answer".to_owned(), sent_at));
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).unwrap().parse().unwrap();
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            } else if line == "connection: close" {
                stays = false;
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).map_err(cut)?;
        Ok((status, stays))
    }
}

/// Writes until the server is gone: the ids that were acknowledged, and how it went away.
fn write_on(address: &str, name: &str, written: &AtomicUsize) -> (Vec<String>, Lost) {
    let mut acknowledged = Vec::new();
    let mut client = None;
    for number in 0.. {
        let id = format!("{name}-{number}");
        let mut used = match client.take().map_or_else(|| Client::connect(address), Ok) {
            Ok(used) => used,
            Err(lost) => return (acknowledged, lost),
        };
        match used.write(&id) {
            Ok((200, stays)) => {
                acknowledged.push(id);
                written.fetch_add(1, Ordering::Relaxed);
                client = stays.then_some(used);
            }
            Ok((503, _)) => {}
            Ok((status, _)) => panic!("{id} was answered with {status}"),
            Err(lost) => return (acknowledged, lost),
        }
    }
    unreachable!("numbers do not end")
}

/// One round: what was acknowledged, and which requests the server cut although it had time.
fn round(sandbox: &Sandbox, end: End, seed: u64) -> (Vec<String>, Vec<Lost>) {
    let mut server = Server::start(sandbox, &[]);
    let mut dice = Dice::new(seed);
    let (written, enough) = (AtomicUsize::new(0), 8 + dice.below(120));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (address, written) = (server.address.clone(), &written);
                scope
                    .spawn(move || write_on(&address, &format!("{end:?}-{seed}-{writer}"), written))
            })
            .collect();
        while written.load(Ordering::Relaxed) < enough {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(dice.below(3000) as u64));
        let asked = Instant::now();
        server.end(end == End::Killed);
        let (mut acknowledged, mut cut) = (Vec::new(), Vec::new());
        for writer in writers {
            let (ids, how) = writer.join().unwrap();
            acknowledged.extend(ids);
            if matches!(how, Lost::Cut(_, sent) if sent < asked + LATE) {
                cut.push(how);
            }
        }
        (acknowledged, cut)
    })
}

/// 3 rounds for each way to end, 12 in full; `PROPTEST_CASES` says how many in a soak.
#[test]
fn acknowledged_records_outlive_the_server() {
    let sandbox = Sandbox::new();
    let mut acknowledged = Vec::new();
    for seed in seeds(3, 12) {
        for end in [End::Killed, End::Asked] {
            let (ids, cut) = round(&sandbox, end, seed);
            acknowledged.extend(ids);
            assert!(end == End::Killed || cut.is_empty(), "seed {seed}: {cut:?}");
        }
    }
    let exported = sandbox.run(&["export"]).ok();
    let stored: std::collections::BTreeSet<&str> = exported
        .lines()
        .filter_map(|line| line.split_once("\"id\":\"")?.1.split('"').next())
        .collect();
    let missing: Vec<_> = acknowledged
        .iter()
        .filter(|id| !stored.contains(id.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{} of {} acknowledged records are missing: {missing:?}",
        missing.len(),
        acknowledged.len()
    );
}
