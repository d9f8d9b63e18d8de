//! Conversations in a project's files, as users meet them.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const LOG: &str = ".airsspec/contexts/agent";

/// A sandbox with these projects, whose settings are given.
fn sandbox(projects: &[&str], settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    for project in projects {
        std::fs::create_dir_all(sandbox.path(&format!("{project}/{LOG}"))).unwrap();
        sandbox.file(&format!("{project}/.airsspec/airsspec.toml"), settings);
    }
    sandbox
}

fn chat(sandbox: &Sandbox, args: &[&str], project: &str) -> String {
    sandbox
        .run(&[&["chat"], args, &["--files", project]].concat())
        .ok()
}

fn window(sandbox: &Sandbox, session: &str, project: &str) -> Value {
    sandbox
        .run(&["chat", "show", session, "--files", project, "--json"])
        .json()
}

fn texts(window: &Value) -> Vec<String> {
    let messages = window["messages"].as_array().unwrap().iter();
    let text = |seen: &Value| {
        seen["message"]["content"][0]["text"]
            .as_str()
            .map(str::to_owned)
    };
    messages
        .map(|seen| text(seen).unwrap_or_default())
        .collect()
}

fn found(sandbox: &Sandbox, text: &str) -> bool {
    sandbox
        .run(&["search", text, "--limit", "3"])
        .ok()
        .contains(text)
}

#[test]
fn two_projects_with_a_session_of_the_same_name_keep_their_own() {
    let sandbox = sandbox(&["shop", "bank"], "[memory]\nhot_window_size = 2\n");
    chat(
        &sandbox,
        &["append", "main", "Build the shop: customers order flowers"],
        "shop",
    );
    chat(
        &sandbox,
        &["append", "main", "Build the bank: a nightly audit report"],
        "bank",
    );
    for n in 1..=3 {
        chat(
            &sandbox,
            &["append", "main", &format!("shop step {n} on flowers")],
            "shop",
        );
        chat(
            &sandbox,
            &["append", "main", &format!("bank step {n} on ledgers")],
            "bank",
        );
    }
    assert!(found(&sandbox, "nightly audit report"));
    assert!(found(&sandbox, "bank step 1 on ledgers"));
    let shown = window(&sandbox, "main", "bank");
    assert_eq!(
        texts(&shown),
        ["bank step 2 on ledgers", "bank step 3 on ledgers"]
    );
    let tail = chat(&sandbox, &["tail", "main"], "shop");
    assert!(
        tail.contains("customers order flowers") && !tail.contains("bank"),
        "{tail}"
    );
}

#[test]
fn a_compression_lasts() {
    let sandbox = sandbox(&["p"], "[memory]\nmax_tokens = 500\n");
    for n in 0..28 {
        let line = format!(
            "We decided that module {n} uses port {} of the box",
            8000 + n
        );
        chat(&sandbox, &["append", "s2", &line, "--leave-window"], "p");
    }
    assert_eq!(window(&sandbox, "s2", "p")["due"], true);
    let done = chat(&sandbox, &["compress", "s2"], "p");
    assert!(done.starts_with("HISTORY_PAGE: 14 messages, "), "{done}");
    assert!(done.contains("; page: history-001.md; "), "{done}");
    let shown = window(&sandbox, "s2", "p");
    assert_eq!(texts(&shown)[0], "[History Link: history-001.md]");
    assert!(
        shown["due"] == false && shown["tokens"].as_u64() <= Some(400),
        "{shown}"
    );
    let again = chat(&sandbox, &["compress", "s2"], "p");
    assert!(again.contains("nothing was compressed"), "{again}");
    let uuid = shown["messages"][0]["uuid"].as_str().unwrap();
    let reloaded = chat(&sandbox, &["reload", "s2", uuid], "p");
    assert_eq!(reloaded.lines().count(), 14);
    let page =
        std::fs::read_to_string(sandbox.path("p/.airsspec/knowledge/library/history-001.md"));
    let page = page.unwrap();
    assert!(
        page.contains(&format!("reload: {uuid}")) && page.contains("lines: 14"),
        "{page}"
    );
    // An append that crosses the limit compresses.
    for n in 28..60 {
        let line = format!(
            "We decided that module {n} uses port {} of the box",
            8000 + n
        );
        chat(&sandbox, &["append", "s2", &line], "p");
    }
    assert_eq!(window(&sandbox, "s2", "p")["due"], false);
}

#[test]
fn a_log_with_damage_says_what_was_skipped_and_lines_of_four_types_are_appended() {
    let sandbox = sandbox(&["p"], "");
    sandbox.file(
        &format!("p/{LOG}/s1.jsonl"),
        "{\"type\":\"user\",\"content\":\"one\"}\r\nnonsense\n{\"type\":\"user\",\"content\":\"tw",
    );
    let ran = sandbox.run(&["chat", "show", "s1", "--files", "p"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("user: one"), "{}", ran.out);
    assert!(ran.err.contains("has no end yet"), "{}", ran.err);
    assert!(ran.err.contains("it is not a JSON object"), "{}", ran.err);
    let action = json!({"type": "action", "tool": "bake", "params": {"hot": 180}}).to_string();
    sandbox.run(&["chat", "append", "s1", "--files", "p", "--line", &action]);
    let observation = json!({"type": "observation", "result": "it is done"}).to_string();
    chat(&sandbox, &["append", "s1", "--line", &observation], "p");
    let tail = chat(&sandbox, &["tail", "s1"], "p");
    assert!(
        tail.ends_with("assistant: → bake {\"hot\":180}\ntool: ← bake: it is done\n"),
        "{tail}"
    );
    for (args, why) in [
        (&["append", "../s1", "x"][..], "session"),
        (
            &["append", "s1", "--line", "{\"type\":\"action\"}"],
            "not a line of a log",
        ),
        (
            &[
                "append",
                "s1",
                "--line",
                "{\"type\":\"user\",\"content\":\" \"}",
            ],
            "is empty",
        ),
    ] {
        let (code, error) = sandbox
            .run(&[&["chat"], args, &["--files", "p"]].concat())
            .failed();
        assert!(code == 2 && error.contains(why), "{args:?}: {error}");
    }
}

#[test]
fn the_projects_own_settings_go_before_ours_and_flags_before_both() {
    let sandbox = sandbox(&["p"], "[memory]\nhot_window_size = 2\n");
    sandbox.config("[memory]\nhot_window_size = 3\nmax_tokens = 1000\n");
    for n in 0..4 {
        chat(&sandbox, &["append", "s1", &format!("line {n}")], "p");
    }
    let shown = window(&sandbox, "s1", "p");
    assert_eq!(texts(&shown), ["line 2", "line 3"]);
    assert_eq!(shown["token_limit"], 800, "what it does not say is ours");
    let flag = [
        "chat",
        "show",
        "s1",
        "--files",
        "p",
        "--max-token",
        "2000",
        "--json",
    ];
    assert_eq!(sandbox.run(&flag).json()["token_limit"], 1600);
}

#[test]
fn a_wrong_folder_is_refused_and_not_made() {
    let sandbox = Sandbox::new();
    let (code, error) = sandbox
        .run(&["chat", "append", "s1", "x", "--files", "nowhere"])
        .failed();
    assert!(code == 2 && error.contains("is not a folder"), "{error}");
    assert!(!sandbox.path("nowhere").exists());
}

#[test]
fn the_same_key_is_one_line() {
    let sandbox = sandbox(&["p"], "");
    let first = chat(&sandbox, &["append", "s", "hello", "--key", "a"], "p");
    let again = chat(&sandbox, &["append", "s", "hello", "--key", "a"], "p");
    let id = first.split_whitespace().nth(1).unwrap();
    assert_eq!(again.trim_end(), format!("already there: {id}"));
    let log = std::fs::read_to_string(sandbox.path(&format!("p/{LOG}/s.jsonl"))).unwrap();
    assert_eq!(log.lines().count(), 1);
    assert_eq!(texts(&window(&sandbox, "s", "p")), ["hello"]);
}

#[test]
fn a_log_of_another_tool_is_found_after_one_show() {
    let sandbox = sandbox(&["p"], "").with("MNEMON_EMBEDDER", "none");
    let lines: String = (0..3000)
        .map(|n| json!({"type": "user", "content": format!("Decision {n} token format T{n}")}))
        .map(|line| format!("{line}\n"))
        .collect();
    // Long enough that its end is read first.
    let padding = json!({"type": "thought", "content": "x".repeat(1_200_000)}).to_string();
    sandbox.file(&format!("p/{LOG}/s1.jsonl"), format!("{padding}\n{lines}"));
    assert_eq!(texts(&window(&sandbox, "s1", "p")).len(), 30);
    assert!(found(&sandbox, "Decision 5 token format T5"));
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert!(stats["records"].as_u64() >= Some(3001), "{stats}");
}

#[test]
fn long_names_are_shortened_and_none_is_told_twice() {
    let sandbox = sandbox(&["shop", "bank"], "");
    let long = "long-".repeat(30);
    for (name, project) in [(&long[..], "shop"), ("r", "shop"), ("r", "bank")] {
        chat(&sandbox, &["append", name, "x"], project);
        sandbox
            .run(&[
                "chat", "append", name, "x", "--user", "ann", "--files", project,
            ])
            .ok();
    }
    let (code, said) = sandbox.run(&["chat", "show", "r"]).failed();
    assert_eq!(code, 3);
    let place = |project: &str| {
        let root = sandbox.path(project).canonicalize().unwrap();
        format!("`r` in project {project} (pass --files {})", root.display())
    };
    for project in ["shop", "bank"] {
        assert_eq!(said.matches(&place(project)).count(), 1, "{said}");
    }
    let (_, said) = sandbox.run(&["chat", "show", &long]).failed();
    let short = format!("`{}…`", &long[..60]);
    assert!(
        said.contains(&format!("no conversation {short}; the nearest: {short} in")),
        "{said}"
    );
    assert!(!said.contains(&long), "{said}");
}

#[test]
fn a_snapshot_in_a_project_is_restored_and_deleted_there() {
    let sandbox = sandbox(&["shop"], "");
    chat(&sandbox, &["append", "s1", "flowers"], "shop");
    chat(&sandbox, &["snapshot", "s1", "before"], "shop");
    chat(&sandbox, &["clear", "s1"], "shop");
    chat(&sandbox, &["restore", "s1", "before"], "shop");
    assert_eq!(texts(&window(&sandbox, "s1", "shop")), ["flowers"]);
    let delete = ["delete", "s1", "--snapshot", "before", "--yes"];
    assert_eq!(
        chat(&sandbox, &delete, "shop"),
        "deleted: snapshot before\n"
    );
    let restore = ["chat", "restore", "s1", "before", "--files", "shop"];
    assert_eq!(sandbox.run(&restore).failed().0, 3);
    assert_eq!(texts(&window(&sandbox, "s1", "shop")), ["flowers"]);
}
