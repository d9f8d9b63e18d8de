//! Reading notes: by id, by what they say, page by page.

use std::sync::Arc;

use futures::future::join;
use mnemon_core::external::ExternalSource;
use mnemon_core::rank::Recipe;
use mnemon_core::{
    Ctx, Cursor, Filter, Id, Invalid, Kind, Namespace, Owner, Record, Scan, Viewer, limits, note,
};
use serde::{Deserialize, Serialize};

use super::view::{NoteText, NoteView};
use super::{Notes, notes_of};
use crate::memory::is_made_id;
use crate::records::Error;
use crate::search::external::{External, merge};
use crate::search::{Hit, Query};

/// Which notes are meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteFilter {
    #[serde(default)]
    pub namespace: Option<Namespace>,
    /// At least one of these, whatever its case.
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub owner: Owner,
    /// Only notes that this viewer may see.
    pub viewer: Viewer,
}

/// A search among notes.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteQuery {
    /// An id, or what to look for.
    pub text: String,
    pub filter: NoteFilter,
    /// The configuration's when nobody says; never more than [`limits::NOTE_HITS`].
    pub limit: Option<usize>,
    pub min_score: Option<f64>,
    pub recipe: Option<Recipe>,
    pub include_content: Option<bool>,
}

impl NoteQuery {
    /// A search for this, everything else as the configuration has it.
    pub fn new(text: impl Into<String>, filter: NoteFilter) -> Self {
        Self {
            text: text.into(),
            filter,
            limit: None,
            min_score: None,
            recipe: None,
            include_content: None,
        }
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundNotes {
    pub found: bool,
    /// The best first.
    pub results: Vec<NoteView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    pub query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A page of notes, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotePage {
    pub notes: Vec<NoteView>,
    /// Where the next page begins; absent when this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Notes {
    /// The note with this id, or those that answer best.
    pub async fn search(&self, ctx: &Ctx, query: &NoteQuery) -> Result<FoundNotes, Error> {
        check_query(query)?;
        let found = self.by_id(ctx, &query.filter.viewer, &query.text).await?;
        let owner = &query.filter.owner;
        if let Some(record) = found.filter(|record| record.owner.includes(owner)) {
            let view = self.view(&record, query.include_content);
            return Ok(FoundNotes::of(vec![view], query));
        }
        let hits = self.hits(ctx, query).await?;
        let views = hits.into_iter().map(|hit| {
            let view = self.view(&hit.record, query.include_content);
            NoteView {
                kind: view.kind.filter(|_| hit.external.is_none()),
                external: hit.external,
                ..view.scored(hit.score)
            }
        });
        Ok(FoundNotes::of(views.collect(), query))
    }

    async fn by_id(&self, ctx: &Ctx, viewer: &Viewer, text: &str) -> Result<Option<Record>, Error> {
        match text.trim().parse::<Id>() {
            Ok(id) => self.one(ctx, viewer, &id).await,
            Err(_) => Ok(None),
        }
    }

    async fn hits(&self, ctx: &Ctx, query: &NoteQuery) -> Result<Vec<Hit>, Error> {
        let limit = query.limit.filter(|limit| *limit > 0);
        let limit = limit.unwrap_or(self.config.top_k).min(limits::NOTE_HITS);
        let recipe = match query.recipe.unwrap_or(self.config.recipe) {
            // Nothing is near in meaning to a note that has gone.
            Recipe::Hybrid if is_made_id(query.text.trim()) => Recipe::Words,
            recipe => recipe,
        };
        let asked = Query {
            recipe,
            limit,
            min_score: self.least(query.min_score, recipe),
            may_run_inline: true,
            ..Query::new(query.text.trim(), query.filter.of_records())
        };
        let copies = self.copies_found(ctx, &asked);
        let (hits, copies) = join(self.records.search(ctx, &asked), copies).await;
        let mut hits = hits?;
        if asked.recipe == Recipe::Hybrid && hits.is_empty() {
            hits = self.by_part_of_word(ctx, &asked).await?;
        }
        Ok(merge(hits, copies, limit))
    }

    /// What the service that keeps copies knows besides our notes.
    async fn copies_found(&self, ctx: &Ctx, asked: &Query) -> Vec<Hit> {
        let Some(copies) = &self.copies else {
            return Vec::new();
        };
        let source: Arc<dyn ExternalSource> = copies.clone();
        let asked = Query {
            filter: Filter {
                kinds: vec![Kind::Document],
                ..asked.filter.clone()
            },
            ..asked.clone()
        };
        let external = External { sources: &[source] };
        external.search(&self.records, ctx, &asked).await
    }

    /// The score below which hits are left out. The formula takes 0 for not given, as the notes
    /// document has it.
    fn least(&self, asked: Option<f64>, recipe: Recipe) -> Option<f64> {
        match recipe {
            Recipe::Formula => asked
                .filter(|least| *least > 0.0)
                .or(self.config.min_score)
                .or(Some(FORMULA_MIN_SCORE)),
            _ => asked.or(self.config.min_score),
        }
    }

    /// Notes that have a query of one word as a part of a longer word, newest first. The notes are
    /// read one by one, so this is done only when the index found nothing.
    async fn by_part_of_word(&self, ctx: &Ctx, asked: &Query) -> Result<Vec<Hit>, Error> {
        let Some(part) = part_of_word(&asked.text) else {
            return Ok(Vec::new());
        };
        let mut hits: Vec<Hit> = Vec::new();
        let limits = self.records.policy.limits;
        let scan = Scan::new(asked.filter.clone(), limits.page);
        let mut read = 0;
        let take = |page: Vec<Record>| {
            read += page.len();
            let having = page.into_iter().filter(|record| has_part(record, &part));
            hits.extend(having.map(|record| Hit {
                score: PART_OF_WORD,
                parts: None,
                matched: vec![part.clone()],
                external: None,
                record,
            }));
            read < limits.note_reads && hits.len() < asked.limit
        };
        if self.records.each_page(ctx, scan, take).await? && hits.len() < asked.limit {
            ctx.notices.add(format!(
                "Parts of words were searched in the newest {read} notes only."
            ));
        }
        hits.retain(|hit| hit.score >= asked.min_score.unwrap_or(0.0));
        hits.truncate(asked.limit);
        Ok(hits)
    }

    /// The note, with as much of its content as is asked for.
    pub async fn get(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        id: &Id,
        include_content: Option<bool>,
    ) -> Result<Option<NoteView>, Error> {
        let found = self.readable(ctx, viewer, id).await?;
        Ok(found.map(|record| self.view(&record, include_content)))
    }

    /// The note with its content from an offset on, at most so many UTF-16 units of it.
    pub async fn text(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        id: &Id,
        offset: usize,
        most: usize,
    ) -> Result<Option<NoteText>, Error> {
        let Some(record) = self.readable(ctx, viewer, id).await? else {
            return Ok(None);
        };
        let before = note::head(&record.content, offset);
        let rest = record.content.get(before.len()..).unwrap_or_default();
        let part = note::head(rest, most.max(2));
        let end = note::length(before) + note::length(part);
        Ok(Some(NoteText {
            note: self.view(&record, Some(false)),
            content_length: note::length(&record.content),
            next_offset: (part.len() < rest.len()).then_some(end),
            content: Some(part.to_owned()),
        }))
    }

    /// A page of notes, newest first.
    pub async fn list(
        &self,
        ctx: &Ctx,
        filter: &NoteFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<NotePage, Error> {
        let scan = Scan {
            after,
            ..Scan::new(filter.of_records(), limit.max(1))
        };
        let page = self.records.list(ctx, &scan).await?;
        let notes = page.records.iter().map(|record| self.view(record, None));
        Ok(NotePage {
            notes: notes.collect(),
            next: page.next.map(|cursor| cursor.to_string()),
        })
    }
}

/// What a note must score by the formula when nobody says.
const FORMULA_MIN_SCORE: f64 = 0.15;

/// The score of a note that has the query as a part of a word: `postgre` in `PostgreSQL`. Chosen,
/// not measured.
const PART_OF_WORD: f64 = 0.3;
/// Characters below which a part of a word is in too many words.
const PART_CHARS: usize = 4;

/// The query in lower case, if it may be a part of a word: one run of letters and digits.
fn part_of_word(query: &str) -> Option<String> {
    let query = query.trim().to_lowercase();
    let is_word = query.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_word && query.chars().count() >= PART_CHARS).then_some(query)
}

fn has_part(record: &Record, part: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(part);
    has(&record.content) || record.tags.iter().any(|tag| has(tag))
}

impl NoteFilter {
    /// Every note that this viewer may see.
    pub fn seen_by(viewer: Viewer) -> Self {
        Self {
            namespace: None,
            tags: Vec::new(),
            owner: Owner::default(),
            viewer,
        }
    }

    /// Every note of the tenant.
    pub fn all_of_tenant() -> Self {
        Self::seen_by(Viewer::Tenant)
    }

    pub(super) fn of_records(&self) -> Filter {
        Filter {
            tags: self.tags.clone(),
            viewer: self.viewer.clone(),
            ..notes_of(&self.owner, self.namespace)
        }
    }
}

impl FoundNotes {
    fn of(results: Vec<NoteView>, query: &NoteQuery) -> Self {
        let found = !results.is_empty();
        Self {
            found,
            total: found.then_some(results.len()),
            message: (!found).then(|| "No matching entries found.".to_owned()),
            results,
            query: query.text.clone(),
        }
    }
}

fn check_query(query: &NoteQuery) -> Result<(), Invalid> {
    if query.text.trim().is_empty() {
        let what = "is empty; give a query or an id";
        return Err(Invalid::new("query", what));
    }
    let (chars, most) = (query.text.chars().count(), limits::NOTE_QUERY_CHARS);
    if chars > most {
        let what = format!("has {chars} characters, at most {most} are allowed");
        return Err(Invalid::new("query", what));
    }
    Ok(())
}
