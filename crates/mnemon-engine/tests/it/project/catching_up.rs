//! The store catches up with the log, whoever wrote it and however long it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use mnemon_core::files::{Files, FilesError};
use mnemon_core::log::{Log, Piece};
use mnemon_core::ram::Ram;
use mnemon_core::{Block, Ctx, Ids, Role, limits};
use mnemon_engine::{Memory, Project};
use mnemon_testkit::fakes::FilesInRam;
use proptest::prelude::*;
use serde_json::json;

use super::{LOG, append, found, hot, project, said, shown, user, window};
use crate::{ctx, memory, wait};

fn line(text: &str) -> String {
    json!({"type": "user", "content": text, "ts": "2023-01-01T00:00:00.000Z"}).to_string() + "\n"
}

fn with_log(log: &[u8]) -> Arc<FilesInRam> {
    let files = Arc::new(FilesInRam::default());
    wait(files.write(LOG, log, None)).unwrap();
    files
}

fn add(files: &FilesInRam, text: &str) {
    let file = wait(files.read(LOG)).unwrap().unwrap();
    let bytes = [file.bytes, text.as_bytes().to_vec()].concat();
    wait(files.write(LOG, &bytes, Some(&file.stamp))).unwrap();
}

#[test]
fn a_log_that_was_there_before_is_found_after_one_boot() {
    let log: String = (0..3000)
        .map(|n| line(&format!("Decision {n} token format T{n}")))
        .collect();
    let files = with_log(log.as_bytes());
    let (memory, project) = (memory(), project(&files, hot(30)));
    let window = window(&memory, &project);
    assert_eq!(shown(&window).len(), 30);
    wait(window.import_backlog(&ctx(), &mut |_| {})).unwrap();
    assert_eq!(
        found(&memory, "ann", "Decision 5 token format T5")[0],
        "Decision 5 token format T5"
    );
    let all = said(&window);
    assert_eq!(all.len(), 3000);
    assert!(
        all.iter()
            .enumerate()
            .all(|(n, text)| text.contains(&format!("T{n}")))
    );
}

#[test]
fn two_processes_that_append_leave_nothing_out() {
    let files = Arc::new(FilesInRam::default());
    let store = Arc::new(Ram::new());
    let project = project(&files, hot(5));
    let processes: Vec<Memory> = (0..3)
        .map(|seed| Memory::builder(store.clone(), Ids::new(seed)).build())
        .collect();
    for n in 0..40 {
        append(
            &window(&processes[n % 3], &project),
            &format!("line number {n}"),
        );
        if n % 7 == 0 {
            add(&files, &line(&format!("foreign line {n}")));
        }
    }
    let window = window(&processes[0], &project);
    assert_eq!(shown(&window)[..2], ["foreign line 35", "line number 36"]);
    let all = said(&window);
    assert_eq!(all.len(), 46);
    let logged = super::read(&files, LOG);
    let logged = logged.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["content"].as_str().unwrap().to_owned()
    });
    assert_eq!(all, logged.collect::<Vec<_>>(), "in the order of the log");
    for n in 0..40 {
        let text = format!("line number {n}");
        assert!(found(&processes[1], "ann", &text).contains(&text));
    }
}

#[test]
fn what_is_no_line_is_skipped_and_told_once_and_a_torn_line_waits() {
    let mut log = b"\xef\xbb\xbf".to_vec();
    log.extend(line("first").bytes());
    log.extend(line("two").trim_end().bytes());
    log.extend(b"\r\n\r\n\nnot json\n[1,2]\n7\n");
    log.extend(b"{\"type\":\"user\",\"content\":\"h\xc3\"}\n");
    log.extend(line("last").bytes());
    log.extend(b"{\"type\":\"user\",\"content\":\"torn");
    let files = with_log(&log);
    let (memory, project) = (memory(), project(&files, hot(30)));
    let window = window(&memory, &project);
    let notices = |ctx: &Ctx| {
        wait(window.catch_up(ctx)).unwrap();
        ctx.notices.take()
    };
    let first = notices(&ctx());
    assert_eq!(first.len(), 5, "{first:?}");
    assert!(first[0].contains("not a JSON object") && first[3].contains("not UTF-8"));
    assert!(first[4].contains("has no end yet"), "{first:?}");
    assert_eq!(notices(&ctx()).len(), 1, "only the torn line is told again");
    assert_eq!(shown(&window), ["first", "two", "last"]);
    // Its writer was only slow.
    add(&files, "\"}\n");
    assert!(notices(&ctx()).is_empty());
    assert_eq!(shown(&window)[3], "torn");
    // Its writer was killed: the next line ends it.
    add(&files, "{\"type\":\"us");
    wait(window.add_message(&ctx(), user("after the crash"))).unwrap();
    assert_eq!(shown(&window)[4..], ["after the crash"]);
}

#[test]
fn a_line_without_end_is_skipped() {
    let endless = "z".repeat(limits::LOG_LINE_BYTES + 100_000);
    let long = "y".repeat(600_000);
    let log = line("one") + &line(&long) + &line(&endless) + &line("two");
    let files = with_log(log.as_bytes());
    let (memory, project) = (memory(), project(&files, hot(3)));
    let window = window(&memory, &project);
    shown(&window);
    let ctx = ctx();
    wait(window.import_backlog(&ctx, &mut |_| {})).unwrap();
    assert_eq!(said(&window), ["one".to_owned(), long, "two".to_owned()]);
}

#[test]
fn no_result_is_parted_from_its_call_where_reading_begins() {
    let old: String = (0..200)
        .map(|n| line(&format!("{n} {}", "x".repeat(1000))))
        .collect();
    let action = |tool: &str| json!({"type": "action", "tool": tool}).to_string() + "\n";
    let result = |of: &str| json!({"type": "observation", "result": of}).to_string() + "\n";
    let thought = json!({"type": "thought", "content": "hm"}).to_string() + "\n";
    let together = [action("a"), action("b"), result("a"), result("b")].concat();
    let apart = [action("a"), thought.clone(), result("a")].concat();
    let chatter = thought.repeat(90) + &together;
    for (new, wanted) in [(&together, 3), (&apart, 2), (&apart, 1), (&chatter, 3)] {
        let files = with_log((old.clone() + new).as_bytes());
        let (memory, project) = (memory(), project(&files, hot(wanted)));
        let window = window(&memory, &project);
        let ctx = ctx();
        let read = wait(window.catch_up(&ctx)).unwrap();
        assert!(read.backlog_bytes > 100_000, "{read:?}");
        wait(window.import_backlog(&ctx, &mut |_| {})).unwrap();
        assert_eq!(ctx.notices.take(), Vec::<String>::new());
        let (messages, _) = wait(window.original(&ctx, None, 500)).unwrap();
        for message in &messages {
            if let [Block::ToolResult { name, output, .. }] = message.content.as_slice() {
                assert_eq!(output, &[Block::Text { text: name.clone() }]);
            }
        }
        let results = messages.iter().filter(|message| message.role == Role::Tool);
        assert_eq!(results.count(), new.matches("observation").count());
    }
}

/// A log of this many bytes of noise and a line, which gives at most a megabyte at once.
struct Noise(u64);

#[async_trait]
impl Log for Noise {
    async fn append(&self, _: &str, _: &[u8]) -> Result<u64, FilesError> {
        unreachable!("nothing is written")
    }

    async fn read_before(
        &self,
        _: &str,
        end: Option<u64>,
        most: usize,
    ) -> Result<Option<Piece>, FilesError> {
        let last = line("last").into_bytes();
        let length = self.0 + last.len() as u64;
        let end = end.map_or(length, |end| end.min(length));
        let start = end.saturating_sub(most.min(1 << 20) as u64);
        let byte = |at: u64| match at.checked_sub(self.0) {
            Some(at) => last[at as usize],
            None if at % 4096 == 4095 => b'\n',
            None => b'x',
        };
        let bytes = (start..end).map(byte).collect();
        Ok(Some(Piece { start, bytes }))
    }

    async fn erase(&self, _: &str) -> Result<bool, FilesError> {
        Ok(false)
    }
}

#[test]
fn a_log_that_gives_less_than_was_asked_for_is_read_near_its_end() {
    let noise = 300 << 20;
    let files = Arc::new(FilesInRam::default());
    let project = Project::new(files, Arc::new(Noise(noise)), "/p", hot(3)).unwrap();
    let memory = memory();
    let window = window(&memory, &project);
    let read = wait(window.catch_up(&ctx())).unwrap();
    assert_eq!(read.messages, 1);
    assert!(noise - read.backlog_bytes < 1 << 20, "{read:?}");
    assert_eq!(said(&window), ["last"]);
}

/// Counts what is read of a log.
struct Counted(Arc<FilesInRam>, AtomicU64);

#[async_trait]
impl Log for Counted {
    async fn append(&self, path: &str, bytes: &[u8]) -> Result<u64, FilesError> {
        self.0.append(path, bytes).await
    }

    async fn read_before(
        &self,
        path: &str,
        end: Option<u64>,
        most: usize,
    ) -> Result<Option<Piece>, FilesError> {
        let piece = self.0.read_before(path, end, most).await?;
        let read = piece.as_ref().map_or(0, |piece| piece.bytes.len());
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(piece)
    }

    async fn erase(&self, path: &str) -> Result<bool, FilesError> {
        self.0.erase(path).await
    }
}

#[test]
fn a_long_log_is_shown_from_its_end_and_read_whole_afterwards() {
    let mut read = Vec::new();
    for megabytes in [2, 20] {
        let count = megabytes * 1024 * 1024 / 600;
        let mut log: String = (0..count)
            .map(|n| line(&format!("{n} {}", "x".repeat(500))))
            .collect();
        log.push_str(&json!({"type": "action", "tool": "ls"}).to_string());
        log.push_str("\n{\"type\":\"observation\",\"result\":\"a\"}\n");
        let files = with_log(log.as_bytes());
        let counted = Arc::new(Counted(files.clone(), AtomicU64::new(0)));
        let project = Project::new(files.clone(), counted.clone(), "/p", hot(30)).unwrap();
        let memory = memory();
        let window = window(&memory, &project);
        let texts = shown(&window);
        assert_eq!(texts.len(), 30);
        assert!(
            texts[0].starts_with(&(count - 28).to_string()),
            "{}",
            texts[0]
        );
        read.push(counted.1.swap(0, Ordering::Relaxed));
        // A second boot reads next to nothing, and what is added comes after all.
        shown(&window);
        assert!(counted.1.swap(0, Ordering::Relaxed) < 1000);
        append(&window, "new");
        // The append has read a piece of the rest; another process goes on.
        if megabytes == 2 {
            let mut left = Vec::new();
            wait(window.import_backlog(&ctx(), &mut |bytes| left.push(bytes))).unwrap();
            assert!(
                left.is_sorted_by(|a, b| a > b) && left.len() > 2,
                "{left:?}"
            );
            let all = said(&window);
            assert_eq!(all.len(), count + 3);
            let numbers = all
                .iter()
                .filter_map(|text| text.split(' ').next()?.parse::<usize>().ok());
            assert!(numbers.eq(0..count), "in the order of the log");
            assert_eq!(all[count + 2], "new");
        }
    }
    assert!(
        read[0].abs_diff(read[1]) < 1000,
        "however long the log is: {read:?}"
    );
    assert!(read[0] < 300_000, "{read:?}");
}

#[test]
fn another_log_in_the_same_place_is_read_anew() {
    let files = with_log((line("one") + &line("two")).as_bytes());
    let (memory, project) = (memory(), project(&files, hot(9)));
    let window = window(&memory, &project);
    assert_eq!(shown(&window), ["one", "two"]);
    // Restored from a backup, and gone on with.
    wait(files.erase(LOG)).unwrap();
    let restored = line("one") + &line("TWO") + &line("three");
    wait(files.append(LOG, restored.as_bytes())).unwrap();
    assert_eq!(shown(&window), ["one", "two", "TWO", "three"]);
    // Shorter.
    wait(files.erase(LOG)).unwrap();
    wait(files.append(LOG, line("four").as_bytes())).unwrap();
    assert_eq!(shown(&window), ["one", "two", "TWO", "three", "four"]);
}

#[test]
fn undoing_an_append_leaves_what_others_wrote() {
    let files = with_log(line("before").as_bytes());
    let (memory, project) = (memory(), project(&files, hot(9)));
    let window = window(&memory, &project);
    for key in [None, Some("k")] {
        add(&files, &line("of another"));
        let mine = wait(window.add_messages(&ctx(), vec![user("mine")], key)).unwrap();
        wait(memory.records().undo(&ctx(), mine.commit.unwrap())).unwrap();
    }
    assert_eq!(shown(&window), ["before", "of another", "of another"]);
}

#[test]
fn a_retry_finds_its_line_far_from_the_end() {
    let files = Arc::new(FilesInRam::default());
    let project = project(&files, hot(5));
    let first = memory();
    let say = |memory: &Memory, text: &str| {
        let messages = vec![user(text)];
        wait(window(memory, &project).add_messages(&ctx(), messages, Some(text))).unwrap()
    };
    say(&first, "one");
    for n in 0..40 {
        add(&files, &line(&format!("{n} {}", "x".repeat(9_000))));
    }
    let later = memory();
    say(&later, "one");
    say(&later, "two");
    let long = "long ".repeat(60_000);
    say(&later, "three");
    append(&window(&later, &project), &long);
    assert_eq!(super::read(&files, LOG).lines().count(), 44);
    let all = said(&window(&later, &project));
    assert_eq!(all.len(), 44);
    assert_eq!(all[0], "one");
    assert_eq!(all[41..], ["two", "three", &long]);
}

#[test]
fn lines_of_other_tools_are_known_again_in_a_shorter_log() {
    let old: Vec<String> = (0..6).map(|n| format!("old {}", n / 2)).collect();
    let log: String = old.iter().map(|text| line(text)).collect();
    let untimed = "{\"type\":\"user\",\"content\":\"yes\"}\n".repeat(20);
    let files = with_log((log.clone() + &untimed + &line("same").repeat(20)).as_bytes());
    let (memory, project) = (memory(), project(&files, hot(90)));
    let window = window(&memory, &project);
    assert_eq!(shown(&window).len(), 46, "as often as it was said");
    let id = crate::all(&memory).into_iter();
    let mut id = id.filter(|record| record.content == "old 2");
    let id = id.next().unwrap().id;
    wait(memory.records().forget(&ctx(), &[id], None)).unwrap();
    // The first three lines were cut off.
    let rest: String = old[3..].iter().map(|text| line(text)).collect();
    wait(files.erase(LOG)).unwrap();
    wait(files.append(LOG, (rest + &line("new")).as_bytes())).unwrap();
    let texts = shown(&window);
    let count = |text: &str| texts.iter().filter(|said| *said == text).count();
    let counts = ["old 0", "old 1", "old 2", "new"].map(count);
    assert_eq!(counts, [2, 2, 1, 1]);
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..200usize).prop_map(|n| line(&"é".repeat(n)).into_bytes()),
        1 => (0..150_000usize).prop_map(|n| line(&"é".repeat(n)).into_bytes()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\n\n".to_vec()),
        1 => Just(b"noise\n".to_vec()),
        1 => Just(b"{\"content\":\"\xc3\"}\n".to_vec()),
        1 => Just(b"{\"type\":\"user\",\"content\":\"1\"}\r\n".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn reading_as_the_log_grows_finds_what_reading_all_finds(
        pieces in prop::collection::vec(piece(), 0..12),
        cuts in prop::collection::vec(0..20_000usize, 0..6),
    ) {
        let log = pieces.concat();
        let plainly: Vec<String> = log.split_inclusive(|byte| *byte == b'\n').filter_map(|line| {
            let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
            let value: serde_json::Value = serde_json::from_str(text.trim()).ok()?;
            Some(value["content"].as_str()?.to_owned())
        }).collect();
        let (memory, files) = (memory(), Arc::new(FilesInRam::default()));
        let project = project(&files, hot(5));
        let window = window(&memory, &project);
        let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(log.len())).collect();
        ends.sort_unstable();
        ends.push(log.len());
        for end in ends {
            let there = wait(files.read(LOG)).unwrap();
            let stamp = there.map(|file| file.stamp);
            wait(files.write(LOG, &log[..end], stamp.as_ref())).unwrap();
            wait(window.catch_up(&ctx())).unwrap();
        }
        wait(window.import_backlog(&ctx(), &mut |_| {})).unwrap();
        prop_assert_eq!(said(&window), plainly);
    }
}
