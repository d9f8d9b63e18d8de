//! `--server URL`: the same commands with the same output and exit codes.

use super::Server;
use crate::json::{calls, meant, prepared};
use crate::sandbox::{Ran, Sandbox};

/// Commands that only make sense where the store is, or whose routes are not there yet.
const LOCAL: &[&str] = &[
    "audit list",
    "audit prune",
    "audit verify",
    "backup",
    "migrate",
    "restore",
];

/// Commands that do not use the store.
const WITHOUT_STORE: &[&str] = &[
    "config",
    "config path",
    "eval beam",
    "eval beir",
    "eval jsonl",
    "eval locomo",
    "init",
    "llm usage",
    "man",
    "mcp install",
    "trust",
];

/// Commands whose answers are never the same twice: they show random keys, the log of this machine or
/// the free space; the tokens of a context depend on random ids, and near ties of a query on the moment.
const UNLIKE: &[&str] = &[
    "audit list",
    "audit verify",
    "chat query",
    "context",
    "doctor",
    "key create",
    "key list",
    "key revoke",
    "key rotate",
    "webhook create",
];

fn compared(sandbox: &Sandbox, ran: &Ran) -> (i32, String, String) {
    // The history says who acted: this user, or a caller of the server.
    let plain = |text: &str| {
        let text = text.replace("http:environment", "cli:ann");
        without_times(&sandbox.redact(&text))
    };
    (ran.code, plain(&ran.out), plain(&ran.err))
}

/// Cursors hold a time in milliseconds, and scores depend on the moment.
fn without_times(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_number(c) != is_number(first));
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        plain.push_str(&match run.parse::<f64>() {
            Ok(number) if number > 1e11 => "[ms]".to_owned(),
            Ok(number) if run.contains('.') => format!("{number:.2}"),
            _ => run.to_owned(),
        });
        rest = after;
    }
    plain
}

/// Runs every documented call here and on a server, and compares.
fn compare(mode: &[&str]) {
    // A server whose store gets its first key would need one from then on.
    let with_key = || prepared().with("MNEMON_API_KEY", "0123456789abcdef0123");
    let (here, there) = (with_key(), with_key());
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
            let said = "works on this machine only";
            assert!(remote.err.contains(said), "{command}: {remote:?}");
            // Both stores go on alike.
            remote = run(&there, &[]);
        }
        let store = format!(
            "sqlite:{}",
            there.path(".local/share/mnemon/mnemon.db").display()
        );
        remote.out = remote.out.replace(&url, &store);
        let (local, remote) = (compared(&here, &local), compared(&there, &remote));
        if local != remote && !UNLIKE.contains(&command) {
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

#[test]
fn commands_and_options_of_this_machine_say_so() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let url = server.url();
    let file = sandbox.file("tea.md", "Ann prefers tea");
    for (args, named) in [
        (vec!["llm", "usage"], "mnemon llm usage"),
        (vec!["remote", "check"], "mnemon remote check"),
        (vec!["init"], "mnemon init"),
        (vec!["config"], "mnemon config"),
        (vec!["man", "pages"], "mnemon man"),
        (
            vec!["key", "list", "--all-tenants"],
            "mnemon key list --all-tenants",
        ),
        (
            vec!["note", "add", "--file", &file],
            "mnemon note add --file",
        ),
        (vec!["add", "--jsonl"], "mnemon add --jsonl"),
        (vec!["doctor", "--repair"], "mnemon doctor --repair"),
        (
            vec!["agent", "list", "--root", "."],
            "mnemon agent list --root",
        ),
    ] {
        let (code, said) = sandbox
            .run(&[&args[..], &["--server", &url]].concat())
            .failed();
        assert_eq!(code, 12, "{said}");
        let works = format!("`{named}` works on this machine only");
        assert!(said.contains(&works), "{said}");
    }
    assert!(!sandbox.path(".mnemon").exists(), "nothing was made here");
    // The variable is set for other commands.
    let sandbox = sandbox.with("MNEMON_SERVER", &url);
    sandbox.run(&["config"]).ok();
    assert_eq!(sandbox.run(&["init"]).code, 12);
}

#[test]
fn a_key_that_cannot_be_used_is_blamed_on_its_variable() {
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", "0123456789abcdef0123");
    let server = Server::start(&sandbox, &[]);
    let url = server.url();
    let list = |sandbox: &Sandbox| sandbox.run(&["list", "--server", &url]).failed();
    let (code, said) = list(&Sandbox::new().with("MNEMON_API_KEY", "wrong"));
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("missing or not valid"), "{said}");
    assert!(said.contains("check the key in MNEMON_API_KEY"), "{said}");
    let (_, said) = list(&Sandbox::new());
    assert!(said.contains("set MNEMON_API_KEY or"), "{said}");
    let (code, said) = list(&Sandbox::new().with("MNEMON_API_KEY", "one\ntwo"));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("MNEMON_API_KEY: the key is malformed"),
        "{said}"
    );
    for (content, wrong) in [("\n", "is empty"), ("one\ntwo", "is malformed")] {
        let other = Sandbox::new();
        let file = other.file("key", content);
        let (code, said) = list(&other.with("MNEMON_API_KEY_FILE", &file));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("MNEMON_API_KEY_FILE: the key in"), "{said}");
        assert!(said.contains(wrong), "{said}");
    }
}
