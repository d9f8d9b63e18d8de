//! Words too common to rank by. They stay in the index and in the query; only their weight
//! falls.

const ENGLISH: &str = "\
    a about after again all also am an and any are arent as at be because been before being both \
    but by can cannot cant could couldnt did didnt do does doesnt doing dont each either else \
    ever few for from had hadnt has hasnt have havent having he her here hers herself him himself \
    his how http https i if im in into is isnt it its itself just let like me might more most \
    must my myself no nor not of off on once only or other our ours out over own same shall she \
    should shouldnt so some such than that the their theirs them themselves then there these they \
    this those through to too under until up upon us very was wasnt we were werent what when \
    where which while who whom whose why will with wont would wouldnt www you your yours yourself";

const VIETNAMESE: &str = "\
    bị bởi cho chúng các có cũng của cùng gì hoặc khi không là lại mà mỗi một nhưng những này nào \
    nên nó nếu rất rằng sẽ thì theo thế trong trên tôi tại từ và vào vì vẫn với về đang đã đây đó \
    được đến để ở";

const HAN: &str = "\
    一个 个 了 他 们 你 吗 呢 和 在 她 就 我 我们 是 有 的 着 這 那 都 也 这 这个 與 与";

/// Slots of a table: a power of two, twice as many as there are words.
const SLOTS: usize = 512;

/// The question is asked of every word of every text, so the lists become hash tables when the
/// program is compiled. A slot holds a word's bytes as a number; 0 is an empty slot.
type Table = [u128; SLOTS];

static SPACED: Table = fill(fill([0; SLOTS], ENGLISH), VIETNAMESE);
static UNSPACED: Table = fill([0; SLOTS], HAN);

#[allow(
    clippy::indexing_slicing,
    reason = "runs in the compiler, which refuses what is out of bounds"
)]
const fn fill(mut table: Table, words: &str) -> Table {
    let mut rest = words.as_bytes();
    while !rest.is_empty() {
        let mut end = 0;
        while end < rest.len() && rest[end] != b' ' {
            end += 1;
        }
        let (word, tail) = rest.split_at(end);
        let key = key(word);
        let mut slot = slot(key);
        while table[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = key;
        rest = match tail.split_first() {
            Some((_space, next)) => next,
            None => tail,
        };
    }
    table
}

/// The bytes of a word as a number; 0 where it is longer than any word here.
const fn key(word: &[u8]) -> u128 {
    if word.len() > 16 {
        return 0;
    }
    let mut key = 0;
    let mut rest = word;
    while let Some((byte, tail)) = rest.split_first() {
        key = key << 8 | *byte as u128;
        rest = tail;
    }
    key
}

const fn slot(key: u128) -> usize {
    let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(17);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS
}

fn holds(table: &Table, word: &str) -> bool {
    let key = key(word.as_bytes());
    let start = slot(key);
    let (front, back) = table.split_at_checked(start).unwrap_or((table, &[]));
    let found = back.iter().chain(front).find(|&&k| k == key || k == 0);
    key != 0 && found == Some(&key)
}

/// Whether `word` (case-folded, apostrophes taken out) is too common to rank by.
pub(super) fn is_stop(word: &str) -> bool {
    holds(&SPACED, word)
}

/// The same for a word of a run without spaces: particles and endings of Japanese are one or
/// two hiragana.
pub(super) fn is_stop_unspaced(word: &str) -> bool {
    let mut chars = word.chars();
    let short = chars.by_ref().take(2).all(is_hiragana) && chars.next().is_none();
    short || holds(&UNSPACED, word) || word.chars().all(is_common_han)
}

/// Whether a gram of nothing but such characters says nothing.
pub(super) fn is_stop_char(c: char) -> bool {
    is_hiragana(c) || is_common_han(c)
}

fn is_common_han(c: char) -> bool {
    holds(&UNSPACED, c.encode_utf8(&mut [0; 4]))
}

fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_hold_the_lists_and_nothing_else() {
        assert!(ENGLISH.split(' ').chain(VIETNAMESE.split(' ')).all(is_stop));
        assert!(HAN.split(' ').all(is_stop_unspaced));
        for word in [
            "",
            "thes",
            "themselve",
            "dog",
            "a-word-longer-than-any",
            "má",
        ] {
            assert!(!is_stop(word), "{word:?}");
        }
    }
}
