//! How notes are kept: answers, lengths, time, caps.

use mnemon_core::{Namespace, Owner, note};
use mnemon_engine::notes::{MaxEntries, NoteFilter};

use super::*;

#[test]
fn an_answer_is_as_the_document_has_it() {
    let notes = notes();
    let added = add(&notes, "API response data 😀");
    let id = added.id.as_str();
    assert_eq!(id.len(), 16);
    assert!(
        id.bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
    assert_eq!(
        serde_json::to_value(&added).unwrap(),
        serde_json::json!({
            "id": id,
            "namespace": "short-term",
            "contentLength": 20,
            "summary": "API response data 😀",
            "expires": now().now.plus_days(14),
            "message": format!("Stored 20 chars in short-term. Use memory_search(\"{id}\") to retrieve."),
        })
    );
    let kept = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, Some(true)))
        .unwrap()
        .unwrap();
    assert_eq!(
        serde_json::to_value(&kept).unwrap(),
        serde_json::json!({
            "id": id,
            "namespace": "short-term",
            "summary": "API response data 😀",
            "tags": [],
            "createdAt": "2023-11-14T22:13:20.000Z",
            "contentPreview": "API response data 😀",
        })
    );
}

#[test]
fn everything_that_was_said_is_kept() {
    let notes = notes();
    let new = NewNote {
        tags: vec!["Config".into(), "important".into(), "CONFIG".into()],
        source: Some("user".into()),
        importance: Some(0.7),
        metadata: serde_json::from_str(r#"{"k":[1]}"#).unwrap(),
        ..long_term("Important configuration settings")
    };
    let added = add_at(&notes, &now(), new);
    let view = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, None))
        .unwrap()
        .unwrap();
    assert_eq!(view.tags, ["config", "important"]);
    assert_eq!(
        (view.namespace, view.importance),
        (Namespace::LongTerm, Some(0.7))
    );
    assert_eq!(view.source.as_deref(), Some("user"));
    assert_eq!(view.content_preview, None);
    // The document's program takes importance up to ten.
    let ten = NewNote {
        importance: Some(8.0),
        ..NewNote::new("eight of ten")
    };
    let added = add_at(&notes, &now(), ten);
    let view = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, None))
        .unwrap()
        .unwrap();
    assert_eq!(view.importance, Some(0.8));
}

#[test]
fn long_contents_are_cut_and_say_so() {
    let notes = notes();
    for (namespace, most) in [
        (Namespace::ShortTerm, 200_000),
        (Namespace::LongTerm, 500_000),
    ] {
        let just = "x".repeat(most);
        let new = |content: String| NewNote {
            namespace: Some(namespace),
            ..NewNote::new(content)
        };
        let call = now();
        let whole = add_at(&notes, &call, new(just.clone()));
        assert!(!whole.truncated && call.notices.take().is_empty());
        let cut = add_at(&notes, &call, new(format!("{just}yz")));
        assert!(cut.truncated);
        assert_eq!(cut.content_length, most + 2, "of what was given");
        let stored = format!("Stored {most} of {} chars in {namespace}.", most + 2);
        assert!(cut.message.starts_with(&stored), "{}", cut.message);
        assert_eq!(
            call.notices.take(),
            [format!("Only the first {most} chars were kept.")]
        );
        let text = wait(notes.text(&now(), &mnemon_core::Viewer::Tenant, &cut.id, 0, usize::MAX))
            .unwrap()
            .unwrap();
        assert_eq!(text.content.unwrap(), format!("{just}... [truncated]"));
        assert_eq!(text.note.summary, format!("{}...", "x".repeat(1200)));
    }
}

#[test]
fn an_answer_has_the_summary_that_is_stored() {
    let notes = notes();
    for letters in ["word ", "設定の記憶", "Quyết định ", "\"\\\n", "😀"] {
        let added = add(&notes, &letters.repeat(100_000 / letters.len()));
        let stored = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, None));
        assert_eq!(added.summary, stored.unwrap().unwrap().summary);
    }
}

#[test]
fn summaries_have_the_length_that_was_chosen() {
    let notes = notes_with(|config| config.short_term.max_summary_chars = 10);
    let added = add(&notes, "twelve chars of it");
    assert_eq!(added.summary, "twelve cha...");
    let view = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, None))
        .unwrap()
        .unwrap();
    assert_eq!(view.summary, "twelve cha...");
    let longer = notes_with(|config| config.short_term.max_summary_chars = 3000);
    let content = "y".repeat(2000);
    let added = add(&longer, &content);
    let view = wait(longer.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, None))
        .unwrap()
        .unwrap();
    assert_eq!(view.summary, content);
}

#[test]
fn a_content_is_read_part_by_part() {
    let notes = notes();
    let content = "aé漢😀".repeat(50);
    let added = add(&notes, &content);
    let (mut read, mut offset) = (String::new(), 0);
    loop {
        let part = wait(notes.text(&now(), &mnemon_core::Viewer::Tenant, &added.id, offset, 7))
            .unwrap()
            .unwrap();
        assert_eq!(part.content_length, note::length(&content));
        let text = part.content.unwrap();
        assert!(note::length(&text) <= 7);
        read.push_str(&text);
        match part.next_offset {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(read, content);
    let past = wait(notes.text(&now(), &mnemon_core::Viewer::Tenant, &added.id, 9999, 7))
        .unwrap()
        .unwrap();
    assert_eq!(
        (past.content.unwrap().as_str(), past.next_offset),
        ("", None)
    );
}

#[test]
fn notes_expire_with_their_namespace() {
    let notes = notes();
    let short = add(&notes, "gone in two weeks").id;
    let long = add_at(&notes, &now(), long_term("stays ten years")).id;
    let there = |ctx: &Ctx, id| {
        wait(notes.get(ctx, &mnemon_core::Viewer::Tenant, id, None))
            .unwrap()
            .is_some()
    };
    assert!(there(&after_days(14), &short), "to the very moment");
    let later = after_hours(14 * 24 + 1);
    assert!(!there(&later, &short) && there(&later, &long));
    assert!(there(&after_days(3650), &long));
    assert!(!there(&after_days(3651), &long));
    let found = wait(notes.search(
        &later,
        &NoteQuery::new(
            "gone two weeks",
            mnemon_engine::notes::NoteFilter::all_of_tenant(),
        ),
    ))
    .unwrap();
    assert!(!found.found);
    assert_eq!(found.message.as_deref(), Some("No matching entries found."));
    let page = wait(notes.list(&later, &NoteFilter::all_of_tenant(), None, 10)).unwrap();
    assert_eq!(page.notes.len(), 1);
    // They count until a cleanup takes them.
    assert_eq!(
        wait(notes.stats(&later, &mnemon_core::Viewer::Tenant))
            .unwrap()
            .short_term,
        1
    );
    let cleaned = wait(notes.cleanup(&later)).unwrap();
    assert_eq!(cleaned.cleaned, 1);
    assert_eq!(cleaned.message, "Cleaned up 1 expired entries.");
    let counts = wait(notes.stats(&later, &mnemon_core::Viewer::Tenant)).unwrap();
    assert_eq!(
        (counts.total, counts.short_term, counts.long_term),
        (1, 0, 1)
    );
    assert_eq!(wait(notes.cleanup(&later)).unwrap().cleaned, 0);
}

#[test]
fn a_cleanup_takes_all_there_is() {
    let notes = notes();
    for n in 0..1500 {
        add(&notes, &format!("note {n}"));
    }
    let cleaned = wait(notes.cleanup(&after_days(15))).unwrap();
    assert_eq!((cleaned.cleaned, cleaned.more), (1500, false));
    assert_eq!(wait(notes.count(&after_days(15), None)).unwrap(), 0);
}

#[test]
fn a_full_namespace_lets_the_weakest_go() {
    let chosen = MaxEntries::Chosen(Some(3));
    let notes = notes_with(|config| config.short_term.max_entries = chosen);
    let important = NewNote {
        importance: Some(0.9),
        ..NewNote::new("the oldest, and important")
    };
    let important = add_at(&notes, &now(), important).id;
    let old = add_at(&notes, &after_hours(1), NewNote::new("old")).id;
    add_at(&notes, &after_hours(2), NewNote::new("newer"));
    add_at(&notes, &after_hours(2), long_term("another namespace"));
    let call = after_hours(3);
    let last = add_at(&notes, &call, NewNote::new("newest"));
    assert_eq!(last.evicted, 1);
    assert_eq!(
        call.notices.take(),
        ["1 note was evicted, the least important first, as short-term is full."]
    );
    let there = |id| {
        wait(notes.get(&after_hours(3), &mnemon_core::Viewer::Tenant, id, None))
            .unwrap()
            .is_some()
    };
    assert!(there(&important) && !there(&old));
    let counts = wait(notes.stats(&after_hours(3), &mnemon_core::Viewer::Tenant)).unwrap();
    assert_eq!((counts.short_term, counts.long_term), (3, 1));
}

#[test]
fn a_cap_that_nobody_chose_takes_no_more_than_it_needs() {
    let usual = MaxEntries::Usual(3);
    let mut config = NotesConfig::default();
    config.short_term.max_entries = usual;
    let memory = memory_with(config, Safety::default());
    // Five that were written without a cap.
    let others = (0..5).map(|n| mnemon_engine::Draft {
        namespace: Some(Namespace::ShortTerm),
        ..mnemon_engine::Draft::note(format!("written otherwise {n}"))
    });
    wait(memory.records().add(&now(), others.collect(), None)).unwrap();
    let notes = memory.notes();
    let added = add_at(&notes, &after_hours(1), NewNote::new("one more"));
    assert_eq!(added.evicted, 1, "its own place, and no more");
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 5);
    // Whoever chooses the cap gets it.
    let mut config = NotesConfig::default();
    config.short_term.max_entries = MaxEntries::Chosen(None);
    let free = memory_with(config, Safety::default()).notes();
    for n in 0..2100 {
        add(&free, &format!("{n}"));
    }
    assert_eq!(
        wait(free.count(&now(), Some(Namespace::ShortTerm))).unwrap(),
        2100
    );
}

#[test]
fn the_caps_of_the_document_hold() {
    let notes = notes();
    let limits = notes.config().clone();
    assert_eq!(limits.short_term.max_entries, MaxEntries::Usual(2000));
    assert_eq!(limits.long_term.max_entries, MaxEntries::Usual(20_000));
    for n in 0..2005 {
        add(&notes, &format!("{n}"));
    }
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 2000);
}

#[test]
fn deleting_and_clearing() {
    let notes = notes();
    let one = add(&notes, "one").id;
    for n in 0..5 {
        add(&notes, &format!("short {n}"));
    }
    for n in 0..3 {
        add_at(&notes, &now(), long_term(&format!("long {n}")));
    }
    assert!(wait(notes.delete(&now(), &mnemon_core::Viewer::Tenant, &one)).unwrap());
    assert!(!wait(notes.delete(&now(), &mnemon_core::Viewer::Tenant, &one)).unwrap());
    let nobody = Owner::default();
    let short = wait(notes.clear(&now(), Some(Namespace::ShortTerm), &nobody)).unwrap();
    assert_eq!((short.cleared, short.remaining), (5, 3));
    assert!(short.commit.is_some());
    let all = wait(notes.clear(&now(), None, &nobody)).unwrap();
    assert_eq!((all.cleared, all.remaining), (3, 0));
    assert_eq!(wait(notes.clear(&now(), None, &nobody)).unwrap().cleared, 0);
}

#[test]
fn clearing_does_not_count_the_notes_of_others() {
    let memory = memory_with(NotesConfig::default(), Safety::default());
    for user in ["ann", "ann", "bob"] {
        let mut note = mnemon_engine::Draft::note(format!("a note of {user}"));
        note.owner.user = Some(user.to_owned());
        wait(memory.records().add(&now(), vec![note], None)).unwrap();
    }
    let ann = Owner {
        user: Some("ann".to_owned()),
        ..Owner::default()
    };
    let cleared = wait(memory.notes().clear(&now(), None, &ann)).unwrap();
    assert_eq!((cleared.cleared, cleared.remaining), (2, 0));
}

#[test]
fn clearing_takes_notes_only_and_more_than_a_page() {
    let mut config = NotesConfig::default();
    config.long_term.max_entries = MaxEntries::Chosen(None);
    let memory = memory_with(config, Safety::default());
    let fact = mnemon_engine::Draft {
        kind: Some(mnemon_core::Kind::Fact),
        ..mnemon_engine::Draft::note("a fact is no note")
    };
    let fact = wait(memory.records().add(&now(), vec![fact], None)).unwrap();
    let fact = &fact.items[0].id;
    let drafts = (0..2500).map(|n| mnemon_engine::Draft::note(format!("note {n}")));
    wait(memory.records().add(&now(), drafts.collect(), None)).unwrap();
    let notes = memory.notes();
    let cleared = wait(notes.clear(&now(), None, &Owner::default())).unwrap();
    assert_eq!((cleared.cleared, cleared.remaining), (2500, 0));
    // It is still known, and can be read by its id.
    assert!(
        wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, fact, None))
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_note_that_is_the_weakest_of_a_full_namespace_is_not_said_to_be_stored() {
    let chosen = MaxEntries::Chosen(Some(2));
    let notes = notes_with(|config| config.short_term.max_entries = chosen);
    for content in ["one", "two"] {
        let important = NewNote {
            importance: Some(0.5),
            ..NewNote::new(content)
        };
        add_at(&notes, &now(), important);
    }
    let weak = add(&notes, "weak");
    assert!(weak.not_stored, "{weak:?}");
    assert!(
        weak.message.starts_with("Not stored: short-term is full"),
        "{}",
        weak.message
    );
    assert_eq!(weak.evicted, 0);
    assert!(
        wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &weak.id, None))
            .unwrap()
            .is_none()
    );
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 2);
}
