//! Tells words and identifiers from randomly drawn characters, by the pairs of letters in them.

/// For each letter from `a` to `z`, the letters that often follow it in English words and identifiers. These 220
/// pairs make up 96 % of the pairs in this project's documentation and source, and a third of the
/// pairs in drawn letters.
const FOLLOWERS: &str = "\
    bcdfgiklmnprstuvwy aelouy aehiklortu abdeiosy acdefilmnpqrstvwxy aiort eirs aeio \
    acdeglmnoprstvz s eins adefilostuy abeimnopu acdefgiknostuvw bcdfgklmnoprstuvwx aeilorstu u \
    acdegimnorstuy acehikopstuy acdehiorstuxy bcelmnprst ae aehinor pt nst e";

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated at compile time: an index out of range does not compile"
)]
static COMMON: [u32; 26] = {
    let mut common = [0; 26];
    let followers = FOLLOWERS.as_bytes();
    let (mut letter, mut at) = (0, 0);
    while at < followers.len() {
        match followers[at] {
            b' ' => letter += 1,
            follower => common[letter] |= 1 << (follower - b'a'),
        }
        at += 1;
    }
    common
};

fn is_common(one: u8, next: u8) -> bool {
    let place = |byte: u8| byte.to_ascii_lowercase().wrapping_sub(b'a');
    let row = COMMON.get(usize::from(place(one))).copied().unwrap_or(0);
    row >> (place(next) & 31) & 1 == 1
}

/// What a text is made of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Makeup {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    /// Letters that belong to readable words of at least three letters.
    pub(super) readable: usize,
    /// Letters of runs too short to judge.
    pub(super) short: usize,
    /// Groups of digits with a letter on both sides.
    pub(super) inner_digits: usize,
    /// Signs that passwords have and identifiers do not.
    pub(super) odd: usize,
    /// `_`, `-`, `.` and spaces.
    pub(super) separators: usize,
    /// Changes from lower to upper case.
    pub(super) humps: usize,
}

impl Makeup {
    pub(super) fn letters(self) -> usize {
        self.lower + self.upper
    }
}

pub(super) fn makeup(text: &str) -> Makeup {
    super::work::add(text.len());
    let bytes = text.as_bytes();
    let mut made = Makeup::default();
    let mut word = 0;
    for (at, byte) in bytes.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied();
        let hump = byte.is_ascii_uppercase() && before.is_some_and(|it| it.is_ascii_lowercase());
        made.humps += usize::from(hump);
        if !byte.is_ascii_alphabetic() || hump {
            made.word(bytes.get(word..at).unwrap_or_default());
            word = if hump { at } else { at + 1 };
        }
        match byte {
            b'a'..=b'z' => made.lower += 1,
            b'A'..=b'Z' => made.upper += 1,
            b'0'..=b'9' => made.digits += 1,
            b'_' | b'-' | b'.' | b' ' => made.separators += 1,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'?' | b'~' | b'|' => {
                made.odd += 1;
            }
            _ => {}
        }
        let ends_digits =
            byte.is_ascii_alphabetic() && before.is_some_and(|it| it.is_ascii_digit());
        made.inner_digits += usize::from(ends_digits && letter_before_digits(bytes, at));
    }
    made.word(bytes.get(word..).unwrap_or_default());
    made
}

/// Whether the digits that end here follow a letter.
fn letter_before_digits(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default().iter().rev();
    let mut before = before.take(16).skip_while(|byte| byte.is_ascii_digit());
    before.next().is_some_and(u8::is_ascii_alphabetic)
}

impl Makeup {
    fn word(&mut self, letters: &[u8]) {
        if letters.len() < 3 {
            self.short += letters.len();
            return;
        }
        let pairs = letters.iter().zip(letters.iter().skip(1));
        let common = pairs.filter(|(one, next)| is_common(**one, **next)).count();
        if common * 10 >= (letters.len() - 1) * 7 {
            self.readable += letters.len();
        }
    }
}
