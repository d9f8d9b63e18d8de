//! Notes as text for people.

use console::style;
use mnemon_engine::notes::{Added, Cleared, FoundNotes, NotePage, NoteText, NoteView};

use super::super::door::Door;
use super::super::text;
use crate::Error;

const INDENT: &str = "    ";

pub(super) fn added(added: &Added, door: &mut Door) -> Result<(), Error> {
    let done = match added.known {
        true => "already known",
        false => "stored",
    };
    let namespace = added.namespace;
    door.out.line(format!("{done} {} ({namespace})", added.id))
}

pub(super) fn found(found: &FoundNotes, door: &mut Door) -> Result<(), Error> {
    if !found.found {
        return door.out.line("nothing found");
    }
    for note in &found.results {
        head(note, door)?;
        told(note, door)?;
    }
    Ok(())
}

/// Score, id, date, namespace and tags.
fn head(note: &NoteView, door: &mut Door) -> Result<(), Error> {
    let mut parts: Vec<String> = note
        .score
        .iter()
        .map(|score| format!("{score:>6}"))
        .collect();
    parts.push(note.id.to_string());
    parts.push(text::local(note.created_at));
    parts.push(note.namespace.to_string());
    if !note.tags.is_empty() {
        parts.push(tags(note));
    }
    let line = text::cut(&parts.join("  "), door.out.width);
    door.out.line(style(line).dim())
}

fn told(note: &NoteView, door: &mut Door) -> Result<(), Error> {
    let room = door.out.width.saturating_sub(INDENT.len());
    let line = text::cut(&note.summary, room);
    door.out.line(format!("{INDENT}{line}"))?;
    let preview = note.content_preview.as_deref().unwrap_or_default();
    for line in text::clean(preview).lines() {
        door.out.line(format!("{INDENT}| {line}"))?;
    }
    Ok(())
}

fn tags(note: &NoteView) -> String {
    let tags: Vec<String> = note.tags.iter().map(|tag| format!("#{tag}")).collect();
    text::one_line(&tags.join(" "))
}

/// What describes a note, and its content where that was asked for.
pub(super) fn note(
    view: &NoteView,
    whole: Option<&NoteText>,
    door: &mut Door,
) -> Result<(), Error> {
    let mut rows = vec![
        ("id", view.id.to_string()),
        ("namespace", view.namespace.to_string()),
        ("created", text::local(view.created_at)),
    ];
    if !view.tags.is_empty() {
        rows.push(("tags", tags(view)));
    }
    if let Some(source) = &view.source {
        rows.push(("source", text::one_line(source)));
    }
    if let Some(importance) = view.importance {
        rows.push(("importance", importance.to_string()));
    }
    if let Some(whole) = whole {
        rows.push(("length", whole.content_length.to_string()));
    }
    for (name, value) in rows {
        door.out.line(format!("{name:<11} {value}"))?;
    }
    door.out.line("")?;
    let Some(whole) = whole else {
        door.out.line(text::clean(&view.summary))?;
        let preview = view.content_preview.as_deref().unwrap_or_default();
        return preview
            .lines()
            .try_for_each(|line| door.out.line(format!("| {}", text::clean(line))));
    };
    let content = whole.content.as_deref().unwrap_or_default();
    door.out.line(text::clean(content))?;
    door.out.next_page("--offset", whole.next_offset)
}

/// The narrowest that a summary is cut to.
const SUMMARY: usize = 24;

pub(super) fn page(page: &NotePage, door: &mut Door) -> Result<(), Error> {
    if page.notes.is_empty() {
        return door.out.line("nothing");
    }
    let ids = page.notes.iter().map(|note| note.id.as_str().len()).max();
    let before = ids.unwrap_or_default() + "2026-01-31 12:00".len() + "short-term".len() + 6;
    let room = door.out.width.saturating_sub(before).max(SUMMARY);
    let rows = page.notes.iter().map(|note| {
        let said = format!("{} {}", text::cut(&note.summary, room), tags(note));
        vec![
            note.id.to_string(),
            text::local(note.created_at),
            note.namespace.to_string(),
            text::cut(&said, room),
        ]
    });
    door.out
        .table(&["ID", "CREATED", "NAMESPACE", "SUMMARY"], rows.collect())?;
    door.out.next_page("--after", page.next.as_ref())
}

pub(super) fn cleared(cleared: &Cleared, door: &mut Door) -> Result<(), Error> {
    let forgotten = text::count(cleared.cleared, "note");
    let left = cleared.remaining;
    door.out.line(format!("forgot {forgotten}, {left} left"))?;
    door.out.undo_with(cleared.commit)
}
