//! The tokenizer of uncased BERT models: normalise, split at spaces and punctuation, then take
//! the longest known piece again and again.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Slots of the lookup table: a power of two, at least twice the largest vocabulary.
const SLOTS: usize = 1 << 16;
const MAX_PIECES: usize = SLOTS / 2;
/// A word with more characters has no pieces.
const MAX_WORD_CHARS: usize = 100;
const CONTINUATION: &str = "##";

/// The pieces a text can be made of; the line of a piece is its id.
///
/// The text of the vocabulary is not copied: the table holds ids, and a lookup compares with
/// the line itself. Building it takes under a millisecond, so a command that embeds one query
/// does not wait for it.
pub(super) struct Vocabulary<'a> {
    lines: Vec<&'a str>,
    /// Id + 1 at the slot of its hash or after it; 0 is an empty slot.
    slots: Vec<u32>,
    /// Stands for a word that no pieces make up; without it such a word is left out.
    unknown: Option<u32>,
}

impl<'a> Vocabulary<'a> {
    /// One piece per line. `None` where there are none, or more than the table is made for.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() || lines.len() > MAX_PIECES {
            return None;
        }
        let mut slots = vec![0; SLOTS];
        for (line, id) in lines.iter().zip(1u32..) {
            let (word, continues) = piece_of(line);
            let free = probe(word, continues).find(|&at| slots.get(at) == Some(&0))?;
            *slots.get_mut(free)? = id;
        }
        Some(Self {
            lines,
            slots,
            unknown: None,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The id of a whole line, such as `[CLS]`.
    #[cfg(any(feature = "minilm", feature = "crossencoder", test))]
    pub(super) fn id(&self, line: &str) -> Option<u32> {
        let (word, continues) = piece_of(line);
        self.find(word, continues)
    }

    /// The id of a word that is one piece.
    pub(super) fn whole_word(&self, word: &str) -> Option<u32> {
        self.find(word, false)
    }

    pub(super) fn line(&self, id: u16) -> Option<&'a str> {
        self.lines.get(usize::from(id)).copied()
    }

    fn find(&self, word: &str, continues: bool) -> Option<u32> {
        for at in probe(word, continues) {
            let id = self.slots.get(at)?.checked_sub(1)?;
            if self.lines.get(id as usize).map(|line| piece_of(line)) == Some((word, continues)) {
                return Some(id);
            }
        }
        None
    }

    /// Lets the piece `[UNK]` stand for words that no pieces make up, as encoders expect.
    #[cfg(any(feature = "minilm", feature = "crossencoder", test))]
    pub(super) fn with_unknown(mut self) -> Self {
        self.unknown = self.id("[UNK]");
        self
    }

    /// The first `max` pieces of `text`.
    pub(super) fn pieces(&self, text: &str, max: usize) -> Vec<u32> {
        let mut out = Vec::with_capacity(max.min(text.len() / 3 + 4));
        for chunk in text.split_whitespace() {
            if out.len() >= max {
                break;
            }
            if chunk.bytes().all(|b| b.is_ascii_graphic()) {
                self.words_of(&chunk.to_ascii_lowercase(), &mut out);
            } else {
                self.words_of(&normalise(chunk), &mut out);
            }
        }
        out.truncate(max);
        out
    }

    /// Splits off punctuation and Chinese characters, each a word of its own.
    fn words_of(&self, text: &str, out: &mut Vec<u32>) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            if is_punctuation(c) || is_chinese(c) {
                let end = at + c.len_utf8();
                self.word(text.get(start..at).unwrap_or_default(), out);
                self.word(text.get(at..end).unwrap_or_default(), out);
                start = end;
            }
        }
        self.word(text.get(start..).unwrap_or_default(), out);
    }

    /// The longest known piece, then the longest that continues it, to the end of the word.
    fn word(&self, word: &str, out: &mut Vec<u32>) {
        if word.len() > MAX_WORD_CHARS && word.chars().count() > MAX_WORD_CHARS {
            return out.extend(self.unknown);
        }
        let known = out.len();
        let mut rest = word;
        while !rest.is_empty() {
            let Some((id, len)) = self.longest(rest, out.len() > known) else {
                out.truncate(known);
                return out.extend(self.unknown);
            };
            out.push(id);
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    fn longest(&self, rest: &str, continues: bool) -> Option<(u32, usize)> {
        let mut end = rest.len();
        while end > 0 {
            if let Some(id) = rest
                .get(..end)
                .and_then(|piece| self.find(piece, continues))
            {
                return Some((id, end));
            }
            end = rest.floor_char_boundary(end - 1);
        }
        None
    }
}

fn piece_of(line: &str) -> (&str, bool) {
    line.strip_prefix(CONTINUATION)
        .filter(|p| !p.is_empty())
        .map_or((line, false), |p| (p, true))
}

/// The slots where a piece may be, the likeliest first.
fn probe(word: &str, continues: bool) -> impl Iterator<Item = usize> {
    let seed = 0xcbf2_9ce4_8422_2325 ^ u64::from(continues);
    let hash = word.bytes().fold(seed, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let start = (hash ^ hash >> 29) as usize;
    (0..SLOTS).map(move |step| start.wrapping_add(step) % SLOTS)
}

/// Lower case, without accents and invisible characters.
fn normalise(chunk: &str) -> String {
    chunk
        .chars()
        .filter(|&c| !is_removed(c))
        .nfd()
        .filter(|c| c.general_category() != GeneralCategory::NonspacingMark)
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_removed(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    c == '\u{fffd}' || matches!(c.general_category(), Control | Format | PrivateUse)
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The blocks that BERT splits into characters; kana and hangul are not among them.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b81f}' | '\u{2b820}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: &str =
        "[UNK]\n[CLS]\nun\n##known\n##know\n##n\nhello\n,\nnaive\n語\n##\n#\ntoken";

    fn pieces(text: &str) -> Vec<u32> {
        Vocabulary::parse(VOCABULARY).unwrap().pieces(text, 512)
    }

    #[test]
    fn takes_the_longest_piece_first() {
        assert_eq!(pieces("unknown"), [2, 3]);
        assert_eq!(pieces("unknow unknownn"), [2, 4, 2, 3, 5]);
    }

    #[test]
    fn a_word_with_an_unknown_piece_is_left_out_whole() {
        assert_eq!(pieces("unknownx hello"), [6]);
        assert_eq!(pieces("known"), [] as [u32; 0]);
        assert_eq!(pieces(&"un".repeat(60)), [] as [u32; 0]);
        let marked = Vocabulary::parse(VOCABULARY).unwrap().with_unknown();
        assert_eq!(marked.pieces("unknownx hello 😀 ", 512), [0, 6, 0]);
        assert_eq!(marked.pieces(&"un".repeat(60), 512), [0]);
    }

    #[test]
    fn normalises_as_bert_does() {
        assert_eq!(pieces("HELLO,NAÏVE\0 he\u{200d}llo"), [6, 7, 8, 6]);
        assert_eq!(pieces("語語hello"), [9, 9, 6]);
        assert_eq!(pieces("##"), [11, 11]);
    }

    #[test]
    fn stops_at_the_maximum() {
        let vocabulary = Vocabulary::parse(VOCABULARY).unwrap();
        assert_eq!(vocabulary.pieces("unknown unknown", 3), [2, 3, 2]);
        assert_eq!(vocabulary.id("[CLS]"), Some(1));
        assert_eq!(vocabulary.id("[SEP]"), None);
    }

    #[test]
    fn refuses_a_vocabulary_it_has_no_room_for() {
        assert!(Vocabulary::parse("").is_none());
        assert!(Vocabulary::parse(&"a\n".repeat(MAX_PIECES + 1)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_at_most_the_maximum(text: String, max in 0usize..20) {
            let vocabulary = Vocabulary::parse(VOCABULARY).unwrap();
            let pieces = vocabulary.pieces(&text, max);
            proptest::prop_assert!(pieces.len() <= max);
            proptest::prop_assert!(pieces.iter().all(|&id| (id as usize) < vocabulary.len()));
        }
    }
}
