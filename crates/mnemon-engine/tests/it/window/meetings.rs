//! What a window still tells after it was folded several times, without a model.

use mnemon_core::Message;
use mnemon_core::window::{Settings, estimate, is_compressed, message_tokens, tokens};
use mnemon_testkit::meetings::{HELD_OUT, Meeting, Phrases, Score, TUNED, meeting, score};
use mnemon_testkit::talks::seeds;

use super::memory;
use crate::{ctx, wait};

/// Default settings, but for a window that holds a part of the talk only.
fn settings() -> Settings {
    Settings {
        max_token: 12_000,
        ..Settings::default()
    }
}

/// The score of a talk at its end, and how often its window was folded. It is never folded before
/// it has reached three fifths of its limit.
fn folded(meeting: &Meeting, seed: u64) -> (Score, usize) {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let window = window.settings(settings()).unwrap();
    let (mut folds, mut size) = (0, 0);
    let limit = settings().token_limit();
    for message in &meeting.messages {
        wait(window.add_message(&ctx(), message.clone())).unwrap();
        size += message_tokens(message, &estimate);
        if !wait(window.compress_if_needed(&ctx())).unwrap().is_empty() {
            assert!(size * 10 >= limit * 6, "seed {seed}: folded at {size}");
            folds += 1;
            size = tokens(&wait(window.get_messages(&ctx())).unwrap(), &estimate);
        }
    }
    let shown = wait(window.get_messages(&ctx())).unwrap();
    let (folded, hot): (Vec<Message>, Vec<Message>) = shown.into_iter().partition(is_compressed);
    let hot = hot.iter().map(|m| {
        let who = m.name.as_deref().unwrap_or_default();
        format!("{who}: {}", m.text_content())
    });
    let folded: Vec<String> = folded.iter().map(Message::text_content).collect();
    (score(meeting, &hot.collect::<Vec<_>>(), &folded), folds)
}

/// Talks of fixed seeds; `./scripts/test soak` draws fresh ones, `MNEMON_TEST_FULL=1` takes more of them.
fn all(phrases: &Phrases) -> Score {
    let (mut all, mut folds) = (Score::default(), 0);
    let seeds = seeds(4, 50);
    for seed in seeds.clone() {
        let (one, times) = folded(&meeting(seed, 60, phrases), seed);
        all += one;
        folds += times;
    }
    assert!(folds as u64 > seeds.end - seeds.start, "{folds} folds");
    all
}

#[test]
fn decisions_with_their_owners_survive_folding() {
    let tuned = all(&TUNED);
    println!("{tuned}");
    assert!(tuned.kept * 100 >= tuned.decisions * 90, "{tuned}");
    assert!(tuned.stale * 100 <= tuned.replaced * 5, "{tuned}");
    assert_eq!((tuned.shown_open, tuned.small_talk), (0, 0), "{tuned}");
}

#[test]
fn most_do_in_words_that_no_cue_was_tuned_on() {
    let held_out = all(&HELD_OUT);
    println!("{held_out}");
    assert!(held_out.kept * 100 >= held_out.decisions * 85, "{held_out}");
    assert!(held_out.stale * 100 <= held_out.replaced * 10, "{held_out}");
    assert_eq!(held_out.shown_open, 0, "{held_out}");
}
