//! Secrets stay out at every door, and no error repeats one.

use serde_json::json;

use crate::sandbox::{Ran, Sandbox};

/// A part of the key that no mask shows.
const INNER: &str = "a8Kd03";

/// Put together here so that no scanner takes this file for a leak.
fn key() -> String {
    format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p")
}

fn says() -> String {
    format!("deploy with {} today", key())
}

/// The beginning of a command that tells the memory something.
const WRITE: &str = "write --user ann --session s1";

/// Every command that takes in what somebody says.
fn commands(sandbox: &Sandbox) -> Vec<Vec<String>> {
    let (says, json) = (says(), json!({"content": says()}).to_string());
    let message = json!({"role": "user", "content": says}).to_string();
    let step = json!({"tool": "ssh", "input": {"x": says}}).to_string();
    let end = json!({"context": {"tasks": [says]}}).to_string();
    std::fs::create_dir_all(sandbox.path("skills/deploy")).unwrap();
    let skill =
        format!("---\nname: deploy\ndescription: deploys\n---\n\n## Steps\n\n1. `ssh`: {says}\n");
    sandbox.file("skills/deploy/SKILL.md", skill);
    sandbox.file("page.md", format!("# Page\n\n{says}\n"));
    let write = |scope: &str, data: &str| {
        let words = WRITE.split(' ').chain(["--scope", scope, "--data", data]);
        words.map(str::to_owned).collect()
    };
    let plain: [&[&str]; 12] = [
        &["note", "add", &says],
        &["note", "add", "tagged", "--tag", &key()],
        &["add", &says],
        &["add", "x", "--kind", "event", "--summary", &says],
        &["add", "x", "--metadata", &format!("k={says}")],
        &["chat", "append", "s1", &says],
        &["chat", "append", "s1", &says, "--files", "."],
        &["ingest", "page.md"],
        &["experience", "log", &step],
        &["skill", "import", "skills"],
        &[
            "agent",
            "decide",
            "--create",
            "coder",
            "Deploy",
            "--decision",
            &says,
        ],
        &["agent", "end", "coder", "--data", &end],
    ];
    let words = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut all: Vec<Vec<String>> = plain.iter().map(words).collect();
    all.push(write("dialog", &message));
    all.push(write("semantic", &json));
    all.push(write(
        "state",
        &json!({"state": {"note": says}}).to_string(),
    ));
    all.push(write("profile", &json!({"note": says}).to_string()));
    all.push(write("experience", &step));
    all
}

fn run(sandbox: &Sandbox, words: &[String]) -> Ran {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    sandbox.run(&words)
}

/// Everything that the program has written.
fn everything(sandbox: &Sandbox) -> Vec<u8> {
    let (mut open, mut all) = (vec![sandbox.folder().to_owned()], Vec::new());
    while let Some(path) = open.pop() {
        let name = path.display().to_string();
        match path.is_dir() {
            true => open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|one| one.unwrap().path()),
            ),
            false if name.ends_with("SKILL.md") || name.ends_with("page.md") => {}
            false => all.extend(std::fs::read(&path).unwrap()),
        }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn every_command_masks_them_and_says_so() {
    let sandbox = Sandbox::new();
    for words in commands(&sandbox) {
        let ran = run(&sandbox, &words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        let told = format!("{}{}", ran.out, ran.err);
        assert!(told.contains("A secret was found"), "{words:?}: {told}");
        assert!(!told.contains(INNER), "{words:?}: {told}");
    }
    assert!(!holds(&everything(&sandbox), INNER));
}

#[test]
fn every_command_refuses_them_if_that_is_the_policy() {
    let sandbox = Sandbox::new().with("MNEMON_SECRETS", "refuse");
    for words in commands(&sandbox) {
        let (code, error) = run(&sandbox, &words).failed();
        assert_eq!(code, 2, "{words:?}: {error}");
        assert!(
            error.contains("holds a secret in line"),
            "{words:?}: {error}"
        );
        assert!(!error.contains(INNER), "{words:?}: {error}");
    }
    assert!(!holds(&everything(&sandbox), INNER));
}

#[test]
fn no_error_repeats_one() {
    let sandbox = Sandbox::new();
    let key = key();
    let pair = format!("token={key}");
    let badly_written = ["--scope", "dialog", "--data", &pair];
    let badly_written: Vec<&str> = WRITE.split(' ').chain(badly_written).collect();
    for words in [
        &["note", "add", "x", "--metadata", "hunter2-only-a-value"][..],
        &["note", "add", "x", "--metadata", &pair, "--metadata", &pair],
        &["note", "add", "x", "--meta-json", &format!("{{\"{pair}")],
        &["note", "add", "x", "--tag", &format!("my {key}")],
        &["note", "add", "--file", &format!("../{key}")],
        &["note", "get", &format!("{key} x")],
        &["add", "x", "--kind", &key],
        &badly_written,
        &["agent", "activate", &key],
        &["add", "x", "--id", &key],
        &["add", "x", "--key", &key],
        &["note", "add", "x", "--key", &key],
        &["add", "x", &format!("--{key}")],
        &["add", "x", &format!("--{key}=1")],
        &[&key],
        &["note", &key],
    ] {
        for as_json in [false, true] {
            let mut words = words.to_vec();
            words.extend(as_json.then_some("--json"));
            let (_, error) = sandbox.run(&words).failed();
            assert!(
                !error.contains(INNER) && !error.contains("hunter2"),
                "{words:?}: {error}"
            );
        }
    }
}

/// Fifty plain drafts, and one with a secret.
fn drafts() -> String {
    let plain = |number: usize| json!({"content": format!("plain {number}")}).to_string();
    let mut lines: Vec<String> = (1..=50).map(plain).collect();
    lines.push(json!({"content": says()}).to_string());
    lines.join("\n")
}

#[test]
fn the_line_with_the_secret_is_named() {
    let sandbox = Sandbox::new().with("MNEMON_SECRETS", "refuse");
    let (_, error) = sandbox
        .pipe(drafts().as_bytes(), &["add", "--jsonl"])
        .failed();
    assert!(error.contains("line 51"), "{error}");
    assert!(error.contains("nothing was written"), "{error}");
    assert!(!error.contains(INNER), "{error}");
    let other = Sandbox::new().with("MNEMON_SECRETS", "allow");
    assert_eq!(other.pipe(drafts().as_bytes(), &["add", "--jsonl"]).code, 0);
    let exported = other.run(&["export"]).out;
    let line = exported.lines().position(|line| line.contains(INNER));
    let line = line.unwrap() + 1;
    let (_, error) = sandbox.pipe(exported.as_bytes(), &["import", "-"]).failed();
    assert!(error.contains(&format!("line {line}")), "{error}");
    assert!(!error.contains(INNER), "{error}");
}
