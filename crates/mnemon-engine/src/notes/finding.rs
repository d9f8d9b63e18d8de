//! Reading notes: by id, by what they say, page by page.

use std::collections::HashSet;

use mnemon_core::rank::{self, Recipe};
use mnemon_core::text::query_terms;
use mnemon_core::{
    Ctx, Cursor, Filter, Id, Invalid, Namespace, Owner, Record, Scan, Viewer, limits, note,
};
use serde::{Deserialize, Serialize};

use super::view::{NoteText, NoteView};
use super::{Notes, notes_of};
use crate::records::Error;
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
            view.scored(hit.score)
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
        let said = query.min_score.filter(|score| *score > 0.0);
        let least = said.unwrap_or(self.config.min_score);
        let recipe = match query.recipe.unwrap_or(self.config.recipe) {
            // Nothing is near in meaning to a note that has gone.
            Recipe::Hybrid if is_id(query.text.trim()) => Recipe::Words,
            recipe => recipe,
        };
        let asked = Query {
            recipe,
            limit,
            may_run_inline: true,
            ..Query::new(query.text.trim(), query.filter.of_records())
        };
        let mut hits = self.records.search(ctx, &asked).await?;
        hits.retain(|hit| hit.score >= least || asked.recipe == Recipe::Recent);
        if asked.recipe == Recipe::Hybrid && is_lean(&hits, limit) {
            self.fill(ctx, &asked, least, &mut hits).await?;
        }
        level(&mut hits);
        Ok(hits)
    }

    /// Adds what the formula finds and the index does not: pieces of words. It reads the notes one
    /// by one, so it is done only when the index found too little.
    async fn fill(
        &self,
        ctx: &Ctx,
        asked: &Query,
        least: f64,
        hits: &mut Vec<Hit>,
    ) -> Result<(), Error> {
        let mut tokens = rank::formula_tokens(&asked.text);
        if !tokens.iter().all(|token| is_small(token)) {
            tokens.retain(|token| !is_small(token));
        }
        if tokens.is_empty() {
            return Ok(());
        }
        let known: HashSet<Id> = hits.iter().map(|hit| hit.record.id.clone()).collect();
        let mut more: Vec<Hit> = Vec::new();
        let limits = self.records.policy.limits;
        let scan = Scan::new(asked.filter.clone(), limits.page);
        let mut read = 0;
        let take = |page: Vec<Record>| {
            read += page.len();
            let fresh = page.into_iter().map(|record| Hit {
                score: rank::formula(&record, &tokens, ctx.now),
                parts: None,
                matched: Vec::new(),
                record,
            });
            more.extend(fresh.filter(|hit| hit.score >= least && !known.contains(&hit.record.id)));
            read < limits.note_reads
        };
        if self.records.each_page(ctx, scan, take).await? {
            ctx.notices.add(format!(
                "Parts of words were searched in the newest {read} notes only."
            ));
        }
        more.sort_by(|a, b| b.score.total_cmp(&a.score));
        merge(hits, more, asked.limit);
        Ok(())
    }

    /// The note, with as much of its content as is asked for.
    pub async fn get(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        id: &Id,
        include_content: Option<bool>,
    ) -> Result<Option<NoteView>, Error> {
        let found = self.one(ctx, viewer, id).await?;
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
        let Some(record) = self.one(ctx, viewer, id).await? else {
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

/// Whether this is one of the small words, which are pieces of every other word.
fn is_small(token: &str) -> bool {
    let terms = query_terms(token);
    !terms.is_empty() && terms.iter().all(|term| term.stop)
}

/// Whether this is no word, but what a note or a record is called.
fn is_id(text: &str) -> bool {
    let digits = text.bytes().filter(|byte| *byte != b'-');
    let (digits, all_hex) = digits.fold((0, true), |(count, all), byte| {
        (count + 1, all && byte.is_ascii_hexdigit())
    });
    all_hex && ((digits == 16 && text.len() == 16) || (digits == 32 && text.len() == 36))
}

/// Whether the index found fewer than were asked for, or nothing that shares a word.
fn is_lean(hits: &[Hit], limit: usize) -> bool {
    let by_words = |hit: &Hit| hit.parts.is_some_and(|parts| parts.words > 0.0);
    hits.len() < limit || !hits.iter().any(by_words)
}

/// What shares a piece of a word comes before what is only near in meaning, and after what shares
/// whole words.
fn merge(hits: &mut Vec<Hit>, more: Vec<Hit>, limit: usize) {
    let by_words = |hit: &Hit| hit.parts.is_none_or(|parts| parts.words > 0.0);
    let (mut merged, near): (Vec<Hit>, Vec<Hit>) = hits.drain(..).partition(by_words);
    merged.extend(more);
    merged.extend(near);
    merged.truncate(limit);
    *hits = merged;
}

/// Scores do not rise from hit to hit: a near-copy that comes last counts no more than what stands
/// before it.
fn level(hits: &mut [Hit]) {
    let mut most = f64::INFINITY;
    for hit in hits {
        most = hit.score.min(most);
        hit.score = most;
    }
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
    if let Some(score) = query.min_score
        && !(0.0..=1.0).contains(&score)
    {
        let what = format!("is {score}, it must lie between 0 and 1");
        return Err(Invalid::new("min_score", what));
    }
    Ok(())
}
