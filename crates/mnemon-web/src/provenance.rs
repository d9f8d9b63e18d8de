//! The records that a record was made from, and those that were made from it.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::graph::{self, Node};
use crate::text::{self, Fields};
use crate::{Visit, shell};

/// How far the links of a record are followed, in each direction.
const DEPTH: usize = 3;
/// Records of a graph, in each direction.
const RELATED: usize = 24;
/// Sources that one call of the API lists derived records of.
const SOURCES_OF_A_CALL: usize = 16;

/// One direction of the graph.
#[derive(Debug, Default)]
pub(crate) struct Related {
    nodes: Vec<Node>,
    seen: BTreeSet<String>,
    shown: usize,
    /// Records that are known and not shown.
    left_out: usize,
    /// Whether there are more than those.
    has_more: bool,
    /// Why a part could not be read.
    failure: Value,
}

impl Related {
    fn of(record: &Value) -> Self {
        Self {
            seen: BTreeSet::from([record.text("id").to_owned()]),
            ..Self::default()
        }
    }

    /// Counts a record once; whether there is room to show it.
    fn take(&mut self, id: &str) -> bool {
        if !self.seen.insert(id.to_owned()) {
            return false;
        }
        let has_room = self.shown < RELATED;
        match has_room {
            true => self.shown += 1,
            false => self.left_out += 1,
        }
        has_room
    }

    fn note_failure(&mut self, answer: &Value) {
        if answer.get("failure").is_some() {
            self.failure = answer.clone();
        }
    }
}

/// The records that it was made from, the nearest first.
pub(crate) async fn sources(visit: &Visit<'_>, record: &Value) -> Related {
    let mut related = Related::of(record);
    let mut level: Vec<(String, Value)> = vec![(record.text("id").to_owned(), record.clone())];
    for depth in 1..=DEPTH + 1 {
        let mut ids: Vec<String> = Vec::new();
        for (child, of) in &level {
            for source in of.texts("derived_from") {
                if depth > DEPTH {
                    related.left_out += usize::from(related.seen.insert(source.to_owned()));
                } else if related.take(source) {
                    ids.push(source.to_owned());
                }
                related.nodes.push(Node::link(source, child));
            }
        }
        if ids.is_empty() {
            break;
        }
        let fields = json!({ "ids": ids });
        let found = visit.aside("GET /v1/records/{id}", fields).await;
        related.note_failure(&found);
        level = with_ids(&found);
        let column = -(depth as i32);
        let nodes = level.iter();
        let nodes = nodes.map(|(id, one)| Node::record(id, &title(one), column));
        related.nodes.extend(nodes);
        // Sources that are deleted, or that the visitor may not see.
        let missing = found.texts("missing").into_iter();
        let missing = missing.map(|id| Node::missing(id, column));
        related.nodes.extend(missing);
    }
    related
}

/// The records that were made from it, the nearest first.
pub(crate) async fn derived(visit: &Visit<'_>, record: &Value) -> Related {
    let mut related = Related::of(record);
    let mut level = vec![record.text("id").to_owned()];
    for depth in 1..=DEPTH {
        let mut next = Vec::new();
        for sources in level.chunks(SOURCES_OF_A_CALL) {
            let fields =
                json!({ "derived_from": sources, "limit": RELATED + 1, "order": "oldest" });
            let found = visit.aside("GET /v1/records", fields).await;
            related.note_failure(&found);
            related.has_more |= shell::next(&found).is_some();
            for (id, one) in with_ids(&found) {
                let of_level = one.texts("derived_from").into_iter();
                let of_level =
                    of_level.filter(|source| sources.iter().any(|known| known == source));
                let links = of_level.map(|source| Node::link(source, &id));
                related.nodes.extend(links);
                if related.take(&id) {
                    let node = Node::record(&id, &title(&one), depth as i32);
                    related.nodes.push(node);
                    next.push(id);
                }
            }
        }
        if next.is_empty() {
            return related;
        }
        level = next;
    }
    // Records of the last level may have derived ones, which are not asked for.
    related.has_more = true;
    related
}

fn with_ids(found: &Value) -> Vec<(String, Value)> {
    let records = found.items("records").iter();
    records
        .map(|one| (one.text("id").to_owned(), one.clone()))
        .collect()
}

fn title(record: &Value) -> String {
    let words = match record.text("summary") {
        "" => record.text("content"),
        summary => summary,
    };
    let (words, _) = text::cut(words.trim_start(), 60);
    format!(
        "{}: {}",
        record.text("kind"),
        text::clean(words).replace(['\n', '\t'], " ")
    )
}

pub(crate) fn section(record: &Value, sources: &Related, derived: &Related) -> Markup {
    let own = Node::record(record.text("id"), &title(record), 0);
    let all = sources.nodes.iter().chain([&own]).chain(&derived.nodes);
    let all: Vec<&Node> = all.collect();
    html! {
        section.card {
            h2 { "Where it comes from, and what was made from it" }
            (shell::notices(&sources.failure)) (shell::notices(&derived.failure))
            @if sources.shown == 0 && derived.shown == 0 {
                p.quiet { "It was not made from other records, and none was made from it. Origin: "
                    (text::name(record.text("origin"))) "." }
            } @else { (graph::draw(&all)) }
            (not_shown(sources, "source", "sources"))
            (not_shown(derived, "derived record", "derived records"))
        }
    }
}

/// How many records of a direction the graph leaves out.
fn not_shown(related: &Related, one: &str, many: &str) -> Markup {
    let count = related.left_out;
    let words = match count {
        1 => one,
        _ => many,
    };
    html! {
        @match (count, related.has_more) {
            (0, false) => {},
            (0, true) => p.notice { "There may be more " (many) ": the graph ends after " (DEPTH) " steps." },
            (_, has_more) => p.notice { @if has_more { "At least " } (text::grouped(count as u64)) " more " (words)
                @if count == 1 { " is" } @else { " are" } " not shown. Open a record of the graph to see those around it." },
        }
    }
}
