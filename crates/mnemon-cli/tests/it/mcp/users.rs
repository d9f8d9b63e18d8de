//! A server that was started for one user or one tenant: no tool, resource or prompt shows
//! another's memory, whatever the caller asks for.

use serde_json::{Map, Value, json};

use super::client::Client;
use crate::sandbox::Sandbox;
use crate::tenants::{self, SECRET};

/// A word that only Bob's memory holds, and words of the same texts to find it by.
const BOBS: &str = "zanzibar";
const QUERY: &str = "secret island";

/// What `tests/clients` calls each tool with.
const CALLS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/clients/calls.json"
);

struct Bob {
    note: Value,
    offload: String,
}

/// A project in which Bob has notes, a conversation, knowledge and steps.
fn bob(sandbox: &Sandbox) -> Bob {
    sandbox.run(&["init"]).ok();
    sandbox
        .run(&["agent", "new", "coder", "--description", "Writes the code"])
        .ok();
    for member in ["ada", "linus"] {
        let folder = sandbox.path(&format!(".microai/teams/core/{member}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("agent.md"), "---\nname: x\n---\nYou work.\n").unwrap();
    }
    let text = format!("The {QUERY} is {BOBS}. ");
    for (role, said) in [
        ("user", text.repeat(300)),
        ("assistant", "I have read it.".to_owned()),
        ("user", "What did it say?".to_owned()),
    ] {
        let append = [
            "chat", "append", "talk", &said, "--user", "bob", "--role", role,
        ];
        sandbox.run(&append).ok();
    }
    sandbox
        .run(&[
            "chat",
            "compress",
            "talk",
            "--user",
            "bob",
            "--last-keep",
            "1",
        ])
        .ok();
    let shown = ["chat", "show", "talk", "--user", "bob", "--json"];
    let shown = sandbox.run(&shown).json();
    let messages = shown["messages"].as_array().unwrap();
    let offload = messages.iter().find_map(|one| one["uuid"].as_str());
    let mut all = Client::start(sandbox, &["--tools", "all"]);
    let note = json!({"content": text, "user": "bob", "namespace": "long-term"});
    let note = all.call("memory_add", note)["id"].clone();
    all.tool(
        "record_to_memory",
        json!({"content": [text], "user": "bob"}),
    );
    let step = json!({"tool": "sail", "task_type": "deploy", "goal": text, "remember": text,
        "outcome": "success", "trace_id": "r", "user": "bob"});
    all.tool("log_step", step);
    let found = all.text("memory_search", json!({"query": QUERY, "user": "bob"}));
    assert!(found.contains(BOBS), "Bob himself finds it: {found}");
    Bob {
        note,
        offload: offload.expect("an offload").to_owned(),
    }
}

/// The arguments, with Bob's ids and with a query that his texts answer.
fn asking(arguments: &Value, bob: &Bob) -> Map<String, Value> {
    let mut arguments = arguments.as_object().unwrap().clone();
    for (name, value) in &mut arguments {
        match (name.as_str(), value.as_str()) {
            ("query" | "task" | "goal", _) => *value = json!(QUERY),
            ("keywords", _) => *value = json!([QUERY]),
            ("session", _) => *value = json!("talk"),
            (_, Some("$id")) => *value = bob.note.clone(),
            (_, Some("$offload")) => *value = json!(bob.offload),
            _ => {}
        }
    }
    arguments.remove("user");
    arguments
}

#[test]
fn no_tool_of_one_users_server_serves_another_user() {
    let sandbox = Sandbox::new();
    let bob = bob(&sandbox);
    let mut ann = Client::start(&sandbox, &["--tools", "all", "--user", "ann"]);
    let calls: Vec<(String, Value)> =
        serde_json::from_str(&std::fs::read_to_string(CALLS).unwrap()).unwrap();
    let tools = ann.ask("tools/list", json!({}))["tools"].clone();
    let mut with_user = 0;
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let call = calls.iter().find(|(called, _)| called == name);
        let (_, arguments) = call.unwrap_or_else(|| panic!("no call of {name} in calls.json"));
        let mut arguments = asking(arguments, &bob);
        let takes_user = tool["inputSchema"]["properties"].get("user").is_some();
        for alias in ["user", "user_id", "userId"] {
            arguments.insert(alias.to_owned(), json!("bob"));
            let said = ann.fails(name, Value::Object(arguments.clone()));
            let expected = match takes_user {
                true => "this server serves only `ann`",
                false => "is not a known field",
            };
            assert!(said.contains(expected), "{name}: {said}");
            arguments.remove(alias);
        }
        with_user += usize::from(takes_user);
        // What removes notes would hide what later tools show.
        if name.starts_with("memory_clear") || name == "memory_delete" {
            continue;
        }
        let answer = ann.tool(name, Value::Object(arguments.clone())).to_string();
        assert!(!answer.contains(BOBS), "{name}: {answer}");
        if takes_user {
            arguments.insert("user".to_owned(), json!("ann"));
            let answer = ann.tool(name, Value::Object(arguments)).to_string();
            assert!(!answer.contains("serves only"), "{name}: {answer}");
        }
    }
    assert!(with_user >= 7, "only {with_user} tools take a user");
    let said = ann.fails("memory_delete", json!({"id": bob.note}));
    assert!(said.contains("there is no record"), "{said}");
    for tool in ["memory_clear_short_term", "memory_clear_all"] {
        ann.call(tool, json!({}));
    }
    let mut again = Client::start(&sandbox, &["--tools", "notes", "--user", "bob"]);
    let found = again.text("memory_search", json!({"query": QUERY}));
    assert!(found.contains(BOBS), "Ann deleted it: {found}");
}

#[test]
fn no_resource_or_prompt_of_one_users_server_shows_another_user() {
    let sandbox = Sandbox::new();
    bob(&sandbox);
    let mut ann = Client::start(&sandbox, &["--tools", "all", "--user", "ann"]);
    let window = json!({"uri": "mnemon://sessions/bob/talk/window"});
    let refused = ann.request("resources/read", window.clone());
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("this server serves only `ann`"), "{said}");
    let listed = ann.ask("resources/list", json!({}));
    assert!(!listed.to_string().contains("bob"), "{listed}");
    for resource in listed["resources"].as_array().unwrap() {
        let read = ann.ask("resources/read", json!({"uri": resource["uri"]}));
        assert!(!read.to_string().contains(BOBS), "{read}");
    }
    for prompt in ["recall", "end_session"] {
        let arguments = json!({"name": prompt, "arguments": {"topic": QUERY}});
        let got = ann.ask("prompts/get", arguments);
        assert!(!got.to_string().contains(BOBS), "{got}");
    }
    let mut all = Client::start(&sandbox, &["--tools", "all"]);
    let read = all.ask("resources/read", window);
    assert!(read.to_string().contains("What did it say?"), "{read}");
}

#[test]
fn an_mcp_server_shows_the_files_of_its_tenant_only() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    tenants::write(&sandbox, "aa");
    let mut client = Client::start(&sandbox, &["--tools", "all", "--tenant", "bb"]);
    for (tool, arguments) in [
        ("agent_list", json!({})),
        ("agent_activate", json!({"agent": "coder"})),
        ("agent_context", json!({"agent": "coder"})),
        ("query_memory", json!({"query": SECRET})),
        ("memory_search", json!({"query": SECRET})),
        ("memory_context", json!({"query": SECRET, "session": "t1"})),
    ] {
        let answer = client.tool(tool, arguments);
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(!text.contains(SECRET), "{tool}: {text}");
    }
    let listed = client.ask("resources/list", json!({})).to_string();
    assert!(!listed.contains("coder"), "{listed}");
    let decided = json!({"agent": "coder", "title": "Row", "context": "c", "decision": "d"});
    let made = json!({"agent": "coder", "description": "x"});
    client.text("agent_new", made);
    let text = client.text("agent_decide", decided);
    assert!(text.contains("tenants/bb/.microai/agents/coder"), "{text}");
}

/// Everything that is remembered is found by one search, and nothing that is another's.
#[test]
fn a_search_sees_all_kinds_and_only_what_the_user_may_see() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("docs")).unwrap();
    sandbox.file(
        "docs/kettle.md",
        "# Kettle\n\nDescale the kettle with vinegar.\n",
    );
    sandbox.run(&["ingest", "docs"]).ok();
    let adds: [&[&str]; 5] = [
        &["add", "--kind", "fact", "The office is in Hanoi"],
        &["add", "--kind", "decision", "We deploy with Ansible"],
        &["add", "The release train leaves on Tuesdays"],
        &["add", "--user", "bob", "The safe opens with 4711"],
        &[
            "chat",
            "append",
            "trip",
            "My flight lands at nine",
            "--user",
            "ann",
            "--role",
            "user",
        ],
    ];
    adds.iter().for_each(|add| drop(sandbox.run(add).ok()));
    let mut client = Client::start(&sandbox, &["--user", "ann"]);
    let mut search = |arguments: Value| client.call("memory_search", arguments);
    for (query, source, summary) in [
        (
            "how do I descale the kettle",
            "docs/kettle.md › Kettle",
            "vinegar",
        ),
        ("where is the office", "", "Hanoi"),
        ("how do we deploy", "", "Ansible"),
        ("when does the release train leave", "", "Tuesdays"),
        ("when does my flight land", "conversation trip", "nine"),
    ] {
        let found = search(json!({"query": query}));
        let first = &found["results"][0];
        let text = |field: &str| first[field].as_str().unwrap_or_default().to_owned();
        assert!(text("summary").contains(summary), "{query}: {found}");
        assert!(text("source").ends_with(source), "{query}: {found}");
    }
    for nothing in ["how does the safe open", "quantum chromodynamics", "..."] {
        let found = search(json!({"query": nothing}));
        assert_eq!(found["found"], false, "{nothing}: {found}");
    }
    let narrowed = search(json!({"query": "office", "kind": ["note"]}));
    assert_eq!(narrowed["found"], false, "{narrowed}");
    let within = search(json!({"query": "flight", "session": "trip", "since": "1d"}));
    assert_eq!(within["total"], 1, "{within}");
    let id = within["results"][0]["id"].clone();
    let read = client.call("memory_get", json!({"id": id}));
    assert_eq!(read["content"], "My flight lands at nine");
}

#[test]
fn a_user_without_a_name_is_refused() {
    let sandbox = Sandbox::new();
    for words in [
        &["mcp", "--user", ""][..],
        &["mcp", "--user", " "],
        &["mcp", "install", "claude", "--user", "", "--dry-run"],
    ] {
        let (code, error) = sandbox.run(words).failed();
        assert_eq!(code, 2, "{words:?}: {error}");
        assert!(
            error.contains("--user") && error.contains("is empty"),
            "{error}"
        );
    }
}
