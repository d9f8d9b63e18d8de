//! How notes are kept, found and told.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::rank::Recipe;
use mnemon_core::{Invalid, Namespace, limits, note};

/// What can be set about notes. How long they are kept is the memory's
/// [`Retention`](crate::records::Retention).
#[derive(Debug, Clone, PartialEq)]
pub struct NotesConfig {
    pub short_term: NamespaceLimits,
    pub long_term: NamespaceLimits,
    /// How many a search finds when nobody says.
    pub top_k: usize,
    /// Notes that score less are not found. Without it the usual score of the recipe holds.
    pub min_score: Option<f64>,
    /// How a search ranks when nobody says.
    pub recipe: Recipe,
    /// Whether answers show a beginning of the content when nobody says.
    pub include_content: bool,
    /// How much of the content a preview shows, in UTF-16 units.
    pub preview_chars: usize,
    /// Whether the long-term memory at another service gets new notes, and searches of notes ask it.
    pub in_long_term: bool,
}

/// What one namespace holds at the most. Lengths are in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceLimits {
    pub max_entries: MaxEntries,
    /// Longer contents are cut, and say so.
    pub max_content_chars: usize,
    pub max_summary_chars: usize,
}

/// How many notes a namespace holds before the weakest go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxEntries {
    /// Nobody chose: what is new takes the place of the weakest, but if there are more already,
    /// because they were written without a cap, these stay.
    Usual(u64),
    /// Somebody chose; `None` is no cap.
    Chosen(Option<u64>),
}

impl Default for NotesConfig {
    fn default() -> Self {
        Self {
            short_term: NamespaceLimits {
                max_entries: MaxEntries::Usual(2000),
                max_content_chars: 200_000,
                max_summary_chars: note::SUMMARY_CHARS,
            },
            long_term: NamespaceLimits {
                max_entries: MaxEntries::Usual(20_000),
                max_content_chars: 500_000,
                max_summary_chars: note::SUMMARY_CHARS,
            },
            top_k: 5,
            min_score: None,
            recipe: Recipe::Hybrid,
            include_content: false,
            preview_chars: 1200,
            in_long_term: false,
        }
    }
}

impl NotesConfig {
    pub fn of(&self, namespace: Namespace) -> NamespaceLimits {
        match namespace {
            Namespace::ShortTerm => self.short_term,
            Namespace::LongTerm => self.long_term,
        }
    }

    /// Whether everything lies where it can be used.
    pub fn check(&self) -> Result<(), Invalid> {
        for (field, value, most) in [
            ("top_k", self.top_k, limits::NOTE_HITS),
            ("preview_chars", self.preview_chars, limits::CONTENT_BYTES),
        ] {
            check_range(field, value, most)?;
        }
        for limits_of in [self.short_term, self.long_term] {
            // A summary has up to three bytes a unit.
            let summary = limits::SUMMARY_BYTES / 3 - 1;
            check_range("max_summary_chars", limits_of.max_summary_chars, summary)?;
            let content = limits::CONTENT_BYTES;
            check_range("max_content_chars", limits_of.max_content_chars, content)?;
        }
        if let Some(least) = self.min_score
            && !(0.0..=1.0).contains(&least)
        {
            let what = format!("is {least}, it must lie between 0 and 1");
            return Err(Invalid::new("min_score", what));
        }
        Ok(())
    }
}

fn check_range(field: &str, value: usize, most: usize) -> Result<(), Invalid> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    let what = format!("is {value}, it must lie between 1 and {most}");
    Err(Invalid::new(field, what))
}

/// Files that may become notes.
#[derive(Clone)]
pub struct NoteFiles {
    pub files: Arc<dyn Files>,
    /// The absolute paths of their root, so that a path that begins with one of them is known to
    /// lie below it.
    pub roots: Vec<String>,
}

impl NoteFiles {
    /// The path as the files know it: relative, without `./` before it. Whether it leads out of
    /// the root is for them to say.
    pub(crate) fn below<'a>(&self, path: &'a str) -> &'a str {
        let inside = |root: &String| {
            let rest = path.strip_prefix(root.trim_end_matches('/'))?;
            rest.strip_prefix('/')
        };
        let path = self.roots.iter().find_map(inside).unwrap_or(path);
        path.strip_prefix("./").unwrap_or(path)
    }
}
