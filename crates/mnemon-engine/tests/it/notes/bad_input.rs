//! What cannot be a note is refused, and nothing is written.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::{ErrorKind, limits};
use mnemon_engine::notes::NoteFiles;
use mnemon_testkit::fakes::FilesInRam;

use super::*;

#[track_caller]
fn refused(notes: &Notes, new: NewNote, expected: &str) {
    let error = wait(notes.add(&now(), new, None)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(expected), "{expected}: {text}");
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 0);
}

#[test]
fn notes_that_are_none() {
    let notes = notes();
    let with = |change: fn(&mut NewNote)| {
        let mut new = NewNote::new("fine");
        change(&mut new);
        new
    };
    let strings = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
    refused(&notes, NewNote::new(""), "content: is empty");
    refused(&notes, NewNote::new(" \n\t"), "content: is empty");
    refused(&notes, NewNote::default(), "content: is missing");
    refused(&notes, NewNote::new("a\0b"), "NUL");
    let large = "x".repeat(limits::CONTENT_BYTES + 1);
    refused(&notes, NewNote::new(large), "at most 10485760");
    let both = with(|new| new.content_path = Some("a.md".into()));
    refused(&notes, both, "give one of the two");
    let tags = NewNote {
        tags: strings(21),
        ..NewNote::new("fine")
    };
    refused(&notes, tags, "there are 21, at most 20");
    refused(
        &notes,
        with(|new| new.tags = vec!["t".repeat(51)]),
        "1 to 50 characters",
    );
    refused(
        &notes,
        with(|new| new.tags = vec!["two words".into()]),
        "without spaces",
    );
    refused(
        &notes,
        with(|new| new.tags = vec![String::new()]),
        "is not a valid tag",
    );
    refused(
        &notes,
        with(|new| new.source = Some("s".repeat(201))),
        "at most 200",
    );
    refused(
        &notes,
        with(|new| new.source = Some("a\nb".into())),
        "control character",
    );
    refused(
        &notes,
        with(|new| new.importance = Some(-0.1)),
        "between 0 and 1",
    );
    refused(
        &notes,
        with(|new| new.importance = Some(10.1)),
        "between 0 and 1",
    );
    refused(
        &notes,
        with(|new| new.importance = Some(f64::NAN)),
        "between 0 and 1",
    );
    let metadata = NewNote {
        metadata: [("k".to_owned(), "v".repeat(10_000).into())]
            .into_iter()
            .collect(),
        ..NewNote::new("fine")
    };
    refused(&notes, metadata, "at most 10000");
}

#[test]
fn the_largest_of_everything_is_fine() {
    let notes = notes();
    let new = NewNote {
        tags: (0..20).map(|n| format!("{n:0>50}")).collect(),
        source: Some("s".repeat(200)),
        importance: Some(10.0),
        metadata: [("k".to_owned(), "v".repeat(9990).into())]
            .into_iter()
            .collect(),
        ..NewNote::new("x".repeat(limits::CONTENT_BYTES))
    };
    assert!(add_at(&notes, &now(), new).truncated);
}

#[test]
fn queries_that_are_none() {
    let notes = notes();
    let ask = |query: NoteQuery| wait(notes.search(&now(), &query)).unwrap_err();
    assert!(
        ask(NoteQuery::new(
            "",
            mnemon_engine::notes::NoteFilter::all_of_tenant()
        ))
        .to_string()
        .contains("query: is empty")
    );
    assert!(
        ask(NoteQuery::new(
            " \n ",
            mnemon_engine::notes::NoteFilter::all_of_tenant()
        ))
        .to_string()
        .contains("query: is empty")
    );
    let long = ask(NoteQuery::new(
        "ệ".repeat(1001),
        mnemon_engine::notes::NoteFilter::all_of_tenant(),
    ))
    .to_string();
    assert!(long.contains("has 1001 characters, at most 1000"), "{long}");
    assert_eq!(
        ask(NoteQuery::new(
            "x".repeat(1_000_000),
            mnemon_engine::notes::NoteFilter::all_of_tenant()
        ))
        .kind(),
        ErrorKind::Invalid
    );
    for score in [-0.1, 1.1, f64::NAN] {
        let query = NoteQuery {
            min_score: Some(score),
            ..NoteQuery::new("tea", mnemon_engine::notes::NoteFilter::all_of_tenant())
        };
        assert!(ask(query).to_string().contains("between 0 and 1"));
    }
    // A thousand characters are a query, and what only has signs finds nothing.
    for fine in [
        "ệ".repeat(1000).as_str(),
        "!!! ???",
        "' OR 1=1 --",
        "\u{0}\u{1}x",
    ] {
        let found = wait(notes.search(
            &now(),
            &NoteQuery::new(fine, mnemon_engine::notes::NoteFilter::all_of_tenant()),
        ))
        .unwrap();
        assert!(!found.found);
    }
}

#[test]
fn words_that_nobody_knows_are_named() {
    let parse = |json: &str| {
        serde_json::from_str::<NewNote>(json)
            .unwrap_err()
            .to_string()
    };
    let error = parse(r#"{"content":"x","namespace":"middle-term"}"#);
    assert!(
        error.contains("short-term") && error.contains("long-term"),
        "{error}"
    );
    assert!(parse(r#"{"content":5}"#).contains("expected a string"));
    assert!(parse(r#"{"contents":"x"}"#).contains("unknown field"));
    // What models reach for.
    let alias: NewNote = serde_json::from_str(r#"{"contentPath":"a","type":"long-term"}"#).unwrap();
    assert_eq!(alias.content_path.as_deref(), Some("a"));
}

#[test]
fn ids_that_are_not_there() {
    let notes = notes();
    let id = "0123456789abcdef".parse().unwrap();
    assert!(
        wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &id, None))
            .unwrap()
            .is_none()
    );
    assert!(
        wait(notes.text(&now(), &mnemon_core::Viewer::Tenant, &id, 0, 10))
            .unwrap()
            .is_none()
    );
    assert!(!wait(notes.delete(&now(), &mnemon_core::Viewer::Tenant, &id)).unwrap());
    assert!(
        !wait(notes.search(
            &now(),
            &NoteQuery::new(
                id.as_str(),
                mnemon_engine::notes::NoteFilter::all_of_tenant()
            )
        ))
        .unwrap()
        .found
    );
}

fn with_files() -> Notes {
    let files = FilesInRam::default();
    let write = |path: &str, bytes: &[u8]| {
        wait(files.write(path, bytes, None)).unwrap();
    };
    write("docs/a.md", "# Quyết định\n\nDùng SQLite.".as_bytes());
    write("bad.txt", b"ab\xffcd");
    write("large.txt", &vec![b'x'; 11 * 1024 * 1024]);
    write("empty.txt", b"\n");
    Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .note_files(NoteFiles {
            files: Arc::new(files),
            roots: vec!["/srv/project".into()],
        })
        .build()
        .notes()
}

fn file(path: &str) -> NewNote {
    NewNote {
        content_path: Some(path.to_owned()),
        ..NewNote::default()
    }
}

#[test]
fn a_file_becomes_a_note() {
    for path in ["docs/a.md", "./docs/a.md", "/srv/project/docs/a.md"] {
        let notes = with_files();
        let added = add_at(&notes, &now(), file(path));
        let id = &added.id;
        assert_eq!(
            added.message,
            format!(
                "Stored 26 chars from {path} in short-term. Use memory_search(\"{id}\") to retrieve."
            )
        );
        let view = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, id, None))
            .unwrap()
            .unwrap();
        assert_eq!(
            view.source.as_deref(),
            Some(format!("file:{path}").as_str())
        );
        assert!(view.summary.contains("Dùng SQLite"));
    }
}

#[test]
fn files_that_cannot_become_notes() {
    let notes = with_files();
    for path in [
        "../secret",
        "docs/../../secret",
        "/etc/passwd",
        "/srv/project/../secret",
        "/srv/project2/docs/a.md",
        "",
        "docs//a.md",
        "a\0b",
        "..\\secret",
    ] {
        let error = wait(notes.add(&now(), file(path), None)).unwrap_err();
        assert!(
            error.to_string().contains("not a path below the root"),
            "{path}: {error}"
        );
    }
    refused(&notes, file("nowhere.md"), "there is no file `nowhere.md`");
    refused(&notes, file("bad.txt"), "byte 2 is not UTF-8");
    refused(&notes, file("empty.txt"), "content: is empty");
    refused(&notes, file("large.txt"), "at most 10485760");
    let without = super::notes();
    refused(&without, file("docs/a.md"), "files are not read here");
}
