//! Changes of a context that touch the lines they mean and no others.

use mnemon_core::markdown::{Day, Document, Item, Label, Language, Section};
use mnemon_core::{Invalid, limits};
use serde::{Deserialize, Serialize};

use super::names::check_line;
use super::writing::{check_one, language, numbered};

/// What changes in a context; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContextChange {
    /// Tasks to tick: their words, or a part that only one of them has.
    pub done: Vec<String>,
    /// Tasks whose tick is taken away.
    pub reopened: Vec<String>,
    /// New tasks.
    pub tasks: Vec<String>,
    /// New blockers.
    pub blockers: Vec<String>,
    /// Blockers that are gone.
    pub resolved: Vec<String>,
    /// Rows of the table of the project's state.
    pub state: Vec<StateRow>,
    /// Rows of the table of files.
    pub files: Vec<KeyFile>,
    /// What the next session should do, instead of what is there.
    pub next: Option<Vec<String>>,
    /// New notes.
    pub notes: Vec<String>,
    /// Whole sections.
    pub sections: Vec<SectionText>,
}

/// A row of the table of the project's state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateRow {
    pub aspect: String,
    pub status: String,
    #[serde(default)]
    pub notes: Option<String>,
}

/// A row of the table of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    pub file: String,
    pub state: String,
    #[serde(default)]
    pub notes: Option<String>,
}

/// The whole text of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SectionText {
    pub section: String,
    pub text: String,
}

pub(super) const FOCUS: Label = Label::new("Active Focus", "Đang tập trung");
const STATE: Label = Label::new("Project State", "Trạng thái dự án");
const FILES: Label = Label::new("Key Files", "File quan trọng");
const BLOCKERS: Label = Label::new("Blockers", "Điểm nghẽn");
pub(super) const NEXT: Label = Label::new("Next Session Should", "Phiên tiếp theo nên");
const NOTES: Label = Label::new("Notes", "Ghi chú");

/// The headings of a context.
pub(super) const LABELS: &[Label] = &[FOCUS, STATE, FILES, BLOCKERS, NEXT, NOTES];

const STATE_TABLE: &str = "| Aspect | Status | Notes |\n|--------|--------|-------|\n";
const FILES_TABLE: &str = "| File | State | Notes |\n|------|-------|-------|\n";

/// A context in which nothing is said yet.
pub(super) fn template(title: &str, today: Day, language: Language) -> String {
    let mut text = format!("# {title}\n\n> Last updated: {today}\n");
    for label in LABELS {
        let body = match *label {
            STATE => STATE_TABLE,
            FILES => FILES_TABLE,
            _ => "",
        };
        let gap = if body.is_empty() { "" } else { "\n" };
        let heading = label.text(language);
        text.push_str(&format!("\n---\n\n## {heading}\n{gap}{body}"));
    }
    text
}

/// The first name of a heading.
fn short(title: &str) -> &str {
    title.split('|').next().unwrap_or(title).trim()
}

/// The section, which is made in the language of the file if it is not there.
fn section(document: &mut Document, label: Label) -> Result<Section, Invalid> {
    if label.section(document).is_none() {
        let title = label.text(language(document.as_str(), Language::English));
        document.append(&format!("---\n\n## {title}\n"));
    }
    let found = label.section(document).cloned();
    found.ok_or_else(|| left_open(label.english))
}

/// The section with this name, which may be one that only this file has.
fn section_named(document: &mut Document, title: &str) -> Result<Section, Invalid> {
    if let Some(label) = LABELS.iter().find(|label| label.is(title)) {
        return section(document, *label);
    }
    if document.section(short(title)).is_none() {
        document.append(&format!("---\n\n## {title}\n"));
    }
    let found = document.section(short(title)).cloned();
    found.ok_or_else(|| left_open(title))
}

fn left_open(title: &str) -> Invalid {
    let what = "the file leaves a code fence or an HTML comment open, so that nothing can be added; close it";
    Invalid::new(short(title), what)
}

impl ContextChange {
    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes the changes and sets `Last updated`; returns each change in a few words.
    pub(super) fn apply(
        &self,
        document: &mut Document,
        today: Day,
    ) -> Result<Vec<String>, Invalid> {
        let mut made = Vec::new();
        if self.is_empty() {
            return Ok(made);
        }
        self.check()?;
        for section_text in &self.sections {
            set_section(document, section_text)?;
            made.push(format!("replaced section: {}", section_text.section.trim()));
        }
        for words in &self.done {
            made.push(format!("ticked: {}", tick(document, words, true)?));
        }
        for words in &self.reopened {
            made.push(format!("reopened: {}", tick(document, words, false)?));
        }
        made.extend(add(document, FOCUS, "- [ ] ", "task", &self.tasks)?);
        for words in &self.resolved {
            let blockers = section(document, BLOCKERS)?;
            let item = find(document, &blockers, "resolved", words)?;
            made.push(format!("removed blocker: {}", document.item_text(&item)));
            document.remove_item(&item);
        }
        made.extend(add(
            document,
            BLOCKERS,
            "- [ ] ",
            "blocker",
            &self.blockers,
        )?);
        self.set_rows(document, &mut made)?;
        if let Some(steps) = &self.next {
            let next = section(document, NEXT)?;
            document.set_body(&next, numbered(steps, "")?.trim_end());
            made.push(format!("set next steps: {}", steps.len()));
        }
        made.extend(add(document, NOTES, "- ", "note", &self.notes)?);
        stamp(document, today);
        Ok(made)
    }

    fn set_rows(&self, document: &mut Document, made: &mut Vec<String>) -> Result<(), Invalid> {
        for row in &self.state {
            let cells = [Some(row.status.as_str()), row.notes.as_deref()];
            set_row(document, STATE, STATE_TABLE, &row.aspect, &cells)?;
            made.push(format!(
                "set state: {}: {}",
                row.aspect.trim(),
                row.status.trim()
            ));
        }
        for row in &self.files {
            let cells = [Some(row.state.as_str()), row.notes.as_deref()];
            let file = format!("`{}`", row.file.trim().trim_matches('`'));
            set_row(document, FILES, FILES_TABLE, &file, &cells)?;
            made.push(format!(
                "set file: {}: {}",
                row.file.trim(),
                row.state.trim()
            ));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Invalid> {
        let lists = [
            ("done", &self.done),
            ("reopened", &self.reopened),
            ("tasks", &self.tasks),
            ("blockers", &self.blockers),
            ("resolved", &self.resolved),
            ("notes", &self.notes),
        ];
        for (field, texts) in lists {
            texts.iter().try_for_each(|text| check_line(field, text))?;
        }
        for row in &self.state {
            check_row("state", [&row.aspect, &row.status], row.notes.as_ref())?;
        }
        for row in &self.files {
            check_row("files", [&row.file, &row.state], row.notes.as_ref())?;
        }
        Ok(())
    }
}

fn check_row(field: &str, cells: [&String; 2], notes: Option<&String>) -> Result<(), Invalid> {
    cells
        .into_iter()
        .try_for_each(|cell| check_line(field, cell))?;
    let notes = notes.filter(|notes| !notes.is_empty());
    notes.map_or(Ok(()), |notes| check_line(field, notes))
}

/// Says when the file was changed last, below the title if it said nothing of the sort.
pub(super) fn stamp(document: &mut Document, today: Day) {
    if document.set_line("Last updated", &today.to_string()) {
        return;
    }
    let first = document
        .sections()
        .first()
        .filter(|section| section.level == 1);
    match first.map(|section| section.body.start) {
        Some(at) if document.slice(&(0..at)).ends_with('\n') => {
            // Without an empty line, the next one would be read as part of the quote.
            let next = document
                .slice(&(at..document.as_str().len()))
                .lines()
                .next();
            let is_apart = next.is_none_or(|line| line.trim().is_empty());
            let gap = if is_apart { "" } else { "\n" };
            document.replace(at..at, &format!("\n> Last updated: {today}\n{gap}"));
        }
        Some(_) => {
            document.append(&format!("> Last updated: {today}\n"));
        }
        None => {
            let at = document.as_str().len() - document.body().len();
            document.replace(at..at, &format!("> Last updated: {today}\n\n"));
        }
    }
}

/// Adds lines to a section; says so, with what they are called.
fn add(
    document: &mut Document,
    label: Label,
    mark: &str,
    noun: &str,
    lines: &[String],
) -> Result<Vec<String>, Invalid> {
    let mut made = Vec::new();
    for line in lines {
        let place = section(document, label)?;
        let before = document.items(&place.own).count();
        document.add_item(&place, &format!("{mark}{}", line.trim()));
        let place = section(document, label)?;
        // Below an open fence the line would be code, and never found again.
        if document.items(&place.own).count() <= before {
            return Err(left_open(label.english));
        }
        made.push(format!("added {noun}: {}", line.trim()));
    }
    Ok(made)
}

/// Ticks a task, or takes its tick away; returns its words.
fn tick(document: &mut Document, words: &str, checked: bool) -> Result<String, Invalid> {
    let focus = section(document, FOCUS)?;
    let field = if checked { "done" } else { "reopened" };
    let item = find(document, &focus, field, words)?;
    if item.mark.is_none() {
        let what = format!(
            "`{}` has no box to tick; write it as `- [ ] …`",
            words.escape_debug()
        );
        return Err(Invalid::new(field, what));
    }
    let text = document.item_text(&item).to_owned();
    document.tick(&item, checked);
    Ok(text)
}

/// The item with these words, or the only one that has them somewhere.
fn find(document: &Document, section: &Section, field: &str, words: &str) -> Result<Item, Invalid> {
    let wanted = words.trim().to_lowercase();
    let content = document.content(section);
    let items: Vec<&Item> = document.items(&content).collect();
    let text = |item: &Item| document.item_text(item).to_lowercase();
    if let Some(exact) = items.iter().find(|item| text(item) == wanted) {
        return Ok((*exact).clone());
    }
    let near: Vec<&&Item> = items
        .iter()
        .filter(|item| text(item).contains(&wanted))
        .collect();
    let shown = |items: &[&&Item]| -> String {
        let texts: Vec<&str> = items
            .iter()
            .take(5)
            .map(|item| document.item_text(item))
            .collect();
        texts.join("; ")
    };
    let words = words.escape_debug();
    match near.as_slice() {
        [one] => Ok((**one).clone()),
        // Which of those that say the same makes no difference.
        [first, others @ ..] if others.iter().all(|other| text(other) == text(first)) => {
            Ok((**first).clone())
        }
        [] if items.is_empty() => Err(Invalid::new(
            field,
            format!(
                "`{words}` is not in `{}`, which is empty",
                short(&section.title)
            ),
        )),
        [] => {
            let all: Vec<&&Item> = items.iter().collect();
            Err(Invalid::new(
                field,
                format!(
                    "`{words}` is not in `{}`, which has: {}",
                    short(&section.title),
                    shown(&all)
                ),
            ))
        }
        many => Err(Invalid::new(
            field,
            format!(
                "`{words}` matches several; write more of one: {}",
                shown(many)
            ),
        )),
    }
}

fn set_row(
    document: &mut Document,
    label: Label,
    head: &str,
    key: &str,
    cells: &[Option<&str>],
) -> Result<(), Invalid> {
    let place = section(document, label)?;
    if document.tables(&place.own).is_empty() {
        document.add_item(&place, head.trim_end());
    }
    let place = section(document, label)?;
    let Some(table) = document.tables(&place.own).into_iter().next() else {
        let what = "the table in this section cannot be read; look at the file";
        return Err(Invalid::new(label.english, what));
    };
    document.set_row(&table, key, cells);
    Ok(())
}

fn set_section(document: &mut Document, new: &SectionText) -> Result<(), Invalid> {
    check_line("section", &new.section)?;
    let place = section_named(document, &new.section)?;
    if new.text.len() > limits::AGENT_FILE_BYTES {
        return Err(Invalid::new(
            "text",
            "is larger than the maximum size of a file",
        ));
    }
    check_one("text", &new.text, 0)?;
    document.set_body(&place, &new.text);
    Ok(())
}
