//! Conversations and long-term memory over MCP.

use serde_json::{Value, json};

use super::client::Client;
use crate::sandbox::Sandbox;

const ANN: &[&str] = &["--tools", "agent", "--user", "ann"];

fn append(client: &mut Client, session: &str, role: &str, content: &str) -> Value {
    let arguments = json!({"session": session, "role": role, "content": content});
    client.tool("append_to_conversation", arguments)["structuredContent"].clone()
}

#[test]
fn a_conversation_is_appended_to_and_read() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, ANN);
    append(&mut client, "s1", "user", "Where is the tea house?");
    append(&mut client, "s1", "assistant", "In the old town.");
    let call = json!({"session": "s1", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "/"}}]}});
    client.tool("append_to_conversation", call);
    for _ in 0..2 {
        let once = json!({"session": "s1", "content": "Thanks.", "key": "k1"});
        client.tool("append_to_conversation", once);
    }
    let read = client.text("read_conversation", json!({"session": "s1"}));
    assert!(read.contains("[USER]\n> Where is the tea house?"), "{read}");
    assert!(read.contains("[ASSISTANT]\n> In the old town."), "{read}");
    assert_eq!(read.matches("Thanks.").count(), 1, "{read}");
    let rest = client.text("read_conversation", json!({"session": "s1", "from": 3}));
    assert!(
        rest.contains("Thanks.") && !rest.contains("tea house"),
        "{rest}"
    );
    let tail = sandbox.run(&["chat", "tail", "s1", "--user", "ann"]).ok();
    assert_eq!(tail.lines().count(), 4, "{tail}");
    // The error names this user's conversations and nobody else's.
    sandbox
        .run(&["chat", "append", "s9", "x", "--user", "bob"])
        .ok();
    let said = client.fails("read_conversation", json!({"session": "s9"}));
    assert!(
        said.contains("the nearest: `s1` of user `ann`") && !said.contains("bob"),
        "{said}"
    );
}

#[test]
fn a_replaced_message_is_reloaded_by_its_uuid_alone() {
    let sandbox = Sandbox::new();
    let long = "Read this. ".repeat(700);
    for (role, text) in [
        ("user", long.as_str()),
        ("assistant", "I have."),
        ("user", "And?"),
    ] {
        let args = [
            "chat", "append", "long", text, "--user", "ann", "--role", role,
        ];
        sandbox.run(&args).ok();
    }
    sandbox
        .run(&[
            "chat",
            "compress",
            "long",
            "--user",
            "ann",
            "--last-keep",
            "1",
        ])
        .ok();
    let shown = sandbox
        .run(&["chat", "show", "long", "--user", "ann", "--json"])
        .json();
    let uuid = shown["messages"][0]["uuid"].as_str().unwrap();
    let reload = json!({"working_context_offload_uuid": uuid});
    let mut ann = Client::start(&sandbox, ANN);
    assert!(
        ann.text("context_reload", reload.clone())
            .contains("Read this.")
    );
    let mut bob = Client::start(&sandbox, &["--tools", "agent", "--user", "bob"]);
    let said = bob.fails("context_reload", reload);
    assert!(said.contains("No messages found for UUID"), "{said}");
}

#[test]
fn a_query_finds_what_its_description_promises() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, ANN);
    client.text(
        "record_to_memory",
        json!({"content": ["Ann likes to travel to Japan"]}),
    );
    for n in 0..24 {
        append(
            &mut client,
            "s1",
            "user",
            &format!("Flowers of row {n} are red"),
        );
    }
    sandbox
        .run(&["chat", "append", "s1", "My own flowers", "--user", "bob"])
        .ok();
    let found = client.text("query_memory", json!({"query": "Japan travel"}));
    assert!(found.contains("Ann likes to travel"), "{found}");
    let found = client.text("query_memory", json!({"query": "flowers", "limit": 50}));
    assert!(
        found.contains("[conversation s1]\n> Flowers of row"),
        "{found}"
    );
    assert!(!found.contains("My own flowers"), "{found}");
}

#[test]
fn a_model_may_send_empty_and_null_values_to_record() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, ANN);
    let done = "Successfully recorded to long-term memory";
    for (arguments, answer) in [
        (json!({"content": ["Tea is green"], "thinking": ""}), done),
        (
            json!({"content": ["Valid", "", null, "Another"], "thinking": null}),
            done,
        ),
        (json!({"content": null}), "No content provided to record"),
        (json!({"content": []}), "No content provided to record"),
        (json!({}), "No content provided to record"),
        (
            json!({"content": ["", " ", null]}),
            "No valid content to record",
        ),
    ] {
        let said = client.text("record_to_memory", arguments.clone());
        assert_eq!(said, answer, "{arguments}");
    }
    let listed = sandbox.run(&["list", "--user", "ann", "--json"]).json();
    assert_eq!(listed["records"].as_array().unwrap().len(), 3, "{listed}");
    let said = client.text("retrieve_from_memory", json!({"keywords": null}));
    assert_eq!(said, "No keywords provided for search");
}

#[test]
fn static_mode_reads_and_records_for_the_model() {
    let sandbox = Sandbox::new();
    let names = |client: &mut Client| client.ask("tools/list", json!({})).to_string();
    let mut agent = Client::start(&sandbox, ANN);
    assert!(names(&mut agent).contains("record_to_memory"));
    append(&mut agent, "s0", "assistant", "I do not record this.");
    let mut client = Client::start(&sandbox, &[ANN, &["--long-term", "static"]].concat());
    assert!(!names(&mut client).contains("record_to_memory"));
    append(&mut client, "monday", "user", "I am allergic to peanuts.");
    let done = append(&mut client, "monday", "assistant", "I will remember that.");
    assert_eq!(done["recorded"], true);
    append(
        &mut client,
        "friday",
        "user",
        "Which snacks with peanuts may I eat?",
    );
    let read = client.text("read_conversation", json!({"session": "friday"}));
    assert!(
        read.contains("<long_term_memory>") && read.contains("allergic"),
        "{read}"
    );
    assert!(!read.contains("do not record"), "{read}");
    let read = agent.text("read_conversation", json!({"session": "friday"}));
    assert!(!read.contains("allergic"), "{read}");
}

#[test]
fn content_and_message_are_alternatives() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, ANN);
    let lines = json!({"session": "s1", "content": ["a", "b"], "user": ""});
    client.tool("append_to_conversation", lines);
    let tail = sandbox.run(&["chat", "tail", "s1", "--user", "ann"]).ok();
    assert_eq!(tail, "user: a\nb\n");
    let both = json!({"session": "s1", "content": "a", "message": {"content": "b"}});
    let said = client.fails("append_to_conversation", both);
    assert!(
        said.contains("content: is given together with message"),
        "{said}"
    );
    let neither = json!({"session": "s1", "content": null});
    let said = client.fails("append_to_conversation", neither);
    assert!(
        said.contains("content: is missing") && said.contains("or give message"),
        "{said}"
    );
    let call = json!({"session": "s1", "message": {"role": "assistant", "content": null,
        "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "ls", "arguments": "{}"}}]}});
    client.tool("append_to_conversation", call);
    let read = client.text("read_conversation", json!({"session": "s1"}));
    assert!(read.contains("ls"), "{read}");
    let read = client.text("read_conversation", json!({"session": "s1", "from": 9}));
    assert!(read.contains("beyond the end: there are 2"), "{read}");
    let once = json!({"session": "s1", "content": "Thanks.", "key": "k1"});
    client.text("append_to_conversation", once.clone());
    let said = client.text("append_to_conversation", once);
    assert!(said.contains("Already there"), "{said}");
}

#[test]
fn messages_that_are_sent_at_once_keep_their_order() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    for n in 0..30 {
        let arguments = json!({
            "session": "s1", "user": "ann", "role": "user", "content": format!("message {n:02}"),
        });
        let params = json!({"name": "append_to_conversation", "arguments": arguments});
        let call =
            json!({"jsonrpc": "2.0", "id": 1000 + n, "method": "tools/call", "params": params});
        client.say(&call.to_string());
    }
    for _ in 0..30 {
        let answer = client.hear();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let shown = sandbox
        .run(&["chat", "tail", "s1", "--user", "ann", "-n", "30"])
        .ok();
    let said: Vec<&str> = shown.matches("message ").collect();
    assert_eq!(said.len(), 30, "{shown}");
    let places = (0..30).map(|n| shown.find(&format!("message {n:02}")).unwrap());
    let places: Vec<usize> = places.collect();
    assert!(places.is_sorted(), "{shown}");
}
