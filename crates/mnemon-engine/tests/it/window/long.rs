use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::window::{Settings, estimate, is_paired, tokens};
use mnemon_core::{Ids, Kind, Message};
use mnemon_engine::{Memory, Window};
use mnemon_testkit::meetings::{TUNED, meeting};
use mnemon_testkit::talks::{Talk, is_full, seeds};

use super::memory;
use crate::{ctx, wait};

/// 2500 messages in the full test: the window stays small, and all can be read back.
#[test]
fn a_long_conversation_stays_within_its_limit() {
    let most = if is_full() { 2500 } else { 1000 };
    let settings = Settings {
        max_token: 16_000,
        ..Settings::default()
    };
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let window = window.settings(settings).unwrap();
    let mut talk = Talk::new(5, 3000);
    let mut said: Vec<Message> = Vec::new();
    let mut compressed = 0;
    while said.len() < most {
        for message in talk.round() {
            wait(window.add_message(&ctx(), message.clone())).unwrap();
            said.push(message);
        }
        if wait(window.compress_if_needed(&ctx())).unwrap().is_empty() {
            continue;
        }
        compressed += 1;
        let now = wait(window.get_messages(&ctx())).unwrap();
        assert!(tokens(&now, &estimate) < settings.max_token);
        assert!(is_paired(&now));
    }
    assert!(compressed > most / 200, "{compressed}");
    let mut read = Vec::new();
    let mut after = None;
    loop {
        let (page, next) = wait(window.original(&ctx(), after, 1000)).unwrap();
        read.extend(page);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(read.len(), said.len());
    assert!(read == said, "an original message is not what was said");
}

/// What a fold would say, but for the uuids that are drawn for it.
fn summaries(window: &Window<'_>) -> Vec<String> {
    let previews = wait(window.preview(&ctx())).unwrap();
    let lines = previews.iter().flat_map(|preview| preview.text.lines());
    let lines = lines.filter(|line| !line.contains("reload: ") && !line.contains("uuid="));
    lines.map(str::to_owned).collect()
}

/// A message is read once, however often its conversation is folded, and a process that has read
/// nothing yet says the same; also after a message was changed or forgotten.
#[test]
fn a_fold_says_the_same_as_one_from_scratch() {
    let (mut folds, seeds) = (0, seeds(2, 10));
    for seed in seeds.clone() {
        let store = Arc::new(Ram::new());
        let memory = Memory::builder(store.clone(), Ids::new(7)).build();
        let settings = Settings {
            max_token: 3000,
            ..Settings::default()
        };
        let open = |memory: &Memory| -> Vec<String> {
            let window = memory.window("ann", "s1").unwrap();
            summaries(&window.settings(settings).unwrap())
        };
        for (at, message) in meeting(seed, 12, &TUNED).messages.into_iter().enumerate() {
            let window = memory.window("ann", "s1").unwrap();
            let window = window.settings(settings).unwrap();
            wait(window.add_message(&ctx(), message)).unwrap();
            if at % 20 == 19 {
                change_or_forget(&memory, at);
            }
            if wait(window.show(&ctx())).unwrap().due {
                let scratch = Memory::builder(store.clone(), Ids::new(9)).build();
                assert_eq!(open(&memory), open(&scratch), "seed {seed}");
            }
            folds += wait(window.compress_if_needed(&ctx())).unwrap().len();
        }
    }
    assert!(folds as u64 > seeds.end - seeds.start, "{folds} folds");
}

/// Changes or forgets one of the first messages.
fn change_or_forget(memory: &Memory, at: usize) {
    let filter = mnemon_core::Filter {
        kinds: vec![Kind::Message],
        ..mnemon_core::Filter::all_of_tenant()
    };
    let scan = mnemon_core::Scan {
        order: mnemon_core::Order::Oldest,
        ..mnemon_core::Scan::new(filter, at / 2)
    };
    let records = memory.records();
    let mut record = wait(records.list(&ctx(), &scan))
        .unwrap()
        .records
        .pop()
        .unwrap();
    if at % 40 == 39 {
        wait(records.forget(&ctx(), &[record.id], None)).unwrap();
        return;
    }
    let text = format!("We decided that the door number {at} is blue.");
    record.body.as_mut().unwrap()["content"] = serde_json::json!([{"type": "text", "text": text}]);
    record.content = text;
    wait(records.update(&ctx(), record)).unwrap();
}
