//! Several servers on one PostgreSQL database. `TEST_DATABASE_URL` names a database server; without it
//! these tests do nothing.

mod chaos;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mnemon_adapters::webhook::DELIVERY;
use serde_json::{Value, json};

use super::webhooks::{ALLOWED, Receiver, create};
use super::{PATIENCE, Server};
use crate::sandbox::Sandbox;

/// A database of its own, which is dropped at the end.
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// `None` without a database server.
    pub(crate) fn fresh() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("TEST_DATABASE_URL").ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mnemon_servers_{}_{number}", std::process::id());
        run_sql(&server, &format!("CREATE DATABASE {name}"));
        Some(Self { server, name })
    }

    pub(crate) fn url(&self) -> String {
        let (authority, _) = self.server.rsplit_once('/').unwrap();
        format!("{authority}/{}", self.name)
    }

    /// A folder with a configuration whose store is this database.
    fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new().with("MNEMON_STORE", &self.url());
        sandbox.config(ALLOWED);
        sandbox
    }

    /// Ends all connections of the servers.
    fn cut_connections(&self) {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        run_sql(&self.url(), sql);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        run_sql(&self.server, &drop);
    }
}

fn run_sql(url: &str, sql: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
    });
}

/// Slices of upkeep that the server has done.
fn slices(server: &Server) -> u64 {
    let metrics = server.get("/metrics").body;
    let mut lines = metrics.lines();
    let done = lines.find_map(|line| {
        let is_done = line.starts_with("mnemon_upkeep_slices_total{outcome=\"done\"}");
        is_done.then(|| line.rsplit(' ').next().unwrap().parse().unwrap())
    });
    done.unwrap_or(0)
}

#[track_caller]
fn write(server: &Server, content: &str) {
    let answer = server.post("/v1/records", &json!({"content": content}));
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn each_job_is_done_by_one_server_and_taken_over_when_it_dies() {
    let Some(database) = Database::fresh() else {
        return;
    };
    let sandbox = database.sandbox();
    let receiver = Receiver::start(204);
    create(&sandbox, &receiver.url, &[]);
    let mut servers: Vec<Server> = (0..3)
        .map(|_| Server::start(&sandbox, &["--upkeep", "1"]))
        .collect();
    let mut expected = BTreeSet::new();
    for number in 0..30 {
        let content = format!("record {number}");
        write(&servers[number % 3], &content);
        expected.insert(content);
    }
    let mut arrived = BTreeSet::new();
    while arrived.len() < expected.len() {
        for content in receiver.next().contents() {
            assert!(arrived.insert(content), "delivered twice");
        }
    }
    assert_eq!(arrived, expected);
    // One server has done all slices of upkeep.
    while servers.iter().map(slices).sum::<u64>() < 3 {}
    let working = servers.iter().filter(|server| slices(server) > 0).count();
    assert_eq!(working, 1);
    // The servers that send and that do upkeep are killed while a delivery is on its way.
    let holding = receiver.hold.lock().unwrap();
    write(&servers[0], "in flight");
    let first = receiver.next();
    servers.sort_by_key(slices);
    for server in servers.iter_mut().skip(1) {
        server.end(true);
    }
    let (killed, last) = (Instant::now(), &servers[0]);
    drop(holding);
    write(last, "afterwards");
    while slices(last) == 0 {}
    // If it was the last server itself that sent, nothing is repeated.
    let mut next = receiver.next();
    if next.header(DELIVERY) == first.header(DELIVERY) {
        assert_eq!(next.body(), first.body());
        next = receiver.next();
    }
    assert_eq!(next.contents(), ["afterwards"]);
    assert!(killed.elapsed() < Duration::from_secs(30), "{killed:?}");
    assert!(receiver.arrived.try_recv().is_err());
}

/// The changes that a server sends.
struct Feed {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Feed {
    fn open(address: &str, after: u64) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let text = format!("GET /v1/changes?after={after} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(text.as_bytes())?;
        let lines = BufReader::new(stream).lines();
        Ok(Self { lines })
    }

    /// The next change; `None` if the connection was lost.
    fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.lines.next()?.ok()?;
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).ok();
            }
        }
    }

    /// The next change, which must come.
    fn content(&mut self) -> String {
        let change = self.next().expect("a change");
        change["after"]["content"].as_str().unwrap().to_owned()
    }
}

/// Without notifications a feed looks for writes of other servers once a second: 0.5 s on average.
#[test]
fn a_write_on_one_server_wakes_feeds_of_another_at_once() {
    let Some(database) = Database::fresh() else {
        return;
    };
    let sandbox = database.sandbox();
    let servers = [Server::start(&sandbox, &[]), Server::start(&sandbox, &[])];
    let mut feed = Feed::open(&servers[1].address, 0).unwrap();
    write(&servers[1], "own");
    assert_eq!(feed.content(), "own");
    let mut delays: Vec<Duration> = Vec::new();
    for number in 0..20 {
        let (content, since) = (format!("record {number}"), Instant::now());
        write(&servers[0], &content);
        assert_eq!(feed.content(), content);
        delays.push(since.elapsed());
    }
    delays.sort();
    println!("write to event: {:?}, at most {:?}", delays[10], delays[19]);
    assert!(delays[10] < Duration::from_millis(250), "{delays:?}");
    // A notification that is missed, because the connection that listens was cut.
    for number in 0..5 {
        database.cut_connections();
        let content = format!("after a cut {number}");
        write(&servers[0], &content);
        assert_eq!(feed.content(), content);
    }
}
