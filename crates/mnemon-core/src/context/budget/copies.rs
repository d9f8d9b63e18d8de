//! Which materials say what another one says already.

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
    // Of two that say the same, the one that comes first here stays.
    let mut order: Vec<(usize, &Material, &Print)> = Vec::with_capacity(prints.len());
    let all = materials.iter().zip(&prints).enumerate();
    order.extend(all.map(|(at, (material, print))| (at, material, print)));
    order.sort_by_key(|(at, material, print)| {
        let longest = std::cmp::Reverse(print.count);
        let place = (material.order, material.id.as_str());
        (material.section, longest, place, *at)
    });
    let ranked: Vec<&Print> = order.iter().map(|(_, _, print)| *print).collect();
    let places = Places::of(&ranked);
    let mut copies = vec![Vec::new(); prints.len()];
    for (rank, (at, material, print)) in order.iter().enumerate() {
        if material.section == Section::Turns || print.count == 0 {
            continue;
        }
        let originals = places.originals(rank, print, &ranked);
        let originals = originals.into_iter().filter_map(|rank| order.get(rank));
        if let Some(found) = copies.get_mut(*at) {
            found.extend(originals.map(|(at, _, _)| *at));
        }
    }
    copies
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

/// How much two texts have in common, from 0 to 1: the share of their words that both have.
pub fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (Print::of(a), Print::of(b));
    let shared = a
        .words
        .iter()
        .filter(|word| b.words.binary_search(word).is_ok());
    let shared = shared.count();
    match a.words.len() + b.words.len() - shared {
        0 => 0.0,
        all => shared as f64 / all as f64,
    }
}

/// Hashes of the words. Where no spaces are written each character counts as a word.
fn words(text: &str) -> Vec<u64> {
    let mut words = Vec::new();
    let mut word = None;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word = Some(add(word.unwrap_or(START), c.to_ascii_lowercase()));
            continue;
        }
        if c.is_alphanumeric() && !is_unspaced(c) {
            let small = c.to_lowercase();
            word = Some(small.fold(word.unwrap_or(START), add));
            continue;
        }
        words.extend(word.take());
        // A sign may turn the meaning (-5 or 5, x > y or x < y); what only separates may not.
        if is_unspaced(c) || (!c.is_whitespace() && !is_separator(c)) {
            words.push(add(START, c));
        }
    }
    words.extend(word);
    words
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

fn add(hash: u64, c: char) -> u64 {
    mix(hash ^ u64::from(u32::from(c)))
}

/// Spreads every bit over the word; the texts of a memory are nobody's attack on a table.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^ (word >> 29)
}

/// Of words in their order.
fn hash_of(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(START, |hash, word| mix(hash.rotate_left(23) ^ word))
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

fn sorted(mut list: Vec<u64>) -> Vec<u64> {
    list.sort_unstable();
    list.dedup();
    list
}

/// Where each text and each shingle is: pairs of a hash and a rank, sorted.
struct Places {
    wholes: Vec<(u64, usize)>,
    shingles: Vec<(u64, usize)>,
}

impl Places {
    fn of(ranked: &[&Print]) -> Self {
        let all = || ranked.iter().enumerate();
        let mut wholes: Vec<(u64, usize)> = all().map(|(at, print)| (print.whole, at)).collect();
        let shingles = all().flat_map(|(at, print)| print.shingles.iter().map(move |s| (*s, at)));
        let mut shingles: Vec<(u64, usize)> = shingles.collect();
        wholes.sort_unstable();
        shingles.sort_unstable();
        Self { wholes, shingles }
    }

    /// Those of a better rank that this text is in, the best first.
    fn originals(&self, rank: usize, print: &Print, ranked: &[&Print]) -> Vec<usize> {
        let same = places(&self.wholes, print.whole).iter().take(RIVALS);
        let lists = print.shingles.iter();
        let lists = lists.map(|shingle| places(&self.shingles, *shingle));
        // A phrase that stands everywhere leads nowhere, and so does one that only this text has.
        let mut lists: Vec<&[(u64, usize)]> = lists
            .filter(|list| (2..=RIVALS).contains(&list.len()))
            .collect();
        lists.sort_by_key(|list| list.len());
        let near = lists.into_iter().take(PROBES).flatten();
        let mut rivals: Vec<usize> = same.chain(near).map(|(_, at)| *at).collect();
        rivals.sort_unstable();
        rivals.dedup();
        rivals.retain(|rival| {
            let other = ranked.get(*rival);
            *rival < rank && other.is_some_and(|other| print.is_in(other))
        });
        rivals
    }
}

/// The first places of this hash: no more than tell that there are too many.
fn places(sorted: &[(u64, usize)], hash: u64) -> &[(u64, usize)] {
    let from = sorted.partition_point(|(known, _)| *known < hash);
    let rest = sorted.get(from..).unwrap_or_default();
    let own = rest.iter().take_while(|(known, _)| *known == hash);
    let count = own.take(RIVALS + 1).count();
    rest.get(..count).unwrap_or_default()
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
    fn of_many_that_say_the_same_one_stays() {
        let note = |n: usize| Material {
            order: -i64::try_from(n).unwrap(),
            ..Material::new(
                Section::Facts,
                format!("n{n}").parse().unwrap(),
                "tea at nine, then",
            )
        };
        let notes: Vec<Material> = (0..200).map(note).collect();
        let copies = copies(&notes);
        let originals = copies.iter().filter(|of| of.is_empty()).count();
        assert_eq!(originals, 1);
        assert!(copies[0].contains(&199), "the first in order");
    }

    #[test]
    fn a_long_text_is_not_judged_by_its_beginning() {
        let one = format!("{} first end", "word by word ".repeat(400));
        let other = format!("{} second end", "word by word ".repeat(400));
        assert!(!is_in(&one, &other));
        assert!(is_in(&one, &one.to_uppercase()));
    }
}
