use super::*;
use crate::model::{Ctx, Filter, Record, Tenant, Time};
use crate::ports::{Embedding, Features, Match, Probe, QueryTerm};
use crate::search::index::{Doc, StoredVector, Terms, hash};
use crate::search::text::query_terms;
use crate::search::vector::quantise;

const WORDS: [&str; 12] = [
    "tea", "coffee", "train", "garden", "invoice", "deploy", "summer", "letter", "window", "river",
    "tax", "piano",
];

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..96).map(|_| self.below(2000) as f32 - 999.5).collect()
    }
}

fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

fn model() -> ModelId {
    ModelId {
        name: "m".to_owned(),
        dimension: 96,
    }
}

/// A record in a session or alone, of a user or of nobody, with an id of either form.
fn add(index: &mut Index, random: &mut Random, seq: u64) {
    let ctx = Ctx::new(Tenant::default(), "test", now());
    let count = 1 + random.below(6);
    let words = (0..count).map(|_| WORDS[random.below(12) as usize]);
    let content = words.collect::<Vec<_>>().join(" ");
    let id = match random.below(2) {
        0 => format!("note-{seq}"),
        _ => format!("01890000-0000-7000-8000-{seq:012x}"),
    };
    let mut record = Record::note(id.parse().unwrap(), &ctx, content);
    record.seq = seq;
    record.created = now().plus_millis(random.below(5000) as i64);
    record.importance = random.below(100) as f64 / 100.0;
    if random.below(3) > 0 {
        record.owner.session = Some(format!("s{}", random.below(9)));
    }
    if random.below(2) == 0 {
        record.owner.user = Some(format!("u{}", random.below(4)));
    }
    if random.below(4) == 0 {
        record.tags = vec![WORDS[random.below(12) as usize].to_owned()];
    }
    if random.below(5) == 0 {
        record.expires = Some(now().plus_millis(random.below(20_000) as i64 - 10_000));
    }
    record
        .metadata
        .insert("speaker".to_owned(), format!("p{}", random.below(5)).into());
    let vector = (random.below(4) > 0).then(|| StoredVector {
        model: model(),
        vector: quantise(&random.vector()).unwrap(),
    });
    index
        .add(&Doc::of(&record), &Terms::of(&record), vector.as_ref())
        .unwrap();
}

fn saved(index: &Index) -> Vec<u8> {
    let mut out = Vec::new();
    index.save(&mut out).unwrap();
    out
}

fn loaded(bytes: &[u8]) -> io::Result<Index> {
    Index::load(&mut &*bytes, bytes.len() as u64)
}

/// What an index answers to a question, in an order that does not depend on it.
fn answer(index: &Index, probe: &Probe) -> Vec<Match> {
    let mut found = index.find(probe, now(), None).unwrap().matches;
    found.sort_by_key(|found| found.features.as_ref().unwrap().seq);
    found
}

fn probes(random: &mut Random) -> Vec<Probe> {
    let mut probe = |filter: Filter| {
        let words = [0, 0].map(|_| WORDS[random.below(12) as usize]).join(" ");
        Probe {
            terms: QueryTerm::words_of(&words),
            vectors: vec![Embedding {
                model: model(),
                vector: random.vector(),
            }],
            ..Probe::new(filter, 40)
        }
    };
    let mine = Filter {
        viewer: crate::model::Viewer::user("u1"),
        ..Filter::all_of_tenant()
    };
    let mut session = Filter::all_of_tenant();
    session.owner.session = Some("s3".to_owned());
    let tagged = Filter {
        tags: vec!["Tea".to_owned()],
        ..Filter::all_of_tenant()
    };
    let notes = Filter {
        scopes: vec![Scope::Semantic],
        kinds: vec![Kind::Note],
        ..Filter::all_of_tenant()
    };
    [Filter::all_of_tenant(), mine, session, tagged, notes]
        .into_iter()
        .map(&mut probe)
        .collect()
}

/// The same but for what a sum depends on the order of its parts.
fn agree(one: &[Match], other: &[Match]) {
    let ids = |found: &[Match]| found.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(one), ids(other));
    for (one, other) in one.iter().zip(other) {
        let near = |a: Option<f32>, b: Option<f32>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-4 * (1.0 + a.abs()),
            (a, b) => a == b,
        };
        assert!(near(one.words, other.words), "{one:?} {other:?}");
        assert!(near(one.meaning, other.meaning), "{one:?} {other:?}");
        let (one, other) = (
            one.features.clone().unwrap(),
            other.features.clone().unwrap(),
        );
        assert!(near(Some(one.coverage), Some(other.coverage)));
        let coverage = one.coverage;
        assert_eq!(one, Features { coverage, ..other });
    }
}

#[test]
fn a_loaded_index_answers_as_the_one_that_was_saved() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut index = Index::new();
        let mut seq = 0;
        // Saved, loaded, changed, and once more: a loaded one is saved as well as a made one.
        for _ in 0..3 {
            for _ in 0..random.below(300) {
                seq += 1 + random.below(2);
                add(&mut index, &mut random, seq);
            }
            for _ in 0..random.below(60) {
                index.remove(random.below(seq + 1));
            }
            let mut again = loaded(&saved(&index)).unwrap();
            assert_eq!(again.seqs(), index.seqs());
            assert_eq!(again.len(), index.len());
            let lacking = |index: &Index| index.lacking(&model(), 0, usize::MAX);
            assert_eq!(lacking(&again), lacking(&index));
            for probe in probes(&mut random) {
                agree(&answer(&again, &probe), &answer(&index, &probe));
            }
            let before = random.0;
            for number in 1..20 {
                add(&mut index, &mut random, seq + number);
            }
            random.0 = before;
            for number in 1..20 {
                add(&mut again, &mut random, seq + number);
            }
            seq += 20;
            for probe in probes(&mut random) {
                agree(&answer(&again, &probe), &answer(&index, &probe));
            }
            index = again;
        }
    }
}

#[test]
fn whoever_was_removed_is_not_written_down() {
    let ctx = Ctx::new(Tenant::default(), "test", now());
    let mut index = Index::new();
    for (seq, user) in [(1, "keeper"), (2, "goner")] {
        let id = format!("id-of-{user}").parse().unwrap();
        let mut record = Record::note(id, &ctx, format!("{user} likes {user}"));
        record.seq = seq;
        record.owner.user = Some(user.to_owned());
        record.owner.session = Some(format!("session-of-{user}"));
        record.tags = vec![format!("tag-of-{user}")];
        index
            .add(&Doc::of(&record), &Terms::of(&record), None)
            .unwrap();
    }
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    let word = hash(&query_terms("goner")[0].text).to_le_bytes();
    let before = saved(&index);
    assert!(has(&before, b"goner") && has(&before, &word));
    index.remove(2);
    let after = saved(&index);
    assert!(has(&after, b"keeper"));
    assert!(!has(&after, b"goner") && !has(&after, &word));
}

#[test]
fn what_is_no_index_is_refused() {
    let mut random = Random(5);
    let mut index = Index::new();
    for seq in 1..40 {
        add(&mut index, &mut random, seq);
    }
    let bytes = saved(&index);
    loaded(&bytes).unwrap();
    assert!(loaded(b"").is_err());
    assert!(loaded(b"SQLite format 3\0 and more of that").is_err());
    for _ in 0..200 {
        let mut damaged = bytes.clone();
        let at = random.below(bytes.len() as u64) as usize;
        damaged[at] ^= 1 << random.below(8);
        assert!(loaded(&damaged).is_err(), "byte {at}");
        assert!(loaded(&bytes[..at]).is_err(), "cut at {at}");
    }
}
