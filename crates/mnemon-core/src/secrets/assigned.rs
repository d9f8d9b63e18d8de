//! What is said to be a key: `api_key = …`, `"token": "…"`, `Authorization: Bearer …`.

use super::{KEY_BYTES, Secret, is_random, run};

/// A name that ends with one of these says that a secret follows.
const NAMES: &[(&str, Sort)] = &[
    ("key", Sort::Key),
    ("token", Sort::Key),
    ("secret", Sort::Key),
    ("credential", Sort::Key),
    ("credentials", Sort::Key),
    ("password", Sort::Password),
    ("passwd", Sort::Password),
    ("passphrase", Sort::Password),
    ("pwd", Sort::Password),
];

/// Passwords in other languages, in lower case.
const FOREIGN: &[&str] = &[
    "passwort",
    "kennwort",
    "mot de passe",
    "contraseña",
    "senha",
    "parola",
    "пароль",
    "mật khẩu",
    "パスワード",
    "密码",
    "密碼",
    "비밀번호",
];

/// Keys that are no secret.
const OPEN: &[&str] = &[
    "public",
    "primary",
    "foreign",
    "cache",
    "sort",
    "partition",
    "idempotency",
    "routing",
    "page",
    "cursor",
    "next",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Key,
    Password,
}

/// A key has at least so many characters,
const KEY_CHARS: usize = 16;
/// and a password so many.
const PASSWORD_CHARS: usize = 8;
/// A name is no longer than this.
const NAME_BYTES: usize = 64;
/// Spaces around a sign.
const SPACES: usize = 8;

pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if at >= from
            && let length @ 1.. = sign(text, at, byte)
            && let Some((secret, end)) = after_sign(text, at, length)
        {
            found.extend(secret);
            from = end;
        }
    }
    bearer(text, found);
    logins(text, found);
}

/// How long the sign at this place is that a secret may follow: `=`, `:`, and the word in `the
/// password is …`.
fn sign(text: &str, at: usize, byte: u8) -> usize {
    match byte {
        b'=' | b':' => 1,
        b' ' if text.get(at..at + IS.len()) == Some(IS) => IS.len(),
        _ => 0,
    }
}

const IS: &str = " is ";

/// `-u name:password`, as commands take it.
fn logins(text: &str, found: &mut Vec<Secret>) {
    for flag in ["-u ", "--user "] {
        for (at, _) in text.match_indices(flag) {
            let start = at + flag.len();
            let rest = text.as_bytes().get(start..).unwrap_or_default();
            let quotes = run(rest, |byte| matches!(byte, b'"' | b'\'')).min(1);
            let (start, rest) = (start + quotes, rest.get(quotes..).unwrap_or_default());
            let length = run(rest, |byte| in_value(byte, Sort::Password));
            let login = text.get(start..start + length).unwrap_or_default();
            if let Some((name, password)) = login.split_once(':')
                && is_secret(password, Sort::Password)
            {
                found.push(Secret {
                    what: "password",
                    start: start + name.len() + 1,
                    end: start + length,
                });
            }
        }
    }
}

/// The secret on the right of a sign at this place, and where to look on. Nothing if the sign is
/// none that a secret would follow.
fn after_sign(text: &str, at: usize, length: usize) -> Option<(Option<Secret>, usize)> {
    let (name, sort) = named(text.get(..at)?)?;
    if OPEN.iter().any(|open| name.contains(open)) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut start = at + length;
    // `:=`, `==` and `=>`.
    start += run(bytes.get(start..)?, |byte| matches!(byte, b'=' | b'>')).min(2);
    start += run(bytes.get(start..)?, |byte| matches!(byte, b' ' | b'\t')).min(SPACES);
    let quote = bytes
        .get(start)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    start += usize::from(quote.is_some());
    let value = match (quote, sort) {
        (Some(quote), Sort::Password) => {
            let rest = bytes.get(start..)?;
            let length = run(rest, |byte| byte != quote && byte != b'\n');
            text.get(start..start + length)?
        }
        _ => {
            let rest = bytes.get(start..)?;
            let length = run(rest, |byte| in_value(byte, sort));
            text.get(start..start + length)?
        }
    };
    let value = value.trim_end_matches(['.', ',', ';', ')']);
    let end = start + value.len();
    let what = match sort {
        Sort::Key => "key or token",
        Sort::Password => "password",
    };
    let secret = is_secret(value, sort).then_some(Secret { what, start, end });
    // What is too long for a key holds no other name and sign worth looking at.
    let seen = secret.is_some() || value.len() >= KEY_BYTES;
    Some((secret, if seen { end } else { at + 1 }))
}

fn in_value(byte: u8, sort: Sort) -> bool {
    let key = byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'+' | b'/' | b'=' | b'.' | b'~');
    let password = byte.is_ascii_graphic()
        && !matches!(
            byte,
            b'"' | b'\'' | b'`' | b'<' | b'>' | b',' | b';' | b'(' | b')'
        );
    match sort {
        Sort::Key => key,
        Sort::Password => password,
    }
}

/// The name that stands before a sign, in lower case, if it is one of a secret.
fn named(before: &str) -> Option<(String, Sort)> {
    let before = before.trim_end_matches([' ', '\t']);
    let before = before.strip_suffix(['"', '\'', '`', ']']).unwrap_or(before);
    let before = before.strip_suffix(['"', '\'']).unwrap_or(before);
    let from = before.ceil_char_boundary(before.len().saturating_sub(NAME_BYTES));
    let end = before.get(from..)?.to_lowercase();
    if let Some(name) = FOREIGN.iter().find(|name| end.ends_with(**name)) {
        return Some(((*name).to_owned(), Sort::Password));
    }
    let length = before.bytes().rev().take(NAME_BYTES);
    let length =
        length.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let name = before.get(before.len() - length.count()..)?;
    let ends = |end: &str| {
        let tail = name.len().checked_sub(end.len());
        let tail = tail.and_then(|from| name.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    let (_, sort) = NAMES.iter().find(|(end, _)| ends(end))?;
    Some((name.to_ascii_lowercase(), *sort))
}

/// Whether what has this name is said to be a secret.
pub(super) fn names_secret(name: &str) -> bool {
    named(name).is_some_and(|(name, _)| !OPEN.iter().any(|open| name.contains(open)))
}

fn is_secret(value: &str, sort: Sort) -> bool {
    if is_placeholder(value) {
        return false;
    }
    match sort {
        Sort::Key => {
            let random = is_random(value) || is_digest(value);
            value.len() >= KEY_CHARS && random && !is_uuid(value)
        }
        Sort::Password => {
            let has = |wanted: fn(&char) -> bool| value.chars().any(|c| wanted(&c));
            // What has neither a digit nor a sign is a word of prose or of a program.
            let mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
            let odd = |c: &char| {
                matches!(
                    c,
                    '!' | '@' | '#' | '$' | '%' | '^' | '&' | '*' | '+' | '?' | '~' | '|'
                )
            };
            let mixed = mixed
                || (has(odd) && has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase));
            let call =
                value.contains(['(', '[', '{']) || value.contains("::") || value.contains("://");
            let other = call || is_path(value) || is_moment(value);
            (PASSWORD_CHARS..=256).contains(&value.len()) && mixed && !other
        }
    }
}

/// Thirty-two or more hexadecimal digits, some of them letters.
fn is_digest(value: &str) -> bool {
    let has = |wanted: fn(&u8) -> bool| value.as_bytes().iter().any(wanted);
    value.len() >= 32
        && value.bytes().all(|byte| byte.is_ascii_hexdigit())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

/// `pwd` is also where one is.
fn is_path(value: &str) -> bool {
    let beginning = ["/", "~/", "./", "../"];
    let rooted = beginning.iter().any(|start| value.starts_with(start));
    let drive = value.get(1..3) == Some(":\\");
    drive || (rooted && value.matches('/').count() > 1)
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

/// What stands where a secret would be put in.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let first = value.chars().next();
    let same = first.is_some_and(|first| value.chars().all(|c| c == first));
    same || value.starts_with(['$', '<', '{', '[', '%', '*'])
        || value.contains("...")
        || value.contains('…')
        || [
            "password", "pass", "pwd", "passwd", "secret", "token", "key",
        ]
        .contains(&lower.as_str())
        || [
            "example",
            "placeholder",
            "your",
            "changeme",
            "redacted",
            "xxxx",
            "secret removed",
        ]
        .iter()
        .any(|word| lower.contains(word))
}

fn is_uuid(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && parts
            .iter()
            .all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `Bearer …` and `Basic …`, as in a request.
fn bearer(text: &str, found: &mut Vec<Secret>) {
    for word in ["Bearer ", "bearer ", "Basic "] {
        if !text.contains(word) {
            continue;
        }
        for (at, mark) in text.match_indices(word) {
            let start = at + mark.len();
            let rest = text.as_bytes().get(start..).unwrap_or_default();
            let length = run(rest, |byte| in_value(byte, Sort::Key));
            let Some(value) = text.get(start..start + length) else {
                continue;
            };
            let value = value.trim_end_matches(['.', ',']);
            if is_secret(value, Sort::Key) {
                found.push(Secret {
                    what: "key or token",
                    start,
                    end: start + value.len(),
                });
            }
        }
    }
}
