//! Items of lists, with or without a box to tick.

use std::ops::Range;

use super::{Document, Section};

/// An item of a list. An item that holds others spans them as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub span: Range<usize>,
    /// Whether its box is ticked; `None` when it has no box.
    pub checked: Option<bool>,
    /// Where its box stands.
    pub mark: Option<Range<usize>>,
}

impl Item {
    pub(super) fn new(span: Range<usize>) -> Self {
        Self {
            span,
            checked: None,
            mark: None,
        }
    }
}

impl Document {
    /// The items in a range, in the order of the text.
    pub fn items(&self, range: &Range<usize>) -> impl Iterator<Item = &Item> {
        let (start, end) = (range.start, range.end);
        let first = self.items.partition_point(|item| item.span.start < start);
        let rest = self.items.get(first..).unwrap_or_default().iter();
        rest.take_while(move |item| item.span.start < end)
    }

    /// The words of an item's first line, without its marks.
    pub fn item_text(&self, item: &Item) -> &str {
        let text = match &item.mark {
            Some(mark) => self.slice(&(mark.end..item.span.end)),
            None => {
                let text = self.slice(&item.span).trim_start();
                let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
                digits.get(1..).unwrap_or_default()
            }
        };
        text.trim_start().lines().next().unwrap_or_default().trim()
    }

    /// Ticks the item's box, or takes the tick away. An item without a box stays as it is.
    pub fn tick(&mut self, item: &Item, checked: bool) {
        if let (Some(mark), true) = (&item.mark, item.checked != Some(checked)) {
            let inside = mark.start + 1..mark.end - 1;
            self.replace(inside, if checked { "x" } else { " " });
        }
    }

    /// Takes an item away with its line, and all that hangs on it.
    pub fn remove_item(&mut self, item: &Item) {
        let before = self.text.get(..item.span.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let text = self.slice(&item.span).trim_end();
        let last = item.span.start + text.len();
        let rest = self.text.get(last..).unwrap_or_default();
        let end = rest.find('\n').map_or(self.text.len(), |at| last + at + 1);
        self.replace(start..end, "");
    }

    /// Adds a line to the end of the section's last list, or begins one.
    pub fn add_item(&mut self, section: &Section, line: &str) {
        let content = self.content(section);
        if content.is_empty() {
            return self.set_body(section, line);
        }
        // Only a list at the end is gone on with: what stands below another one belongs to it.
        let listed = self.items(&content).last();
        let is_last = listed.is_some_and(|item| {
            let text = self.slice(&item.span).trim_end();
            item.span.start + text.len() >= content.end
        });
        let lead = if is_last { "\n" } else { "\n\n" };
        self.replace(content.end..content.end, &format!("{lead}{line}"));
    }
}
