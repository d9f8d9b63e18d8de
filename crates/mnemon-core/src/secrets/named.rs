//! Values that a name announces: `api_key = …`, `"token": "…"`, `<password>…`, `--password …`.

use super::rules::{self, Form, RULES, Sort};
use super::value::{self, KeyName, Mark};
use super::work;

/// A name is no longer than this.
pub(super) const NAME_BYTES: usize = 64;
/// Spaces around a sign.
const SPACES: usize = 8;

/// A name that says that a secret follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) kind: &'static str,
    pub(super) sort: Sort,
    strength: KeyName,
    /// Where it begins.
    pub(super) start: usize,
}

/// A secret in the text: where it begins and ends, and its kind.
pub(super) type Span = (usize, usize, &'static str);

/// Keys and tokens that are not secret: the word before `key` or `token`.
const OPEN: &str = "\
    primary foreign cache sort partition routing page cursor next continuation sync object map \
    hash dict index row column group unique composite lookup shard max min num total per stop pad \
    eos bos unk sep cls special end start first last hot mon tur don whis hoc joc translation \
    i18n message event host query search data meta config setting storage state trace span metric";

/// Words that make a key public wherever they stand in its name.
const PUBLIC: &[&str] = &[
    "public",
    "pub",
    "publishable",
    "idempotency",
    "etag",
    "checksum",
];

/// Words that make a name sure.
const STRONG: &[&str] = &[
    "api", "secret", "client", "access", "auth", "heroku", "private", "license", "licence", "app",
];

/// Words that end other words, too, and so must begin a part of the name.
const SHORT: &str = "\
    pass pw pwd auth sig signature jwt basic bearer clave parola senha heslo secrets cookie";

/// Marks the end of a chain.
const END: u16 = u16::MAX;

/// The names of the table, chained by their last byte.
struct Index {
    last: [u16; 256],
    /// Bytes that may stand before this last one: almost every word of a text is dismissed by this.
    before_last: [u128; 256],
    next: [u16; RULES.len()],
}

#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time: an index out of range does not compile"
)]
static INDEX: Index = {
    let mut index = Index {
        last: [END; 256],
        before_last: [0; 256],
        next: [END; RULES.len()],
    };
    let mut at = RULES.len();
    // From the end, so that every chain has the order of the table.
    while at > 0 {
        at -= 1;
        if let Form::Name(word, _) = &RULES[at].form {
            let bytes = word.as_bytes();
            let (last, before) = (bytes[bytes.len() - 1], bytes[bytes.len() - 2]);
            let bits = match before.is_ascii() {
                true => 1 << before | 1 << before.to_ascii_uppercase(),
                false => u128::MAX,
            };
            index.next[at] = index.last[last as usize];
            index.last[last as usize] = at as u16;
            index.before_last[last as usize] |= bits;
            if last.is_ascii_lowercase() {
                let upper = last.to_ascii_uppercase() as usize;
                index.last[upper] = at as u16;
                index.before_last[upper] |= bits;
            }
        }
    }
    index
};

/// Whether a name of the table may end with these bytes.
pub(super) fn may_end(before: u8, last: u8) -> bool {
    let bits = INDEX
        .before_last
        .get(usize::from(last))
        .copied()
        .unwrap_or(0);
    bits != 0 && (!before.is_ascii() || bits >> before & 1 == 1)
}

/// The name that ends before this place, spaces, quotes and numbers after it left out.
pub(super) fn before(text: &str, end: usize) -> Option<Name> {
    let bytes = text.as_bytes();
    let mut end = end;
    let back = |end: &mut usize, most: usize, fits: fn(u8) -> bool| {
        for _ in 0..most {
            let last = end.checked_sub(1).and_then(|at| bytes.get(at));
            match last {
                Some(byte) if fits(*byte) => *end -= 1,
                _ => break,
            }
        }
    };
    back(&mut end, SPACES, |byte| matches!(byte, b' ' | b'\t'));
    back(&mut end, 4, |byte| {
        matches!(byte, b'"' | b'\'' | b'`' | b']' | b'*' | b'?')
    });
    back(&mut end, 3, |byte| byte.is_ascii_digit());
    back(&mut end, 1, |byte| byte == b'_');
    let last = *bytes.get(end.checked_sub(1)?)?;
    let penultimate = *bytes.get(end.checked_sub(2)?)?;
    if !may_end(penultimate, last) {
        return None;
    }
    let mut link = INDEX.last.get(usize::from(last)).copied()?;
    while let Some(rule) = RULES.get(usize::from(link)) {
        if let Form::Name(word, sort) = rule.form
            && let Some(name) = named(text, end, word, sort, rule.kind)
        {
            return Some(name);
        }
        link = INDEX.next.get(usize::from(link)).copied()?;
    }
    None
}

/// The name that ends here, if its last word is this one.
fn named(text: &str, end: usize, word: &str, sort: Sort, kind: &'static str) -> Option<Name> {
    let before = text.as_bytes().get(..end)?;
    if !word.is_ascii() {
        let start = end - foreign_length(text.get(..end)?, word)?;
        let strength = KeyName::Usual;
        return Some(Name {
            kind,
            sort,
            strength,
            start,
        });
    }
    let at = end.checked_sub(word.len())?;
    // From the end: most words differ there already.
    let mut pairs = before.iter().rev().zip(word.bytes().rev());
    if !pairs.all(|(byte, wanted)| byte.to_ascii_lowercase() == wanted) {
        return None;
    }
    let part = before.get(..at)?;
    let joined = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = part
        .iter()
        .rev()
        .take(NAME_BYTES)
        .take_while(joined)
        .count();
    work::add(length);
    let start = at - length;
    let qualifier = text.get(start..at)?;
    if SHORT.split(' ').any(|short| short == word)
        && !begins_word(qualifier, before.get(at).copied())
    {
        return None;
    }
    let mut strength = strength(qualifier, word, sort)?;
    if stands_near(text, start, "heroku") {
        strength = KeyName::Strong;
    }
    Some(Name {
        kind,
        sort,
        strength,
        start,
    })
}

/// Whether a word with this first letter begins a part of the name after the qualifier.
fn begins_word(qualifier: &str, first: Option<u8>) -> bool {
    match qualifier.bytes().last() {
        Some(last) if last.is_ascii_lowercase() => first.is_some_and(|it| it.is_ascii_uppercase()),
        // `DBPASS`, but not `BYPASS`.
        Some(last) if last.is_ascii_uppercase() => qualifier.len() == 2 && qualifier != "BY",
        _ => true,
    }
}

/// How sure the name is; nothing if it names something that is not secret.
fn strength(qualifier: &str, word: &str, sort: Sort) -> Option<KeyName> {
    let lower = qualifier.to_ascii_lowercase();
    let lower = lower.trim_matches(['_', '-']);
    if matches!(sort, Sort::Key | Sort::WeakKey) {
        let is_open = OPEN.split(' ').any(|open| lower.ends_with(open));
        let is_public = lower.split(['_', '-']).any(|part| PUBLIC.contains(&part));
        if is_open || is_public || PUBLIC.iter().any(|open| lower.ends_with(open)) {
            return None;
        }
    }
    let is_strong =
        word == "apikey" || word == "secret" || STRONG.iter().any(|it| lower.contains(it));
    Some(match sort {
        _ if is_strong => KeyName::Strong,
        Sort::WeakKey if lower.is_empty() => KeyName::Weak,
        _ => KeyName::Usual,
    })
}

/// The length in bytes of a word in another script at the end of the text, in either case.
fn foreign_length(before: &str, word: &str) -> Option<usize> {
    let mut length = 0;
    let mut there = before.chars().rev();
    for wanted in word.chars().rev() {
        let c = there.next()?;
        if c != wanted && !c.to_lowercase().eq([wanted]) {
            return None;
        }
        length += c.len_utf8();
    }
    Some(length)
}

fn of_member(name: &str) -> Option<Name> {
    before(name, name.len())
}

/// The secret in the text of a member with this name: the whole, or its first word.
pub(super) fn member(name: &str, text: &str) -> Option<Span> {
    let name = of_member(name)?;
    if is_secret(text, name, Mark::Quotes) && !value::head(text).contains(char::is_whitespace) {
        return Some((0, text.len(), name.kind));
    }
    match name.sort {
        Sort::Cookie => cookie(text, 0),
        _ => value_at(text, 0, name, Mark::Sign),
    }
}

/// The secret after a sign of this length.
pub(super) fn after_sign(text: &str, at: usize, length: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    // A path of a program: `Password::new`.
    if bytes.get(at + 1) == Some(&b':') {
        return None;
    }
    let name = before(text, at).or_else(|| of_pair(text, at))?;
    let mut start = at + length;
    let mut glued = true;
    // `:=`, `==` and `=>`.
    for _ in 0..2 {
        start += usize::from(matches!(bytes.get(start), Some(b'=' | b'>')));
    }
    // `**Password:** …`
    while matches!(bytes.get(start), Some(b' ' | b'\t' | b'*')) && start < at + length + SPACES {
        start += 1;
        glued = false;
    }
    match name.sort {
        Sort::Cookie => return cookie(text, start),
        Sort::QuerySignature => {
            let first = name
                .start
                .checked_sub(1)
                .and_then(|before| bytes.get(before));
            let is_query =
                matches!(first, Some(b'?' | b'&' | b';')) && bytes.get(at) == Some(&b'=');
            if !is_query {
                return None;
            }
        }
        _ => {}
    }
    let is_assigned = glued && bytes.get(at) == Some(&b'=');
    let start = after_type(text, start).unwrap_or(start);
    if is_assigned && begins_line(text, name.start) {
        return line_at(text, start, name);
    }
    let mark = if is_assigned { Mark::Sign } else { Mark::None };
    value_at(text, start, name, mark)
}

/// `{name: DB_PASSWORD, value: …}`: the name of the pair whose value follows this sign.
fn of_pair(text: &str, at: usize) -> Option<Name> {
    let end = text.get(..at)?.trim_end_matches([' ', '"', '\'']).len();
    let word = end.checked_sub(5)?;
    if !text
        .as_bytes()
        .get(word..end)?
        .eq_ignore_ascii_case(b"value")
    {
        return None;
    }
    let from = text.ceil_char_boundary(word.saturating_sub(160));
    let near = text.get(from..word)?;
    work::add(near.len());
    let ident = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut words = near.rsplit(|c| !ident(c)).filter(|word| !word.is_empty());
    let named = words.next()?;
    let label = words.next()?;
    let is_label = ["name", "key"]
        .iter()
        .any(|it| label.eq_ignore_ascii_case(it));
    let name = of_member(named).filter(|_| is_label)?;
    Some(Name {
        start: word,
        ..name
    })
}

/// Whether a line, or an element of a list, begins here.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let before = before.strip_suffix("export ").unwrap_or(before);
    let before = before.trim_end_matches([' ', '\t', '-', '"', '\'']);
    before.is_empty() || before.ends_with(['\n', '\r'])
}

/// `password: str = "…"`: where the value begins after a type.
fn after_type(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let near = rest.get(..rest.floor_char_boundary(48))?;
    let near = near.split(['\n', '"', '\'']).next()?;
    let is_type = near.starts_with(|c: char| c.is_ascii_alphabetic() || c == '&');
    let sign = near.find(" = ").filter(|_| is_type)?;
    let value = start + sign + 3;
    matches!(text.as_bytes().get(value), Some(b'"' | b'\'')).then_some(value)
}

/// The secret among words: after `--password`, `Bearer`, `PASSWORD` in SQL or netrc, or in a
/// sentence.
pub(super) fn after_space(text: &str, at: usize) -> Option<Span> {
    let name = before(text, at)?;
    let bytes = text.as_bytes();
    let mut start = at;
    while matches!(bytes.get(start), Some(b' ' | b'\t')) && start < at + SPACES {
        start += 1;
    }
    let is_flag = bytes.get(name.start) == Some(&b'-');
    match name.sort {
        Sort::Scheme => return scheme(text, start, name),
        Sort::Cookie => return is_flag.then(|| cookie(text, start)).flatten(),
        Sort::QuerySignature | Sort::Auth => return None,
        Sort::Key | Sort::WeakKey if in_header(text, name) => return scheme(text, start, name),
        _ => {}
    }
    if is_flag {
        return value_at(text, start, name, Mark::Sign);
    }
    // "to pass x" is a verb.
    if text
        .get(name.start..at)
        .is_some_and(|name| name.trim_end().eq_ignore_ascii_case("pass"))
    {
        return None;
    }
    if name.sort == Sort::Password {
        if let Some(b'"' | b'\'' | b'`') = bytes.get(start) {
            return quoted_word(text, start, at, name);
        }
        if let Some(found) = netrc(text, start, name) {
            return Some(found);
        }
    }
    let start = super::spoken::value(text, start, name.sort == Sort::Password)?;
    value_at(text, start, name, Mark::None)
}

/// `IDENTIFIED BY '…'`, `PASSWORD '…'`.
fn quoted_word(text: &str, start: usize, at: usize, name: Name) -> Option<Span> {
    let (from, end) = quoted(text, start, name.sort)?;
    let value = text.get(from..end)?;
    let name_end = text.get(..at)?.trim_end().len();
    let tail = text
        .as_bytes()
        .get(name_end.saturating_sub(IDENTIFIED_BY.len())..name_end)?;
    let in_sql = tail.eq_ignore_ascii_case(IDENTIFIED_BY.as_bytes());
    // Manuals put names between backquotes.
    if in_sql && text.as_bytes().get(start) == Some(&b'`') {
        return None;
    }
    let is_secret = match in_sql {
        true => value::is_certain_password(value),
        false => value::is_password(value, Mark::Quotes),
    };
    (is_secret && !value.contains(char::is_whitespace)).then_some((from, end, name.kind))
}

/// What stands before a password in SQL.
const IDENTIFIED_BY: &str = "identified by";

/// `machine … login … password …` on one line, or `password …` on a line of its own.
fn netrc(text: &str, start: usize, name: Name) -> Option<Span> {
    let before = text.get(..name.start)?;
    let near = before.get(before.ceil_char_boundary(before.len().saturating_sub(200))..)?;
    let line = near.rsplit('\n').next()?;
    work::add(line.len());
    let (_, end) = token(text, start);
    let value = text.get(start..end)?;
    if line.contains("login ") || line.contains("machine ") {
        return value::is_certain_password(value).then_some((start, end, name.kind));
    }
    let rest = text.get(end..)?;
    let alone = rest.is_empty() || rest.starts_with(['\n', '\r']);
    let alone = alone && line.trim().is_empty() && value::is_password(value, Mark::None);
    alone.then_some((start, end, name.kind))
}

/// `Bearer …` and `Basic …`, as in a request.
fn scheme(text: &str, start: usize, name: Name) -> Option<Span> {
    let (start, end) = match text.as_bytes().get(start) {
        Some(b'"' | b'\'') => return None,
        _ => token(text, start),
    };
    let value = text.get(start..end)?;
    let in_header = in_header(text, name);
    let is_login = value::is_encoded_login(value);
    let is_secret = is_login && (in_header || value.len() >= 16)
        || value::is_key(value, KeyName::Strong, false)
        || (in_header && value::is_password(value, Mark::None));
    is_secret.then_some((start, end, rules::KEY))
}

/// Whether the name stands in the `Authorization` header.
fn in_header(text: &str, name: Name) -> bool {
    stands_near(text, name.start, "authorization")
}

/// Whether the word stands shortly before this place, in either case.
fn stands_near(text: &str, at: usize, word: &str) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let near = before.get(before.ceil_char_boundary(before.len().saturating_sub(24))..);
    work::add(24);
    near.is_some_and(|near| near.to_ascii_lowercase().contains(word))
}

/// The values of a cookie header that look drawn, from the first to the last of them.
pub(super) fn cookie(text: &str, start: usize) -> Option<Span> {
    let rest = text.get(start..)?;
    let near = rest.get(..rest.floor_char_boundary(4096))?;
    let line = near.split(['\n', '\r']).next()?;
    work::add(line.len());
    let mut from = start;
    let mut spans = line.split(';').filter_map(|pair| {
        let at = from;
        from += pair.len() + 1;
        let value = at + pair.find('=')? + 1;
        let (start, end) = match text.as_bytes().get(value) {
            Some(b'"') => quoted(text, value, Sort::Key)?,
            _ => token(text, value),
        };
        is_cookie(text.get(start..end)?).then_some((start, end))
    });
    let (start, end) = spans.next()?;
    let end = spans.last().map_or(end, |(_, last)| last);
    Some((start, end, rules::COOKIE))
}

fn is_cookie(value: &str) -> bool {
    value.len() >= 12
        && !value::is_placeholder(value::head(value))
        && (value::is_drawn(value)
            || value::is_uuid(value)
            || value::is_key(value, KeyName::Strong, true))
}

/// The secret after `は`, `是`, `는`, which stand between a name and its value without spaces.
pub(super) fn after_particle(text: &str, particle: usize, end: usize) -> Option<Span> {
    let has_value = |name: &Name| matches!(name.sort, Sort::Password | Sort::Key | Sort::WeakKey);
    let name = before(text, particle).filter(has_value)?;
    let bytes = text.as_bytes();
    let mut start = end;
    while matches!(bytes.get(start), Some(b' ' | b':')) && start < end + SPACES {
        start += 1;
    }
    value_at(text, start, name, Mark::None)
}

/// The secret after `<password>` or `<string name="api_key">`.
pub(super) fn in_element(text: &str, at: usize) -> Option<Span> {
    let name = before(text, at)?;
    let first = text.as_bytes().get(name.start.checked_sub(1)?)?;
    if !matches!(first, b'<' | b':' | b'"' | b'\'') {
        return None;
    }
    let rest = text.get(at + 1..)?;
    let near = rest.get(..rest.floor_char_boundary(value::JUDGED_BYTES))?;
    let length = near.find(['<', '\n']).unwrap_or(near.len());
    work::add(length);
    let end = match length == near.len() {
        true => rest.find(['<', '\n']).unwrap_or(rest.len()),
        false => length,
    };
    let (start, end) = (at + 1, at + 1 + end);
    is_secret(text.get(start..end)?, name, Mark::Quotes).then_some((start, end, name.kind))
}

/// The secret after `("password", ` or `setPassword(`: only quotes show where it begins.
pub(super) fn quoted_argument(text: &str, at: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let mut start = at + 1;
    start += usize::from(bytes.get(start) == Some(&b' '));
    if !matches!(bytes.get(start), Some(b'"' | b'\'' | b'`')) {
        return None;
    }
    let name = before(text, at)?;
    match name.sort {
        Sort::Key | Sort::WeakKey | Sort::Password => value_at(text, start, name, Mark::Quotes),
        _ => None,
    }
}

/// The secret that begins at this place.
fn value_at(text: &str, start: usize, name: Name, mark: Mark) -> Option<Span> {
    let is_quoted = matches!(text.as_bytes().get(start), Some(b'"' | b'\'' | b'`'));
    let mark = if is_quoted { Mark::Quotes } else { mark };
    let (start, end) = match (is_quoted, name.sort) {
        (true, _) => quoted(text, start, name.sort)?,
        (false, Sort::Password | Sort::Auth) => token(text, start),
        (false, _) => key_run(text, start),
    };
    is_secret(text.get(start..end)?, name, mark).then_some((start, end, name.kind))
}

/// The same for `NAME=value` on a line of its own: the value may have any sign in it.
fn line_at(text: &str, start: usize, name: Name) -> Option<Span> {
    let found = value_at(text, start, name, Mark::Sign);
    let (from, end) = token(text, start);
    let rest = text
        .get(end..)?
        .trim_start_matches(['.', ',', ';', ':', ')', ']', '}']);
    let is_whole = rest.is_empty() || rest.starts_with(['\n', '\r']);
    let is_longer = found.is_none_or(|(_, short, _)| short < end);
    match is_whole && is_longer && is_secret(text.get(from..end)?, name, Mark::Sign) {
        true => Some((from, end, name.kind)),
        false => found,
    }
}

/// Whether the value of a member with this name is a secret as a whole.
fn is_secret(value: &str, name: Name, mark: Mark) -> bool {
    let spaced = value::head(value).contains(char::is_whitespace);
    match name.sort {
        Sort::Password => value::is_password(value, mark),
        Sort::Auth => value::is_encoded_login(value) || value::is_password(value, mark),
        Sort::Cookie => is_cookie(value),
        Sort::Key | Sort::WeakKey | Sort::Scheme => {
            !spaced && value::is_key(value, name.strength, mark == Mark::Quotes)
        }
        Sort::QuerySignature => !spaced && value.len() >= 20 && value::is_drawn(value),
    }
}

/// The content of the quotes that open at this place.
fn quoted(text: &str, open: usize, sort: Sort) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let quote = *bytes.get(open)?;
    let mut start = open + 1;
    // Three quotes open a text of several lines.
    if bytes.get(start..start + 2) == Some(&[quote, quote]) {
        start += 2;
    }
    let rest = bytes.get(start..)?;
    let near = rest.get(..value::JUDGED_BYTES).unwrap_or(rest);
    if let Some(length) = closing(near, quote) {
        return Some((start, start + length));
    }
    // Longer than what is judged: the whole is read only if its beginning is a secret, so that
    // quotes that never close do not cost the rest of the text each time.
    let head = value::head(text.get(start..)?);
    let spaced = head.contains(char::is_whitespace);
    let is_long = match sort {
        Sort::Password | Sort::Auth => !spaced && value::is_password(head, Mark::Quotes),
        _ => !spaced && value::is_key(head, KeyName::Strong, true),
    };
    if !is_long {
        return Some(token(text, start));
    }
    let length = closing(rest, quote);
    work::add(length.unwrap_or(0));
    Some(length.map_or_else(|| token(text, start), |length| (start, start + length)))
}

/// The place of the quote that closes: not escaped, and not followed by more of the value.
fn closing(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in bytes.iter().copied().enumerate() {
        work::add(1);
        match byte {
            b'\n' => return None,
            b'\\' => escaped = !escaped,
            _ if byte == quote && !escaped => {
                let next = bytes.get(at + 1).copied().unwrap_or(b' ');
                let goes_on = next.is_ascii_alphanumeric() || b"!@#$%^*_=?~".contains(&next);
                if !goes_on {
                    return Some(at);
                }
            }
            _ => escaped = false,
        }
    }
    None
}

/// The run of characters that keys are made of.
fn key_run(text: &str, start: usize) -> (usize, usize) {
    let in_key = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'-' | b'_' | b'+' | b'/' | b'=' | b'.' | b'~' | b'%' | b':'
            )
    };
    let rest = text.as_bytes().get(start..).unwrap_or_default();
    let near = rest.get(..value::JUDGED_BYTES).unwrap_or(rest);
    let length = near.iter().take_while(|byte| in_key(**byte)).count();
    work::add(length);
    let head = text.get(start..start + length).unwrap_or_default();
    let length = match length == near.len() && value::is_key(head, KeyName::Strong, true) {
        true => rest.iter().take_while(|byte| in_key(**byte)).count(),
        false => length,
    };
    work::add(length);
    (start, trimmed(text, start, start + length))
}

/// The run of visible characters, up to a sign that ends a value.
pub(super) fn token(text: &str, start: usize) -> (usize, usize) {
    let rest = text.get(start..).unwrap_or_default();
    let near = value::head(rest);
    let mut length = token_length(near);
    if length == near.len() && value::is_placeholder(near) {
        return (start, start);
    }
    if length == near.len() && (value::is_drawn(near) || value::is_password(near, Mark::Sign)) {
        length = token_length(rest);
    }
    work::add(length);
    (start, trimmed(text, start, start + length))
}

fn token_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let ends = |(at, c): &(usize, char)| match c {
        '"' | '\'' | '`' | '<' => true,
        '\\' => matches!(
            bytes.get(at + 1),
            Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\')
        ),
        '%' => {
            let code = bytes.get(at + 1..at + 3).map(<[u8]>::to_ascii_uppercase);
            let ending: [&[u8]; 6] = [b"26", b"20", b"0A", b"0D", b"22", b"3B"];
            code.is_some_and(|code| ending.contains(&code.as_slice()))
        }
        '&' | ',' | ';' => begins_pair(bytes.get(at + 1..).unwrap_or_default()),
        _ => !(c.is_ascii_graphic() || is_latin(*c)),
    };
    let end = rest.char_indices().find(ends);
    end.map_or(rest.len(), |(at, _)| at)
}

/// Whether `name=` or `name:` follows.
fn begins_pair(bytes: &[u8]) -> bool {
    let name = bytes.iter().take(32);
    let ident = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.\"'".contains(byte);
    let length = name.take_while(ident).count();
    work::add(length);
    length > 1 && matches!(bytes.get(length), Some(b'=' | b':'))
}

/// Letters of European languages and of Vietnamese: other scripts go on with the sentence.
fn is_latin(c: char) -> bool {
    matches!(c, '\u{C0}'..='\u{24F}' | '\u{1EA0}'..='\u{1EF9}')
}

/// The end without the signs that end a sentence or close a bracket.
fn trimmed(text: &str, start: usize, end: usize) -> usize {
    let value = text.get(start..end).unwrap_or_default();
    start
        + value
            .trim_end_matches(['.', ',', ';', ':', ')', ']', '}'])
            .len()
}
