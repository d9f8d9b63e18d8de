//! Who may call the server: keys, rights, quotas, the audit log.

use serde_json::json;

use super::Server;
use crate::sandbox::Sandbox;

/// The secret of a new key, and its prefix.
fn key(sandbox: &Sandbox, args: &[&str]) -> (String, String) {
    let made = sandbox
        .run(&[&["key", "create"], args, &["--json"]].concat())
        .json();
    let text = |at: &str| made.pointer(at).unwrap().as_str().unwrap().to_owned();
    (format!("Bearer {}", text("/secret")), text("/key/prefix"))
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn a_key_allows_what_its_rights_say() {
    let sandbox = Sandbox::new();
    let keys =
        ["read", "write", "admin"].map(|rights| key(&sandbox, &[rights, "--rights", rights]).0);
    let server = Server::start(&sandbox, &[]);
    let record = json!({"content": "Ann prefers tea"}).to_string();
    let new_key = json!({"name": "x", "rights": "read"}).to_string();
    for (at, key) in keys.iter().enumerate() {
        let status = |method: &str, path: &str, body: &str| {
            server
                .ask(method, path, &[("Authorization", key), JSON], body)
                .status
        };
        let allowed = |needed: usize| if at >= needed { 200 } else { 403 };
        assert_eq!(status("GET", "/v1/stats", ""), allowed(0));
        assert_eq!(status("POST", "/v1/records", &record), allowed(1));
        assert_eq!(status("POST", "/v1/keys", &new_key), allowed(2));
        assert_eq!(status("GET", "/metrics", ""), allowed(2));
        let purge = json!({"user": "nobody", "purge": true}).to_string();
        assert_eq!(status("POST", "/v1/forget", &purge), allowed(2));
    }
    let shown = server
        .ask("GET", "/v1/keys", &[("Authorization", &keys[2])], "")
        .body;
    assert!(
        !shown.contains("secret") && !shown.contains("hash"),
        "{shown}"
    );
}

#[test]
fn refused_keys_are_all_answered_alike() {
    let sandbox = Sandbox::new();
    let (valid, prefix) = key(&sandbox, &["one", "--rights", "read"]);
    let server = Server::start(&sandbox, &[]);
    let ask = |key: &str| server.ask("GET", "/v1/stats", &[("Authorization", key)], "");
    assert_eq!(ask(&valid).status, 200);
    sandbox.run(&["key", "revoke", &prefix]).ok();
    // The server asks the store about a key at most once a second.
    let mut revoked = ask(&valid);
    for _ in 0..600 {
        if revoked.status == 401 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        revoked = ask(&valid);
    }
    let without_id = |body: &str| body.split("\"request_id\"").next().unwrap().to_owned();
    for other in [
        "Bearer nonsense",
        "Bearer mnemon_aaaaaaaa_bbbb",
        "Basic abc",
        "Bearer ",
    ] {
        let answer = ask(other);
        assert_eq!(answer.status, 401, "{other}");
        assert_eq!(
            without_id(&answer.body),
            without_id(&revoked.body),
            "{other}"
        );
    }
    assert_eq!(
        server.get("/v1/stats").status,
        401,
        "the end of the last key opens nothing"
    );
}

#[test]
fn changes_are_in_the_audit_log_and_reads_are_not() {
    let sandbox = Sandbox::new();
    let (ann, prefix) = key(&sandbox, &["ann", "--rights", "write"]);
    let server = Server::start(&sandbox, &[]);
    let headers = [("Authorization", ann.as_str()), JSON];
    let secret = "Ann's secret is tea";
    let body = json!({"content": secret, "id": "a1"}).to_string();
    assert_eq!(
        server.ask("POST", "/v1/records", &headers, &body).status,
        200
    );
    let query = json!({"query": secret}).to_string();
    assert_eq!(
        server.ask("POST", "/v1/search", &headers, &query).status,
        200
    );
    assert_eq!(
        server.ask("POST", "/v1/records", &headers, &body).status,
        409
    );
    let log = sandbox.run(&["audit", "list", "--json"]).json();
    let entries = log["entries"].as_array().unwrap();
    let adds: Vec<_> = entries
        .iter()
        .filter(|entry| entry["operation"] == "add")
        .collect();
    assert_eq!(adds.len(), 2, "{log}");
    assert_eq!(
        (adds[0]["caller"].as_str(), adds[0]["ids"][0].as_str()),
        (Some(prefix.as_str()), Some("a1"))
    );
    assert_eq!(
        (&adds[0]["status"], &adds[1]["status"]),
        (&json!(200), &json!(409))
    );
    assert!(!log.to_string().contains("secret"), "{log}");
    assert!(
        entries.iter().all(|entry| entry["operation"] != "search"),
        "{log}"
    );
    assert_eq!(sandbox.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_quota_answers_429_with_the_time_to_wait() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrequests_per_minute = 3\n");
    let server = Server::start(&sandbox, &[]);
    // A slow machine gives the quota time to recover.
    let mut over = server.get("/v1/stats");
    assert_eq!(over.status, 200);
    for _ in 0..100 {
        if over.status == 429 {
            break;
        }
        over = server.get("/v1/stats");
    }
    assert_eq!(
        (over.status, over.json()["code"].as_str()),
        (429, Some("too-often")),
        "{over:?}"
    );
    let wait: u64 = over.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

#[test]
fn a_quota_of_records_refuses_the_next_one() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrecords = 2\n");
    let server = Server::start(&sandbox, &[]);
    let add = |text: &str| server.post("/v1/records", &json!({"content": text})).status;
    assert_eq!((add("one"), add("two"), add("three")), (200, 200, 429));
    assert_eq!(server.get("/v1/stats").json()["records"], 2);
}

/// Calls a tool of MCP over HTTP.
fn tool(server: &Server, key: &str, name: &str, arguments: &serde_json::Value) -> super::Answer {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}});
    let accept = ("Accept", "application/json, text/event-stream");
    let version = ("MCP-Protocol-Version", "2025-11-25");
    let mut headers = vec![JSON, accept, version];
    headers.extend((!key.is_empty()).then_some(("Authorization", key)));
    server.ask("POST", "/mcp", &headers, &call.to_string())
}

#[test]
fn mcp_keeps_to_the_key() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrecords = 6\n");
    sandbox.file("secret.txt", "tamarind");
    sandbox
        .run(&["add", "Bob likes kumquats", "--user", "bob", "--id", "bobs"])
        .ok();
    sandbox
        .run(&[
            "add",
            "Shared by Bob",
            "--user",
            "bob",
            "--audience",
            "everyone",
            "--id",
            "shared",
        ])
        .ok();
    let (ann, prefix) = key(&sandbox, &["ann", "--rights", "write", "--user", "ann"]);
    let (read, _) = key(&sandbox, &["read", "--rights", "read"]);
    let (other, _) = key(
        &sandbox,
        &["other", "--rights", "write", "--tenant", "beta"],
    );
    let server = Server::start(&sandbox, &[]);
    // Files of the server are out of reach.
    for key in [&ann, &other] {
        let answer = tool(
            &server,
            key,
            "memory_add",
            &json!({"content_path": "secret.txt"}),
        );
        assert!(answer.body.contains("is not a known field"), "{answer:?}");
    }
    let answer = tool(
        &server,
        &ann,
        "memory_search",
        &json!({"query": "kumquats"}),
    );
    assert!(!answer.body.contains("likes kumquats"), "{answer:?}");
    for (name, arguments) in [
        (
            "memory_update",
            json!({"id": "shared", "content": "Ann was here"}),
        ),
        ("memory_delete", json!({"id": "shared"})),
    ] {
        let answer = tool(&server, &ann, name, &arguments);
        assert!(
            answer.body.contains("changes only records of that user"),
            "{name}: {answer:?}"
        );
    }
    let answer = tool(&server, &read, "memory_add", &json!({"content": "x"}));
    assert!(answer.body.contains("error"), "{answer:?}");
    // Writes count for the quotas and are in the audit log.
    let add = |number: usize| {
        let text = json!({"content": format!("Ann noted {number}")});
        tool(&server, &ann, "memory_add", &text).status
    };
    let statuses: Vec<u16> = (0..8).map(add).collect();
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    let log = sandbox.run(&["audit", "list", "--json"]).ok();
    assert!(log.contains("\"mcp memory_add\""), "{log}");
    let history = sandbox.run(&["history", "--limit", "1", "--json"]).ok();
    assert!(history.contains(&format!("http:{prefix}")), "{history}");
    let stats = sandbox.run(&["stats", "--json"]).json();
    let records = stats["records"].as_u64().unwrap();
    assert!((3..=6).contains(&records), "{records}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table of requests")]
fn a_bound_key_takes_no_place_of_others() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&[
            "add",
            "For the robot",
            "--audience",
            "agent:robot",
            "--id",
            "robots",
        ])
        .ok();
    sandbox
        .run(&[
            "add",
            "Shared by Bob",
            "--user",
            "bob",
            "--audience",
            "everyone",
            "--id",
            "shared",
        ])
        .ok();
    let (ann, _) = key(&sandbox, &["ann", "--rights", "write", "--user", "ann"]);
    let server = Server::start(&sandbox, &[]);
    let ask = |method: &str, path: &str, body: &serde_json::Value| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        server
            .ask(method, path, &[("Authorization", &ann), JSON], &body)
            .status
    };
    let none = serde_json::Value::Null;
    let made = "9310e062-1dd6-80f2-a389-2c87b0c49ed5";
    let skill = json!({"user": "ann", "session": "s", "scope": "procedural",
        "data": {"use_when": "deploying", "tool_sops": [], "shared": true}});
    for (method, path, body, status) in [
        ("GET", "/v1/records?agent=robot", &none, 403),
        ("GET", "/v1/changes?after=0&agent=robot", &none, 403),
        ("POST", "/v1/agents/robot/activate", &json!({}), 403),
        ("GET", "/v1/agents", &none, 403),
        (
            "PATCH",
            "/v1/records/shared",
            &json!({"content": "Ann was here"}),
            403,
        ),
        ("DELETE", "/v1/records/shared", &none, 403),
        ("DELETE", "/v1/notes/shared", &none, 403),
        ("POST", "/v1/forget", &json!({"ids": ["shared"]}), 403),
        // Records that the caller does not see are missing.
        ("DELETE", "/v1/records/robots", &none, 404),
        ("DELETE", "/v1/records/nobodys", &none, 404),
        (
            "POST",
            "/v1/records",
            &json!({"content": "x", "id": made}),
            400,
        ),
        // Whether somebody has a record of this id is not said.
        (
            "POST",
            "/v1/records",
            &json!({"content": "x", "id": "robots"}),
            400,
        ),
        (
            "POST",
            "/v1/records",
            &json!({"content": "x", "id": "nobodys"}),
            400,
        ),
        (
            "POST",
            "/v1/records",
            &json!({"content": "x", "kind": "skill"}),
            403,
        ),
        (
            "POST",
            "/v1/records",
            &json!({"content": "x", "kind": "session"}),
            403,
        ),
        (
            "POST",
            "/v1/records",
            &json!({"content": "x", "derived_from": ["robots"], "key": "k"}),
            400,
        ),
        ("POST", "/v1/write", &skill, 403),
        ("GET", "/v1/records/shared", &none, 200),
    ] {
        assert_eq!(ask(method, path, body), status, "{method} {path} {body}");
    }
    let (code, said) = sandbox
        .run(&["key", "create", "x", "--rights", "read", "--agent", "robot"])
        .failed();
    assert_eq!(code, 2, "{said}");
}

#[test]
fn a_body_of_a_request_that_only_reads_is_small() {
    let sandbox = Sandbox::new();
    let (read, _) = key(&sandbox, &["read", "--rights", "read"]);
    let (write, _) = key(&sandbox, &["write", "--rights", "write"]);
    let server = Server::start(&sandbox, &[]);
    let ask = |key: &str, path: &str, body: &str| {
        server.ask("POST", path, &[("Authorization", key), JSON], body)
    };
    let long = json!({"query": "x".repeat(1024 * 1024)}).to_string();
    for (key, path) in [
        (&read, "/v1/search"),
        (&write, "/v1/search"),
        (&read, "/v1/records"),
        (&read, "/mcp"),
    ] {
        let answer = ask(key, path, &long);
        assert_eq!(answer.status, 413, "{path}: {answer:?}");
        assert!(
            answer.body.contains("more than 1048576 bytes"),
            "{answer:?}"
        );
    }
    let written = ask(&write, "/v1/records", &long);
    assert_eq!(written.status, 400, "it is read: {written:?}");
    let many = format!("{{\"query\": [{}1]}}", "1,".repeat(1_000_000));
    let answer = ask(&write, "/v1/records", &many);
    assert_eq!(answer.status, 413, "{answer:?}");
    assert!(
        answer.body.contains("more than 1000000 values"),
        "{answer:?}"
    );
}

#[test]
fn a_key_takes_no_more_than_its_share_of_the_listeners() {
    use std::io::{BufRead, BufReader, Write};
    let sandbox = Sandbox::new();
    let (ann, _) = key(&sandbox, &["ann", "--rights", "read"]);
    let (bob, _) = key(&sandbox, &["bob", "--rights", "read"]);
    let server = Server::start(&sandbox, &[]);
    let listen = |key: &str| {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        let head = "GET /v1/changes?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: ";
        stream
            .write_all(format!("{head}{key}\r\n\r\n").as_bytes())
            .unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut line).unwrap();
        (line.split(' ').nth(1).unwrap().to_owned(), reader)
    };
    let anns: Vec<_> = (0..65).map(|_| listen(&ann)).collect();
    let statuses: Vec<&str> = anns.iter().map(|(status, _)| status.as_str()).collect();
    assert!(
        statuses[..64].iter().all(|status| *status == "200"),
        "{statuses:?}"
    );
    assert_eq!(statuses[64], "429");
    assert_eq!(listen(&bob).0, "200");
}

#[test]
fn a_request_that_the_key_does_not_allow_is_in_the_audit_log() {
    let sandbox = Sandbox::new();
    let (read, prefix) = key(&sandbox, &["read", "--rights", "read", "--user", "ann"]);
    let server = Server::start(&sandbox, &[]);
    let headers = [("Authorization", read.as_str()), JSON];
    let body = json!({"content": "x"}).to_string();
    for (method, path, body) in [
        ("POST", "/v1/records", body.as_str()),
        ("GET", "/v1/records?user=bob", ""),
        ("GET", "/v1/changes?user=bob", ""),
        ("GET", "/metrics", ""),
    ] {
        assert_eq!(
            server.ask(method, path, &headers, body).status,
            403,
            "{path}"
        );
    }
    let log = sandbox.run(&["audit", "list", "--json"]).json();
    let entries = log["entries"].as_array().unwrap().iter();
    let refused = entries.filter(|entry| entry["status"] == 403);
    let refused: Vec<&str> = refused
        .inspect(|entry| assert_eq!(entry["caller"], prefix.as_str()))
        .map(|entry| entry["operation"].as_str().unwrap())
        .collect();
    assert_eq!(refused, ["add", "list", "GET /v1/changes", "GET /metrics"]);
}

#[test]
fn quotas_count_each_message_and_the_bytes_of_changes() {
    let sandbox = Sandbox::new();
    sandbox.config("[server.quota]\nrecords = 5\nbytes = 3000\n");
    let server = Server::start(&sandbox, &[]);
    let add = json!({"content": "tea", "id": "a1"});
    assert_eq!(server.post("/v1/records", &add).status, 200);
    let messages: Vec<_> = (0..5)
        .map(|n| json!({"role": "user", "content": n.to_string()}))
        .collect();
    let append = |messages: &[serde_json::Value]| {
        let body = json!({"message": messages});
        server.post("/v1/conversations/s1/messages", &body).status
    };
    assert_eq!(append(&messages), 429);
    assert_eq!(append(&messages[..2]), 200);
    let change = json!({"content": "x".repeat(3000)}).to_string();
    assert_eq!(
        server
            .ask("PATCH", "/v1/records/a1", &[JSON], &change)
            .status,
        429
    );
    let change = json!({"id": "a1", "content": "x".repeat(3000)});
    assert_eq!(tool(&server, "", "memory_update", &change).status, 429);
    let change = json!({"content": "x"}).to_string();
    assert_eq!(
        server
            .ask("PATCH", "/v1/records/a1", &[JSON], &change)
            .status,
        200
    );
    assert_eq!(append(&messages[..4]), 429, "it is full");
    let forget = json!({"ids": ["a1"]});
    assert_eq!(
        server.post("/v1/forget", &forget).status,
        200,
        "that makes room"
    );
    assert_eq!(server.post("/v1/undo", &json!({})).status, 200);
}

#[test]
fn health_is_shown_without_a_key_to_head_as_well() {
    let sandbox = Sandbox::new().with("MNEMON_API_KEY", "0123456789abcdef0123");
    let server = Server::start(&sandbox, &[]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.ask("GET", path, &[], "").status, 200);
        let head = server.ask("HEAD", path, &[], "");
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
    }
    assert_eq!(server.ask("HEAD", "/v1/stats", &[], "").status, 401);
}

#[test]
fn health_is_shown_under_any_host_and_other_paths_are_not() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let ask = |path: &str, header: (&str, &str)| server.ask("GET", path, &[header], "");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(path, ("Host", "10.1.2.3:8750")).status, 200, "{path}");
        let origin = ask(path, ("Origin", "https://evil.example"));
        assert_eq!(origin.status, 403, "{path}");
        assert!(
            origin.body.contains("with --allow-origin ORIGIN"),
            "{origin:?}"
        );
    }
    for path in ["/openapi.json", "/v1/stats"] {
        let refused = ask(path, ("Host", "10.1.2.3:8750"));
        assert_eq!(refused.status, 403, "{path}");
        assert!(
            refused.body.contains("with --allow-host NAME"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_refused_key_has_one_answer_and_its_reason_is_in_the_log() {
    use std::io::{BufRead, BufReader};
    let sandbox = Sandbox::new();
    let (revoked, prefix) = key(&sandbox, &["old", "--rights", "read"]);
    sandbox.run(&["key", "revoke", &prefix]).ok();
    let mut child = sandbox
        .command()
        .args(["serve", "--listen", "127.0.0.1:0", "--log", "json"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = |wanted: &str| {
        let line = lines.by_ref().map_while(Result::ok);
        line.into_iter().find(|line| line.contains(wanted)).unwrap()
    };
    let serving = next("serving at ");
    let (_, address) = serving.split_once("http://").unwrap();
    let address = address.split(',').next().unwrap().to_owned();
    let tried = next("try: curl");
    assert!(tried.contains("-H 'Authorization: Bearer KEY'"), "{tried}");
    let mut answers = std::collections::BTreeSet::new();
    for (shown, reason) in [
        (revoked.as_str(), "the key was revoked"),
        ("Bearer nonsense", "the key is malformed or has a typo"),
        ("Basic x", "the Authorization header is not one"),
    ] {
        let answer = super::ask_at(
            &address,
            "GET",
            "/v1/stats",
            &[("Authorization", shown)],
            "",
        );
        assert_eq!(answer.status, 401, "{answer:?}");
        answers.insert(answer.json()["detail"].to_string());
        let line = next("unauthorized");
        assert!(line.contains(reason), "{line}");
        let secret = shown.rsplit(['_', ' ']).next().unwrap();
        assert!(!line.contains(secret) || secret == "x", "{line}");
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|said| said.contains("missing or not valid")),
        "{answers:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}
