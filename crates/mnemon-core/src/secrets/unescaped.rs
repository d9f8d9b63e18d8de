//! The text as its reader will see it: escapes resolved, so that they do not hide a secret.
//!
//! A token after `\n` in a JSON log looks as if it began with an `n`, and `password%3D…` has no
//! sign in it. Lines with escapes are scanned a second time with the escapes resolved, and what is
//! found there is mapped back.

use super::work;

/// A line with its escapes resolved.
pub(super) struct Unescaped {
    pub(super) text: String,
    /// Where the line begins in the whole text.
    start: usize,
    /// After each escape: its end in the resolved text and in the line.
    ends: Vec<(usize, usize)>,
}

impl Unescaped {
    /// The place in the whole text that a place in the resolved line came from.
    pub(super) fn original(&self, at: usize) -> usize {
        let before = self.ends.partition_point(|(resolved, _)| *resolved <= at);
        let last = before.checked_sub(1).and_then(|last| self.ends.get(last));
        let (resolved, original) = last.copied().unwrap_or_default();
        self.start + original + (at - resolved)
    }
}

/// Bytes that an escape may begin with.
static BEGINS: [bool; 256] = {
    let mut begins = [false; 256];
    // Backslash, percent sign, entity, terminal colours; the first bytes of quotation marks, wide
    // signs, no-break and zero-width spaces.
    let marks = b"\\%&\x1b\xC2\xE2\xE3\xEF";
    let mut at = 0;
    while at < marks.len() {
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
        {
            begins[marks[at] as usize] = true;
        }
        at += 1;
    }
    begins
};

/// Calls `each` with every line that holds an escape.
pub(super) fn lines(text: &str, mut each: impl FnMut(&Unescaped)) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = next_escape(bytes, from) {
        let before = bytes.get(from..at).unwrap_or_default();
        let start = before.iter().rposition(|byte| *byte == b'\n');
        let start = start.map_or(from, |newline| from + newline + 1);
        let rest = bytes.get(at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        let end = end.map_or(bytes.len(), |length| at + length);
        if let Some(line) = text.get(start..end) {
            each(&resolve(line, start));
        }
        from = end;
    }
}

/// The next escape that changes something.
fn next_escape(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(from..)?;
        let begins = |byte: &u8| BEGINS.get(usize::from(*byte)).copied().unwrap_or(false);
        let at = from + rest.iter().position(begins)?;
        if escape(bytes.get(at..)?).is_some() {
            return Some(at);
        }
        // A run of backslashes that escapes nothing is passed over whole.
        let slashes = bytes
            .get(at..)?
            .iter()
            .take_while(|byte| **byte == b'\\')
            .count();
        from = at + slashes.max(1);
    }
}

fn resolve(line: &str, start: usize) -> Unescaped {
    work::add(line.len());
    let mut text = String::with_capacity(line.len());
    let mut ends = Vec::new();
    let bytes = line.as_bytes();
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = next_escape(bytes, from) {
        let Some((length, stands_for)) = bytes.get(at..).and_then(escape) else {
            break;
        };
        // An escape begins and ends where characters do.
        text.push_str(line.get(copied..at).unwrap_or_default());
        text.extend(stands_for);
        from = at + length;
        copied = from;
        ends.push((text.len(), from));
    }
    text.push_str(line.get(copied..).unwrap_or_default());
    Unescaped { text, start, ends }
}

/// The length of the escape that the bytes begin with, and the character it stands for, if any.
fn escape(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    match bytes.first()? {
        b'\\' => backslash(bytes),
        b'%' => percent(bytes),
        b'&' => entity(bytes),
        b'\x1b' => Some((colour(bytes, 1)?, Some(' '))),
        _ => sign(bytes),
    }
}

/// One or more backslashes, as in JSON within JSON, and what they escape.
fn backslash(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    work::add(slashes);
    let rest = bytes.get(slashes..)?;
    let (length, c) = match rest.first()? {
        b'n' | b'r' => (1, '\n'),
        b't' | b'b' | b'f' | b'v' => (1, ' '),
        quote @ (b'"' | b'\'' | b'/' | b'`' | b'$' | b'=' | b':' | b'#' | b'!' | b'&') => {
            (1, char::from(*quote))
        }
        b'u' => unicode(rest)?,
        b'x' => (3, hex(rest.get(1..3)?)?),
        b'e' | b'0' => {
            let skip = if rest.starts_with(b"033") { 3 } else { 1 };
            (colour(rest, skip)?, ' ')
        }
        _ => return None,
    };
    // `\x1b[32m` is a colour, whose letters are no part of the word that follows.
    let length = match c {
        '\x1b' => colour(rest, length).unwrap_or(length),
        _ => length,
    };
    Some((slashes + length, Some(c)))
}

/// `u003d` and `u{3d}`.
fn unicode(rest: &[u8]) -> Option<(usize, char)> {
    if rest.get(1) == Some(&b'{') {
        let digits = rest.get(2..)?.iter().take(6);
        let count = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
        rest.get(2 + count).filter(|byte| **byte == b'}')?;
        return Some((count + 3, hex(rest.get(2..2 + count)?)?));
    }
    Some((5, hex(rest.get(1..5)?)?))
}

fn hex(digits: &[u8]) -> Option<char> {
    let digits = std::str::from_utf8(digits).ok()?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// `%3A`, and `%253A` where an address was escaped twice.
fn percent(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    let mut skip = 1;
    // Each level of escaping adds `25`; three are more than anybody nests.
    for _ in 0..3 {
        let nested = bytes.get(skip..skip + 4)?;
        let more = nested.starts_with(b"25") && nested.iter().all(u8::is_ascii_hexdigit);
        skip += if more { 2 } else { break };
    }
    let c = hex(bytes.get(skip..skip + 2)?)?;
    let plain = c.is_ascii_graphic() || matches!(c, ' ' | '\n' | '\r' | '\t');
    plain.then_some((skip + 2, Some(c)))
}

/// The entities of XML and HTML.
fn entity(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    const NAMED: &[(&[u8], char)] = &[
        (b"&quot;", '"'),
        (b"&apos;", '\''),
        (b"&amp;", '&'),
        (b"&lt;", '<'),
        (b"&gt;", '>'),
        (b"&nbsp;", ' '),
        (b"&equals;", '='),
        (b"&colon;", ':'),
    ];
    if let Some((name, c)) = NAMED.iter().find(|(name, _)| bytes.starts_with(name)) {
        return Some((name.len(), Some(*c)));
    }
    let number = bytes.strip_prefix(b"&#")?;
    let number = number.get(..number.len().min(8))?;
    let end = number.iter().position(|byte| *byte == b';')?;
    let digits = std::str::from_utf8(number.get(..end)?).ok()?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    Some((end + 3, Some(char::from_u32(code.ok()?)?)))
}

/// The end of a terminal's colour code, whose bracket stands at `from`.
fn colour(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?.strip_prefix(b"[")?;
    let code = rest.iter().take(16);
    let length = code
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    rest.get(length).filter(|byte| byte.is_ascii_alphabetic())?;
    Some(from + length + 2)
}

/// Wide forms of ASCII, quotation marks, and spaces that are not ASCII or not visible.
fn sign(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    // The second byte dismisses most of the other characters of these blocks.
    let is_near = match bytes.first_chunk()? {
        [0xC2, second] => matches!(second, 0xA0 | 0xAB | 0xAD | 0xBB),
        [0xE2, second] => matches!(second, 0x80 | 0x81),
        [0xE3, second] => *second == 0x80,
        [_, second] => matches!(second, 0xBB..=0xBD),
    };
    let head = bytes.get(..bytes.len().min(4)).filter(|_| is_near)?;
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
    };
    let c = valid.chars().next()?;
    let plain = match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0),
        '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' => Some('"'),
        '‘' | '’' | '‚' => Some('\''),
        '\u{A0}' | '\u{3000}' | '\u{2009}' | '\u{202F}' => Some(' '),
        '\u{200B}'..='\u{200D}' | '\u{FEFF}' | '\u{AD}' | '\u{2060}' => None,
        _ => return None,
    };
    Some((c.len_utf8(), plain))
}
