//! The same life of notes on each store.

use mnemon_core::rank::Recipe;
use mnemon_core::{Namespace, Order, Owner, Scan, Viewer};
use mnemon_engine::notes::{NoteFilter, NoteQuery};

use super::*;

fn config_with_cap(url: &str, cap: u64) -> Config {
    let mut config = config(url);
    config.short_term.max_entries = Sourced {
        value: Some(cap),
        origin: mnemon_operations::config::Origin::Flag("--test"),
    };
    config
}

fn answered(n: u8) -> NewNote {
    NewNote {
        tags: vec![format!("t{n}")],
        importance: Some(f64::from(n) / 10.0),
        source: Some("test".into()),
        metadata: serde_json::json!({"n": n}).as_object().unwrap().clone(),
        ..NewNote::new(format!("the API answered {n} times"))
    }
}

/// What a life of notes comes to, in words that must be the same for every store.
fn live(url: &str, keeps: bool) -> Vec<String> {
    let config = config_with_cap(url, 6);
    let mut memory = open(&config);
    let mut told = Vec::new();
    let reopen = |memory: &mut Memory| {
        if keeps {
            *memory = open(&config);
        }
    };
    for n in 0..5 {
        told.push(add(&memory, &now(), answered(n)).message);
    }
    let long = NewNote {
        namespace: Some(Namespace::LongTerm),
        ..NewNote::new("long ".repeat(500))
    };
    let long = add(&memory, &now(), long);
    told.push(format!("{} {}", long.id, long.summary.len()));
    reopen(&mut memory);
    let notes = memory.notes();
    let text = wait(notes.text(&now(), &Viewer::Tenant, &long.id, 0, 1_000_000)).unwrap();
    told.push(serde_json::to_string(&text).unwrap());

    // Two more than there is room for: the two least important go.
    for n in 5..8 {
        let note = NewNote {
            importance: Some(0.9),
            ..NewNote::new(format!("the API was silent {n} times"))
        };
        told.push(format!("evicted {}", add(&memory, &now(), note).evicted));
    }
    reopen(&mut memory);
    for recipe in [Recipe::Formula, Recipe::Hybrid] {
        let query = NoteQuery {
            recipe: Some(recipe),
            limit: Some(10),
            ..NoteQuery::new("API times", NoteFilter::all_of_tenant())
        };
        let found = wait(memory.notes().search(&now(), &query)).unwrap();
        told.push(serde_json::to_string(&found).unwrap());
    }
    let known = add(&memory, &now(), NewNote::new("the API answered 4 times"));
    told.push(known.message);
    let gone = wait(memory.notes().delete(&now(), &Viewer::Tenant, &known.id)).unwrap();
    told.push(format!("{} deleted: {gone}", known.id));

    let later = after_days(15);
    reopen(&mut memory);
    let stats = || wait(memory.notes().stats(&later, &Viewer::Tenant)).unwrap();
    told.push(serde_json::to_string(&stats()).unwrap());
    let cleaned = wait(memory.notes().cleanup(&later)).unwrap();
    told.push(cleaned.message);
    told.push(serde_json::to_string(&stats()).unwrap());
    let all = NoteFilter::all_of_tenant();
    let page = wait(memory.notes().list(&later, &all, None, 20)).unwrap();
    told.push(format!("{} listed", page.notes.len()));
    let everybody = Owner::default();
    let cleared = wait(memory.notes().clear(&later, None, &everybody)).unwrap();
    told.push(format!(
        "{} cleared, {} left",
        cleared.cleared, cleared.remaining
    ));
    told
}

#[test]
fn notes_live_the_same_life_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let lives = urls(folder.path()).map(|url| live(&url, url != "ram:"));
    let [ram, jsonl, sqlite] = lives;
    assert_eq!(ram, jsonl);
    assert_eq!(ram, sqlite);
    assert!(ram.contains(&"evicted 1".to_owned()), "{ram:#?}");
    assert!(
        ram.contains(&"Cleaned up 5 expired entries.".to_owned()),
        "{ram:#?}"
    );
    assert!(ram.contains(&"1 cleared, 0 left".to_owned()), "{ram:#?}");
}

#[test]
fn what_was_noted_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    for url in urls(folder.path()).iter().filter(|url| *url != "ram:") {
        let config = config(url);
        let note = NewNote {
            tags: vec!["deploy".into()],
            ..NewNote::new("The staging API answers with 429 after noon")
        };
        let id = add(&open(&config), &now(), note).id;
        let found = search(&open(&config), &now(), "staging API");
        assert_eq!(found.results[0].id, id, "{url}");
        assert_eq!(found.results[0].tags, ["deploy"]);
    }
}

#[test]
fn the_log_is_compacted_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("jsonl:{}", folder.path().display());
    let memory = open(&config(&url));
    let lines = || {
        let log = std::fs::read_to_string(folder.path().join("memory.jsonl")).unwrap();
        log.lines().count()
    };
    let keep = add(&memory, &now(), NewNote::new("this one stays"));
    let mut most = 0;
    for round in 0..3 {
        for n in 0..300 {
            add(
                &memory,
                &now(),
                NewNote::new(format!("round {round} note {n}")),
            );
        }
        for id in short_notes(&memory) {
            if id != keep.id {
                wait(memory.notes().delete(&now(), &Viewer::Tenant, &id)).unwrap();
            }
        }
        most = most.max(lines());
    }
    // 900 were added and 900 deleted; without compaction there would be a line for each.
    assert!(lines() < 1500, "{} lines, at most {most}", lines());
    let again = open(&config(&url));
    assert_eq!(search(&again, &now(), "stays").results[0].id, keep.id);
}

fn short_notes(memory: &Memory) -> Vec<mnemon_core::Id> {
    let filter = mnemon_core::Filter {
        namespaces: vec![Namespace::ShortTerm],
        ..mnemon_core::Filter::all_of_tenant()
    };
    let scan = Scan {
        order: Order::Written,
        ..Scan::new(filter, 1000)
    };
    let page = wait(memory.records().list(&now(), &scan)).unwrap();
    page.records.into_iter().map(|record| record.id).collect()
}

#[test]
fn processes_share_a_store() {
    let folder = tempfile::tempdir().unwrap();
    for url in urls(folder.path()).iter().filter(|url| *url != "ram:") {
        let config = config(url);
        let (one, two) = (open(&config), open(&config));
        let id = add(&one, &now(), NewNote::new("said by one of them")).id;
        assert_eq!(search(&two, &now(), "said").results[0].id, id, "{url}");
        let again = add(&two, &now(), NewNote::new("said by one of them"));
        assert!(again.known && again.id == id, "{url}");
        let all = NoteFilter::all_of_tenant();
        let page = wait(one.notes().list(&now(), &all, None, 20)).unwrap();
        assert_eq!(page.notes.len(), 1, "{url}");
    }
}
