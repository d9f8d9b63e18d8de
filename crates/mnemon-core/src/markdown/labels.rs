//! Labels and headings with a name in English and one in Vietnamese.

use std::ops::Range;

use super::fields::{Field, is_named};
use super::{Document, Section, names};
use crate::error::words;

words! {
    /// The language of labels and headings.
    #[derive(Default)]
    Language, "language" {
        #[default]
        English = "en",
        Vietnamese = "vi",
        /// `Reason | Lý do`.
        Bilingual = "bilingual",
    }
}

/// A label or heading in both languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub english: &'static str,
    pub vietnamese: &'static str,
}

impl Label {
    pub const fn new(english: &'static str, vietnamese: &'static str) -> Self {
        Self {
            english,
            vietnamese,
        }
    }

    /// The label as it is written in this language.
    pub fn text(&self, language: Language) -> String {
        match language {
            Language::English => self.english.to_owned(),
            Language::Vietnamese => self.vietnamese.to_owned(),
            Language::Bilingual => format!("{} | {}", self.english, self.vietnamese),
        }
    }

    /// Whether a written label has one of its names.
    pub fn is(&self, written: &str) -> bool {
        is_named(written, self.english) || is_named(written, self.vietnamese)
    }

    /// The first section with one of its names.
    pub fn section<'a>(&self, document: &'a Document) -> Option<&'a Section> {
        let mut sections = document.sections().iter();
        sections.find(|section| self.is(&section.title))
    }

    /// The first field in a range with one of its names.
    pub fn field(&self, document: &Document, range: &Range<usize>) -> Option<Field> {
        let fields = document.fields(range).into_iter();
        fields.into_iter().find(|field| self.is(&field.label))
    }

    /// The language of a written label; `None` if it is another label, or the same in both.
    fn language_of(&self, written: &str) -> Option<Language> {
        let mut written = names(written);
        match (written.next()?, written.next()) {
            (one, Some(other)) if self.is(one) && self.is(other) => Some(Language::Bilingual),
            (_, None) if self.english == self.vietnamese => None,
            (one, None) if is_named(one, self.english) => Some(Language::English),
            (one, None) if is_named(one, self.vietnamese) => Some(Language::Vietnamese),
            _ => None,
        }
    }
}

/// The language that most of the known labels and headings of a text are written in; `None` if it
/// has none of them.
pub fn language_of(text: &str, known: &[Label]) -> Option<Language> {
    let mut votes = [0_usize; 3];
    for line in text.lines() {
        let written = match line.strip_prefix("**") {
            Some(bold) => bold.split("**").next().unwrap_or_default(),
            None if line.starts_with('#') => line.trim_start_matches('#'),
            None => continue,
        };
        let written = written.trim().trim_end_matches(':');
        let said = known.iter().find_map(|label| label.language_of(written));
        let vote = said.and_then(|language| votes.get_mut(language as usize));
        if let Some(vote) = vote {
            *vote += 1;
        }
    }
    let most = votes.iter().max().filter(|most| **most > 0)?;
    // With as many of each the file is one in both languages.
    let mut languages = Language::ALL.iter().rev();
    languages
        .find(|language| votes.get(**language as usize) == Some(most))
        .copied()
}
