//! Private keys between their two lines.

use super::Secret;

pub(super) const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// A line that begins or ends a block is no longer than this.
const LABEL_BYTES: usize = 64;

pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let mut from = 0;
    while let Some((start, after)) = line(text, from, BEGIN) {
        // A block that was cut off goes to the end: what follows is the key.
        let end = line(text, after, END).map_or(text.len(), |(_, end)| end);
        found.push(Secret {
            what: "private key",
            start,
            end,
        });
        from = end;
    }
}

/// The next line of this sort that names a private key: where it begins and ends.
fn line(text: &str, mut from: usize, mark: &str) -> Option<(usize, usize)> {
    loop {
        let start = from + text.get(from..)?.find(mark)?;
        let label = start + mark.len();
        let rest = text.get(label..)?;
        let near = rest
            .get(..rest.floor_char_boundary(LABEL_BYTES))
            .unwrap_or_default();
        let dashes = near.find(DASHES);
        if let Some(at) = dashes
            && rest
                .get(..at)
                .is_some_and(|label| label.contains("PRIVATE KEY"))
        {
            return Some((start, label + at + DASHES.len()));
        }
        from = label;
    }
}
