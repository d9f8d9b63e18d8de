//! `mnemon serve` under load from `wrk`, beside the same work inside the process and, where one is
//! named, beside Chroma's server. Then what a server must bear: clients that send a byte per second,
//! and more requests at once than it works on.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use mnemon::Mnemon;
use mnemon_adapters::embed::Builtin;
use mnemon_core::{Ctx, Filter, Tenant, Time};
use mnemon_engine::{Memory, Query};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::mcp::{note, program, query, seed, sibling};
use crate::measure::{Outcome, Table, Times};
use crate::recall::memory;

/// Different searches, records and vectors.
const VARIETY: usize = 256;
/// Rounds in which searches inside and over HTTP take turns.
const ROUNDS: usize = 16;
/// The length of the vectors that Chroma gets, which is that of ours.
const DIMENSIONS: usize = 256;
/// Records of one request while Chroma is filled.
const BATCH: usize = 1000;
const SLOW_CLIENTS: usize = 500;
const FLOOD: usize = 900;

pub(crate) fn run(
    records: usize,
    connections: &[usize],
    seconds: u64,
    chroma: Option<&Path>,
) -> Outcome<()> {
    let mnemon = sibling("mnemon")?;
    let folder = tempfile::tempdir()?;
    seed(&mnemon, folder.path(), records)?;
    let ours = Server::ours(&mnemon, folder.path())?;
    let one = one_connection(&ours, folder.path())?;
    let ids = ids(&ours)?;
    let mut table = Table::new(connections);
    for count in connections {
        for (name, script) in [
            ("search", Script::searches()),
            ("get", Script::gets(&ids)),
            ("durable write", Script::writes()),
        ] {
            let load = Load::of(&ours, &script, *count, seconds)?;
            load.report(name, &mut table);
        }
    }
    if let Some(chroma) = chroma {
        let theirs = Server::chroma(chroma, folder.path())?;
        let path = fill_chroma(&theirs, records)?;
        for count in connections {
            for (name, script) in [
                ("Chroma: search", Script::chroma_searches(&path)),
                ("Chroma: durable write", Script::chroma_writes(&path)),
            ] {
                let load = Load::of(&theirs, &script, *count, seconds)?;
                load.report(name, &mut table);
            }
        }
    }
    println!("columns: connections of wrk; {records} records\n");
    table.print();
    println!("\n{one}");
    println!("{}", patience(&ours)?);
    println!("{}", overload(&ours)?);
    Ok(())
}

/// Medians of the same work inside this process and over one connection of the server, in turns, so
/// that the machine is the same for both.
fn one_connection(server: &Server, folder: &Path) -> Outcome<String> {
    let url = format!("sqlite:{}", folder.join("mnemon.db").display());
    let (memory, ctx) = opened(&url)?;
    let mut stream = TcpStream::connect(server.address)?;
    stream.set_nodelay(true)?;
    let (mut inside, mut outside, mut sent) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        for number in (0..VARIETY).skip(round % 4).step_by(4) {
            // As the server asks.
            let query = Query {
                explain: true,
                may_run_inline: true,
                ..Query::new(query(number), Filter::all_of_tenant())
            };
            let start = Instant::now();
            block_on(memory.search(&ctx, &query))?;
            inside.push(start.elapsed());
        }
        for number in (0..VARIETY).skip(round % 4).step_by(4) {
            let body = json!({"query": query(number)}).to_string();
            let start = Instant::now();
            sent = converse(&mut stream, server.address, &body)?;
            outside.push(start.elapsed());
        }
    }
    drop(memory);
    let memory = Mnemon::open(folder.join("mnemon.db"))?;
    let writes = Times::of(VARIETY, |number| {
        let content = format!("inside {number} {}", note(number));
        block_on(memory.add(content.as_str())).map(|_| ())
    })?;
    let [inside, outside] = [inside, outside].map(|times| Times::from(times).percentile(0.5));
    let bare = bare_socket(Duration::from_secs_f64(inside / 1e6), sent)?;
    Ok(format!(
        "one after the other: search p50 {inside:.0} µs inside this process and {outside:.0} µs over \
         HTTP, {:.0} µs more, of which a bare socket takes {bare:.0} µs; durable write p50 {:.0} µs inside",
        outside - inside,
        writes.percentile(0.5)
    ))
}

/// What this machine needs to send a request to another thread that works for so long, and to send so
/// many bytes back: the median in microseconds, without the work. Most of it is to wake both sides.
fn bare_socket(work: Duration, bytes: usize) -> Outcome<f64> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_nodelay(true)?;
    let (mut other, _) = listener.accept()?;
    other.set_nodelay(true)?;
    std::thread::spawn(move || {
        let (mut request, answer) = ([0; 256], vec![b'x'; bytes]);
        while other.read_exact(&mut request).is_ok() {
            let start = Instant::now();
            while start.elapsed() < work {
                std::hint::spin_loop();
            }
            if other.write_all(&answer).is_err() {
                break;
            }
        }
    });
    let mut answer = vec![0; bytes];
    let times = Times::of(VARIETY, |_| {
        stream.write_all(&[0; 256])?;
        stream.read_exact(&mut answer)
    })?;
    Ok(times.percentile(0.5) - work.as_secs_f64() * 1e6)
}

/// The memory of this process, and a call of it.
fn opened(url: &str) -> Outcome<(Memory, Ctx)> {
    let backend = mnemon_adapters::open(url)?.backend;
    let memory = memory(backend, &Arc::new(Builtin::new()?));
    let now = Time::from_millis(1_700_000_000_000)?;
    Ok((memory, Ctx::new(Tenant::default(), "bench", now)))
}

/// Sends a search over a connection that stays open, and reads the whole answer: how many bytes it has.
fn converse(stream: &mut TcpStream, address: SocketAddr, body: &str) -> Outcome<usize> {
    let length = body.len();
    let text = format!(
        "POST /v1/search HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes())?;
    let (mut answer, mut part) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let read = stream.read(&mut part)?;
        answer.extend_from_slice(part.get(..read).unwrap_or_default());
        let known = String::from_utf8_lossy(&answer);
        let Some((head, body)) = known.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse::<usize>().ok())?
        });
        let length = length.ok_or("no length")?;
        match (head.starts_with("HTTP/1.1 200"), read) {
            (true, _) if body.len() >= length => return Ok(answer.len()),
            (true, 1..) => {}
            _ => return Err(format!("search: {head}").into()),
        }
    }
}

/// A server in a process of its own, which ends with this.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn ours(mnemon: &Path, folder: &Path) -> Outcome<Self> {
        Self::start(program(mnemon, folder, &["serve"]))
    }

    /// A server of ours; the command says on which store.
    pub(crate) fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command
            .args(["--listen", "127.0.0.1:0", "--log", "none"])
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no messages")?).lines();
        loop {
            let line = lines.next().ok_or("the server ended")??;
            if let Some((_, rest)) = line.split_once("http://") {
                let address = rest.split([',', ' ', '/']).next().unwrap_or_default();
                let address = address.parse()?;
                // Reads on, as a full pipe would stop the server.
                std::thread::spawn(move || lines.count());
                return Ok(Self { child, address });
            }
        }
    }

    fn chroma(chroma: &Path, folder: &Path) -> Outcome<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let child = Command::new(chroma)
            .args(["run", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg("--path")
            .arg(folder.join("chroma"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (server, begun) = (Self { child, address }, Instant::now());
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err("Chroma did not start".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Waits until searches take as long as they will: the first one reads the index into memory.
    pub(crate) fn warm_up(&self) -> Outcome<()> {
        for number in 0..VARIETY {
            let body = json!({"query": query(number)}).to_string();
            self.ask("POST", "/v1/search", &body)?;
        }
        Ok(())
    }

    /// The JSON that answers a request.
    fn ask(&self, method: &str, path: &str, body: &str) -> Outcome<Value> {
        let mut stream = TcpStream::connect(self.address)?;
        let (address, length) = (self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        if !head.starts_with("HTTP/1.1 2") {
            return Err(format!("{method} {path}: {head}\n{body}").into());
        }
        // A body in chunks has their lengths around it.
        let (from, to) = (body.find(['{', '[']), body.rfind(['}', ']']));
        let body = from.zip(to).and_then(|(from, to)| body.get(from..=to));
        Ok(serde_json::from_str(body.unwrap_or("null"))?)
    }

    /// Memory that the process has resident, in MB.
    fn megabytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        kilobytes.unwrap_or(f64::NAN) / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ids(server: &Server) -> Outcome<Vec<String>> {
    let listed = server.ask("GET", &format!("/v1/records?limit={VARIETY}"), "")?;
    let records = listed.get("records").and_then(Value::as_array);
    let records = records.into_iter().flatten();
    let ids = records.filter_map(|one| one.get("id")?.as_str());
    let ids: Vec<String> = ids.map(str::to_owned).collect();
    match ids.is_empty() {
        true => Err(format!("no records: {listed}").into()),
        false => Ok(ids),
    }
}

/// The requests that `wrk` sends, as a program in Lua.
pub(crate) struct Script(String);

/// Reports in a form that is easy to read.
const DONE: &str = r#"
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d\n", latency:percentile(50), latency:percentile(99),
    summary.requests, summary.duration, errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"#;

impl Script {
    /// The requests of a list, in turn.
    fn of(method: &str, requests: impl Iterator<Item = (String, String)>) -> Self {
        let mut text = String::from("local n = 0\nlocal requests = {\n");
        for (path, body) in requests {
            let _ = writeln!(text, "  {{{path:?}, [==[{body}]==]}},");
        }
        let _ = write!(
            text,
            "}}\nlocal headers = {{[\"Content-Type\"] = \"application/json\"}}\n\
             function request()\n  n = n + 1\n  local r = requests[n % #requests + 1]\n\
             return wrk.format(\"{method}\", r[1], headers, r[2])\nend\n{DONE}"
        );
        Self(text)
    }

    /// As [`Script::of`]; `@` becomes something that no other request has.
    fn unique(path: &str, bodies: impl Iterator<Item = String>) -> Self {
        let Self(text) = Self::of("POST", bodies.map(|body| (path.to_owned(), body)));
        let seeded = "local threads = 0\nfunction setup(thread)\n  threads = threads + 1\n\
                      thread:set(\"thread_number\", threads)\nend\n\
                      local started = wrk.port .. \"-\" .. os.time()\n";
        let text = text.replace(
            "r[2])",
            "(r[2]:gsub(\"@\", started .. \"-\" .. thread_number .. \"-\" .. n)))",
        );
        Self(format!("{seeded}{text}"))
    }

    pub(crate) fn searches() -> Self {
        let body = |number| json!({"query": query(number)}).to_string();
        Self::of(
            "POST",
            (0..VARIETY).map(|n| ("/v1/search".to_owned(), body(n))),
        )
    }

    fn gets(ids: &[String]) -> Self {
        let requests = ids
            .iter()
            .map(|id| (format!("/v1/records/{id}"), String::new()));
        Self::of("GET", requests)
    }

    pub(crate) fn writes() -> Self {
        let body = |n| json!({"content": format!("@ {}", note(n))}).to_string();
        Self::unique("/v1/records", (0..VARIETY).map(body))
    }

    fn chroma_searches(path: &str) -> Self {
        let body = |number| {
            json!({"query_embeddings": [vector(number + 7_777_777)], "n_results": 10,
                "include": ["documents", "distances"]})
        };
        let path = format!("{path}/query");
        Self::of(
            "POST",
            (0..VARIETY).map(|n| (path.clone(), body(n).to_string())),
        )
    }

    fn chroma_writes(path: &str) -> Self {
        let body = |n| json!({"ids": ["@"], "documents": [note(n)], "embeddings": [vector(n + 5_555_555)]});
        Self::unique(
            &format!("{path}/add"),
            (0..VARIETY).map(|n| body(n).to_string()),
        )
    }
}

/// A vector of length one, the same in every run.
fn vector(number: usize) -> Vec<f32> {
    let digest = blake3::Hasher::new()
        .update(&number.to_le_bytes())
        .finalize_xof();
    let mut bytes = vec![0; DIMENSIONS];
    let mut digest = digest;
    digest.fill(&mut bytes);
    let values: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte) - 127.5).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter().map(|value| value / length).collect()
}

/// The path of a collection that has this many records.
fn fill_chroma(server: &Server, records: usize) -> Outcome<String> {
    let root = "/api/v2/tenants/default_tenant/databases/default_database/collections";
    let made = server.ask("POST", root, &json!({"name": "notes"}).to_string())?;
    let id = made
        .get("id")
        .and_then(Value::as_str)
        .ok_or("no collection")?;
    let path = format!("{root}/{id}");
    for first in (0..records).step_by(BATCH) {
        let numbers = first..records.min(first + BATCH);
        let ids: Vec<String> = numbers.clone().map(|number| number.to_string()).collect();
        let texts: Vec<String> = numbers.clone().map(note).collect();
        let vectors: Vec<Vec<f32>> = numbers.map(vector).collect();
        let body = json!({"ids": ids, "documents": texts, "embeddings": vectors});
        server.ask("POST", &format!("{path}/add"), &body.to_string())?;
    }
    Ok(path)
}

/// What one run of `wrk` measured.
pub(crate) struct Load {
    pub p50: f64,
    pub p99: f64,
    pub rate: f64,
    errors: f64,
}

impl Load {
    pub(crate) fn of(
        server: &Server,
        script: &Script,
        connections: usize,
        seconds: u64,
    ) -> Outcome<Self> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), &script.0)?;
        let out = Command::new("wrk")
            .args(["--threads", "1", "--timeout", "30s"])
            .args(["--connections", &connections.to_string()])
            .args(["--duration", &format!("{seconds}s")])
            .arg("--script")
            .arg(file.path())
            .arg(format!("http://{}", server.address))
            .output()
            .map_err(|error| format!("wrk: {error}; install it, Debian has a package"))?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let result = text.lines().find_map(|line| line.strip_prefix("RESULT "));
        let Some(result) = result else {
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            return Err(format!("wrk: {text}{said}").into());
        };
        let figures: Vec<f64> = result
            .split(' ')
            .filter_map(|one| one.parse().ok())
            .collect();
        let &[p50, p99, requests, duration, errors] = figures.as_slice() else {
            return Err(format!("wrk: {result}").into());
        };
        let rate = requests / (duration / 1e6);
        Ok(Self {
            p50,
            p99,
            rate,
            errors,
        })
    }

    fn report(&self, name: &str, table: &mut Table) {
        table.add(&format!("{name} p50, µs"), self.p50);
        table.add(&format!("{name} p99, µs"), self.p99);
        table.add(&format!("{name}, per second"), self.rate);
        table.add(&format!("{name}, errors"), self.errors);
    }
}

/// Searches while many clients send their requests a byte per second.
fn patience(server: &Server) -> Outcome<String> {
    let before = (
        Load::of(server, &Script::searches(), 1, 3)?,
        server.megabytes(),
    );
    let runtime = tokio::runtime::Runtime::new()?;
    for number in 0..SLOW_CLIENTS {
        runtime.spawn(crawl(server.address, number));
    }
    std::thread::sleep(Duration::from_secs(2));
    let during = (
        Load::of(server, &Script::searches(), 1, 5)?,
        server.megabytes(),
    );
    runtime.shutdown_background();
    Ok(format!(
        "beside {SLOW_CLIENTS} clients of a byte per second: search p50 {:.0} → {:.0} µs, \
         p99 {:.0} → {:.0} µs, memory {:.0} → {:.0} MB, {} errors",
        before.0.p50, during.0.p50, before.0.p99, during.0.p99, before.1, during.1, during.0.errors
    ))
}

/// Sends a request slowly, again and again. Clients have several addresses, as one address has a limit.
async fn crawl(server: SocketAddr, number: usize) {
    let text = format!(
        "POST /v1/search HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\n\
         Content-Length: 30\r\n\r\n{{\"query\": \"x\"                }}"
    );
    loop {
        let Ok(mut stream) = connect(server, number).await else {
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        };
        for byte in text.as_bytes() {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

async fn connect(server: SocketAddr, number: usize) -> std::io::Result<tokio::net::TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(2 + number % 5).unwrap_or(2);
    socket.bind(SocketAddr::new(IpAddr::from([127, 0, 0, last]), 0))?;
    socket.connect(server).await
}

/// Many more requests at once than are worked on: how soon those that are refused hear of it.
fn overload(server: &Server) -> Outcome<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    let answers = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..FLOOD {
            tasks.spawn(flood(server.address, number));
        }
        let mut answers = Vec::new();
        while let Some(answer) = tasks.join_next().await {
            answers.extend(answer.ok().and_then(Result::ok));
        }
        answers
    });
    let times = |wanted: fn(u16) -> bool| {
        let times = answers.iter().filter(|(status, _)| wanted(*status));
        Times::from(times.map(|(_, time)| *time).collect::<Vec<_>>())
    };
    let count =
        |wanted: fn(u16) -> bool| answers.iter().filter(|(status, _)| wanted(*status)).count();
    let refused = |status| status == 429 || status == 503;
    Ok(format!(
        "{FLOOD} searches at once: {} answered (p99 {:.0} ms), {} refused (p50 {:.1} ms, p99 {:.1} ms), \
         {} without an answer; memory {:.0} MB",
        count(|status| status == 200),
        times(|status| status == 200).percentile(0.99) / 1e3,
        count(refused),
        times(refused).percentile(0.5) / 1e3,
        times(refused).percentile(0.99) / 1e3,
        FLOOD - answers.len(),
        server.megabytes(),
    ))
}

/// The status of an answer, and how long it took to come.
async fn flood(server: SocketAddr, number: usize) -> std::io::Result<(u16, Duration)> {
    let mut stream = connect(server, number).await?;
    let body = json!({"query": query(number)}).to_string();
    let length = body.len();
    let text = format!(
        "POST /v1/search HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    // All are connected before the first one asks.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begun = Instant::now();
    stream.write_all(text.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = String::from_utf8_lossy(head.get(9..).unwrap_or_default()).parse();
    Ok((status.unwrap_or(0), begun.elapsed()))
}
