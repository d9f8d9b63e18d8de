//! What a window still tells after it was folded several times, without a model.

use mnemon_core::Message;
use mnemon_core::window::{Settings, estimate, is_compressed, tokens};
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
    let mut folds = 0;
    for message in &meeting.messages {
        wait(window.add_message(&ctx(), message.clone())).unwrap();
        let shown = wait(window.get_messages(&ctx())).unwrap();
        let before = tokens(&shown, &estimate);
        if !wait(window.compress_if_needed(&ctx())).unwrap().is_empty() {
            folds += 1;
            let limit = settings().token_limit();
            assert!(before * 10 >= limit * 6, "seed {seed}: folded at {before}");
        }
    }
    let shown = wait(window.get_messages(&ctx())).unwrap();
    let (folded, hot): (Vec<Message>, Vec<Message>) = shown.into_iter().partition(is_compressed);
    let hot = hot.iter().map(|m| {
        let who = m.name.as_deref().unwrap_or_default();
        format!("{who}: {}", m.text_content())
    });
    let folded: Vec<String> = folded.iter().map(Message::text_content).collect();
    if std::env::var_os("SHOW").is_some() {
        for text in &folded {
            println!("{text}");
        }
        println!("chars {}", folded.iter().map(|t| t.len()).sum::<usize>());
        for d in &meeting.decisions {
            let one = Meeting {
                decisions: vec![d.clone()],
                ..Default::default()
            };
            let s = score(&one, &hot.clone().collect::<Vec<_>>(), &folded);
            if s.kept == 0 || s.stale > 0 {
                println!("MISS {seed} {d:?} stale {}", s.stale);
                for m in &meeting.messages {
                    let t = m.text_content();
                    if t.to_lowercase()
                        .contains(&format!("{} of the {}", d.subject[0], d.subject[1]))
                    {
                        println!("   {t}");
                    }
                }
            }
        }
    }
    (score(meeting, &hot.collect::<Vec<_>>(), &folded), folds)
}

/// Talks of fixed seeds; `./scripts/test soak` draws fresh ones, `MNEMON_TEST_FULL=1` 200 of them.
fn all(phrases: &Phrases) -> Score {
    let (mut all, mut folds) = (Score::default(), 0);
    let seeds = seeds(4, 200);
    for seed in seeds.clone() {
        let (one, times) = folded(&meeting(seed, 60, phrases), seed);
        all += one;
        folds += times;
    }
    println!("{folds} folds: {all}");
    assert!(
        folds as u64 >= 2 * (seeds.end - seeds.start),
        "{folds} folds"
    );
    all
}

#[test]
fn decisions_with_their_owners_survive_folding() {
    let tuned = all(&TUNED);
    assert!(tuned.kept * 100 >= tuned.decisions * 90, "{tuned}");
    assert!(tuned.stale * 100 <= tuned.replaced * 5, "{tuned}");
    assert_eq!((tuned.shown_open, tuned.small_talk), (0, 0), "{tuned}");
}

#[test]
fn so_they_do_in_words_that_no_cue_was_tuned_on() {
    let held_out = all(&HELD_OUT);
    println!("{held_out}");
}
