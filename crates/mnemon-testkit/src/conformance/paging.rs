//! Long lists, page by page.

use mnemon_core::{Cursor, Filter, Kind, Op, Order, Owner, Page, Record, Scan, Scope, Time};

use super::Subject;
use crate::make::{Remade, at, ctx, fact, grant, id, limits, note};
use crate::observe::scan_all;

const ORDERS: [Order; 3] = [Order::Newest, Order::Oldest, Order::Written];

async fn page(s: &Subject, order: Order, after: Option<Cursor>, limit: usize) -> Page {
    let scan = Scan {
        filter: Filter::all_of_tenant(),
        order,
        after,
        limit,
    };
    s.store().scan(&grant(at(0)), &scan).await.unwrap()
}

fn names(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.id.as_str()).collect()
}

pub async fn orders_are_as_named(s: Subject) {
    let g = grant(at(0));
    let made = [("b", 5), ("c", 5), ("a", 9), ("d", 1)];
    s.put(&g, made.map(|(name, ms)| note(name).created(at(ms))))
        .await;
    s.put(&g, [note("b").created(at(5))]).await;
    let all = Filter::all_of_tenant();
    let found = async |order| scan_all(&**s.store(), &g, &all, order, 10).await.unwrap();
    // Of two that were created together, the one written last is the newer.
    assert_eq!(names(&found(Order::Newest).await), ["a", "b", "c", "d"]);
    assert_eq!(names(&found(Order::Oldest).await), ["d", "c", "b", "a"]);
    assert_eq!(names(&found(Order::Written).await), ["c", "a", "d", "b"]);
}

pub async fn pages_have_no_gap_and_no_repeat(s: Subject) {
    let g = grant(at(0));
    for n in 0..23 {
        // Only three moments for 23 records: most of them tie.
        let record = note(&format!("r{n}")).created(at(n * 7 % 3 - 1));
        s.put(&g, [record]).await;
    }
    s.delete(&g, "r4").await;
    s.put(&g, [note("r7").created(at(0))]).await;
    for order in ORDERS {
        let all = Filter::all_of_tenant();
        let pages = async |size| scan_all(&**s.store(), &g, &all, order, size).await.unwrap();
        let whole = pages(limits().page).await;
        assert_eq!(whole.len(), 22);
        for size in [1, 2, 3, 11, 21, 22, 23] {
            assert_eq!(pages(size).await, whole, "{order:?} in pages of {size}");
        }
    }
}

pub async fn a_filtered_scan_pages_over_what_does_not_match(s: Subject) {
    let g = grant(at(0));
    let record = |n: usize| match n % 17 {
        0 => fact(&format!("r{n}")),
        _ => note(&format!("r{n}")),
    };
    let ops: Vec<Op> = (0..120).map(|n| Op::put(record(n))).collect();
    for ops in ops.chunks(limits().batch_ops) {
        s.done(&g, ops.to_vec()).await;
    }
    let filter = Filter {
        kinds: vec![Kind::Fact],
        ..Filter::all_of_tenant()
    };
    for order in ORDERS {
        let found = scan_all(&**s.store(), &g, &filter, order, 2).await.unwrap();
        assert_eq!(found.len(), 8, "{order:?}");
        assert!(found.iter().all(|record| record.kind == Kind::Fact));
    }
}

/// The filters of a list, each of which a store may answer by another index.
fn narrow_filters() -> [Filter; 8] {
    let of = |owner: Owner, kinds: &[Kind], scopes: &[Scope]| Filter {
        owner,
        kinds: kinds.to_vec(),
        scopes: scopes.to_vec(),
        ..Filter::all_of_tenant()
    };
    let (ann, talk) = (Owner::of(Some("ann"), None), Owner::of(None, Some("talk")));
    let agent = Owner {
        agent: Some("coder".to_owned()),
        ..Owner::default()
    };
    let both = Owner::of(Some("ann"), Some("talk"));
    [
        of(Owner::default(), &[Kind::Fact, Kind::Decision], &[]),
        of(Owner::default(), &[], &[Scope::Semantic]),
        of(ann, &[Kind::Note], &[]),
        of(talk, &[], &[]),
        of(both, &[Kind::Note, Kind::Fact], &[]),
        of(agent.clone(), &[], &[]),
        of(agent, &[Kind::Decision], &[]),
        Filter {
            since: Some(at(1)),
            ..of(Owner::default(), &[], &[])
        },
    ]
}

/// A list that one index cannot answer alone, such as one of two kinds, is merged without a gap.
pub async fn lists_of_kinds_scopes_and_owners_come_in_order(s: Subject) {
    let g = grant(at(0));
    let kinds = [Kind::Note, Kind::Fact, Kind::Decision];
    let pick = |n: usize, names: &[&str]| names.get(n % 4).map(|name| (*name).to_owned());
    for n in 0..40 {
        let mut record = note(&format!("r{n}")).created(at(n as i64 * 7 % 4));
        record.kind = kinds[n % 3];
        record.owner.user = pick(n, &["ann", "bob"]);
        record.owner.session = pick(n / 2, &["talk", "walk", "talk"]);
        record.owner.agent = pick(n / 3, &["coder"]);
        s.put(&g, [record]).await;
    }
    for order in ORDERS {
        let all = Filter::all_of_tenant();
        let all = scan_all(&**s.store(), &g, &all, order, 50).await.unwrap();
        assert_eq!(all.len(), 40);
        for filter in narrow_filters() {
            let meant = all.iter().filter(|record| filter.matches(record));
            let meant: Vec<&str> = meant.map(|record| record.id.as_str()).collect();
            assert!(!meant.is_empty(), "{filter:?}");
            for size in [1, 3, 50] {
                let found = scan_all(&**s.store(), &g, &filter, order, size).await;
                let found = found.unwrap();
                assert_eq!(names(&found), meant, "{order:?}, {size}, {filter:?}");
            }
        }
    }
}

pub async fn what_follows_a_cursor_is_what_was_written_since(s: Subject) {
    let g = grant(at(0));
    s.put(&g, ["a", "b", "c"].map(note)).await;
    let first = page(&s, Order::Written, None, 10).await;
    let here = Cursor::after(first.records.last().unwrap(), Order::Written);
    let since = page(&s, Order::Written, Some(here), 10).await;
    assert!(since.records.is_empty() && since.next.is_none());
    s.put(&g, [note("b").saying("again"), note("d").created(at(-99))])
        .await;
    let since = page(&s, Order::Written, Some(here), 10).await;
    assert_eq!(names(&since.records), ["b", "d"]);
}

pub async fn pages_survive_writes_in_between(s: Subject) {
    let g = grant(at(0));
    s.put(&g, (0..6).map(|n| note(&format!("r{n}")).created(at(n))))
        .await;
    let first = page(&s, Order::Oldest, None, 2).await;
    assert_eq!(names(&first.records), ["r0", "r1"]);
    // The record that the cursor points behind goes away, and one comes before it.
    s.delete(&g, "r1").await;
    s.delete(&g, "r3").await;
    s.put(&g, [note("early").created(at(-1))]).await;
    let rest = page(&s, Order::Oldest, first.next, 10).await;
    assert_eq!(names(&rest.records), ["r2", "r4", "r5"]);
}

pub async fn a_page_is_bounded(s: Subject) {
    let g = grant(at(0));
    let more = limits().page.min(5);
    let count = limits().page + more;
    let ops = (0..count).map(|n| Op::put(note(&format!("r{n}"))));
    s.done(&g, ops.collect::<Vec<_>>()).await;
    for order in ORDERS {
        let first = page(&s, order, None, usize::MAX).await;
        assert_eq!(first.records.len(), limits().page);
        let second = page(&s, order, first.next, usize::MAX).await;
        assert_eq!((second.records.len(), second.next), (more, None));
        let none = page(&s, order, None, 0).await;
        assert_eq!(none, Page::default());
    }
}

pub async fn extreme_times_page_as_well(s: Subject) {
    let g = grant(at(0));
    let times = [
        "-009999-01-02T01:59:59.000Z",
        "-009999-01-02T01:59:59.001Z",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00.000Z",
        "9999-12-30T21:59:59.999Z",
        "9999-12-30T22:00:00.000Z",
    ];
    for (n, time) in times.iter().enumerate() {
        let time: Time = time.parse().unwrap();
        let record = Record::note(id(&format!("r{n}")), &ctx(at(0)), "x").created(time);
        s.put(&g, [record]).await;
    }
    let all = Filter::all_of_tenant();
    for (order, back) in [(Order::Oldest, false), (Order::Newest, true)] {
        let found = scan_all(&**s.store(), &g, &all, order, 1).await.unwrap();
        let mut printed: Vec<String> = found.iter().map(|r| r.created.to_string()).collect();
        if back {
            printed.reverse();
        }
        assert_eq!(printed, times);
    }
}
