//! The tiers on any store, without files: the same rules over records.
//!
//! A frozen line is a record (`event`, tag `frozen`) named by its session and by where it stands;
//! none is ever changed. A page is a record (`document`, tag `page`), and so it is indexed as it is
//! written.

use mnemon_core::{
    Ctx, Expect, Filter, Id, Kind, Origin, Owner, Record, Scan, Scope, StoreError, limits,
};
use serde_json::{Map, Value, json};

use super::boot::Boot;
use super::warm::{Tree, page, page_name, through};
use super::{HotLine, Line};
use crate::conversation::session::SessionId;
use crate::memory::Memory;
use crate::records::naming::fixed_id;
use crate::records::{Draft, Error};

/// What marks frozen lines, and pages.
const FROZEN: &str = "frozen";
const PAGE: &str = "page";
/// Lines that are read at once when a window is read.
const LINES: usize = 200;

/// Where a line comes from, in words.
pub(super) fn source(session: &SessionId) -> String {
    format!("frozen:{session}")
}

/// The record of the line that stands here.
pub(super) fn line_id(session: &SessionId, offset: u64) -> Id {
    let offset = offset.to_string();
    fixed_id(FROZEN, &[Some(session.as_str()), Some(&offset)])
}

fn frozen(session: &SessionId) -> Filter {
    Filter {
        owner: Owner {
            session: Some(session.to_string()),
            ..Owner::default()
        },
        scopes: vec![Scope::Dialog],
        kinds: vec![Kind::Event],
        tags: vec![FROZEN.to_owned()],
        ..Filter::all_of_tenant()
    }
}

/// Where the line stands, and its bytes without the break.
fn stored(record: &Record) -> Option<(u64, &str)> {
    let body = record.body.as_ref()?;
    Some((body.get("at")?.as_u64()?, body.get("line")?.as_str()?))
}

/// Writes the line, with its break, after all others of its session, and returns where it begins.
pub(super) async fn append(
    memory: &Memory,
    ctx: &Ctx,
    session: &SessionId,
    line: &Line,
    bytes: &[u8],
) -> Result<u64, Error> {
    let records = memory.records_of(Scope::Dialog);
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\n');
    for _ in 0..limits::CHANGE_TRIES {
        let newest = records.list(ctx, &Scan::new(frozen(session), 1)).await?;
        let newest = newest.records.first();
        let end = newest
            .and_then(stored)
            .map_or(0, |(at, line)| at + line.len() as u64 + 1);
        let draft = Draft {
            id: Some(line_id(session, end)),
            // A NUL may be in a line of JSON, but not in a text.
            content: line.text().replace('\0', "\u{fffd}"),
            owner: frozen(session).owner,
            scope: Some(Scope::Dialog),
            kind: Some(Kind::Event),
            origin: Some(Origin::Agent),
            source: Some(source(session)),
            tags: vec![FROZEN.to_owned()],
            body: Some(json!({ "at": end, "line": text })),
            // Lines keep their order, whatever the clock says.
            created: Some(newest.map_or(ctx.now, |last| last.created.max(ctx.now))),
            ..Draft::default()
        };
        // It was looked through before it became a line.
        let put = vec![(draft, Expect::Absent)];
        match records.put_screened(ctx, put, None).await {
            // Somebody else has just written a line here.
            Err(Error::Store(StoreError::Conflict { .. })) => {}
            done => return done.map(|_| end),
        }
    }
    Err(StoreError::Conflict {
        id: line_id(session, 0),
        expected: "the end of the session's lines".to_owned(),
        current: None,
    }
    .into())
}

/// The last valid lines, read from the newest on.
pub(super) async fn boot(
    memory: &Memory,
    ctx: &Ctx,
    mut boot: Boot,
    session: &SessionId,
    wanted: usize,
) -> Result<Boot, Error> {
    let records = memory.records_of(Scope::Dialog);
    let mut scan = Scan::new(frozen(session), LINES.min(wanted));
    loop {
        let found = records.list(ctx, &scan).await?;
        for record in &found.records {
            if boot.hot.lines.len() >= wanted {
                return Ok(boot);
            }
            match stored(record) {
                Some((at, line)) => {
                    boot.bytes_read += line.len() as u64;
                    boot.take(at, line.as_bytes(), false);
                }
                None => boot.skip(0, "its record holds no line"),
            }
        }
        let has_more = boot.hot.lines.len() < wanted;
        match found.next {
            Some(_) if boot.bytes_read > limits::BOOT_BYTES as u64 => {
                boot.gave_up = true;
                return Ok(boot);
            }
            Some(next) if has_more => scan.after = Some(next),
            _ => return Ok(boot),
        }
    }
}

/// What the pages of a session are found by.
pub(super) fn session_tag(session: &SessionId) -> String {
    fixed_id(PAGE, &[Some("session"), Some(session.as_str())]).to_string()
}

/// The last page of the session, and the place among its lines up to which it goes.
pub(super) async fn last_page(
    memory: &Memory,
    ctx: &Ctx,
    session: &SessionId,
) -> Result<Option<(String, u64)>, Error> {
    let records = memory.records_of(Scope::Semantic);
    let pages = Scan::new(super::pages_of(session), 1);
    let found = records.list(ctx, &pages).await?;
    Ok(found.records.first().and_then(|page| {
        let through = page.metadata.get("through")?.as_u64()?;
        Some((page.source.clone()?, through))
    }))
}

/// Writes the next page and returns its name.
pub(super) async fn write_page(
    memory: &Memory,
    ctx: &Ctx,
    session: &SessionId,
    tree: &Tree,
    lines: &[HotLine],
) -> Result<String, Error> {
    let records = memory.records_of(Scope::Semantic);
    let filter = Filter {
        scopes: vec![Scope::Semantic],
        kinds: vec![Kind::Document],
        tags: vec![PAGE.to_owned()],
        ..Filter::all_of_tenant()
    };
    let newest = records.list(ctx, &Scan::new(filter, 1)).await?;
    let newest = newest.records.first();
    let last = newest.and_then(|page| page.metadata.get("number")?.as_u64());
    let mut number = last.unwrap_or(0);
    // What goes when its lines go; more sources than a record may name are not named.
    let sources = lines.iter().map(|hot| line_id(session, hot.offset));
    let sources: Vec<Id> = match lines.len() <= limits::SOURCES {
        true => sources.collect(),
        false => Vec::new(),
    };
    loop {
        number = number.saturating_add(1);
        let name = page_name(number);
        let draft = Draft {
            id: Some(fixed_id(PAGE, &[Some(&name)])),
            content: page(ctx, session, tree, number, through(lines)),
            scope: Some(Scope::Semantic),
            kind: Some(Kind::Document),
            origin: Some(Origin::Derived),
            source: Some(name.clone()),
            tags: vec![PAGE.to_owned(), session_tag(session)],
            metadata: Map::from_iter([
                ("number".to_owned(), Value::from(number)),
                ("through".to_owned(), Value::from(through(lines))),
            ]),
            derived_from: sources.clone(),
            created: Some(newest.map_or(ctx.now, |last| last.created.max(ctx.now))),
            ..Draft::default()
        };
        match records.put(ctx, vec![(draft, Expect::Absent)], None).await {
            // Somebody else has just written a page of this number; or it was forgotten, and its
            // name is not given again.
            Err(Error::Store(StoreError::Conflict { .. }))
                if number
                    < last
                        .unwrap_or(0)
                        .saturating_add(limits::CHANGE_TRIES as u64) => {}
            done => return done.map(|_| name),
        }
    }
}
