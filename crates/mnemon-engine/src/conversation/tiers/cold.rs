//! The index: what left the window, and the pages of the library, found by words and meaning.

use std::cmp::Reverse;
use std::collections::HashSet;

use mnemon_core::files::{Files, Listed};
use mnemon_core::{
    Ctx, Expect, Filter, Id, Kind, Origin, Owner, Record, Scan, Scope, Viewer, limits,
};
use serde::Serialize;
use serde_json::{Map, json};

use super::warm::{created_at, session_of};
use super::{HotLine, library, log_path};
use crate::conversation::session::SessionId;
use crate::memory::Memory;
use crate::records::naming::fixed_id;
use crate::records::{Draft, Error, Records};
use crate::search::Query;

/// Characters of an excerpt.
const EXCERPT: usize = 500;
/// What marks the records of pages of the library.
const TAG: &str = "library";

/// A passage that answers a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Excerpt {
    /// A page of the library, a log, or the id of a record.
    pub source: String,
    pub text: String,
    pub score: f64,
}

/// Where lines come from.
pub(super) struct From<'a> {
    /// In words.
    pub(super) source: String,
    /// Whether each is a record of its own, with which it goes.
    pub(super) is_kept: bool,
    /// Whose files they are read from, if they are.
    pub(super) project: &'a str,
}

fn records(cold: &Memory) -> &Records {
    cold.records_of(Scope::Semantic)
}

/// Makes lines findable. A line has one id wherever it is indexed from, so that doing it again
/// changes nothing.
pub(super) async fn index_lines(
    cold: &Memory,
    ctx: &Ctx,
    session: &SessionId,
    lines: &[HotLine],
    from: &From<'_>,
) -> Result<(), Error> {
    let records = records(cold);
    let drafts = lines.iter().map(|hot| line_draft(session, hot, from));
    let drafts = drafts.filter(|draft| fits(ctx, "A line of the log", &draft.content));
    for chunk in drafts.collect::<Vec<_>>().chunks(records.limits().page) {
        let ids: Vec<Id> = chunk.iter().filter_map(|draft| draft.id.clone()).collect();
        let there = records.get(ctx, &ids).await?;
        let marks = cold.records_of(Scope::Dialog);
        let allowed = marks.not_purged(ctx, &ids).await?;
        let new = chunk.iter().zip(there).zip(allowed);
        let new = new.filter(|((_, there), allowed)| there.is_none() && *allowed);
        let puts: Vec<_> = new
            .map(|((draft, _), _)| (draft.clone(), Expect::Anything))
            .collect();
        if !puts.is_empty() {
            records.put_masking(ctx, puts).await?;
        }
    }
    Ok(())
}

/// Whether the text can be a record; a notice says which text no query will find.
fn fits(ctx: &Ctx, name: &str, text: &str) -> bool {
    let most = limits::CONTENT_BYTES;
    if text.len() > most {
        ctx.notices.add(format!(
            "{name} is not indexed: it has more than {most} bytes."
        ));
    }
    text.len() <= most
}

fn line_id(session: &SessionId, offset: u64, from: &From<'_>) -> Id {
    let offset = offset.to_string();
    let mut names = vec![Some(session.as_str()), Some(offset.as_str())];
    // Sessions of two projects may have the same name.
    if !from.is_kept && !from.project.is_empty() {
        names.push(Some(from.project));
    }
    fixed_id("line", &names)
}

/// Whether the record is a line of the session in the index.
pub(crate) fn is_indexed_line(record: &Record, session: &SessionId) -> bool {
    let source = record.source.as_deref();
    record.scope == Scope::Semantic
        && record.kind == Kind::Chunk
        && record.owner.session.as_deref() == Some(session.as_str())
        && (source == Some(&log_path(session))
            || source == Some(&super::store_backed::source(session)))
}

/// Whether the record is a line in the index that lies in a log, too.
pub(crate) fn is_log_line(record: &Record) -> bool {
    let session = record.owner.session.as_deref();
    let session = session.and_then(|session| session.parse::<SessionId>().ok());
    session.is_some_and(|session| {
        is_indexed_line(record, &session) && record.source == Some(log_path(&session))
    })
}

/// Whether the record is the index entry of a page that is a file.
pub(crate) fn is_library_page(record: &Record) -> bool {
    let source = record.source.as_deref().unwrap_or_default();
    library_pages().matches(record)
        && record.origin == Origin::File
        && source.starts_with(&library())
}

/// Pages that were made of lines of the session, as records and as index entries of files.
pub(crate) fn pages_of(session: &SessionId) -> Filter {
    pages(super::store_backed::session_tag(session))
}

/// Index entries of all pages that are files.
pub(crate) fn library_pages() -> Filter {
    pages(TAG.to_owned())
}

fn pages(tag: String) -> Filter {
    Filter {
        scopes: vec![Scope::Semantic],
        kinds: vec![Kind::Document],
        tags: vec![tag],
        ..Filter::all_of_tenant()
    }
}

fn line_draft(session: &SessionId, hot: &HotLine, from: &From<'_>) -> Draft {
    Draft {
        id: Some(line_id(session, hot.offset, from)),
        // A NUL may be in a line of JSON, but not in a text.
        content: hot.line.text().replace('\0', "\u{fffd}"),
        owner: Owner {
            session: Some(session.to_string()),
            ..Owner::default()
        },
        scope: Some(Scope::Semantic),
        kind: Some(Kind::Chunk),
        origin: Some(Origin::Agent),
        source: Some(from.source.clone()),
        derived_from: match from.is_kept {
            true => vec![super::store_backed::line_id(session, hot.offset)],
            false => Vec::new(),
        },
        ..Draft::default()
    }
}

/// Brings the index up to date with the pages of the library: new and changed ones are read,
/// those of removed ones are forgotten. `marks` holds which sessions were purged.
pub(super) async fn index_library(
    cold: &Memory,
    marks: &Records,
    ctx: &Ctx,
    files: &dyn Files,
    project: &str,
) -> Result<(), Error> {
    let records = records(cold);
    let pages = files.list(&library()).await?;
    let pages: Vec<Listed> = pages
        .into_iter()
        .filter(|page| page.path.ends_with(".md"))
        .collect();
    let known = known_pages(records, ctx, project).await?;
    for page in &pages {
        let id = page_id(project, &page.path);
        let record = known.iter().find(|record| record.id == id);
        let stamp = json!([page.bytes, page.modified]);
        if record.is_some_and(|record| record.metadata.get("stamp") == Some(&stamp)) {
            continue;
        }
        let Some(file) = files.read(&page.path).await? else {
            continue;
        };
        let text = String::from_utf8_lossy(&file.bytes).replace('\0', "\u{fffd}");
        if text.trim().is_empty() || !fits(ctx, &page.path, &text) {
            continue;
        }
        let session = session_of(&text);
        if let Some(session) = &session
            && is_purged(marks, ctx, session, &text).await?
        {
            continue;
        }
        let session_tag = session.as_ref().map(super::store_backed::session_tag);
        let draft = Draft {
            id: Some(id),
            content: text,
            scope: Some(Scope::Semantic),
            kind: Some(Kind::Document),
            origin: Some(Origin::File),
            source: Some(page.path.clone()),
            tags: std::iter::once(TAG.to_owned()).chain(session_tag).collect(),
            metadata: Map::from_iter([("stamp".to_owned(), stamp)]),
            ..Draft::default()
        };
        records
            .put_masking(ctx, vec![(draft, Expect::Anything)])
            .await?;
    }
    let there: HashSet<Id> = pages
        .iter()
        .map(|page| page_id(project, &page.path))
        .collect();
    let gone = known
        .into_iter()
        .map(|record| record.id)
        .filter(|id| !there.contains(id));
    let gone: Vec<Id> = gone.collect();
    for chunk in gone.chunks(records.limits().commit_ops) {
        records.forget(ctx, chunk, None).await?;
    }
    Ok(())
}

/// Whether the page is from before the purge of its session. It is not indexed again, also when it
/// could not be erased or came back from a backup.
async fn is_purged(
    marks: &Records,
    ctx: &Ctx,
    session: &SessionId,
    text: &str,
) -> Result<bool, Error> {
    let purged = marks.purged_at(ctx, session.as_str()).await?;
    Ok(purged.is_some_and(|purged| created_at(text).is_none_or(|created| created <= purged)))
}

fn page_id(project: &str, path: &str) -> Id {
    match project.is_empty() {
        true => fixed_id("library", &[Some(path)]),
        false => fixed_id("library", &[Some(path), Some(project)]),
    }
}

/// The pages of this project, and those that earlier versions named by their path alone.
async fn known_pages(records: &Records, ctx: &Ctx, project: &str) -> Result<Vec<Record>, Error> {
    let mut scan = Scan::new(library_pages(), records.limits().page);
    let mut known = Vec::new();
    loop {
        let page = records.list(ctx, &scan).await?;
        let ours = page.records.into_iter().filter(|record| {
            let source = record.source.as_deref().unwrap_or_default();
            record.id == page_id(project, source) || record.id == page_id("", source)
        });
        known.extend(ours);
        match page.next {
            Some(next) if known.len() < limits::FILES => scan.after = Some(next),
            _ => return Ok(known),
        }
    }
}

pub(super) async fn query(
    cold: &Memory,
    ctx: &Ctx,
    query: &str,
    limit: usize,
) -> Result<Vec<Excerpt>, Error> {
    // A project's tool has no user, and sees what is for everyone.
    let filter = Filter {
        scopes: vec![Scope::Semantic],
        ..Filter::seen_by(Viewer::ANYONE)
    };
    let asked = Query {
        limit,
        ..Query::new(query, filter)
    };
    let hits = records(cold).search(ctx, &asked).await?;
    let excerpts = hits.into_iter().map(|hit| Excerpt {
        text: excerpt(&hit.record.content, query),
        source: hit
            .record
            .source
            .unwrap_or_else(|| hit.record.id.to_string()),
        score: hit.score,
    });
    Ok(excerpts.collect())
}

/// The paragraph that has the most words of the query, cut to a readable length.
fn excerpt(content: &str, query: &str) -> String {
    let wanted = words(query);
    let hits = |paragraph: &str| {
        let words = words(paragraph);
        wanted.iter().filter(|word| words.contains(*word)).count()
    };
    let paragraphs = content
        .split("\n\n")
        .filter(|paragraph| !paragraph.trim().is_empty());
    // The first of those that are equally good.
    let best = paragraphs.min_by_key(|paragraph| Reverse(hits(paragraph)));
    let best = best.unwrap_or(content).trim();
    let mut cut: String = best.chars().take(EXCERPT).collect();
    if cut.len() < best.len() {
        cut.push('…');
    }
    cut
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
