//! The program with its index in Lance tables. `./scripts/lance` builds it.

use std::path::Path;
use std::process::{Command, Output};

fn run(place: &Path, index: &str, arguments: &[&str]) -> Output {
    let program = std::env::var_os("MNEMON_LANCE_PROGRAM")
        .expect("MNEMON_LANCE_PROGRAM is not set: run ./scripts/lance");
    Command::new(program)
        .args(["--store", "sqlite:m.db"])
        .args(arguments)
        .current_dir(place)
        .env("HOME", place)
        .env_remove("XDG_CONFIG_HOME")
        .env("MNEMON_INDEX", index)
        .output()
        .unwrap()
}

fn shown(place: &Path, index: &str, arguments: &[&str]) -> String {
    let output = run(place, index, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn records_are_found_checked_and_rebuilt(index: &str) {
    let place = tempfile::tempdir().unwrap();
    let shown = |arguments: &[&str]| shown(place.path(), index, arguments);
    for text in ["Ann drinks green tea.", "Bob drinks milk."] {
        shown(&["add", text]);
    }
    assert!(shown(&["search", "tea"]).contains("green tea"));
    let checked = shown(&["index", "check"]);
    assert!(checked.contains("agrees with 2 records"), "{checked}");
    shown(&["index", "rebuild"]);
    assert!(shown(&["search", "milk"]).contains("Bob drinks milk."));
    let checked = shown(&["index", "check"]);
    assert!(checked.contains("agrees with 2 records"), "{checked}");
}

#[test]
fn the_program_uses_tables_in_a_folder() {
    records_are_found_checked_and_rebuilt("lance:knowledge/vectors");
}

#[test]
fn the_program_uses_tables_in_a_bucket() {
    records_are_found_checked_and_rebuilt(&crate::buckets::url());
}

#[test]
fn the_program_says_that_a_bucket_is_absent() {
    let place = tempfile::tempdir().unwrap();
    let index = "lance:s3://no-such-bucket/memory";
    let output = run(place.path(), index, &["index", "rebuild"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{errors}");
    let expected = "there is no bucket `no-such-bucket`; create it first";
    assert!(errors.contains(expected), "{errors}");
}
