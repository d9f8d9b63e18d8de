//! Numbers that prove themselves by a checksum: payment cards and bank accounts.

use super::work;

/// The length of the card number that the bytes begin with, spaces and hyphens between its groups
/// included.
pub(super) fn card(here: &[u8]) -> Option<usize> {
    if !matches!(here.first()?, b'2'..=b'6') || !here.get(1)?.is_ascii_digit() {
        return None;
    }
    let (mut digits, mut length) = ([0_u8; 19], 0);
    let mut count = 0;
    for (at, byte) in here.iter().enumerate().take(24) {
        work::add(1);
        match byte {
            b'0'..=b'9' => {
                *digits.get_mut(count)? = byte - b'0';
                count += 1;
                length = at + 1;
            }
            b' ' | b'-' if count % 2 == 0 && length == at && count > 3 => {}
            _ => break,
        }
    }
    let ends = here
        .get(length)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let digits = digits.get(..count)?;
    (ends && is_issued(digits) && passes_luhn(digits)).then_some(length)
}

/// Whether an issuer gives out numbers that begin and end like this.
fn is_issued(digits: &[u8]) -> bool {
    let begin = digits
        .iter()
        .take(4)
        .fold(0_u32, |all, digit| all * 10 + u32::from(*digit));
    let varied = digits
        .iter()
        .skip(1)
        .any(|digit| Some(digit) != digits.first());
    let length = digits.len();
    varied
        && match begin {
            4000..=4999 | 5100..=5599 | 2221..=2720 => length == 16,
            3400..=3499 | 3700..=3799 => length == 15,
            3000..=3059 | 3600..=3699 | 3800..=3999 => length == 14,
            3528..=3589 | 6011 | 6440..=6599 => length == 16,
            6200..=6299 => (16..=19).contains(&length),
            _ => false,
        }
}

fn passes_luhn(digits: &[u8]) -> bool {
    let doubled = |digit: u8| digit * 2 - if digit > 4 { 9 } else { 0 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| u32::from(if at % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum();
    sum.is_multiple_of(10)
}

/// Country and length of its account numbers.
const COUNTRIES: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NL", 18),
    (b"NO", 15),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VG", 24),
    (b"XK", 20),
];

/// The length of the IBAN that the bytes begin with, spaces between its groups included.
pub(super) fn account(here: &[u8]) -> Option<usize> {
    let (country, check) = here.first_chunk::<4>()?.split_at(2);
    if !check.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (_, wanted) = COUNTRIES
        .iter()
        .find(|(code, _)| code.as_slice() == country)?;
    let mut characters = [0_u8; 34];
    let (mut count, mut length) = (0, 0);
    for (at, byte) in here.iter().enumerate().take(48) {
        work::add(1);
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' if count < *wanted => {
                *characters.get_mut(count)? = *byte;
                count += 1;
                length = at + 1;
            }
            b' ' if length == at && count % 4 == 0 && count < *wanted => {}
            _ => break,
        }
    }
    let ends = here
        .get(length)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let characters = characters.get(..count)?;
    (ends && count == *wanted && remainder(characters) == 1).then_some(length)
}

/// The number modulo 97, its first four characters moved to the end and letters as two digits.
fn remainder(characters: &[u8]) -> u32 {
    let moved = characters.iter().skip(4).chain(characters.iter().take(4));
    moved.fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.saturating_sub(b'A')) + 10) % 97,
    })
}
