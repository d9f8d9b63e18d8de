//! What is told about a note: little, unless more is asked for.

use mnemon_core::{Id, Kind, Namespace, Record, Time, note};
use serde::{Deserialize, Serialize};

use super::Notes;

/// A note without its content. The names of the fields are those of the notes document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoteView {
    pub id: Id,
    /// What it is, if it is not a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    pub namespace: Namespace,
    pub summary: String,
    pub tags: Vec<String>,
    /// In percent; not for one that was asked for by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// The same as a number.
    #[serde(skip)]
    pub exact_score: Option<f64>,
    pub created_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f64>,
    /// The external source that has it; such a text is not a note of this store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<String>,
    /// The beginning of the content, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_preview: Option<String>,
}

/// A note with its content, or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoteText {
    #[serde(flatten)]
    pub note: NoteView,
    /// How long the whole content is, in UTF-16 units.
    pub content_length: usize,
    /// The content from the offset that was asked for, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Where the rest begins, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

impl Notes {
    /// What is shown of a record that a search found.
    pub fn view(&self, record: &Record, include_content: Option<bool>) -> NoteView {
        let shows = include_content.unwrap_or(self.config.include_content);
        let preview = || note::preview(&record.content, self.config.preview_chars).into_owned();
        NoteView {
            id: record.id.clone(),
            kind: Some(record.kind).filter(|kind| *kind != Kind::Note),
            namespace: record.namespace,
            summary: summary_of(record),
            tags: record.own_tags().map(str::to_owned).collect(),
            score: None,
            exact_score: None,
            created_at: record.created,
            source: record.location(),
            importance: (record.importance > 0.0).then_some(record.importance),
            external: None,
            content_preview: shows.then(preview),
        }
    }
}

impl NoteView {
    /// With its score.
    #[must_use]
    pub fn scored(mut self, score: f64) -> Self {
        let score = score.min(1.0);
        self.exact_score = Some(score);
        self.score = (score > 0.0).then(|| note::percent(score));
        self
    }
}

/// What the note keeps as its summary, or what the usual length gives.
pub(super) fn summary_of(record: &Record) -> String {
    match &record.summary {
        // A chunk's summary says where it stands, not what it says.
        Some(summary) if record.kind != Kind::Chunk => summary.clone(),
        _ => note::summary(&record.content, note::SUMMARY_CHARS).into_owned(),
    }
}
