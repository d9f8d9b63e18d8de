use mnemon_core::Message;
use mnemon_core::window::{Settings, estimate, is_paired, tokens};
use mnemon_testkit::talks::{Talk, is_full};

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
        if !wait(window.compress_if_needed(&ctx())).unwrap().is_empty() {
            compressed += 1;
        }
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
