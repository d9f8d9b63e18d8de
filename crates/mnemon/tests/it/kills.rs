//! kill -9 in the midst of writing logs and session files: what was acknowledged is there, and the
//! rest is skipped and reported.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use mnemon_adapters::Disk;
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Ids, Tenant, Time};
use mnemon_engine::Memory;
use mnemon_engine::session::{FolderSessions, JsonSessions, SessionId, SessionState, Sessions};
use mnemon_engine::tiers::{Hot, Said, TierConfig, Tiers};
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

fn tiers(folder: &Path, hot_window_size: usize) -> Tiers {
    let disk = Arc::new(Disk::new(folder));
    let memory = Arc::new(Memory::builder(Arc::new(Ram::new()), Ids::new(1)).build());
    let config = TierConfig {
        hot_window_size,
        ..TierConfig::default()
    };
    Tiers::new(disk.clone(), disk, memory, config, str::len).unwrap()
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

#[test]
fn log_writer_until_killed() {
    let Some((folder, round)) = childs_work() else {
        return;
    };
    let tiers = tiers(Path::new(&folder), 5);
    let mut hot = Hot::new(s1());
    // Long lines, so that a kill in the midst of one is likely.
    let padding = "x".repeat(100_000);
    for number in round * 1_000_000.. {
        let content = format!("{number} {padding}");
        wait(tiers.append(&ctx(), &mut hot, Said::User { content })).unwrap();
        say(&format!("done {number}"));
    }
}

#[test]
fn acknowledged_lines_are_in_the_log_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for round in 1..=8 {
        let said = run_and_kill("kills::log_writer_until_killed", folder.path(), round);
        assert!(!said.is_empty(), "the child wrote nothing");
        all.extend(said);
        let boot = wait(tiers(folder.path(), 10_000).boot(&ctx(), &s1())).unwrap();
        let there: Vec<u64> = boot
            .hot
            .texts()
            .iter()
            .filter_map(|text| text.strip_prefix("User: ")?.split(' ').next()?.parse().ok())
            .collect();
        for number in &all {
            assert!(there.contains(number), "line {number} is lost");
        }
        // Lines that nobody was told of may be there, but none twice and none out of order.
        assert!(there.is_sorted_by(|a, b| a < b));
        // At most one torn line for each kill, and it is told.
        assert!(boot.skipped_count <= round, "{:?}", boot.skipped);
        assert_eq!(boot.skipped.len() as u64, boot.skipped_count);
        // The next round writes on: the torn line is ended first.
    }
}

fn state(number: u64) -> SessionState {
    let mut state = SessionState::new(s1());
    let list: Vec<u64> = (0..2000).map(|n| number + n).collect();
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
        let first = list[0].as_u64().unwrap();
        assert!(first == last || first == last + 1, "{first} after {last}");
        assert_eq!(parts.components["list"], state(first).components["list"]);
    }
}
