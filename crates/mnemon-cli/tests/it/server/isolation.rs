//! Every operation, tried with a key of another tenant and with a key of another user: nothing is read
//! or changed, and the answer is the one for something that never existed.

use std::collections::BTreeSet;

use mnemon_server::http::{PAGES, openapi};
use serde_json::{Value, json};

use super::pages::Browser;
use super::{Answer, Server};
use crate::sandbox::Sandbox;

/// Ids, sessions, users, cursors and keys that belong to somebody else.
struct Target {
    id: &'static str,
    session: &'static str,
    agent: &'static str,
    team: &'static str,
    label: &'static str,
    /// An idempotency key.
    key: &'static str,
    /// The prefix of an access key.
    prefix: String,
    webhook: String,
    commit: &'static str,
}

impl Target {
    fn theirs(prefix: String, webhook: String) -> Self {
        Self {
            id: "their-id-1",
            session: "their-session-1",
            agent: "their-agent-1",
            team: "their-team-1",
            label: "their-label-1",
            key: "their-key-1",
            prefix,
            webhook,
            commit: "1",
        }
    }

    /// Names of the same length that nobody has.
    fn nobodys(prefix: &str) -> Self {
        Self {
            id: "empty-id-1",
            session: "empty-session-1",
            agent: "empty-agent-1",
            team: "empty-team-1",
            label: "empty-label-1",
            key: "empty-key-1",
            prefix: "z".repeat(prefix.len()),
            webhook: "webhook-00000000-0000-7000-8000-000000000000".to_owned(),
            commit: "9",
        }
    }

    fn names(&self) -> [&str; 8] {
        [
            self.id,
            self.session,
            self.agent,
            self.team,
            self.label,
            self.key,
            &self.prefix,
            &self.webhook,
        ]
    }

    fn path(&self, template: &str) -> String {
        let parts = [
            ("{commit}", self.commit),
            ("{id}", self.id),
            ("{session}", self.session),
            ("{agent}", self.agent),
            ("{team}", self.team),
            ("{label}", self.label),
            ("{prefix}", &self.prefix),
            ("{webhook}", &self.webhook),
            (
                "{working_context_offload_uuid}",
                "00000000-0000-4000-8000-000000000000",
            ),
        ];
        let path = parts
            .iter()
            .fold(template.to_owned(), |path, (part, name)| {
                path.replace(part, name)
            });
        assert!(!path.contains('{'), "{path}");
        path
    }

    /// The rows of the matrix: an operation, its query, its body. A route without a row fails.
    #[expect(
        clippy::too_many_lines,
        reason = "it is a table with a row for each route"
    )]
    fn rows(&self) -> Vec<(&'static str, String, Value)> {
        let ids = json!({"ids": [self.id]});
        let session = format!("?session={}", self.session);
        let title = json!({"which": "Theirs"});
        let row = |operation, body: Value| (operation, String::new(), body);
        vec![
            row(
                "add",
                json!({"content": "mine", "derived_from": [self.id], "key": self.key}),
            ),
            ("list", session.clone(), Value::Null),
            row("get", Value::Null),
            row("update", json!({"content": "mine"})),
            row("records_delete", Value::Null),
            row(
                "search",
                json!({"query": "their secret", "session": self.session, "min_score": 0}),
            ),
            row(
                "context",
                json!({"query": "their secret", "session": self.session}),
            ),
            ("history", format!("?id={}", self.id), Value::Null),
            row("undo", json!({"record": self.id})),
            row(
                "note_add",
                json!({"content": "mine", "key": format!("{}-note", self.key)}),
            ),
            ("note_list", session.clone(), Value::Null),
            row(
                "note_search",
                json!({"query": "their secret", "min_score": 0}),
            ),
            row("note_stats", Value::Null),
            row("note_clear", json!({"namespace": "all"})),
            row("note_cleanup", json!({})),
            row("note_get", Value::Null),
            row("note_delete", Value::Null),
            row(
                "chat_append",
                json!({"content": "mine", "key": format!("{}-chat", self.key)}),
            ),
            row("chat_prepare", Value::Null),
            row("chat_record", json!({})),
            row("chat_reload", Value::Null),
            row("chat_query", json!({"query": "their secret"})),
            row("chat_list", Value::Null),
            row("chat_delete", Value::Null),
            row("conversations_session_window", Value::Null),
            row("chat_tail", Value::Null),
            row("chat_events", Value::Null),
            row("chat_compress", json!({})),
            row("conversations_session_compressions_preview", json!({})),
            row(
                "chat_fork",
                json!({"to": format!("copy-of-{}", self.session)}),
            ),
            row("chat_snapshot", json!({"label": self.label})),
            row("chat_restore", json!({})),
            row("conversations_session_snapshots_delete", Value::Null),
            row("chat_clear", json!({})),
            row("long_term_record", json!({"content": ["mine"]})),
            row("long_term_retrieve", json!({"keywords": ["their secret"]})),
            row(
                "write",
                json!({"user": "ann", "session": self.session, "scope": "profile", "data": {"a": 1}}),
            ),
            row(
                "read",
                json!({"user": "ann", "session": self.session, "query": "their secret"}),
            ),
            row("stats", Value::Null),
            ("policy_show", "?flow=theirs".to_owned(), Value::Null),
            row("upkeep", json!({})),
            row("reembed", json!({})),
            row("index_check", json!({})),
            row("index_rebuild", json!({})),
            row("doctor", Value::Null),
            row("forget", ids.clone()),
            row("forget_preview", json!({"session": self.session})),
            row("session_list", Value::Null),
            row("session_load", Value::Null),
            row("session_save", json!({"state": {"memory": {}}})),
            row("session_delete", Value::Null),
            row(
                "session_fork",
                json!({"to": format!("copy-of-{}", self.session)}),
            ),
            row("session_snapshot", json!({"label": self.label})),
            row("session_restore", json!({"label": self.label})),
            row("experience_log", json!({"tool": "t", "task_type": "x"})),
            row("experience_failures", Value::Null),
            row("experience_traces", Value::Null),
            row("skill_list", Value::Null),
            row("skill_search", json!({"query": "their secret"})),
            row("skill_export", Value::Null),
            row("skill_import", json!({"skills": []})),
            row("skill_show", Value::Null),
            row("skill_approve", json!({})),
            row("skill_reject", json!({})),
            row("skill_retire", json!({})),
            row("skill_pin", json!({})),
            row("skill_unpin", json!({})),
            row("skill_edit", json!({"use_when": "mine"})),
            row("key_create", json!({"name": "mine", "rights": "read"})),
            row("key_list", Value::Null),
            row("key_revoke", Value::Null),
            row("key_rotate", json!({})),
            row("webhook_create", json!({"url": "https://hooks.invalid/"})),
            row("webhook_list", Value::Null),
            row("webhook_failed", Value::Null),
            row("webhook_redeliver", json!({"number": 1})),
            row("webhook_delete", Value::Null),
            row("learn_run", json!({})),
            row("learn_status", Value::Null),
            row("learn_dry_run", json!({})),
            row("learn_improve", json!({})),
            row("agent_list", Value::Null),
            row(
                "agent_new",
                json!({"agent": format!("new-{}", self.agent), "description": "Mine"}),
            ),
            row("agent_lint", Value::Null),
            row("agent_index", json!({})),
            row("agent_activate", json!({})),
            row("agent_context", json!({})),
            row(
                "agent_decide",
                json!({"title": "Mine", "decision": "d", "reason": "r"}),
            ),
            row(
                "agent_learn",
                json!({"title": "Mine", "pattern": "p", "why": "w"}),
            ),
            row("agent_edit", title.clone()),
            ("agent_remove", "?which=Theirs".to_owned(), Value::Null),
            row("agent_end", json!({})),
            row("agent_archive", json!({})),
            row("team_list", Value::Null),
            row(
                "team_new",
                json!({"team": format!("new-{}", self.team), "lead": "ada"}),
            ),
            row("team_status", Value::Null),
            row("team_activate", json!({"member": "ada"})),
            row("team_context", json!({})),
            row("team_decide", json!({"title": "Mine", "decision": "d"})),
            row("team_edit", title),
            ("team_remove", "?which=Theirs".to_owned(), Value::Null),
            row(
                "team_handoff",
                json!({"from": "ada", "to": "bob", "task": "t", "context": "c"}),
            ),
            row("team_accept", json!({"member": "ada"})),
            row("team_complete", json!({"member": "ada", "result": "r"})),
            row("team_block", json!({"title": "Mine", "by": "ada"})),
            row(
                "documents",
                json!({"documents": [{"uri": "theirs.md", "text": "mine"}]}),
            ),
            row(
                "documents_known",
                json!({"documents": [{"uri": "theirs.md"}]}),
            ),
            row("export", Value::Null),
            row("import", Value::Null),
            // A stream, which `feeds` tries.
            row("changes", Value::Null),
            row("healthz", Value::Null),
            row("readyz", Value::Null),
            row("metrics", Value::Null),
        ]
    }
}

impl Target {
    /// The rows of the pages: method and path, with the query or the fields of the form. A page
    /// without a row fails.
    fn page_rows(&self) -> Vec<(&'static str, String)> {
        let row = |page, fields: &str| (page, fields.to_owned());
        let session = |page| (page, format!("session={}", self.session));
        vec![
            row("GET /", ""),
            row("GET /search", "q=their+secret+THEIR"),
            session("GET /records"),
            row("GET /records/{id}", ""),
            row("GET /records/{id}/delete", ""),
            row("POST /records/{id}/delete", ""),
            row("GET /history", ""),
            row("GET /history/{commit}", ""),
            row("POST /history/{commit}/undo", ""),
            row("GET /conversations", ""),
            row("GET /conversations/{session}", ""),
            (
                "POST /conversations/{session}/fork",
                format!("to=page-of-{}", self.session),
            ),
            row("POST /conversations/{session}/snapshots", "label=mine"),
            row("GET /skills", ""),
            row("GET /skills/{id}", ""),
            row("POST /skills/{id}/state", "decision=approve"),
            row("GET /agents", ""),
            row("GET /agents/{agent}", ""),
            row("GET /teams/{team}", ""),
            row("GET /admin", ""),
            row("GET /admin/audit", ""),
            row("POST /admin/keys", "name=mine&rights=read"),
            row("GET /admin/keys/{prefix}/revoke", ""),
            row("POST /admin/keys/{prefix}/revoke", ""),
            row("GET /admin/keys/{prefix}/rotate", ""),
            row("POST /admin/keys/{prefix}/rotate", ""),
            row("POST /admin/webhooks", "url=https%3A%2F%2Fhooks.invalid%2F"),
            row("GET /admin/webhooks/{webhook}/delete", ""),
            row("POST /admin/webhooks/{webhook}/delete", ""),
            row("GET /admin/webhooks/{webhook}/failed", ""),
            row("POST /admin/webhooks/{webhook}/redeliver", "number=1"),
            row("POST /demo", ""),
            row("POST /demo/leave", ""),
            row("GET /demo/remove", ""),
            row("POST /demo/remove", ""),
        ]
    }
}

/// Opens every page and sends every form, in a session of the key, with both targets.
fn compare_pages(server: &Server, key: &str, theirs: &Target, nobodys: &Target) -> Vec<String> {
    let browser = Browser::sign_in(server, key);
    let mut wrong = Vec::new();
    let mut rows: BTreeSet<String> = BTreeSet::new();
    for (page, _) in theirs.page_rows() {
        rows.insert(page.to_owned());
    }
    let known = PAGES
        .iter()
        .map(|page| format!("{} {}", page.method, page.path));
    assert_eq!(rows, known.collect(), "each page has a row");
    for (place, (page, _)) in theirs.page_rows().iter().enumerate() {
        let ask = |target: &Target| -> Answer {
            let (_, fields) = &target.page_rows()[place];
            let (method, path) = page.split_once(' ').unwrap();
            let path = target.path(path);
            match method {
                "GET" => browser.get(&format!("{path}?{fields}")),
                _ => browser.post(&path, fields),
            }
        };
        let (of_theirs, of_nobody) = (ask(theirs), ask(nobodys));
        if of_theirs.body.contains("THEIR-SECRET") {
            wrong.push(format!("{page} shows the secret: {}", of_theirs.body));
        }
        if of_theirs.status != of_nobody.status {
            wrong.push(format!(
                "{page} tells that it exists: {of_theirs:?} and {of_nobody:?}"
            ));
        }
        let plain = |answer: &Answer| {
            let names = theirs.names().into_iter().chain(nobodys.names());
            names.fold(answer.body.clone(), |body, name| {
                body.replace(name, "[name]")
            })
        };
        if of_theirs.status >= 400 && plain(&of_theirs) != plain(&of_nobody) {
            wrong.push(format!("{page} differs: {of_theirs:?} and {of_nobody:?}"));
        }
        if of_theirs.status >= 500 {
            wrong.push(format!("{page} fails: {of_theirs:?}"));
        }
    }
    wrong
}

/// Whether the operation of a row is a stream without an end.
const STREAMS: &[&str] = &["changes"];

fn key(sandbox: &Sandbox, args: &[&str]) -> (String, String) {
    let args = [&["key", "create"], args, &["--json"]].concat();
    let made = sandbox.run(&args).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["secret"]), text(&made["key"]["prefix"]))
}

/// Runs a command that must succeed.
fn run(sandbox: &Sandbox, line: &str, more: &[&str]) {
    let args: Vec<&str> = line
        .split_whitespace()
        .chain(more.iter().copied())
        .collect();
    let ran = sandbox.run(&args);
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
}

/// Records, notes, a conversation, a state, a skill, agents and teams that hold the secret.
fn fill(sandbox: &Sandbox, owner: &[&str]) {
    let with = |more: &[&'static str]| -> Vec<String> {
        more.iter()
            .chain(owner)
            .map(|&word| word.to_owned())
            .collect()
    };
    let call = |line: &str, more: &[&'static str]| {
        let more = with(more);
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        run(sandbox, line, &more);
    };
    call(
        "add --id their-id-1 --session their-session-1 --key their-key-1 THEIR-SECRET",
        &[],
    );
    call("note add THEIR-SECRET-NOTE", &[]);
    call("chat append their-session-1 THEIR-SECRET-SAID", &[]);
    call("chat snapshot their-session-1 their-label-1", &[]);
    let state = sandbox.file("theirs.json", r#"{"memory": {"secret": "THEIR-SECRET"}}"#);
    let state: &'static str = Box::leak(state.into_boxed_str());
    call("session save their-session-1", &["--file", state]);
}

/// The id of a webhook of the tenant, whose address holds the secret.
fn webhook(sandbox: &Sandbox, tenant: &[&str]) -> String {
    let create = ["webhook", "create", "https://hooks.invalid/THEIR-SECRET"];
    let made = sandbox.run(&[&create, tenant, &["--json"]].concat());
    made.json()["id"].as_str().unwrap().to_owned()
}

/// Asks with both targets, and compares. What is created with the key of the caller is the caller's.
fn compare(server: &Server, bearer: &str, theirs: &Target, nobodys: &Target) -> Vec<String> {
    let document = openapi::document(&mnemon_cli::cli::command());
    let mut wrong = Vec::new();
    let mut tried = BTreeSet::new();
    let headers = [
        ("Authorization", bearer),
        ("Content-Type", "application/json"),
    ];
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            tried.insert(id.to_owned());
            if STREAMS.contains(&id) {
                continue;
            }
            let ask = |target: &Target| -> Answer {
                let rows = target.rows();
                let row = rows.iter().find(|(known, ..)| *known == id);
                let (_, query, body) =
                    row.unwrap_or_else(|| panic!("no row for {id}: {method} {path}"));
                let path = format!("{}{query}", target.path(path));
                let body = match body {
                    Value::Null => String::new(),
                    body => body.to_string(),
                };
                server.ask(&method.to_uppercase(), &path, &headers, &body)
            };
            let (of_theirs, of_nobody) = (ask(theirs), ask(nobodys));
            let text = format!("{}\n{}", of_theirs.head, of_theirs.body);
            if text.contains("THEIR-SECRET") {
                wrong.push(format!("{id} shows the secret: {}", of_theirs.body));
            }
            if of_theirs.status != of_nobody.status {
                wrong.push(format!(
                    "{id} tells that it exists: {of_theirs:?} and {of_nobody:?}"
                ));
            }
            let plain = |answer: &Answer| {
                let names = theirs.names().into_iter().chain(nobodys.names());
                names.fold(answer.body.clone(), |body, name| {
                    body.replace(name, "[name]")
                })
            };
            let (one, other) = (plain(&of_theirs), plain(&of_nobody));
            let is_error = of_theirs.status >= 400;
            let without_id = |text: &str| text.split("\"request_id\"").next().unwrap().to_owned();
            if is_error && without_id(&one) != without_id(&other) {
                wrong.push(format!("{id} differs: {one} and {other}"));
            }
            if of_theirs.status >= 500 {
                wrong.push(format!("{id} fails: {of_theirs:?}"));
            }
        }
    }
    let rows: BTreeSet<String> = theirs
        .rows()
        .iter()
        .map(|(id, ..)| (*id).to_owned())
        .collect();
    assert_eq!(tried, rows, "each route has a row, and each row a route");
    wrong
}

#[test]
fn a_key_of_one_tenant_reaches_nothing_of_another() {
    let sandbox = Sandbox::new();
    fill(&sandbox, &["--tenant", "beta"]);
    let (_, prefix) = key(
        &sandbox,
        &["theirs", "--rights", "read", "--tenant", "beta"],
    );
    let hook = webhook(&sandbox, &["--tenant", "beta"]);
    let (mine, _) = key(&sandbox, &["mine", "--rights", "admin", "--tenant", "acme"]);
    let state = || {
        let args = |line: &'static str| line.split(' ').collect::<Vec<_>>();
        let export = sandbox.run(&args("export --tenant beta")).ok();
        let history = sandbox
            .run(&args("history --tenant beta --json --limit 999"))
            .ok();
        let webhooks = sandbox.run(&args("webhook list --tenant beta --json")).ok();
        let keys = sandbox.run(&args("key list --tenant beta --json")).ok();
        export + &history + &keys + &webhooks
    };
    let before = state();
    let server = Server::start(&sandbox, &[]);
    let nobodys = Target::nobodys(&prefix);
    let theirs = Target::theirs(prefix, hook);
    let mut wrong = compare(&server, &format!("Bearer {mine}"), &theirs, &nobodys);
    wrong.extend(compare_pages(&server, &mine, &theirs, &nobodys));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state(), before, "the other tenant's memory changed");
}

#[test]
fn a_key_of_one_user_reaches_nothing_of_another() {
    let sandbox = Sandbox::new();
    fill(&sandbox, &["--user", "bob"]);
    let (mine, _) = key(&sandbox, &["mine", "--rights", "write", "--user", "ann"]);
    let (_, prefix) = key(&sandbox, &["theirs", "--rights", "read", "--user", "bob"]);
    let state = || {
        let args = |line: &'static str| line.split(' ').collect::<Vec<_>>();
        sandbox.run(&args("export --user bob")).ok()
            + &sandbox
                .run(&args("session load their-session-1 --user bob --json"))
                .ok()
    };
    let before = state();
    let server = Server::start(&sandbox, &[]);
    let bearer = format!("Bearer {mine}");
    let nobodys = Target {
        commit: "999999",
        ..Target::nobodys(&prefix)
    };
    let hook = webhook(&sandbox, &[]);
    let theirs = Target::theirs(prefix, hook);
    let mut wrong = compare(&server, &bearer, &theirs, &nobodys);
    wrong.extend(compare_pages(&server, &mine, &theirs, &nobodys));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state(), before, "the other user's memory changed");
    // Who names the other user is refused.
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    for (path, body) in [
        ("/v1/search", json!({"query": "secret", "user": "bob"})),
        ("/v1/records", json!({"content": "x", "user": "bob"})),
        (
            "/v1/records",
            json!({"content": "x", "audience": "user:bob"}),
        ),
        ("/v1/forget", json!({"user": "bob"})),
        (
            "/v1/write",
            json!({"user": "bob", "session": "s", "scope": "profile", "data": {}}),
        ),
        (
            "/v1/conversations/their-session-1/messages",
            json!({"content": "x", "user": "bob"}),
        ),
    ] {
        let answer = server.ask("POST", path, &headers, &body.to_string());
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
    }
    let all = server.ask(
        "POST",
        "/v1/forget",
        &headers,
        &json!({"kind": ["note"]}).to_string(),
    );
    assert_eq!(all.status, 200, "{all:?}");
    assert_eq!(
        state(),
        before,
        "forgetting by a filter reached the other user"
    );
}

#[test]
fn learning_shows_a_bound_key_no_tasks_of_others() {
    let sandbox = Sandbox::new();
    let step = r#"{"tool":"t","task_type":"bob_private_task","error":"x"}"#;
    run(&sandbox, "experience log", &[step, "--user", "bob"]);
    run(&sandbox, "learn run", &[]);
    let (mine, _) = key(&sandbox, &["mine", "--rights", "read", "--user", "ann"]);
    let (all, _) = key(&sandbox, &["all", "--rights", "read"]);
    let server = Server::start(&sandbox, &[]);
    let list = |key: &str| {
        let bearer = format!("Bearer {key}");
        let path = "/v1/records?kind=session";
        server
            .ask("GET", path, &[("Authorization", &bearer)], "")
            .body
    };
    let (seen_by_all, seen_by_ann) = (list(&all), list(&mine));
    assert!(seen_by_all.contains("bob_private_task"), "{seen_by_all}");
    assert!(!seen_by_ann.contains("bob_private_task"), "{seen_by_ann}");
}
