//! Changing records, and naming them by the beginning of their id.

use mnemon_core::{Changes, Ctx, ErrorKind, Kind, Namespace, Owner, Viewer};
use mnemon_engine::notes::NewNote;
use mnemon_engine::{Draft, Edit, Edited, Error, Memory};
use serde_json::json;

use crate::{all, contents, ctx, id, memory, named, wait};

fn edit(memory: &Memory, name: &str, edit: Edit) -> Result<Edited, Error> {
    wait(
        memory
            .records()
            .edit(&ctx(), &Viewer::Tenant, &id(name), edit),
    )
}

fn content(text: &str) -> Edit {
    Edit {
        content: Some(text.to_owned()),
        ..Edit::default()
    }
}

#[test]
fn an_edit_changes_only_what_it_names_and_can_be_undone() {
    let memory = memory();
    let draft = Draft {
        tags: vec!["Drinks".to_owned()],
        importance: Some(0.5),
        metadata: json!({"a": 1, "b": 2}).as_object().unwrap().clone(),
        summary: Some("tea".to_owned()),
        ..named("n", "Ann prefers tea")
    };
    wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
    let before = all(&memory).remove(0);
    let done = edit(
        &memory,
        "n",
        Edit {
            metadata: json!({"b": null, "c": 3}).as_object().unwrap().clone(),
            ..content("Ann prefers coffee")
        },
    )
    .unwrap();
    assert_eq!(
        (done.version, done.content.as_str()),
        (2, "Ann prefers coffee")
    );
    let after = all(&memory).remove(0);
    assert_eq!(after.tags, before.tags);
    assert_eq!((after.importance, after.expires), (0.5, before.expires));
    assert_eq!(json!(after.metadata), json!({"a": 1, "c": 3}));
    assert_eq!(after.summary, None);
    let history = wait(
        memory
            .records()
            .history(&ctx(), &Changes::all_of_tenant(10)),
    )
    .unwrap();
    assert_eq!(history.len(), 2);
    wait(memory.records().undo(&ctx(), done.commit.unwrap())).unwrap();
    assert_eq!(contents(&memory), ["Ann prefers tea"]);
}

#[test]
fn an_edit_of_another_version_is_refused() {
    let memory = memory();
    wait(memory.records().add(&ctx(), vec![named("n", "tea")], None)).unwrap();
    let stale = Edit {
        if_version: Some(7),
        ..content("coffee")
    };
    let error = edit(&memory, "n", stale).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let right = Edit {
        if_version: Some(1),
        ..content("coffee")
    };
    assert_eq!(edit(&memory, "n", right).unwrap().version, 2);
    let error = edit(&memory, "n", content("coffee"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("changes nothing"), "{error}");
    let error = edit(&memory, "nobody", content("x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_namespace_and_a_time_change_how_long_it_is_kept() {
    let memory = memory();
    wait(memory.records().add(&ctx(), vec![named("n", "tea")], None)).unwrap();
    let short = Edit {
        namespace: Some(Namespace::ShortTerm),
        ..Edit::default()
    };
    let done = edit(&memory, "n", short).unwrap();
    assert_eq!(done.expires, Some(ctx().now.plus_days(14)));
    let hours = Edit {
        expires: Some(ctx().now.plus_millis(36 * 3_600_000)),
        ..Edit::default()
    };
    assert_eq!(
        edit(&memory, "n", hours.clone()).unwrap().expires,
        hours.expires
    );
    let past = Edit {
        expires: Some(ctx().now.plus_days(-1)),
        ..Edit::default()
    };
    assert!(edit(&memory, "n", past).is_err());
}

#[test]
fn records_that_are_made_from_something_else_are_not_edited() {
    let memory = memory();
    for kind in [
        Kind::Chunk,
        Kind::Document,
        Kind::Message,
        Kind::Skill,
        Kind::Session,
    ] {
        let name = kind.as_str();
        let draft = Draft {
            kind: Some(kind),
            ..named(name, "x")
        };
        wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
        let error = edit(&memory, name, content("y")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
    }
}

#[test]
fn nobody_edits_what_they_may_not_see() {
    let memory = memory();
    let bobs = Draft {
        owner: Owner::of(Some("bob"), None),
        ..named("bobs", "salary")
    };
    wait(memory.records().add(&ctx(), vec![bobs], None)).unwrap();
    let ann = Viewer::of_caller(Some("ann".to_owned()), None);
    let error = wait(
        memory
            .records()
            .edit(&ctx(), &ann, &id("bobs"), content("x")),
    );
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    let meant = wait(memory.records().resolve(&ctx(), &ann, id("bob")));
    assert_eq!(meant.unwrap(), id("bob"));
}

#[test]
fn the_beginning_of_a_generated_id_names_a_record_if_no_other_begins_so() {
    let memory = memory();
    let (one, two) = ("abcd100000000001", "abcd200000000002");
    let uuid = "01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f";
    let drafts = [one, two, uuid, "abxy", "cafe12"].map(|name| named(name, name));
    wait(memory.records().add(&ctx(), drafts.to_vec(), None)).unwrap();
    let resolve = |text: &str| {
        let records = memory.records();
        wait(records.resolve(&ctx(), &Viewer::Tenant, id(text)))
    };
    assert_eq!(resolve(one).unwrap(), id(one));
    assert_eq!(resolve("abcd1").unwrap(), id(one));
    assert_eq!(resolve("01920e4a-6f").unwrap(), id(uuid));
    let error = resolve("abcd").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains(&format!("{one}, {two}")),
        "{error}"
    );
    // Too short to name anything.
    assert_eq!(resolve("abc").unwrap(), id("abc"));
    assert_eq!(resolve("fedc").unwrap(), id("fedc"));
    // Ids that somebody chose are written in full, whether or not their record is there.
    assert_eq!(resolve("cafe1").unwrap(), id("cafe1"));
    wait(memory.records().forget(&ctx(), &[id(two)], None)).unwrap();
    assert_eq!(resolve("abcd").unwrap(), id(one));
    assert_eq!(resolve(two).unwrap(), id(two));
}

#[test]
fn a_note_says_when_it_expires_and_which_one_is_nearly_the_same() {
    let memory = memory();
    let add = |note: NewNote, ctx: &Ctx| wait(memory.notes().add(ctx, note, None)).unwrap();
    let first = add(NewNote::new("Ann prefers green tea in the morning"), &ctx());
    assert_eq!(first.expires, Some(ctx().now.plus_days(14)));
    assert_eq!(first.near_duplicate, None);
    let year = Some(ctx().now.plus_days(365));
    let note = NewNote {
        expires: year,
        ..NewNote::new("Ann prefers black tea in the morning")
    };
    let second = add(note, &ctx());
    assert_eq!(second.expires, year);
    let near = second.near_duplicate.unwrap();
    assert_eq!(near.id, first.id);
    assert!((0.7..1.0).contains(&near.similarity), "{near:?}");
    // Also among many that share its common words.
    for number in 0..200 {
        let text = format!("Room {number} prefers green tea in the morning, with milk {number}");
        add(NewNote::new(text), &ctx());
    }
    let third = add(NewNote::new("Ann prefers black tea in the evening"), &ctx());
    assert_eq!(third.near_duplicate.unwrap().id, second.id);
    let other = add(NewNote::new("The staging server restarts at noon"), &ctx());
    assert_eq!(other.near_duplicate, None);
    assert_eq!(wait(memory.records().stats(&ctx())).unwrap().records(), 204);
}
