//! `scripts/lance` builds and tests only when its inputs have changed since the tests passed, here or where
//! the committed hash was recorded.

use std::fs;

use crate::milvus_script::Checkout;

/// An input.
const PORT: &str = "crates/mnemon-core/src/ports/search_index.rs";

fn checkout() -> Checkout {
    let checkout = Checkout::of("lance");
    checkout.write(PORT, "");
    for path in [
        "crates/mnemon-adapters/src/external_index.rs",
        "crates/mnemon-adapters/src/external_index/search.rs",
        "crates/mnemon-testkit/src/index_conformance.rs",
        "crates/mnemon-testkit/src/index_operations.rs",
        "crates/mnemon-operations/src/wiring/index.rs",
    ] {
        checkout.write(path, "");
    }
    checkout
}

fn package(name: &str, version: &str) -> String {
    format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"r\"\n")
}

#[test]
fn lance_is_tested_again_only_when_its_inputs_have_changed() {
    let checkout = checkout();
    assert!(checkout.run(&[]) && checkout.run(&[]));
    assert_eq!(checkout.calls(), 1, "the second run had the same inputs");
    let other = package("serde", "2.0.0");
    for (path, text) in [
        ("README.md", "not an input"),
        ("Cargo.lock", &other),
        ("crates/mnemon-core/src/lib.rs", "not an input"),
        (
            "crates/mnemon-adapters/src/external_index/opensearch.rs",
            "other",
        ),
        ("crates/mnemon-lance/tested", "not an input"),
    ] {
        checkout.write(path, text);
        assert!(checkout.run(&[]));
        assert_eq!(checkout.calls(), 1, "{path}");
    }
    let newer = package("lance-table", "15.0.0");
    for (number, (path, text)) in [
        ("Cargo.lock", newer.as_str()),
        ("Cargo.toml", "[profile.lance]\nopt-level = 1"),
        (PORT, "changed"),
        (
            "crates/mnemon-adapters/src/external_index/search.rs",
            "changed",
        ),
        ("crates/mnemon-testkit/src/index_conformance.rs", "changed"),
        ("crates/mnemon-lance/tests/it/main.rs", "changed"),
    ]
    .into_iter()
    .enumerate()
    {
        checkout.write(path, text);
        assert!(checkout.run(&[]) && checkout.run(&[]));
        assert_eq!(checkout.calls(), number + 2, "{path}");
    }
    assert!(checkout.run(&["force"]));
    assert_eq!(checkout.calls(), 8);
}

#[test]
fn a_clone_with_the_recorded_inputs_builds_nothing() {
    let checkout = checkout();
    assert!(!checkout.run(&["record"]), "nothing has passed yet");
    checkout.write("exit", "1");
    assert!(!checkout.run(&[]) && !checkout.run(&["record"]));
    assert!(!checkout.path("crates/mnemon-lance/tested").exists());
    checkout.write("exit", "0");
    assert!(checkout.run(&[]) && checkout.run(&["record"]));
    assert_eq!(checkout.calls(), 2);
    // A clone has no target.
    fs::remove_dir_all(checkout.path("target")).unwrap();
    assert!(checkout.run(&[]));
    assert_eq!(checkout.calls(), 2);
    checkout.write(PORT, "changed");
    assert!(checkout.run(&[]));
    assert_eq!(checkout.calls(), 3, "the record is of other inputs");
    assert!(checkout.run(&["force"]));
    assert_eq!(checkout.calls(), 4);
}
