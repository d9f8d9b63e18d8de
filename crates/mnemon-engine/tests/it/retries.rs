//! A retry is harmless, and nonsense is refused.

use mnemon_core::ErrorKind;
use mnemon_engine::Draft;

use crate::{all, ctx, memory, wait};

#[test]
fn the_same_wish_under_the_same_key_is_stored_once() {
    let memory = memory();
    let wish = || vec![Draft::note("tea")];
    let first = wait(memory.records().add(&ctx(), wish(), Some("k1"))).unwrap();
    let again = wait(memory.records().add(&ctx(), wish(), Some("k1"))).unwrap();
    assert_eq!(first, again);
    assert_eq!(all(&memory).len(), 1);
    let other = wait(
        memory
            .records()
            .add(&ctx(), vec![Draft::note("rice")], Some("k1")),
    )
    .unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict, "{other}");
}

#[test]
fn what_has_already_expired_is_refused() {
    let memory = memory();
    let late = Draft {
        expires: Some(ctx().now.plus_millis(-1)),
        ..Draft::note("tea")
    };
    let refused = wait(memory.records().add(&ctx(), vec![late], None)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("is in the past"), "{refused}");
    assert!(all(&memory).is_empty());
}
