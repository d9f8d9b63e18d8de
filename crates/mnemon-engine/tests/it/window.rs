//! The window of a conversation: nothing is lost, nothing is parted, and it gets smaller.

mod basics;
mod copies;
mod faults;
mod long;
mod meetings;
mod properties;
mod summaries;

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::window::{COMPRESS_META, Settings, paired};
use mnemon_core::{Ids, Message, Role};
use mnemon_engine::{Memory, Window};

use crate::{ctx, wait};

fn memory() -> Memory {
    Memory::builder(Arc::new(Ram::new()), Ids::new(7)).build()
}

/// A small window, so that short conversations are too long for it.
fn small() -> Settings {
    Settings {
        msg_threshold: Some(12),
        max_token: 2000,
        token_ratio: 0.75,
        last_keep: Some(4),
        large_payload_threshold: 300,
        offload_single_preview: 40,
        min_consecutive_tool_messages: 3,
        min_compression_token_threshold: 60,
        ..Settings::default()
    }
}

/// Checks that nothing is missing. Calls that nobody answered are told as text.
fn assert_said(all: &[Message], said: &[Message], seed: u64) {
    assert_eq!(all.len(), said.len(), "seed {seed}: something was lost");
    let (told, _) = paired(said.to_vec());
    for ((one, said), told) in all.iter().zip(said).zip(&told) {
        assert!(one == said || one == told, "seed {seed}: {one:?}");
    }
}

fn say(role: Role, text: &str) -> Message {
    Message::text("", role, text)
}

/// Everything that the messages stand for, by asking for what was replaced until nothing is.
fn expanded(window: &Window<'_>, messages: Vec<Message>) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    for message in messages {
        let meta = message.metadata.get(COMPRESS_META);
        let uuid = meta.and_then(|meta| meta["offloaduuid"].as_str());
        let Some(uuid) = uuid else {
            all.push(message);
            continue;
        };
        let there = wait(window.reload(&ctx(), uuid)).unwrap();
        let mut inner = expanded(window, there.expect("what a tag names can be reloaded"));
        // With a round its question is kept, which is still in the window.
        if all.last() == inner.first() {
            inner.remove(0);
        }
        all.extend(inner);
    }
    all
}
