//! Round trips of an MCP client over stdio as the memory grows, beside the reference server for
//! memory in the same run, and how long it takes from the start to the first answer.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::measure::{Outcome, Table, Times};

/// Rounds, and calls of each sort in a round; the reference server is asked less often, as it takes
/// so much longer.
const ROUNDS: usize = 15;
const CALLS: usize = 20;
const REFERENCE_CALLS: usize = 20;
/// How often a start is timed.
const STARTS: usize = 11;
/// Words that notes are made of, the common ones more often.
const WORDS: usize = 5000;
const NOTE_WORDS: usize = 16;

pub(crate) fn run(sizes: &[usize], reference: Option<&Path>) -> Outcome<()> {
    let mnemon = sibling("mnemon")?;
    let mut table = Table::new(sizes);
    let mut ours = Vec::new();
    for size in sizes {
        ours.push(Ours::start(&mnemon, *size, &mut table)?);
    }
    // In turn, so that whatever else the machine does is the same for all.
    for round in 0..ROUNDS {
        for ours in &mut ours {
            ours.write(round)?;
        }
    }
    for round in 0..ROUNDS {
        for ours in &mut ours {
            ours.search(round)?;
        }
    }
    for ours in ours {
        let size = ours.size;
        let (write, search) = ours.end(&mut table);
        if let Some(reference) = reference {
            let theirs = theirs(reference, size, &mut table)?;
            table.add("writes: reference / mnemon", theirs.0 / write);
            table.add("searches: reference / mnemon", theirs.1 / search);
        }
    }
    table.print();
    Ok(())
}

/// A server of ours that has so many notes.
struct Ours {
    size: usize,
    server: Server,
    writes: Vec<Duration>,
    searches: Vec<Duration>,
    _folder: tempfile::TempDir,
}

impl Ours {
    fn start(mnemon: &Path, size: usize, table: &mut Table) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        seed(mnemon, folder.path(), size)?;
        let start = || {
            let args = ["mcp", "--tools", "notes"];
            Server::start(&mut program(mnemon, folder.path(), &args))
        };
        // The first session finds no saved index, makes one, and is ended in good order.
        let begun = Instant::now();
        let mut first = start()?;
        first.call("memory_search", &json!({"query": query(0)}))?;
        table.add(
            "first session: start to first search, µs",
            micros(begun.elapsed()),
        );
        first.end()?;
        let mut versions = Vec::new();
        let mut greetings = Vec::new();
        let mut answers = Vec::new();
        for number in 0..STARTS {
            versions.push(timed(|| {
                let mut version = program(mnemon, folder.path(), &["--version"]);
                version.stdout(Stdio::null()).status()?;
                Ok(())
            })?);
            let begun = Instant::now();
            let mut server = start()?;
            greetings.push(begun.elapsed());
            server.call("memory_search", &json!({"query": query(number)}))?;
            answers.push(begun.elapsed());
        }
        let p50 = |times: Vec<Duration>| Times::from(times).percentile(0.5);
        let (version, greeting, answer) = (p50(versions), p50(greetings), p50(answers));
        table.add("mnemon --version, µs", version);
        table.add("later: start to greeting p50, µs", greeting);
        table.add("later: start to first search p50, µs", answer);
        table.add("first search / --version", answer / version);
        Ok(Self {
            size,
            server: start()?,
            writes: Vec::new(),
            searches: Vec::new(),
            _folder: folder,
        })
    }

    fn write(&mut self, round: usize) -> Outcome<()> {
        for number in round * CALLS..(round + 1) * CALLS {
            let content = format!("w{number} {}", note(self.size + number));
            let arguments = json!({"content": content, "namespace": "long-term"});
            self.writes.push(timed(|| {
                self.server.call("memory_add", &arguments).map(|_| ())
            })?);
        }
        Ok(())
    }

    fn search(&mut self, round: usize) -> Outcome<()> {
        for number in round * CALLS..(round + 1) * CALLS {
            let arguments = json!({"query": query(number)});
            self.searches.push(timed(|| {
                self.server.call("memory_search", &arguments).map(|_| ())
            })?);
        }
        Ok(())
    }

    /// Medians of a write and a search, in microseconds.
    fn end(self, table: &mut Table) -> (f64, f64) {
        let (writes, searches) = (Times::from(self.writes), Times::from(self.searches));
        let (write, search) = (writes.percentile(0.5), searches.percentile(0.5));
        table.add("memory_add p50, µs", write);
        table.add("memory_add p99, µs", writes.percentile(0.99));
        table.add("memory_search p50, µs", search);
        table.add("memory_search p99, µs", searches.percentile(0.99));
        (write, search)
    }
}

/// The same of the reference server, whose file is written for it beforehand.
fn theirs(reference: &Path, size: usize, table: &mut Table) -> Outcome<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("memory.jsonl");
    let entity = |number: usize| {
        let (name, observations) = (format!("note {number}"), [note(number)]);
        json!({"type": "entity", "name": name, "entityType": "note", "observations": observations})
    };
    let lines: Vec<String> = (0..size).map(|number| entity(number).to_string()).collect();
    std::fs::write(&file, lines.join("\n"))?;
    let mut command = Command::new(reference);
    command.env("MEMORY_FILE_PATH", &file);
    let mut server = Server::start(&mut command)?;
    let writes = Times::of(REFERENCE_CALLS, |number| {
        let arguments = json!({"entities": [entity(size + number)]});
        server.call("create_entities", &arguments).map(|_| ())
    })?;
    let searches = Times::of(REFERENCE_CALLS, |number| {
        // It looks for the query as it stands.
        let word = query(number);
        let word = word.split(' ').next_back().unwrap_or_default();
        let arguments = json!({"query": word});
        server.call("search_nodes", &arguments).map(|_| ())
    })?;
    let (write, search) = (writes.percentile(0.5), searches.percentile(0.5));
    table.add("reference: create_entities p50, µs", write);
    table.add("reference: search_nodes p50, µs", search);
    Ok((write, search))
}

/// A program that was built beside this one.
pub(crate) fn sibling(name: &str) -> Outcome<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    match path.is_file() {
        true => Ok(path),
        false => {
            let path = path.display();
            Err(format!("{path} is not there: cargo build --release -p mnemon-cli").into())
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

pub(crate) fn program(mnemon: &Path, folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(mnemon);
    command
        .args(args)
        .current_dir(folder)
        .env("MNEMON_HOME", folder)
        .env("MNEMON_LONG_TERM_MAX_ENTRIES", "none");
    command
}

pub(crate) fn seed(mnemon: &Path, folder: &Path, size: usize) -> Outcome<()> {
    let mut child = program(mnemon, folder, &["add", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    for number in 0..size {
        writeln!(stdin, "{}", json!({"content": note(number)}))?;
    }
    drop(stdin);
    match child.wait()?.success() {
        true => Ok(()),
        false => Err("the notes could not be added".into()),
    }
}

/// The same words in every run, without a pattern.
fn dice(seed: usize) -> usize {
    let mixed = (seed as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as usize
}

/// A made-up word; small numbers come more often.
fn word(seed: usize) -> String {
    const PARTS: [&str; 16] = [
        "ka", "lo", "mi", "ter", "sun", "ve", "ra", "dor", "pel", "ni", "gam", "os", "tri", "bel",
        "ku", "fan",
    ];
    let (one, other) = (dice(seed) % WORDS, dice(seed ^ 0x5555) % WORDS);
    let number = one.min(other);
    let part = |shift: usize| PARTS.get((number >> shift) & 15).copied().unwrap_or("x");
    format!("{}{}{}{}", part(0), part(4), part(8), part(12))
}

pub(crate) fn note(number: usize) -> String {
    let words: Vec<String> = (0..NOTE_WORDS).map(|n| word(number * 100 + n)).collect();
    format!("Note {number}: {}.", words.join(" "))
}

pub(crate) fn query(number: usize) -> String {
    let words: Vec<String> = (0..3)
        .map(|n| word(number * 7919 + n + 1_000_003))
        .collect();
    words.join(" ")
}

/// A server that is spoken to over its standard streams.
struct Server {
    child: Child,
    /// `None` once it was told that no more will come.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    /// Says that no more will come, and waits until the server has gone.
    fn end(mut self) -> Outcome<()> {
        self.stdin = None;
        match self.child.wait()?.success() {
            true => Ok(()),
            false => Err("the server did not end well".into()),
        }
    }

    /// Starts the server and greets it.
    fn start(command: &mut Command) -> Outcome<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no input")?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut server = Self {
            child,
            stdin: Some(stdin),
            stdout: BufReader::new(stdout),
            next: 0,
        };
        server.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }),
        )?;
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    fn say(&mut self, message: &Value) -> Outcome<()> {
        let stdin = self.stdin.as_mut().ok_or("the conversation is over")?;
        stdin.write_all(format!("{message}\n").as_bytes())?;
        Ok(stdin.flush()?)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err("the server ended".into());
            }
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            return match answer.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => Err(format!("{method}: {answer}").into()),
            };
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Outcome<Value> {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        match result.get("isError").and_then(Value::as_bool) {
            Some(true) => Err(format!("{tool}: {result}").into()),
            _ => Ok(result),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the reference server lies if somebody has fetched it there.
pub(crate) fn usual_reference() -> Option<PathBuf> {
    let target = std::env::current_exe().ok()?;
    let target = target.parent()?.parent()?;
    let path = target.join("reference/node_modules/.bin/mcp-server-memory");
    path.is_file().then_some(path)
}
