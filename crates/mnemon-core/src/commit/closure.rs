//! Which derived records go when their sources do: the closure of a deletion.
//!
//! The rule is documented in `mnemon-engine`'s module `deletion`; this is its arithmetic, without
//! a store.

use std::collections::{HashMap, HashSet};

use crate::model::Id;

/// How many words in a row make a quotation.
const QUOTED_WORDS: usize = 5;

/// A record that was derived from one that goes, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    pub id: Id,
    /// All records that it was derived from.
    pub sources: Vec<Id>,
    pub bond: Bond,
}

/// How a derived record depends on its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bond {
    /// It stays whatever it was derived from.
    None,
    /// It stays as long as one of its sources does, and all that it quotes: sources, or records
    /// that these were derived from.
    AnySource { quoted: Vec<Id> },
    /// It repeats its sources, and goes with any of them.
    EverySource,
}

/// What becomes of derived records, by their place in the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Closure {
    pub goes: Vec<usize>,
    /// They stay without those of their sources that go; these are the others.
    pub loses: Vec<(usize, Vec<Id>)>,
}

/// What becomes of `derived` when the roots go. `derived` holds everything that was derived from a
/// root, through any number of steps; sources that are neither in it nor a root stay.
///
/// A record stays if its bond says so given the sources that stay; of a circle nothing stays unless
/// something outside holds it.
pub fn closure(roots: &HashSet<Id>, derived: &[Derived]) -> Closure {
    let staying = staying(roots, derived);
    let stays_id: HashSet<&Id> = staying
        .iter()
        .zip(derived)
        .filter(|(stays, _)| **stays)
        .map(|(_, one)| &one.id)
        .collect();
    let within: HashSet<&Id> = derived.iter().map(|one| &one.id).collect();
    let is_gone = |id: &&Id| roots.contains(*id) || within.contains(*id) && !stays_id.contains(*id);
    let mut closure = Closure::default();
    for (number, (one, stays)) in derived.iter().zip(&staying).enumerate() {
        if !stays {
            closure.goes.push(number);
        } else if one.sources.iter().any(|source| is_gone(&source)) {
            let left = one.sources.iter().filter(|source| !is_gone(source));
            closure.loses.push((number, left.cloned().collect()));
        }
    }
    closure
}

/// What a record still waits for before it is known to stay.
struct Waiting {
    has_source: bool,
    /// Sources that must stay and are not known to.
    needed: HashSet<Id>,
}

/// The least set that stays: it is begun with what needs nothing from within, and grows along the
/// links.
fn staying(roots: &HashSet<Id>, derived: &[Derived]) -> Vec<bool> {
    let within: HashSet<&Id> = derived.iter().map(|one| &one.id).collect();
    let is_outside = |id: &Id| !roots.contains(id) && !within.contains(id);
    let mut children: HashMap<&Id, Vec<usize>> = HashMap::new();
    let mut stays = vec![false; derived.len()];
    let mut open = Vec::new();
    let mut waiting = Vec::with_capacity(derived.len());
    for (number, one) in derived.iter().enumerate() {
        let must: &[Id] = match &one.bond {
            Bond::None => &[],
            Bond::AnySource { quoted } => quoted,
            Bond::EverySource => &one.sources,
        };
        let state = Waiting {
            has_source: one.bond == Bond::None || one.sources.iter().any(is_outside),
            needed: must.iter().filter(|id| !is_outside(id)).cloned().collect(),
        };
        if state.has_source && state.needed.is_empty() {
            open.push(number);
        }
        waiting.push(state);
        let awaited = one.sources.iter().chain(must);
        for source in awaited.filter(|id| within.contains(id)) {
            children.entry(source).or_default().push(number);
        }
    }
    while let Some(number) = open.pop() {
        let (Some(one), Some(stays)) = (derived.get(number), stays.get_mut(number)) else {
            continue;
        };
        if std::mem::replace(stays, true) {
            continue;
        }
        for child in children.get(&one.id).into_iter().flatten() {
            if let (Some(state), Some(other)) = (waiting.get_mut(*child), derived.get(*child)) {
                state.has_source |= other.sources.contains(&one.id);
                state.needed.remove(&one.id);
                let stays = state.has_source && state.needed.is_empty();
                open.extend(stays.then_some(*child));
            }
        }
    }
    stays
}

/// Whether the text repeats the source: five words in a row, or all of it if it has fewer.
/// Punctuation, spaces and case do not count.
pub fn quotes(text: &str, source: &str) -> bool {
    let (text, source) = (words(text), words(source));
    let length = source.len().min(QUOTED_WORDS);
    if length == 0 {
        return false;
    }
    let said: HashSet<&[String]> = text.windows(length).collect();
    source.windows(length).any(|words| said.contains(words))
}

/// The words of a text. In scripts without spaces each character is one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for letter in text.chars().flat_map(char::to_lowercase) {
        let stands_alone = letter >= '\u{2e80}';
        if !letter.is_alphanumeric() {
            is_open = false;
        } else if let (true, false, Some(word)) = (is_open, stands_alone, words.last_mut()) {
            word.push(letter);
        } else {
            words.push(letter.to_string());
            is_open = !stands_alone;
        }
    }
    words
}
