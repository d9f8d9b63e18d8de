//! What is known is not stored again.

use mnemon_core::{Id, Kind, Namespace, Owner, recall_marks};
use mnemon_engine::Draft;

use super::*;

#[test]
fn the_same_again_is_the_same_note() {
    let notes = notes();
    let first = add(&notes, "Ann prefers tea");
    let again = add(&notes, "Ann prefers tea");
    assert!(!first.known && again.known);
    assert_eq!(first.id, again.id);
    assert_eq!(
        again.message,
        format!(
            "Already known in short-term; nothing new was stored. Use memory_search(\"{}\") to retrieve.",
            first.id
        )
    );
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 1);
    assert!(!add(&notes, "Ann prefers tea!").known);
}

#[test]
fn what_is_said_about_it_is_brought_up_to_date() {
    let notes = notes();
    let first = add_at(&notes, &now(), tagged("Ann prefers tea", &["drinks"]));
    let later = after_days(10);
    let again = NewNote {
        namespace: Some(Namespace::LongTerm),
        importance: Some(0.8),
        source: Some("chat".into()),
        ..tagged("Ann prefers tea", &["ann"])
    };
    let again = add_at(&notes, &later, again);
    assert_eq!(
        (again.id, again.namespace),
        (first.id.clone(), Namespace::LongTerm)
    );
    assert!(again.message.contains("were updated"), "{}", again.message);
    let much_later = after_days(400);
    let view = wait(notes.get(&much_later, &mnemon_core::Viewer::Tenant, &first.id, None))
        .unwrap()
        .unwrap();
    assert_eq!(view.tags, ["drinks", "ann"]);
    assert_eq!(
        (view.importance, view.source.as_deref()),
        (Some(0.8), Some("chat"))
    );
    let counts = wait(notes.stats(&later, &mnemon_core::Viewer::Tenant)).unwrap();
    assert_eq!((counts.short_term, counts.long_term), (0, 1));
    // What was long-term does not become short-term.
    let short = add_at(&notes, &later, NewNote::new("Ann prefers tea"));
    assert_eq!(short.namespace, Namespace::LongTerm);
}

#[test]
fn noting_it_again_keeps_it_for_another_while() {
    let notes = notes();
    let id = add(&notes, "still true").id;
    add_at(&notes, &after_days(10), NewNote::new("still true"));
    assert!(
        wait(notes.get(&after_days(20), &mnemon_core::Viewer::Tenant, &id, None))
            .unwrap()
            .is_some()
    );
    assert!(
        wait(notes.get(&after_days(25), &mnemon_core::Viewer::Tenant, &id, None))
            .unwrap()
            .is_none()
    );
    // After that it is new.
    assert!(!add_at(&notes, &after_days(30), NewNote::new("still true")).known);
}

#[test]
fn what_others_wrote_is_known_as_well() {
    let memory = memory_with(NotesConfig::default(), Safety::default());
    for kind in [Kind::Note, Kind::Fact, Kind::Decision] {
        let draft = Draft {
            kind: Some(kind),
            ..Draft::note(format!("The {kind} says that Ann prefers tea"))
        };
        let content = draft.content.clone();
        let receipt = wait(memory.records().add(&now(), vec![draft], None)).unwrap();
        // It is recalled, and comes back.
        assert!(
            !found(
                &memory.notes(),
                &NoteQuery::new("tea", mnemon_engine::notes::NoteFilter::all_of_tenant())
            )
            .is_empty()
                || kind != Kind::Note
        );
        let added = add(&memory.notes(), &content);
        assert!(added.known, "{kind}");
        assert_eq!(added.id, receipt.items[0].id);
    }
}

#[test]
fn owners_have_notes_of_their_own() {
    let notes = notes();
    let of = |user: &str| NewNote {
        owner: Owner {
            user: Some(user.to_owned()),
            ..Owner::default()
        },
        ..NewNote::new("prefers tea")
    };
    let ann = add_at(&notes, &now(), of("ann"));
    let bob = add_at(&notes, &now(), of("bob"));
    assert!(!bob.known && ann.id != bob.id);
    let query = NoteQuery {
        filter: mnemon_engine::notes::NoteFilter {
            owner: of("ann").owner,
            ..mnemon_engine::notes::NoteFilter::all_of_tenant()
        },
        ..NoteQuery::new("tea", mnemon_engine::notes::NoteFilter::all_of_tenant())
    };
    let found = wait(notes.search(&now(), &query)).unwrap();
    assert_eq!(found.results.len(), 1);
    assert_eq!(found.results[0].id, ann.id);
}

#[test]
fn what_came_from_recall_is_not_new() {
    let notes = notes();
    let known = add(&notes, "Ann prefers tea").id;
    let told = recall_marks::tell([(&known, "Ann prefers tea")]);
    let only = add(&notes, &told);
    assert!(only.known);
    assert_eq!(only.id, known);
    let call = now();
    let said = format!("{told}She also likes rain.");
    let mixed = add_at(&notes, &call, NewNote::new(said));
    assert!(!mixed.known);
    assert_eq!(mixed.summary, "She also likes rain.");
    assert_eq!(
        call.notices.take(),
        ["Text recalled from memory was omitted; only what is new was stored."]
    );
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 2);
    let unknown: Id = "00000000".parse().unwrap();
    let told = recall_marks::tell([(&unknown, "Ann prefers tea")]);
    let error = wait(notes.add(&now(), NewNote::new(told), None)).unwrap_err();
    assert!(
        error.to_string().contains("nothing new to store"),
        "{error}"
    );
}

/// A text may claim to be recalled from any record.
#[test]
fn a_mark_of_recall_tells_nothing_about_what_others_keep() {
    let memory = memory_with(NotesConfig::default(), Safety::default());
    let of = |user: &str| Owner {
        user: Some(user.to_owned()),
        ..Owner::default()
    };
    let private = Draft {
        owner: of("ann"),
        ..Draft::note("the code of the safe")
    };
    let dialog = Draft {
        owner: of("bob"),
        scope: Some(mnemon_core::Scope::Dialog),
        ..Draft::note("said in a session")
    };
    let added = wait(memory.records().add(&now(), vec![private, dialog], None)).unwrap();
    for item in added.items {
        let told = recall_marks::tell([(&item.id, "guess")]);
        let note = NewNote {
            owner: of("bob"),
            ..NewNote::new(told)
        };
        let error = wait(memory.notes().add(&now(), note, None)).unwrap_err();
        assert!(
            error.to_string().contains("nothing new to store"),
            "{error}"
        );
    }
}

#[test]
fn other_writes_keep_recalled_text_out_as_well() {
    let memory = memory_with(NotesConfig::default(), Safety::default());
    let id: Id = "abc".parse().unwrap();
    let told = recall_marks::tell([(&id, "Ann prefers tea")]);
    let write = |content: String| {
        let draft = Draft::note(content);
        wait(memory.records().add(&now(), vec![draft], None))
    };
    assert!(write(told.clone()).is_err());
    let receipt = write(format!("New. {told}")).unwrap();
    let record = wait(memory.records().get(&now(), &[receipt.items[0].id.clone()])).unwrap();
    assert_eq!(record[0].as_ref().unwrap().content, "New.");
}

#[test]
fn a_deleted_note_can_be_noted_again() {
    let notes = notes();
    let id = add(&notes, "Ann prefers tea").id;
    wait(notes.delete(&now(), &mnemon_core::Viewer::Tenant, &id)).unwrap();
    let again = add(&notes, "Ann prefers tea");
    assert!(!again.known);
    assert_eq!(again.id, id);
}

#[test]
fn a_retry_is_harmless_and_a_key_has_one_meaning() {
    let notes = notes();
    let with_key = |content: &str| wait(notes.add(&now(), NewNote::new(content), Some("k1")));
    let first = with_key("Ann prefers tea").unwrap();
    assert_eq!(with_key("Ann prefers tea").unwrap().id, first.id);
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 1);
    assert!(with_key("something else").is_err());
}
