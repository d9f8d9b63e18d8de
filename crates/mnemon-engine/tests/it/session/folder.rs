//! The folder form: lists grow at their end, and are written anew when they did not just grow.

use std::sync::Arc;

use mnemon_core::ErrorKind;
use mnemon_core::files::Files;
use mnemon_engine::session::{FolderSessions, Saved, Sessions};
use mnemon_testkit::fakes::FilesInRam;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::sid;
use crate::{ctx, wait};

fn place() -> (Arc<FilesInRam>, FolderSessions) {
    let files = Arc::new(FilesInRam::default());
    (
        files.clone(),
        FolderSessions::new(files.clone(), files, "d"),
    )
}

fn read(files: &FilesInRam, path: &str) -> String {
    let file = wait(files.read(path)).unwrap();
    String::from_utf8(file.unwrap().bytes).unwrap()
}

fn overwrite(files: &FilesInRam, path: &str, bytes: &[u8]) {
    let stamp = wait(files.read(path)).unwrap().map(|file| file.stamp);
    wait(files.write(path, bytes, stamp.as_ref())).unwrap();
}

fn list(place: &FolderSessions, items: &[i32]) -> Saved {
    let items: Vec<Value> = items.iter().map(|item| json!({ "n": item })).collect();
    let saved = wait(place.save_list(&sid("s"), "msgs", &items)).unwrap();
    assert_eq!(wait(place.get_list(&sid("s"), "msgs")).unwrap(), items);
    saved
}

#[test]
fn a_list_that_grew_is_appended_to_and_any_other_rewritten() {
    let (files, place) = place();
    assert_eq!(list(&place, &[]), Saved::Appended(0));
    assert_eq!(read(&files, "d/s/msgs.hash"), "empty:0");
    assert_eq!(list(&place, &[1, 2]), Saved::Appended(2));
    assert_eq!(list(&place, &[1, 2, 3]), Saved::Appended(1));
    assert_eq!(list(&place, &[1, 2, 3]), Saved::Appended(0));
    assert_eq!(
        read(&files, "d/s/msgs.jsonl"),
        "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"
    );
    assert_eq!(list(&place, &[1, 2]), Saved::Rewritten(2), "shorter");
    assert_eq!(list(&place, &[9, 2, 3]), Saved::Rewritten(3), "changed");
    // Every place in the list counts, not only some.
    let many: Vec<i32> = (0..20).collect();
    list(&place, &many);
    for at in 0..20 {
        let mut edited = many.clone();
        edited[at] = 99;
        edited.push(20);
        list(&place, &many);
        assert_eq!(list(&place, &edited), Saved::Rewritten(21), "{at}");
    }
}

#[test]
fn without_its_hash_or_edited_by_hand_a_list_is_rewritten() {
    let (files, place) = place();
    list(&place, &[1, 2]);
    let stamp = wait(files.read("d/s/msgs.hash")).unwrap().unwrap().stamp;
    wait(files.remove("d/s/msgs.hash", &stamp)).unwrap();
    assert_eq!(list(&place, &[1, 2, 3]), Saved::Rewritten(3));
    overwrite(
        &files,
        "d/s/msgs.jsonl",
        b"{\"n\":1}\n{\"n\":7}\n{\"n\":3}\n",
    );
    assert_eq!(list(&place, &[1, 2, 3, 4]), Saved::Rewritten(4));
}

#[test]
fn a_writer_that_was_cut_off_leaves_what_was_acknowledged() {
    let (files, place) = place();
    list(&place, &[1, 2]);
    overwrite(&files, "d/s/msgs.jsonl", b"{\"n\":1}\n\n{\"n\":2}\n{\"n\":");
    assert_eq!(wait(place.get_list(&sid("s"), "msgs")).unwrap().len(), 2);
    assert_eq!(list(&place, &[1, 2, 3]), Saved::Rewritten(3));
    let torn = b"{\"n\":1}\nnot json\n{\"n\":3}\n";
    overwrite(&files, "d/s/msgs.jsonl", torn);
    let error = wait(place.get_list(&sid("s"), "msgs")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert!(error.to_string().contains("line 2"), "{error}");
    assert!(wait(place.save_list(&sid("s"), "msgs", &[])).is_err());
    assert_eq!(
        read(&files, "d/s/msgs.jsonl").as_bytes(),
        torn,
        "left alone"
    );
}

#[test]
fn values_and_lists_of_other_systems_are_one_session() {
    let (files, place) = place();
    let paths = [
        "d/s/agent_meta.json",
        "d/s/memory_messages.jsonl",
        "d/s/memory_messages.hash",
    ];
    for (path, text) in paths
        .iter()
        .zip(["{\"id\":\"a\"}", "{\"m\":1}\n{\"m\":2}\n", "1f2e"])
    {
        wait(files.write(path, text.as_bytes(), None)).unwrap();
    }
    let (state, mark) = wait(place.load(&ctx(), &sid("s"))).unwrap().unwrap();
    let components = json!({"agent_meta": {"id": "a"}, "memory_messages": [{"m": 1}, {"m": 2}]});
    assert_eq!(Value::Object(state.components.clone()), components);
    let mut changed = state;
    changed.components.remove("agent_meta");
    changed
        .components
        .insert("memory_messages".to_owned(), json!({"now": "a value"}));
    wait(place.save(&ctx(), &changed, Some(&mark))).unwrap();
    let listed = wait(files.list("d/s")).unwrap();
    let paths: Vec<&str> = listed.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["d/s/memory_messages.json", "d/s/session_meta.json"]);
    assert_eq!(wait(place.get_value(&sid("s"), "none")).unwrap(), None);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let (files, place) = place();
    for name in ["", "a/b", "..", "a\n", "../../x"] {
        assert!(wait(place.save_value(&sid("s"), name, &json!(1))).is_err());
        assert!(wait(place.save_list(&sid("s"), name, &[])).is_err());
    }
    assert!(wait(files.list("")).unwrap().is_empty());
}

proptest! {
    #[test]
    fn any_lists_one_after_the_other_come_back(
        lists in prop::collection::vec(prop::collection::vec(0..4i32, 0..8), 1..8)
    ) {
        let (_, place) = place();
        for items in lists {
            list(&place, &items);
        }
    }
}
