//! Plain text: paragraphs, with empty lines between them.

use super::outline::{Outline, Strength, lines};

pub(super) fn outline(text: &str) -> Outline {
    let mut outline = Outline {
        overlaps: true,
        ..Outline::unsectioned()
    };
    let mut after_blank = false;
    for (at, line) in lines(text) {
        let blank = line.trim().is_empty();
        if after_blank && !blank {
            outline.seam(at, Strength::Paragraph);
        }
        after_blank = blank;
    }
    outline
}
