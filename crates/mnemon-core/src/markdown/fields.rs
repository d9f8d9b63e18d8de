//! Fields: `**Label**: value`, the label in one language or in two.

use std::ops::Range;

use super::Document;

/// A bold label and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As it is written, both languages and all.
    pub label: String,
    /// The value without white space around it; it may run over many lines.
    pub text: String,
    /// Where the value stands.
    pub value: Range<usize>,
}

impl Field {
    /// Whether it is called so, in either language.
    pub fn is(&self, name: &str) -> bool {
        is_named(&self.label, name)
    }
}

/// The names of a label or heading: `Reason | Lý do` has two.
pub fn names(label: &str) -> impl Iterator<Item = &str> {
    label
        .split('|')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

pub(super) fn is_named(label: &str, name: &str) -> bool {
    let wanted = name.trim().to_lowercase();
    label.trim().to_lowercase() == wanted || names(label).any(|one| one.to_lowercase() == wanted)
}

/// The label of a line and where its value begins, if the line is a field.
fn label(line: &str) -> Option<(&str, usize)> {
    let inside = line.strip_prefix("**")?;
    let end = inside.find("**")?;
    let (bold, rest) = (inside.get(..end)?, inside.get(end + 2..)?);
    let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let after = rest.get(spaces..)?;
    if let Some(name) = bold.trim_end().strip_suffix(':') {
        return Some((name.trim(), 2 + end + 2));
    }
    let colon = after.starts_with(':');
    (colon && !bold.trim().is_empty()).then_some((bold.trim(), 2 + end + 2 + spaces + 1))
}

impl Document {
    /// The fields in a range, in the order of the text. What looks like one in code is none.
    pub fn fields(&self, range: &Range<usize>) -> Vec<Field> {
        // A `---` before more text of the entry is a part of that text; only the last one closes.
        let range = self.trimmed(range.clone());
        let mut found: Vec<(String, usize, usize)> = Vec::new();
        let mut is_beside = false;
        for line in self.lines(range.clone()) {
            if self.is_opaque(line.start) {
                continue;
            }
            let text = self.slice(&line);
            if let Some((name, value)) = label(text) {
                is_beside = text
                    .get(value..)
                    .is_some_and(|rest| !rest.trim().is_empty());
                found.push((name.to_owned(), line.start, line.start + value));
            } else if is_beside && self.is_rule(&line) {
                // A value beside its label is short: text below a `---` is not a part of it.
                found.push((String::new(), line.start, line.start));
            }
        }
        let ends = found.iter().skip(1).map(|(_, start, _)| *start);
        let ends: Vec<usize> = ends.chain([range.end]).collect();
        let fields = found.into_iter().zip(ends);
        fields
            .filter(|((label, ..), _)| !label.is_empty())
            .map(|((label, _, start), end)| self.field_at(label, start..end))
            .collect()
    }

    /// The first field in a range with this name, in either language.
    pub fn field(&self, range: &Range<usize>, name: &str) -> Option<Field> {
        self.fields(range).into_iter().find(|field| field.is(name))
    }

    pub fn set_field(&mut self, field: &Field, value: &str) {
        let lead = if field.value.is_empty() { " " } else { "" };
        self.replace(field.value.clone(), &format!("{lead}{value}"));
    }

    /// Sets the value of a line such as `> Last updated: 2025-12-31`, quoted or not; says whether
    /// there is one.
    pub fn set_line(&mut self, name: &str, value: &str) -> bool {
        let whole = self.start..self.text.len();
        let lines: Vec<Range<usize>> = self.lines(whole).collect();
        let found = lines.into_iter().find_map(|line| {
            let text = self.slice(&line);
            let quoted = text.trim_start_matches(['>', ' ', '\t', '*', '_']);
            let said = quoted.get(..name.len())?;
            let rest = quoted.get(name.len()..)?;
            let colon = rest.find(':')?;
            let only_marks = rest
                .get(..colon)?
                .chars()
                .all(|c| matches!(c, '*' | '_' | ' '));
            if !said.eq_ignore_ascii_case(name) || !only_marks || self.is_opaque(line.start) {
                return None;
            }
            let value = rest.get(colon + 1..)?;
            let kept = value.len() - value.trim_start_matches([' ', '\t', '*', '_']).len();
            let start = line.end - value.len() + kept;
            let end = start + value.get(kept..)?.trim_end().len();
            Some((start..end, kept == 0))
        });
        let Some((range, needs_space)) = found else {
            return false;
        };
        let space = if needs_space { " " } else { "" };
        self.replace(range, &format!("{space}{value}"));
        true
    }

    fn field_at(&self, label: String, range: Range<usize>) -> Field {
        let raw = self.slice(&range);
        let lead = raw.len() - raw.trim_start().len();
        let text = raw.trim();
        let start = if text.is_empty() {
            range.start
        } else {
            range.start + lead
        };
        Field {
            label,
            value: start..start + text.len(),
            text: text.to_owned(),
        }
    }
}
