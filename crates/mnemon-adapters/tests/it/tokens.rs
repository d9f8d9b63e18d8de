//! The bound against the vocabularies it must never fall below.

use mnemon_adapters::tokens::counter;
use mnemon_core::budget::{Bound, Counter, Family};
use mnemon_testkit::texts::mixed;
use proptest::prelude::*;

/// The vocabularies that the bound was made from.
fn vocabularies() -> [(&'static str, &'static tiktoken_rs::CoreBPE); 2] {
    [
        ("o200k", tiktoken_rs::o200k_base_singleton()),
        ("cl100k", tiktoken_rs::cl100k_base_singleton()),
    ]
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let bound = Bound.count(text);
    for (name, vocabulary) in vocabularies() {
        let exact = vocabulary.count_ordinary(text);
        prop_assert!(
            exact <= bound,
            "{name} has {exact} tokens, the bound says {bound}: {text:?}"
        );
    }
    prop_assert!(bound <= text.len(), "more than bytes: {text:?}");
    Ok(())
}

fn same_count(text: &str) -> Result<(), TestCaseError> {
    for (family, (name, vocabulary)) in [Family::O200k, Family::Cl100k]
        .into_iter()
        .zip(vocabularies())
    {
        let count = counter(family).count(text);
        prop_assert_eq!(
            count,
            vocabulary.count_ordinary(text),
            "{}: {:?}",
            name,
            text
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_bound_holds_for_anything(text in mixed()) {
        check(&text)?;
    }

    #[test]
    fn exact_counts_equal_those_of_tiktoken(text in mixed()) {
        same_count(&text)?;
    }

    #[test]
    fn exact_counts_of_signs_equal_those_of_tiktoken(text in "[ -~\n\r\t²٣]{0,60}") {
        same_count(&text)?;
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
    assert_eq!(counter(Family::O200k).count(text), 10);
    assert_eq!(counter(Family::Cl100k).count(text), 15);
    assert_eq!(counter(Family::Bytes).count(text), text.len());
    assert_eq!(counter(Family::O200k).family(), Family::O200k);
    // A control sign of the model is text like any other.
    assert!(counter(Family::O200k).count("<|endoftext|>") > 1);
}

/// `UPDATE_TOKENS=1 cargo test -p mnemon-adapters --test it -- tokens` writes the files anew.
#[test]
fn the_token_files_hold_the_vocabularies_in_order() {
    for (name, vocabulary) in vocabularies() {
        let token = |rank| vocabulary.decode_bytes(&[rank]).ok();
        // The ranks of control tokens begin after a gap.
        let packed: Vec<u8> = (0..).map_while(token).flat_map(packed).collect();
        let path = format!("{}/assets/{name}.deflate", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_TOKENS").is_some() {
            let deflated = miniz_oxide::deflate::compress_to_vec(&packed, 10);
            std::fs::write(&path, deflated).unwrap();
        }
        let deflated = std::fs::read(&path).unwrap();
        let stored = miniz_oxide::inflate::decompress_to_vec(&deflated).unwrap();
        assert!(stored == packed, "{path} is outdated");
    }
}

fn packed(token: Vec<u8>) -> Vec<u8> {
    let length = u8::try_from(token.len()).unwrap();
    [vec![length], token].concat()
}

/// The bound must not cut a page far shorter than the model's own vocabulary would: characters
/// that fit into 2,000 tokens.
#[test]
fn a_page_is_long_in_every_script() {
    let cases = [
        ("English", include_str!("tokens/english.txt"), 8000),
        ("Vietnamese", include_str!("tokens/vietnamese.txt"), 2600),
        ("Japanese", include_str!("tokens/japanese.txt"), 1650),
    ];
    for (language, text, least) in cases {
        let fits = |count: &dyn Fn(&str) -> usize| {
            let text = text.repeat(40);
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            ends.partition_point(|end| count(&text[..*end]) <= 2000) - 1
        };
        let bound = fits(&|text| Bound.count(text));
        let [o200k, cl100k] =
            vocabularies().map(|(_, exact)| fits(&|text| exact.count_ordinary(text)));
        println!(
            "{language}: {bound} characters by the bound, {o200k} by o200k, {cl100k} by cl100k"
        );
        assert!(bound >= least, "{language}: {bound}");
        assert!(bound <= o200k.min(cl100k), "{language}: {bound}");
    }
}
