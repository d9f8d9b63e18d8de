use super::*;
use crate::model::{Ctx, Tenant, Time};
use crate::ports::{Match, Probe};
use crate::search::index::{Doc, Index};

const WORDS: [&str; 10] = [
    "tea", "coffee", "train", "garden", "invoice", "deploy", "summer", "letter", "window", "river",
];

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most) as usize
    }
}

fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

/// Conversations of which some messages came late, some are long, and some belong to no session.
fn records(random: &mut Random, count: u64) -> Vec<Record> {
    let ctx = Ctx::new(Tenant::default(), "test", now());
    let records = (1..=count).map(|seq| {
        let longest = if random.below(6) == 0 { 90 } else { 8 };
        let words = (0..=random.below(longest)).map(|_| WORDS[random.below(10)]);
        let content = words.collect::<Vec<_>>().join(" ");
        let mut record = Record::note(format!("r{seq}").parse().unwrap(), &ctx, content);
        record.seq = seq;
        record.created = now().plus_millis(random.below(4) as i64 + seq as i64 / 3);
        let session = random.below(4);
        record.owner.session = (session > 0).then(|| format!("s{session}"));
        record
    });
    records.collect()
}

fn windows(records: &[Record]) -> Vec<SessionWindow> {
    let of = |record: &Record| {
        let same = |other: &&Record| {
            other.id == record.id
                || (other.owner.session.is_some() && other.owner.session == record.owner.session)
        };
        let mut session: Vec<Record> = records.iter().filter(same).cloned().collect();
        session.sort_by_key(|record| (record.created, record.seq));
        let at = session.iter().position(|one| one.id == record.id).unwrap();
        let from = at.saturating_sub(CONTEXT_REACH);
        let to = session.len().min(at + CONTEXT_REACH + 1);
        SessionWindow {
            records: session[from..to].to_vec(),
            at: at - from,
        }
    };
    records.iter().map(of).collect()
}

/// With the windows of all records everything is known that the index knows, so that the scores
/// are the same.
#[test]
fn words_score_as_in_the_built_in_index() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let records = records(&mut random, 60);
        let mut index = Index::new();
        for record in &records {
            let terms = Terms::of(record);
            index.add(&Doc::of(record), &terms, None).unwrap();
        }
        let query = [0, 0, 0].map(|_| WORDS[random.below(10)]).join(" ");
        let probe = Probe {
            terms: QueryTerm::words_of(&query),
            depth: 1000,
            ..Probe::new(crate::model::Filter::all_of_tenant(), 0)
        };
        let mut found = index.find(&probe, now(), None).unwrap().matches;
        found.sort_by_key(|found| found.features.as_ref().unwrap().seq);
        let windows = windows(&records);
        let scored = score_in_context(&Answer::default(), &probe.terms, &windows, 1000);
        assert!(found.len() > 10, "{query}");
        assert_eq!(scored.len(), found.len(), "{query}");
        for (ours, theirs) in scored.iter().zip(&found) {
            assert_eq!(ours.id, theirs.id);
            let features = theirs.features.clone().unwrap();
            let apart = (ours.features.coverage - features.coverage).abs();
            assert!(apart < 1e-4, "{apart}");
            let coverage = ours.features.coverage;
            assert_eq!(
                ours.features,
                Features {
                    coverage,
                    ..features
                }
            );
            let (ours, theirs) = (ours.words, theirs.words.unwrap());
            assert!((ours - theirs).abs() <= 1e-4 * theirs, "{ours} {theirs}");
        }
    }
}

#[test]
fn a_neighbour_that_was_not_found_is_at_most_as_near_as_the_last_match() {
    let mut random = Random(3);
    let mut records = records(&mut random, 3);
    for record in &mut records {
        record.owner.session = Some("s".to_owned());
    }
    let near = |record: &Record, score| Match {
        id: record.id.clone(),
        words: None,
        meaning: Some(score),
        features: None,
    };
    let answer = Answer {
        matches: vec![near(&records[0], 0.9), near(&records[1], 0.4)],
        ..Answer::default()
    };
    let of = |depth| {
        let found = score_in_context(&answer, &[], &windows(&records), depth);
        assert_eq!(found.len(), 2, "only matches are near");
        found[0].meaning
    };
    let (all, cut) = (of(3), of(2));
    assert!(all < cut && cut < 0.9, "{all} {cut}");
}
