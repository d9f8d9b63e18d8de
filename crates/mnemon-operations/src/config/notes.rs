//! What can be set about notes, and about what is kept out of the memory.

use std::path::PathBuf;

use mnemon_core::rank::Recipe;
use mnemon_core::secrets::SecretPolicy;
use mnemon_core::{Namespace, limits};
use mnemon_engine::Safety;
use mnemon_engine::notes::{MaxEntries, NamespaceLimits, NotesConfig};

use super::risk::{DELETES, HARMLESS, OPENS, SENDS, WEAKENS};
use super::{
    Config, ConfigError, Keeping, Key, Layers, Origin, Sourced, file_key, key, keys, parse_bool,
    parse_word,
};
use crate::env_vars;

keys! {
    SHORT_CONTENT = file_key("namespaces.short-term.max_content_chars", DELETES);
    SHORT_SUMMARY = file_key("namespaces.short-term.max_summary_chars", DELETES);
    LONG_CONTENT = file_key("namespaces.long-term.max_content_chars", DELETES);
    LONG_SUMMARY = file_key("namespaces.long-term.max_summary_chars", DELETES);
    TOP_K = file_key("notes.top_k", HARMLESS);
    MIN_SCORE = file_key("notes.min_score", HARMLESS);
    RECIPE = file_key("notes.recipe", HARMLESS);
    INCLUDE_CONTENT = file_key("notes.include_content", WEAKENS);
    IN_LONG_TERM = file_key("notes.long_term", SENDS);
    PREVIEW_CHARS = file_key("notes.preview_chars", HARMLESS);
    MCP_NAMESPACE = file_key("mcp.namespace", DELETES);
    ROOT = key("notes.root", env_vars::MNEMON_NOTES_ROOT, OPENS);
    SECRETS = key("safety.secrets", env_vars::MNEMON_SECRETS, WEAKENS);
}

/// How notes are kept, found and told, each value with where it came from.
#[derive(Debug, Clone)]
pub struct NoteSettings {
    pub short_term: Lengths,
    pub long_term: Lengths,
    /// How many a search finds when nobody says.
    pub top_k: Sourced<usize>,
    pub min_score: Sourced<Option<f64>>,
    pub recipe: Sourced<Recipe>,
    pub include_content: Sourced<bool>,
    pub preview_chars: Sourced<usize>,
    /// Whether the service of `long_term.url` gets notes, too.
    pub in_long_term: Sourced<bool>,
    /// The namespace of a note that an MCP client adds without naming one.
    pub mcp_namespace: Sourced<Namespace>,
    /// The folder below which a note's content may be read from a file.
    pub root: Sourced<PathBuf>,
    /// What to do with secrets in what is written.
    pub secrets: Sourced<SecretPolicy>,
}

/// How long the notes of a namespace may be, in UTF-16 units.
#[derive(Debug, Clone)]
pub struct Lengths {
    pub content: Sourced<usize>,
    pub summary: Sourced<usize>,
}

impl Default for NoteSettings {
    fn default() -> Self {
        let plain = NotesConfig::default();
        let lengths = |limits: NamespaceLimits| Lengths {
            content: Sourced::default(limits.max_content_chars),
            summary: Sourced::default(limits.max_summary_chars),
        };
        Self {
            short_term: lengths(plain.short_term),
            long_term: lengths(plain.long_term),
            top_k: Sourced::default(plain.top_k),
            min_score: Sourced::default(None),
            recipe: Sourced::default(plain.recipe),
            include_content: Sourced::default(plain.include_content),
            preview_chars: Sourced::default(plain.preview_chars),
            in_long_term: Sourced::default(plain.in_long_term),
            mcp_namespace: Sourced::default(Namespace::LongTerm),
            root: Sourced::default(PathBuf::from(".")),
            secrets: Sourced::default(Safety::default().secrets),
        }
    }
}

impl NoteSettings {
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, ConfigError> {
        let plain = Self::default();
        let content = |text: &str| parse_length(text, limits::CONTENT_BYTES);
        // A unit has up to three bytes.
        let summary = |text: &str| parse_length(text, limits::SUMMARY_BYTES / 3 - 1);
        let lengths = |content_key: &Key, summary_key: &Key, plain: &Lengths| {
            Ok(Lengths {
                content: layers.read(content_key, plain.content.value, content)?,
                summary: layers.read(summary_key, plain.summary.value, summary)?,
            })
        };
        Ok(Self {
            short_term: lengths(&SHORT_CONTENT, &SHORT_SUMMARY, &plain.short_term)?,
            long_term: lengths(&LONG_CONTENT, &LONG_SUMMARY, &plain.long_term)?,
            top_k: layers.read(&TOP_K, plain.top_k.value, |text| {
                parse_length(text, limits::NOTE_HITS)
            })?,
            min_score: layers.read(&MIN_SCORE, None, |text| parse_score(text).map(Some))?,
            recipe: layers.read(&RECIPE, plain.recipe.value, parse_word)?,
            include_content: layers.read(
                &INCLUDE_CONTENT,
                plain.include_content.value,
                parse_bool,
            )?,
            preview_chars: layers.read(&PREVIEW_CHARS, plain.preview_chars.value, content)?,
            in_long_term: layers.read(&IN_LONG_TERM, plain.in_long_term.value, parse_bool)?,
            mcp_namespace: layers.read(&MCP_NAMESPACE, plain.mcp_namespace.value, parse_word)?,
            root: layers.folder(&ROOT, layers.env.in_project("."))?,
            secrets: layers.read(&SECRETS, plain.secrets.value, parse_word)?,
        })
    }
}

impl Config {
    /// How notes are kept, found and told.
    pub fn notes_config(&self) -> NotesConfig {
        let plain = NotesConfig::default();
        let limits_of = |namespace: Namespace, keeping: &Keeping, lengths: &Lengths| {
            let max_entries = match &keeping.max_entries.origin {
                Origin::Default => plain.of(namespace).max_entries,
                _ => MaxEntries::Chosen(keeping.max_entries.value),
            };
            NamespaceLimits {
                max_entries,
                max_content_chars: lengths.content.value,
                max_summary_chars: lengths.summary.value,
            }
        };
        let notes = &self.notes;
        NotesConfig {
            short_term: limits_of(Namespace::ShortTerm, &self.short_term, &notes.short_term),
            long_term: limits_of(Namespace::LongTerm, &self.long_term, &notes.long_term),
            top_k: notes.top_k.value,
            min_score: notes.min_score.value,
            recipe: notes.recipe.value,
            include_content: notes.include_content.value,
            preview_chars: notes.preview_chars.value,
            in_long_term: notes.in_long_term.value,
        }
    }

    /// What is kept out of what is written.
    pub fn safety(&self) -> Safety {
        Safety {
            secrets: self.notes.secrets.value,
        }
    }
}

fn parse_length(text: &str, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "`{}` is not a number from 1 to {most}",
            text.escape_debug()
        )),
    }
}

fn parse_score(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(score) if (0.0..=1.0).contains(&score) => Ok(score),
        _ => Err(format!(
            "`{}` is not a number from 0 to 1",
            text.escape_debug()
        )),
    }
}
