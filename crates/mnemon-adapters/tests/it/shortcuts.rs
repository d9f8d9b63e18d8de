//! What spares work must not change what comes of it: the writer remembers the ids that it has
//! seen, and short reads are done on the spot.

use futures::FutureExt;
use mnemon_core::{
    Answer, Backend, Batch, Expect, Fate, Filter, Id, Kind, Op, Probe, QueryTerm, Receipt, Record,
    Scan, Scope, Store, StoreError,
};
use mnemon_testkit::make::id;

use crate::kit::{ctx, everything, grant, on_disk, open, open_backend, wait};

fn record(name: &str) -> Record {
    Record::note(id(name), &ctx(), format!("the note {name}"))
}

fn put(store: &dyn Store, name: &str, expect: Expect) -> Result<Fate, StoreError> {
    let batch = Batch::of(Op::put_if(record(name), expect));
    Ok(wait(store.apply(&grant(), batch))?.items[0].fate.clone())
}

fn is_conflict<T>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict { .. }))
}

#[test]
fn a_writer_learns_what_another_wrote_between_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        let (one, two) = (open(&url), open(&url));
        let stored = |version| Fate::Stored { version };
        let updated = |version| Fate::Updated { version };
        assert_eq!(put(&*one, "m", Expect::Absent).unwrap(), stored(1), "{url}");
        // Both come after all that the first writer has seen, the second also in its order.
        assert_eq!(put(&*two, "z", Expect::Absent).unwrap(), stored(1), "{url}");
        assert_eq!(put(&*two, "p", Expect::Absent).unwrap(), stored(1), "{url}");
        assert!(is_conflict(put(&*one, "z", Expect::Absent)), "{url}");
        assert_eq!(put(&*one, "p", Expect::Anything).unwrap(), updated(2));
        assert_eq!(put(&*one, "zz", Expect::Absent).unwrap(), stored(1));
        wait(two.apply(&grant(), Batch::of(Op::delete(id("zz"))))).unwrap();
        // The number of a deleted version counts on.
        assert_eq!(put(&*one, "zz", Expect::Absent).unwrap(), stored(3));
        let purge = Op::Purge { id: id("zz") };
        wait(two.apply(&grant(), Batch::of(purge))).unwrap();
        assert_eq!(put(&*one, "zz", Expect::Absent).unwrap(), stored(1));
        assert_eq!(everything(&*two).len(), 4, "{url}");
    }
}

#[test]
fn a_batch_knows_what_it_wrote_itself() {
    let folder = tempfile::tempdir().unwrap();
    for url in on_disk(folder.path()) {
        let store = open(&url);
        let mut before = 0;
        for count in [2, 63, 64, 65, 300] {
            // Against the order of ids, so that only the first comes after all others.
            let names: Vec<String> = (0..count)
                .rev()
                .map(|n| format!("{count:03}-{n:03}"))
                .collect();
            let again = |expect: Expect| -> Result<Receipt, StoreError> {
                let mut ops: Vec<Op> = names.iter().map(|n| Op::append(record(n))).collect();
                ops.extend(names.iter().map(|name| Op::put_if(record(name), expect)));
                wait(store.apply(&grant(), Batch::from(ops)))
            };
            assert!(is_conflict(again(Expect::Absent)), "{url}: {count}");
            assert_eq!(everything(&*store).len(), before, "{url}: {count}");
            let receipt = again(Expect::Version(1)).unwrap();
            let fates = receipt.items.iter().map(|item| item.fate.clone());
            let updated = fates.filter(|fate| *fate == Fate::Updated { version: 2 });
            assert_eq!(updated.count(), count, "{url}");
            before += count;
            assert_eq!(everything(&*store).len(), before, "{url}: {count}");
        }
    }
}

#[test]
fn writers_at_once_get_an_id_once() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    for url in on_disk(folder.path()) {
        let store = open(&url);
        for round in 0..20 {
            let tasks: Vec<_> = (0..16)
                .map(|writer| {
                    let store = std::sync::Arc::clone(&store);
                    let record = record(&format!("{round:02}-{}", writer % 4));
                    let batch = Batch::of(Op::append(record));
                    runtime.spawn(async move { store.apply(&grant(), batch).await })
                })
                .collect();
            let answers = tasks.into_iter().map(|task| wait(task).unwrap());
            let (stored, refused): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
            assert_eq!((stored.len(), refused.len()), (4, 12), "{url}");
            assert!(refused.into_iter().all(is_conflict), "{url}");
        }
        assert_eq!(everything(&*store).len(), 80, "{url}");
    }
}

fn seen(answer: Answer) -> Vec<(Id, u64, bool)> {
    let mut found = answer.matches;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let found = found.into_iter();
    found
        .map(|c| (c.id, c.features.unwrap().seq, c.words.is_some()))
        .collect()
}

#[test]
fn few_and_many_are_found_alike() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let ram = open_backend("ram:");
    let sqlite = open_backend(&on_disk(folder.path())[0]);
    let write = |from: usize, to: usize| {
        let records = (from..to).map(|n| {
            let mut record = record(&format!("{n:04}"));
            if n % 100 == 0 {
                record.scope = Scope::Procedural;
                record.kind = Kind::Skill;
                record.tags = vec!["task:shop".to_owned()];
            }
            Op::append(record)
        });
        let batch = Batch::from(records.collect::<Vec<Op>>());
        for backend in [&ram, &sqlite] {
            wait(backend.store.apply(&grant(), batch.clone())).unwrap();
        }
    };
    let terms = QueryTerm::words_of("a note 0300");
    let few = Filter {
        scopes: vec![Scope::Procedural],
        ..Filter::all_of_tenant()
    };
    let none = Filter {
        tags: vec!["task:swim".to_owned()],
        ..few.clone()
    };
    let check = || {
        for (filter, terms) in [
            (&few, &terms),
            (&none, &terms),
            (&Filter::all_of_tenant(), &terms),
            (&few, &Vec::new()),
        ] {
            let mut probe = Probe {
                filter: filter.clone(),
                terms: terms.clone(),
                depth: 3000,
                ..Probe::new(Filter::all_of_tenant(), 0)
            };
            let expected = wait(ram.index.find(&grant(), &probe)).unwrap();
            // Each twice: the first time the index may have to be loaded, elsewhere.
            for may_run_inline in [false, false, true, true] {
                probe.may_run_inline = may_run_inline;
                let found = runtime.block_on(sqlite.index.find(&grant(), &probe));
                assert_eq!(seen(found.unwrap()), seen(expected.clone()), "{filter:?}");
            }
            for limit in [1, 16, 17, 500] {
                let ids = expected.matches.iter().map(|found| found.id.clone());
                let ids: Vec<Id> = ids.take(limit).collect();
                let got = runtime.block_on(sqlite.store.get(&grant(), &ids)).unwrap();
                let got: Vec<Id> = got.into_iter().map(|found| found.unwrap().id).collect();
                assert_eq!(got, ids);
            }
            let scan = Scan::new(filter.clone(), 50);
            let page = runtime.block_on(sqlite.store.scan(&grant(), &scan));
            let expected = wait(ram.store.scan(&grant(), &scan)).unwrap();
            assert_eq!(page.unwrap(), expected, "{filter:?}");
        }
    };
    write(0, 900);
    check();
    // More than are searched on the spot; and the index is behind the file.
    write(900, 2500);
    check();
}

/// A probe that may run inline is answered before anything is waited for; others are answered by
/// another thread.
#[test]
fn a_probe_that_may_run_inline_is_answered_on_the_callers_thread() {
    let folder = tempfile::tempdir().unwrap();
    let Backend { store, index } = open_backend(&on_disk(folder.path())[0]);
    let records = (0..2000).map(|n| Op::append(record(&format!("{n:04}"))));
    let batch = Batch::from(records.collect::<Vec<Op>>());
    wait(store.apply(&grant(), batch)).unwrap();
    let terms = QueryTerm::words_of("a note 0300");
    let probe = |may_run_inline: bool, copies: usize| Probe {
        terms: terms
            .iter()
            .cycle()
            .take(terms.len() * copies)
            .cloned()
            .collect(),
        depth: 10,
        may_run_inline,
        ..Probe::new(Filter::all_of_tenant(), 0)
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // The index is there from now on.
    let expected = runtime.block_on(index.find(&grant(), &probe(true, 1)));
    let expected = seen(expected.unwrap());
    let _runtime = runtime.enter();
    // How often the answer was there without a wait.
    let at_once = |probe: Probe| {
        let ask = || index.find(&grant(), &probe).now_or_never();
        let answers = (0..50).filter_map(|_| ask());
        answers.filter(|found| found.is_ok()).count()
    };
    let found = index.find(&grant(), &probe(true, 1)).now_or_never();
    assert_eq!(seen(found.unwrap().unwrap()), expected);
    assert_eq!(at_once(probe(true, 1)), 50);
    // Another thread may be that quick, but not every time.
    assert!(at_once(probe(false, 1)) < 50);
    // Nor does a question of many words hold up whoever asks it.
    assert!(at_once(probe(true, 20)) < 50);
    let found = runtime.block_on(index.find(&grant(), &probe(false, 1)));
    assert_eq!(seen(found.unwrap()), expected);
}

#[test]
fn what_the_counts_deny_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&on_disk(folder.path())[0]);
    let of = |kind: Kind| {
        let filter = Filter {
            kinds: vec![kind],
            ..Filter::all_of_tenant()
        };
        let scan = Scan::new(filter, 10);
        wait(store.scan(&grant(), &scan)).unwrap().records.len()
    };
    assert_eq!((of(Kind::Note), of(Kind::Fact)), (0, 0));
    put(&*store, "a", Expect::Absent).unwrap();
    assert_eq!((of(Kind::Note), of(Kind::Fact)), (1, 0));
    wait(store.apply(&grant(), Batch::of(Op::delete(id("a"))))).unwrap();
    assert_eq!((of(Kind::Note), of(Kind::Fact)), (0, 0));
}
