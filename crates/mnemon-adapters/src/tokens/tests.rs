//! The bound against the vocabularies it must never fall below.

use proptest::prelude::*;

use super::*;

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

/// Pieces that tokenizers cut in different ways.
const PIECES: &[&str] = &[
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    "'s",
    "'S",
    "'ll",
    "'re",
    "'",
    "don't",
    "’s",
    "/",
    "//",
    "/*",
    "\n//",
    "!",
    "!!",
    "=",
    "==>",
    "<",
    "</",
    ">",
    "&amp;",
    "\"",
    "\\n",
    "\\\"",
    "{",
    "}",
    "[",
    "]",
    "_",
    "__",
    "#",
    "##",
    "`",
    "```",
    "…",
    "—",
    "“",
    "•",
    "1",
    "12",
    "2026",
    "12345678",
    "²",
    "½",
    "Ⅷ",
    "٣",
    "the",
    "The",
    "THE",
    "people",
    "memory",
    "fooBar",
    "HTTPServer",
    "xq",
    "zjx",
    "Å",
    "é",
    "e\u{301}",
    "\u{301}",
    "ß",
    "ſ",
    "İ",
    "ữ",
    "người",
    "Việt",
    "đường",
    "記憶",
    "は",
    "カタカナ",
    "ー",
    "。",
    "、",
    "漢",
    "한국어",
    "ไทย",
    "हिन्दी",
    "עברית",
    "العربية",
    "привет",
    "Ω",
    "😀",
    "👩‍👩‍👧",
    "🇻🇳",
    "🏽",
    "\u{fe0f}",
    "\u{200d}",
    "\u{feff}",
    "\0",
    "\x1b",
    "\x7f",
    "A",
    "a",
    "B",
    "z",
    "<|endoftext|>",
];

/// Text of all scripts, glued together anyhow.
fn mixed() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => proptest::sample::select(PIECES).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        2 => "[a-z]{1,12}",
        1 => "[A-Za-z]{1,9}",
        1 => "[0-9]{1,9}",
        1 => "[!-/:-@\\[-`{-~]{1,5}",
        1 => "[À-ỹ]{1,4}",
        1 => "[ぁ-ヿ一-龥]{1,4}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
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
