//! What was put in comes out.

use std::collections::HashSet;

use mnemon_core::{
    Audience, Changes, Filter, Group, Kind, Namespace, Op, Origin, Owner, Probe, Record, Scope,
    Tally, Viewer,
};
use serde_json::json;

use super::Subject;
use crate::make::{Remade, at, fact, full, grant, ids, limits, note};
use crate::observe::{changes_all, scan_all};

pub async fn an_empty_store_answers(s: Subject) {
    let seen = s.seen(&grant(at(0))).await;
    assert!(seen.written.is_empty() && seen.newest.is_empty() && seen.oldest.is_empty());
    assert!(seen.changes.is_empty());
    assert_eq!(seen.tally, Tally::default());
    assert_eq!(s.get(&grant(at(0)), "a").await, None);
    let upkept = s.upkeep(&grant(at(0)), 10).await;
    assert_eq!((upkept.expired, upkept.history, upkept.receipts), (0, 0, 0));
    assert!(!upkept.more);
}

/// Puts the record and compares every byte of the canonical form of what comes back.
async fn comes_back(s: &Subject, record: Record) {
    let g = grant(at(0));
    let name = record.id.to_string();
    let receipt = s.done(&g, vec![Op::put(record.clone())]).await;
    let expected = Record {
        seq: receipt.commit.unwrap(),
        version: 1,
        ..record
    };
    let canonical = |record: &Record| serde_json::to_string(record).unwrap();
    let found = s.get(&g, &name).await.unwrap();
    assert_eq!(canonical(&found), canonical(&expected));
    assert_eq!(found, expected);
    let scanned = s.seen(&g).await.written;
    assert_eq!(scanned.last(), Some(&expected));
}

pub async fn a_full_record_comes_back_the_same(s: Subject) {
    comes_back(&s, full("full")).await;
    comes_back(&s, note("small")).await;
    let only_body = Record {
        body: Some(json!([])),
        ..note("body").saying("")
    };
    comes_back(&s, only_body).await;
}

pub async fn every_kind_scope_and_origin_comes_back(s: Subject) {
    for (n, kind) in Kind::ALL.iter().enumerate() {
        let record = Record {
            kind: *kind,
            scope: Scope::ALL[n % Scope::ALL.len()],
            origin: Origin::ALL[n % Origin::ALL.len()],
            namespace: Namespace::ALL[n % Namespace::ALL.len()],
            ..note(kind.as_str())
        };
        comes_back(&s, record).await;
    }
}

pub async fn unicode_comes_back(s: Subject) {
    let texts = [
        "Nguyễn thích trà sữa 🧋 và cà phê",
        "日本語の記憶、한국어 기억, 中文记忆",
        "e\u{301} is not é; \u{202e}right to left\u{202c}; \u{feff}BOM; \u{fffd}",
        "quotes \" ' ` back\\slash \r\n tab\t \u{1} \u{7f} \u{2028}",
        "{\"op\":\"delete\"}\n-- '; DROP TABLE records; %s $1 ?1",
    ];
    for (n, text) in texts.iter().enumerate() {
        let record = Record {
            summary: Some((*text).to_owned()),
            body: Some(json!({*text: [text]})),
            tags: vec!["🧋".into(), "sở thích".into(), "a,b \"c\"".into()],
            source: Some("tệp: 'ghi chú'.md".into()),
            owner: Owner {
                user: Some("Nguyễn Văn An".into()),
                ..Owner::default()
            },
            metadata: json!({"ключ": text}).as_object().unwrap().clone(),
            ..note(&format!("u{n}")).saying(text)
        };
        comes_back(&s, record).await;
    }
    for name in [
        "a/b",
        "../up",
        "a'b\"c;--",
        "%41?x=1#y",
        "A",
        "a",
        "~",
        "C:\\x",
    ] {
        comes_back(&s, note(name)).await;
    }
}

pub async fn numbers_come_back_exactly(s: Subject) {
    let body = json!({
        "floats": [0.1 + 0.2, 1.0 / 3.0, 5e-324, f64::MAX, 1e-7, 0.938_291_837_465_1e-5, 1.0],
        "whole": [u64::MAX, i64::MIN, 0, 9_007_199_254_740_993_u64],
    });
    for (n, importance) in [0.0, 0.1 + 0.2, 1.0 / 3.0, 5e-324, 1.0].iter().enumerate() {
        let record = Record {
            body: Some(body.clone()),
            ..note(&format!("n{n}")).worth(*importance)
        };
        comes_back(&s, record).await;
    }
}

pub async fn get_keeps_the_order_asked(s: Subject) {
    let g = grant(at(0));
    s.put(&g, ["a", "b", "c"].map(note)).await;
    let asked = ids(&["c", "missing", "a", "c", "b"]);
    let mut found = Vec::new();
    for asked in asked.chunks(limits().page) {
        found.extend(s.store().get(&g, asked).await.unwrap());
    }
    let names: Vec<Option<&str>> = found
        .iter()
        .map(|record| record.as_ref().map(|record| record.id.as_str()))
        .collect();
    assert_eq!(names, [Some("c"), None, Some("a"), Some("c"), Some("b")]);
    assert!(s.store().get(&g, &[]).await.unwrap().is_empty());
}

pub async fn ids_are_found_by_their_beginning(s: Subject) {
    let g = grant(at(0));
    s.put(&g, ["ab", "abc", "abd", "b", "ab~", "aB"].map(note))
        .await;
    let found = async |prefix: &str, limit: usize| -> Vec<String> {
        let ids = s.store().ids_with_prefix(&g, prefix, limit).await.unwrap();
        ids.iter().map(ToString::to_string).collect()
    };
    assert_eq!(found("ab", 10).await, ["ab", "abc", "abd", "ab~"]);
    assert_eq!(found("ab", 2).await, ["ab", "abc"]);
    assert_eq!(found("abc", 10).await, ["abc"]);
    assert!(found("abx", 10).await.is_empty() && found("%", 10).await.is_empty());
}

fn owned(name: &str, owner: Owner) -> Record {
    Record {
        owner,
        ..note(name)
    }
}

fn user_and_session(user: &str, session: &str) -> Owner {
    Owner {
        user: Some(user.into()),
        session: Some(session.into()),
        ..Owner::default()
    }
}

async fn put_samples(s: &Subject) {
    let samples = [
        owned("ann", user_and_session("ann", "s1")),
        owned("bob", user_and_session("bob", "s1")),
        owned("flow", full("x").owner),
        Record {
            scope: Scope::Profile,
            ..note("profile")
        },
        fact("fact"),
        note("short").short_term(),
        Record {
            tags: vec!["Trà".into(), "x".into()],
            ..note("tea")
        },
        Record {
            tags: vec!["tràm".into()],
            ..note("tree")
        },
        Record {
            source: Some("web".into()),
            ..note("web")
        },
        note("early").created(at(-10)),
        note("late").created(at(10)),
    ];
    s.put(&grant(at(0)), samples).await;
}

fn owner_filters() -> Vec<(Filter, Vec<&'static str>)> {
    let by = |owner| Filter {
        owner,
        ..Filter::all_of_tenant()
    };
    let user = |name: &str| Owner {
        user: Some(name.into()),
        ..Owner::default()
    };
    let node = Owner {
        node: Some("plan".into()),
        flow: Some("buyer".into()),
        ..Owner::default()
    };
    let agent = Owner {
        agent: Some("planner".into()),
        ..Owner::default()
    };
    vec![
        (by(user("ann")), vec!["ann", "flow"]),
        (
            Filter {
                viewer: Viewer::user("bob"),
                kinds: vec![Kind::Note],
                until: Some(at(0)),
                ..Filter::all_of_tenant()
            },
            vec!["early"],
        ),
        (
            Filter {
                viewer: Viewer::user("bob"),
                ..by(user_and_session("bob", "s1"))
            },
            vec!["bob"],
        ),
        (
            Filter {
                viewer: Viewer::user("bob"),
                ..by(user("ann"))
            },
            vec![],
        ),
        (by(user_and_session("bob", "s1")), vec!["bob"]),
        (by(user("Ann")), vec![]),
        (by(node), vec!["flow"]),
        (by(agent), vec!["flow"]),
    ]
}

fn other_filters() -> Vec<(Filter, Vec<&'static str>)> {
    let none = Filter::all_of_tenant;
    let tags = |tags: &[&str]| Filter {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..none()
    };
    let scopes = vec![Scope::Profile, Scope::Dialog];
    let kinds = vec![Kind::Fact, Kind::Skill];
    let namespaces = vec![Namespace::ShortTerm];
    let source = Some("web".to_owned());
    vec![
        (Filter { scopes, ..none() }, vec!["profile"]),
        (Filter { kinds, ..none() }, vec!["fact"]),
        (
            Filter {
                namespaces,
                ..none()
            },
            vec!["short"],
        ),
        (tags(&["TRÀ"]), vec!["tea"]),
        (tags(&["nothing", "tràm", "x"]), vec!["tea", "tree"]),
        (tags(&["tr"]), vec![]),
        (Filter { source, ..none() }, vec!["web"]),
        (
            Filter {
                since: Some(at(10)),
                ..none()
            },
            vec!["late"],
        ),
        (
            Filter {
                until: Some(at(0)),
                ..none()
            },
            vec!["early"],
        ),
        (
            Filter {
                since: Some(at(-10)),
                until: Some(at(-9)),
                kinds: vec![Kind::Note],
                ..none()
            },
            vec!["early"],
        ),
        (
            Filter {
                kinds: vec![Kind::Fact],
                namespaces: vec![Namespace::ShortTerm],
                ..none()
            },
            vec![],
        ),
    ]
}

pub async fn each_filter_condition_holds(s: Subject) {
    put_samples(&s).await;
    let g = grant(at(0));
    let cases = owner_filters().into_iter().chain(other_filters());
    for (filter, expected) in cases {
        assert_eq!(s.scan(&g, &filter).await, expected, "{filter:?}");
        for order in [mnemon_core::Order::Newest, mnemon_core::Order::Oldest] {
            let found = scan_all(&**s.store(), &g, &filter, order, 1).await.unwrap();
            assert_eq!(found.len(), expected.len(), "{order:?} {filter:?}");
        }
    }
    assert_eq!(s.names(&g).await.len(), 11);
}

/// Names of records by whom they are for; `mine` is for its user because it says nothing.
const AUDIENCES: [(&str, Option<&str>); 6] = [
    ("mine", None),
    ("anns", Some("user:ann")),
    ("bobs", Some("user:bob")),
    ("agents", Some("agent:planner")),
    ("teams", Some("team:ops")),
    ("shared", Some("everyone")),
];

pub async fn a_viewer_sees_what_is_for_them(s: Subject) {
    let g = grant(at(0));
    for version in [1, 2] {
        let records = AUDIENCES.map(|(name, audience)| Record {
            audience: audience.map(|text| text.parse().unwrap()),
            content: format!("tea, version {version}"),
            ..owned(name, user_and_session("ann", "s1"))
        });
        s.put(&g, records).await;
    }
    // Bob never sees what a record was before it was given to him.
    s.put(&g, [owned("given", user_and_session("ann", "s2"))])
        .await;
    s.put(&g, [owned("given", user_and_session("bob", "s2"))])
        .await;
    let planner = Viewer::person(Some("ann".into()), Some("planner".into()));
    let ops = Viewer::Person {
        user: None,
        agent: None,
        teams: vec!["ops".into()],
    };
    for (viewer, seen) in [
        (Viewer::ANYONE, vec!["shared"]),
        (Viewer::user("ann"), vec!["mine", "anns", "shared"]),
        (Viewer::user("bob"), vec!["bobs", "shared", "given"]),
        (planner, vec!["mine", "anns", "agents", "shared"]),
        (ops, vec!["teams", "shared"]),
    ] {
        let filter = Filter::seen_by(viewer.clone());
        assert_eq!(s.scan(&g, &filter).await, seen, "{viewer:?}");
        let store = &**s.store();
        let probe = Probe::new(filter, 100);
        let found = s.index().find(&g, &probe).await.unwrap().matches;
        let found: HashSet<String> = found.iter().map(|one| one.id.to_string()).collect();
        assert_eq!(found, seen.iter().map(ToString::to_string).collect());
        let changes = Changes::seen_by(viewer.clone(), 0);
        let changes = changes_all(store, &g, &changes, 2).await.unwrap();
        assert!(changes.iter().all(|change| {
            let mut versions = change.before.iter().chain(&change.after);
            versions.all(|record| viewer.sees(&record.audience()))
        }));
        let twice = seen.iter().filter(|name| **name != "given").count() * 2;
        let own = usize::from(viewer.sees(&Audience::User("ann".into())));
        assert_eq!(changes.len(), twice + own, "{viewer:?}");
    }
}

pub async fn tally_equals_a_recount(s: Subject) {
    put_samples(&s).await;
    let g = grant(at(0));
    s.put(&g, [note("tea").short_term(), fact("web")]).await;
    s.delete(&g, "ann").await;
    let tally = s.tally(&g).await;
    let mut groups: Vec<Group> = Vec::new();
    for record in s.seen(&g).await.written {
        let (scope, kind, namespace) = (record.scope, record.kind, record.namespace);
        let same = |g: &&mut Group| (g.scope, g.kind, g.namespace) == (scope, kind, namespace);
        match groups.iter_mut().find(same) {
            Some(group) => group.count += 1,
            None => groups.push(Group {
                scope,
                kind,
                namespace,
                count: 1,
            }),
        }
    }
    groups.sort();
    assert_eq!(tally.groups, groups);
    assert_eq!(tally.records(), 10);
    assert_eq!(
        tally.history, 4,
        "two old versions, one deleted, its deletion"
    );
    assert_eq!(tally.seq, 14);
    assert_eq!(tally.expired, 0);
}
