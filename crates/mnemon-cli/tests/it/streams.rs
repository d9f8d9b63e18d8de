//! Standard streams: pipes that break, disks that are full, colours that are not wanted.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::Sandbox;

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    let drafts: String = (0..1000)
        .map(|n| format!("{{\"content\":\"{n} {}\"}}\n", "x".repeat(1000)))
        .collect();
    sandbox.pipe(drafts.as_bytes(), &["add", "--jsonl"]).ok();
    let mut child = sandbox.command().arg("export").spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = sandbox
        .command()
        .arg("list")
        .stdout(Stdio::from(full))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("the output cannot be written"),
        "{message}"
    );
    assert!(message.contains("caused by: No space left"), "{message}");
}

#[test]
fn without_a_terminal_there_are_no_colours_and_no_bars() {
    let sandbox = Sandbox::new().with("NO_COLOR", "1");
    sandbox.note("a", "one");
    sandbox.run(&["forget", "a"]).ok();
    for args in [
        vec!["history"],
        vec!["list"],
        vec!["get", "nope"],
        vec!["--help"],
        vec!["export"],
    ] {
        let ran = sandbox.run(&args);
        assert!(!(ran.out + &ran.err).contains('\u{1b}'), "{args:?}");
    }
}

#[test]
fn errors_are_told_in_words_with_causes_and_a_hint() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["import", "nowhere.jsonl"]);
    insta::assert_snapshot!(ran.err);
    let ran = sandbox.run(&["import", "nowhere.jsonl", "--json"]);
    insta::assert_snapshot!(ran.err);
}

#[test]
fn a_wrong_argument_is_json_for_programs_too() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["list", "--json", "--ordre", "newest"]);
    assert_eq!(ran.code, 2);
    let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(error["error"]["kind"], "invalid");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("'--ordre'") && message.contains("'--order'"),
        "{message}"
    );
}

/// Changes of other processes are printed as they come, each once and in order.
#[test]
fn history_follows_other_processes() {
    let sandbox = Sandbox::new();
    sandbox.note("before", "not shown");
    let mut child = sandbox
        .command()
        .args(["history", "--follow", "--json"])
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, printed) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    // The first notes may be written before the child has begun to follow.
    let mut seen: Vec<Value> = Vec::new();
    let mut written = 0;
    while seen.len() < 3 {
        assert!(written < 2000, "nothing was printed");
        sandbox.note(&format!("n{written}"), "new");
        written += 1;
        let new = printed.try_iter();
        seen.extend(new.map(|line| serde_json::from_str(&line).unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(printed);
    reader.join().unwrap();
    let seqs: Vec<u64> = seen.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|two| two[0] + 1 == two[1]), "{seqs:?}");
    assert!(seqs[0] > 1, "{seqs:?}");
    assert_eq!(seen[0]["after"]["content"], "new");
    let refused = sandbox.run(&["history", "--follow", "--commit", "1"]);
    assert_eq!(refused.failed().0, 2);
}
