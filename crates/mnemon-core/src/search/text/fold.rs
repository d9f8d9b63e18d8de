//! Case folding and the removal of diacritics.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use unicode_normalization::char::decompose_canonical;

/// Full Unicode case folding (`ß` → `ss`, `ς` → `σ`).
pub(super) fn case(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return CaseMapper::new().fold_string(text);
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Borrowed(text)
}

/// `text` (case-folded) without diacritics, or `None` where it has none.
pub(super) fn diacritics(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        bare(c, &mut out);
    }
    (out != text).then_some(out)
}

fn bare(c: char, out: &mut String) {
    match c {
        '\0'..='\x7f' => out.push(c),
        // Letters that Unicode does not decompose, though people type them without the stroke.
        'đ' | 'ð' => out.push('d'),
        'ł' => out.push('l'),
        'ø' => out.push('o'),
        'ı' => out.push('i'),
        'ħ' => out.push('h'),
        'æ' => out.push_str("ae"),
        'œ' => out.push_str("oe"),
        'þ' => out.push_str("th"),
        'ё' => out.push('е'),
        // й is a letter of its own, not an и with a mark.
        '\u{400}'..='\u{52f}' => out.push(c),
        _ => decompose_canonical(c, |part| {
            if !is_mark(part) {
                out.push(part);
            }
        }),
    }
}

/// Marks that readers leave out: Latin and Greek accents, Hebrew points, Arabic vowels. Marks
/// of Indic scripts are vowels and stay.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{64b}'..='\u{65f}')
}
