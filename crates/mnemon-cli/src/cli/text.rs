//! Text for people: clean, cut to width, in their own time zone.

use console::truncate_str;
use jiff::{Timestamp, tz::TimeZone};
use mnemon_core::{Owner, Record, Time};

/// The text with every control character but line breaks and tabs made visible: what was
/// remembered must not drive the reader's terminal.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\u{7f}' => '\u{2421}',
            // The pictures of the control characters stand in the same order as they do.
            c if c < ' ' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
            c if c.is_control() || is_bidi_override(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Characters that would show the rest of the line in another order than it is written.
fn is_bidi_override(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clean(&words.join(" "))
}

/// The text on one line of at most `width` columns; CJK characters take two.
pub(super) fn cut(text: &str, width: usize) -> String {
    // No more than this can be shown, and content may have megabytes.
    let head: String = text.chars().take(width.saturating_mul(4)).collect();
    let mut line = one_line(&head);
    let rest = text.get(head.len()..).unwrap_or_default();
    if !rest.trim().is_empty() {
        line.push_str(" …");
    }
    truncate_str(&line, width, "…").into_owned()
}

/// A page from its first sentence on: without front matter and the headings above it. A text of
/// nothing else is shown as it is.
pub(super) fn first_paragraph(page: &str) -> &str {
    let body = mnemon_core::markdown::without_front_matter(page);
    if body.len() == page.len() {
        return page;
    }
    below_headings(body)
}

/// The text without the headings that it begins with; a text of nothing else is shown as it is.
pub(super) fn below_headings(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, below)) = rest.split_once('\n') {
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        rest = below;
    }
    match rest.trim().is_empty() || rest.starts_with('#') {
        true => text,
        false => rest,
    }
}

/// The moment in the reader's time zone, to the minute.
pub(super) fn local(time: Time) -> String {
    match Timestamp::from_millisecond(time.millis()) {
        Ok(at) => {
            let at = at.to_zoned(TimeZone::system());
            at.strftime("%Y-%m-%d %H:%M").to_string()
        }
        Err(_) => time.to_string(),
    }
}

/// When something is forgotten by itself, behind what was said about it.
pub(super) fn expires(at: Option<Time>) -> String {
    let at = at.map(|at| format!(", expires {}", local(at)));
    at.unwrap_or_default()
}

/// Whose it is, in words.
pub(super) fn owner(owner: &Owner) -> String {
    let parts = owner.parts();
    let named = parts
        .iter()
        .filter_map(|(name, part)| Some((name, (*part)?)));
    let words: Vec<String> = named.map(|(name, part)| format!("{name} {part}")).collect();
    one_line(&words.join(", "))
}

/// The tags as they are often written.
pub(super) fn tags(record: &Record) -> String {
    let tags: Vec<String> = record.own_tags().map(|tag| format!("#{tag}")).collect();
    one_line(&tags.join(" "))
}

/// `1 record`, `2 records`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let stem = noun.strip_suffix('y');
    let stem = stem.filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (number, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        let counts = [(1, "entry"), (2, "entry"), (2, "day"), (0, "token")];
        let said = counts.map(|(number, noun)| count(number, noun));
        assert_eq!(said, ["1 entry", "2 entries", "2 days", "0 tokens"]);
    }

    #[test]
    fn what_was_remembered_cannot_drive_the_terminal() {
        assert_eq!(
            clean("a\x1b[31mb\x07\u{9b}\u{202e}c\n"),
            "a␛[31mb␇\u{fffd}\u{fffd}c\n"
        );
    }

    #[test]
    fn a_page_is_shown_from_its_first_sentence_on() {
        let page = "---\nversion: 1\n---\n\n# Title\n\nWe decided on tea.\n\nMore.";
        assert_eq!(first_paragraph(page), "We decided on tea.\n\nMore.");
        assert_eq!(
            first_paragraph("---\nversion: 1\n---\n# Title\n"),
            "# Title\n"
        );
        assert_eq!(first_paragraph("# No page\n\ntext"), "# No page\n\ntext");
    }

    #[test]
    fn cutting_counts_columns_not_characters() {
        assert_eq!(cut("記憶は大切です", 9), "記憶は大…");
        assert_eq!(cut("Trời đẹp\nquá", 20), "Trời đẹp quá");
        assert_eq!(cut(&"x".repeat(1_000_000), 5), "xxxx…");
        assert_eq!(cut("short\n\n", 5), "short");
    }
}
