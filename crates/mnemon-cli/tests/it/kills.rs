//! kill -9 in the midst of writing conversations and session files: what was acknowledged is there.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mnemon_adapters::Disk;
use mnemon_core::{Ctx, Filter, Ids, Message, Role, Tenant, Time};
use mnemon_engine::session::{FolderSessions, JsonSessions, SessionId, SessionState, Sessions};
use mnemon_engine::{Memory, Project, ProjectConfig, Query, Window};
use serde_json::json;

const FOLDER: &str = "MNEMON_TEST_FOLDER";
const ROUND: &str = "MNEMON_TEST_ROUND";
/// Acknowledgements that are waited for before the kill, at the most.
const MOST: u64 = 20;

fn ctx() -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", now)
}

fn s1() -> SessionId {
    "s1".parse().unwrap()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(future)
}

fn places(folder: &Path) -> [Box<dyn Sessions>; 2] {
    let disk = Arc::new(Disk::new(folder));
    [
        Box::new(JsonSessions::new(disk.clone(), "json")),
        Box::new(FolderSessions::new(disk.clone(), disk, "folders")),
    ]
}

/// In a child: where to work, and in which round.
fn childs_work() -> Option<(String, u64)> {
    let folder = std::env::var(FOLDER).ok()?;
    Some((folder, std::env::var(ROUND).ok()?.parse().unwrap()))
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may have stopped listening because it killed us.
    let _ = writeln!(out, "\n{line}").and_then(|()| out.flush());
}

/// Runs the child's work until it has said a number of lines, different in each round, and kills
/// it. What it said.
fn run_and_kill(work: &str, folder: &Path, round: u64) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([work, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let enough = 1 + usize::try_from(round * 7 % MOST).unwrap();
    let take = |line: String, said: &mut Vec<u64>| {
        let number: Option<u64> = line.strip_prefix("done ").and_then(|n| n.parse().ok());
        said.extend(number);
    };
    for line in lines.by_ref() {
        take(line.unwrap(), &mut said);
        if said.len() >= enough {
            break;
        }
    }
    child.kill().unwrap();
    for line in lines.map_while(Result::ok) {
        take(line, &mut said);
    }
    child.wait().unwrap();
    said
}

/// Where conversations lie: the store, and whether in a project's files as well.
const PLACES: [(&str, bool); 4] = [
    ("sqlite", true),
    ("jsonl", true),
    ("sqlite", false),
    ("jsonl", false),
];
/// Processes that append to one conversation.
const WRITERS: u64 = 3;

fn open_memory(folder: &Path, scheme: &str) -> Memory {
    let store = format!("{scheme}:{}", folder.join("store").display());
    let opened = mnemon_adapters::open(&store).unwrap();
    let seed = (u64::from(std::process::id()) << 42) ^ now().millis().unsigned_abs();
    Memory::builder(opened.backend, Ids::new(seed)).build()
}

fn now() -> Time {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    Time::from_millis(i64::try_from(since.as_millis()).unwrap()).unwrap()
}

fn project(folder: &Path) -> Project {
    let disk = Arc::new(Disk::new(folder));
    let config = ProjectConfig {
        hot_window_size: 5,
        ..ProjectConfig::default()
    };
    Project::new(disk.clone(), disk, folder.display().to_string(), config).unwrap()
}

fn window<'a>(memory: &'a Memory, project: Option<&'a Project>) -> Window<'a> {
    let window = memory.window("ann", "s1").unwrap();
    match project {
        Some(project) => window.in_project(project).unwrap(),
        None => window,
    }
}

#[test]
fn conversation_writer_until_killed() {
    let Some((folder, round)) = childs_work() else {
        return;
    };
    let (scheme, in_files) = PLACES[usize::try_from(round / 100_000).unwrap()];
    let folder = Path::new(&folder);
    let (memory, project) = (open_memory(folder, scheme), project(folder));
    let window = window(&memory, in_files.then_some(&project));
    for number in (round * 1000..).take(999) {
        // Some lines are long, so that a kill in the midst of one is likely.
        let padding = "x".repeat(usize::try_from(number * 7919 % 30_000).unwrap());
        let said = Message::text("", Role::User, format!("line{number} {padding}"));
        let ctx = Ctx::new(Tenant::default(), "test", now());
        wait(window.add_message(&ctx, said)).unwrap();
        say(&format!("done {number}"));
    }
    // Whoever is slow to kill us finds us here.
    std::thread::sleep(Duration::from_secs(60));
}

/// All messages, oldest first, as their numbers.
fn numbers(window: &Window<'_>) -> Vec<u64> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (messages, next) = wait(window.original(&ctx(), after, 500)).unwrap();
        all.extend(
            messages
                .iter()
                .map(|message| number(&message.text_content()).unwrap()),
        );
        match next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.strip_prefix("line")?.split(' ').next()?.parse().ok()
}

/// The lines of the log that say something.
fn logged(folder: &Path) -> Vec<u64> {
    let log = std::fs::read(folder.join(".airsspec/contexts/agent/s1.jsonl")).unwrap();
    let whole = log
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"));
    let lines = whole.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    lines
        .map(|line| number(line["content"].as_str().unwrap()).unwrap())
        .collect()
}

/// One round: three processes append and are killed; then the conversation is opened.
fn round_of_kills(place: usize, folder: &Path, round: u64, acknowledged: &mut Vec<u64>) {
    let said: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let writers = (0..WRITERS).map(|writer| {
            let childs_round = place as u64 * 100_000 + round * 10 + writer;
            let work = "kills::conversation_writer_until_killed";
            scope.spawn(move || run_and_kill(work, folder, childs_round))
        });
        let writers: Vec<_> = writers.collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    acknowledged.extend(said.iter().flatten());
    let (scheme, in_files) = PLACES[place];
    let (memory, project) = (open_memory(folder, scheme), project(folder));
    let window = window(&memory, in_files.then_some(&project));
    wait(window.catch_up(&ctx())).unwrap();
    wait(window.import_backlog(&ctx(), &mut |_| {})).unwrap();
    let there = numbers(&window);
    let mut once = there.clone();
    once.sort_unstable();
    assert!(
        once.is_sorted_by(|a, b| a < b),
        "round {round}: a line is there twice"
    );
    for number in acknowledged.iter() {
        assert!(
            once.binary_search(number).is_ok(),
            "round {round}: line {number} is lost"
        );
    }
    for one in &said {
        let places = one
            .iter()
            .map(|number| there.iter().position(|n| n == number));
        assert!(places.is_sorted(), "round {round}: out of order");
    }
    if in_files {
        assert_eq!(there, logged(folder), "round {round}: log and store differ");
    }
    let sample = acknowledged
        .iter()
        .rev()
        .step_by(acknowledged.len() / 3 + 1);
    for number in sample {
        let query = Query::new(format!("line{number}"), Filter::all_of_tenant());
        let hits = wait(memory.records().search(&ctx(), &query)).unwrap();
        let found = hits
            .iter()
            .any(|hit| hit.record.content.starts_with(&format!("line{number} ")));
        assert!(found, "round {round}: line {number} is not found");
    }
}

/// 3 rounds for each place; `MNEMON_KILL_ROUNDS` says how many in a soak.
#[test]
fn acknowledged_messages_are_there_once_and_in_order_after_kills() {
    let rounds = std::env::var("MNEMON_KILL_ROUNDS");
    let rounds: u64 = rounds.map_or(3, |rounds| rounds.parse().unwrap());
    for place in 0..PLACES.len() {
        let mut acknowledged = Vec::new();
        let mut folder = tempfile::tempdir().unwrap();
        for round in 1..=rounds {
            // A fresh conversation now and then keeps the rounds short.
            if round % 20 == 0 {
                folder = tempfile::tempdir().unwrap();
                acknowledged.clear();
            }
            round_of_kills(place, folder.path(), round, &mut acknowledged);
            assert!(!acknowledged.is_empty(), "the children wrote nothing");
        }
    }
}

fn state(number: u64) -> SessionState {
    let mut state = SessionState::new(s1());
    // One longer each time within a round, so that it is appended to.
    let text = "x".repeat(5000);
    let list: Vec<_> = (0..=number % 1_000_000).map(|n| json!([n, text])).collect();
    state.components.insert("list".to_owned(), json!(list));
    state
        .components
        .insert("number".to_owned(), json!({ "number": number }));
    state
}

#[test]
fn session_writer_until_killed() {
    let Some((folder, round)) = childs_work() else {
        return;
    };
    for number in round * 1_000_000.. {
        for place in places(Path::new(&folder)) {
            let seen = wait(place.load(&ctx(), &s1()))
                .unwrap()
                .map(|(_, mark)| mark);
            wait(place.save(&ctx(), &state(number), seen.as_ref())).unwrap();
        }
        say(&format!("done {number}"));
    }
}

#[test]
fn a_saved_session_is_the_last_one_or_the_one_after_it() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=8 {
        let said = run_and_kill("kills::session_writer_until_killed", folder.path(), round);
        let last = *said.last().expect("the child wrote nothing");
        let [json, folders] = places(folder.path());
        let (whole, _) = wait(json.load(&ctx(), &s1())).unwrap().unwrap();
        let number = whole.components["number"]["number"].as_u64().unwrap();
        assert!(
            number == last || number == last + 1,
            "{number} after {last}"
        );
        assert_eq!(
            whole.components,
            state(number).components,
            "a file is replaced whole"
        );
        // In a folder each component is a file of its own, replaced whole.
        let (parts, _) = wait(folders.load(&ctx(), &s1())).unwrap().unwrap();
        let number = parts.components["number"]["number"].as_u64().unwrap();
        assert!(
            number == last || number == last + 1,
            "{number} after {last}"
        );
        let list = parts.components["list"].as_array().unwrap();
        let saved = round * 1_000_000 + list.len() as u64 - 1;
        assert!(saved == last || saved == last + 1, "{saved} after {last}");
        assert_eq!(parts.components["list"], state(saved).components["list"]);
    }
}
