//! The bound against the vocabularies it must never fall below.

use mnemon_adapters::tokens::counter;
use mnemon_core::budget::{Bound, Counter, Family};
use mnemon_testkit::texts::mixed;
use proptest::prelude::*;

const EXACT: [Family; 4] = [Family::O200k, Family::Cl100k, Family::P50k, Family::R50k];

fn check(text: &str) -> Result<(), TestCaseError> {
    let bound = Bound.count(text);
    for family in EXACT {
        let exact = counter(family).count(text);
        prop_assert!(
            exact <= bound,
            "{family} has {exact} tokens, the bound says {bound}: {text:?}"
        );
    }
    prop_assert!(bound <= text.len(), "more than bytes: {text:?}");
    Ok(())
}

proptest! {
    #[test]
    fn the_bound_holds_for_anything(text in mixed()) {
        check(&text)?;
    }

    #[test]
    fn the_bound_holds_for_letters(text in "[a-zA-Z' ]{0,60}") {
        check(&text)?;
    }

    #[test]
    fn the_bound_holds_for_signs_and_digits(text in "[ -~\n\t²٣]{0,60}") {
        check(&text)?;
    }
}

#[test]
fn the_bound_holds_for_every_character() {
    for c in (0..=0x2ffffu32).filter_map(char::from_u32) {
        let text = format!("{c}{c} {c}");
        check(&text).unwrap();
    }
}

#[test]
fn exact_counts_are_those_of_the_vocabularies() {
    let text = "Ann prefers green tea, người Việt uống trà.";
    let counts = EXACT.map(|family| counter(family).count(text));
    assert_eq!(counts, [10, 15, 25, 25]);
    assert_eq!(counter(Family::Bytes).count(text), text.len());
    assert_eq!(counter(Family::O200k).family(), Family::O200k);
    // A control sign of the model is text like any other.
    assert!(counter(Family::O200k).count("<|endoftext|>") > 1);
}
