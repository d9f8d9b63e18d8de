//! What a client of the API sees of it: its own words, statuses and headers.

use serde_json::json;

use super::Server;
use crate::sandbox::Sandbox;

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn errors_speak_of_fields_and_routes_and_to_the_command_line_of_options() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let wrong = server.post("/v1/notes/search", &json!({"query": "tea", "own": true}));
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let problem = wrong.json();
    assert_eq!(
        (&problem["field"], &problem["detail"]),
        (&json!("own"), &json!("needs `user`"))
    );
    let hint = server.get("/v1/records/none").json()["hint"].clone();
    let hint = hint.as_str().unwrap();
    assert!(
        hint.contains("`GET /v1/records` shows the records"),
        "{hint}"
    );
    assert!(!hint.contains("mnemon"), "{hint}");
    let url = server.url();
    let (_, error) = sandbox.run(&["get", "none", "--server", &url]).failed();
    assert!(error.contains("`mnemon list` shows the records"), "{error}");
    let (_, error) = sandbox
        .run(&["note", "search", "tea", "--own", "--server", &url])
        .failed();
    assert!(error.contains("needs --user"), "{error}");
    // Nor does the contract speak of options.
    let contract = server.get("/openapi.json").body;
    assert!(!contract.contains(" --"), "{contract}");
}

#[test]
fn an_agent_or_a_team_that_exists_is_a_conflict() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let agent = json!({"agent": "coder", "description": "Writes the code"});
    let team = json!({"team": "core", "lead": "ada"});
    for (path, new) in [("/v1/agents", &agent), ("/v1/teams", &team)] {
        let made = server.post(path, new);
        assert_eq!(made.status, 200, "{made:?}");
        let again = server.post(path, new);
        assert_eq!(
            (again.status, &again.json()["code"]),
            (409, &json!("conflict"))
        );
        assert!(again.body.contains("exists already"), "{again:?}");
    }
}

#[test]
fn a_full_quota_of_records_asks_for_a_deletion() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrecords = 1\n");
    let server = Server::start(&sandbox, &[]);
    let add = || server.post("/v1/records", &json!({"content": "tea"}));
    assert_eq!(add().status, 200);
    let over = add();
    assert_eq!(
        (over.status, over.header("retry-after")),
        (429, Some("3600")),
        "{over:?}"
    );
    let problem = over.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("1 records") && !detail.contains("try again"),
        "{detail}"
    );
    assert!(
        problem["hint"]
            .as_str()
            .unwrap()
            .starts_with("delete records")
    );
}

#[test]
fn tags_of_versions_may_be_weak_or_any() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let added = server.post("/v1/records", &json!({"content": "tea", "id": "a"}));
    assert_eq!(added.status, 200, "{added:?}");
    let read = |tag: &str| server.ask("GET", "/v1/records/a", &[("If-None-Match", tag)], "");
    for (tag, status) in [
        ("\"1\"", 304),
        ("W/\"1\"", 304),
        ("\"7\", W/\"1\"", 304),
        ("*", 304),
        ("\"2\"", 200),
        ("W/\"2\"", 200),
        ("1", 200),
    ] {
        let answer = read(tag);
        assert_eq!(
            (answer.status, answer.header("etag")),
            (status, Some("\"1\"")),
            "{tag}"
        );
    }
    // What would go shows the version, too, for `If-Match` of the deletion.
    let preview = server.post("/v1/forget/preview", &json!({"ids": ["a"]}));
    assert_eq!(preview.header("etag"), Some("\"1\""), "{preview:?}");
    let change = |header: &str, tag: &str| {
        let body = json!({"content": format!("tea {tag}")}).to_string();
        server.ask("PATCH", "/v1/records/a", &[JSON, (header, tag)], &body)
    };
    for (tag, status) in [
        ("\"1\"", 200),
        ("W/\"2\"", 200),
        ("W/\"2\"", 412),
        ("*", 200),
        ("\"3\", \"4\"", 400),
        ("abc", 400),
    ] {
        let answer = change("If-Match", tag);
        assert_eq!(answer.status, status, "{tag}: {answer:?}");
    }
    let refused = change("If-None-Match", "*");
    assert_eq!(
        (refused.status, &refused.json()["field"]),
        (400, &json!("if-none-match"))
    );
}

#[test]
fn a_missing_word_is_named_with_all_that_are_allowed() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let missing = server.post("/v1/notes/clear", &json!({}));
    assert_eq!(missing.status, 400);
    let detail = missing.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.ends_with("one of short-term, long-term, all"),
        "{detail}"
    );
}

#[test]
fn routes_that_are_read_answer_head() {
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", "0123456789abcdef");
    let server = Server::start(&sandbox, &[]);
    let head = |path: &str, key: &[(&str, &str)]| server.ask("HEAD", path, key, "");
    let key = [("Authorization", "Bearer 0123456789abcdef")];
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        let answer = head(path, &[]);
        assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{path}");
    }
    for (path, status) in [
        ("/v1/stats", 200),
        ("/metrics", 200),
        ("/v1/records/none", 404),
        ("/v1/search", 405),
        ("/v1/nosuch", 404),
    ] {
        let answer = head(path, &key);
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (status, ""),
            "{path}: {answer:?}"
        );
    }
    assert_eq!(head("/v1/stats", &[]).status, 401);
}

#[test]
fn an_address_that_is_none_is_refused_with_an_example() {
    let sandbox = Sandbox::new();
    for address in ["nonsense", "localhost", "localhost:x", ":8750"] {
        let (code, error) = sandbox.run(&["serve", "--listen", address]).failed();
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("for example 127.0.0.1:8750"), "{error}");
    }
}

#[test]
fn mistakes_name_the_field_as_it_was_sent() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let append = |message: serde_json::Value| {
        let body = json!({ "message": message });
        server.post("/v1/conversations/s1/messages", &body)
    };
    for (answer, field, detail) in [
        (
            server.get("/v1/records?after=zzz"),
            "after",
            "`zzz` is not a cursor",
        ),
        (
            server.get("/v1/notes?after=zzz"),
            "after",
            "`zzz` is not a cursor",
        ),
        (
            append(json!([{"role": "user", "content": "tea"}, {"role": "BOGUS", "content": "x"}])),
            "message[1].role",
            "must be one of: user, assistant, system, tool",
        ),
        (
            server.post("/v1/search", &json!({"query": "tea", "limit": -1})),
            "limit",
            "is -1; a whole number from 1 to",
        ),
    ] {
        let problem = answer.json();
        assert_eq!((answer.status, &problem["field"]), (400, &json!(field)));
        let said = problem["detail"].as_str().unwrap();
        assert!(said.starts_with(detail), "{said}");
    }
}

#[test]
fn options_of_serve_are_checked_and_a_port_in_use_is_explained() {
    let sandbox = Sandbox::new();
    for origin in [
        "foo",
        "*",
        "https://a.example/path",
        "https://u@a.example",
        "",
    ] {
        let args = ["serve", "--listen", "127.0.0.1:0", "--allow-origin", origin];
        let (code, said) = sandbox.run(&args).failed();
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("is not an origin: write https://"), "{said}");
    }
    let server = Server::start(&sandbox, &["--allow-origin", "https://a.example:8443/"]);
    let (_, said) = sandbox
        .run(&["serve", "--listen", &server.address])
        .failed();
    assert!(said.contains("another process listens there"), "{said}");
    assert!(said.contains("--listen"), "{said}");
}
