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
    "к", "của", "cho", "mới", "cũ", "hiện", "untuk",
];

/// Words between the copula and the value.
const ADVERBS: &str = "\
    now currently still set to just simply again jetzt nun ahora agora maintenant ora теперь";

/// Words of the name's owner that are passed over.
const OWNER_WORDS: usize = 6;

/// Where the value of the sentence begins whose name ends before this place.
pub(super) fn value(text: &str, from: usize, may_have_owner: bool) -> Option<usize> {
    let mut words = Words { text, from };
    let (word, end) = words.next()?;
    let has_owner = may_have_owner && PREPOSITIONS.contains(&word);
    let owner_end = has_owner.then(|| after_owner(words)).flatten();
    let copula_end = COPULAS.contains(&word).then_some(end);
    let mut end = owner_end.or(copula_end)?;
    words.from = end;
    for _ in 0..2 {
        match words.next() {
            Some((word, after)) if ADVERBS.split(' ').any(|adverb| adverb == word) => end = after,
            _ => break,
        }
    }
    let spaces = text.get(end..)?.bytes();
    Some(
        end + spaces
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count(),
    )
}

/// Where the copula ends that follows the owner's words.
fn after_owner(mut words: Words<'_>) -> Option<usize> {
    for _ in 0..OWNER_WORDS {
        let (word, end) = words.next()?;
        if word.len() > 1 && word.ends_with([':', '=']) {
            return Some(end);
        }
        // The article of the owner's name is spelt like the Vietnamese copula without its accent.
        if COPULAS.contains(&word) && !PREPOSITIONS.contains(&word) && word != "la" {
            return Some(end);
        }
        if word.ends_with(['.', '!', '?', ';']) {
            return None;
        }
    }
    None
}

#[derive(Clone, Copy)]
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
