//! The index of a project's library: pages and other Markdown, found by words and meaning.

use std::collections::{HashMap, HashSet};

use mnemon_core::files::Listed;
use mnemon_core::{Ctx, Expect, Filter, Id, Kind, Origin, Record, Scan, Scope, limits};
use serde_json::{Map, json};

use super::pages::{created_at, library_folder, session_of};
use super::project::{Project, session_in};
use crate::records::naming::fixed_id;
use crate::records::{Draft, Error, Records};

/// What marks the index entries of pages.
const TAG: &str = "library";
/// Pages that are written in one commit.
const BATCH: usize = 64;
/// Bytes after which pages are written.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

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
    let known: HashMap<Id, Record> = known.into_iter().map(|r| (r.id.clone(), r)).collect();
    let (mut changed, mut bytes) = (Vec::new(), 0);
    for page in &pages {
        let id = page_id(project, &page.path);
        let stamp = json!([page.bytes, page.modified]);
        if known.get(&id).and_then(|known| known.metadata.get("stamp")) == Some(&stamp) {
            continue;
        }
        if let Some(draft) = page_draft(marks, ctx, project, page).await? {
            let draft = Draft {
                id: Some(id),
                metadata: Map::from_iter([("stamp".to_owned(), stamp)]),
                ..draft
            };
            bytes += draft.content.len();
            changed.push((draft, Expect::Anything));
        }
        // A page may be large: pages that are written together are held together.
        if changed.len() >= BATCH || bytes >= BATCH_BYTES {
            bytes = 0;
            records
                .put_masking(ctx, std::mem::take(&mut changed))
                .await?;
        }
    }
    if !changed.is_empty() {
        records.put_masking(ctx, changed).await?;
    }
    let there: HashSet<Id> = pages
        .iter()
        .map(|page| page_id(project, &page.path))
        .collect();
    let gone = known.into_keys();
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
    let scan = Scan::new(pages(project.tag()), records.limits().page);
    let mut known = Vec::new();
    let take = |page| {
        known.extend(page);
        known.len() < limits::FILES
    };
    records.each_page(ctx, scan, take).await?;
    Ok(known)
}
