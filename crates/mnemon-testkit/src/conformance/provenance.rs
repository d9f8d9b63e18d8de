//! Deleting a source deletes what was derived from it.

use mnemon_core::{Cause, ErrorKind, Fate, Filter, Limits, Op, Order, Scan};

use super::Subject;
use crate::make::{Remade, at, fact, grant, id, ids, limits, note, with_limits};
use crate::talks;

/// Several batches. A cascade as large as the product allows takes a debug build seconds for each
/// backend, so it runs with the long tests only.
static SHORTER: Limits = Limits {
    cascade: 3_000,
    ..Limits::DEFAULT
};

pub async fn a_delete_takes_the_whole_chain(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]),
        fact("c").made_from(&["b"]),
        note("d").made_from(&["c"]).short_term(),
        note("other"),
    ];
    s.put(&g, records).await;
    let receipt = s.delete(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Deleted);
    assert_eq!(receipt.cascaded, ids(&["b", "c", "d"]));
    assert_eq!(s.names(&g).await, ["other"]);
    for name in ["a", "b", "c", "d"] {
        let newest = &s.changes(&g, name).await[0];
        assert_eq!(Some(newest.commit), receipt.commit, "one commit");
    }
}

pub async fn a_diamond_falls_once(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("top"),
        note("left").made_from(&["top"]),
        note("right").made_from(&["top"]),
        note("bottom").made_from(&["left", "right", "top"]),
    ];
    s.put(&g, records).await;
    let mut cascaded = s.delete(&g, "top").await.cascaded;
    cascaded.sort();
    assert_eq!(cascaded, ids(&["bottom", "left", "right"]));
    assert_eq!(s.changes(&g, "bottom").await.len(), 2);
}

pub async fn a_cycle_ends(s: Subject) {
    let g = grant(at(0));
    let ring = || {
        [
            note("a").made_from(&["c"]),
            note("b").made_from(&["a"]),
            note("c").made_from(&["b"]),
        ]
    };
    s.put(&g, ring()).await;
    let receipt = s.delete(&g, "b").await;
    assert_eq!(receipt.cascaded, ids(&["c", "a"]));
    assert!(s.names(&g).await.is_empty());
    s.put(&g, ring()).await;
    let receipt = s.purge(&g, "b").await;
    assert_eq!(receipt.cascaded, ids(&["c", "a"]));
    assert_eq!(receipt.items[0].fate, Fate::Purged);
    assert_eq!(s.tally(&g).await.history, 0);
}

pub async fn any_source_takes_it_along(s: Subject) {
    let g = grant(at(0));
    let records = [note("a"), note("b"), note("sum").made_from(&["a", "b"])];
    s.put(&g, records).await;
    assert_eq!(s.delete(&g, "b").await.cascaded, [id("sum")]);
    assert_eq!(s.names(&g).await, ["a"]);
}

pub async fn links_go_with_the_version(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b"), note("sum").made_from(&["a"])])
        .await;
    s.put(&g, [note("sum").made_from(&["b"])]).await;
    assert!(s.delete(&g, "a").await.cascaded.is_empty());
    assert!(s.has(&g, "sum").await);
    assert_eq!(s.delete(&g, "b").await.cascaded, [id("sum")]);
}

pub async fn a_deleted_record_is_not_deleted_again(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b").made_from(&["a"])]).await;
    s.delete(&g, "b").await;
    assert!(s.delete(&g, "a").await.cascaded.is_empty());
    assert_eq!(s.changes(&g, "b").await.len(), 2);
}

pub async fn a_cascade_goes_through_the_deleted(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b").made_from(&["a"])]).await;
    s.delete(&g, "b").await;
    s.put(&g, [note("c").made_from(&["b"])]).await;
    let receipt = s.delete(&g, "a").await;
    assert_eq!(receipt.cascaded, [id("c")]);
    let told = &s.changes(&g, "c").await[0];
    assert_eq!(told.cause, Cause::Cascaded(id("a")));
}

pub async fn a_new_life_has_new_links(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b").made_from(&["a"])]).await;
    s.delete(&g, "b").await;
    s.put(&g, [note("b")]).await;
    assert!(s.delete(&g, "a").await.cascaded.is_empty());
    assert!(s.has(&g, "b").await);
}

pub async fn a_source_may_come_later(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("b").made_from(&["a"]), note("a")]).await;
    assert_eq!(s.delete(&g, "a").await.cascaded, [id("b")]);
    // The source comes back; what was made from it does not by itself.
    s.put(&g, [note("a")]).await;
    assert!(!s.has(&g, "b").await);
    assert!(s.delete(&g, "a").await.cascaded.is_empty());
}

pub async fn naming_a_source_twice_is_once(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b").made_from(&["a", "a"])])
        .await;
    let found = s.get(&g, "b").await.unwrap();
    assert_eq!(
        found.derived_from,
        ids(&["a", "a"]),
        "kept as it was written"
    );
    assert_eq!(s.delete(&g, "a").await.cascaded, [id("b")]);
    assert_eq!(s.changes(&g, "b").await.len(), 2);
}

pub async fn a_batch_may_delete_what_it_cascades_to(s: Subject) {
    let g = grant(at(0));
    let ops = vec![
        Op::put(note("a")),
        Op::put(note("b").made_from(&["a"])),
        Op::delete(id("a")),
        Op::delete(id("b")),
        Op::put(note("c").made_from(&["a"])),
    ];
    let receipt = s.done(&g, ops).await;
    let fates: Vec<&Fate> = receipt.items[2..].iter().map(|item| &item.fate).collect();
    let stored = Fate::Stored { version: 1 };
    assert_eq!(fates, [&Fate::Deleted, &Fate::Missing, &stored]);
    assert_eq!(receipt.cascaded, [id("b")]);
    assert_eq!(s.names(&g).await, ["c"]);
}

pub async fn the_nearest_fall_first(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("root"),
        note("a1").made_from(&["root"]),
        note("b1").made_from(&["root"]),
        note("a2").made_from(&["a1"]),
        note("b2").made_from(&["b1"]),
        note("b3").made_from(&["b2"]),
    ];
    s.put(&g, records).await;
    let receipt = s.delete(&g, "root").await;
    assert_eq!(receipt.cascaded, ids(&["a1", "b1", "a2", "b2", "b3"]));
}

pub async fn a_cascade_has_a_limit(s: Subject) {
    let limits = match limits().cascade > SHORTER.cascade && !talks::is_full() {
        true => &SHORTER,
        false => limits(),
    };
    let g = with_limits(limits, || grant(at(0)));
    s.put(&g, [note("a")]).await;
    let names: Vec<String> = (0..=limits.cascade).map(|n| format!("r{n}")).collect();
    for names in names.chunks(limits.batch_ops) {
        let ops = names
            .iter()
            .map(|name| Op::put(fact(name).made_from(&["a"])));
        s.done(&g, ops.collect::<Vec<_>>()).await;
    }
    let before = s.tally(&g).await;
    for op in [Op::delete(id("a")), Op::Purge { id: id("a") }] {
        let error = s.apply(&g, vec![op]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
    }
    assert!(s.has(&g, "a").await && s.has(&g, "r0").await);
    assert_eq!(s.tally(&g).await, before);
    s.delete(&g, "r0").await;
    s.purge(&g, "r0").await;
    let receipt = s.delete(&g, "a").await;
    assert_eq!(receipt.cascaded.len(), limits.cascade);
    assert_eq!(s.tally(&g).await.records(), 0);
}

pub async fn what_was_made_from_a_record_is_listed(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b"),
        note("c").made_from(&["a"]).created(at(1)),
        fact("d").made_from(&["b", "a"]).created(at(2)),
        fact("e").made_from(&["b"]).created(at(3)),
        note("gone").made_from(&["a"]),
        note("changed").made_from(&["a"]),
    ];
    s.put(&g, records).await;
    s.delete(&g, "gone").await;
    s.put(&g, [note("changed").made_from(&["x"])]).await;
    let made_from = async |sources: &[&str], order| {
        let filter = Filter {
            derived_from: ids(sources),
            ..Filter::all_of_tenant()
        };
        let scan = Scan {
            order,
            ..Scan::new(filter, 10)
        };
        let page = s.store().scan(&g, &scan).await.unwrap();
        let ids = page.records.into_iter().map(|record| record.id);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(made_from(&["a"], Order::Newest).await, ids(&["d", "c"]));
    assert_eq!(
        made_from(&["a", "b"], Order::Written).await,
        ids(&["c", "d", "e"])
    );
    assert_eq!(made_from(&["nobody"], Order::Oldest).await, ids(&[]));
}
