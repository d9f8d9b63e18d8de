use std::sync::Arc;

use mnemon_core::Ids;
use mnemon_core::ram::Ram;
use mnemon_engine::Memory;
use mnemon_testkit::faults::{Fault, Flaky};
use mnemon_testkit::talks::Talk;

use super::{expanded, small};
use crate::{ctx, wait};

#[test]
fn a_fault_at_any_call_leaves_the_old_or_the_new_window() {
    let (mut old, mut new) = (0, 0);
    for fault in [Fault::Before, Fault::After] {
        for call in 0.. {
            let store = Arc::new(Flaky::new(Ram::new(), 0, 0));
            let memory = Memory::builder(store.clone(), Ids::new(7)).build();
            let window = memory.window("ann", "s1").unwrap();
            let window = window.settings(small()).unwrap();
            let mut said = Vec::new();
            let mut talk = Talk::new(11, 800);
            while said.len() < 60 {
                for message in talk.round() {
                    wait(window.add_message(&ctx(), message.clone())).unwrap();
                    said.push(message);
                }
            }
            let before = wait(window.get_messages(&ctx())).unwrap();
            store.arm(call, fault);
            let done = wait(window.compress(&ctx()));
            let was_due = store.disarm();
            let after = wait(window.get_messages(&ctx())).unwrap();
            if done.is_err() && after == before {
                old += 1;
            } else {
                new += 1;
                assert!(after.len() < before.len());
            }
            assert_eq!(expanded(&window, after), said, "call {call}");
            if was_due {
                assert!(done.is_ok());
                break;
            }
        }
    }
    assert!(old > 2 && new > 2, "{old} old, {new} new");
}

#[test]
fn a_store_that_fails_is_told_in_the_words_of_the_tool() {
    let store = Arc::new(Flaky::new(Ram::new(), 0, 0));
    let memory = Memory::builder(store.clone(), Ids::new(7)).build();
    let window = memory.window("ann", "s1").unwrap();
    store.arm(0, Fault::Before);
    let said = wait(window.context_reload(&ctx(), Some("u1")));
    let said = said[0].text_content();
    assert!(
        said.starts_with("Error reloading context with UUID u1: "),
        "{said}"
    );
}
