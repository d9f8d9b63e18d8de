//! Entries of a log that are changed or removed later. What was there before is in git, like
//! every other change of the files.

use mnemon_core::markdown::{Day, Document, Entry, Label};
use mnemon_core::{Ctx, Invalid};
use serde::{Deserialize, Serialize};

use super::home::Home;
use super::indexing::entry_id;
use super::names::check_line;
use super::writing::{ENTRY_LABELS, check_one, language};
use super::{AgentFiles, Whose};
use crate::records::Error;

/// Which entry is meant, and what becomes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EntryChange {
    /// Its title, a part that only one has, its heading, or the id that a search shows.
    pub which: String,
    /// Its date, where several have this title.
    pub date: Option<String>,
    /// Take it away.
    pub remove: bool,
    /// A new title.
    pub title: Option<String>,
    /// A new date.
    pub new_date: Option<String>,
    /// New texts of its fields.
    pub fields: Vec<FieldText>,
}

/// The text below a label of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldText {
    /// `Reason`, in either language.
    pub label: String,
    pub text: String,
}

/// An entry that was changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedEntry {
    pub file: String,
    /// The heading as it is now, or was.
    pub heading: String,
    /// The text before the change.
    pub before: String,
    pub removed: bool,
}

impl EntryChange {
    fn check(&self) -> Result<(), Invalid> {
        check_line("which", &self.which)?;
        let changes = self.title.is_some() || self.new_date.is_some() || !self.fields.is_empty();
        if changes == self.remove {
            let what = "either remove the entry, or give a new title, date or field";
            return Err(Invalid::new("which", what));
        }
        if let Some(title) = &self.title {
            check_line("title", title)?;
        }
        for field in &self.fields {
            check_line("label", &field.label)?;
            if field.label.contains('*') || field.text.trim().is_empty() {
                let what = "a field has a label without * and a text that is not empty";
                return Err(Invalid::new("fields", what));
            }
            check_one("text", &field.text, 0)?;
        }
        Ok(())
    }

    fn day(&self) -> Result<Option<Day>, Invalid> {
        self.date.as_deref().map(str::parse).transpose()
    }

    /// The entries of a file that may be meant: those that have exactly this name, or else those
    /// that have it as a part.
    fn matches(&self, project: &str, path: &str, document: &Document) -> Result<Matches, Invalid> {
        let (day, wanted) = (self.day()?, self.which.trim().to_lowercase());
        let mut found = Matches::default();
        let mut seen: Vec<String> = Vec::new();
        for entry in document.entries() {
            let heading = heading(document, &entry);
            seen.push(heading.clone());
            let count = seen.iter().filter(|other| **other == heading).count();
            let is_id = entry_id(project, path, &heading, count).as_str() == wanted;
            if day.is_some() && entry.day != day && !is_id {
                continue;
            }
            let title = entry.title.to_lowercase();
            if is_id || title == wanted || heading.to_lowercase() == wanted {
                found.exact.push(entry);
            } else if title.contains(&wanted) {
                found.partial.push(entry);
            }
        }
        Ok(found)
    }

    fn apply(&self, path: &str, document: &mut Document, entry: &Entry) -> Result<String, Error> {
        let start = entry.span.start;
        if self.remove {
            document.cut(std::slice::from_ref(&entry.span));
            return Ok(String::new());
        }
        for field in &self.fields {
            let entry = entry_at(document, start).ok_or_else(|| changed(path))?;
            set_field(document, &entry, field);
        }
        if self.title.is_some() || self.new_date.is_some() {
            let entry = entry_at(document, start).ok_or_else(|| changed(path))?;
            let day = match &self.new_date {
                Some(date) => Some(date.parse()?),
                None => entry.day,
            };
            let title = self.title.as_deref().unwrap_or(&entry.title).trim();
            let lead = day.map(|day: Day| format!("{day}: ")).unwrap_or_default();
            let line = document.slice(&(start..entry.body.start)).trim_end().len();
            document.replace(start..start + line, &format!("## {lead}{title}"));
        }
        let entry = entry_at(document, start).ok_or_else(|| changed(path))?;
        check_one("fields", document.entry_text(&entry), 1)?;
        Ok(heading(document, &entry))
    }
}

/// The entries of one file that a name may mean.
#[derive(Default)]
struct Matches {
    exact: Vec<Entry>,
    partial: Vec<Entry>,
}

fn entry_at(document: &Document, start: usize) -> Option<Entry> {
    let mut entries = document.entries().into_iter();
    entries.find(|entry| entry.span.start == start)
}

fn changed(path: &str) -> Error {
    Error::BadFile {
        path: path.to_owned(),
        what: "the entry cannot be read after the change; edit the file by hand".to_owned(),
    }
}

/// An entry's heading without its marks.
pub(super) fn heading(document: &Document, entry: &Entry) -> String {
    let line = document.slice(&entry.span).lines().next();
    let line = line.unwrap_or_default().trim_start_matches(['#', ' ']);
    line.trim_end().to_owned()
}

/// Replaces the text below a label; a label that is not there is added at the end of the entry.
fn set_field(document: &mut Document, entry: &Entry, new: &FieldText) {
    let text = Document::without_rules(new.text.trim_matches(['\n', '\r']).trim_end());
    let known = ENTRY_LABELS.iter().find(|label| label.is(&new.label));
    let there = match known {
        Some(label) => label.field(document, &entry.body),
        None => document.field(&entry.body, &new.label),
    };
    // Lists, tables and code begin on a line of their own.
    let is_block = text.starts_with(['-', '*', '|', '`', '~']) || text.contains('\n');
    if let Some(field) = there {
        let before = document.slice(&(entry.span.start..field.value.start));
        let is_inline = before
            .rsplit('\n')
            .next()
            .is_some_and(|line| line.contains("**"));
        let lead = if is_block && is_inline { "\n" } else { "" };
        document.set_field(&field, &format!("{lead}{text}"));
        return;
    }
    let own = language(document.as_str(), super::Language::English);
    let label = known.map_or(new.label.trim().to_owned(), |label: &Label| label.text(own));
    let end = entry.span.start + document.entry_text(entry).len();
    document.replace(end..end, &format!("\n\n**{label}**:\n{text}"));
}

impl AgentFiles {
    /// Changes or removes an entry of an agent's decisions or learnings, or a team's decisions.
    pub async fn change_entry<'a>(
        &self,
        ctx: &Ctx,
        whose: impl Into<Whose<'a>>,
        change: &EntryChange,
    ) -> Result<ChangedEntry, Error> {
        change.check()?;
        let change = self.screened(ctx, "entry", change)?;
        let home = self.ready(whose.into()).await?;
        let (path, meant) = self.file_of_entry(&home, &change).await?;
        self.change(&path, "", |document| {
            let found = change.matches(&self.project, &path, document)?;
            let mut found = found.exact.iter().chain(&found.partial);
            // Somebody may have changed the file since the entry was looked for, and another entry
            // may fit as well now.
            let entry = found.find(|entry| heading(document, entry) == meant);
            let Some(entry) = entry else {
                return Err(Error::Crowded { path: path.clone() });
            };
            let before = document.entry_text(entry).to_owned();
            let was = heading(document, entry);
            let now = change.apply(&path, document, entry)?;
            Ok(ChangedEntry {
                file: path.clone(),
                heading: if change.remove { was } else { now },
                before,
                removed: change.remove,
            })
        })
        .await
    }

    /// The one file that has the entry, and the entry's heading. An entry is removed by its whole
    /// title only: repeating the command must not remove another.
    async fn file_of_entry(
        &self,
        home: &Home,
        change: &EntryChange,
    ) -> Result<(String, String), Error> {
        let (mut exact, mut partial, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for path in home.logs() {
            let Some(read) = self.read(&path).await? else {
                continue;
            };
            let document = Document::parse(read.text);
            let found = change.matches(&self.project, &path, &document)?;
            let named = |entry: &Entry| (path.clone(), heading(&document, entry));
            exact.extend(found.exact.iter().map(named));
            partial.extend(found.partial.iter().map(named));
            all.extend(document.recent(3).iter().map(named));
        }
        let found = match (exact.is_empty(), change.remove) {
            (true, false) => partial,
            (true, true) => {
                all.retain(|other| !partial.contains(other));
                all.splice(..0, partial);
                exact
            }
            (false, _) => exact,
        };
        let shown = |entries: &[(String, String)]| {
            let headings = entries.iter().take(5).map(|(_, heading)| heading.as_str());
            headings.collect::<Vec<_>>().join("; ")
        };
        let which = change.which.escape_debug();
        match found.as_slice() {
            [(path, heading)] => Ok((path.clone(), heading.clone())),
            [] if all.is_empty() => Err(Error::NotThere(format!(
                "there is no entry in {}",
                home.memory
            ))),
            [] => Err(Error::NotThere(format!(
                "there is no entry `{which}` in {}; there are: {}",
                home.memory,
                shown(&all)
            ))),
            many => {
                let what = format!(
                    "`{which}` matches several entries; write more of the title, or the date: {}",
                    shown(many)
                );
                Err(Invalid::new("which", what).into())
            }
        }
    }
}
