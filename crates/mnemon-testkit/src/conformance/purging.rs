//! A purge leaves nothing.

use mnemon_core::{ErrorKind, Fate, Filter, Grant, HiddenScan, Op, Record, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, fact, grant, grant_on, id, ids, note};

pub async fn a_purge_leaves_no_trace(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("a").saying("again"), note("b")])
        .await;
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Purged);
    assert_eq!(receipt.commit, None, "there is nothing to undo");
    assert!(!s.has(&g, "a").await);
    assert!(s.changes(&g, "a").await.is_empty());
    let seen = s.seen(&g).await;
    assert_eq!(seen.newest, ids(&["b"]));
    assert!(seen.changes.iter().all(|change| change.id == id("b")));
    assert_eq!((seen.tally.records(), seen.tally.history), (1, 0));
}

pub async fn a_purge_takes_what_was_derived(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]),
        note("b").made_from(&["a"]).saying("again"),
        note("c").made_from(&["b"]),
        note("other"),
    ];
    s.put(&g, records).await;
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.cascaded, ids(&["b", "c"]));
    assert_eq!(s.names(&g).await, ["other"]);
    for name in ["a", "b", "c"] {
        assert!(s.changes(&g, name).await.is_empty());
    }
    assert_eq!(s.tally(&g).await.history, 0);
}

pub async fn a_purge_reaches_the_deleted(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]),
        note("c").made_from(&["b"]),
    ];
    s.put(&g, records).await;
    s.delete(&g, "b").await;
    s.delete(&g, "a").await;
    assert_eq!(s.tally(&g).await.history, 6);
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Purged);
    assert_eq!(receipt.cascaded, ids(&["b", "c"]));
    assert!(s.seen(&g).await.changes.is_empty());
    assert_eq!(s.tally(&g).await.history, 0);
}

pub async fn a_purge_needs_the_right(s: Subject) {
    s.put(&grant(at(0)), [note("a")]).await;
    let writer = Caller::default().grant(Right::Write);
    let ops = vec![Op::put(note("b")), Op::Purge { id: id("a") }];
    let error = s.refused(&writer, ops).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    let ops = vec![Op::Purge { id: id("nothing") }];
    let error = s.refused(&writer, ops).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
}

pub async fn purging_what_is_not_there_is_no_error(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("b").made_from(&["a"])]).await;
    let receipt = s.purge(&g, "nothing").await;
    assert_eq!(receipt.items[0].fate, Fate::Missing);
    assert!(receipt.cascaded.is_empty());
    // The source itself is gone, or never was; what was made of it is still its copy.
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Missing);
    assert_eq!(receipt.cascaded, [id("b")]);
}

pub async fn a_purged_id_starts_anew(s: Subject) {
    let g = grant(at(0));
    let derived = || note("b").made_from(&["a"]);
    s.put(&g, [note("a"), derived(), derived()]).await;
    s.purge(&g, "b").await;
    let receipt = s.done(&g, vec![Op::append(note("b"))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
    assert!(s.delete(&g, "a").await.cascaded.is_empty());
    assert!(s.has(&g, "b").await);
}

pub async fn nothing_purged_comes_back_on_reopening(mut s: Subject) {
    let g = Caller::default().capped(None, Some(2));
    let g = g.grant(Right::Purge);
    let records = [
        note("evicted"),
        note("a"),
        note("b").made_from(&["a"]),
        note("c").made_from(&["b"]),
    ];
    s.put(&g, records).await;
    for name in ["evicted", "a"] {
        s.purge(&g, name).await;
    }
    let before = s.seen(&g).await;
    assert_eq!((before.tally.records(), before.tally.history), (0, 0));
    s.reopen().await;
    assert_eq!(s.seen(&g).await, before);
}

fn of_session(session: &str) -> Filter {
    let mut filter = Filter::all_of_tenant();
    filter.owner.session = Some(session.to_owned());
    filter
}

fn said_in(session: &str, name: &str) -> Record {
    let mut record = note(name);
    record.owner.session = Some(session.to_owned());
    record
}

/// Ids, and whether the newest version is current, of all pages.
async fn hidden(s: &Subject, g: &Grant, filter: Filter, limit: usize) -> Vec<(String, bool)> {
    let limit = limit.min(g.limits().page);
    let mut scan = HiddenScan {
        limit,
        ..HiddenScan::new(filter)
    };
    let mut all = Vec::new();
    loop {
        let page = s.store().hidden(g, &scan).await.unwrap();
        assert!(page.len() <= limit);
        all.extend(
            page.iter()
                .map(|one| (one.record.id.to_string(), one.is_live)),
        );
        match page.last() {
            Some(last) if page.len() == limit => scan.after = Some(last.record.id.clone()),
            _ => return all,
        }
    }
}

pub async fn what_no_scan_shows_is_listed_for_a_purge(s: Subject) {
    let g = grant(at(0));
    let records = [
        said_in("s1", "changed"),
        said_in("s1", "changed").saying("again"),
        said_in("s1", "deleted"),
        said_in("s1", "deleted").saying("again"),
        said_in("s1", "expired").until(at(5)),
        said_in("s1", "moved"),
        said_in("s2", "moved"),
        said_in("s1", "moved-and-deleted"),
        said_in("s2", "moved-and-deleted"),
        said_in("s1", "seen"),
        said_in("s2", "other"),
        note("nobody"),
    ];
    s.put(&g, records).await;
    for name in ["deleted", "moved-and-deleted", "other", "nobody"] {
        s.delete(&g, name).await;
    }
    s.put(
        &grant_on("elsewhere"),
        [said_in("s1", "theirs").on("elsewhere")],
    )
    .await;
    s.delete(&grant_on("elsewhere"), "theirs").await;
    let later = grant(at(9));
    let found = hidden(&s, &later, of_session("s1"), 100).await;
    let expected = [
        ("deleted", false),
        ("expired", false),
        ("moved", true),
        ("moved-and-deleted", false),
    ];
    let expected = expected.map(|(name, is_live)| (name.to_owned(), is_live));
    assert_eq!(found, expected);
    let facts = Filter {
        kinds: vec![fact("x").kind],
        ..of_session("s1")
    };
    assert!(hidden(&s, &later, facts, 100).await.is_empty());
    let shown = HiddenScan::new(of_session("s1"));
    let shown = s.store().hidden(&later, &shown).await.unwrap();
    assert_eq!(shown[0].record.content, "again", "the newest version");
}

pub async fn what_was_derived_and_deleted_is_listed(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("gone").made_from(&["a"]),
        note("was").made_from(&["a"]),
        note("was").made_from(&["b"]),
        note("seen").made_from(&["a"]),
        note("late").made_from(&["a"]).until(at(5)),
    ];
    s.put(&g, records).await;
    s.delete(&g, "gone").await;
    let made = Filter {
        derived_from: ids(&["x", "a"]),
        ..Filter::all_of_tenant()
    };
    let found = hidden(&s, &grant(at(9)), made, 100).await;
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["gone", "late"]);
}

pub async fn hidden_records_come_in_pages(mut s: Subject) {
    let g = grant(at(0));
    for n in 0..25 {
        let session = if n % 5 == 0 { "s2" } else { "s1" };
        s.put(&g, [said_in(session, &format!("r{n:02}"))]).await;
        s.delete(&g, &format!("r{n:02}")).await;
    }
    let whole = hidden(&s, &g, of_session("s1"), 100).await;
    assert_eq!(whole.len(), 20);
    for limit in [1, 3, 7, 20] {
        assert_eq!(hidden(&s, &g, of_session("s1"), limit).await, whole);
    }
    s.reopen().await;
    assert_eq!(hidden(&s, &g, of_session("s1"), 7).await, whole);
    let reader = Caller::default().grant(Right::Read);
    assert_eq!(hidden(&s, &reader, of_session("s1"), 7).await, whole);
}

pub async fn a_purge_erases_all_that_is_listed(s: Subject) {
    let g = grant(at(0));
    s.put(
        &g,
        [said_in("s1", "a"), said_in("s1", "b").made_from(&["a"])],
    )
    .await;
    s.delete(&g, "a").await;
    let listed = hidden(&s, &g, of_session("s1"), 100).await;
    assert_eq!(listed.len(), 2);
    for (name, _) in listed {
        s.purge(&g, &name).await;
    }
    assert!(hidden(&s, &g, of_session("s1"), 100).await.is_empty());
    assert_eq!(s.tally(&g).await.history, 0);
}
