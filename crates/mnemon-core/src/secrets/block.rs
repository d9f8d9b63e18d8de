//! Private keys in blocks of lines.

use super::work;

pub(super) const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// The format of SSH2 has four dashes.
pub(super) const SSH2_BEGIN: &str = "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----";
const SSH2_END: &str = "---- END SSH2 ENCRYPTED PRIVATE KEY ----";
const DASHES: &str = "-----";
/// A line that begins or ends a block is no longer than this.
const LABEL_BYTES: usize = 64;
/// PuTTY's format has a header, and a checksum at the end.
pub(super) const PUTTY_BEGIN: &str = "PuTTY-User-Key-File-";
const PUTTY_PRIVATE: &str = "Private-Lines:";
const PUTTY_END: &str = "Private-MAC:";

/// The end of the block that begins at this place.
pub(super) fn end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    if rest.starts_with(SSH2_BEGIN) {
        let end = rest.find(SSH2_END).map(|end| at + end + SSH2_END.len());
        return end.or_else(|| cut_off(text, at + SSH2_BEGIN.len()));
    }
    if rest.starts_with(PUTTY_BEGIN) {
        return putty(rest).map(|length| at + length);
    }
    let begun = label_end(text, at, BEGIN)?;
    let mut from = begun;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(END)) {
        work::add(found);
        let place = from + found;
        if let Some(end) = label_end(text, place, END) {
            return Some(end);
        }
        from = place + END.len();
    }
    cut_off(text, begun)
}

/// The end of a line that names a private key.
fn label_end(text: &str, at: usize, mark: &str) -> Option<usize> {
    let label = at + mark.len();
    let rest = text.get(at..)?.strip_prefix(mark)?;
    let near = rest.get(..rest.floor_char_boundary(LABEL_BYTES))?;
    let dashes = near.find(DASHES)?;
    let names_key = near.get(..dashes)?.contains("PRIVATE KEY");
    names_key.then_some(label + dashes + DASHES.len())
}

/// The end of a block whose last line is missing: it goes on as long as its lines look like a key.
fn cut_off(text: &str, begun: usize) -> Option<usize> {
    let rest = text.get(begun..)?;
    let mut end = begun;
    let mut from = 0;
    while from < rest.len() {
        let line = rest.get(from..)?;
        let length = line.find(['\n', '\\']).unwrap_or(line.len());
        let content = line.get(..length)?.trim();
        work::add(length);
        if !content.is_empty() {
            let in_key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
            let header = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:"];
            if !content.bytes().all(in_key) && !header.iter().any(|it| content.starts_with(it)) {
                break;
            }
            end = begun + from + length;
        }
        let escaped = ["\\n", "\\r", "\\t"]
            .iter()
            .any(|it| line.get(length..).is_some_and(|l| l.starts_with(it)));
        from += length + if escaped { 2 } else { 1 };
    }
    (end > begun).then_some(end)
}

fn putty(rest: &str) -> Option<usize> {
    let private = rest.find(PUTTY_PRIVATE)?;
    let Some(end) = rest.get(private..)?.find(PUTTY_END) else {
        return Some(rest.len());
    };
    let checksum = private + end + PUTTY_END.len();
    let line = rest.get(checksum..)?;
    let hex = |c: char| c == ' ' || c.is_ascii_hexdigit();
    let length = line.find(|c| !hex(c)).unwrap_or(line.len());
    Some(checksum + line.get(..length)?.trim_end().len())
}
