//! Listing, importing, copying and querying conversations on the command line.

use std::time::Instant;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn append(sandbox: &Sandbox, user: &str, session: &str, text: &str) {
    sandbox
        .run(&["chat", "append", session, text, "--user", user])
        .ok();
}

fn rows(listed: &Value) -> Vec<String> {
    let rows = listed["conversations"].as_array().unwrap().iter();
    rows.map(|row| {
        let labels = row["snapshots"].as_array().into_iter().flatten();
        let labels: Vec<&str> = labels.map(|one| one["label"].as_str().unwrap()).collect();
        format!(
            "{} {} {} {}",
            row["user"].as_str().unwrap(),
            row["session"].as_str().unwrap(),
            row["messages"],
            labels.join(",")
        )
    })
    .collect()
}

#[test]
fn conversations_are_listed_with_their_snapshots_page_by_page() {
    for store in ["sqlite:m.db", "jsonl:notes"] {
        let sandbox = Sandbox::new();
        let run = |args: &[&str]| sandbox.run(&[args, &["--store", store]].concat());
        for (user, session) in [("ann", "s1"), ("ann", "s1"), ("bob", "s2"), ("ann", "s3")] {
            run(&["chat", "append", session, "tea", "--user", user]).ok();
        }
        run(&["chat", "snapshot", "s1", "before", "--user", "ann"]).ok();
        let listed = run(&["chat", "list", "--json"]).json();
        assert_eq!(rows(&listed), ["ann s3 1 ", "bob s2 1 ", "ann s1 2 before"]);
        let first = run(&["chat", "list", "--user", "ann", "--limit", "1", "--json"]).json();
        assert_eq!(
            (rows(&first), &first["next"]),
            (vec!["ann s3 1 ".to_owned()], &json!(1))
        );
        let rest = [
            "chat", "list", "--user", "ann", "--limit", "1", "--skip", "1",
        ];
        let text = run(&rest).ok();
        assert!(
            text.starts_with("USER  SESSION") && text.contains("before"),
            "{text}"
        );
        assert!(!text.contains("There is more"), "{text}");
    }
}

/// Every column sorts, and pages follow the order.
#[test]
fn conversations_are_sorted_by_each_column() {
    let sandbox = Sandbox::new();
    for (user, session) in [("bob", "b"), ("ann", "c"), ("ann", "c"), ("cid", "A")] {
        append(&sandbox, user, session, "tea");
    }
    let sorted = |args: &[&str]| {
        let listed = sandbox.run(&[&["chat", "list", "--json"], args].concat());
        let rows = rows(&listed.json());
        let names = rows.iter().filter_map(|row| row.split(' ').nth(1));
        names.collect::<Vec<_>>().concat()
    };
    let cases: [(&[&str], &str); 8] = [
        (&[], "Acb"),
        (&["--sort", "last"], "Acb"),
        (&["--reverse"], "bcA"),
        (&["--sort", "messages"], "cAb"),
        (&["--sort", "session"], "Abc"),
        (&["--sort", "session", "--reverse"], "cbA"),
        (&["--sort", "user"], "cbA"),
        (&["--sort", "user", "--limit", "1", "--skip", "1"], "b"),
    ];
    for (args, expected) in cases {
        assert_eq!(sorted(args), expected, "{args:?}");
    }
    let wrong = sandbox.run(&["chat", "list", "--sort", "size"]);
    assert!(wrong.err.contains("size"), "{wrong:?}");
}

/// A list of many messages reads none of them: the time is that of a small store, and a bit.
#[test]
fn a_list_of_a_large_conversation_is_quick() {
    let sandbox = Sandbox::new();
    let lines: String = (0..10_000)
        .map(|n| format!("{{\"role\":\"user\",\"content\":\"message number {n}\"}}\n"))
        .collect();
    let file = sandbox.file("talk.jsonl", &lines);
    let import = ["chat", "append", "big", "--jsonl", &file, "--leave-window"];
    let said = sandbox.run(&import).ok();
    assert!(
        said.starts_with("appended 10000 messages (commit "),
        "{said}"
    );
    let start = Instant::now();
    let listed = sandbox.run(&["chat", "list", "--json"]).json();
    assert_eq!(rows(&listed), ["default big 10000 "]);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn an_unknown_conversation_is_an_error_that_names_the_nearest() {
    let sandbox = Sandbox::new();
    let none = ["chat", "show", "s1"];
    let (code, said) = sandbox.run(&none).failed();
    assert!(code == 3 && said.contains("nor any other"), "{said}");
    append(&sandbox, "ann", "shopping", "tea");
    append(&sandbox, "bob", "travel", "train");
    let cases: &[&[&str]] = &[
        &["show", "shoping"],
        &["compress", "shoping"],
        &["tail", "shoping"],
        &["events", "shoping"],
        &["clear", "shoping"],
        &["fork", "shoping", "x"],
        &["snapshot", "shoping", "x"],
        &["restore", "shoping", "x"],
        &["delete", "shoping", "--yes"],
        &["delete", "shoping", "--snapshot", "x", "--yes"],
        &["prepare", "shoping"],
        &["record", "shoping"],
        &["reload", "shoping", "01890a5d-ac96-774b-bcce-b302099a8057"],
    ];
    for case in cases {
        let args = [&["chat"], *case, &["--user", "an"]].concat();
        let (code, said) = sandbox.run(&args).failed();
        assert_eq!(code, 3, "{case:?}: {said}");
        let nearest = "the nearest: `shopping` of user `ann`, `travel` of user `bob`";
        assert!(said.contains(nearest), "{case:?}: {said}");
        assert!(said.contains("mnemon chat list"), "the hint fits: {said}");
    }
}

#[test]
fn snapshots_of_a_conversation_are_restored_and_deleted() {
    let sandbox = Sandbox::new();
    let run = |args: &[&str]| sandbox.run(&[&["chat"], args, &["--user", "ann"]].concat());
    append(&sandbox, "ann", "s1", "one");
    assert_eq!(
        run(&["snapshot", "s1", "before"]).ok(),
        "saved: snapshot before with 1 message\n"
    );
    let (code, said) = run(&["snapshot", "s1", "before"]).failed();
    assert!(
        code == 4 && said.contains("already has a snapshot `before`"),
        "{said}"
    );
    assert!(!said.contains("changed meanwhile"), "the hint fits: {said}");
    append(&sandbox, "ann", "s1", "two");
    run(&["restore", "s1", "before"]).ok();
    let shown = run(&["show", "s1", "--json"]).json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1);
    assert_eq!(run(&["tail", "s1"]).ok(), "user: one\nuser: two\n");
    let delete = ["delete", "s1", "--snapshot", "before", "--yes"];
    assert_eq!(run(&delete).ok(), "deleted: snapshot before\n");
    let (code, said) = run(&delete).failed();
    assert!(
        code == 3 && said.contains("has no snapshot `before`"),
        "{said}"
    );
    assert_eq!(run(&["restore", "s1", "before"]).failed().0, 3);
    run(&["snapshot", "s1", "before"]).ok();
}

#[test]
fn a_conversation_is_forked_cleared_and_deleted() {
    let sandbox = Sandbox::new();
    let run = |args: &[&str]| sandbox.run(&[&["chat"], args, &["--user", "ann"]].concat());
    append(&sandbox, "ann", "s1", "one");
    assert_eq!(
        run(&["fork", "s1", "s2"]).ok(),
        "forked: s2 with 1 message\n"
    );
    let (code, said) = run(&["fork", "s1", "s2"]).failed();
    assert!(
        code == 4 && said.contains("already a conversation s2"),
        "{said}"
    );
    append(&sandbox, "ann", "s2", "only here");
    assert_eq!(run(&["tail", "s1"]).ok(), "user: one\n");
    run(&["clear", "s2"]).ok();
    assert_eq!(run(&["show", "s2", "--json"]).json()["messages"], json!([]));
    assert_eq!(run(&["tail", "s2"]).ok(), "user: one\nuser: only here\n");
    assert_eq!(
        run(&["events", "s1"]).ok(),
        "the window was never compressed\n"
    );
    let told = run(&["delete", "s2", "--yes"]).ok();
    assert!(told.starts_with("deleted: "), "{told}");
    let listed = sandbox.run(&["chat", "list", "--json"]).json();
    assert_eq!(rows(&listed), ["ann s1 1 "]);
    sandbox.run(&["undo"]).ok();
    assert_eq!(run(&["tail", "s2"]).ok(), "user: one\nuser: only here\n");
}

#[test]
fn the_tail_is_read_page_by_page() {
    let sandbox = Sandbox::new();
    for n in 0..5 {
        append(&sandbox, "default", "s1", &format!("m{n}"));
    }
    let last = sandbox.run(&["chat", "tail", "s1", "-n", "2"]).ok();
    assert!(
        last.starts_with("user: m3\nuser: m4\n\nThere is more: --before "),
        "{last}"
    );
    let mut before = sandbox
        .run(&["chat", "tail", "s1", "-n", "2", "--json"])
        .json()["next"]
        .clone();
    let mut read = vec!["m3".to_owned(), "m4".to_owned()];
    while let Some(cursor) = before.as_str() {
        let args = [
            "chat", "tail", "s1", "-n", "2", "--json", "--before", cursor,
        ];
        let page = sandbox.run(&args).json();
        let messages = page["messages"].as_array().unwrap().iter();
        let texts = messages.map(|m| m["content"][0]["text"].as_str().unwrap().to_owned());
        read.splice(0..0, texts.collect::<Vec<_>>());
        before = page["next"].clone();
    }
    assert_eq!(read, ["m0", "m1", "m2", "m3", "m4"]);
}

#[test]
fn an_imported_message_has_its_own_time() {
    let sandbox = Sandbox::new();
    let lines = concat!(
        r#"{"content":"I was at the dentist yesterday.","timestamp":"2024-05-08T09:00:00+07:00"}"#,
        "\n",
        r#"{"content":"I sold the boat.","created_at":1718000000}"#,
        "\n",
        r#"{"content":"It was said before the boat.","ts":"2024-05-09 10:00"}"#,
        "\n",
        r#"{"content":"It has no time."}"#,
        "\n",
    );
    let file = sandbox.file("talk.jsonl", lines);
    sandbox
        .run(&["chat", "append", "s1", "--jsonl", &file])
        .ok();
    let listed = sandbox.run(&["list", "--json", "--order", "oldest"]).json();
    let created = listed["records"].as_array().unwrap().iter();
    let created: Vec<&str> = created
        .map(|one| one["created"].as_str().unwrap())
        .collect();
    assert_eq!(
        created[..3],
        [
            "2024-05-08T02:00:00.000Z",
            "2024-06-10T06:13:20.000Z",
            // The order of the conversation stays.
            "2024-06-10T06:13:20.000Z",
        ]
    );
    assert!(created[3] > "2026", "{created:?}");
    let told = sandbox.run(&["search", "dentist on 7 May 2024"]).ok();
    assert!(told.contains("dentist"), "{told}");
    let tail = sandbox.run(&["chat", "tail", "s1", "--json"]).json();
    assert_eq!(
        tail["messages"][0]["timestamp"],
        "2024-05-08T09:00:00+07:00"
    );
}

#[test]
fn a_wrong_time_of_a_message_is_refused_with_its_line() {
    let sandbox = Sandbox::new();
    for wrong in [r#""last week""#, "true", r#"1e300"#] {
        let lines = format!("{{\"content\":\"a\"}}\n{{\"content\":\"b\",\"timestamp\":{wrong}}}\n");
        let file = sandbox.file("talk.jsonl", lines);
        let (code, said) = sandbox
            .run(&["chat", "append", "s1", "--jsonl", &file])
            .failed();
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains("line 2") && said.contains("timestamp"),
            "{said}"
        );
    }
    assert_eq!(
        sandbox.run(&["list", "--json"]).json()["records"],
        serde_json::json!([])
    );
}

/// Messages as other programs write them.
#[test]
fn a_message_of_another_program_is_accepted() {
    let sandbox = Sandbox::new();
    for message in [
        r#"{"role":"user","content":"plain","mood":"good"}"#,
        r#"{"role":"Assistant","content":[null,{"type":"text","text":"null block"}]}"#,
        r#"{"content":"no role","timestamp":"2024-01-15 10:30:00.123"}"#,
        r#"[{"content":"first of two"},{"content":"second of two"}]"#,
        r#"{"role":"TOOL","content":[{"type":"tool_result","id":"c","name":"ls","output":"a\u0000b"}]}"#,
    ] {
        let append = ["chat", "append", "s1", "--message", message];
        let json = sandbox.run(&[&append[..], &["--json"]].concat()).json();
        let notice = json["notices"][0].as_str().unwrap_or_default();
        assert_eq!(notice.contains("NUL"), message.contains("u0000"), "{json}");
    }
    let told = sandbox.run(&["chat", "tail", "s1", "--json"]).json();
    let messages = told["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 6);
    assert_eq!(messages[2]["timestamp"], "2024-01-15T10:30:00.123+00:00");
    assert_eq!(messages[2]["role"], "USER");
    assert_eq!(messages[5]["content"][0]["output"][0]["text"], "a\u{fffd}b");
    for (message, why) in [
        ("[1]", "message[0]: is not an object"),
        ("7", "--message: must be an object"),
        ("{", "is not JSON"),
        (r#"{"role":"ASSISTANT"}"#, "has no content"),
        (r#"{"content":[{"type":"dance"}]}"#, "dance"),
    ] {
        let (code, said) = sandbox
            .run(&["chat", "append", "s1", "--message", message])
            .failed();
        assert!(code == 2 && said.contains(why), "{message}: {said}");
    }
}

#[test]
fn many_messages_are_appended_once_and_errors_name_the_line() {
    let sandbox = Sandbox::new();
    let line = |n: usize| format!("{{\"role\":\"user\",\"content\":\"m{n}\"}}\n");
    let lines: String = (0..1500).map(line).collect();
    let broken = format!("{lines}{{\"content\": 5}}\n");
    let count = |sandbox: &Sandbox| rows(&sandbox.run(&["chat", "list", "--json"]).json());
    let append = ["chat", "append", "s1", "--jsonl", "-", "--key", "import"];
    let (code, said) = sandbox.pipe(broken.as_bytes(), &append).failed();
    assert!(
        code == 2 && said.contains("line 1501") && said.contains("nothing was written"),
        "{said}"
    );
    assert!(count(&sandbox).is_empty());
    // The first batch alone, as a killed import leaves it; then the whole file, twice.
    let first: String = (0..1000).map(line).collect();
    let mut part = append;
    part[2] = "s2";
    sandbox.pipe(first.as_bytes(), &part).ok();
    for (added, there) in [
        ("500 messages", "1000 messages"),
        ("0 messages", "1500 messages"),
    ] {
        let said = sandbox.pipe(lines.as_bytes(), &part).ok();
        assert!(said.starts_with(&format!("appended {added}")), "{said}");
        assert!(said.contains(&format!("; {there} already there")), "{said}");
        assert_eq!(count(&sandbox), ["default s2 1500 "]);
    }
    sandbox.run(&["chat", "delete", "s2", "--yes"]).ok();
    let whole = ["chat", "append", "s1", "--jsonl", "-", "--key", "other"];
    sandbox.pipe(lines.as_bytes(), &whole).ok();
    assert_eq!(count(&sandbox), ["default s1 1500 "]);
    // One command is one commit, however many batches it had.
    sandbox.run(&["undo"]).ok();
    assert!(count(&sandbox).is_empty());
}

#[test]
fn a_window_is_printed_as_a_request_body() {
    let sandbox = Sandbox::new();
    for (role, text) in [
        ("system", "Be brief."),
        ("user", "Where?"),
        ("assistant", "Here."),
    ] {
        let args = ["chat", "append", "s1", "--role", role, text];
        sandbox.run(&args).ok();
    }
    let body = |format: &str| {
        let args = ["chat", "show", "s1", "--format", format, "--model", "m-1"];
        let text = sandbox.run(&args).ok();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let openai = body("openai");
    assert_eq!(openai["model"], "m-1");
    assert_eq!(
        openai["messages"][0],
        json!({"role": "system", "content": "Be brief."})
    );
    assert_eq!(openai["messages"].as_array().unwrap().len(), 3);
    let anthropic = body("anthropic");
    assert_eq!(anthropic["system"][0]["text"], "Be brief.");
    assert_eq!(anthropic["messages"][0]["role"], "user");
    assert!(anthropic["max_tokens"].as_u64().unwrap() > 0);
}

/// The example of docs/conversations.md.
#[test]
fn long_term_memory_is_added_before_a_call_and_recorded_after_it() {
    let sandbox = Sandbox::new();
    let run = |args: &[&str]| sandbox.run(&[&["chat"], args, &["--user", "ann"]].concat());
    run(&["append", "monday", "I am allergic to peanuts."]).ok();
    run(&[
        "append",
        "monday",
        "I will remember that.",
        "--role",
        "assistant",
    ])
    .ok();
    assert!(
        run(&["record", "monday", "--mode", "agent"])
            .ok()
            .starts_with("nothing was recorded")
    );
    for _ in 0..2 {
        assert_eq!(run(&["record", "monday"]).ok(), "recorded: 2 messages\n");
    }
    let kept = sandbox
        .run(&["list", "--kind", "note", "--user", "ann", "--json"])
        .json();
    assert_eq!(kept["records"].as_array().unwrap().len(), 2, "{kept}");
    run(&["append", "friday", "Which snacks with peanuts may I eat?"]).ok();
    let of = |mode: &str| run(&["prepare", "friday", "--mode", mode, "--json"]).json();
    let last = |prepared: &Value| {
        prepared["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string()
    };
    let told = of("static");
    assert!(
        last(&told).contains("<long_term_memory>") && last(&told).contains("allergic"),
        "{told}"
    );
    assert!(told["tools"].is_null());
    let told = of("agent");
    assert!(!last(&told).contains("<long_term_memory>"), "{told}");
    assert_eq!(told["tools"][0]["name"], "record_to_memory");
    let body = run(&["prepare", "friday", "--format", "openai", "--model", "m"]).json();
    assert_eq!(body["tools"][1]["function"]["name"], "retrieve_from_memory");
    assert!(
        body["messages"][1].to_string().contains("allergic"),
        "{body}"
    );
}

#[test]
fn a_query_finds_conversations_pages_and_knowledge_and_writes_nothing() {
    let sandbox = Sandbox::new();
    append(
        &sandbox,
        "ann",
        "s1",
        "The flowers are ordered from Huế every Monday",
    );
    append(&sandbox, "bob", "s1", "My flowers are secret");
    sandbox
        .run(&["add", "Flowers need water", "--user", "ann"])
        .ok();
    let library = sandbox.path("shop/.airsspec/knowledge/library");
    std::fs::create_dir_all(&library).unwrap();
    let page = "---\ntitle: Auth ADR\nstatus: final\n---\n\n# Flowers decision\n\nWe decided to sell flowers by card.\n";
    std::fs::write(library.join("auth.md"), page).unwrap();
    let before = sandbox.state();
    let query = [
        "chat", "query", "flowers", "--user", "ann", "--files", "shop", "--json",
    ];
    let found = sandbox.run(&query).json();
    let text = found.to_string();
    for there in [
        "ordered from Huế",
        "need water",
        "We decided to sell flowers",
    ] {
        assert!(text.contains(there), "{there}: {text}");
    }
    assert!(
        !text.contains("secret") && !text.contains("status: final"),
        "{text}"
    );
    assert!(text.contains("conversation s1"), "{text}");
    assert_eq!(sandbox.state(), before, "a query writes nothing");
    let shown = sandbox.run(&["chat", "query", "flowers"]).ok();
    assert!(
        shown.contains("secret"),
        "the tenant sees everything: {shown}"
    );
    assert_eq!(sandbox.run(&["chat", "query", " "]).failed().0, 2);
}

#[test]
fn a_key_that_was_used_for_something_else_says_what_to_do() {
    let sandbox = Sandbox::new();
    let append = |text: &str| sandbox.run(&["chat", "append", "s1", text, "--key", "k"]);
    append("tea").ok();
    let (code, said) = append("coffee").failed();
    assert_eq!(code, 4);
    assert!(
        said.contains("use another key") && !said.contains("changed meanwhile"),
        "{said}"
    );
}

#[test]
fn a_query_in_a_project_leaves_out_the_lines_of_others() {
    let sandbox = Sandbox::new();
    for project in ["shop", "bank"] {
        std::fs::create_dir_all(sandbox.path(project)).unwrap();
        let text = format!("Build the {project}: customers order flowers");
        sandbox
            .run(&["chat", "append", "main", &text, "--files", project])
            .ok();
    }
    sandbox.run(&["add", "Flowers need water"]).ok();
    let found = sandbox
        .run(&["chat", "query", "flowers", "--files", "bank"])
        .ok();
    assert!(
        found.contains("Build the bank") && found.contains("need water"),
        "{found}"
    );
    assert!(!found.contains("Build the shop"), "{found}");
    let found = sandbox.run(&["chat", "query", "flowers"]).ok();
    assert!(found.contains("Build the shop"), "{found}");
    let nothing = sandbox
        .run(&["chat", "query", "zzzz", "--files", "bank"])
        .ok();
    assert_eq!(nothing.trim(), "nothing found");
}

#[test]
fn a_page_after_the_last_conversation_says_so() {
    let sandbox = Sandbox::new();
    let list = ["chat", "list", "--skip", "5000"];
    sandbox.run(&["chat", "append", "s1", "hello"]).ok();
    let said = sandbox.run(&list).ok();
    assert!(
        said.contains("no conversation comes after the first 5000"),
        "{said}"
    );
}
