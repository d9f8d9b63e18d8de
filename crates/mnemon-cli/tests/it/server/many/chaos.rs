//! Three servers under load while servers are killed, paused and restarted, and connections to the
//! database are cut. With `MNEMON_TEST_CRASH`, the path of `scripts/postgres`, the database server
//! crashes as well; no other test may use it meanwhile. `MNEMON_CHAOS_SECONDS` says for how long.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mnemon_adapters::webhook::DELIVERY;
use mnemon_testkit::talks::Dice;
use serde_json::{Value, json};

use super::{Database, Feed, Receiver, Server, create, write};
use crate::sandbox::Sandbox;

const SERVERS: usize = 3;
const WRITERS: usize = 6;
/// How long a client waits for an answer before it asks another server.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a write may take with all its tries.
const SETTLE: Duration = Duration::from_secs(90);

/// The servers, each at an address that changes when it is started again.
struct Fleet<'a> {
    sandbox: &'a Sandbox,
    servers: [Mutex<Server>; SERVERS],
    addresses: [Mutex<String>; SERVERS],
    is_over: AtomicBool,
}

impl<'a> Fleet<'a> {
    fn start(sandbox: &'a Sandbox) -> Self {
        let servers = [(); SERVERS].map(|()| Server::start(sandbox, &["--upkeep", "1"]));
        let addresses = servers.each_ref().map(|server| server.address.clone());
        Self {
            sandbox,
            servers: servers.map(Mutex::new),
            addresses: addresses.map(Mutex::new),
            is_over: AtomicBool::new(false),
        }
    }

    fn address(&self, number: usize) -> String {
        self.addresses[number % SERVERS].lock().unwrap().clone()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends a server, by SIGKILL or by SIGTERM, and starts another one.
    fn replace(&self, number: usize, is_killed: bool) {
        let mut server = self.servers[number].lock().unwrap();
        server.end(is_killed);
        *server = Server::start(self.sandbox, &["--upkeep", "1"]);
        let mut address = self.addresses[number].lock().unwrap();
        address.clone_from(&server.address);
    }

    fn pause(&self, number: usize, pause: Duration) {
        let server = self.servers[number].lock().unwrap();
        let signal = |name: &str| {
            let process = server.child.id().to_string();
            let sent = Command::new("kill").args([name, &process]).status();
            assert!(sent.unwrap().success());
        };
        signal("-STOP");
        std::thread::sleep(pause);
        signal("-CONT");
    }
}

/// The status and the body of an answer; `None` if there is none in time.
fn ask(address: &str, path: &str, headers: &str, body: &Value) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(CLIENT_TIMEOUT)).ok()?;
    let body = body.to_string();
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.get(9..12)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, body.to_owned()))
}

/// Writes record after record until it is over, each until a server has acknowledged it. Returns how
/// long each took, and when it was acknowledged.
fn write_on(fleet: &Fleet<'_>, writer: usize) -> Vec<(Duration, Instant)> {
    let mut dice = Dice::new(writer as u64);
    let mut taken = Vec::new();
    while !fleet.is_over() {
        let id = format!("w{writer}-{}", taken.len());
        let key = format!("Idempotency-Key: {id}\r\n");
        let body = json!({"content": format!("note {id} on tea"), "id": id});
        let since = Instant::now();
        loop {
            let address = fleet.address(dice.below(SERVERS));
            match ask(&address, "/v1/records", &key, &body) {
                Some((200, _)) => break,
                Some((status, said)) if status < 500 && status != 429 => {
                    panic!("{id}: {status} {said}")
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
            assert!(since.elapsed() < SETTLE, "{id} is not acknowledged");
        }
        taken.push((since.elapsed(), Instant::now()));
    }
    taken
}

/// Searches until it is over. Returns how long those took that were answered.
fn search_on(fleet: &Fleet<'_>) -> Vec<Duration> {
    let mut dice = Dice::new(99);
    let mut taken = Vec::new();
    while !fleet.is_over() {
        let (address, since) = (fleet.address(dice.below(SERVERS)), Instant::now());
        let query = json!({"query": "tea", "limit": 5});
        match ask(&address, "/v1/search", "", &query) {
            Some((200, _)) => taken.push(since.elapsed()),
            Some((status, said)) if status < 500 && status != 429 => panic!("{status} {said}"),
            _ => {}
        }
    }
    taken
}

/// Listens at one server after the other until it has heard as many changes as `all` says. Returns
/// the ids in the order of the changes.
fn listen_on(fleet: &Fleet<'_>, first: usize, all: &Mutex<Option<usize>>) -> Vec<String> {
    let (mut after, mut ids) = (0, Vec::new());
    let is_done = |heard: usize| all.lock().unwrap().is_some_and(|all| heard >= all);
    for number in first.. {
        if let Ok(mut feed) = Feed::open(&fleet.address(number), after) {
            while !is_done(ids.len())
                && let Some(change) = feed.next()
            {
                let seq = change["seq"].as_u64().unwrap();
                assert!(seq > after, "{seq} came after {after}");
                after = seq;
                ids.push(change["id"].as_str().unwrap().to_owned());
            }
        }
        if is_done(ids.len()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    ids
}

/// Does harm until the time is over. Returns what was done how often.
fn harm(fleet: &Fleet<'_>, database: &Database, lasts: Duration) -> BTreeMap<&'static str, u32> {
    let crash = std::env::var_os("MNEMON_TEST_CRASH");
    let mut dice = Dice::new(7);
    let mut done = BTreeMap::new();
    let since = Instant::now();
    while since.elapsed() < lasts {
        std::thread::sleep(Duration::from_millis(200 + dice.below(600) as u64));
        let server = dice.below(SERVERS);
        let what = match dice.below(if crash.is_some() { 6 } else { 5 }) {
            0 => {
                fleet.replace(server, true);
                "servers killed"
            }
            1 => {
                fleet.replace(server, false);
                "servers restarted"
            }
            2 | 3 => {
                fleet.pause(server, Duration::from_millis(500 + dice.below(1500) as u64));
                "servers paused"
            }
            4 => {
                database.cut_connections();
                "connections cut"
            }
            _ => {
                let script = crash.as_ref().unwrap();
                let crashed = Command::new(script).arg("crash").status();
                assert!(crashed.unwrap().success());
                "database crashes"
            }
        };
        *done.entry(what).or_default() += 1;
    }
    done
}

/// The ids of the records of all deliveries. A delivery that is repeated has the same id and body.
fn delivered(receiver: &Receiver, all: usize) -> BTreeSet<String> {
    let (mut bodies, mut ids) = (BTreeMap::new(), BTreeSet::new());
    while ids.len() < all {
        let delivery = receiver.next();
        let number = delivery.header(DELIVERY).to_owned();
        let body = bodies.entry(number).or_insert_with(|| {
            for change in delivery.json()["changes"].as_array().unwrap() {
                let id = change["id"].as_str().unwrap().to_owned();
                assert!(ids.insert(id), "in two deliveries");
            }
            delivery.body().to_owned()
        });
        assert_eq!(body, delivery.body());
    }
    ids
}

#[test]
fn three_servers_lose_nothing_and_agree() {
    let Some(database) = Database::fresh() else {
        return;
    };
    let lasts = std::env::var("MNEMON_CHAOS_SECONDS").map_or(10, |lasts| lasts.parse().unwrap());
    let sandbox = database.sandbox();
    let receiver = Receiver::start(204);
    create(&sandbox, &receiver.url, &[]);
    let fleet = Fleet::start(&sandbox);
    let all = Mutex::new(None);
    std::thread::scope(|scope| {
        let (fleet, all) = (&fleet, &all);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write_on(fleet, writer)))
            .collect();
        let searcher = scope.spawn(|| search_on(fleet));
        let listeners: Vec<_> = (0..SERVERS)
            .map(|first| scope.spawn(move || listen_on(fleet, first, all)))
            .collect();
        let done = harm(fleet, &database, Duration::from_secs(lasts));
        fleet.is_over.store(true, Ordering::Relaxed);
        let taken = writers.into_iter().map(|writer| writer.join().unwrap());
        let taken: Vec<Vec<(Duration, Instant)>> = taken.collect();
        let written: BTreeSet<String> = taken
            .iter()
            .enumerate()
            .flat_map(|(writer, taken)| (0..taken.len()).map(move |one| format!("w{writer}-{one}")))
            .collect();
        *all.lock().unwrap() = Some(written.len());
        // A listener that has heard everything notices it with the next change.
        write(&fleet.servers[0].lock().unwrap(), "the end");
        for listener in listeners {
            let mut heard = listener.join().unwrap();
            heard.truncate(written.len());
            assert_eq!(heard.into_iter().collect::<BTreeSet<_>>(), written);
        }
        let sent = delivered(&receiver, written.len() + 1);
        assert!(written.is_subset(&sent));
        agree(fleet, written.len() + 1);
        report(taken.concat(), searcher.join().unwrap(), &done);
    });
}

/// All servers show the same records, each once and in its first version.
fn agree(fleet: &Fleet<'_>, count: usize) {
    let shown = fleet.servers.each_ref().map(|server| {
        let server = server.lock().unwrap();
        let found = server.post("/v1/search", &json!({"query": "w0-0 tea", "limit": 20}));
        assert_eq!(found.status, 200, "{found:?}");
        let export = server.get("/v1/export").body;
        let mut records: Vec<Value> = export
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|record: &Value| record["id"].is_string())
            .collect();
        records.sort_by_key(|record| record["id"].to_string());
        let found = found.json();
        let hits = found["hits"].as_array().unwrap().iter();
        let hits: Vec<(Value, Value)> = hits.map(timeless).collect();
        (records, hits)
    });
    assert_eq!(shown[0].0.len(), count);
    let is_first = |record: &Value| record["version"] == 1;
    assert!(
        shown[0].0.iter().all(is_first),
        "a record was written twice"
    );
    assert!(!shown[0].1.is_empty());
    for other in &shown[1..] {
        assert!(shown[0].0 == other.0, "records differ");
        assert_eq!(shown[0].1, other.1);
    }
}

/// A hit without its recency, which differs in the last digit between searches a moment apart.
fn timeless(hit: &Value) -> (Value, Value) {
    let mut parts = hit["parts"].clone();
    parts.as_object_mut().unwrap().remove("recency").unwrap();
    (hit["record"]["id"].clone(), parts)
}

fn percentile(taken: &mut [Duration], percent: usize) -> Duration {
    taken.sort();
    let at = (taken.len() * percent / 100).min(taken.len().saturating_sub(1));
    taken.get(at).copied().unwrap_or_default()
}

#[allow(clippy::print_stdout, reason = "a measurement is read by people")]
fn report(
    taken: Vec<(Duration, Instant)>,
    mut searches: Vec<Duration>,
    done: &BTreeMap<&str, u32>,
) {
    let (mut writes, mut acknowledged): (Vec<Duration>, Vec<Instant>) = taken.into_iter().unzip();
    acknowledged.sort();
    let gaps = acknowledged.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = gaps.max().unwrap_or_default();
    println!("{done:?}");
    println!(
        "{} writes: p50 {:?}, p99 {:?}, at most {:?}; at most {longest:?} without a write",
        writes.len(),
        percentile(&mut writes, 50),
        percentile(&mut writes, 99),
        percentile(&mut writes, 100),
    );
    println!(
        "{} searches: p50 {:?}, p99 {:?}",
        searches.len(),
        percentile(&mut searches, 50),
        percentile(&mut searches, 99)
    );
}
