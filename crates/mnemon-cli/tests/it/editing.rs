//! Records are changed in place, named by the beginning of their id, and kept as long as asked.

use serde_json::json;

use crate::bad_input::expect;
use crate::mcp::client::Client;
use crate::sandbox::Sandbox;

#[test]
fn a_record_is_changed_in_place_and_changed_back() {
    let sandbox = Sandbox::new();
    sandbox.note("seed", "Ann prefers tea");
    let said = sandbox
        .run(&["update", "seed", "Ann prefers coffee", "--tag", "drinks"])
        .ok();
    assert!(said.starts_with("updated seed to version 2"), "{said}");
    let shown = sandbox.run(&["get", "seed", "--json"]).json();
    let record = &shown["records"][0];
    assert_eq!(record["content"], "Ann prefers coffee");
    assert_eq!(record["tags"], json!(["drinks"]));
    let history = sandbox.run(&["history", "seed"]).ok();
    assert!(history.contains("Ann prefers tea"), "{history}");
    sandbox.run(&["undo"]).ok();
    let shown = sandbox.run(&["get", "seed", "--json"]).json();
    assert_eq!(shown["records"][0]["content"], "Ann prefers tea");
    let wrong: &[(&[&str], i32, &str)] = &[
        (&["update", "seed"], 2, "content: is missing"),
        (&["update", "nobody", "x"], 3, "there is no record nobody"),
        (
            &["update", "seed", "x", "--if-version", "1"],
            4,
            "version 1 was expected",
        ),
        (
            &["update", "seed", "x", "--importance", "7"],
            2,
            "--importance: is 7",
        ),
        (
            &["update", "seed", "--ttl", "soon"],
            2,
            "--ttl: `soon` is not a duration",
        ),
        (
            &["update", "seed", "--ttl", "101y"],
            2,
            "--ttl: `101y` is too long",
        ),
        (&["history", "nobody"], 3, "there is no record nobody"),
        (
            &["add", "again", "--id", "seed"],
            4,
            "a record with id `seed` already exists (version 3)",
        ),
        (
            &["add", "again", "--id", "seed"],
            4,
            "`mnemon update ID TEXT`",
        ),
    ];
    for (args, code, words) in wrong {
        expect(sandbox.run(args), *code, &[words]);
    }
}

#[test]
fn the_beginning_of_a_generated_id_is_enough() {
    let sandbox = Sandbox::new();
    sandbox.note("abcd100000000001", "one");
    sandbox.note("abcd200000000002", "two");
    sandbox.note("fedc900000000009", "three");
    for args in [
        &["get", "fedc"][..],
        &["history", "fedc"],
        &["update", "fedc", "four"],
        &["note", "get", "fedc"],
        &["note", "edit", "fedc", "--tag", "t"],
        &["undo", "--record", "fedc"],
        &["forget", "fedc", "--dry-run"],
        &["note", "delete", "fedc"],
    ] {
        sandbox.run(args).ok();
    }
    let words = ["`abcd` is the beginning of several ids: abcd100000000001, abcd200000000002"];
    expect(sandbox.run(&["get", "abcd"]), 2, &words);
    expect(sandbox.run(&["forget", "abcd"]), 2, &words);
    expect(sandbox.run(&["get", "abc"]), 3, &["there is no record abc"]);
}

#[test]
fn a_note_is_kept_as_long_as_asked_and_says_so() {
    let sandbox = Sandbox::new();
    let added = |args: &[&str]| {
        let args = [&["note", "add", "--json"], args].concat();
        let added = sandbox.run(&args).json();
        let at = |name: &str| added[name].as_str().map(str::to_owned);
        (at("id").unwrap(), at("expires").unwrap())
    };
    let (_, hours) = added(&["kettle is on", "--ttl", "36h"]);
    let (_, years) = added(&["the office is in Hanoi", "--ttl", "2y"]);
    let (id, usual) = added(&["a third thing altogether"]);
    assert!(hours < usual && usual < years, "{hours} {usual} {years}");
    let said = sandbox
        .run(&["note", "add", "a fourth matter of no weight"])
        .ok();
    assert!(said.contains("(short-term), expires 20"), "{said}");
    let near = sandbox
        .run(&["note", "add", "a third thing, altogether new"])
        .ok();
    assert!(near.contains(&format!("nearly the same as {id}")), "{near}");
    let near = sandbox.run(&["add", "a third thing altogether, twice"]);
    assert!(near.err.contains("nearly the same as"), "{}", near.err);
}

#[test]
fn an_assistant_changes_lists_and_takes_back() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    let added = client.call(
        "memory_add",
        json!({"content": "Ann prefers tea", "ttl": "2y"}),
    );
    let id = added["id"].as_str().unwrap().to_owned();
    assert!(added["expires"].as_str().is_some(), "{added}");
    let near = client.call("memory_add", json!({"content": "Ann prefers green tea"}));
    assert_eq!(near["nearDuplicate"]["id"], json!(id), "{near}");
    let changed = json!({"id": &id[..6], "content": "Ann prefers coffee"});
    assert_eq!(client.call("memory_update", changed)["version"], 2);
    let listed = client.call("memory_list", json!({}));
    assert_eq!(listed["notes"].as_array().unwrap().len(), 2, "{listed}");
    client.call("memory_delete", json!({"id": id}));
    let undone = client.call("memory_undo", json!({"id": id}));
    assert_eq!(undone["records"], 1, "{undone}");
    let read = client.call("memory_get", json!({"id": id}));
    assert_eq!(read["content"], "Ann prefers coffee");
    let said = client.fails("memory_update", json!({"id": id}));
    assert!(said.contains("content: is missing"), "{said}");
}

#[test]
fn nobody_takes_back_what_another_did() {
    let sandbox = Sandbox::new();
    let mut bob = Client::start(&sandbox, &["--user", "bob"]);
    let bobs = bob.call("memory_add", json!({"content": "salary of Bob"}));
    let mut ann = Client::start(&sandbox, &["--user", "ann"]);
    for wanted in [json!({}), json!({"commit": 1}), json!({"id": bobs["id"]})] {
        let said = ann.fails("memory_undo", wanted);
        assert!(said.contains("undo") || said.contains("undone"), "{said}");
    }
    let said = ann.fails("memory_update", json!({"id": bobs["id"], "content": "x"}));
    assert!(said.contains("there is no record"), "{said}");
    assert_eq!(bob.call("memory_undo", json!({}))["records"], 1);
}

/// What a user's server did to a shared record is what it takes back, not something older.
#[test]
fn a_change_of_a_shared_record_is_taken_back_by_the_one_who_made_it() {
    let sandbox = Sandbox::new();
    let mut everyone = Client::start(&sandbox, &[]);
    let mut ann = Client::start(&sandbox, &["--user", "ann"]);
    let own = ann.call("memory_add", json!({"content": "the garden has roses"}));
    let shared = everyone.call("memory_add", json!({"content": "printer on floor three"}));
    ann.call("memory_delete", json!({"id": shared["id"]}));
    ann.call("memory_undo", json!({}));
    for id in [&own["id"], &shared["id"]] {
        ann.call("memory_get", json!({"id": id}));
    }
    // And a server without a user leaves alone what a user's server did.
    let added = everyone.call("memory_add", json!({"content": "the office is in Hanoi"}));
    let later = ann.call("memory_add", json!({"content": "the roses are red"}));
    everyone.call("memory_undo", json!({}));
    ann.fails("memory_get", json!({"id": added["id"]}));
    for id in [&later["id"], &shared["id"]] {
        ann.call("memory_get", json!({"id": id}));
    }
}
