//! What a note looks like to those who use it: its summary, its preview, its score in percent.
//!
//! Lengths are UTF-16 units, as in the notes document: a file that its program wrote and one that
//! we wrote are cut at the same places. No character is ever cut in two.

use std::borrow::Cow;

/// The length of a summary unless somebody chooses another. A note that keeps no summary of its
/// own has the one that this length gives.
pub const SUMMARY_CHARS: usize = 1200;

/// What stands at the end of a content that was too long.
pub const TRUNCATED: &str = "... [truncated]";

/// What stands at the end of a summary or a preview that does not show all.
const MORE: &str = "...";

/// How long the text is.
pub fn length(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.chars().map(char::len_utf16).sum(),
    }
}

/// Where the text ends if it may have so many units; `None` if all of it fits.
fn cut_at(text: &str, most: usize) -> Option<usize> {
    if text.len() <= most {
        return None;
    }
    let mut units = 0;
    for (at, char) in text.char_indices() {
        units += char.len_utf16();
        if units > most {
            return Some(at);
        }
    }
    None
}

/// The first units of a text.
pub fn head(text: &str, most: usize) -> &str {
    let end = cut_at(text, most).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// The content itself if it is short enough, otherwise its beginning: cut at the last space if
/// that lies in the last fifth, with `...` after it.
pub fn summary(content: &str, most: usize) -> Cow<'_, str> {
    let Some(cut) = cut_at(content, most) else {
        return Cow::Borrowed(content);
    };
    let beginning = content.get(..cut).unwrap_or(content);
    let space = beginning.rfind(' ');
    let space = space.and_then(|at| beginning.get(..at));
    let told = space.filter(|told| length(told) * 5 > most * 4);
    Cow::Owned(format!("{}{MORE}", told.unwrap_or(beginning)))
}

/// The content, or as much of it as is kept, with a mark that says so.
pub fn truncate(content: &str, most: usize) -> Cow<'_, str> {
    shorten(content, most, TRUNCATED)
}

/// The content, or its beginning with `...`.
pub fn preview(content: &str, most: usize) -> Cow<'_, str> {
    shorten(content, most, MORE)
}

fn shorten<'a>(text: &'a str, most: usize, mark: &str) -> Cow<'a, str> {
    match cut_at(text, most) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(format!("{}{mark}", head(text, most))),
    }
}

/// A score from 0 to 1 in percent with one decimal; what lies exactly between two goes up.
pub fn percent(score: f64) -> String {
    let percent = score * 100.0;
    // Only quarters lie exactly between two tenths, and Rust would round those to the even one.
    let quarters = percent * 4.0;
    if quarters % 2.0 == 1.0 {
        return format!("{:.1}%", (percent * 10.0 + 0.5).floor() / 10.0);
    }
    format!("{percent:.1}%")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn summaries_follow_the_document() {
        assert_eq!(summary(" short ", SUMMARY_CHARS), " short ");
        assert_eq!(summary(&"A".repeat(1200), SUMMARY_CHARS), "A".repeat(1200));
        let long = "A".repeat(2000);
        assert_eq!(
            summary(&long, SUMMARY_CHARS),
            format!("{}...", "A".repeat(1200))
        );
        let late_space = format!("{} {}", "a".repeat(1000), "b".repeat(1000));
        assert_eq!(
            summary(&late_space, SUMMARY_CHARS),
            format!("{}...", "a".repeat(1000))
        );
        // A space at exactly four fifths is too early: the rule says strictly more.
        let early_space = format!("{} {}", "a".repeat(960), "b".repeat(1000));
        assert_eq!(summary(&early_space, SUMMARY_CHARS).len(), 1203);
        let just_late = format!("{} {}", "a".repeat(961), "b".repeat(1000));
        assert_eq!(summary(&just_late, SUMMARY_CHARS).len(), 964);
    }

    #[test]
    fn lengths_are_utf_16_units() {
        assert_eq!(length("añ漢😀"), 5);
        assert_eq!(summary("漢字かな", 4), "漢字かな");
        assert_eq!(summary("漢字かなX", 4), "漢字かな...");
        assert_eq!(head("a😀b", 2), "a", "no character is cut in two");
        assert_eq!(head("a😀b", 3), "a😀");
    }

    #[test]
    fn what_is_too_long_says_so() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdefg", 6), "abcdef... [truncated]");
        assert_eq!(preview("abcdefg", 6), "abcdef...");
        assert_eq!(preview("", 6), "");
    }

    #[test]
    fn percent_rounds_ties_up() {
        let cases = [
            (0.85, "85.0%"),
            (0.1225, "12.3%"),
            (0.1275, "12.8%"),
            (0.0025, "0.3%"),
            (0.1224, "12.2%"),
            (1.0, "100.0%"),
            (0.3, "30.0%"),
        ];
        for (score, text) in cases {
            assert_eq!(percent(score), text, "{score}");
        }
    }

    proptest! {
        #[test]
        fn a_summary_is_a_beginning_and_fits(text in any::<String>(), most in 1_usize..40) {
            let made = summary(&text, most);
            if length(&text) <= most {
                prop_assert_eq!(&*made, text.as_str());
            } else {
                let told = made.strip_suffix(MORE).unwrap();
                prop_assert!(text.starts_with(told));
                prop_assert!(length(told) <= most);
            }
            let kept = truncate(&text, most);
            prop_assert!(length(&kept) <= most + TRUNCATED.len());
        }
    }
}
