use mnemon_core::Message;
use mnemon_core::window::{
    CompressionEvent, Settings, Strategy, estimate, is_paired, is_user, paired, tokens,
};
use mnemon_engine::Window;
use mnemon_testkit::talks::{Dice, Talk, seeds};

use super::{assert_said, expanded, memory};
use crate::{ctx, wait};

fn settings(dice: &mut Dice) -> Settings {
    let last_keep = dice.below(8);
    Settings {
        msg_threshold: Some(last_keep + 2 + dice.below(30)),
        max_token: 300 + dice.below(6000),
        token_ratio: 0.2 + dice.below(8) as f64 / 10.0,
        last_keep: Some(last_keep),
        large_payload_threshold: 1 + dice.below(600),
        offload_single_preview: dice.below(250),
        min_consecutive_tool_messages: dice.below(8),
        current_round_compression_ratio: 0.1 + dice.below(9) as f64 / 10.0,
        min_compression_token_threshold: dice.below(400),
    }
}

struct Checked<'a> {
    window: Window<'a>,
    settings: Settings,
    said: Vec<Message>,
    seed: u64,
}

impl Checked<'_> {
    fn messages(&self) -> Vec<Message> {
        wait(self.window.get_messages(&ctx())).unwrap()
    }

    /// One compression, and all that must hold after it. Whether it changed anything.
    fn compress(&self) -> bool {
        let seed = self.seed;
        let before = self.messages();
        let events = wait(self.window.compress(&ctx())).unwrap();
        let after = self.messages();
        if events.is_empty() {
            assert_eq!(before, after, "seed {seed}: nothing was said to change");
            return false;
        }
        let sizes = (tokens(&before, &estimate), tokens(&after, &estimate));
        assert!(
            sizes.1 < sizes.0,
            "seed {seed}: it grew, {sizes:?} {events:?}"
        );
        assert!(is_paired(&after), "seed {seed}: a result lost its call");
        let changed = paired(after.clone()).1;
        assert_eq!(changed, 0, "seed {seed}: a call without its result");
        let last_user = before.iter().rfind(|m| is_user(m));
        assert_eq!(last_user, after.iter().rfind(|m| is_user(m)), "seed {seed}");
        self.protected(&events, &before, &after);
        let all = expanded(&self.window, after);
        assert_said(&all, &self.said, seed);
        true
    }

    fn protected(&self, events: &[CompressionEvent], before: &[Message], after: &[Message]) {
        let strategy: Strategy = events[0].event_type.parse().unwrap();
        let keep = match strategy {
            Strategy::ToolInvocations | Strategy::LargeProtected | Strategy::History => {
                self.settings.last_keep()
            }
            _ => 0,
        };
        let keep = keep.min(before.len());
        let (before, after) = (
            &before[before.len() - keep..],
            &after[after.len().saturating_sub(keep)..],
        );
        assert_eq!(before, after, "seed {}: {strategy}", self.seed);
    }
}

fn check(seed: u64) -> Vec<String> {
    let mut dice = Dice::new(seed ^ 0xabcd);
    let settings = settings(&mut dice);
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let mut checked = Checked {
        window: window.settings(settings).unwrap(),
        settings,
        said: Vec::new(),
        seed,
    };
    let mut talk = Talk::new(seed, 800);
    for _ in 0..2 + dice.below(9) {
        for message in talk.round() {
            wait(checked.window.add_message(&ctx(), message.clone())).unwrap();
            checked.said.push(message);
            // In the midst of calls as well.
            if dice.once_in(6) {
                checked.compress();
            }
        }
    }
    let mut steps = 0;
    while checked.compress() {
        steps += 1;
        assert!(steps < 500, "seed {seed}: it does not end");
    }
    let events = wait(checked.window.events(&ctx())).unwrap();
    events.into_iter().map(|event| event.event_type).collect()
}

/// 1000 conversations in the full test.
#[test]
fn every_compression_keeps_the_invariants() {
    let mut used = std::collections::BTreeSet::new();
    let seeds = seeds(100, 1000);
    for seed in seeds.clone() {
        used.extend(check(seed));
    }
    // A few conversations need not have everything, and pages are only written in projects.
    for strategy in Strategy::ALL
        .iter()
        .filter(|_| seeds.end - seeds.start >= 100)
        .filter(|strategy| **strategy != Strategy::HistoryPage)
    {
        assert!(
            used.contains(strategy.as_str()),
            "{strategy} was never used"
        );
    }
}

/// Messages are added, forgotten, taken out of the window and folded in any order: a model is shown
/// no result without its call, and no call without its result but those that may still be answered.
#[test]
fn calls_and_results_stay_together_whatever_is_removed() {
    for seed in seeds(40, 400) {
        let mut dice = Dice::new(seed ^ 0x77);
        let memory = memory();
        let settings = settings(&mut dice);
        let window = memory.window("ann", "s1").unwrap();
        let window = window.settings(settings).unwrap();
        let mut talk = Talk::new(seed, 400);
        let mut ids = Vec::new();
        for _ in 0..12 {
            for message in talk.round() {
                let added = wait(window.add_message(&ctx(), message)).unwrap();
                ids.extend(added.items.into_iter().map(|item| item.id));
                let at = dice.below(ids.len());
                match dice.below(8) {
                    0 => drop(wait(window.compress(&ctx())).unwrap()),
                    1 => {
                        let index = i64::try_from(at).unwrap();
                        wait(window.delete_message(&ctx(), index)).unwrap();
                    }
                    2 => {
                        let id = ids.swap_remove(at);
                        wait(memory.records().forget(&ctx(), &[id], None)).unwrap();
                    }
                    _ => {}
                }
                let shown = wait(window.get_messages(&ctx())).unwrap();
                assert!(is_paired(&shown), "seed {seed}: a result without its call");
                assert_eq!(paired(shown).1, 0, "seed {seed}: a call without its result");
            }
        }
    }
}
