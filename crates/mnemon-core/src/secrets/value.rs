//! Judges what stands where a secret would be: is it one, a placeholder, code, or prose?

use super::words::makeup;

/// How much of a value is judged; the rest of a longer one follows the verdict.
pub(super) const JUDGED_BYTES: usize = 256;

/// A key has at least this many characters.
const KEY_CHARS: usize = 16;
/// A password that stands alone in prose has at least this many,
const PASSWORD_CHARS: usize = 8;
/// and one in quotes or directly after `=`.
const MARKED_PASSWORD_CHARS: usize = 6;

/// The beginning of the value that decides.
pub(super) fn head(value: &str) -> &str {
    let end = value.floor_char_boundary(JUDGED_BYTES);
    value.get(..end).unwrap_or(value)
}

/// Whether the text looks drawn at random rather than made of words.
pub(super) fn is_drawn(text: &str) -> bool {
    let made = makeup(head(text));
    let letters = made.letters();
    if letters < 2 {
        return false;
    }
    let judged = letters - made.short.min(letters);
    let unreadable = letters - made.readable;
    match made.digits {
        // Foreign words and abbreviations are unreadable, too: without digits it must be longer.
        0 => {
            let is_long = text.len() >= 20 && made.separators * 6 < text.len();
            let is_mixed = made.humps >= 3 && made.readable * 2 < letters;
            is_long && (is_mixed || unreadable * 10 >= letters * 7)
        }
        // A date, a version or a list of numbers with a few letters in it.
        digits if digits > letters * 6 => false,
        _ if made.readable * 2 < letters => judged > 0 || made.inner_digits > 0,
        // Case and digits change faster than in any identifier.
        _ => {
            let words = made.humps + made.inner_digits + made.separators + 1;
            made.inner_digits >= 2 && letters < words * 4 && made.readable * 10 < letters * 8
        }
    }
}

/// Whether a key that a name announces is a secret.
pub(super) fn is_key(value: &str, is_named_by: KeyName, is_quoted: bool) -> bool {
    let judged = head(value);
    if value.len() < KEY_CHARS || is_placeholder(judged) || is_path(judged) {
        return false;
    }
    if is_template(judged) || (!is_quoted && is_code(judged)) {
        return false;
    }
    if is_public(judged) || is_moment(judged) {
        return false;
    }
    if is_uuid(judged) {
        return is_named_by == KeyName::Strong;
    }
    if is_named_by == KeyName::Weak && begins_with_words(judged) {
        return false;
    }
    is_digest(judged) || is_drawn(judged) || (is_named_by != KeyName::Weak && is_base32(judged))
}

/// Sixteen or more characters of Base32, as keys of one-time passwords are written.
fn is_base32(value: &str) -> bool {
    let made = makeup(value);
    let in_base32 = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7');
    value.len().is_multiple_of(8)
        && value.bytes().all(in_base32)
        && (made.inner_digits > 0 || made.readable * 10 < made.letters() * 8)
}

/// How sure the name is that a secret follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyName {
    /// `key` alone, which also names entries of maps and caches.
    Weak,
    Usual,
    /// `api_key`, `client_secret`: even a UUID is secret there.
    Strong,
}

/// What shows where a value begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Quotes,
    /// A sign without spaces around it, or an option of a command.
    Sign,
    None,
}

/// Whether a password that a name announces is one.
pub(super) fn is_password(value: &str, mark: Mark) -> bool {
    let least = match mark {
        Mark::Quotes | Mark::Sign => MARKED_PASSWORD_CHARS,
        Mark::None => PASSWORD_CHARS,
    };
    let judged = head(value);
    if value.len() < least || is_placeholder(judged) || is_template(judged) {
        return false;
    }
    if is_prose(judged) || (mark != Mark::Quotes && is_code(judged)) {
        return false;
    }
    if is_path(judged) || is_moment(judged) || is_public(judged) || is_uuid(judged) {
        return false;
    }
    let made = makeup(judged);
    let letters = made.letters();
    let foreign = !judged.is_ascii();
    let mixed = made.digits > 0 && letters > 0;
    let signs = made.odd > 0 && ((made.lower > 0 && made.upper > 0) || made.digits > 0 || foreign);
    let drawn = made.humps >= 2 && made.readable * 2 < letters && letters >= PASSWORD_CHARS;
    (mixed || signs || drawn) && !is_identifier(judged)
}

/// Whether a password is one where the form of the command leaves no doubt.
pub(super) fn is_certain_password(value: &str) -> bool {
    let judged = head(value);
    value.len() >= 4 && !value.starts_with('{') && !is_placeholder(judged) && !is_template(judged)
}

/// Words joined by separators, with numbers: `at_least_8_chars`, `oauth2-proxy`, `form.password1`.
fn is_identifier(value: &str) -> bool {
    let made = makeup(value);
    if made.odd > 0 || !value.is_ascii() || made.inner_digits > 1 {
        return false;
    }
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b' ');
    if !value.bytes().all(plain) {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    let stem = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '-');
    if ALGORITHMS.iter().any(|name| lower.starts_with(name)) || ends_with_credential(stem) {
        return true;
    }
    let segments = value
        .split(['_', '-', '.', ' '])
        .filter(|part| !part.is_empty());
    let readable = made.readable + made.short >= made.letters() && made.readable > 0;
    let dotted = value.contains('.') && made.inner_digits == 0;
    readable && (segments.count() >= 3 || dotted)
}

/// Names of methods, which have digits but are not secret.
const ALGORITHMS: &[&str] = &[
    "argon2", "bcrypt", "sha1", "sha2", "sha3", "sha5", "sha-", "md5", "scrypt", "pbkdf2", "oauth",
    "base64", "base32", "utf8", "utf-8", "aes", "rsa", "ed25519", "x509", "ntlm", "hmac", "blake",
    "chacha20", "pkcs", "totp", "sasl", "kerberos", "ldap", "saml", "http", "ssl", "tls", "ipv",
];

/// `user_password`, `newToken`: the name of a secret, not the secret.
fn ends_with_credential(lower: &str) -> bool {
    let mut words = "password passwd pwd pass secret token key passphrase".split(' ');
    let Some(word) = words.find(|word| lower.ends_with(word)) else {
        return false;
    };
    let before = lower.strip_suffix(word).unwrap_or_default();
    let before = before.trim_end_matches(['_', '-', '.']);
    before.is_empty()
        || (before.bytes().all(|b| !b.is_ascii_digit())
            && makeup(before).readable + 2 >= before.len())
}

/// Thirty-two or more hexadecimal digits, some of them letters.
fn is_digest(value: &str) -> bool {
    let has = |wanted: fn(&u8) -> bool| value.as_bytes().iter().any(wanted);
    value.len() >= 32
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

/// How digests that name their method, public keys and addresses of data begin.
const PUBLIC: &str = "\
    sha1- sha256- sha384- sha512- sha1: sha256: sha384: sha512: md5: md5- blake3: blake2b \
    AAAAB3NzaC1 AAAAC3NzaC1 AAAAE2VjZHNh ssh- ecdsa- MIIBIjAN MIICIjAN MIGfMA0 MFkwEwYH \
    MCowBQYDK2V data: http: https: urn: age1 pk_live_ pk_test_ h1:";

fn is_public(value: &str) -> bool {
    PUBLIC.split(' ').any(|start| value.starts_with(start))
}

/// `Linux-cargo-9f86…`: a cache's key, which says what it is for.
fn begins_with_words(value: &str) -> bool {
    let Some((first, _)) = value.split_once(['-', '_', '.', '/']) else {
        return false;
    };
    first.len() >= 3 && makeup(first).readable == first.len()
}

/// `pwd` is also a folder, and `key` a file in a bucket.
fn is_path(value: &str) -> bool {
    let rooted = ["/", "~/", "./", "../"]
        .iter()
        .any(|start| value.starts_with(start));
    let drive = value.get(1..3) == Some(":\\");
    let made = makeup(value);
    // Base64 may begin with a slash, too.
    let is_drawn = made.humps > 1 && made.digits > 1;
    if drive || (rooted && value.matches('/').count() > 1 && !is_drawn) {
        return true;
    }
    value.contains('/') && made.readable * 10 >= made.letters() * 7 && made.odd == 0
}

/// A date, with a time or without: when a password was set, not what it is.
fn is_moment(value: &str) -> bool {
    let shape = |(at, c): (usize, char)| match at {
        4 | 7 => c == '-',
        0..10 => c.is_ascii_digit(),
        _ => c.is_ascii_digit() || matches!(c, 'T' | 'Z' | ':' | '.' | '+' | '-'),
    };
    value.len() >= 10 && value.char_indices().all(shape)
}

/// A text in which a program puts the secret: `${TOKEN}`, `{{ token }}`, `$(pass show shop)`.
fn is_template(value: &str) -> bool {
    let command = value.split_once("$(").map(|(_, command)| command);
    let word = |command: &str| {
        let word = command.split(|c: char| !c.is_ascii_alphabetic()).next();
        word.is_some_and(|word| word.len() > 2 && makeup(word).readable == word.len())
    };
    value.contains("${") || value.contains("{{") || command.is_some_and(word)
}

/// Several words with spaces between them.
fn is_prose(value: &str) -> bool {
    let made = makeup(value);
    value.matches(' ').count() > 1 && made.readable * 10 >= made.letters() * 6
}

/// An expression of a program.
fn is_code(value: &str) -> bool {
    let marks = ["::", "://", "&&", "||", "==", "=>", "->", "?.", "()", "!="];
    let made = makeup(value);
    // A sign in a drawn text is no operator, and Base64 ends with one.
    let is_drawn = made.digits > 0 && made.letters() > 5 && made.readable * 3 < made.letters();
    let value = value.trim_end_matches('=');
    if !is_drawn && marks.iter().any(|mark| value.contains(mark)) {
        return true;
    }
    let value = value.trim_start_matches(['&', '*', '!']);
    if ["self.", "this.", "cls."]
        .iter()
        .any(|start| value.starts_with(start))
    {
        return true;
    }
    // A call or an element: a name before the bracket.
    let Some((called, _)) = value.split_once(['(', '[', '{']) else {
        return false;
    };
    let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let made = makeup(called);
    let is_name = made.digits == 0 || made.readable * 2 >= made.letters() || called.len() < 3;
    is_name && called.bytes().all(name)
}

/// Text that stands where a secret would be put in.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if is_one_character(value) || value.contains("...") || value.contains('…') {
        return true;
    }
    let bare = lower.trim_matches(['"', '\'', '`']);
    if WHOLE_PLACEHOLDERS.split(' ').any(|whole| whole == bare) {
        return true;
    }
    is_variable(value)
        || is_wrapped(value)
        || PLACEHOLDER_WORDS
            .split(", ")
            .any(|word| lower.contains(word))
        || lower.starts_with("process.env")
        || lower.starts_with("os.environ")
        || lower.starts_with("env.")
        || lower.starts_with("secrets.")
        || lower.starts_with("vault:")
}

const WHOLE_PLACEHOLDERS: &str = "\
    password pass pwd passwd secret token key none null true false undefined nil string \
    mypassword my-password my_password password1 password123 default empty required optional \
    hidden removed masked";

const PLACEHOLDER_WORDS: &str = "\
    example, placeholder, your, changeme, change_me, change-me, redacted, xxxx, secret removed, \
    secret-removed, replace_me, replaceme, replace-me, insert_, _here, -here, ****, todo, dummy, \
    <password>, not-a-real, notreal, 0123456789";

/// `<token>`, `[token]`, `{token}`, `%TOKEN%`, `__TOKEN__`, `@TOKEN@`.
fn is_wrapped(value: &str) -> bool {
    let marks = [
        ("<", ">"),
        ("[", "]"),
        ("{", "}"),
        ("%", "%"),
        ("__", "__"),
        ("@", "@"),
    ];
    marks.iter().any(|(open, close)| {
        let Some(inner) = value.strip_prefix(open) else {
            return false;
        };
        let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        let named = inner
            .strip_suffix(close)
            .is_some_and(|inner| inner.bytes().all(name));
        match *open {
            "<" | "[" => true,
            "{" => inner.contains(close),
            _ => named,
        }
    })
}

/// `$TOKEN`, `${TOKEN}`, `$1`: a variable. A password may begin with `$` as well.
fn is_variable(value: &str) -> bool {
    let Some(name) = value.strip_prefix('$') else {
        return false;
    };
    let name = name.strip_prefix(['{', '(']).unwrap_or(name);
    let made = makeup(name);
    value.starts_with("${")
        || value.starts_with("$(")
        || name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        || (made.readable > 0 && made.readable + made.short >= made.letters() && made.odd == 0)
}

fn is_one_character(value: &str) -> bool {
    let first = value.chars().next();
    first.is_some_and(|first| value.chars().all(|c| c == first))
}

/// A token in a manual: its prefix, and then nothing that was drawn.
pub(super) fn is_token_placeholder(rest: &str) -> bool {
    let lower = rest.to_ascii_lowercase();
    let marked = [
        "example",
        "placeholder",
        "your_",
        "your-",
        "xxxxxx",
        "redacted",
    ];
    is_one_character(rest) || marked.iter().any(|word| lower.contains(word))
}

pub(super) fn is_uuid(value: &str) -> bool {
    let mut parts = value.split('-');
    let fits = |length: usize, part: Option<&str>| {
        part.is_some_and(|part| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    [8, 4, 4, 4, 12]
        .iter()
        .all(|length| fits(*length, parts.next()))
        && parts.next().is_none()
}

/// Whether the text is the Base64 form of `user:password`.
pub(super) fn is_encoded_login(value: &str) -> bool {
    let value = value.trim_end_matches('=');
    if value.len() < 8 {
        return false;
    }
    let (mut bits, mut count, mut colon) = (0_u32, 0, false);
    for byte in head(value).bytes() {
        let Some(digit) = base64_digit(byte) else {
            return false;
        };
        bits = bits << 6 | digit;
        count += 6;
        if count >= 8 {
            count -= 8;
            let decoded = (bits >> count & 0xff) as u8;
            colon |= decoded == b':';
            if decoded < b' ' || decoded == 0x7f {
                return false;
            }
        }
    }
    colon
}

fn base64_digit(byte: u8) -> Option<u32> {
    let digit = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(digit))
}
