//! What is gone is not found: in no store, through no handle, from no process.
//!
//! A search here is what the engine does: find, then fetch what was found.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mnemon_adapters::{Saving, Sqlite};
use mnemon_core::embed::Embedder;
use mnemon_core::{
    Backend, Batch, Embedding, Features, Grant, Id, Match, Op, Probe, QueryTerm, Record,
    SearchIndex, Store, Time, limits,
};
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::make::{Remade, at, grant, grant_on, id, note};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::kit::{child, childs_work, open, open_backend, rounds, wait};

pub(crate) const WORDS: [&str; 6] = ["tea", "coffee", "quyết", "quyet", "東京", "parseJSON"];
const IDS: usize = 5;
/// Scores of two stores may differ by the last bits of a sum.
const NEAR: f32 = 1e-5;

#[derive(Debug, Clone)]
enum Step {
    Put {
        id: usize,
        words: Vec<usize>,
        session: Option<bool>,
        lives: Option<i64>,
        theirs: bool,
    },
    Delete(usize),
    Purge(usize),
    /// Time passes; what was to expire expires.
    Pass(i64),
    Upkeep,
    /// One of the handles searches, so that its index is as old as this.
    Look(usize),
    /// A new handle searches, with the index that another has saved, if it has.
    LookAfresh,
}

fn step() -> impl Strategy<Value = Step> {
    let put = (
        0..IDS,
        vec(0..WORDS.len(), 1..5),
        option::of(any::<bool>()),
        option::weighted(0.3, 1..50_i64),
        prop::bool::weighted(0.2),
    );
    prop_oneof![
        6 => put.prop_map(|(id, words, session, lives, theirs)| Step::Put {
            id, words, session, lives, theirs
        }),
        2 => (0..IDS).prop_map(Step::Delete),
        2 => (0..IDS).prop_map(Step::Purge),
        1 => (1..30_i64).prop_map(Step::Pass),
        1 => Just(Step::Upkeep),
        2 => (0..5_usize).prop_map(Step::Look),
        1 => Just(Step::LookAfresh),
    ]
}

fn name(number: usize) -> Id {
    id(&format!("n{number}"))
}

fn place(text: &str) -> Option<Embedding> {
    let embedder = HashEmbedder::new(16);
    let vector = wait(embedder.embed(&[text])).unwrap().remove(0)?;
    Some(Embedding {
        model: embedder.model().clone(),
        vector,
    })
}

pub(crate) fn probe(query: &str) -> Probe {
    Probe {
        terms: QueryTerm::words_of(query),
        vectors: place(query).into_iter().collect(),
        depth: limits::PAGE,
        ..Probe::new(mnemon_core::Filter::all_of_tenant(), 0)
    }
}

fn features(found: &Match) -> &Features {
    found.features.as_ref().unwrap()
}

/// What the engine would show, and what the store had to say about it.
fn search(backend: &Backend, grant: &Grant, query: &str) -> Vec<(Match, Record)> {
    let store = &backend.store;
    if !store.capabilities().keeps_vectors {
        let model = HashEmbedder::new(16).model().clone();
        let lacking = wait(store.lacking(grant, &model, 0, limits::PAGE)).unwrap();
        let made = lacking.iter().map(|r| (r.seq, place(&r.content)));
        let made = made.filter_map(|(seq, made)| Some((seq, made?)));
        wait(store.embed(grant, made.collect())).unwrap();
    }
    shown_by(backend, grant, &probe(query))
}

/// What is found, as it is in the store.
pub(crate) fn shown_by(
    Backend { store, index }: &Backend,
    grant: &Grant,
    probe: &Probe,
) -> Vec<(Match, Record)> {
    let found = wait(index.find(grant, probe)).unwrap().matches;
    let records = found.iter().map(|found| {
        let records = wait(store.get(grant, std::slice::from_ref(&found.id)));
        records.unwrap().remove(0)
    });
    let records: Vec<Option<Record>> = records.collect();
    let shown = found.into_iter().zip(records);
    shown
        .filter_map(|(candidate, record)| Some((candidate, record?)))
        .collect()
}

/// A handle that saves its index whenever it has changed.
fn saves_always(file: &Path) -> Backend {
    let saving = Saving {
        changes: 1,
        pause: Duration::ZERO,
    };
    Arc::new(Sqlite::open_with(file, saving).unwrap()).into()
}

/// The same store several times: some handles were opened before anything was written and are
/// told of nothing.
struct Handles {
    all: Vec<(&'static str, Backend)>,
    file: PathBuf,
    /// Through these it is written, one for each store.
    writers: [usize; 3],
}

impl Handles {
    fn new(folder: &Path) -> Self {
        let sqlite = format!("sqlite:{}", folder.join("m.db").display());
        let jsonl = format!("jsonl:{}", folder.join("log").display());
        Self {
            all: vec![
                ("ram", open_backend("ram:")),
                ("jsonl", open_backend(&jsonl)),
                ("sqlite", open_backend(&sqlite)),
                ("another jsonl", open_backend(&jsonl)),
                ("another sqlite", saves_always(&folder.join("m.db"))),
            ],
            file: folder.join("m.db"),
            writers: [0, 1, 2],
        }
    }

    fn apply(&self, grant: &Grant, op: &Op) {
        for writer in self.writers {
            let mut batch = Batch::of(op.clone());
            if let Op::Put { record, .. } = op {
                let made = place(&record.content);
                batch.vectors = made
                    .map(|made| (record.id.clone(), made))
                    .into_iter()
                    .collect();
            }
            let (name, Backend { store, .. }) = &self.all[writer];
            if let Err(error) = wait(store.apply(grant, batch)) {
                panic!("{name}: {error}");
            }
        }
    }
}

/// What is there, told without a store.
#[derive(Default)]
struct Truth {
    /// What each of our records says, and until when.
    ours: BTreeMap<Id, (String, Option<Time>)>,
    now: i64,
}

impl Truth {
    fn run(&mut self, handles: &Handles, step: &Step) {
        let ours = grant(at(self.now));
        match step {
            Step::Put {
                id,
                words,
                session,
                lives,
                theirs,
            } => {
                let said: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
                let mut record = note(name(*id).as_str()).saying(&said.join(" "));
                record.owner.session = session.map(|one| format!("s{one}"));
                record.expires = lives.map(|lives| at(self.now + lives));
                if *theirs {
                    let record = Record {
                        expires: None,
                        ..record.on("other")
                    };
                    return handles.apply(&grant_on("other"), &Op::put(record));
                }
                let known = (record.content.clone(), record.expires);
                self.ours.insert(record.id.clone(), known);
                handles.apply(&ours, &Op::put(record));
            }
            Step::Delete(id) => {
                self.ours.remove(&name(*id));
                handles.apply(&ours, &Op::delete(name(*id)));
            }
            Step::Purge(id) => {
                self.ours.remove(&name(*id));
                handles.apply(&ours, &Op::Purge { id: name(*id) });
            }
            Step::Pass(ms) => self.now += ms,
            Step::Upkeep => {
                for writer in handles.writers {
                    let store = &handles.all[writer].1.store;
                    wait(store.upkeep(&ours, 1000)).unwrap();
                }
            }
            Step::Look(handle) => {
                search(&handles.all[*handle].1, &ours, WORDS[0]);
            }
            Step::LookAfresh => {
                let afresh = saves_always(&handles.file);
                let shown = search(&afresh, &ours, WORDS[0]);
                self.check("afresh", WORDS[0], &shown);
            }
        }
    }

    /// Exactly what is there is shown.
    fn check(&self, name: &str, query: &str, shown: &[(Match, Record)]) {
        for (candidate, record) in shown {
            let known = self.ours.get(&record.id);
            let known = known.filter(|(_, until)| until.is_none_or(|until| until >= at(self.now)));
            let Some((content, _)) = known else {
                panic!("{name}, {query}: {record:?} is gone");
            };
            assert_eq!(
                (&record.content, features(candidate).seq),
                (content, record.seq),
                "{name}"
            );
            assert_eq!(record.tenant.as_str(), "default", "{name}");
        }
        for (id, (content, until)) in &self.ours {
            let there = until.is_none_or(|until| until >= at(self.now));
            let says = content.split(' ').any(|word| word == query);
            let is_shown = shown.iter().any(|(candidate, _)| candidate.id == *id);
            assert!(
                !there || !says || is_shown,
                "{name}, {query}: {id} is missing"
            );
        }
    }
}

pub(crate) fn assert_alike(one: &[(Match, Record)], other: &[(Match, Record)], what: &str) {
    let ids = |shown: &[(Match, Record)]| -> Vec<(Id, u64)> {
        let mut ids: Vec<_> = shown
            .iter()
            .map(|(c, _)| (c.id.clone(), features(c).seq))
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(one), ids(other), "{what}");
    for (a, _) in one {
        let (b, _) = other.iter().find(|(b, _)| a.id == b.id).unwrap();
        let scores = [
            (a.words.unwrap_or(0.0), b.words.unwrap_or(0.0)),
            (a.meaning.unwrap(), b.meaning.unwrap()),
            (features(a).cosine, features(b).cosine),
            (features(a).coverage, features(b).coverage),
        ];
        let near = scores.iter().all(|(x, y)| (x - y).abs() <= NEAR);
        let rest = |one: &Match| Features {
            cosine: 0.0,
            coverage: 0.0,
            ..features(one).clone()
        };
        assert!(near && rest(a) == rest(b), "{what}\n{a:?}\n{b:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(200, 20)))]

    #[test]
    fn what_is_gone_is_never_found(steps in vec(step(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let handles = Handles::new(folder.path());
        let mut truth = Truth::default();
        for step in &steps {
            truth.run(&handles, step);
            let removes = matches!(step, Step::Delete(_) | Step::Purge(_) | Step::Pass(_));
            if removes {
                // The one that was told nothing comes first.
                for (name, store) in handles.all.iter().rev() {
                    let shown = search(store, &grant(at(truth.now)), WORDS[0]);
                    truth.check(name, WORDS[0], &shown);
                }
            }
        }
        let reopened = saves_always(&handles.file);
        for query in WORDS {
            let of = |store: &Backend| search(store, &grant(at(truth.now)), query);
            let first = of(&handles.all[0].1);
            truth.check("ram", query, &first);
            for (name, store) in &handles.all {
                let shown = of(store);
                truth.check(name, query, &shown);
                assert_alike(&first, &shown, &format!("{name}, {query}"));
            }
            assert_alike(&first, &of(&reopened), &format!("reopened, {query}"));
        }
    }
}

fn put(Backend { store, .. }: &Backend, id: &str, content: &str) {
    let mut batch = Batch::of(Op::put(note(id).saying(content)));
    let made = place(content);
    batch.vectors = made.map(|made| (named(id), made)).into_iter().collect();
    wait(store.apply(&grant(at(0)), batch)).unwrap();
}

fn named(name: &str) -> Id {
    id(name)
}

fn shown(store: &Backend, query: &str) -> Vec<String> {
    let shown = search(store, &grant(at(0)), query);
    let mut ids: Vec<String> = shown.iter().map(|(_, r)| r.id.to_string()).collect();
    ids.sort();
    ids
}

#[test]
fn a_saved_index_is_used_and_a_damaged_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.db");
    let store = saves_always(&file);
    put(&store, "a", "tea in the garden");
    put(&store, "b", "coffee in the garden");
    assert_eq!(shown(&store, "tea"), ["a"]);
    // What was written later is read from the rows.
    put(&store, "c", "tea at home");
    // The words of the rows that it knows are not read: they are none now.
    let raw = rusqlite::Connection::open(&file).unwrap();
    let replace = |terms: &str| {
        let older = "key < (SELECT max(key) FROM search)";
        let sql = format!("UPDATE search SET terms = x'{terms}' WHERE {older}");
        assert_eq!(raw.execute(&sql, []).unwrap(), 2);
    };
    replace("0000000000");
    assert_eq!(shown(&saves_always(&file), "tea"), ["a", "c"]);

    let saved = folder.path().join("m.db-index.1");
    let mut bytes = std::fs::read(&saved).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&saved, bytes).unwrap();
    // The rows are read instead, and they have no words.
    let found = wait(saves_always(&file).index.find(&grant(at(0)), &probe("tea"))).unwrap();
    let mut found = found.matches.into_iter();
    let first = found.find(|found| found.id.as_str() == "a");
    assert_eq!(first.and_then(|found| found.words), None);
    // Words that cannot be read, such as those of a process of an older version, are analysed again.
    replace("0102");
    std::fs::remove_file(&saved).unwrap();
    assert_eq!(shown(&saves_always(&file), "tea"), ["a", "c"]);
}

#[test]
fn a_backup_that_is_restored_does_not_believe_the_index_of_later() {
    let folder = tempfile::tempdir().unwrap();
    let (file, backup) = (folder.path().join("m.db"), folder.path().join("backup.db"));
    let store = saves_always(&file);
    put(&store, "a", "tea");
    assert_eq!(shown(&store, "tea"), ["a"]);
    drop(store);
    std::fs::copy(&file, &backup).unwrap();
    let store = saves_always(&file);
    put(&store, "b", "tea");
    assert_eq!(shown(&store, "tea"), ["a", "b"]);
    drop(store);
    // Back in time, and on to another future with as many changes.
    std::fs::copy(&backup, &file).unwrap();
    let store = saves_always(&file);
    put(&store, "other", "coffee");
    assert!(shown(&store, "tea").contains(&"a".to_owned()));
    assert!(shown(&store, "coffee").contains(&"other".to_owned()));
    let found = wait(store.index.find(&grant(at(0)), &probe("tea")))
        .unwrap()
        .matches;
    assert!(found.iter().all(|candidate| candidate.id != named("b")));
}

/// A child's work: answers questions (`WORD MILLISECOND`) until there are no more.
#[test]
fn asker() {
    let Some((url, _)) = childs_work() else {
        return;
    };
    let store = open_backend(&url);
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (word, now) = line.split_once(' ').unwrap();
        let shown = search(&store, &grant(at(now.parse().unwrap())), word);
        let mut ids: Vec<&str> = shown.iter().map(|(_, record)| record.id.as_str()).collect();
        ids.sort_unstable();
        println!("\nFOUND {}", ids.join(" "));
    }
}

struct Asker {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Asker {
    fn on(url: &str) -> Self {
        let mut command = child("search::asker", url, "ask");
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self {
            questions: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn ask(&mut self, word: &str, now: i64) -> String {
        writeln!(self.questions, "{word} {now}").unwrap();
        let lines = self.answers.by_ref().lines().map(Result::unwrap);
        let mut found = lines.filter_map(|line| line.strip_prefix("FOUND ").map(str::to_owned));
        found.next().expect("the child ended early")
    }

    fn end(mut self) {
        drop(self.questions);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn another_process_does_not_find_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    for url in crate::kit::on_disk(folder.path()) {
        let store = open(&url);
        let put = |record: Record| wait(store.apply(&grant(at(0)), Batch::of(Op::put(record))));
        let tea = |name: &str| note(name).saying("green tea");
        for name in ["deleted", "purged", "replaced", "stays"] {
            put(tea(name)).unwrap();
        }
        put(tea("brief").until(at(10))).unwrap();
        let foreign = Batch::of(Op::put(tea("foreign").on("other")));
        wait(store.apply(&grant_on("other"), foreign)).unwrap();

        let mut asker = Asker::on(&url);
        assert_eq!(asker.ask("tea", 0), "brief deleted purged replaced stays");
        let g = grant(at(0));
        wait(store.apply(&g, Batch::of(Op::delete(id("deleted"))))).unwrap();
        assert_eq!(asker.ask("tea", 0), "brief purged replaced stays", "{url}");
        wait(store.apply(&g, Batch::of(Op::Purge { id: id("purged") }))).unwrap();
        assert_eq!(asker.ask("tea", 0), "brief replaced stays", "{url}");
        put(note("replaced").saying("black coffee")).unwrap();
        assert_eq!(asker.ask("tea", 0), "brief stays", "{url}");
        assert_eq!(asker.ask("coffee", 0), "replaced", "{url}");
        assert_eq!(asker.ask("tea", 11), "stays", "{url}: it has expired");
        wait(store.upkeep(&grant(at(11)), 100)).unwrap();
        put(tea("new")).unwrap();
        assert_eq!(asker.ask("tea", 11), "new stays", "{url}");
        asker.end();
    }
}

/// Another process may give records new vectors; nothing else changes then.
#[test]
fn vectors_that_another_handle_made_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let (one, other) = (Sqlite::open(&path).unwrap(), Sqlite::open(&path).unwrap());
    let g = grant(at(0));
    wait(one.apply(&g, Batch::of(Op::put(note("a").saying("tea"))))).unwrap();
    let near = Probe {
        vectors: place("tea").into_iter().collect(),
        depth: 1,
        ..Probe::new(mnemon_core::Filter::all_of_tenant(), 0)
    };
    let cosine = |store: &Sqlite| -> Vec<f32> {
        let found = wait(store.find(&g, &near)).unwrap().matches;
        found.iter().map(|found| features(found).cosine).collect()
    };
    assert!(cosine(&other).is_empty(), "it has no vector yet");
    let made = vec![(1, place("tea").unwrap())];
    assert_eq!(wait(one.embed(&g, made)).unwrap(), 1);
    for store in [&one, &other] {
        let found = cosine(store);
        assert!(found.len() == 1 && found[0] > 0.99, "{found:?}");
    }
}

/// A file from before there was a search has no words beside its records.
#[test]
fn old_files_are_found_by_words() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for version in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.db");
        std::fs::copy(fixtures.join(format!("sqlite-v{version}.db")), &path).unwrap();
        let store = Arc::new(Sqlite::open(&path).unwrap()).into();
        let found = |query: &str| -> Vec<String> {
            let shown = search(&store, &grant(at(0)), query);
            shown
                .into_iter()
                .map(|(_, record)| record.content)
                .collect()
        };
        for query in ["tea", "preferring", "no sugar"] {
            assert_eq!(found(query), ["Ann prefers tea, no sugar"], "v{version}");
        }
        for query in ["Huế", "hue", "moving"] {
            assert_eq!(found(query), ["Ann moved to Huế"], "v{version}");
        }
        assert_eq!(found("Ann fixture").len(), 2, "v{version}");
        assert!(
            found("coffee Đà Nẵng").is_empty(),
            "v{version}: an old version"
        );
    }
}
