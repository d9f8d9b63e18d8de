//! The window from the end of a log, whatever the log looks like.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::limits;
use mnemon_engine::tiers::{Boot, TierConfig};
use mnemon_testkit::fakes::FilesInRam;
use proptest::prelude::*;
use serde_json::json;

use super::{LOG, append, s1, tiers, user};
use crate::{ctx, wait};

fn boot_of(log: &[u8], hot_window_size: usize) -> Boot {
    let files = Arc::new(FilesInRam::default());
    wait(files.write(LOG, log, None)).unwrap();
    let config = TierConfig {
        hot_window_size,
        ..TierConfig::default()
    };
    wait(tiers(&files, config).boot(&ctx(), &s1())).unwrap()
}

fn texts(boot: &Boot) -> Vec<String> {
    boot.hot.lines().map(|hot| hot.line.text()).collect()
}

fn line(text: &str) -> String {
    json!({"type": "user", "content": text, "ts": "t"}).to_string() + "\n"
}

#[test]
fn a_log_that_is_not_there_is_an_empty_window() {
    let files = Arc::new(FilesInRam::default());
    let boot = wait(tiers(&files, TierConfig::default()).boot(&ctx(), &s1())).unwrap();
    assert_eq!((boot.hot.lines().count(), boot.bytes_read), (0, 0));
}

#[test]
fn what_is_no_line_is_skipped_does_not_count_and_is_told() {
    let mut log = b"\xef\xbb\xbf".to_vec();
    log.extend(line("first").bytes());
    log.extend(line("two").trim_end().bytes());
    log.extend(b"\r\n\r\n\nnot json\n[1,2]\n7\n");
    log.extend(b"{\"type\":\"user\",\"content\":\"h\xc3\"}\n");
    log.extend(b"{\"type\":\"plan\",\"steps\":3}\n");
    log.extend(line("last").bytes());
    let torn = log.len() as u64;
    log.extend(
        "{\"type\":\"user\",\"content\":\"Tr\u{1edd}"
            .bytes()
            .take(28),
    );
    let boot = boot_of(&log, 30);
    let seen = [
        "User: first",
        "User: two",
        "{\"steps\":3,\"type\":\"plan\"}",
        "User: last",
    ];
    assert_eq!(texts(&boot), seen);
    assert_eq!(boot.skipped_count, 5);
    assert_eq!(boot.skipped[0].offset, torn);
    assert!(
        boot.skipped[0].what.contains("cut off"),
        "{:?}",
        boot.skipped
    );
    assert!(boot.skipped[1].what.contains("UTF-8"));
    assert!(boot.skipped[2].what.contains("JSON object"));
    let three = boot_of(&log, 3);
    assert_eq!(
        texts(&three),
        seen[1..],
        "three valid ones, however many are not"
    );
    let one = boot_of(&log, 1);
    assert_eq!((texts(&one).len(), one.skipped_count), (1, 1));
}

#[test]
fn a_last_line_without_a_break_counts_if_it_is_whole_and_the_next_one_is_its_own() {
    let log = line("one") + line("two").trim_end();
    let boot = boot_of(log.as_bytes(), 5);
    assert_eq!(texts(&boot), ["User: one", "User: two"]);
    let files = Arc::new(FilesInRam::default());
    wait(files.write(LOG, (line("one") + "{\"type\":\"us").as_bytes(), None)).unwrap();
    let tiers = tiers(&files, TierConfig::default());
    let mut hot = wait(tiers.boot(&ctx(), &s1())).unwrap().hot;
    append(&tiers, &mut hot, user("after the crash"));
    let boot = wait(tiers.boot(&ctx(), &s1())).unwrap();
    assert_eq!(texts(&boot), ["User: one", "User: after the crash"]);
    assert_eq!(boot.skipped_count, 1);
    let offsets = |boot: &Boot| boot.hot.lines().map(|hot| hot.offset).collect::<Vec<_>>();
    assert_eq!(
        hot.lines().map(|hot| hot.offset).collect::<Vec<_>>(),
        offsets(&boot)
    );
}

#[test]
fn a_long_log_is_read_at_its_end_only() {
    let one = line(&"x".repeat(500));
    let log = one.repeat(20 * 1024 * 1024 / one.len());
    let boot = boot_of(log.as_bytes(), 30);
    assert_eq!(boot.hot.lines().count(), 30);
    assert!(boot.bytes_read <= 128 * 1024, "{}", boot.bytes_read);
}

#[test]
fn a_line_longer_than_a_piece_is_read_and_one_without_end_is_not() {
    let long = "y".repeat(300_000);
    let log = line("one") + &line(&long) + &line("two");
    assert_eq!(texts(&boot_of(log.as_bytes(), 3)).len(), 3);
    // Just too long, and so long that its beginning is not in view when it is given up.
    for surplus in [100_000, limits::LOG_LINE_BYTES * 2] {
        let endless = "z".repeat(limits::LOG_LINE_BYTES + surplus);
        let log = line("one") + &line(&endless) + &line("two");
        let boot = boot_of(log.as_bytes(), 3);
        assert!(texts(&boot) == ["User: one", "User: two"], "{surplus}");
        assert_eq!(boot.skipped_count, 1);
        let why = &boot.skipped[0].what;
        assert!(why.contains("longer"), "{why}");
    }
}

#[test]
fn a_log_of_nothing_but_noise_is_given_up_in_the_end() {
    let log = ("noise".repeat(1000) + "\n").repeat(14_000).into_bytes();
    let boot = boot_of(&log, 3);
    assert!(boot.gave_up && boot.hot.lines().count() == 0);
    assert_eq!(boot.skipped.len(), 100);
    assert!(boot.bytes_read < limits::BOOT_BYTES as u64 + 100_000);
}

/// The plain way: read everything, keep the last valid lines.
fn plainly(log: &[u8], wanted: usize) -> Vec<String> {
    let valid = log.split(|byte| *byte == b'\n').filter_map(|line| {
        let text = std::str::from_utf8(line).ok()?;
        let value: serde_json::Value = serde_json::from_str(text.trim()).ok()?;
        value.is_object().then(|| value["content"].to_string())
    });
    let valid: Vec<String> = valid.collect();
    valid[valid.len().saturating_sub(wanted)..].to_vec()
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..200usize).prop_map(|n| line(&"é".repeat(n)).into_bytes()),
        1 => (0..150_000usize).prop_map(|n| line(&"é".repeat(n)).into_bytes()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\n\n".to_vec()),
        1 => Just(b"noise\n".to_vec()),
        1 => Just(b"{\"content\":\"\xc3\"}\n".to_vec()),
        1 => Just(b"{\"content\":1}\r\n".to_vec()),
    ]
}

proptest! {
    #[test]
    fn reading_backwards_finds_what_reading_all_finds(
        pieces in prop::collection::vec(piece(), 0..12),
        cut in 0..40usize,
        wanted in 1..8usize,
    ) {
        let mut log = pieces.concat();
        log.truncate(log.len().saturating_sub(cut));
        let boot = boot_of(&log, wanted);
        let found: Vec<String> = boot.hot.lines().map(|hot| {
            let end = log[hot.offset as usize..].iter().position(|byte| *byte == b'\n');
            let end = end.map_or(log.len(), |at| hot.offset as usize + at);
            let value: serde_json::Value =
                serde_json::from_slice(&log[hot.offset as usize..end]).unwrap();
            value["content"].to_string()
        }).collect();
        prop_assert_eq!(found, plainly(&log, wanted));
    }
}
