//! An index in a search server, as the configuration names it.

#[allow(dead_code, reason = "tests of the adapters use the rest")]
#[path = "../../../mnemon-adapters/tests/it/opensearch/double.rs"]
mod double;
#[allow(dead_code, reason = "tests of the adapters use the rest")]
#[path = "../../../mnemon-adapters/tests/it/opensearch/matching.rs"]
mod matching;

use std::sync::{Arc, Mutex};

use crate::json::schema;
use crate::sandbox::Sandbox;
use double::{Data, Double};

#[test]
fn searches_use_the_configured_index_in_a_search_server() {
    let double = Double::start(Arc::new(Mutex::new(Data::default())));
    let requests = || double.data.lock().unwrap().requests;
    let sandbox = Sandbox::new().with("MNEMON_INDEX", &double.url());
    sandbox.note("tea", "Ann drinks green tea.");
    let found = sandbox.run(&["search", "tea", "--json"]).json();
    assert_eq!(found["hits"][0]["record"]["id"], "tea", "{found}");
    assert!(requests() > 0, "the server was asked");
    sandbox.run(&["forget", "tea", "--yes"]).ok();
    sandbox.note("milk", "Bob drinks milk.");
    let found = sandbox.run(&["search", "milk", "--json"]).json();
    assert_eq!(found["hits"][0]["record"]["id"], "milk", "{found}");
    let found = sandbox.run(&["search", "tea", "--json"]).json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 0, "{found}");
}

#[test]
fn records_are_stored_while_the_search_server_is_away() {
    // Nothing listens on this port.
    let sandbox = Sandbox::new().with("MNEMON_INDEX", "opensearch://127.0.0.1:1/memory");
    let added = sandbox
        .run(&["add", "Ann drinks green tea.", "--json"])
        .json();
    assert!(
        added["notices"][0]
            .as_str()
            .is_some_and(|it| it.contains("Older records")),
        "{added}"
    );
    let (code, error) = sandbox.run(&["search", "tea"]).failed();
    assert_ne!(code, 0, "{error}");
    let sandbox = sandbox.with("MNEMON_INDEX", "builtin");
    let found = sandbox.run(&["search", "tea", "--json"]).json();
    assert_eq!(
        found["hits"][0]["record"]["content"],
        "Ann drinks green tea."
    );
}

#[test]
fn an_index_is_checked_and_rebuilt() {
    let double = Double::start(Arc::new(Mutex::new(Data::default())));
    let sandbox = Sandbox::new().with("MNEMON_INDEX", &double.url());
    sandbox.note("tea", "Ann drinks green tea.");
    sandbox.note("milk", "Bob drinks milk.");
    let checked = sandbox.run(&["index", "check", "--json"]).json();
    assert_eq!(checked["complete"], true, "{checked}");
    assert_eq!(checked["records"], 2, "{checked}");
    for index in double.data.lock().unwrap().indexes.values_mut() {
        index.docs.retain(|_, doc| doc.source["id"] != "tea");
    }
    let (code, error) = sandbox.run(&["index", "check"]).failed();
    assert_eq!(code, 9, "{error}");
    assert!(error.contains("1 of the 2 records"), "{error}");
    assert!(error.contains("mnemon index rebuild"), "{error}");
    let rebuilt = sandbox.run(&["index", "rebuild"]).ok();
    assert!(rebuilt.contains("2 records of 1 tenant"), "{rebuilt}");
    let checked = sandbox.run(&["index", "check"]).ok();
    assert!(checked.contains("agrees with 2 records"), "{checked}");
    let found = sandbox.run(&["search", "tea", "--json"]).json();
    assert_eq!(found["hits"][0]["record"]["id"], "tea", "{found}");
}

#[test]
fn a_check_finds_vectors_that_are_missing_or_others() {
    let double = Double::start(Arc::new(Mutex::new(Data::default())));
    let sandbox = Sandbox::new().with("MNEMON_INDEX", &double.url());
    for (name, text) in [
        ("tea", "Ann drinks tea."),
        ("milk", "Bob drinks milk."),
        ("rye", "Rye"),
    ] {
        sandbox.note(name, text);
    }
    let checked = sandbox.run(&["index", "check"]).ok();
    assert!(
        checked.contains("agrees with 3 records and 3 vectors"),
        "{checked}"
    );
    for index in double.data.lock().unwrap().indexes.values_mut() {
        for doc in index.docs.values_mut() {
            let id = doc.source["id"].clone();
            let fields = doc.source.as_object_mut().unwrap();
            let name = fields
                .keys()
                .find(|name| name.starts_with("vector_"))
                .cloned();
            match (id.as_str(), name) {
                (Some("tea"), Some(name)) => drop(fields.remove(&name)),
                (Some("milk"), Some(name)) => fields[&name][0] = 9.0.into(),
                _ => {}
            }
        }
    }
    let ran = sandbox.run(&["index", "check", "--json"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    let checked: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(schema().check("index check", &checked).is_empty());
    assert_eq!(checked["vectors"], 3, "{checked}");
    assert_eq!(checked["misplaced"], 2, "{checked}");
    assert_eq!(checked["missing"], 0, "{checked}");
    assert_eq!(checked["examples"], serde_json::json!(["milk", "tea"]));
    sandbox.run(&["index", "rebuild"]).ok();
    sandbox.run(&["index", "check"]).ok();
}

#[test]
fn an_evaluation_searches_with_the_index_that_it_names() {
    let double = Double::start(Arc::new(Mutex::new(Data::default())));
    let sandbox = Sandbox::new();
    let lines = [
        r#"{"id": "a", "content": "Ann drinks green tea."}"#,
        r#"{"id": "b", "content": "Bob drinks milk."}"#,
        r#"{"question": "Who drinks tea?", "expected": ["a"]}"#,
    ];
    let data = sandbox.file("own.jsonl", lines.join("\n"));
    let run = ["eval", "jsonl", "--data", &data, "--recipe", "words"];
    let place = ["--in", "sqlite:eval.db", "--index", &double.url()];
    let measured = sandbox
        .run(&[&run[..], &place, &["--json"]].concat())
        .json();
    assert_eq!(measured["index"], double.url(), "{measured}");
    assert_eq!(measured["rows"][0]["recall_5"], 100.0, "{measured}");
    assert!(measured["timing"]["search_ms"].as_f64().unwrap() > 0.0);
    let asked = double.data.lock().unwrap().requests;
    assert!(asked > 0, "the server was asked");
    let shown = sandbox.run(&[&run[..], &place[..2]].concat()).ok();
    assert!(
        shown.contains("index builtin: records written in"),
        "{shown}"
    );
    let (code, error) = sandbox.run(&[&run[..], &place[2..]].concat()).failed();
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--in"), "{error}");
}

/// The double ranks by BM25 and by cosines, like a server without approximations.
#[test]
fn locomo_through_the_double_is_as_good_as_through_the_built_in_index() {
    let Ok(data) = std::env::var("MNEMON_TEST_LOCOMO") else {
        eprintln!("SKIPPED: MNEMON_TEST_LOCOMO does not name a file of LoCoMo");
        return;
    };
    let double = Double::start(Arc::new(Mutex::new(Data::default())));
    let sandbox = Sandbox::new();
    let recall = |place: &[&str]| {
        let run = ["eval", "locomo", "--data", &data, "--recipe", "hybrid"];
        let measured = sandbox.run(&[&run[..], place, &["--json"]].concat()).json();
        println!("{} {}", measured["rows"][0], measured["timing"]);
        measured["rows"][0]["recall_10"].as_f64().unwrap()
    };
    let builtin = recall(&["--in", "sqlite:builtin.db"]);
    // The double is not quick.
    let url = double.url().replace("timeout_s=2", "timeout_s=60");
    let server = recall(&["--in", "sqlite:server.db", "--index", &url]);
    assert!((server - builtin).abs() <= 1.0, "{server} {builtin}");
}

#[test]
fn the_built_in_index_needs_no_check() {
    let sandbox = Sandbox::new();
    sandbox.note("tea", "Ann drinks green tea.");
    let checked = sandbox.run(&["index", "check"]).ok();
    assert!(
        checked.contains("builtin agrees with 1 record"),
        "{checked}"
    );
    let rebuilt = sandbox.run(&["index", "rebuild"]).ok();
    assert!(rebuilt.contains("nothing to rebuild"), "{rebuilt}");
}

#[cfg(not(feature = "milvus"))]
#[test]
fn milvus_needs_a_build_with_it() {
    let sandbox = Sandbox::new().with("MNEMON_INDEX", "milvus://localhost/memory");
    let (_, error) = sandbox.run(&["add", "x"]).failed();
    assert!(error.contains("rebuild with --features milvus"), "{error}");
}

#[cfg(not(feature = "lance"))]
#[test]
fn lance_needs_a_build_with_it() {
    let sandbox = Sandbox::new().with("MNEMON_INDEX", "lance:vectors");
    let (_, error) = sandbox.run(&["add", "x"]).failed();
    assert!(error.contains("rebuild with --features lance"), "{error}");
    assert!(!sandbox.path("vectors").exists(), "nothing was made");
}

#[test]
fn an_index_in_a_search_server_is_refused_where_it_cannot_work() {
    let sandbox = Sandbox::new().with("MNEMON_INDEX", "opensearch://localhost/memory");
    for store in ["ram:", "jsonl:notes.jsonl"] {
        let ran = sandbox.run(&["--store", store, "add", "x"]);
        let (_, error) = ran.failed();
        assert!(error.contains("SQLite or PostgreSQL"), "{error}");
        assert!(!sandbox.path("notes.jsonl").exists(), "nothing was made");
    }
    let sandbox = Sandbox::new().with("MNEMON_INDEX", "elastic://h/n");
    let (_, error) = sandbox.run(&["add", "x"]).failed();
    assert!(error.contains("is not an index"), "{error}");
}
