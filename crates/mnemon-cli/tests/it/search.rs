//! Finding again what was remembered.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::sandbox::{CREATED, Sandbox};

fn notes() -> Sandbox {
    let sandbox = Sandbox::new();
    let notes = [
        ("tea", "Ann prefers green tea in the morning", "ann"),
        (
            "deploy",
            "We decided to deploy the service on Fridays only",
            "bob",
        ),
        ("dog", "The puppy chewed through my new shoes", "ann"),
    ];
    for (id, content, user) in notes {
        let args = [
            "add",
            content,
            "--id",
            id,
            "--user",
            user,
            "--created",
            CREATED,
        ];
        sandbox.run(&args).ok();
    }
    let args = [
        "add",
        "Hai Phong is a port",
        "--id",
        "port",
        "--tag",
        "city",
    ];
    let more = [
        "--created",
        CREATED,
        "--meta-json",
        r#"{"lang":"vi","n":5,"speaker":"Ann"}"#,
    ];
    sandbox.run(&[&args[..], &more].concat()).ok();
    sandbox
}

fn ids(found: &Value) -> Vec<&str> {
    let hits = found["hits"].as_array().unwrap();
    hits.iter()
        .map(|hit| hit["record"]["id"].as_str().unwrap())
        .collect()
}

#[test]
fn what_was_remembered_is_found_by_words_and_meaning() {
    let sandbox = notes();
    let first = |args: &[&str]| {
        let found = sandbox.run(&[&["search", "--json"], args].concat()).json();
        ids(&found).first().map(|id| (*id).to_owned())
    };
    assert_eq!(first(&["preferring teas"]).as_deref(), Some("tea"));
    assert_eq!(first(&["a dog destroyed footwear"]).as_deref(), Some("dog"));
    assert_eq!(
        first(&["deploying", "--recipe", "words"]).as_deref(),
        Some("deploy")
    );
    assert_eq!(
        first(&["young animal", "--recipe", "meaning", "--min-score", "0"]).as_deref(),
        Some("dog")
    );
    assert_eq!(first(&["what", "is", "it"]), None, "only stop words");
    assert_eq!(first(&["tea", "--user", "bob", "--recipe", "words"]), None);
    assert_eq!(
        first(&["tea", "--recipe", "formula"]).as_deref(),
        Some("tea")
    );
    let recent = sandbox.run(&["search", "--recipe", "recent", "--limit", "2", "--json"]);
    assert_eq!(ids(&recent.json()).len(), 2);
}

#[test]
fn people_see_a_short_answer_and_why() {
    let sandbox = notes();
    let short = sandbox.run(&["search", "port", "--recipe", "words"]).ok();
    let why = [
        "search",
        "green tea",
        "--explain",
        "--recipe",
        "words",
        "--limit",
        "1",
    ];
    let why = sandbox.run(&why).ok();
    let nothing = sandbox.run(&["search", "zebra", "--recipe", "words"]).ok();
    let formula = sandbox
        .run(&["search", "port", "--recipe", "formula", "--full"])
        .ok();
    // Recency changes with the day on which the test runs.
    let why: String = why.replace("recency 1.00", "recency [r]");
    insta::assert_snapshot!(format!("{short}\n{why}\n{nothing}\n{formula}"));
}

#[test]
fn metadata_can_be_filtered() {
    let sandbox = notes();
    for command in [&["search", "port", "--json"][..], &["list", "--json"]] {
        let count = |filter: &str| {
            let found = sandbox
                .run(&[command, &["--filter", filter]].concat())
                .json();
            let found = found.get("hits").or_else(|| found.get("records")).unwrap();
            found.as_array().unwrap().len()
        };
        assert_eq!(count(r#"{"lang":"vi","n":{"$gte":3,"$lt":9}}"#), 1);
        assert_eq!(count(r#"{"n":{"$gt":5}}"#), 0);
        assert_eq!(count(r#"{"nobody.has.this":"*"}"#), 0);
    }
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let sandbox = notes();
    let cases: &[(&[&str], &str)] = &[
        (&["search"], "query: is empty"),
        (&["search", "  "], "query: is empty"),
        (&["search", "x", "--limit", "0"], "from 1 to 1000"),
        (&["search", "x", "--recipe", "magic"], "hybrid"),
        (
            &["search", "x", "--filter", r#"{"a":1"#],
            "filter: is not JSON",
        ),
        (
            &["search", "x", "--filter", r#"{"a":{"$near":1}}"#],
            "--filter.a.$near: is not an operator",
        ),
        (&["list", "--filter", "[]"], "filter: is a list"),
    ];
    for (args, expected) in cases {
        let (code, message) = sandbox.run(args).failed();
        assert_eq!(code, 2, "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
    }
    let (code, message) = sandbox
        .pipe(&vec![b'x'; 1 << 20], &["search", "-"])
        .failed();
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("query: has 1048576 characters"),
        "{message}"
    );
}

#[test]
fn what_another_process_deleted_is_not_found() {
    for store in ["sqlite:m.db", "jsonl:m"] {
        let sandbox = Sandbox::new().with("MNEMON_STORE", store);
        sandbox.note("a", "the red bicycle");
        sandbox.note("b", "the blue bicycle");
        let found = || {
            let found = sandbox.run(&["search", "bicycle", "--json"]).json();
            let mut ids: Vec<String> = ids(&found).into_iter().map(str::to_owned).collect();
            ids.sort();
            ids
        };
        assert_eq!(found(), ["a", "b"], "{store}");
        sandbox.run(&["forget", "a"]).ok();
        assert_eq!(found(), ["b"], "{store}");
    }
}

#[test]
fn another_embedder_does_not_lose_what_was_there() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    let with = |embedder: &str, args: &[&str]| {
        let output = sandbox
            .command()
            .env("MNEMON_EMBEDDER", embedder)
            .args(args)
            .output();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let dog = ["add", "The puppy chewed through my shoes", "--id", "dog"];
    with("none", &dog);
    let search = [
        "search",
        "destroyed footwear",
        "--recipe",
        "meaning",
        "--min-score=0",
        "--json",
    ];
    let found =
        |embedder: &str| -> Value { serde_json::from_str(&with(embedder, &search)).unwrap() };
    assert_eq!(ids(&found("none")).len(), 0);
    assert_eq!(
        with("builtin", &["reembed"]),
        "1 record embedded with builtin\n"
    );
    assert_eq!(
        with("builtin", &["reembed"]),
        "0 records embedded with builtin\n"
    );
    assert_eq!(ids(&found("builtin")), ["dog"]);

    let other = format!("openai:tiny@{}", endpoint());
    assert_eq!(
        ids(&found(&other)),
        ["dog"],
        "by the vector of the built-in"
    );
    let answer = with(&other, &["reembed", "--json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["embedded"], 1);
    assert_eq!(answer["embedder"], other);
    assert_eq!(ids(&found(&other)), ["dog"], "by its own");
    assert_eq!(
        with("builtin", &["upkeep"]).lines().next(),
        Some("1 records embedded")
    );
    assert_eq!(ids(&found("builtin")), ["dog"], "back again");
}

#[test]
fn an_embedder_that_cannot_be_reached_costs_its_vectors_only() {
    // A port that was free a moment ago may be another test's by now.
    let sandbox = Sandbox::new().with("MNEMON_EMBEDDER", "openai:m@http://127.0.0.1:1/v1");
    let added = sandbox.run(&["add", "the red bicycle", "--id", "a"]);
    assert_eq!(added.code, 0, "{}", added.err);
    let found = sandbox.run(&["search", "bicycle", "--json"]).json();
    assert_eq!(ids(&found), ["a"]);
    let (code, message) = sandbox.run(&["reembed"]).failed();
    assert_eq!(code, 13, "{message}");
}

#[test]
fn weights_are_pulled_from_a_folder_or_the_error_says_why_not() {
    let sandbox = Sandbox::new();
    let (_, message) = sandbox
        .run(&["model", "pull", "--from", "nowhere"])
        .failed();
    assert!(message.contains("cannot be read"), "{message}");
    let is_built = cfg!(feature = "minilm");
    assert_eq!(
        !message.contains("--features minilm"),
        is_built,
        "{message}"
    );
    let (code, message) = sandbox
        .run(&[
            "model",
            "pull",
            "--from",
            "http://127.0.0.1:9/x",
            "--to",
            "m",
        ])
        .failed();
    assert_eq!(code, 13, "{message}");
    let sandbox = sandbox.with("MNEMON_EMBEDDER", "minilm:m");
    let (_, message) = sandbox.run(&["list"]).failed();
    let known = ["rebuild with --features minilm", "cannot be used"];
    assert!(known.iter().any(|part| message.contains(part)), "{message}");
}

/// An endpoint that places every text at the same spot.
fn endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let body = loop {
                let mut chunk = [0; 4096];
                let read = stream.read(&mut chunk).unwrap();
                request.extend_from_slice(&chunk[..read]);
                if let Some(body) = body(&request) {
                    break body;
                }
                assert_ne!(read, 0, "the request was cut off");
            };
            let inputs = body["input"].as_array().unwrap().len();
            let data: Vec<Value> = (0..inputs)
                .map(|index| json!({"index": index, "embedding": [0.6, 0.0, 0.8]}))
                .collect();
            let answer = json!({ "data": data }).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).unwrap();
        }
    });
    url
}

/// The JSON of a request that is all there.
fn body(request: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(request).ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

#[test]
fn of_equal_hits_the_newest_comes_first() {
    let sandbox = Sandbox::new();
    for day in [3, 1, 6, 2, 5, 4] {
        let (id, created) = (format!("d{day}"), format!("2026-01-0{day}T12:00:00Z"));
        let note = ["deploy status update", "--id", &id, "--created", &created];
        sandbox.run(&[&["add"], &note[..]].concat()).ok();
    }
    for search in [&["search"][..], &["note", "search"]] {
        let query = ["deploy status update", "--limit", "6", "--json"];
        let found = sandbox.run(&[search, &query].concat()).json();
        let hits = found["hits"].as_array().unwrap().iter();
        let id = |hit: &Value| hit.pointer("/record/id").unwrap_or(&hit["id"]).clone();
        let ids: Vec<Value> = hits.map(id).collect();
        assert_eq!(ids, ["d6", "d5", "d4", "d3", "d2", "d1"]);
    }
}

#[test]
fn a_hit_by_its_day_alone_is_not_explained_by_words() {
    let sandbox = notes();
    let told = sandbox
        .run(&["search", "31 January 2026", "--explain"])
        .ok();
    assert!(told.contains("score: the days of the query"), "{told}");
    assert!(!told.contains("100 % of the query's words"), "{told}");
    let told = sandbox.run(&["search", "green tea", "--explain"]).ok();
    assert!(told.contains("100 % of the query's words"), "{told}");
}

#[test]
fn a_recommendation_of_the_assistant_comes_before_those_of_others() {
    let sandbox = Sandbox::new();
    let advice = "It depends on the weather you like. In spring the south is warm and quiet, and \
        trains are cheap before Easter. For two people with a small budget I would recommend \
        Lisbon, because the flights are short; book early and stay near the river.";
    for (role, said) in [
        ("user", "Where should I go in spring?"),
        ("assistant", advice),
        ("user", "My sister recommended Porto."),
        (
            "user",
            "Carl recommends Faro, and he recommended it to everybody.",
        ),
    ] {
        let append = [
            "chat", "append", "s1", said, "--role", role, "--user", "ann",
        ];
        sandbox.run(&append).ok();
    }
    for query in ["What did you recommend?", "Which city did you recommend?"] {
        let found = sandbox.run(&["search", query, "--json"]).json();
        let first = found["hits"][0]["record"]["content"].as_str().unwrap();
        assert_eq!(first, advice, "{query}");
    }
}
