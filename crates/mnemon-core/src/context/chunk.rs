//! Cuts a document into chunks: pieces small enough to be found, placed and quoted by themselves.
//!
//! The cut follows the text. Markdown is cut at its headings, and each chunk knows the headings it
//! stands under; a fence, a table or a list stays whole unless it is larger than a chunk. Code is
//! cut before top-level definitions, plain text between paragraphs. Only what is longer than a
//! chunk is cut at sentences, then lines, then words.
//!
//! Among equally good places the one that a hash of the words around it prefers is taken, and no
//! cut looks further than one chunk ahead. So an insertion moves the cuts near it only, and the
//! chunks behind it stay what they were, byte for byte: they need not be embedded again.
//!
//! **Invariant:** the chunks' own parts lie in order, do not overlap, and cover all of the text
//! but white space. With the overlap, a chunk never costs more than [`Size::most`].
//! **Invariant:** a grapheme is cut only if it is longer than a chunk.
//!
//! ```
//! use mnemon_core::chunk::{Size, Syntax, divide};
//! let text = "# Tea\n\nAnn drinks tea.\n\n## Milk\n\nNever with milk.\n";
//! let divided = divide(text, Syntax::Markdown, Size::DEFAULT);
//! assert_eq!(divided.title.as_deref(), Some("Tea"));
//! assert_eq!(divided.chunks[0].lines(), (1, 7));
//! ```

mod code;
mod cut;
mod language;
mod markdown;
mod outline;
mod plain;
mod sentence;
#[cfg(test)]
mod tests;

pub use language::language;

use crate::error::Invalid;
use crate::error::words;

/// Changes when the same text would be cut otherwise: documents are then divided anew.
pub const VERSION: u32 = 1;

words! {
    /// By which rules a text is cut.
    Syntax, "syntax" {
        Markdown = "markdown",
        Code = "code",
        Text = "text",
    }
}

impl Syntax {
    /// What a file of this name holds: Markdown or code by its extension, plain text otherwise.
    pub fn of_name(name: &str) -> Self {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "mdx" => Self::Markdown,
            _ if language(name).is_some() => Self::Code,
            _ => Self::Text,
        }
    }
}

/// How large chunks are, in characters. One of a script that is written without spaces counts
/// two: it says about as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    most: usize,
    overlap: usize,
}

impl Size {
    /// About 1,200 characters and never more than 1,600, of which up to 150 repeat the end of the
    /// chunk before.
    pub const DEFAULT: Self = Self {
        most: 1600,
        overlap: 150,
    };

    /// Chunks of at most `most` characters, of which up to `overlap` repeat what came before.
    pub fn new(most: usize, overlap: usize) -> Result<Self, Invalid> {
        if !(64..=100_000).contains(&most) {
            let what = format!("is {most}, it must be between 64 and 100000 characters");
            return Err(Invalid::new("chunk size", what));
        }
        if overlap > most / 4 {
            let what = format!(
                "is {overlap}, at most a quarter of a chunk is allowed: {}",
                most / 4
            );
            return Err(Invalid::new("overlap", what));
        }
        Ok(Self { most, overlap })
    }

    /// What a chunk costs at the most, overlap included.
    pub fn most(self) -> usize {
        self.most
    }

    /// What of it may be repeated.
    pub fn overlap(self) -> usize {
        self.overlap
    }

    /// What a chunk's own part costs at the most.
    fn limit(self) -> usize {
        self.most - self.overlap
    }

    /// From here on a cut is looked for.
    fn least(self) -> usize {
        self.most / 2
    }

    /// A section below this goes with the next one: a heading alone says nothing.
    fn short(self) -> usize {
        self.most / 8
    }
}

impl Default for Size {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins, in bytes, with what it repeats of the chunk before.
    pub start: usize,
    /// Where its own part begins.
    pub own: usize,
    pub end: usize,
    /// The line its own part begins in, counted from 1.
    pub first_line: usize,
    pub last_line: usize,
    /// The headings it stands under, outermost first; for code the definition that it is inside of.
    pub headings: Vec<String>,
}

impl Chunk {
    /// Its text, without white space at the end and empty lines at the beginning.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        let text = source.get(self.start..self.end).unwrap_or_default();
        outline::without_blank_ends(text)
    }

    /// The lines it stands on: first and last, counted from 1.
    pub fn lines(&self) -> (usize, usize) {
        (self.first_line, self.last_line)
    }
}

/// A document in chunks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Divided {
    /// What it calls itself: its front matter's title, or its first heading if that is of the
    /// highest rank.
    pub title: Option<String>,
    /// In order. Pieces of nothing but white space are left out.
    pub chunks: Vec<Chunk>,
}

/// Cuts the text by the rules of its syntax.
pub fn divide(text: &str, syntax: Syntax, size: Size) -> Divided {
    let outline = match syntax {
        Syntax::Markdown => markdown::outline(text, size),
        Syntax::Code => code::outline(text, size),
        Syntax::Text => plain::outline(text),
    };
    let chunks = cut::chunks(text, &outline, size);
    Divided {
        title: outline.title,
        chunks,
    }
}

/// What a text costs, in the characters of [`Size`].
pub fn cost(text: &str) -> usize {
    text.chars().map(cost_of).sum()
}

fn cost_of(c: char) -> usize {
    match c {
        '\0'..='\x7f' => 1,
        c if crate::search::text::is_unspaced(c) => 2,
        _ => 1,
    }
}
