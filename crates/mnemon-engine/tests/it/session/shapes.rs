//! The session file: one shape is written, three are read, others are left alone.

use std::sync::Arc;

use mnemon_core::ErrorKind;
use mnemon_core::files::Files;
use mnemon_engine::session::{JsonSessions, Session, Sessions};
use mnemon_testkit::fakes::FilesInRam;
use serde_json::{Value, json};

use super::{counter, sid};
use crate::{ctx, wait};

fn with_file(text: &str) -> (Arc<FilesInRam>, JsonSessions) {
    let files = Arc::new(FilesInRam::default());
    wait(files.write("d/user123.json", text.as_bytes(), None)).unwrap();
    (files.clone(), JsonSessions::new(files, "d"))
}

fn text(files: &FilesInRam) -> String {
    let file = wait(files.read("d/user123.json")).unwrap().unwrap();
    String::from_utf8(file.bytes).unwrap()
}

#[test]
fn all_three_shapes_are_read_and_the_envelope_is_written() {
    let shapes = [
        json!({"sessionId": "user123", "components": {"OldCounter": {"count": 5}, "other": [1]},
            "timestamp": "2024-01-15T10:30:00Z", "note": "kept"}),
        json!({"counter": {"count": 5}, "other": {"x": 1}}),
        json!({"oldCounter": {"count": 5}, "other": {"x": 1}}),
    ];
    for shape in shapes {
        let (files, place) = with_file(&shape.to_string());
        let mut one = counter("counter", 0);
        let mut session = Session::new(sid("user123"), &place).with(&mut one).unwrap();
        wait(session.load_or_fail(&ctx())).unwrap();
        wait(session.save(&ctx())).unwrap();
        drop(session);
        assert_eq!(one.count, 5, "{shape}");
        let written: Value = serde_json::from_str(&text(&files)).unwrap();
        assert_eq!(written["sessionId"], "user123");
        assert_eq!(written["timestamp"], "2023-11-14T22:13:20.000Z");
        assert_eq!(written["note"], shape["note"]);
        let components = written["components"].as_object().unwrap();
        let names: Vec<&String> = components.keys().collect();
        assert_eq!(names, ["counter", "other"], "the old name is gone: {shape}");
        assert!(
            text(&files).contains("\n  \"components\""),
            "for people to read"
        );
    }
}

#[test]
fn another_shape_is_a_clear_error_and_stays_as_it_is() {
    for (other, why) in [
        ("", "not JSON"),
        ("{\"half\":", "not JSON"),
        ("[1]", "a list, not an object"),
        ("7", "a number"),
        ("{\"a\":1}", "`a` is a number"),
        (
            "{\"sessionId\":\"user123\",\"components\":[]}",
            "`components` is a list",
        ),
        (
            "{\"sessionId\":\"bob\",\"components\":{}}",
            "session \"bob\", not `user123`",
        ),
    ] {
        let (files, place) = with_file(other);
        let mut one = counter("counter", 3);
        let mut session = Session::new(sid("user123"), &place).with(&mut one).unwrap();
        for error in [
            wait(session.load_if_exists(&ctx())).unwrap_err(),
            wait(session.save(&ctx())).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Foreign, "{other}");
            let error = error.to_string();
            assert!(error.contains(why), "{other}: {error}");
            assert!(error.contains("d/user123.json"), "{error}");
        }
        drop(session);
        assert_eq!(one.count, 3);
        assert_eq!(text(&files), other, "nothing was overwritten");
    }
}

#[test]
fn a_listing_shows_the_files_of_sessions_only() {
    let (files, place) = with_file("{}");
    for path in ["d/b.json", "d/notes.md", "d/deep/c.json", "e.json"] {
        wait(files.write(path, b"{}", None)).unwrap();
    }
    assert_eq!(wait(place.list(&ctx())).unwrap(), ["b", "user123"]);
}
