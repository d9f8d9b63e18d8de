//! A graph of records: sources on the left, derived records on the right.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::shell::record_path;
use crate::text;

/// A record of the graph, or a link between two.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Record {
        id: String,
        title: String,
        /// Steps from the record in the middle; negative for sources.
        column: i32,
        is_there: bool,
    },
    Link {
        from: String,
        to: String,
    },
}

impl Node {
    pub(crate) fn record(id: &str, title: &str, column: i32) -> Self {
        Self::Record {
            id: id.to_owned(),
            title: title.to_owned(),
            column,
            is_there: true,
        }
    }

    /// A record that is deleted, or hidden from the visitor.
    pub(crate) fn missing(id: &str, column: i32) -> Self {
        Self::Record {
            id: id.to_owned(),
            title: "deleted or not visible".to_owned(),
            column,
            is_there: false,
        }
    }

    pub(crate) fn link(from: &str, to: &str) -> Self {
        Self::Link {
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }
}

const WIDTH: i32 = 188;
const HEIGHT: i32 = 46;
const GAP: i32 = 44;
const LINE: i32 = 60;

/// A record with its place.
struct Placed<'a> {
    id: &'a str,
    title: &'a str,
    column: i32,
    is_there: bool,
    x: i32,
    y: i32,
}

fn placed<'a>(nodes: &[&'a Node]) -> Vec<Placed<'a>> {
    let columns = nodes.iter().filter_map(|node| match node {
        Node::Record { column, .. } => Some(*column),
        Node::Link { .. } => None,
    });
    let first = columns.min().unwrap_or(0);
    let mut rows: BTreeMap<i32, i32> = BTreeMap::new();
    let mut placed: Vec<Placed<'a>> = Vec::new();
    for node in nodes {
        let Node::Record {
            id,
            title,
            column,
            is_there,
        } = node
        else {
            continue;
        };
        let row = rows.entry(*column).or_default();
        placed.push(Placed {
            id,
            title,
            column: *column,
            is_there: *is_there,
            x: (column - first) * (WIDTH + GAP),
            y: *row * LINE,
        });
        *row += 1;
    }
    // Short columns stand in the middle.
    let most = rows.values().copied().max().unwrap_or(1);
    for one in &mut placed {
        let rows = rows.get(&one.column).copied().unwrap_or(1);
        one.y += (most - rows) * LINE / 2;
    }
    placed
}

/// The graph, with a list of the same records for those who do not see it.
pub(crate) fn draw(nodes: &[&Node]) -> Markup {
    let placed = placed(nodes);
    let width = placed
        .iter()
        .map(|one| one.x + WIDTH)
        .max()
        .unwrap_or(WIDTH)
        + 2;
    let height = placed
        .iter()
        .map(|one| one.y + HEIGHT)
        .max()
        .unwrap_or(HEIGHT)
        + 2;
    let find = |id: &str| placed.iter().find(|one| one.id == id);
    let links = nodes.iter().filter_map(|node| match node {
        Node::Link { from, to } => find(from).zip(find(to)),
        Node::Record { .. } => None,
    });
    html! {
        div.scroll tabindex="0" role="group" aria-label="Graph of sources and derived records" {
            svg.graph viewBox=(format!("-1 -1 {width} {height}")) width=(width) height=(height) {
                @for (from, to) in links {
                    @let (x1, y1, x2, y2) = (from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2);
                    @let middle = i32::midpoint(x1, x2);
                    path.link d=(format!("M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}")) {}
                }
                @for one in &placed { (node(one)) }
            }
        }
        p.quiet { "Arrows lead from a source to what was made from it. Deleting a source deletes what was made only from it." }
    }
}

fn node(one: &Placed<'_>) -> Markup {
    let class = match (one.is_there, one.column) {
        (false, _) => "node missing",
        (_, 0) => "node here",
        _ => "node",
    };
    let (id, _) = text::cut(one.id, 24);
    let (title, has_more) = text::cut(one.title, 24);
    let inner = html! {
        rect x=(one.x) y=(one.y) width=(WIDTH) height=(HEIGHT) rx="6" {}
        text x=(one.x + 10) y=(one.y + 19) { (title) @if has_more { "…" } }
        text.id x=(one.x + 10) y=(one.y + 36) { (text::clean(id)) }
        title { (one.title) }
    };
    html! {
        @if one.is_there && one.column != 0 {
            a class=(class) href=(record_path(one.id)) { (inner) }
        } @else { g class=(class) { (inner) } }
    }
}
