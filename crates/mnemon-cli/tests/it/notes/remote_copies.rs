//! Notes that a memory service gets, too.

use mnemon_testkit::fakes::{DOUBLE_KEY, MemoryDouble, MemoryService, Treatment};
use serde_json::Value;

use crate::json::schema;
use crate::purging::{NEEDLE, holding};
use crate::sandbox::Sandbox;

/// The services that the notes document names.
const SERVICES: [MemoryService; 4] = [
    MemoryService::Mem0,
    MemoryService::Mem0V1,
    MemoryService::Mem0Oss,
    MemoryService::Zep,
];

/// A program whose notes go to this double, too.
fn sandbox(double: &MemoryDouble) -> Sandbox {
    let sandbox = Sandbox::new()
        .with("MNEMON_LONG_TERM_URL", &double.url())
        .with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY);
    sandbox.config("[notes]\nlong_term = true\n");
    sandbox
}

fn search(sandbox: &Sandbox, words: &str) -> Value {
    let args = ["note", "search", words, "--user", "ann", "--json"];
    sandbox.run(&args).json()
}

/// Each summary with its source.
fn found(answer: &Value) -> Vec<(&str, &str)> {
    let results = answer["hits"].as_array().unwrap().iter();
    results
        .map(|note| {
            let source = note["external"].as_str().unwrap_or("own");
            (note["summary"].as_str().unwrap(), source)
        })
        .collect()
}

fn texts(double: &MemoryDouble) -> Vec<String> {
    double
        .memories()
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn notes_go_to_the_service_and_its_texts_are_found_and_marked() {
    for service in SERVICES {
        let double = MemoryDouble::start(service);
        let sandbox = sandbox(&double);
        let add = |text: &str| sandbox.run(&["note", "add", text, "--user", "ann"]).ok();
        add("Green tea is in the kitchen.");
        add("Green tea is in the kitchen.");
        assert_eq!(texts(&double), ["Green tea is in the kitchen."], "once");
        let own = [("Green tea is in the kitchen.", "own")];
        assert_eq!(found(&search(&sandbox, "tea")), own, "not shown twice");
        // Another program writes to the same memory.
        let other = Sandbox::new()
            .with("MNEMON_LONG_TERM_URL", &double.url())
            .with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY);
        let chat = |args: &[&str]| other.run(&[&["chat"], args, &["--user", "ann"]].concat());
        chat(&["append", "monday", "Black tea is in the cellar."]).ok();
        chat(&["record", "monday"]).ok();
        let answer = search(&sandbox, "tea");
        assert!(schema().check("note search", &answer).is_empty());
        let mut shown = found(&answer);
        shown.sort();
        let theirs = ("Black tea is in the cellar.", "long_term");
        assert_eq!(shown, [theirs, own[0]], "{service:?}: {answer}");
        let mut notes = answer["hits"].as_array().unwrap().iter();
        let own = notes.find(|note| note["external"].is_null()).unwrap();
        let delete = ["note", "delete", own["id"].as_str().unwrap()];
        sandbox.run(&delete).ok();
        let answer = search(&sandbox, "tea");
        assert_eq!(found(&answer), [theirs], "a deleted note is not shown");
        assert_eq!(double.refused(), Vec::<String>::new());
    }
}

#[test]
fn a_note_that_the_service_did_not_take_waits_in_the_outbox() {
    for service in SERVICES {
        let double = MemoryDouble::start(service);
        let sandbox = sandbox(&double);
        double.misbehave(&[Treatment::Status(503)]);
        let add = [
            "note",
            "add",
            "Green tea is in the kitchen.",
            "--user",
            "ann",
        ];
        let ran = sandbox.run(&add);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.err.contains("wait in the outbox"), "{ran:?}");
        assert_eq!(texts(&double), Vec::<String>::new());
        double.misbehave(&[Treatment::Status(500)]);
        let answer = search(&sandbox, "tea");
        let own = [("Green tea is in the kitchen.", "own")];
        assert_eq!(found(&answer), own, "{service:?}: {answer}");
        let notice = "`long_term` was not searched";
        assert!(answer["notices"].to_string().contains(notice), "{answer}");
        sandbox.run(&["upkeep"]).ok();
        assert_eq!(texts(&double), ["Green tea is in the kitchen."]);
        assert_eq!(double.refused(), Vec::<String>::new());
    }
}

/// Adds a note of ann's and answers with its id.
fn added(sandbox: &Sandbox, text: &str, more: &[&str]) -> String {
    let args = [&["note", "add", text, "--user", "ann", "--json"], more].concat();
    let answer = sandbox.run(&args).json();
    answer["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_note_that_is_erased_while_it_waits_is_not_sent() {
    let double = MemoryDouble::start(MemoryService::Mem0);
    let sandbox = sandbox(&double);
    double.misbehave(&[Treatment::Status(503), Treatment::Status(503)]);
    let deleted = added(&sandbox, "Green tea is in the kitchen.", &[]);
    let purged = added(&sandbox, NEEDLE, &[]);
    sandbox.run(&["note", "delete", &deleted]).ok();
    let ran = sandbox.run(&["forget", &purged, "--purge", "--yes", "--json"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(answer["left"][0]["path"], double.url(), "{answer}");
    sandbox.run(&["upkeep"]).ok();
    assert_eq!(texts(&double), Vec::<String>::new());
    assert!(holding(sandbox.folder()).is_empty());
}

#[test]
fn a_deleted_note_stays_hidden_when_its_session_is_deleted() {
    let double = MemoryDouble::start(MemoryService::Mem0);
    let sandbox = sandbox(&double);
    let session = ["--session", "monday"];
    let id = added(&sandbox, "Green tea is in the kitchen.", &session);
    sandbox.run(&["note", "delete", &id]).ok();
    sandbox
        .run(&["chat", "append", "monday", "Hello", "--user", "ann"])
        .ok();
    sandbox
        .run(&["chat", "delete", "monday", "--user", "ann", "--yes"])
        .ok();
    assert_eq!(texts(&double), ["Green tea is in the kitchen."]);
    assert_eq!(found(&search(&sandbox, "tea")), []);
}

#[test]
fn the_backends_mem0_and_zep_of_a_memory_json_need_a_service() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let sandbox = Sandbox::new();
    let file = sandbox.file("memory.json", r#"{"storage": {"defaultBackend": "zep"}}"#);
    let add = ["--config", &file, "note", "add", "Tea", "--user", "ann"];
    let (code, error) = sandbox.run(&add).failed();
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("MNEMON_LONG_TERM_URL"), "{error}");
    let sandbox = sandbox
        .with("MNEMON_LONG_TERM_URL", &double.url())
        .with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY);
    sandbox.run(&add).ok();
    assert_eq!(texts(&double), ["Tea"]);
}
