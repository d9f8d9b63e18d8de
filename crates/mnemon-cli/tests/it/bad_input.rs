//! Bad input: a clear message, a non-zero exit, and nothing is changed.

use crate::sandbox::{Ran, Sandbox};

/// What a mistake must lead to: the exit code, and words that the message must have.
struct Mistake<'a> {
    input: &'a [u8],
    args: &'a [&'a str],
    code: i32,
    words: &'a [&'a str],
}

fn mistake<'a>(args: &'a [&'a str], words: &'a [&'a str]) -> Mistake<'a> {
    Mistake {
        input: b"",
        args,
        code: 2,
        words,
    }
}

fn piped<'a>(input: &'a [u8], args: &'a [&'a str], words: &'a [&'a str]) -> Mistake<'a> {
    Mistake {
        input,
        ..mistake(args, words)
    }
}

#[track_caller]
pub(crate) fn expect(ran: Ran, code: i32, words: &[&str]) {
    let (found, message) = ran.failed();
    assert_eq!(found, code, "{message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert!(message.starts_with("error: "), "{message}");
}

/// Tries each on a store that has something in it, and looks that it is still the same.
fn try_all(mistakes: &[Mistake]) {
    let sandbox = Sandbox::new();
    sandbox.note("a", "untouched");
    let before = sandbox.state();
    for mistake in mistakes {
        let ran = sandbox.pipe(mistake.input, mistake.args);
        expect(ran, mistake.code, mistake.words);
        assert_eq!(sandbox.state(), before, "{:?}", mistake.args);
    }
}

#[test]
fn bad_values() {
    let long_tag = "x".repeat(101);
    let long_id = "x".repeat(129);
    try_all(&[
        mistake(
            &["add", "x", "--importance", "1.5"],
            &["--importance: is 1.5; from 0 to 1"],
        ),
        mistake(
            &["add", "x", "--importance", "-1"],
            &["--importance: is -1; from 0 to 1"],
        ),
        mistake(
            &["add", "x", "--importance", "NaN"],
            &["--importance: `NaN` is not a number"],
        ),
        mistake(
            &["add", "x", "--importance", "abc"],
            &["--importance", "abc"],
        ),
        mistake(
            &["add", "x", "--tag", &long_tag],
            &["--tag[0]: has 101 characters; at most 100"],
        ),
        mistake(&["add", "x", "--tag", ""], &["--tag", "is empty"]),
        mistake(
            &["add", "x", "--tag", "a\nb"],
            &["--tag", "control character"],
        ),
        mistake(&["add", "x", "--user", ""], &["--user: is empty"]),
        mistake(&["add", "x", "--kind", "nto"], &["--kind", "nto", "note"]),
        mistake(&["add", "x", "--ttl", "14"], &["--ttl", "14", "14d"]),
        mistake(&["add", "x", "--ttl", "soon"], &["ttl", "soon", "14d"]),
        mistake(
            &["add", "x", "--ttl", "1d", "--expires", "2096-01-01"],
            &["--ttl", "--expires"],
        ),
        mistake(
            &["add", "x", "--expires", "7d"],
            &["expires", "7d", "2026-01-31"],
        ),
        mistake(
            &["add", "x", "--created", "yesterday"],
            &["created", "yesterday"],
        ),
        mistake(
            &["add", "x", "--metadata", "novalue"],
            &["metadata", "KEY=VALUE"],
        ),
        mistake(
            &["add", "x", "--metadata", "a=1", "--metadata", "a=2"],
            &["metadata", "twice"],
        ),
        mistake(
            &["add", "x", "--meta-json", "[1]"],
            &["--metadata", "JSON object"],
        ),
        mistake(&["add", "x", "--id", "a b"], &["--id", "printable ASCII"]),
        mistake(&["add", "x", "--id", &long_id], &["--id", "at most 128"]),
        mistake(
            &["add", "x", "--id", "n", "--derived-from", "n"],
            &["--derived-from", "own source"],
        ),
        mistake(&["add", "x", "--key", ""], &["key", "is empty"]),
        mistake(&["add", "x", "--colour", "red"], &["--colour"]),
    ]);
}

#[test]
fn bad_questions() {
    try_all(&[
        mistake(&["get", "a b"], &["printable ASCII"]),
        mistake(
            &["list", "--after", "nonsense"],
            &["cursor", "nonsense", "the previous page"],
        ),
        mistake(&["list", "--limit", "0"], &["--limit", "1 to 1000"]),
        mistake(&["list", "--limit", "1001"], &["--limit", "1 to 1000"]),
        mistake(&["list", "--since", "tomorrow-ish"], &["since", "7d"]),
        mistake(
            &["list", "--tenant", "A B"],
            &["tenant", "--tenant", "lower case"],
        ),
        mistake(&["undo", "first"], &["first"]),
        mistake(&["frobnicate"], &["frobnicate"]),
    ]);
}

#[test]
fn bad_content() {
    let too_long = vec![b'x'; 10 * 1024 * 1024 + 1];
    let much_too_long = vec![b'x'; 11 * 1024 * 1024];
    try_all(&[
        mistake(&["add", ""], &["content", "is empty"]),
        mistake(&["add", "  "], &["content", "is empty"]),
        piped(b"", &["add"], &["content", "is empty"]),
        piped(b"\n", &["add", "-"], &["content", "is empty"]),
        piped(b"caf\xe9", &["add"], &["content", "UTF-8", "offset 3"]),
        piped(b"a\0b", &["add"], &["content", "NUL byte at offset 1"]),
        Mistake {
            code: 6,
            ..piped(&too_long, &["add"], &["content", "10485760"])
        },
        Mistake {
            code: 6,
            ..piped(&much_too_long, &["add"], &["content", "10485760"])
        },
    ]);
}

#[test]
fn bad_lines() {
    let unknown = b"{\"content\":\"x\"}\n{\"contnt\":\"x\"}\n";
    let nested = format!(
        "{{\"content\":\"x\",\"body\":{}1{}}}",
        "[".repeat(101),
        "]".repeat(101)
    );
    try_all(&[
        piped(
            unknown,
            &["add", "--jsonl"],
            &["stdin, line 2", "contnt", "content", "nothing was"],
        ),
        piped(
            b"{\"content\":\"\"}",
            &["add", "--jsonl"],
            &["line 1", "is empty"],
        ),
        piped(
            b"\n\n{\"content\":",
            &["add", "--jsonl"],
            &["line 3", "column 11"],
        ),
        piped(b"[1]", &["add", "--jsonl"], &["line 1"]),
        piped(
            b"{\"content\":\"\xff\"}",
            &["add", "--jsonl"],
            &["line 1", "UTF-8", "offset 12"],
        ),
        piped(
            b"{\"content\":\"a\\u0000\"}",
            &["add", "--jsonl"],
            &["line 1", "NUL byte"],
        ),
        piped(nested.as_bytes(), &["add", "--jsonl"], &["line 1", "deep"]),
        piped(
            b"{\"content\":\"x\",\"importance\":2}",
            &["add", "--jsonl"],
            &["importance", "is 2"],
        ),
        piped(
            b"{\"content\":\"x\",\"kind\":\"nto\"}",
            &["add", "--jsonl"],
            &["nto", "note"],
        ),
        piped(
            b"{}",
            &["add", "--jsonl", "--user", "ann"],
            &["--jsonl", "--user"],
        ),
    ]);
}

#[test]
fn bad_records() {
    let newer = b"{\"v\":2,\"id\":\"n\",\"scope\":\"semantic\"}";
    try_all(&[
        piped(newer, &["import", "-"], &["line 1", "record format 2"]),
        piped(
            b"{\"op\":\"add\",\"entry\":{}}",
            &["import", "-"],
            &["line 1", "`op`"],
        ),
        piped(
            b"{\"v\":1,\"id\":\"n\",\"extra\":1}",
            &["import", "-"],
            &["line 1", "`extra`"],
        ),
        piped(b"\x1f\x8b\x08\x00", &["import", "-"], &["line 1", "UTF-8"]),
        Mistake {
            code: 3,
            ..mistake(
                &["import", "nowhere.jsonl"],
                &["nowhere.jsonl", "No such file"],
            )
        },
        mistake(&["import", "."], &["cannot be read", "directory"]),
        Mistake {
            code: 3,
            ..mistake(
                &["add", "--file", "nowhere.md"],
                &["nowhere.md", "No such file"],
            )
        },
    ]);
}

#[test]
fn help_and_errors_agree_on_importance_and_tags() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&["note", "add", "--help"]).ok();
    assert!(help.contains("From 0 (least) to 1 (most); 2 to 10 are read as tenths"));
    assert!(help.contains("Words to find it by, without spaces"));
    let add = |option: &str, value: &str| sandbox.run(&["note", "add", value, option, value]);
    let (_, error) = add("--importance", "11").failed();
    assert!(
        error.contains("--importance: is 11; from 0 to 10 is allowed"),
        "{error}"
    );
    let noted = add("--importance", "5");
    assert!(
        noted.code == 0 && noted.err.contains("read as 0.5"),
        "{}",
        noted.err
    );
    add("--tag", "thời-tiết").ok();
    let (_, error) = add("--tag", "two words").failed();
    assert!(error.contains("characters without spaces"), "{error}");
}

#[test]
fn a_negative_duration_is_refused_as_a_duration() {
    let sandbox = Sandbox::new();
    for (args, expected) in [
        (
            &["add", "x", "--ttl", "-3d"][..],
            "--ttl: `-3d` is not a duration",
        ),
        (
            &["note", "add", "x", "--ttl", "-3d"],
            "--ttl: `-3d` is not a duration",
        ),
        (&["list", "--since", "-7d"], "--since: `-7d` is not a time"),
        (
            &["add", "x", "--created", "-1h"],
            "--created: `-1h` is not a time",
        ),
    ] {
        let (code, said) = sandbox.run(args).failed();
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected) && !said.contains("tip:"), "{said}");
    }
}
