//! Where settings come from, as users see it.

use crate::sandbox::Sandbox;

fn settings(sandbox: &Sandbox, args: &[&str]) -> serde_json::Value {
    let answer = sandbox.run(&[&["config", "--json"], args].concat()).json();
    let rows = answer["settings"].as_array().unwrap().iter();
    rows.map(|row| (row["key"].as_str().unwrap().to_owned(), row.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn every_value_says_where_it_came_from() {
    let sandbox = Sandbox::new().with("MNEMON_ACTOR", "agent:planner");
    sandbox.config(
        "store = \"sqlite:notes.db\"\ntenant = \"team\"\n\n[namespaces.short-term]\nttl_days = 7\n",
    );
    let shown = sandbox.run(&["config", "--tenant", "other"]).ok();
    // How wide the columns are depends on where temporary folders lie.
    let rows = shown
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
    insta::assert_snapshot!(sandbox.redact(&rows.collect::<Vec<_>>().join("\n")));
    let path = sandbox.run(&["config", "path"]).ok();
    assert_eq!(
        sandbox.redact(&path),
        "[folder]/.config/mnemon/mnemon.toml\n"
    );
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let get = |sandbox: &Sandbox, args: &[&str]| {
        let store = settings(sandbox, args)["store"].clone();
        let text = |key: &str| sandbox.redact(store[key].as_str().unwrap());
        (text("value"), text("origin"))
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    let sandbox = Sandbox::new();
    let default = "sqlite:[folder]/.local/share/mnemon/mnemon.db";
    assert_eq!(get(&sandbox, &[]), pair(default, "default"));
    sandbox.config("json = false\nstore = \"sqlite:file.db\"\n");
    let file = "[folder]/.config/mnemon";
    let from_file = pair(
        &format!("sqlite:{file}/file.db"),
        &format!("{file}/mnemon.toml:2"),
    );
    assert_eq!(get(&sandbox, &[]), from_file);
    let sandbox = sandbox.with("MNEMON_STORE", "ram:");
    assert_eq!(get(&sandbox, &[]), pair("ram:", "MNEMON_STORE"));
    let flag = ["--store", "sqlite:flag.db"];
    assert_eq!(get(&sandbox, &flag), pair("sqlite:flag.db", "--store"));
}

#[test]
fn a_file_is_found_where_it_is_looked_for() {
    let sandbox = Sandbox::new();
    let path = |args: &[&str]| {
        let args = [&["config", "path"], args].concat();
        sandbox.redact(&sandbox.run(&args).ok())
    };
    assert_eq!(path(&[]), "no file was read\n");
    sandbox.config("tenant = \"user\"");
    let user = "[folder]/.config/mnemon/mnemon.toml\n";
    assert_eq!(path(&[]), user);
    // Both count: what the project's file does not say is as the user said it.
    sandbox.file("mnemon.toml", "[notes]\ntop_k = 3\n");
    assert_eq!(path(&[]), format!("[folder]/mnemon.toml\n{user}"));
    let shown = settings(&sandbox, &[]);
    assert_eq!(shown["tenant"]["value"], "user");
    assert_eq!(shown["notes.top_k"]["value"], 3);
    sandbox.file("other.toml", "tenant = \"other\"");
    assert_eq!(path(&["--config", "other.toml"]), "[folder]/other.toml\n");
}

#[test]
fn caps_and_lifetimes_are_obeyed() {
    let sandbox = Sandbox::new();
    sandbox.config("[namespaces.long-term]\nmax_entries = 2\nttl_days = \"none\"\n");
    sandbox.note("a", "weak");
    sandbox.note("b", "second");
    let third = sandbox.note("c", "third");
    assert!(third.contains("evicted a"), "{third}");
    let found = sandbox.run(&["get", "c", "--json"]).json();
    assert_eq!(found["records"][0]["expires"], serde_json::Value::Null);
}

#[test]
fn json_can_be_the_habit() {
    let sandbox = Sandbox::new().with("MNEMON_JSON", "true");
    let ran = sandbox.run(&["get", "nope"]);
    assert!(ran.err.starts_with("{\"error\":"), "{}", ran.err);
}

#[test]
fn a_slip_of_the_pen_in_a_variable_is_noticed() {
    let sandbox = Sandbox::new().with("MNEMON_STROE", "ram:");
    let ran = sandbox.run(&["list"]);
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("MNEMON_STROE is not known"), "{}", ran.err);
}
