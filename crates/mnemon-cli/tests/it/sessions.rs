//! Saving, loading and copying sessions, as users meet them.

use serde_json::json;

use crate::sandbox::Sandbox;

const STATE: &str = r#"{"memory":{"messages":[]},"agent":{"name":"planner"}}"#;

/// Saves, copies and deletes in the store and in a folder alike.
fn round(place: &[&str]) {
    let sandbox = Sandbox::new();
    let run = |args: &[&str]| {
        let all: Vec<&str> = [&["session"], args, place].concat();
        sandbox.run(&all)
    };
    let all: Vec<&str> = [&["session", "save", "s1"], place].concat();
    let saved = sandbox.pipe(STATE.as_bytes(), &all).ok();
    assert_eq!(saved, "saved: s1 with 2 components\n");
    let loaded = run(&["load", "s1", "--json"]).json();
    assert_eq!(loaded["sessionId"], "s1");
    assert_eq!(loaded["components"]["agent"], json!({"name": "planner"}));
    let text = run(&["load", "s1"]).ok();
    assert!(text.contains("\n  \"components\": {"), "{text}");

    assert_eq!(
        run(&["fork", "s1", "s2"]).ok(),
        "forked: s2 with 2 components\n"
    );
    let (code, error) = run(&["fork", "s1", "s2"]).failed();
    assert_eq!(code, 4, "{error}");
    run(&["snapshot", "s1", "first"]).ok();
    let file = sandbox.file("new.json", r#"{"memory":{"messages":[1]}}"#);
    assert_eq!(
        run(&["save", "s1", "--file", &file]).ok(),
        "saved: s1 with 1 component\n"
    );
    run(&["restore", "s1", "first"]).ok();
    let again = run(&["load", "s1", "--json"]).json();
    assert_eq!(again["components"], loaded["components"]);

    let listed = run(&["list", "--json"]).json();
    let names: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|info| info["session"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["s1", "s1@first", "s2"]);
    assert!(run(&["list"]).ok().starts_with("SESSION"));

    assert_eq!(run(&["delete", "s2", "--yes"]).ok(), "deleted: s2\n");
    let (code, error) = run(&["delete", "s2", "--yes"]).failed();
    assert!(
        code == 3 && error.contains("no saved session s2"),
        "{error}"
    );
    let (code, _) = run(&["load", "s2"]).failed();
    assert_eq!(code, 3);
}

#[test]
fn sessions_are_saved_loaded_copied_and_deleted() {
    round(&[]);
    round(&["--user", "ann"]);
    round(&["--folder", "sessions"]);
    round(&["--store", "jsonl:notes"]);
}

#[test]
fn a_deleted_session_comes_back_with_undo() {
    let sandbox = Sandbox::new();
    sandbox
        .pipe(STATE.as_bytes(), &["session", "save", "s1"])
        .ok();
    sandbox.run(&["session", "delete", "s1", "--yes"]).ok();
    sandbox.run(&["undo"]).ok();
    sandbox.run(&["session", "load", "s1"]).ok();
}

#[test]
fn ids_and_states_that_make_no_sense_change_nothing() {
    let sandbox = Sandbox::new();
    sandbox
        .pipe(STATE.as_bytes(), &["session", "save", "s1"])
        .ok();
    let before = sandbox.state();
    let long = "x".repeat(256);
    for id in ["", " ", "a/b", "..", "a\nb", "a\\b", &long] {
        for place in [&[][..], &["--folder", "f"]] {
            let args: Vec<&str> = [&["session", "save", id], place].concat();
            let (code, error) = sandbox.pipe(STATE.as_bytes(), &args).failed();
            assert_eq!(code, 2, "{id}: {error}");
        }
    }
    for (state, why) in [
        ("", "JSON"),
        ("{", "JSON"),
        ("[1]", "a list"),
        ("{\"a\":1}", "`a` is a number"),
    ] {
        let (code, error) = sandbox
            .pipe(state.as_bytes(), &["session", "save", "s1"])
            .failed();
        assert!(code == 2 && error.contains(why), "{state}: {error}");
    }
    // A name may be short enough for us, and too long for a file.
    let (code, error) = sandbox
        .run(&["session", "load", &"x".repeat(255), "--folder", "f"])
        .failed();
    assert!(code == 2 && error.contains("260 bytes"), "{error}");
    assert_eq!(sandbox.state(), before);
    assert!(!sandbox.path("f").exists());
}

#[test]
fn a_file_of_another_shape_is_named_and_left_alone() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("f")).unwrap();
    sandbox.file("f/s1.json", "[1, 2]");
    sandbox.file("f/s2.json", STATE);
    for args in [
        ["session", "load", "s1", "--folder", "f"],
        ["session", "save", "s1", "--folder", "f"],
    ] {
        let (code, error) = sandbox.pipe(STATE.as_bytes(), &args).failed();
        assert_eq!(code, 11, "{error}");
        assert!(error.contains("s1.json is not a saved session"), "{error}");
        assert!(!error.contains("--store"), "the hint fits: {error}");
    }
    let kept = std::fs::read_to_string(sandbox.path("f/s1.json")).unwrap();
    assert_eq!(kept, "[1, 2]");
    let listed = sandbox
        .run(&["session", "list", "--folder", "f", "--json"])
        .json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["unreadable"].as_array().unwrap().len(), 1);
}

fn chat(sandbox: &Sandbox, session: &str, said: &str) {
    let args = ["chat", "append", session, said, "--user", "ann"];
    sandbox.run(&args).ok();
}

#[test]
fn saved_states_and_conversations_are_independent() {
    let sandbox = Sandbox::new();
    chat(&sandbox, "s1", "message 0");
    let run = |args: &[&str]| sandbox.run(&[&["session"], args, &["--user", "ann"]].concat());
    let (code, error) = run(&["snapshot", "s1", "v1"]).failed();
    assert!(
        code == 3 && error.contains("no saved session s1"),
        "{error}"
    );
    assert!(
        error.contains("mnemon session list"),
        "the hint fits: {error}"
    );
    let saved = ["session", "save", "s1", "--user", "ann"];
    sandbox.pipe(STATE.as_bytes(), &saved).ok();
    assert_eq!(
        run(&["snapshot", "s1", "v1"]).ok(),
        "saved: s1@v1 with 2 components\n"
    );
    assert_eq!(
        run(&["fork", "s1", "s2"]).ok(),
        "forked: s2 with 2 components\n"
    );
    let (code, error) = run(&["fork", "s1", "s2"]).failed();
    assert!(code == 4 && !error.contains("changed meanwhile"), "{error}");
    assert_eq!(run(&["delete", "s1@v1", "--yes"]).ok(), "deleted: s1@v1\n");
    let (code, _) = sandbox
        .run(&["chat", "tail", "s2", "--user", "ann"])
        .failed();
    assert_eq!(code, 3, "a fork of saved states is no conversation");
}

#[test]
fn a_session_file_with_a_byte_order_mark_is_read() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("f")).unwrap();
    sandbox.file("f/s1.json", format!("\u{feff}{STATE}"));
    let folder = ["--folder", "f"];
    let loaded = sandbox
        .run(&[&["session", "load", "s1", "--json"], &folder[..]].concat())
        .json();
    assert_eq!(loaded["components"]["agent"]["name"], "planner");
    let state = sandbox.file("state.json", format!("\u{feff}{STATE}"));
    sandbox
        .run(&["session", "save", "s2", "--file", &state])
        .ok();
}

#[test]
fn a_list_shows_no_records_that_only_hold_states() {
    let sandbox = Sandbox::new();
    for n in 0..3 {
        chat(
            &sandbox,
            "s1",
            &format!("We decided on number {n} of a long list of things to do"),
        );
    }
    sandbox
        .run(&[
            "chat",
            "compress",
            "s1",
            "--user",
            "ann",
            "--last-keep",
            "1",
        ])
        .ok();
    sandbox
        .pipe(STATE.as_bytes(), &["session", "save", "s1"])
        .ok();
    let kinds = |args: &[&str]| -> Vec<String> {
        let list = sandbox.run(&[&["list", "--json"], args].concat()).json();
        let records = list["records"].as_array().unwrap().iter();
        records
            .map(|record| record["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = kinds(&[]);
    assert!(
        all.contains(&"message".to_owned()) && !all.contains(&"session".to_owned()),
        "{all:?}"
    );
    assert!(
        !kinds(&["--kind", "session"]).is_empty(),
        "who asks for them sees them"
    );
}
