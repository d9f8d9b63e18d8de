//! Source code: top-level definitions, told by indentation alone, whatever the language.

use super::Size;
use super::outline::{Outline, Strength, lines, short};

pub(super) fn outline(text: &str, size: Size) -> Outline {
    let mut outline = Outline::unsectioned();
    let (mut after_blank, mut after_end) = (false, false);
    for (at, line) in lines(text) {
        let blank = line.trim().is_empty();
        let outermost = !line.starts_with([' ', '\t']);
        if !blank {
            let closes = outermost && is_end(line);
            let strength = match (after_blank, outermost && !closes) {
                (true, true) => Strength::Definition,
                (false, true) if after_end => Strength::Definition,
                (true, false) => Strength::Item,
                _ => Strength::Line,
            };
            outline.seam(at, strength);
            if outermost && opens(line) {
                outline.openers.push((at, opener(line)));
            }
            after_end = closes;
        }
        after_blank = blank;
    }
    for seam in &mut outline.seams {
        seam.whole = seam.strength == Strength::Definition;
    }
    outline.keep_whole(text, size, Strength::Definition);
    outline
}

/// `}`, `);`, `end`: what belongs to the lines before it.
fn is_end(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(['}', ')', ']']) || line == "end" || line == "fi" || line == "done"
}

/// Whether a line may begin a definition: it begins with a word, and is no comment.
fn opens(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn opener(line: &str) -> String {
    short(line.trim_end().trim_end_matches(['{', ':', '(']))
}
