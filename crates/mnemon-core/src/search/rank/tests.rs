use proptest::prelude::*;

use super::*;
use crate::ports::Traits;

fn candidate(seq: u64, words: f32, meaning: f32) -> Candidate {
    Candidate {
        id: format!("c{seq}").parse().unwrap(),
        words,
        meaning,
        features: Features {
            seq,
            cosine: meaning,
            coverage: (words / 10.0).min(1.0),
            created: Time::EPOCH,
            importance: 0.0,
            asking: 0.0,
            length: 8.0,
            speaker: None,
            traits: Traits::default(),
            told: Vec::new(),
        },
    }
}

fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

fn order(ranked: &[Ranked]) -> Vec<u64> {
    ranked.iter().map(|ranked| ranked.seq).collect()
}

#[test]
fn both_arms_count() {
    let candidates = [
        candidate(1, 10.0, 0.2),
        candidate(2, 0.0, 0.9),
        candidate(3, 9.0, 0.8),
    ];
    let by = |recipe| {
        order(&rank(
            &candidates,
            recipe,
            &Question::default(),
            &Scale::default(),
            now(),
        ))
    };
    assert_eq!(by(Recipe::Hybrid), [3, 1, 2]);
    assert_eq!(by(Recipe::Words), [1, 3]);
    assert_eq!(by(Recipe::Meaning), [2, 3, 1]);
}

#[test]
fn what_is_far_and_shares_no_word_is_no_answer() {
    let candidates = [candidate(1, 0.0, 0.1), candidate(2, 1.0, 0.0)];
    let ranked = rank(
        &candidates,
        Recipe::Hybrid,
        &Question::default(),
        &Scale::default(),
        now(),
    );
    assert_eq!(order(&ranked), [2]);
}

#[test]
fn who_and_when_lift() {
    let mut said = candidate(2, 5.0, 0.5);
    said.features.speaker = Some("Ann".to_owned());
    let other = candidate(1, 5.0, 0.5);
    let question = Question::read(
        "What did Ann say?",
        &["Ann".to_owned()],
        Time::EPOCH,
        Steps::ALL,
    );
    let candidates = [other, said];
    let ranked = rank(
        &candidates,
        Recipe::Hybrid,
        &question,
        &Scale::default(),
        now(),
    );
    assert_eq!(order(&ranked), [2, 1]);
    assert_eq!(ranked[0].parts.speaker, 1.5);
    let question = Question::read(
        "what was said in January 1970",
        &[],
        Time::EPOCH,
        Steps::ALL,
    );
    let ranked = rank(
        &candidates,
        Recipe::Hybrid,
        &question,
        &Scale::default(),
        now(),
    );
    assert_eq!(ranked[0].parts.date, 1.75);
}

#[test]
fn equals_come_newest_first() {
    let daily = |seq: u64, meaning: f32| {
        let mut daily = candidate(seq, 5.0, meaning);
        daily.features.created = Time::EPOCH.plus_days(seq as i64);
        daily
    };
    let candidates = [daily(1, 0.52), daily(3, 0.5), daily(2, 0.51), daily(4, 0.1)];
    let scale = Scale::default();
    let ranked = rank(
        &candidates,
        Recipe::Hybrid,
        &Question::default(),
        &scale,
        now(),
    );
    assert_eq!(order(&ranked), [3, 2, 1, 4], "the last is another matter");
    let scores: Vec<f32> = ranked.iter().map(|one| one.score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[test]
fn nothing_is_known_unless_a_hit_is_an_answer() {
    let scale = Scale::default();
    let shown = |candidates: &[Candidate], least| {
        let question = Question::default();
        let ranked = rank(candidates, Recipe::Hybrid, &question, &scale, now());
        order(&known(ranked, least))
    };
    let (far, near) = (candidate(1, 0.5, 0.2), candidate(2, 9.0, 0.6));
    assert_eq!(shown(std::slice::from_ref(&far), None), [0; 0]);
    assert_eq!(shown(std::slice::from_ref(&far), Some(0.0)), [1]);
    assert_eq!(shown(&[far.clone(), near.clone()], None), [2]);
    assert_eq!(shown(&[far, near], Some(0.0)), [2, 1]);
}

proptest! {
    /// However old and unimportant, what matches clearly better stays on top.
    #[test]
    fn recency_and_importance_never_bury_a_clear_winner(
        words in 1.0_f32..50.0,
        meaning in 0.25_f32..1.0,
        days in 0_i64..4000,
        importance in 0.0_f32..1.0,
    ) {
        let mut winner = candidate(1, words, meaning);
        winner.features.created = now().plus_days(-days);
        let mut rival = candidate(2, words * 0.7, meaning * 0.7);
        rival.features.created = now();
        rival.features.importance = importance;
        let ranked = rank(&[rival, winner], Recipe::Hybrid, &Question::default(), &Scale::default(), now());
        prop_assert_eq!(order(&ranked), vec![1, 2]);
    }

    /// A record that matches less than all others changes nothing about their order.
    #[test]
    fn an_unrelated_record_changes_nothing(
        scores in prop::collection::vec((0.1_f32..20.0, 0.2_f32..1.0), 1..20),
    ) {
        let candidates: Vec<Candidate> = (1..)
            .zip(&scores)
            .map(|(seq, (words, meaning))| candidate(seq, *words, *meaning))
            .collect();
        let before = order(&rank(&candidates, Recipe::Hybrid, &Question::default(), &Scale::default(), now()));
        let mut more = candidates;
        more.push(candidate(99, 0.0, 0.01));
        let after = order(&rank(&more, Recipe::Hybrid, &Question::default(), &Scale::default(), now()));
        prop_assert_eq!(before, after);
    }
}
