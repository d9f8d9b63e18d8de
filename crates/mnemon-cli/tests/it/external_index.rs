//! An index in a search server, as the configuration names it.

#[allow(dead_code, reason = "tests of the adapters use the rest")]
#[path = "../../../mnemon-adapters/tests/it/opensearch/double.rs"]
mod double;
#[allow(dead_code, reason = "tests of the adapters use the rest")]
#[path = "../../../mnemon-adapters/tests/it/opensearch/matching.rs"]
mod matching;

use std::sync::{Arc, Mutex};

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
