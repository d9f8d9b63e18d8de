use serde_json::{Value, json};

use super::*;

fn request(client: Client, level: Level) -> Request {
    Request {
        client,
        level,
        name: NAME.to_owned(),
        command: "mnemon".to_owned(),
        args: Vec::new(),
        project: PathBuf::from("/project"),
        home: Some(PathBuf::from("/home/ann")),
        config_home: None,
    }
}

fn entry(client: Client) -> serde_json::Map<String, Value> {
    client::entry(&request(client, Level::User))
}

#[test]
fn other_entries_and_comments_stay() {
    let before = r#"// my settings
{
  "theme": "One", // dark
  /* servers */
  "context_servers": {
    "other": { "command": "x", "args": [] },
  },
}
"#;
    let after = edit::json(before, "context_servers", "mnemon", &entry(Client::Zed)).unwrap();
    for kept in [
        "// my settings",
        "// dark",
        "/* servers */",
        r#""other": { "command": "x", "args": [] }"#,
    ] {
        assert!(after.contains(kept), "{after}");
    }
    let options = jsonc_parser::ParseOptions::default();
    let root = jsonc_parser::cst::CstRootNode::parse(&after, &options).unwrap();
    let servers = root.object_value().unwrap().object_value("context_servers");
    assert!(servers.unwrap().get("mnemon").is_some(), "{after}");
    let again = edit::json(&after, "context_servers", "mnemon", &entry(Client::Zed)).unwrap();
    assert_eq!(again, after);
}

#[test]
fn opencode_keeps_the_layout_that_its_file_has() {
    let entry = entry(Client::Opencode);
    let wanted = json!({"type": "local", "command": ["mnemon", "mcp"], "enabled": true});
    let first = edit::json("{}", "mcp", "mnemon", &entry).unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["mcp"]["mnemon"], wanted);
    let second = r#"{"mcp": {"servers": {"other": {"command": ["x"]}}}}"#;
    let second = edit::json(second, "mcp", "mnemon", &entry).unwrap();
    let second: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(second["mcp"]["servers"]["mnemon"], wanted);
    assert_eq!(second["mcp"]["servers"]["other"], json!({"command": ["x"]}));
}

#[test]
fn an_empty_file_becomes_one_with_the_entry() {
    for text in ["", " \n", "{}", "{\n}\n"] {
        let after = edit::json(text, "mcpServers", "mnemon", &entry(Client::Claude)).unwrap();
        let read: Value = serde_json::from_str(&after).unwrap();
        let wanted = json!({"mcpServers": {"mnemon": {
            "type": "stdio", "command": "mnemon", "args": ["mcp"],
        }}});
        assert_eq!(read, wanted, "{after}");
    }
}

#[test]
fn what_somebody_added_to_our_entry_stays() {
    let before = r#"{"context_servers": {"mnemon": {
        "command": "old", "args": ["mcp", "--tools", "all"], // mine
        "env": {"A": "1"},
    }}}"#;
    let after = edit::json(before, "context_servers", "mnemon", &entry(Client::Zed)).unwrap();
    for kept in [r#""env": {"A": "1"}"#, "// mine", r#""command": "mnemon""#] {
        assert!(after.contains(kept), "{after}");
    }
    assert!(
        !after.contains("--tools") && after.contains("custom"),
        "{after}"
    );
}

#[test]
fn an_old_entry_is_replaced_and_the_rest_kept() {
    let before = "{\"mcpServers\": {\"mnemon\": {\"command\": \"old\"}, \"b\": {}}, \"x\": 1}";
    let after = edit::json(before, "mcpServers", "mnemon", &entry(Client::Cursor)).unwrap();
    let read: Value = serde_json::from_str(&after).unwrap();
    assert_eq!(read["mcpServers"]["mnemon"]["command"], "mnemon");
    assert_eq!(
        (&read["mcpServers"]["b"], &read["x"]),
        (&json!({}), &json!(1))
    );
}

#[test]
fn what_is_not_what_it_should_be_is_left_alone() {
    for text in ["[1]", "{", "nonsense", "{\"mcpServers\": []}"] {
        let said = edit::json(text, "mcpServers", "mnemon", &entry(Client::Claude)).unwrap_err();
        assert!(said.contains("nothing was changed"), "{text}: {said}");
    }
    for text in ["mcp_servers = 5", "[mcp_servers]\nmnemon = 1", "= nonsense"] {
        let said = edit::toml(text, "mcp_servers", "mnemon", &entry(Client::Codex)).unwrap_err();
        assert!(said.contains("nothing was changed"), "{text}: {said}");
    }
}

#[test]
fn toml_keeps_its_comments() {
    let before = "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n";
    let after = edit::toml(before, "mcp_servers", "mnemon", &entry(Client::Codex)).unwrap();
    assert!(after.starts_with(before), "{after}");
    let read: toml::Table = after.parse().unwrap();
    let entry_read = &read["mcp_servers"]["mnemon"];
    assert_eq!(entry_read["command"].as_str(), Some("mnemon"));
    assert_eq!(entry_read["args"].as_array().unwrap().len(), 1);
    let again = edit::toml(&after, "mcp_servers", "mnemon", &entry(Client::Codex)).unwrap();
    assert_eq!(again, after);
}

#[test]
fn every_client_has_its_place() {
    use clap::ValueEnum;
    for client in Client::value_variants() {
        let user = client::place(&request(*client, Level::User)).unwrap();
        assert!(
            user.path.starts_with("/home/ann"),
            "{}",
            user.path.display()
        );
        let project = client::place(&request(*client, Level::Project));
        assert_eq!(project.is_ok(), client.knows_projects());
        if let Ok(project) = project {
            assert!(project.path.starts_with("/project"));
        }
    }
}

#[test]
fn a_file_that_changed_meanwhile_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = request(Client::Claude, Level::Project);
    wanted.project = folder.path().to_owned();
    let planned = run(&wanted).unwrap();
    assert_eq!(planned.before, None);
    fs::write(folder.path().join(".mcp.json"), "{\"a\": 1}").unwrap();
    assert!(write(&planned).is_err());
    let planned = run(&wanted).unwrap();
    write(&planned).unwrap();
    let planned = run(&wanted).unwrap();
    assert!(planned.is_done());
    assert!(planned.after.contains("\"a\": 1"));
}
