//! `--server URL`: the same commands with the same output and exit codes.

use super::Server;
use crate::json::{calls, meant, prepared};
use crate::sandbox::{Ran, Sandbox};

/// Commands that only make sense where the store is, or whose routes are not there yet.
const LOCAL: &[&str] = &[
    "backup",
    "chat append --jsonl",
    "doctor",
    "export",
    "export FILE",
    "import",
    "ingest",
    "read",
    "reembed",
    "restore",
    "upkeep",
];

/// Commands that do not use the store.
const WITHOUT_STORE: &[&str] = &["config", "init"];

fn compared(sandbox: &Sandbox, ran: &Ran) -> (i32, String, String) {
    let plain = |text: &str| without_times(&sandbox.redact(text));
    (ran.code, plain(&ran.out), plain(&ran.err))
}

/// Cursors hold a time in milliseconds.
fn without_times(text: &str) -> String {
    let is_time = |word: &&str| word.len() >= 12 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_digit());
    let words = words.map(|word| {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        match is_time(&digits) {
            true => word.replace(digits, "[ms]"),
            false => word.to_owned(),
        }
    });
    words.collect()
}

/// Runs every documented call here and on a server, and compares.
fn compare(mode: &[&str]) {
    let (here, there) = (prepared(), prepared());
    let server = Server::start(&there, &[]);
    let url = server.url();
    let mut differing = Vec::new();
    for (command, args) in calls() {
        if WITHOUT_STORE.contains(&command) {
            continue;
        }
        let run = |sandbox: &Sandbox, more: &[&str]| {
            let args = args.iter().map(|word| meant(sandbox, word));
            let args: Vec<String> = args.collect();
            let args = args.iter().map(String::as_str).chain(mode.iter().copied());
            let args: Vec<&str> = args.chain(more.iter().copied()).collect();
            sandbox.run(&args)
        };
        let local = run(&here, &[]);
        let mut remote = run(&there, &["--server", &url]);
        if LOCAL.contains(&command) {
            assert_eq!(remote.code, 12, "{command}: {remote:?}");
            let said = "works on the store of this machine only";
            assert!(remote.err.contains(said), "{command}: {remote:?}");
            // Both stores go on alike.
            remote = run(&there, &[]);
        }
        let (local, remote) = (compared(&here, &local), compared(&there, &remote));
        if local != remote {
            differing.push(format!("{command} {args:?}\n  {local:?}\n  {remote:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn every_command_answers_alike_here_and_on_a_server() {
    compare(&[]);
}

#[test]
fn every_command_answers_alike_in_json() {
    compare(&["--json"]);
}

#[test]
fn a_server_that_is_not_there_or_not_ours_is_an_error() {
    let sandbox = Sandbox::new();
    let (code, said) = sandbox
        .run(&["list", "--server", "http://127.0.0.1:9"])
        .failed();
    assert_eq!(code, 13, "{said}");
    assert!(said.contains("does not answer"), "{said}");
    let (code, said) = sandbox.run(&["list", "--server", "ftp://x"]).failed();
    assert_eq!(code, 2, "{said}");
    let (code, _) = sandbox
        .run(&["list", "--server", "http://x", "--store", "ram:"])
        .failed();
    assert_eq!(code, 2);
    assert!(!sandbox.path(".local").exists(), "nothing was made here");
}
