//! Notes as text for people.

use console::style;
use mnemon_engine::notes::{
    Added, Cleaned, Cleared, FoundNotes, NearDuplicate, NoteCounts, NotePage, NoteText, NoteView,
};

use super::super::door::Door;
use super::super::shared::Shown;
use super::super::{search, text};
use mnemon_operations::Error;

const INDENT: &str = "    ";

impl Shown for Added {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let done = match self.known {
            true => "already known",
            false => "stored",
        };
        let (namespace, expires) = (self.namespace, text::expires(self.expires));
        say!(door, "{done} {} ({namespace}){expires}", self.id)?;
        match &self.near_duplicate {
            Some(near) => door.out.line(nearly(near)),
            None => Ok(()),
        }
    }
}

/// That something says nearly the same.
pub(in super::super) fn nearly(near: &NearDuplicate) -> String {
    let (id, percent) = (&near.id, near.similarity * 100.0);
    format!(
        "nearly the same as {id} ({percent:.0} % of the words); to change that one: mnemon update {id} TEXT"
    )
}

pub(super) fn found(found: &FoundNotes, is_cut: bool, door: &mut Door) -> Result<(), Error> {
    if !found.found {
        return search::nothing(is_cut, door);
    }
    for note in &found.results {
        head(note, door)?;
        body(note, door)?;
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
    parts.push(match &note.external {
        Some(source) => format!("from {}", text::one_line(source)),
        None => note.id.to_string(),
    });
    parts.push(text::local(note.created_at));
    parts.push(note.namespace.to_string());
    if !note.tags.is_empty() {
        parts.push(tags(note));
    }
    let line = text::cut(&parts.join("  "), door.out.width);
    door.out.line(style(line).dim())
}

/// The summary, and the beginning of the content if it was asked for.
fn body(note: &NoteView, door: &mut Door) -> Result<(), Error> {
    let room = door.out.width.saturating_sub(INDENT.len());
    let line = text::cut(&note.summary, room);
    say!(door, "{INDENT}{line}")?;
    let preview = note.content_preview.as_deref().unwrap_or_default();
    for line in text::clean(preview).lines() {
        say!(door, "{INDENT}| {line}")?;
    }
    Ok(())
}

fn tags(note: &NoteView) -> String {
    let tags: Vec<String> = note.tags.iter().map(|tag| format!("#{tag}")).collect();
    text::one_line(&tags.join(" "))
}

impl Shown for NoteText {
    /// What describes a note, and its content where that was asked for.
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let view = &self.note;
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
        if self.content.is_some() {
            rows.push(("length", self.content_length.to_string()));
        }
        for (name, value) in rows {
            say!(door, "{name:<11} {value}")?;
        }
        door.out.line("")?;
        let Some(content) = &self.content else {
            door.out.line(text::clean(&view.summary))?;
            let preview = view.content_preview.as_deref().unwrap_or_default();
            return preview
                .lines()
                .try_for_each(|line| say!(door, "| {}", text::clean(line)));
        };
        door.out.line(text::clean(content))?;
        door.out.next_page("--offset", self.next_offset)
    }
}

/// The narrowest that a summary is cut to.
const SUMMARY: usize = 24;

impl Shown for NotePage {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.notes.is_empty() {
            return door.out.line("nothing");
        }
        let ids = self.notes.iter().map(|note| note.id.as_str().len()).max();
        let before = ids.unwrap_or_default() + "2026-01-31 12:00".len() + "short-term".len() + 6;
        let room = door.out.width.saturating_sub(before).max(SUMMARY);
        let rows = self.notes.iter().map(|note| {
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
        door.out.next_page("--after", self.next.as_ref())
    }
}

pub(super) fn cleared(cleared: &Cleared, door: &mut Door) -> Result<(), Error> {
    let forgotten = text::count(cleared.cleared, "note");
    let left = cleared.remaining;
    say!(door, "forgot {forgotten}, {left} left")?;
    door.out.undo_with(cleared.commit)
}

impl Shown for NoteCounts {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        for (name, count) in [
            ("total", self.total),
            ("short-term", self.short_term),
            ("long-term", self.long_term),
        ] {
            say!(door, "{name:<11} {count}")?;
        }
        Ok(())
    }
}

impl Shown for Cleaned {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        door.out.line(&self.message)?;
        if self.cleaned > 0 {
            door.out
                .line("They are erased; `mnemon undo` does not restore them.")?;
        }
        match self.more {
            true => door.out.line("There is more; run it again."),
            false => Ok(()),
        }
    }
}
