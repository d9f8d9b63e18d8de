//! An index that has followed its store answers as one that is loaded afresh: random writes through
//! two handles of each store, under limits so small that the log of removals is too short.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mnemon_adapters::{Jsonl, Saving, Sqlite};
use mnemon_core::embed::{Embedder, ModelId};
use mnemon_core::limits::Limits;
use mnemon_core::ram::Ram;
use mnemon_core::{Backend, Batch, Embedding, Grant, Id, Op, Policy, Record, Right, Store};
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::make::{Remade, at, ctx, id, note};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::kit::{rounds, wait};
use crate::search::{WORDS, assert_alike, probe, shown_by};

const IDS: usize = 6;
/// Two models, of different dimensions.
const DIMENSIONS: [usize; 2] = [16, 8];

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Put {
        id: usize,
        words: Vec<usize>,
        session: Option<bool>,
        lives: Option<i64>,
        with_vector: bool,
    },
    Delete(usize),
    Purge(usize),
    /// Time passes; some records expire.
    Pass(i64),
    Upkeep(usize),
    /// Gives some records that lack one a vector of one of the models.
    Embed {
        model: usize,
        most: usize,
    },
    /// These handles search.
    Look([bool; 5]),
}

pub(crate) fn step() -> impl Strategy<Value = (Step, bool)> {
    let put = (
        0..IDS,
        vec(0..WORDS.len(), 1..4),
        option::of(any::<bool>()),
        option::weighted(0.3, 1..50_i64),
        any::<bool>(),
    );
    let step = prop_oneof![
        8 => put.prop_map(|(id, words, session, lives, with_vector)| Step::Put {
            id, words, session, lives, with_vector
        }),
        2 => (0..IDS).prop_map(Step::Delete),
        2 => (0..IDS).prop_map(Step::Purge),
        1 => (1..30_i64).prop_map(Step::Pass),
        1 => (1..4_usize).prop_map(Step::Upkeep),
        3 => (0..2_usize, 1..4_usize).prop_map(|(model, most)| Step::Embed { model, most }),
        3 => any::<[bool; 5]>().prop_map(Step::Look),
    ];
    (step, any::<bool>())
}

fn model(number: usize) -> ModelId {
    HashEmbedder::new(DIMENSIONS[number]).model().clone()
}

pub(crate) fn embedding(number: usize, text: &str) -> Option<Embedding> {
    let embedder = HashEmbedder::new(DIMENSIONS[number]);
    let vector = wait(embedder.embed(&[text])).unwrap().remove(0)?;
    Some(Embedding {
        model: embedder.model().clone(),
        vector,
    })
}

pub(crate) fn grant(now: i64) -> Grant {
    let policy = Policy {
        limits: &Limits::TINY,
        ..Policy::default()
    };
    policy.check(&ctx(at(now)), Right::Purge).unwrap()
}

/// Gives up to so many records that lack one a vector; says which lacked one.
pub(crate) fn embed(
    store: &dyn Store,
    grant: &Grant,
    number: usize,
    most: usize,
) -> Vec<(Id, u64)> {
    embed_after(store, grant, number, 0, most)
}

fn embed_after(
    store: &dyn Store,
    grant: &Grant,
    number: usize,
    after: u64,
    most: usize,
) -> Vec<(Id, u64)> {
    let lacking = wait(store.lacking(grant, &model(number), after, most)).unwrap();
    let made = lacking.iter().filter_map(|record| {
        let made = embedding(number, &record.content)?;
        Some((record.seq, made))
    });
    wait(store.embed(grant, made.collect())).unwrap();
    let name = |record: &Record| (record.id.clone(), record.seq);
    lacking.iter().map(name).collect()
}

fn sqlite(file: &Path, saves: bool) -> Backend {
    let saving = Saving {
        changes: if saves { 3 } else { usize::MAX },
        pause: Duration::ZERO,
    };
    Arc::new(Sqlite::open_with(file, saving).unwrap()).into()
}

fn jsonl(folder: &Path) -> Backend {
    Arc::new(Jsonl::open(folder).unwrap()).into()
}

/// Two handles of each store that has files; the second SQLite handle saves its index.
struct Handles {
    ram: Backend,
    jsonl: [Backend; 2],
    sqlite: [Backend; 2],
    folder: PathBuf,
    now: i64,
}

impl Handles {
    fn new(folder: &Path) -> Self {
        let (log, file) = (folder.join("log"), folder.join("m.db"));
        Self {
            ram: Arc::new(Ram::new()).into(),
            jsonl: [jsonl(&log), jsonl(&log)],
            sqlite: [sqlite(&file, false), sqlite(&file, true)],
            folder: folder.to_owned(),
            now: 0,
        }
    }

    /// One handle of each store.
    fn writers(&self, second: bool) -> [&dyn Store; 3] {
        let at = usize::from(second);
        [&self.ram, &self.jsonl[at], &self.sqlite[at]].map(|backend| backend.store.as_ref())
    }

    fn apply(&self, second: bool, op: &Op, with_vector: bool) {
        for store in self.writers(second) {
            let mut batch = Batch::of(op.clone());
            if let Op::Put { record, .. } = op
                && with_vector
                && let Some(made) = embedding(0, &record.content)
            {
                batch.vectors = vec![(record.id.clone(), made)];
            }
            wait(store.apply(&grant(self.now), batch)).unwrap();
        }
    }

    fn run(&mut self, step: &Step, second: bool) {
        let name = |number: usize| id(&format!("n{number}"));
        match step {
            Step::Put {
                id,
                words,
                session,
                lives,
                with_vector,
            } => {
                let said: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
                let mut record = note(name(*id).as_str()).saying(&said.join(" "));
                record.owner.session = session.map(|one| format!("s{one}"));
                record.expires = lives.map(|lives| at(self.now + lives));
                self.apply(second, &Op::put(record), *with_vector);
            }
            Step::Delete(id) => self.apply(second, &Op::delete(name(*id)), false),
            Step::Purge(id) => self.apply(second, &Op::Purge { id: name(*id) }, false),
            Step::Pass(ms) => self.now += ms,
            Step::Upkeep(most) => {
                for store in self.writers(second) {
                    wait(store.upkeep(&grant(self.now), *most)).unwrap();
                }
            }
            Step::Embed { model, most } => {
                let [ram, _, sqlite] = self.writers(second);
                let grant = grant(self.now);
                let lacking = embed(ram, &grant, *model, *most);
                assert_eq!(embed(sqlite, &grant, *model, *most), lacking);
            }
            Step::Look(which) => self.look(*which),
        }
    }

    /// What these handles answer is what one that was opened just now answers.
    fn look(&self, which: [bool; 5]) {
        let fresh_sqlite = sqlite(&self.folder.join("m.db"), false);
        let fresh_jsonl = jsonl(&self.folder.join("log"));
        let [a, b] = &self.sqlite;
        let [c, d] = &self.jsonl;
        let handles: [(&str, &Backend, &Backend); 5] = [
            ("ram", &self.ram, &fresh_sqlite),
            ("sqlite", a, &fresh_sqlite),
            ("sqlite that saves", b, &fresh_sqlite),
            ("jsonl", c, &fresh_jsonl),
            ("another jsonl", d, &fresh_jsonl),
        ];
        let grant = grant(self.now);
        for ((name, followed, fresh), _) in handles.into_iter().zip(which).filter(|(_, yes)| *yes) {
            for store in [&followed.store, &fresh.store] {
                // A log keeps no vectors: each handle makes its own.
                let mut after = 0;
                while !store.capabilities().keeps_vectors
                    && let Some((_, last)) =
                        embed_after(store.as_ref(), &grant, 0, after, IDS).last()
                {
                    after = *last;
                }
            }
            for query in [WORDS[0], WORDS[2]] {
                let mut probe = probe(query);
                probe.vectors = (0..2)
                    .filter_map(|number| embedding(number, query))
                    .collect();
                let what = format!("{name}, {query}, at {}", self.now);
                let fresh = shown_by(fresh, &grant, &probe);
                assert_alike(&shown_by(followed, &grant, &probe), &fresh, &what);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(300, 24)))]

    #[test]
    fn an_index_that_followed_answers_as_a_fresh_one(steps in vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut handles = Handles::new(folder.path());
        for (step, second) in &steps {
            handles.run(step, *second);
        }
        handles.look([true; 5]);
    }
}

#[test]
fn the_log_of_removals_is_bounded_and_an_index_behind_it_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let mut handles = Handles::new(folder.path());
    let put = |id: usize, word: usize| Step::Put {
        id,
        words: vec![word],
        session: None,
        lives: None,
        with_vector: true,
    };
    (0..IDS).for_each(|id| handles.run(&put(id, 0), false));
    handles.look([true; 5]);
    for round in 0..3 {
        (0..IDS).for_each(|id| handles.run(&put(id, round), true));
    }
    handles.run(&Step::Purge(1), true);
    let raw = rusqlite::Connection::open(folder.path().join("m.db")).unwrap();
    let logged: i64 = raw
        .query_row("SELECT count(*) FROM removals", [], |row| row.get(0))
        .unwrap();
    assert_eq!(usize::try_from(logged), Ok(Limits::TINY.removal_log));
    handles.look([true; 5]);
}

/// Loading an index reads the words of every record. They cannot be read any more, so each of these
/// changes must be followed without a load.
#[test]
fn no_change_of_another_process_costs_a_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.db");
    let (one, other) = (sqlite(&file, false), sqlite(&file, false).store);
    let put = |name: &str, lives: Option<i64>| {
        let mut record = note(name).saying("tea");
        record.expires = lives.map(at);
        wait(other.apply(&grant(0), Batch::of(Op::put(record)))).unwrap();
    };
    for name in ["a", "b", "c", "d", "e"] {
        put(name, (name == "e").then_some(10));
    }
    let shown = |now: i64| -> Vec<String> {
        let shown = shown_by(&one, &grant(now), &probe("tea"));
        let mut ids: Vec<String> = shown.iter().map(|(_, r)| r.id.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(shown(0), ["a", "b", "c", "d", "e"]);
    let raw = rusqlite::Connection::open(&file).unwrap();
    let spoil = || {
        raw.execute("UPDATE search SET terms = x'0102'", [])
            .unwrap()
    };
    spoil();
    assert_eq!(embed(other.as_ref(), &grant(0), 0, 2).len(), 2);
    spoil();
    assert_eq!(shown(0), ["a", "b", "c", "d", "e"], "late vectors");
    assert_eq!(embed(other.as_ref(), &grant(0), 1, 2).len(), 2);
    spoil();
    assert_eq!(
        shown(0),
        ["a", "b", "c", "d", "e"],
        "vectors of another model"
    );
    let purge = Op::Purge { id: id("a") };
    wait(other.apply(&grant(0), Batch::of(purge))).unwrap();
    assert_eq!(shown(0), ["b", "c", "d", "e"], "a purge");
    wait(other.apply(&grant(0), Batch::of(Op::delete(id("b"))))).unwrap();
    assert_eq!(shown(0), ["c", "d", "e"], "a deletion");
    wait(other.upkeep(&grant(20), 10)).unwrap();
    assert_eq!(shown(20), ["c", "d"], "expiry");
    put("c", None);
    assert_eq!(shown(20), ["c", "d"], "an update");
}

/// Where no record lacks a vector, none is looked at; records of other models and without any are
/// found in the order they were written.
#[test]
fn records_that_lack_a_vector_are_found_by_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder.path().join("m.db"), false).store;
    let store = store.as_ref();
    let default = mnemon_testkit::make::grant(at(0));
    for number in 0..9 {
        let record = note(&format!("n{number}"));
        wait(store.apply(&default, Batch::of(Op::put(record)))).unwrap();
    }
    let lacking = |number: usize, after: u64| -> Vec<u64> {
        let found = wait(store.lacking(&default, &model(number), after, 100)).unwrap();
        found.iter().map(|record| record.seq).collect()
    };
    assert_eq!(lacking(0, 0), (1..=9).collect::<Vec<_>>());
    assert_eq!(embed(store, &default, 0, 4).len(), 4);
    assert_eq!(lacking(0, 0), (5..=9).collect::<Vec<_>>());
    assert_eq!(embed(store, &default, 1, 2).len(), 2);
    assert_eq!(lacking(1, 0), (3..=9).collect::<Vec<_>>());
    assert_eq!(lacking(1, 4), (5..=9).collect::<Vec<_>>());
    assert_eq!(lacking(0, 0), [1, 2, 5, 6, 7, 8, 9]);
    embed(store, &default, 0, 100);
    assert!(lacking(0, 0).is_empty());
}
