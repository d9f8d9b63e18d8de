//! MiniLM as a user sets it up: the weights, another embedder for an old store, a faster runtime.

use std::process::Command;

use serde_json::Value;

use crate::mcp::client::{Client, PATIENCE};
use crate::sandbox::Sandbox;

const SEARCH: &[&str] = &[
    "search",
    "destroyed footwear",
    "--recipe",
    "meaning",
    "--min-score=0",
    "--explain",
    "--json",
];

fn variable(name: &str) -> String {
    let value = std::env::var(name);
    value
        .unwrap_or_else(|_| panic!("{name} is not set; eval \"$(./scripts/fetch-models)\" sets it"))
}

/// Output and messages of a command that must succeed.
#[track_caller]
fn run(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}{err}");
    (out, err)
}

/// A store with vectors of the built-in embedder, and the setting for MiniLM.
fn old_store(sandbox: &Sandbox) -> String {
    for (id, text) in [
        ("dog", "The puppy chewed through my shoes"),
        ("tea", "We drink green tea in the afternoon"),
        ("tax", "The tax office wrote about last year"),
    ] {
        sandbox.note(id, text);
    }
    let from = variable("MNEMON_MINILM_DIR");
    let pulled = sandbox.run(&["model", "pull", "minilm", "--from", &from, "--json"]);
    let pulled = pulled.json();
    let embedder = pulled["embedder"].as_str().unwrap();
    assert!(embedder.ends_with("models/minilm"), "{embedder}");
    embedder.to_owned()
}

fn hits(found: &str) -> Vec<Value> {
    let found: Value = serde_json::from_str(found).unwrap();
    found["hits"].as_array().unwrap().clone()
}

#[test]
fn minilm_takes_over_a_store_of_the_builtin_embedder() {
    let sandbox = Sandbox::new();
    let embedder = old_store(&sandbox);
    let minilm = |args: &[&str]| {
        let mut command = sandbox.command();
        run(command.env("MNEMON_EMBEDDER", &embedder).args(args))
    };
    let (found, err) = minilm(SEARCH);
    assert_eq!(hits(&found)[0]["record"]["id"], "dog", "by the old vectors");
    assert_eq!(err, "");
    minilm(&["add", "Sandals wear out quickly", "--id", "new"]);
    let (kept, _) = minilm(&["upkeep", "--limit", "2"]);
    assert!(kept.starts_with("2 records embedded\n"), "{kept}");
    let (found, _) = minilm(SEARCH);
    assert_eq!(hits(&found).len(), 2, "with vectors of both models");
    let (kept, _) = minilm(&["upkeep"]);
    assert!(kept.starts_with("1 records embedded\n"), "{kept}");
    let (found, _) = minilm(SEARCH);
    assert_eq!(hits(&found).len(), 2, "with its own vectors");
    let again: Value = serde_json::from_str(&minilm(&["reembed", "--json"]).0).unwrap();
    let (embedded, by) = (&again["embedded"], again["embedder"].as_str());
    assert_eq!((embedded, by), (&Value::from(0), Some(&*embedder)));
    // Back to the built-in one: nothing is lost.
    let found = sandbox.run(&["search", "puppy", "--json"]).ok();
    assert_eq!(hits(&found)[0]["record"]["id"], "dog");
}

#[test]
fn a_server_with_minilm_embeds_an_old_store_in_the_background() {
    let sandbox = Sandbox::new();
    let embedder = old_store(&sandbox);
    let sandbox = sandbox.with("MNEMON_EMBEDDER", &embedder);
    let mut client = Client::start(&sandbox, &[]);
    let start = std::time::Instant::now();
    // A model that is not there knows none of the vectors, so that these records have the new ones.
    let lacks = || {
        let mut command = sandbox.command();
        let (found, _) = run(command.env("MNEMON_EMBEDDER", "builtin").args(SEARCH));
        !hits(&found).is_empty()
    };
    while lacks() {
        assert!(start.elapsed() < PATIENCE, "no vector was made");
    }
    let found = client.call(
        "memory_search",
        serde_json::json!({"query": "destroyed footwear"}),
    );
    assert!(found.to_string().contains("puppy"), "{found}");
    client.leave();
}

#[test]
fn minilm_runs_in_the_library_that_the_user_names() {
    let sandbox = Sandbox::new();
    let embedder = old_store(&sandbox);
    let with = |library: &str, args: &[&str]| {
        let mut command = sandbox.command();
        command.env("MNEMON_ONNXRUNTIME", library);
        run(command.env("MNEMON_EMBEDDER", &embedder).args(args))
    };
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let library = variable("MNEMON_TEST_ONNXRUNTIME");
        assert_eq!(with(&library, &["upkeep"]).1, "");
        let (by_library, err) = with(&library, SEARCH);
        assert_eq!(err, "");
        let (by_rten, _) = with("none", SEARCH);
        let ids = |found: &str| -> Vec<Value> {
            let hits = hits(found).into_iter();
            hits.map(|hit| hit["record"]["id"].clone()).collect()
        };
        assert_eq!(ids(&by_library), ids(&by_rten));
    }
    let broken = sandbox.file("broken.so", [b'x'; 100]);
    let (found, err) = with(&broken, SEARCH);
    assert_eq!(hits(&found)[0]["record"]["id"], "dog");
    assert!(
        err.contains("models run slower") && err.contains("MNEMON_ONNXRUNTIME"),
        "{err}"
    );
    let line = r#"{"id": "a", "content": "a ladder"}"#;
    let asked = r#"{"question": "ladder", "expected": ["a"]}"#;
    let data = sandbox.file("data.jsonl", format!("{line}\n{asked}\n"));
    let (_, err) = with(&broken, &["eval", "jsonl", "--data", &data]);
    assert_eq!(err.matches("models run slower").count(), 1, "{err}");
}
