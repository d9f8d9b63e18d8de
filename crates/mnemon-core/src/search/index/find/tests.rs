//! What one caller finds does not depend on records that the caller may not see.

use super::*;
use crate::model::{Ctx, Kind, Owner, Record, Tenant, Viewer};
use crate::ports::embed::ModelId;
use crate::ports::{Embedding, QueryTerm, SimilarTerm};
use crate::search::index::{Doc, StoredVector, Terms};
use crate::search::vector::quantise;

const WORDS: [&str; 12] = [
    "tea", "garden", "train", "letter", "invoice", "river", "music", "winter", "doctor", "bread",
    "island", "engine",
];
const DIMENSION: usize = 8;

struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn text(&mut self) -> String {
        let count = 1 + self.below(12);
        // The first words are frequent, the last ones rare.
        let words = (0..count).map(|_| {
            let at = self.below(12).min(self.below(12));
            WORDS[at as usize]
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        let values = (0..DIMENSION).map(|_| self.below(200) as f32 / 100.0 - 0.7);
        values.collect()
    }
}

fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

fn model(name: &str) -> ModelId {
    ModelId {
        name: name.to_owned(),
        dimension: DIMENSION,
    }
}

/// A record with its vector, and whether it is deleted later.
struct Made {
    record: Record,
    vector: Option<StoredVector>,
    is_deleted: bool,
}

/// A record by one of these owners for one of these audiences.
fn made(random: &mut Random, id: String, whose: &[(&str, &str)], models: &[&str]) -> Made {
    let ctx = Ctx::new(Tenant::default(), "test", now());
    let mut record = Record::note(id.parse().unwrap(), &ctx, random.text());
    let (user, audience) = whose[random.below(whose.len() as u64) as usize];
    record.owner.user = (!user.is_empty()).then(|| user.to_owned());
    record.audience = (!audience.is_empty()).then(|| audience.parse().unwrap());
    record.created = now().plus_millis(random.below(1000) as i64 - 500);
    if random.one_in(2) {
        record.kind = Kind::Message;
        record.owner.session = Some(["s", "t"][random.below(2) as usize].to_owned());
    }
    if random.one_in(6) {
        record.expires = Some(now().plus_millis(random.below(3) as i64 - 2));
    }
    if random.one_in(4) {
        record.tags = vec![["home", "work"][random.below(2) as usize].to_owned()];
    }
    let model_name = models[random.below(models.len() as u64) as usize];
    let vector = (!random.one_in(5)).then(|| StoredVector {
        model: model(model_name),
        vector: quantise(&random.vector()).unwrap(),
    });
    Made {
        record,
        vector,
        is_deleted: random.one_in(8),
    }
}

fn index<'a>(all: impl IntoIterator<Item = &'a Made>) -> Index {
    let mut index = Index::new();
    let mut deleted = Vec::new();
    for (seq, made) in (1..).zip(all) {
        let record = Record {
            seq,
            ..made.record.clone()
        };
        let (doc, terms) = (Doc::of(&record), Terms::of(&record));
        index.add(&doc, &terms, made.vector.as_ref()).unwrap();
        if made.is_deleted {
            deleted.push(seq);
        }
    }
    deleted.into_iter().for_each(|seq| index.remove(seq));
    index
}

/// The records of both, each in its order: those of others before, between and after ours.
fn merged<'a>(random: &mut Random, ours: &'a [Made], others: &'a [Made]) -> Vec<&'a Made> {
    let (mut ours, mut others) = (ours.iter().peekable(), others.iter().peekable());
    let mut all = Vec::new();
    while ours.peek().is_some() || others.peek().is_some() {
        let next = match random.one_in(2) {
            true => ours.next(),
            false => others.next(),
        };
        all.extend(next);
    }
    all
}

/// All that an answer says, to the bit, but not the numbers of changes.
fn said(answer: &Answer) -> Vec<String> {
    let bits = |score: Option<f32>| score.map(f32::to_bits);
    let matches = answer.matches.iter().map(|found| {
        let features = found.features.as_ref().unwrap();
        format!(
            "{} {:?} {:?} {:?} {:?} {:?}",
            found.id,
            bits(found.words),
            bits(found.meaning),
            features.cosine.to_bits(),
            features.coverage.to_bits(),
            (features.created, &features.speaker)
        )
    });
    let background = answer.background.map(|background| {
        let bits = [background.mean, background.deviation].map(f32::to_bits);
        format!("{bits:?} of {}", background.sample)
    });
    matches.chain(background).collect()
}

fn filters() -> Vec<Filter> {
    let ann = |viewer: Viewer| Filter {
        owner: Owner {
            user: Some("ann".to_owned()),
            ..Owner::default()
        },
        ..Filter::seen_by(viewer)
    };
    let audiences = [
        Filter::seen_by(Viewer::user("ann")),
        ann(Viewer::user("ann")),
        ann(Viewer::Tenant),
        Filter::seen_by(Viewer::ANYONE),
        Filter::seen_by(Viewer::person(None, Some("planner".to_owned()))),
    ];
    let mut filters = Vec::new();
    for audience in audiences {
        filters.push(Filter {
            kinds: vec![Kind::Message],
            ..audience.clone()
        });
        filters.push(Filter {
            tags: vec!["home".to_owned()],
            since: Some(now().plus_millis(-100)),
            ..audience.clone()
        });
        filters.push(audience);
    }
    filters
}

fn probes(random: &mut Random) -> Vec<Probe> {
    let mut probes = Vec::new();
    for filter in filters() {
        for depth in [1, 3, 100] {
            let vector = random.vector();
            let vectors = ["m", "n"].map(|name| Embedding {
                model: model(name),
                vector: vector.clone(),
            });
            let mut terms = QueryTerm::words_of(&format!("{} absent", random.text()));
            terms.truncate(random.below(5) as usize);
            let similar = terms.iter().map(|term| SimilarTerm {
                of: term.text.clone(),
                text: QueryTerm::words_of(&random.text()).remove(0).text,
                similarity: 0.4,
            });
            probes.push(Probe {
                similar: similar.collect(),
                rarest: [None, None, Some(1), Some(2)][random.below(4) as usize],
                terms,
                vectors: vectors[..random.below(3) as usize].to_vec(),
                ..Probe::new(filter.clone(), depth)
            });
        }
    }
    probes
}

/// For ann, for everyone, for an agent; and one of ann's that is for bob, in sessions of his.
const OURS: [(&str, &str); 6] = [
    ("ann", ""),
    ("ann", ""),
    ("", ""),
    ("ann", "everyone"),
    ("ann", "agent:planner"),
    ("ann", "user:bob"),
];
const PRIVATE: [(&str, &str); 4] = [
    ("bob", ""),
    ("", "user:bob"),
    ("bob", "team:ops"),
    ("cleo", "user:bob"),
];

#[test]
fn records_of_others_change_nothing() {
    let mut found = 0;
    for seed in 0..60 {
        let random = &mut Random(seed);
        let sizes = (1 + random.below(60), random.below(120));
        let ours: Vec<Made> = (0..sizes.0)
            .map(|n| made(random, format!("ours{n}"), &OURS, &["n", "n", "m"]))
            .collect();
        let models: &[&str] = [&["m", "n"][..], &["m"]][seed as usize % 2];
        let others: Vec<Made> = (0..sizes.1)
            .map(|n| made(random, format!("others{n}"), &PRIVATE, models))
            .collect();
        let alone = index(&ours);
        let together = index(merged(random, &ours, &others));
        for probe in probes(random) {
            let said = |index: &Index| said(&index.find(&probe, now(), None).unwrap());
            let alone = said(&alone);
            found += alone.len();
            assert_eq!(said(&together), alone, "seed {seed}: {probe:?}");
        }
    }
    assert!(found > 5_000, "{found}");
}

/// Frequent words only rescore after so many occurrences, and many vectors are chosen among by
/// their sketches: neither may depend on the records of others.
#[test]
fn many_records_of_others_change_nothing() {
    let random = &mut Random(7);
    let many = |random: &mut Random, name: &str, whose: &[(&str, &str)]| -> Vec<Made> {
        (0..5_500)
            .map(|n| Made {
                is_deleted: false,
                ..made(random, format!("{name}{n}"), whose, &["m"])
            })
            .collect()
    };
    let ours = many(random, "ours", &[("ann", "")]);
    let others = many(random, "others", &[("bob", "")]);
    let alone = index(&ours);
    let together = index(merged(random, &ours, &others));
    for probe in probes(random).into_iter().take(12) {
        let said = |index: &Index| said(&index.find(&probe, now(), None).unwrap());
        assert_eq!(said(&together), said(&alone), "{probe:?}");
    }
}

/// Words that can add nothing to the best are not walked. The answer is that of a probe which is so
/// deep that it walks every word.
#[test]
fn common_words_left_out_of_the_walk_change_nothing() {
    let (mut left_out, mut compared) = (0, 0);
    for seed in 0..20 {
        let random = &mut Random(seed);
        let all: Vec<Made> = (0..600)
            .map(|n| made(random, format!("r{n}"), &OURS, &["m"]))
            .collect();
        let index = index(&all);
        for probe in probes(random) {
            let depth = probe.depth.min(20);
            let probe = Probe { depth, ..probe };
            let deep = Probe {
                depth: all.len() + 1,
                ..probe.clone()
            };
            let all_words = index.find(&deep, now(), None).unwrap().matches;
            let mut best: Vec<f32> = all_words.iter().filter_map(|one| one.words).collect();
            best.sort_by(|a, b| b.total_cmp(a));
            best.truncate(depth);
            let found = index.find(&probe, now(), None).unwrap().matches;
            for one in &found {
                let same = all_words.iter().find(|other| other.id == one.id);
                assert_eq!(Some(one), same, "seed {seed}: {probe:?}");
            }
            let mut scores: Vec<f32> = found.iter().filter_map(|one| one.words).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(
                scores.get(..best.len()),
                Some(best.as_slice()),
                "seed {seed}"
            );
            compared += found.len();
            left_out += usize::from(index.leaves_out(&probe));
        }
    }
    assert!(left_out > 50 && compared > 1_000, "{left_out}, {compared}");
}

impl Index {
    /// Whether the words of a probe need not all be walked.
    fn leaves_out(&self, probe: &Probe) -> bool {
        let audience = probe.filter.audience_only();
        let visible = self.visible(&audience, now(), None, None);
        let mask = self.mask(&probe.filter, None, now());
        let mut scratch = self.scratch.borrow(self.docs.len());
        let words = self.rare_words(probe, &visible, mask.as_ref(), &mut scratch);
        !words.common.is_empty()
    }
}

/// Which terms are the rarest does not depend on how far the others were counted.
#[test]
fn the_rarest_terms_are_those_that_the_fewest_visible_documents_have() {
    let mut left_out = 0;
    for seed in 0..40 {
        let random = &mut Random(seed);
        let whose = [&OURS[..], &PRIVATE[..]].concat();
        let all: Vec<Made> = (0..300)
            .map(|n| made(random, format!("r{n}"), &whose, &["m"]))
            .collect();
        let index = index(&all);
        for probe in probes(random) {
            let visible = index.visible(&probe.filter.audience_only(), now(), None, None);
            let chosen = |rarest| {
                let probe = Probe {
                    rarest,
                    ..probe.clone()
                };
                let (known, _) = index.known(&probe, &visible, None, &mut Vec::new());
                let term = |one: &words::Known<'_>| one.term.text.clone();
                known.iter().map(term).collect::<Vec<_>>()
            };
            let all = chosen(None);
            for wanted in 1..=all.len() {
                assert_eq!(chosen(Some(wanted)), all[..wanted], "seed {seed}");
                left_out += all.len() - wanted;
            }
        }
    }
    assert!(left_out > 1_000, "{left_out}");
}

#[test]
fn evenly_spaced_bits_are_those_of_a_walk() {
    let random = &mut Random(3);
    for _ in 0..200 {
        let dense = random.one_in(2);
        let words: Vec<u64> = (0..random.below(9))
            .map(|_| {
                let word = random.below(u64::MAX) << 31 | random.below(u64::MAX);
                if dense {
                    word | word << 7
                } else {
                    word & word << 3 & word >> 5
                }
            })
            .collect();
        let most = 1 + random.below(200) as usize;
        let mut all = Vec::new();
        each_bit(&words, &mut |bit| all.push(bit));
        let apart = all.len().div_ceil(most).max(1);
        let walked: Vec<u32> = all.into_iter().step_by(apart).collect();
        assert_eq!(spaced_bits(&words, most), walked);
    }
}
