//! Sentences that tell a password: "the password for the shop is …", "Passwort ist …".

use super::work;

/// Words between a name and its value.
const COPULAS: &[&str] = &[
    "is", "was", "=", ":", "-", "–", "—", "->", "→", "=>", "|", "equals", "ist", "lautet", "war",
    "es", "est", "é", "è", "e'", "är", "er", "on", "je", "to", "jest", "là", "la", "adalah", "это",
    "of", "este", "van", "være", "이", "है",
];

/// Words that say whose password it is, and so may be followed by more of them.
const PREPOSITIONS: &[&str] = &[
    "for", "of", "to", "on", "für", "von", "zu", "zum", "zur", "vom", "de", "del", "para", "pour",
    "du", "da", "do", "per", "di", "voor", "för", "til", "till", "dla", "do", "pro", "от", "для",
    "к", "của", "cho", "untuk",
];

/// Words between the copula and the value.
const ADVERBS: &[&str] = &[
    "now", "currently", "still", "set", "to", "just", "simply", "again", "jetzt", "nun", "ahora",
    "agora", "maintenant", "ora", "теперь",
];

/// Words of the name's owner that are passed over.
const OWNER_WORDS: usize = 6;

/// Where the value of the sentence begins whose name ends before this place.
pub(super) fn value(text: &str, from: usize, may_have_owner: bool) -> Option<usize> {
    let mut words = Words { text, from };
    let (word, mut end) = words.next()?;
    if !is_one_of(word, COPULAS) || (is_one_of(word, PREPOSITIONS) && may_have_owner) {
        if !may_have_owner || !is_one_of(word, PREPOSITIONS) {
            return None;
        }
        end = after_owner(&mut words).or_else(|| is_one_of(word, COPULAS).then_some(end))?;
        words.from = end;
    }
    // An adverb belongs to the sentence only if a value follows it.
    for _ in 0..2 {
        let Some((word, after)) = words.next().filter(|(word, _)| is_one_of(word, ADVERBS)) else {
            break;
        };
        let _ = word;
        end = after;
    }
    let spaces = text.get(end..)?.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    Some(end + spaces.count())
}

/// Where the copula ends that follows the owner's words.
fn after_owner(words: &mut Words<'_>) -> Option<usize> {
    for _ in 0..OWNER_WORDS {
        let (word, end) = words.next()?;
        if word.len() > 1 && word.ends_with([':', '=']) {
            return Some(end);
        }
        if is_one_of(word, COPULAS) && !is_one_of(word, PREPOSITIONS) && word != "la" {
            return Some(end);
        }
        if word.ends_with(['.', '!', '?', ';']) {
            return None;
        }
    }
    None
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.contains(&word)
}

struct Words<'a> {
    text: &'a str,
    from: usize,
}

impl<'a> Words<'a> {
    /// The next word of this line and its end.
    fn next(&mut self) -> Option<(&'a str, usize)> {
        let rest = self.text.get(self.from..)?;
        let near = rest.get(..rest.floor_char_boundary(40))?;
        let spaces = near.len() - near.trim_start_matches([' ', '\t']).len();
        let word = near.get(spaces..)?.split(char::is_whitespace).next()?;
        work::add(spaces + word.len());
        if word.is_empty() {
            return None;
        }
        self.from += spaces + word.len();
        Some((word, self.from))
    }
}
