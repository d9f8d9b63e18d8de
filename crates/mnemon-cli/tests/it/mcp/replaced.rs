//! The store's file is removed and restored under a server.

use serde_json::json;

use super::client::Client;
use crate::sandbox::Sandbox;

#[test]
fn what_a_server_acknowledges_outlives_the_removal_of_its_file() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:.mnemon/m.db");
    let mut server = Client::start(&sandbox, &["--tools", "notes"]);
    server.call(
        "memory_add",
        json!({"content": "before", "namespace": "long-term"}),
    );
    // As `git clean -fdx` does.
    std::fs::remove_dir_all(sandbox.path(".mnemon")).unwrap();
    for number in 0..3 {
        let content = format!("after {number}");
        server.call(
            "memory_add",
            json!({"content": content, "namespace": "long-term"}),
        );
    }
    let listed = sandbox.run(&["export"]).ok();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert_eq!(server.leave(), 0);
    assert_eq!(sandbox.run(&["export"]).ok(), listed);
    sandbox.run(&["doctor"]).ok();
}

#[test]
fn a_server_goes_on_with_what_was_restored() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    sandbox.note("kept", "the quick brown fox");
    sandbox.run(&["backup", "copy.db"]).ok();
    let mut server = Client::start(&sandbox, &["--tools", "notes"]);
    let content = "the lazy dog";
    server.call(
        "memory_add",
        json!({"content": content, "namespace": "long-term"}),
    );
    let search = |server: &mut Client| {
        let found = server.text("memory_search", json!({"query": "fox dog"}));
        (found.contains("fox"), found.contains("dog"))
    };
    assert_eq!(search(&mut server), (true, true));
    sandbox.run(&["restore", "copy.db", "--yes"]).ok();
    assert_eq!(search(&mut server), (true, false));
    let content = "a cat instead";
    server.call(
        "memory_add",
        json!({"content": content, "namespace": "long-term"}),
    );
    assert_eq!(server.leave(), 0);
    let there = sandbox.run(&["export"]).ok();
    assert_eq!(there.lines().count(), 2, "{there}");
    sandbox.run(&["doctor"]).ok();
}
