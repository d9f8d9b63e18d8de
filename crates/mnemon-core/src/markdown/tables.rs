//! Tables: rows of cells between `|`.

use std::ops::Range;

use super::Document;

/// A table with the ranges of its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub header: Row,
    pub rows: Vec<Row>,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Each without the space around it.
    pub cells: Vec<Range<usize>>,
    /// The line without its line break.
    pub line: Range<usize>,
}

impl Document {
    /// The tables in a range, in the order of the text.
    pub fn tables(&self, range: &Range<usize>) -> Vec<Table> {
        let inside = |table: &&Range<usize>| range.start <= table.start && table.start < range.end;
        let tables = self.tables.iter().filter(inside);
        tables.filter_map(|table| self.table(table)).collect()
    }

    fn table(&self, range: &Range<usize>) -> Option<Table> {
        let lines = self.lines(range.clone());
        let mut rows = lines
            .filter(|line| !self.slice(line).trim().is_empty())
            .map(|line| self.row(line));
        let header = rows.next()?;
        // The line of dashes.
        rows.next()?;
        Some(Table {
            header,
            rows: rows.collect(),
        })
    }

    fn row(&self, line: Range<usize>) -> Row {
        let text = self.slice(&line).trim_end_matches(['\n', '\r']);
        let line = line.start..line.start + text.len();
        let mut bars: Vec<usize> = Vec::new();
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'|' && !escaped {
                bars.push(at);
            }
            escaped = byte == b'\\' && !escaped;
        }
        let mut edges: Vec<(usize, usize)> = Vec::new();
        let mut from = 0;
        for bar in bars {
            edges.push((from, bar));
            from = bar + 1;
        }
        edges.push((from, text.len()));
        // Bars at the ends of a line frame it; there is no cell outside of them.
        let blank = |(from, to): (usize, usize)| {
            text.get(from..to)
                .is_some_and(|cell| cell.trim().is_empty())
        };
        if edges.len() > 1 && edges.last().copied().is_some_and(blank) {
            edges.pop();
        }
        if edges.len() > 1 && edges.first().copied().is_some_and(blank) {
            edges.remove(0);
        }
        let cells = edges.into_iter().map(|(from, to)| {
            let cell = text.get(from..to).unwrap_or_default();
            let trimmed = cell.trim();
            let lead = cell.len() - cell.trim_start().len();
            let start = line.start + from + if trimmed.is_empty() { 0 } else { lead };
            start..start + trimmed.len()
        });
        Row {
            cells: cells.collect(),
            line: line.clone(),
        }
    }

    /// Sets the cells after the first of the row that begins with `key`; adds a row if there is
    /// none. Cells that are not given stay.
    pub fn set_row(&mut self, table: &Table, key: &str, cells: &[Option<&str>]) {
        let bare = |text: &str| text.trim_matches(['`', '*', ' ']).to_lowercase();
        let row = table.rows.iter().find(|row| {
            let first = row.cells.first();
            first.is_some_and(|cell| bare(self.slice(cell)) == bare(key))
        });
        let Some(row) = row else {
            let last = table.rows.last().map(|row| row.line.end);
            return self.add_row(table, last, key, cells);
        };
        // From the last cell to the first, so that the ranges of the others still hold.
        let given = row.cells.iter().skip(1).zip(cells);
        let given: Vec<(Range<usize>, String)> = given
            .filter_map(|(cell, text)| Some((cell.clone(), escape(text.as_deref()?))))
            .collect();
        for (cell, text) in given.into_iter().rev() {
            let pad = if cell.is_empty() { " " } else { "" };
            self.replace(cell, &format!("{pad}{text}{pad}"));
        }
    }

    fn add_row(&mut self, table: &Table, last: Option<usize>, key: &str, cells: &[Option<&str>]) {
        let header_end = table.header.line.end;
        let rest = self.text.get(header_end..).unwrap_or_default();
        // The line of dashes ends where the second line break after the header stands.
        let dashes = rest
            .match_indices('\n')
            .nth(1)
            .map_or(rest.len(), |(at, _)| at);
        let dashes = header_end + rest.get(..dashes).unwrap_or_default().trim_end().len();
        let end = last.unwrap_or(dashes);
        let width = table.header.cells.len().max(1);
        let mut row: Vec<String> = vec![escape(key)];
        row.extend(cells.iter().map(|cell| escape(cell.unwrap_or_default())));
        row.resize(width, String::new());
        self.replace(end..end, &format!("\n| {} |", row.join(" | ")));
    }
}

/// A text that stays within its cell.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut backslash = false;
    for c in text.trim().chars() {
        match c {
            '|' if !backslash => escaped.push_str("\\|"),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(c),
        }
        backslash = c == '\\' && !backslash;
    }
    escaped
}
