//! Which memory is meant where, and how a client is told of the server.

use serde_json::{Value, json};

use super::client::Client;
use crate::sandbox::Sandbox;

fn store(sandbox: &Sandbox, folder: &str) -> (String, String) {
    let output = sandbox
        .command()
        .current_dir(sandbox.path(folder))
        .args(["config", "--json"])
        .output()
        .unwrap();
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().or_else(|| rows["settings"].as_array());
    let row = rows
        .unwrap()
        .iter()
        .find(|row| row["key"] == "store")
        .unwrap()
        .clone();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("value"), text("origin"))
}

#[test]
fn the_nearest_project_above_is_meant() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("shop/src/deep")).unwrap();
    std::fs::create_dir_all(sandbox.path("elsewhere")).unwrap();
    let said = sandbox.run(&["init", "shop"]).ok();
    assert!(said.starts_with("created "), "{said}");
    let ignore = std::fs::read_to_string(sandbox.path("shop/.mnemon/.gitignore")).unwrap();
    assert!(ignore.lines().any(|line| line == "*"), "{ignore}");
    let (url, origin) = store(&sandbox, "shop/src/deep");
    assert!(url.ends_with("shop/.mnemon/mnemon.db"), "{url}");
    assert!(origin.starts_with("project "), "{origin}");
    let (url, origin) = store(&sandbox, "elsewhere");
    assert!(
        url.ends_with(".local/share/mnemon/mnemon.db") && origin == "default",
        "{url} {origin}"
    );
    let home = sandbox.path("own").display().to_string();
    let named = sandbox
        .command()
        .current_dir(sandbox.path("shop"))
        .env("MNEMON_HOME", &home)
        .args(["config"])
        .output()
        .unwrap();
    let named = String::from_utf8(named.stdout).unwrap();
    assert!(named.contains(&format!("{home}/mnemon.db")), "{named}");
}

#[test]
fn a_project_is_made_once() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["init"]).ok().starts_with("created "));
    sandbox.note("n1", "kept");
    std::fs::write(sandbox.path(".mnemon/.gitignore"), "mine\n").unwrap();
    let said = sandbox.run(&["init"]).ok();
    assert!(said.contains("nothing was changed"), "{said}");
    let ignore = std::fs::read_to_string(sandbox.path(".mnemon/.gitignore")).unwrap();
    assert_eq!(ignore, "mine\n");
    assert!(sandbox.run(&["list"]).ok().contains("kept"));
}

#[test]
fn a_server_serves_the_project_it_is_told() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("shop/docs")).unwrap();
    std::fs::write(
        sandbox.path("shop/docs/a.md"),
        "Opening hours are nine to five",
    )
    .unwrap();
    sandbox.run(&["init", "shop"]).ok();
    let mut client = Client::start(&sandbox, &["--project", "shop", "--tools", "all"]);
    client.call("memory_add", json!({"content_path": "docs/a.md"}));
    client.text("agent_new", json!({"agent": "a", "description": "x"}));
    client.tool(
        "agent_learn",
        json!({"agent": "a", "title": "t", "pattern": "p", "why": "w"}),
    );
    assert!(
        sandbox
            .path("shop/.microai/agents/a/memory/learnings.md")
            .is_file()
    );
    assert_eq!(client.leave(), 0);
    let found = sandbox
        .command()
        .current_dir(sandbox.path("shop"))
        .args(["search", "opening hours"])
        .output()
        .unwrap();
    assert!(
        String::from_utf8(found.stdout)
            .unwrap()
            .contains("nine to five")
    );
}

#[test]
fn a_client_is_told_after_the_change_was_shown() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    let shown = sandbox.run(&["mcp", "install", "claude", "--print"]).ok();
    assert!(
        shown.contains(".mcp.json") && shown.contains("+ "),
        "{shown}"
    );
    assert!(!sandbox.path(".mcp.json").exists());
    let (_, said) = sandbox.run(&["mcp", "install", "claude"]).failed();
    assert!(said.contains("--yes"), "{said}");
    assert!(!sandbox.path(".mcp.json").exists());
    sandbox.run(&["mcp", "install", "claude", "--yes"]).ok();
    let written = std::fs::read_to_string(sandbox.path(".mcp.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let entry = json!({"type": "stdio", "command": "mnemon", "args": ["mcp"]});
    assert_eq!(written, json!({"mcpServers": {"mnemon": entry}}));
    let said = sandbox.run(&["mcp", "install", "claude"]).ok();
    assert!(said.contains("nothing to change"), "{said}");
}

#[test]
fn init_says_what_goes_before_it() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["--store", "jsonl:elsewhere", "init"]).ok();
    assert!(
        said.contains("--store") && said.contains("jsonl:elsewhere"),
        "{said}"
    );
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["init"]).ok();
    assert!(!said.contains("but not where"), "{said}");
}

#[test]
fn a_client_gets_the_memory_that_was_named() {
    let sandbox = Sandbox::new();
    let args = ["--store", "jsonl:elsewhere", "--tenant", "t1"];
    let install = ["mcp", "install", "claude", "--user", "ann", "--print"];
    let shown = sandbox.run(&[&args[..], &install].concat()).ok();
    let elsewhere = sandbox.path("elsewhere").display().to_string();
    for said in ["--store", &elsewhere, "--tenant", "t1", "--user", "ann"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}

#[test]
fn the_password_of_a_store_is_not_written_for_a_client() {
    let sandbox = Sandbox::new();
    let hidden = "PW-5t7";
    let store = format!("postgres://ann\u{3a}{hidden}@127.0.0.1:1/db");
    for more in ["--yes", "--print"] {
        let args = ["--store", &store, "mcp", "install", "cursor", more];
        let ran = sandbox.run(&args);
        assert!(!ran.out.contains(hidden), "{}", ran.out);
        let (code, said) = ran.failed();
        assert_eq!(code, 2, "{said}");
        assert!(!said.contains(hidden), "{said}");
        let hints = ["--store", "`store` of mnemon.toml", "MNEMON_STORE"];
        assert!(hints.iter().all(|hint| said.contains(hint)), "{said}");
    }
    assert!(!sandbox.path(".cursor/mcp.json").exists());
    // A user without a password is an address like any other.
    let store = "postgres://ann@127.0.0.1:1/db";
    let args = ["--store", store, "mcp", "install", "cursor", "--print"];
    let shown = sandbox.run(&args).ok();
    assert!(shown.contains(store), "{shown}");
}

#[test]
fn every_client_gets_a_file_it_can_read() {
    let sandbox = Sandbox::new();
    let places = [
        ("claude", ".claude.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", ".config/opencode/opencode.json"),
        ("jetbrains", ".junie/mcp/mcp.json"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
        ),
        (
            "cline",
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
    ];
    for (client, path) in places {
        sandbox
            .run(&["mcp", "install", client, "--yes", "--tools", "notes"])
            .ok();
        let text = std::fs::read_to_string(sandbox.path(path)).unwrap();
        assert!(
            text.contains("mcp") && text.contains("notes"),
            "{client}: {text}"
        );
        assert!(
            text.contains(env!("CARGO_BIN_EXE_mnemon")),
            "{client}: {text}"
        );
        let said = sandbox
            .run(&["mcp", "install", client, "--tools", "notes"])
            .ok();
        assert!(said.contains("nothing to change"), "{client}: {said}");
    }
    let (_, said) = sandbox
        .run(&["mcp", "install", "windsurf", "--project-level", "--yes"])
        .failed();
    assert!(
        said.contains("one configuration for all projects"),
        "{said}"
    );
    let shown = sandbox
        .run(&["mcp", "install", "vscode", "--project-level", "--print"])
        .ok();
    assert!(shown.contains("${workspaceFolder}"), "{shown}");
}

#[test]
fn a_misspelt_project_is_an_error_and_not_another_memory() {
    let sandbox = Sandbox::new();
    for args in [
        &["mcp", "--project", "missing"][..],
        &[
            "mcp",
            "install",
            "windsurf",
            "--project",
            "missing",
            "--yes",
        ],
    ] {
        let (code, said) = sandbox.run(args).failed();
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains("--project") && said.contains("missing"),
            "{said}"
        );
    }
    assert!(!sandbox.path(".codeium").exists());
}

#[test]
fn a_client_without_project_settings_can_be_given_a_project() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    let install = ["mcp", "install", "windsurf", "--yes"];
    let warned = sandbox.run(&install);
    assert!(warned.err.contains("--project"), "{}", warned.err);
    let quiet = sandbox.run(&[&install[..], &["--project", "."]].concat());
    assert!(!quiet.err.contains("--project"), "{}", quiet.err);
    let path = sandbox.path(".codeium/windsurf/mcp_config.json");
    let text = std::fs::read_to_string(path).unwrap();
    let project = sandbox.path("").canonicalize().unwrap();
    let project = project.display().to_string();
    assert!(text.contains(project.trim_end_matches('/')), "{text}");
}

#[test]
fn the_memory_that_goes_out_of_sight_is_named() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "from before");
    let said = sandbox.run(&["init", "."]).ok();
    let path = sandbox.path(".mnemon").display().to_string();
    assert!(said.starts_with(&format!("created {path}; ")), "{said}");
    let store = said.split('\'').nth(1).unwrap_or_else(|| panic!("{said}"));
    assert!(
        sandbox
            .run(&["--store", store, "list"])
            .ok()
            .contains("from before")
    );
    assert!(!sandbox.run(&["list"]).ok().contains("from before"));
    assert!(!sandbox.run(&["init"]).ok().contains("previous"));
}
