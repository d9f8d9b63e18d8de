//! Who speaks in the records of a tenant, by the first word of the name.
//!
//! A query names a speaker by the whole name or by its first word. So the speakers whom it can
//! name are looked up by its words, however many speakers there are.

use std::collections::BTreeSet;

use crate::model::Record;

/// Words of a query that are looked up at the most.
const LOOKED_UP: usize = 10_000;
/// Pieces of a word, cut at punctuation, that a name may consist of: `J.R.R.` has six.
const PIECES: usize = 8;

impl Record {
    /// Who said it: named in the metadata, or in a message.
    pub fn speaker(&self) -> Option<&str> {
        let named = self.metadata.get("speaker").and_then(|name| name.as_str());
        named.or_else(|| self.body.as_ref()?.get("name")?.as_str())
    }

    /// Whose words these are in a chat with an assistant.
    pub fn voice(&self) -> Option<Voice> {
        let field = |fields: Option<&serde_json::Value>| fields?.as_str().and_then(Voice::of);
        let role = field(self.metadata.get("role"));
        let role = role.or_else(|| field(self.body.as_ref()?.get("role")));
        role.or_else(|| self.speaker().and_then(Voice::of))
    }
}

/// The two sides of a chat with an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// Who asks and tells of themselves: the `I` of a question.
    User,
    /// Who answers, and its tools.
    Assistant,
}

impl Voice {
    /// The side of a role; `None` if the text is another word, such as a name.
    pub fn of(role: &str) -> Option<Self> {
        let is = |names: &[&str]| names.iter().any(|name| role.eq_ignore_ascii_case(name));
        if is(&["user", "human"]) {
            return Some(Self::User);
        }
        let others = [
            "assistant",
            "ai",
            "bot",
            "chatbot",
            "model",
            "system",
            "tool",
        ];
        is(&others).then_some(Self::Assistant)
    }
}

/// The word under which a speaker is looked up.
pub fn first_word(name: &str) -> String {
    let first = name.split_whitespace().next().unwrap_or_default();
    first.to_lowercase()
}

/// Every word of the query that may be the first one of a name, in lower case. A name may contain
/// punctuation and may stand beside it (`O'Brien's`), so that every span of a word that begins and
/// ends at punctuation counts.
pub fn lookup_words(query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let mut words = BTreeSet::new();
    for word in query.split_whitespace() {
        let cuts = cuts(word);
        for (at, start) in cuts.iter().enumerate() {
            for end in cuts.iter().skip(at + 1).take(PIECES) {
                words.extend(word.get(*start..*end));
            }
            if words.len() >= LOOKED_UP {
                break;
            }
        }
    }
    words
        .into_iter()
        .take(LOOKED_UP)
        .map(str::to_owned)
        .collect()
}

/// Where a name may begin or end in the word: at its ends, beside every character that is no
/// letter, digit or underscore, and behind a possessive, which is taken out with the name before it.
fn cuts(word: &str) -> Vec<usize> {
    let mut cuts = BTreeSet::from([0, word.len()]);
    for (at, c) in word.char_indices() {
        if !(c.is_alphanumeric() || c == '_') {
            cuts.extend([at, at + c.len_utf8()]);
        }
    }
    for possessive in ["'s", "’s"] {
        let found = word.match_indices(possessive);
        cuts.extend(found.map(|(at, _)| at + possessive.len()));
    }
    cuts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_beside_punctuation() {
        let words = lookup_words("Did O'Brien's dog bite J.R.R. Tolkien (@bob)?");
        for first in ["o'brien", "j.r.r.", "tolkien", "bob", "@bob", "did"] {
            assert!(words.iter().any(|word| word == first), "{first}: {words:?}");
        }
        assert!(lookup_words(&".".repeat(100_000)).len() <= LOOKED_UP);
        assert!(lookup_words(&"a.".repeat(100_000)).len() <= LOOKED_UP);
    }
}
