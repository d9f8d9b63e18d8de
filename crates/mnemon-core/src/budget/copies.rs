//! Which materials say what another one says already.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Material, Section};

/// Words by which texts are compared at the most.
const COMPARED_WORDS: usize = 500;
/// Words that are compared at a time.
const SHINGLE: usize = 3;
/// A text is in another when the other has this share of its shingles, and every word of it.
const SHARED: f64 = 0.9;
/// Texts that one is compared with at the most.
const RIVALS: usize = 32;
/// Shingles by which rivals are sought.
const PROBES: usize = 4;

/// For each material the others that it is a copy or a part of, the best first.
///
/// A turn is never a copy: what was said twice was said twice. And nothing is a copy of what stands
/// further down, or a new turn would change the beginning of the text.
pub(super) fn copies(materials: &[Material]) -> Vec<Vec<usize>> {
    let prints: Vec<Print> = materials.iter().map(|m| Print::of(&m.text)).collect();
    let found = Places::of(&prints);
    let rank = |at: usize| {
        let (material, print) = (materials.get(at), prints.get(at));
        let words = print.map_or(0, |print| print.count);
        let place = material.map(|m| (m.order, m.id.as_str()));
        (material.map(|m| m.section), usize::MAX - words, place, at)
    };
    let copies_of = |at: usize, material: &Material, print: &Print| {
        if material.section == Section::Turns || print.count == 0 {
            return Vec::new();
        }
        let mut rivals = found.rivals(at, print, &prints);
        rivals.retain(|rival| rank(*rival) < rank(at));
        rivals.sort_by_key(|rival| rank(*rival));
        rivals
    };
    let pairs = materials.iter().zip(&prints).enumerate();
    pairs
        .map(|(at, (material, print))| copies_of(at, material, print))
        .collect()
}

/// A text by its words, whatever their case and what stands between them.
struct Print {
    /// Of all its words in their order, also of those that are not compared.
    whole: u64,
    count: usize,
    /// Sorted, without repetition.
    words: Vec<u64>,
    shingles: Vec<u64>,
}

impl Print {
    fn of(text: &str) -> Self {
        let all = words(text);
        let count = all.len();
        let whole = hash_of(&all);
        let compared = all.get(..COMPARED_WORDS.min(count)).unwrap_or_default();
        let shingles = sorted(compared.windows(SHINGLE).map(hash_of).collect());
        Self {
            whole,
            count,
            words: sorted(compared.to_vec()),
            shingles,
        }
    }

    /// Whether this text says nothing that the other does not.
    fn is_in(&self, other: &Self) -> bool {
        if self.whole == other.whole {
            return true;
        }
        // A text of which only a part is compared may say more further on.
        if self.shingles.is_empty() || self.count > COMPARED_WORDS || self.count > other.count {
            return false;
        }
        let has = |list: &[u64], word: &u64| list.binary_search(word).is_ok();
        let shared = self
            .shingles
            .iter()
            .filter(|s| has(&other.shingles, s))
            .count();
        shared as f64 >= SHARED * self.shingles.len() as f64
            && self.words.iter().all(|word| has(&other.words, word))
    }
}

/// Hashes of the words. Where no spaces are written each character counts as a word.
fn words(text: &str) -> Vec<u64> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut close = |word: &mut String| {
        if !word.is_empty() {
            words.push(hash_of(word.as_str()));
            word.clear();
        }
    };
    for c in text.chars() {
        if is_unspaced(c) {
            close(&mut word);
            word.push(c);
            close(&mut word);
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else {
            close(&mut word);
            // A sign may turn the meaning (-5 or 5, x > y or x < y); what only separates may not.
            if !c.is_whitespace() && !is_separator(c) {
                word.push(c);
                close(&mut word);
            }
        }
    }
    close(&mut word);
    words
}

fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_separator(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '.' | ','
                | ';'
                | ':'
                | '!'
                | '?'
                | '\''
                | '"'
                | '`'
                | '*'
                | '_'
                | '('
                | ')'
                | '。'
                | '、'
                | '！'
                | '？'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '…'
        )
}

fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn sorted(mut list: Vec<u64>) -> Vec<u64> {
    list.sort_unstable();
    list.dedup();
    list
}

/// Where each text and each shingle is.
struct Places {
    wholes: HashMap<u64, Vec<usize>>,
    shingles: HashMap<u64, Vec<u32>>,
}

impl Places {
    fn of(prints: &[Print]) -> Self {
        let mut wholes: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut shingles: HashMap<u64, Vec<u32>> = HashMap::new();
        for (at, print) in prints.iter().enumerate() {
            wholes.entry(print.whole).or_default().push(at);
            for shingle in &print.shingles {
                let places = shingles.entry(*shingle).or_default();
                // A phrase that stands everywhere leads nowhere.
                if places.len() <= RIVALS {
                    places.extend(u32::try_from(at).ok());
                }
            }
        }
        Self { wholes, shingles }
    }

    /// The others that this text is in.
    fn rivals(&self, at: usize, print: &Print, prints: &[Print]) -> Vec<usize> {
        let same = self.wholes.get(&print.whole).into_iter().flatten();
        let mut rivals: Vec<usize> = same.copied().take(RIVALS).collect();
        let mut lists: Vec<&Vec<u32>> = print
            .shingles
            .iter()
            .filter_map(|shingle| self.shingles.get(shingle))
            .filter(|places| places.len() <= RIVALS)
            .collect();
        // The rarest shingles, but not those that only this text has.
        lists.retain(|places| places.len() > 1);
        lists.sort_by_key(|places| places.len());
        let near = lists.into_iter().take(PROBES).flatten();
        rivals.extend(near.filter_map(|at| usize::try_from(*at).ok()));
        rivals.sort_unstable();
        rivals.dedup();
        rivals.retain(|rival| {
            let other = prints.get(*rival);
            *rival != at && other.is_some_and(|other| print.is_in(other))
        });
        rivals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(one: &str, other: &str) -> bool {
        Print::of(one).is_in(&Print::of(other))
    }

    #[test]
    fn case_spaces_and_marks_make_no_difference() {
        assert!(is_in("Ann prefers TEA.", "ann  prefers\n“tea”"));
        assert!(is_in("Tea", "tea!"));
        assert!(!is_in("tea", "Ann prefers tea"), "too short to be a part");
        assert!(is_in(
            "ann prefers tea",
            "We know that Ann prefers tea, not milk."
        ));
        assert!(is_in(
            "彼女はお茶が好き",
            "知っての通り、彼女はお茶が好きだ。"
        ));
    }

    #[test]
    fn what_differs_in_one_word_is_no_copy() {
        let long = |n: u32| {
            format!(
                "The budget {} is {n} for all of us",
                "of the project ".repeat(20)
            )
        };
        assert!(!is_in(&long(500), &long(600)));
        assert!(!is_in("x is -5 here now", "x is 5 here now"));
        assert!(!is_in("ann does not like tea", "ann does like tea"));
    }

    #[test]
    fn a_long_text_is_not_judged_by_its_beginning() {
        let one = format!("{} first end", "word by word ".repeat(400));
        let other = format!("{} second end", "word by word ".repeat(400));
        assert!(!is_in(&one, &other));
        assert!(is_in(&one, &one.to_uppercase()));
    }
}
