//! A conversation on the command line.

use crate::sandbox::Sandbox;

const CALL: &str = r#"{"role":"ASSISTANT","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"ls","input":{"path":"/tea"}}]}"#;
const RESULT: &str = r#"{"role":"TOOL","content":[{"type":"tool_result","id":"c1","name":"ls","output":[{"type":"text","text":"green.txt\nblack.txt"}]}]}"#;

/// A talk of twelve messages; the window is due from ten on and keeps the last four.
fn talked() -> Sandbox {
    let sandbox = Sandbox::new();
    for n in 0..5 {
        let ask = format!("We decided to buy {n} boxes of tea from Ann. What else do we need?");
        append(&sandbox, &[&ask, "--leave-window"]);
        let answer = format!("Noted, {n} boxes. The shop opens at {n}:30 and closes early.");
        append(
            &sandbox,
            &[&answer, "--role", "assistant", "--leave-window"],
        );
    }
    append(&sandbox, &["--message", CALL, "--leave-window"]);
    append(&sandbox, &["--message", RESULT, "--leave-window"]);
    sandbox
}

fn append(sandbox: &Sandbox, more: &[&str]) -> String {
    let args = ["chat", "append", "s1", "--user", "ann"];
    sandbox.run(&[&args[..], more].concat()).ok()
}

const SIZE: &[&str] = &["--msg-threshold", "10", "--last-keep", "4"];

fn chat<'a>(verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["chat", verb, "s1", "--user", "ann"][..], more].concat()
}

#[test]
fn the_window_is_drawn_before_and_after_it_is_compressed() {
    let sandbox = talked();
    let before = sandbox.run(&chat("show", SIZE)).ok();
    let done = sandbox.run(&chat("compress", SIZE)).ok();
    let after = sandbox.run(&chat("show", SIZE)).ok();
    let tail = sandbox.run(&chat("tail", &["-n", "3"])).ok();
    let (tail, more) = tail.split_once("\n\n").unwrap();
    assert!(more.starts_with("There is more: --before "), "{more}");
    let tail = format!("{tail}\n");
    let all = [before, done, after, tail].join("----\n");
    insta::assert_snapshot!(sandbox.redact(&all));
}

#[test]
fn what_was_replaced_is_read_back() {
    let sandbox = talked();
    let told = sandbox.run(&chat("tail", &["-n", "12"])).ok();
    sandbox.run(&chat("compress", SIZE)).ok();
    assert_eq!(sandbox.run(&chat("tail", &["-n", "12"])).ok(), told);
    let shown = sandbox
        .run(&chat("show", &[SIZE, &["--json"]].concat()))
        .json();
    let first = &shown["messages"][0];
    assert_eq!(first["as"], "summarised");
    let uuid = first["uuid"].as_str().unwrap();
    let back = sandbox.run(&chat("reload", &[uuid])).ok();
    assert!(told.starts_with(&back) && !back.is_empty(), "{back}");
    let json = sandbox.run(&chat("reload", &[uuid, "--json"])).json();
    assert_eq!(json["messages"][0]["role"], "USER");
    // A page or a log may name one that was undone.
    let gone = "01890a5d-ac96-774b-bcce-b302099a8057";
    let (code, said) = sandbox.run(&chat("reload", &[gone])).failed();
    assert!(
        code == 3 && said.contains("it was undone or deleted"),
        "{said}"
    );
    // Another user has no such thing.
    let other = ["chat", "reload", "s1", uuid, "--user", "bob"];
    let (code, said) = sandbox.run(&other).failed();
    assert_eq!(code, 3);
    assert!(said.contains("the nearest: `s1` of user `ann`"), "{said}");
}

#[test]
fn appending_compresses_when_it_is_due() {
    let sandbox = talked();
    let args = chat("append", &[SIZE, &["Is there tea?"]].concat());
    let said = sandbox.run(&args).ok();
    assert!(said.contains("the window was compressed"), "{said}");
    let again = sandbox.run(&chat("compress", &[SIZE, &["--if-needed"]].concat()));
    assert!(again.ok().starts_with("nothing was compressed"));
    let exact = [SIZE, &["--model", "gpt-4o", "--json"]].concat();
    let counted = sandbox.run(&chat("show", &exact)).json();
    assert!(counted["tokens"].as_u64().unwrap() > 50);
    assert_eq!(counted["due"], false);
    // A name that is not known gives bounds, and that is said.
    let typo = [SIZE, &["--model", "gtp-4o"]].concat();
    let ran = sandbox.run(&chat("show", &typo));
    assert!(ran.err.contains("upper bounds, not counts"), "{}", ran.err);
}

#[test]
fn a_dry_run_shows_the_summary_and_writes_nothing() {
    let sandbox = talked();
    let before = sandbox.run(&chat("show", SIZE)).ok();
    let said = sandbox
        .run(&chat("compress", &[SIZE, &["--dry-run"]].concat()))
        .ok();
    for part in [
        "HISTORY_SUMMARY: 8 messages (# 0 to # 7)",
        "- user: We decided to buy 3 boxes of tea from Ann.",
        "nothing was written",
    ] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    assert_eq!(sandbox.run(&chat("show", SIZE)).ok(), before);
    let json = [SIZE, &["--dry-run", "--json"]].concat();
    let json = sandbox.run(&chat("compress", &json)).json();
    assert_eq!(json["changes"][0]["strategy"], "HISTORY_SUMMARY");
}

/// Sixteen messages and a half of a percent of the tokens: nothing is folded unless a user asks for
/// it, and then only what lies before the last messages.
#[test]
fn a_short_talk_is_left_alone() {
    let sandbox = talked();
    let said = sandbox.run(&chat("compress", &[])).ok();
    assert!(said.starts_with("nothing was compressed"), "{said}");
    let said = sandbox.run(&chat("compress", &["--last-keep", "6"])).ok();
    assert!(said.starts_with("HISTORY_SUMMARY: 6 messages"), "{said}");
    let alone = ["--msg-threshold", "30"];
    sandbox.run(&chat("show", &alone)).ok();
}

#[test]
fn a_message_comes_from_stdin_as_well() {
    let sandbox = Sandbox::new();
    let args = ["chat", "append", "s1", "--name", "Ann"];
    sandbox.pipe("trà xanh\n".as_bytes(), &args).ok();
    sandbox
        .run(&["chat", "append", "s1", "--message", CALL])
        .ok();
    let json = ["chat", "append", "s1", "--message", "-", "--key", "k"];
    for _ in 0..2 {
        sandbox.pipe(RESULT.as_bytes(), &json).ok();
    }
    let tail = sandbox.run(&["chat", "tail", "s1"]).ok();
    assert_eq!(
        tail,
        "user Ann: trà xanh\nassistant: I look. → ls {\"path\":\"/tea\"}\n\
         tool: ← ls: green.txt\nblack.txt\n"
    );
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let sandbox = Sandbox::new();
    sandbox.run(&["chat", "append", "s1", "x"]).ok();
    let long = "x".repeat(256);
    let cases: &[(&[&str], &str)] = &[
        (&["chat", "append", "", "x"], "session: is empty"),
        (&["chat", "append", "a/b", "x"], "a plain name, not a path"),
        (&["chat", "append", "..", "x"], "a plain name, not a path"),
        (&["chat", "append", "a\nb", "x"], "control character"),
        (&["chat", "append", &long, "x"], "256 characters"),
        (&["chat", "append", "s1", " "], "is empty"),
        (
            &["chat", "append", "s1", "--message", "{}"],
            "neither `role` nor `content`",
        ),
        (&["chat", "append", "s1", "x", "--role", "dog"], "assistant"),
        (&["chat", "tail", "s1", "-n", "1001"], "from 1 to 1000"),
        (
            &[
                "chat",
                "show",
                "s1",
                "--last-keep",
                "9",
                "--msg-threshold",
                "9",
            ],
            "last_keep: is 9",
        ),
        (
            &["chat", "show", "s1", "--max-token", "0"],
            "max_token: is 0",
        ),
    ];
    for (args, message) in cases {
        let (code, said) = sandbox.run(args).failed();
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
    }
}

/// Calls and results of the messages in a conversation.
fn tools_of(sandbox: &Sandbox, session: &str) -> Vec<serde_json::Value> {
    let tail = sandbox.run(&["chat", "tail", session, "--json"]).json();
    let messages = tail["messages"].as_array().unwrap().clone();
    let blocks = messages.into_iter().flat_map(|message| {
        let blocks = message["content"].as_array().unwrap().clone();
        let role = message["role"].clone();
        let is_tool = |block: &serde_json::Value| block["type"] != "text";
        let blocks = blocks.into_iter().filter(is_tool);
        blocks.map(move |block| serde_json::json!([role, block]))
    });
    blocks.collect()
}

const OPENAI_CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]}"#;
const OPENAI_RESULT: &str = r#"{"role":"tool","tool_call_id":"c1","content":"Sunny"}"#;
const ANTHROPIC_CALL: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"weather","input":{"city":"Rome"}}]}"#;
const ANTHROPIC_RESULT: &str =
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"Sunny"}]}"#;

#[test]
fn tool_calls_of_openai_and_anthropic_are_read() {
    let sandbox = Sandbox::new();
    let add = |session: &str, json: &str| {
        let args = ["chat", "append", session, "--message", json];
        sandbox.run(&args).ok();
    };
    let lines = format!("{OPENAI_CALL}\n{OPENAI_RESULT}\n");
    let args = ["chat", "append", "lines", "--jsonl", "-"];
    sandbox.pipe(lines.as_bytes(), &args).ok();
    add("openai", &format!("[{OPENAI_CALL},{OPENAI_RESULT}]"));
    add(
        "anthropic",
        &format!("[{ANTHROPIC_CALL},{ANTHROPIC_RESULT}]"),
    );
    let expected = [
        serde_json::json!(["ASSISTANT", {"type": "tool_use", "id": "c1", "name": "weather",
            "input": {"city": "Rome"}}]),
        serde_json::json!(["TOOL", {"type": "tool_result", "id": "c1", "name": "weather",
            "output": [{"type": "text", "text": "Sunny"}]}]),
    ];
    for session in ["lines", "openai", "anthropic"] {
        assert_eq!(tools_of(&sandbox, session), expected, "{session}");
    }
    // A printed request can be appended to another conversation.
    for format in ["openai", "anthropic"] {
        add(
            format,
            r#"[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"}]"#,
        );
        let show = |session: &str| {
            let args = [
                "chat", "show", session, "--format", format, "--model", "gpt-4o",
            ];
            sandbox.run(&args).ok()
        };
        let body = show(format);
        let copy = format!("copy of {format}");
        sandbox
            .pipe(
                body.as_bytes(),
                &["chat", "append", &copy, "--message", "-"],
            )
            .ok();
        assert_eq!(tools_of(&sandbox, &copy), expected, "{body}");
        let again = show(&copy);
        let messages = |body: &str| {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            (body["system"].clone(), body["messages"].clone())
        };
        assert_eq!(messages(&again), messages(&body));
    }
}

#[test]
fn a_message_without_content_is_refused() {
    let sandbox = Sandbox::new();
    for json in [
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[]}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","content":""}"#,
    ] {
        let args = ["chat", "append", "s1", "--message", json];
        let (code, said) = sandbox.run(&args).failed();
        assert_eq!(code, 2, "{json}: {said}");
        assert!(said.contains("has no content"), "{json}: {said}");
    }
}

#[test]
fn a_nul_in_a_text_is_replaced() {
    let sandbox = Sandbox::new();
    let ran = sandbox.pipe(b"a\0b", &["chat", "append", "s1"]);
    assert!(ran.err.contains("NUL character"), "{}", ran.err);
    let tail = sandbox.run(&["chat", "tail", "s1"]).ok();
    assert_eq!(tail, "user: a\u{fffd}b\n");
}

#[test]
fn a_key_says_whether_its_message_is_still_there() {
    let sandbox = Sandbox::new();
    let args = ["chat", "append", "s1", "Where is the tea?", "--key", "k"];
    sandbox.run(&["chat", "append", "s1", "Hello"]).ok();
    let said = sandbox.run(&args).ok();
    assert!(said.starts_with("appended "), "{said}");
    let said = sandbox.run(&args).ok();
    assert!(said.starts_with("already there: "), "{said}");
    sandbox.run(&["undo"]).ok();
    let (code, said) = sandbox.run(&args).failed();
    assert!(said.contains("was used before"), "{code}: {said}");
    assert!(said.contains("use another key"), "{said}");
    assert_eq!(sandbox.run(&["chat", "tail", "s1"]).ok(), "user: Hello\n");
}

#[test]
fn a_tag_or_a_uuid_in_capitals_is_reloaded() {
    let sandbox = talked();
    sandbox.run(&chat("compress", SIZE)).ok();
    let shown = sandbox
        .run(&chat("show", &[SIZE, &["--json"]].concat()))
        .json();
    let uuid = shown["messages"][0]["uuid"].as_str().unwrap();
    let back = sandbox.run(&chat("reload", &[uuid])).ok();
    let tag = format!("<!-- CONTEXT_OFFLOAD: uuid={uuid} -->");
    for form in [uuid.to_uppercase(), tag] {
        assert_eq!(sandbox.run(&chat("reload", &[&form])).ok(), back, "{form}");
    }
    for unknown in ["a b", "01890a5d-ac96-774b-bcce-b302099a8057"] {
        let (code, said) = sandbox.run(&chat("reload", &[unknown])).failed();
        assert_eq!(code, 3, "{said}");
        assert!(
            said.contains("no replaced message with this uuid"),
            "{said}"
        );
        assert!(!said.contains("mnemon list"), "{said}");
    }
}

#[test]
fn a_query_refuses_a_folder_that_is_not_there() {
    let sandbox = Sandbox::new();
    let args = ["chat", "query", "x", "--files", "nofolder"];
    let (code, said) = sandbox.run(&args).failed();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("nofolder is not a folder"), "{said}");
}
