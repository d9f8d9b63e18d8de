//! The text of a key: `mnemon_PREFIX_SECRET`.
//!
//! The secret has 256 random bits and ends with a checksum of six letters, so that a typo is
//! recognised before the store is asked. Letters are those of Crockford's base 32.

/// Random bytes that a key is made from: 5 for its prefix, 32 for its secret.
pub const RANDOM_BYTES: usize = PREFIX_BYTES + 32;

const PREFIX_BYTES: usize = 5;
const START: &str = "mnemon_";
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Letters of the prefix, of the secret and of the checksum.
const PREFIX: usize = 8;
const SECRET: usize = 52;
const CHECKSUM: usize = 6;

/// A key as a caller shows it, well-formed.
pub(super) struct Shown<'a> {
    pub(super) prefix: &'a str,
    pub(super) digest: blake3::Hash,
}

/// The prefix and the text of a new key.
pub(super) fn make(random: [u8; RANDOM_BYTES]) -> (String, String) {
    let (prefix, secret) = random.split_at(PREFIX_BYTES);
    let prefix = base32(prefix);
    let body = format!("{prefix}_{}", base32(secret));
    let text = format!("{START}{body}{}", checksum(&body));
    (prefix, text)
}

/// The parts of a key; `None` if the text is not one, or has a typo.
pub(super) fn parse(text: &str) -> Option<Shown<'_>> {
    let text = text.trim();
    let body = text.strip_prefix(START)?;
    let (prefix, rest) = body.split_once('_')?;
    let is_letter = |byte: u8| ALPHABET.contains(&byte);
    let fits = prefix.len() == PREFIX && rest.len() == SECRET + CHECKSUM;
    if !fits || !prefix.bytes().chain(rest.bytes()).all(is_letter) {
        return None;
    }
    let (body, check) = body.split_at_checked(body.len() - CHECKSUM)?;
    (checksum(body) == check).then(|| Shown {
        prefix,
        digest: digest(text),
    })
}

/// Whether the text can be the prefix of a key.
pub(super) fn is_prefix(text: &str) -> bool {
    text.len() == PREFIX && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// What is stored of a key. A fast hash is enough: the secret is random and cannot be guessed.
pub(super) fn digest(text: &str) -> blake3::Hash {
    blake3::hash(text.as_bytes())
}

fn checksum(body: &str) -> String {
    let sum = blake3::derive_key("mnemon access key checksum", body.as_bytes());
    base32(&sum).chars().take(CHECKSUM).collect()
}

fn base32(bytes: &[u8]) -> String {
    let letter = |value: u32| {
        let letter = ALPHABET.get((value & 31) as usize);
        letter.map_or('0', |letter| char::from(*letter))
    };
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(held >> bits));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(letter(held << (5 - bits)));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base32_is_crockfords() {
        assert_eq!(base32(&[0, 0, 0, 0, 0]), "00000000");
        assert_eq!(base32(&[0xff; 5]), "zzzzzzzz");
        assert_eq!(base32(b"foobar"), "csqpyrk1e8");
    }

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_made(seed in any::<[u8; 32]>(), first in any::<[u8; 5]>()) {
            let mut random = [0; RANDOM_BYTES];
            random[..5].copy_from_slice(&first);
            random[5..].copy_from_slice(&seed);
            let (prefix, text) = make(random);
            let padded = format!(" {text}\n");
            let shown = parse(&padded).unwrap();
            prop_assert_eq!(shown.prefix, prefix.as_str());
            prop_assert_eq!(shown.digest, digest(&text));
            prop_assert_eq!(text.len(), 74);
        }

        #[test]
        fn a_typo_is_recognised(seed in any::<[u8; 32]>(), at in 0_usize..74, letter in 0_usize..32) {
            let mut random = [7; RANDOM_BYTES];
            random[5..].copy_from_slice(&seed);
            let (_, text) = make(random);
            let mut typo = text.clone().into_bytes();
            typo[at] = ALPHABET[letter];
            let typo = String::from_utf8(typo).unwrap();
            prop_assert_eq!(parse(&typo).is_some(), typo == text);
            let (cut, _) = text.split_at(at);
            prop_assert!(parse(cut).is_none());
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,100}") {
            let _ = parse(&text);
            let _ = parse(&format!("mnemon_{text}"));
            let _ = parse(&format!("mnemon_00000000_{text}"));
        }
    }
}
