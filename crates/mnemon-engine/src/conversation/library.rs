//! The index of a project's library: pages and other Markdown, found by words and meaning.

use std::cmp::Reverse;
use std::collections::HashSet;

use mnemon_core::files::Listed;
use mnemon_core::{Ctx, Expect, Filter, Id, Kind, Origin, Record, Scan, Scope, Viewer, limits};
use serde::Serialize;
use serde_json::{Map, json};

use super::pages::{created_at, library_folder, session_of};
use super::project::{Project, session_in};
use crate::memory::Memory;
use crate::records::naming::fixed_id;
use crate::records::{Draft, Error, Records};
use crate::search::Query;

/// What marks the index entries of pages.
const TAG: &str = "library";

/// Whether the record is the index entry of a page that is a file.
pub(crate) fn is_library_page(record: &Record) -> bool {
    let source = record.source.as_deref().unwrap_or_default();
    library_pages().matches(record)
        && record.origin == Origin::File
        && source.starts_with(&library_folder())
}

/// Index entries of all pages that are files.
pub(crate) fn library_pages() -> Filter {
    pages(TAG.to_owned())
}

/// Index entries of pages that were made of this session.
pub(crate) fn pages_of(session: &str) -> Filter {
    pages(session_tag(session))
}

fn session_tag(session: &str) -> String {
    fixed_id("page", &[Some("session"), Some(session)]).to_string()
}

fn pages(tag: String) -> Filter {
    Filter {
        scopes: vec![Scope::Semantic],
        kinds: vec![Kind::Document],
        tags: vec![tag],
        ..Filter::all_of_tenant()
    }
}

/// Brings the index up to date with the pages of the project: new and changed ones are read, those
/// of removed ones are forgotten. `marks` holds which sessions were purged.
pub(super) async fn index(
    records: &Records,
    marks: &Records,
    ctx: &Ctx,
    project: &Project,
) -> Result<(), Error> {
    let pages = project.files.list(&library_folder()).await?;
    let pages: Vec<Listed> = pages
        .into_iter()
        .filter(|page| page.path.ends_with(".md"))
        .collect();
    let known = known_pages(records, ctx, project).await?;
    if pages.is_empty() && known.is_empty() {
        return Ok(());
    }
    for page in &pages {
        let id = page_id(project, &page.path);
        let record = known.iter().find(|record| record.id == id);
        let stamp = json!([page.bytes, page.modified]);
        if record.is_none_or(|record| record.metadata.get("stamp") != Some(&stamp)) {
            let draft = page_draft(marks, ctx, project, page).await?;
            let draft = draft.map(|draft| Draft {
                id: Some(id),
                metadata: Map::from_iter([("stamp".to_owned(), stamp)]),
                ..draft
            });
            if let Some(draft) = draft {
                let put = vec![(draft, Expect::Anything)];
                records.put_masking(ctx, put).await?;
            }
        }
    }
    let there: HashSet<Id> = pages
        .iter()
        .map(|page| page_id(project, &page.path))
        .collect();
    let gone = known.into_iter().map(|record| record.id);
    let gone: Vec<Id> = gone.filter(|id| !there.contains(id)).collect();
    for chunk in gone.chunks(records.limits().commit_ops) {
        records.forget(ctx, chunk, None).await?;
    }
    Ok(())
}

/// The index entry of a page; none if it is empty, too large, or from before the purge of its
/// session: such a page is not indexed again, also when it could not be erased or came back from a
/// backup.
async fn page_draft(
    marks: &Records,
    ctx: &Ctx,
    project: &Project,
    page: &Listed,
) -> Result<Option<Draft>, Error> {
    let Some(file) = project.files.read(&page.path).await? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&file.bytes).replace('\0', "\u{fffd}");
    if text.len() > limits::CONTENT_BYTES {
        let (path, most) = (&page.path, limits::CONTENT_BYTES);
        let what = format!("{path} is not indexed: it has more than {most} bytes.");
        ctx.notices.add(what);
    }
    if text.trim().is_empty() || text.len() > limits::CONTENT_BYTES {
        return Ok(None);
    }
    let mut tags = vec![TAG.to_owned(), project.tag()];
    if let Some(session) = session_of(&text) {
        let session = session_in(project.root(), session.as_str())?;
        let purged = marks.purged_at(ctx, &session).await?;
        let is_older = |purged| created_at(&text).is_none_or(|created| created <= purged);
        if purged.is_some_and(is_older) {
            return Ok(None);
        }
        tags.push(session_tag(&session));
    }
    Ok(Some(Draft {
        content: text,
        scope: Some(Scope::Semantic),
        kind: Some(Kind::Document),
        origin: Some(Origin::File),
        source: Some(page.path.clone()),
        tags,
        ..Draft::default()
    }))
}

fn page_id(project: &Project, path: &str) -> Id {
    fixed_id("library", &[Some(path), Some(project.root())])
}

async fn known_pages(
    records: &Records,
    ctx: &Ctx,
    project: &Project,
) -> Result<Vec<Record>, Error> {
    let mut scan = Scan::new(pages(project.tag()), records.limits().page);
    let mut known = Vec::new();
    loop {
        let page = records.list(ctx, &scan).await?;
        known.extend(page.records);
        match page.next {
            Some(next) if known.len() < limits::FILES => scan.after = Some(next),
            _ => return Ok(known),
        }
    }
}

/// Characters of an excerpt.
const EXCERPT: usize = 500;

/// A passage that answers a query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Excerpt {
    /// A page of the library, a log, or the id of a record.
    pub source: String,
    pub text: String,
    pub score: f64,
}

/// The tool `query_memory`: excerpts from the library and from all that is known, the best first.
/// `apart` holds the pages if the memory does not.
pub async fn query_memory(
    memory: &Memory,
    apart: Option<&Memory>,
    ctx: &Ctx,
    query: &str,
    limit: usize,
) -> Result<Vec<Excerpt>, Error> {
    let mut found = search(memory, ctx, query, limit).await?;
    if let Some(library) = apart {
        found.extend(search(library, ctx, query, limit).await?);
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
        found.truncate(limit);
    }
    Ok(found)
}

async fn search(
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
    let hits = cold.records_of(Scope::Semantic).search(ctx, &asked).await?;
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
