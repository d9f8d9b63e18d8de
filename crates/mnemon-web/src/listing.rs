//! Tables that are sorted and cut into pages by the address of the view: of lists that the API returns
//! whole, and of lists that the API sorts.

use maud::{Markup, html};
use serde_json::Value;

use crate::shell::{link, paging};
use crate::{Visit, text::Fields};

/// Rows on a page.
pub(crate) const ROWS: usize = 50;

/// A column that a list can be sorted by.
pub(crate) struct Column {
    /// The word in the address.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) order: Order,
}

/// What the rows of a column are compared by.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// A text at this JSON pointer.
    Text(&'static str),
    /// A number, the largest first.
    Number(fn(&Value) -> f64),
    /// A time, the newest first, of a list that the API sorts.
    Newest,
    /// It is shown, and not sorted by.
    None,
}

impl Order {
    fn key(self, row: &Value) -> (f64, String) {
        match self {
            Self::Text(pointer) => {
                let text = row.pointer(pointer).and_then(Value::as_str);
                (0.0, text.unwrap_or_default().to_lowercase())
            }
            Self::Number(number) => (-number(row), String::new()),
            Self::Newest | Self::None => (0.0, String::new()),
        }
    }
}

/// A page of a list.
pub(crate) struct Listing<'a> {
    pub(crate) rows: Vec<&'a Value>,
    path: &'a str,
    /// Other fields of the address, such as filters.
    query: Vec<(&'a str, &'a str)>,
    columns: &'a [Column],
    sort: &'a str,
    skip: usize,
    has_more: bool,
}

impl<'a> Listing<'a> {
    pub(crate) fn of(
        visit: &'a Visit<'_>,
        path: &'a str,
        query: &[(&'a str, &'a str)],
        columns: &'a [Column],
        all: &'a [Value],
    ) -> Self {
        let (sort, skip) = (visit.asked("sort").unwrap_or_default(), skip(visit));
        let (rows, has_more) = arranged(all, columns, sort, skip);
        Self {
            rows,
            path,
            query: query.to_vec(),
            columns,
            sort,
            skip,
            has_more,
        }
    }

    /// A page that the API has sorted and cut.
    pub(crate) fn of_page(
        visit: &'a Visit<'_>,
        path: &'a str,
        columns: &'a [Column],
        rows: &'a [Value],
        has_more: bool,
    ) -> Self {
        Self {
            rows: rows.iter().collect(),
            path,
            query: Vec::new(),
            columns,
            sort: visit.asked("sort").unwrap_or_default(),
            skip: skip(visit),
            has_more,
        }
    }

    fn link(&self, sort: &str, skip: usize) -> String {
        let skip = match skip {
            0 => String::new(),
            skip => skip.to_string(),
        };
        let more = [("sort", sort), ("skip", skip.as_str())];
        link(self.path, &[self.query.as_slice(), &more].concat())
    }

    /// The titles, each with a link that sorts by it, or the other way round.
    pub(crate) fn head(&self) -> Markup {
        html! {
            tr {
                @for column in self.columns {
                    @let class = matches!(column.order, Order::Number(_)).then_some("count");
                    @let reversed = format!("-{}", column.name);
                    @let (next, state) = match self.sort {
                        sort if sort == column.name => (reversed.as_str(), Some(false)),
                        sort if sort == reversed => (column.name, Some(true)),
                        _ => (column.name, None),
                    };
                    // The largest number and the newest time come first.
                    @let falls = class.is_some() || matches!(column.order, Order::Newest);
                    @let is_falling = state.map(|is_reversed| is_reversed != falls);
                    th class=[class] aria-sort=[is_falling.map(|it| if it { "descending" } else { "ascending" })] {
                        @if matches!(column.order, Order::None) { (column.title) }
                        @else { a href=(self.link(next, 0)) { (column.title) @match is_falling {
                            Some(true) => " ↓", Some(false) => " ↑", None => "",
                        } } }
                    }
                }
            }
        }
    }

    pub(crate) fn paging(&self) -> Markup {
        let first = (self.skip > 0).then(|| self.link(self.sort, 0));
        let next = self
            .has_more
            .then(|| self.link(self.sort, self.skip + ROWS));
        paging(first.as_deref(), next.as_deref())
    }
}

/// How many rows come before the page.
pub(crate) fn skip(visit: &Visit<'_>) -> usize {
    let skip = visit.asked("skip").and_then(|skip| skip.parse().ok());
    skip.unwrap_or(0)
}

/// The column that the visitor sorts by, and whether the other way round.
pub(crate) fn sort<'a>(visit: &Visit<'_>, columns: &'a [Column]) -> Option<(&'a str, bool)> {
    column_of(columns, visit.asked("sort")?).map(|(column, is_reversed)| (column.name, is_reversed))
}

fn column_of<'a>(columns: &'a [Column], sort: &str) -> Option<(&'a Column, bool)> {
    let (name, is_reversed) = match sort.strip_prefix('-') {
        Some(name) => (name, true),
        None => (sort, false),
    };
    let mut named = columns.iter().filter(|column| column.name == name);
    named.next().map(|column| (column, is_reversed))
}

/// The rows of a page, and whether there are more. A word that names no column leaves the order.
fn arranged<'a>(
    all: &'a [Value],
    columns: &[Column],
    sort: &str,
    skip: usize,
) -> (Vec<&'a Value>, bool) {
    let mut rows: Vec<&Value> = all.iter().collect();
    if let Some((column, is_reversed)) = column_of(columns, sort) {
        rows.sort_by(|one, other| {
            let (one, other) = (column.order.key(one), column.order.key(other));
            let order = one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1));
            if is_reversed { order.reverse() } else { order }
        });
    }
    let has_more = rows.len() > skip.saturating_add(ROWS);
    (rows.into_iter().skip(skip).take(ROWS).collect(), has_more)
}

/// A whole number of a row.
pub(crate) fn whole(row: &Value, name: &str) -> f64 {
    row.whole(name) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COLUMNS: &[Column] = &[
        Column {
            name: "name",
            title: "Name",
            order: Order::Text("/key/name"),
        },
        Column {
            name: "runs",
            title: "Runs",
            order: Order::Number(|row| whole(row, "runs")),
        },
    ];

    fn names(all: &[Value], sort: &str, skip: usize) -> (String, bool) {
        let (rows, has_more) = arranged(all, COLUMNS, sort, skip);
        let names = rows.iter().filter_map(|row| row.pointer("/key/name"));
        (names.filter_map(Value::as_str).collect(), has_more)
    }

    #[test]
    fn rows_are_sorted_by_a_column_in_both_directions() {
        let row = |name: &str, runs: u64| json!({ "key": { "name": name }, "runs": runs });
        let all = [row("b", 2), row("A", 10), row("c", 1)];
        let cases = [
            ("", "bAc"),
            ("name", "Abc"),
            ("-name", "cbA"),
            ("runs", "Abc"),
            ("-runs", "cbA"),
            ("unknown", "bAc"),
        ];
        for (sort, expected) in cases {
            assert_eq!(names(&all, sort, 0), (expected.to_owned(), false), "{sort}");
        }
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let row = |number: usize| json!({ "key": { "name": "x" }, "runs": number });
        let all: Vec<Value> = (0..ROWS + 1).map(row).collect();
        assert_eq!(names(&all, "", 0), ("x".repeat(ROWS), true));
        assert_eq!(names(&all, "", ROWS), ("x".to_owned(), false));
        assert_eq!(names(&all, "", usize::MAX), (String::new(), false));
    }
}
