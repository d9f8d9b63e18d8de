//! Passages from everything that is known: conversations, their summaries, pages, facts, notes and
//! documents. A query writes nothing.

use std::collections::{HashMap, HashSet};

use mnemon_core::{Ctx, Filter, Id, Kind, Record, Scope, Time, Viewer, markdown, text};
use serde::{Deserialize, Serialize};

use super::project::session_in;
use crate::memory::Memory;
use crate::records::Error;
use crate::search::{Hit, Query};

/// Characters of a passage.
const PASSAGE_CHARS: usize = 500;
/// Records that are fetched for each passage, since some say the same.
const SPARE: usize = 3;
/// A tag in a summary that says what it stands for; it means nothing outside of its window.
const OFFLOAD_TAG: &str = "<!-- CONTEXT_OFFLOAD:";

/// Who asks for what.
#[derive(Clone, Copy)]
pub struct PassageQuery<'a> {
    /// Only records that this viewer may see are searched.
    pub viewer: &'a Viewer,
    pub text: &'a str,
    /// At most this many passages.
    pub limit: usize,
    /// Pages of a project that are not in the store; every viewer sees them.
    pub pages: Option<&'a Memory>,
    /// The project that is asked about: conversations and pages of other projects are left out.
    pub project: Option<&'a str>,
}

/// A passage that answers a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// The record that it is from.
    pub id: Id,
    pub kind: Kind,
    /// The conversation, the page, the file or the id that it is from.
    pub source: String,
    pub created: Time,
    #[serde(rename = "content")]
    pub text: String,
    pub score: f64,
}

impl Memory {
    /// The tool `query_memory`: passages from the conversations that the viewer sees, from pages
    /// and from all knowledge that the viewer sees, the best first.
    pub async fn passages(
        &self,
        ctx: &Ctx,
        query: &PassageQuery<'_>,
    ) -> Result<Vec<Passage>, Error> {
        let mut hits = search(self, ctx, query, query.viewer).await?;
        if let Some(pages) = query.pages {
            hits.extend(search(pages, ctx, query, &Viewer::Tenant).await?);
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        let mut passages: Vec<Passage> = Vec::new();
        // A page may be in the store and among the pages, a chunk repeats its document, a recorded
        // note its message, and people say the same twice.
        let mut seen = HashSet::new();
        let own = query.project.map(|root| session_in(root, "")).transpose()?;
        for hit in hits {
            if own
                .as_deref()
                .is_some_and(|own| is_of_another(&hit.record, own))
            {
                continue;
            }
            let passage = passage(hit, query.text);
            if seen.insert(passage.text.clone()) {
                passages.push(passage);
            }
        }
        passages.truncate(query.limit);
        Ok(passages)
    }
}

/// Whether the record is a message of a project whose sessions begin with another name.
fn is_of_another(record: &Record, own: &str) -> bool {
    let session = record.owner.session.as_deref().unwrap_or_default();
    record.scope == Scope::Dialog && session.contains('/') && !session.starts_with(own)
}

async fn search(
    memory: &Memory,
    ctx: &Ctx,
    query: &PassageQuery<'_>,
    viewer: &Viewer,
) -> Result<Vec<Hit>, Error> {
    // Saved states have no text, and a conversation's window only repeats its messages.
    let kinds = Kind::ALL.iter().copied();
    let filter = Filter {
        scopes: vec![Scope::Dialog, Scope::Semantic],
        kinds: kinds.filter(|kind| *kind != Kind::Session).collect(),
        ..Filter::seen_by(viewer.clone())
    };
    let most = memory.records().limits().hits;
    // Other projects may have said more about it.
    let spare = SPARE * if query.project.is_some() { SPARE } else { 1 };
    let asked = Query {
        limit: query.limit.saturating_mul(spare).min(most),
        ..Query::new(query.text, filter)
    };
    memory.search(ctx, &asked).await
}

fn passage(hit: Hit, query: &str) -> Passage {
    let Hit { record, score, .. } = hit;
    Passage {
        text: excerpt(&record.content, query),
        source: record.location().unwrap_or_else(|| record.id.to_string()),
        id: record.id,
        kind: record.kind,
        created: record.created,
        score,
    }
}

/// The paragraph that answers the query best, cut to a readable length: the one with the most
/// words of the query, the first of equals. A heading belongs to the paragraph below it; front
/// matter is no paragraph.
fn excerpt(content: &str, query: &str) -> String {
    let wanted: HashMap<String, f32> = text::query_terms(query)
        .into_iter()
        .filter(|term| !term.stop)
        .map(|term| (term.text, term.weight))
        .collect();
    let worth = |paragraph: &str| -> f32 {
        let terms: HashSet<String> = text::index_terms(paragraph)
            .into_iter()
            .map(|term| term.text)
            .collect();
        let found = wanted.iter().filter(|(word, _)| terms.contains(*word));
        found.map(|(_, weight)| weight).sum()
    };
    let mut best: Option<(f32, String)> = None;
    for paragraph in paragraphs(markdown::without_front_matter(content)) {
        let worth = worth(&paragraph);
        if best.as_ref().is_none_or(|(most, _)| worth > *most) {
            best = Some((worth, paragraph));
        }
    }
    let best = best.map_or_else(|| content.trim().to_owned(), |(_, paragraph)| paragraph);
    let mut cut: String = best.chars().take(PASSAGE_CHARS).collect();
    if cut.len() < best.len() {
        cut.push('…');
    }
    cut
}

/// The paragraphs, each with the headings right above it. Headings at the end stand alone.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut headings = String::new();
    for paragraph in text.split("\n\n") {
        let lines = paragraph
            .lines()
            .filter(|line| !line.trim_start().starts_with(OFFLOAD_TAG));
        let paragraph = lines.collect::<Vec<_>>().join("\n");
        let paragraph = paragraph.trim();
        if paragraph.is_empty() {
            continue;
        }
        headings.push_str(paragraph);
        if paragraph.lines().all(|line| line.starts_with('#')) {
            headings.push('\n');
        } else {
            paragraphs.push(std::mem::take(&mut headings));
        }
    }
    if !headings.is_empty() {
        paragraphs.push(headings.trim_end().to_owned());
    }
    paragraphs
}

#[cfg(test)]
mod tests;
