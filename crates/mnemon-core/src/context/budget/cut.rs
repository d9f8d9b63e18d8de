//! Where a text that is too long may be cut.

/// The longest beginning that fits and ends with a line or a sentence; with a word, if the text
/// has nothing longer. Nothing beyond `most_bytes` is looked at.
pub(super) fn beginning(
    text: &str,
    most_bytes: usize,
    fits: impl Fn(&str) -> bool,
) -> Option<&str> {
    let head = text.get(..text.floor_char_boundary(most_bytes))?;
    let sentences = ends(head, ends_sentence);
    longest(head, &sentences, &fits).or_else(|| longest(head, &ends(head, ends_word), &fits))
}

/// The longest that fits. A longer text has more tokens but for a hair, so halving finds it.
fn longest<'a>(text: &'a str, ends: &[usize], fits: &impl Fn(&str) -> bool) -> Option<&'a str> {
    let beginning = |end: &usize| text.get(..*end).map(str::trim_end);
    let count = ends.partition_point(|end| beginning(end).is_some_and(fits));
    let end = ends.get(count.checked_sub(1)?)?;
    beginning(end).filter(|text| !text.is_empty())
}

/// The places after which the text may end, ascending.
fn ends(text: &str, is_end: impl Fn(char, char) -> bool) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if let Some((_, next)) = chars.peek()
            && is_end(c, *next)
        {
            ends.push(at + c.len_utf8());
        }
    }
    ends
}

fn ends_sentence(c: char, next: char) -> bool {
    let western = matches!(c, '.' | '!' | '?' | '…' | '।') && next.is_whitespace();
    // Where no spaces are written the sign alone ends the sentence.
    western || next == '\n' || matches!(c, '。' | '！' | '？')
}

fn ends_word(c: char, next: char) -> bool {
    !c.is_whitespace() && next.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, most: usize) -> Option<&str> {
        beginning(text, 1000, |head| head.chars().count() <= most)
    }

    #[test]
    fn a_text_is_cut_where_a_sentence_or_a_line_ends() {
        assert_eq!(cut("One. Two is 2.5. Three.", 20), Some("One. Two is 2.5."));
        assert_eq!(cut("fn a() {\n  b();\n}", 12), Some("fn a() {"));
        assert_eq!(cut("記憶は。大切です。本当に。", 8), Some("記憶は。"));
        assert_eq!(cut("One. Two.", 3), None);
        assert_eq!(cut("no sentence in here at all", 12), Some("no sentence"));
        assert_eq!(cut("Unbreakable", 5), None);
        assert_eq!(cut("", 5), None);
    }

    #[test]
    fn no_more_is_looked_at_than_was_said() {
        assert_eq!(beginning("äöü äöü äöü.", 9, |_| true), Some("äöü"));
    }
}
