//! Records: the list, one record with everything known about it, and its deletion.

use std::collections::BTreeSet;

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::graph::{self, Node};
use crate::shell::{KINDS, NAMESPACES, button, choice, field, link, record_path, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, history, shell};

const PAGE: u64 = 50;
/// How far the links of a record are followed, in each direction.
const DEPTH: usize = 3;
/// Records of a graph, in each direction.
const RELATED: usize = 24;
/// Characters of a content by which similar records are searched for.
const QUERY: usize = 400;
const SIMILAR: u64 = 6;
/// From this score on a record says nearly the same as another.
const NEAR_DUPLICATE: f64 = 0.9;
/// Records that a deletion names.
const LISTED: usize = 100;

const FILTERS: &[&str] = &[
    "kind",
    "namespace",
    "scope",
    "user",
    "session",
    "tag",
    "order",
];

pub(crate) async fn list(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let asked = |name: &str| visit.asked(name).unwrap_or_default();
    let some = |name: &str| visit.asked(name).map(|word| vec![word]);
    let page = visit.call(
        "GET /v1/records",
        json!({
            "limit": PAGE, "kind": some("kind"), "namespace": some("namespace"),
            "scope": some("scope"), "user": visit.asked("user"), "session": visit.asked("session"),
            "tags": some("tag"), "order": visit.asked("order"), "after": visit.asked("after"),
        }),
    );
    let page = page.await?;
    let query: Vec<(&str, &str)> = FILTERS.iter().map(|name| (*name, asked(name))).collect();
    let first = visit.asked("after").map(|_| link("/records", &query));
    let next = shell::next(&page).map(|after| {
        let query = [query.as_slice(), &[("after", after.as_str())]].concat();
        link("/records", &query)
    });
    let records = page.items("records");
    let content = html! {
        h1 { "Records" }
        form.fields method="get" action="/records" data-auto {
            (choice("kind", "Kind", "any", KINDS, asked("kind")))
            (choice("namespace", "Kept", "any", NAMESPACES, asked("namespace")))
            @if visit.visitor.user.is_none() { (field("user", "User", asked("user"), "any")) }
            (field("session", "Conversation", asked("session"), "any"))
            (field("tag", "Tag", asked("tag"), "any"))
            (choice("order", "Order", "", &["newest", "oldest", "written"], asked("order")))
            @if !asked("scope").is_empty() { (field("scope", "Scope", asked("scope"), "any")) }
            button type="submit" { "Show" }
        }
        (shell::notices(&page))
        @if records.is_empty() {
            (shell::empty("No record matches.", "mnemon add \"The deploy key rotates on the first of the month\""))
        } @else { (table(records)) }
        (shell::paging(first.as_deref(), next.as_deref()))
    };
    Ok(shell::page(visit.visitor, "/records", "Records", &content).into())
}

/// A line for each record.
pub(crate) fn table(records: &[Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Table" {
            table.records {
                thead { tr { th { "Content" } th { "Kind" } th { "User" } th { "Created" } } }
                tbody {
                    @for record in records {
                        @let owner = record.get("owner").unwrap_or(&Value::Null);
                        tr {
                            td.content { a data-row href=(record_path(record.text("id"))) { (title(record)) } }
                            td { (record.text("kind")) }
                            td { (text::name(owner.text("user"))) }
                            td.time { (text::time(record.text("created"))) }
                        }
                    }
                }
            }
        }
    }
}

/// The summary of a record, or the beginning of its content.
fn title(record: &Value) -> Markup {
    let words = [
        record.text("summary"),
        record.text("content"),
        record.text("id"),
    ];
    let words = words.into_iter().find(|words| !words.trim().is_empty());
    text::line(words.unwrap_or("(empty)"))
}

/// The record, or that there is none.
async fn read(visit: &Visit<'_>, id: &str) -> Result<Value, Failure> {
    let found = visit
        .call("GET /v1/records/{id}", json!({ "ids": [id] }))
        .await?;
    let record = found.items("records").first().cloned();
    record.ok_or_else(|| Failure::not_found("there is no such record"))
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let record = read(visit, visit.in_path("id")).await?;
    let id = record.text("id").to_owned();
    let (query, _) = text::cut(record.text("content"), QUERY);
    let similar = async {
        match query.trim().is_empty() {
            true => Value::Null,
            false => {
                let fields = json!({ "query": query, "limit": SIMILAR + 1 });
                visit.aside("POST /v1/search", fields).await
            }
        }
    };
    let changes = visit.aside("GET /v1/history", json!({ "id": id, "limit": 20 }));
    let (similar, changes, sources, derived) = join!(
        similar,
        changes,
        sources(visit, &record),
        derived(visit, &record)
    );
    let content = html! {
        div.head {
            h1 { "Record " (text::id(&id)) }
            @if visit.visitor.may_write {
                a.button.danger href={ (record_path(&id)) "/delete" } { "Delete…" }
            }
        }
        div.beside {
            div {
                section.card { (text::block(record.text("content"))) (structured(&record)) }
                (provenance(&record, &sources, &derived))
                (versions(&changes))
            }
            aside {
                section.card { h2 { "Facts" } (properties(&record)) }
                (neighbours(&id, &similar))
            }
        }
    };
    Ok(shell::page(visit.visitor, "/records", "Record", &content).into())
}

fn properties(record: &Value) -> Markup {
    let owner = record.get("owner").unwrap_or(&Value::Null);
    let plain = ["kind", "scope", "namespace", "origin", "audience", "source"];
    let importance = record.get("importance").and_then(Value::as_f64);
    html! {
        dl {
            @for name in plain {
                @if !record.text(name).is_empty() { dt { (name) } dd { (text::name(record.text(name))) } }
            }
            @for name in ["user", "agent", "session", "flow", "node"] {
                @if !owner.text(name).is_empty() { dt { (name) } dd { (text::name(owner.text(name))) } }
            }
            @if let Some(importance) = importance { dt { "importance" } dd { (format!("{importance:.2}")) } }
            @if !record.texts("tags").is_empty() {
                dt { "tags" }
                dd { @for tag in record.texts("tags") { a href=(link("/records", &[("tag", tag)])) { "#" (text::name(tag)) } " " } }
            }
            dt { "version" } dd { (record.whole("version")) }
            @for name in ["created", "updated", "expires", "valid_from", "valid_to"] {
                @if !record.text(name).is_empty() { dt { (name.replace('_', " ")) } dd { (text::time(record.text(name))) } }
            }
            @if !record.text("superseded_by").is_empty() {
                dt { "replaced by" }
                dd { a href=(record_path(record.text("superseded_by"))) { (text::id(record.text("superseded_by"))) } }
            }
        }
    }
}

/// The metadata and the structured form, where there are any.
fn structured(record: &Value) -> Markup {
    let parts = [("metadata", "Metadata"), ("body", "Structured form")];
    html! {
        @for (name, title) in parts {
            @if let Some(part) = record.get(name) {
                details {
                    summary { (title) }
                    (text::block(&serde_json::to_string_pretty(part).unwrap_or_default()))
                }
            }
        }
    }
}

/// The records that it was made from, the nearest first.
async fn sources(visit: &Visit<'_>, record: &Value) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut seen = BTreeSet::from([record.text("id").to_owned()]);
    let mut level: Vec<(String, Value)> = vec![(record.text("id").to_owned(), record.clone())];
    for depth in 1..=DEPTH {
        let mut ids: Vec<String> = Vec::new();
        for (child, of) in &level {
            for source in of.texts("derived_from") {
                let is_new = seen.insert(source.to_owned());
                if is_new && ids.len() + nodes.len() < RELATED {
                    ids.push(source.to_owned());
                }
                nodes.push(Node::link(source, child));
            }
        }
        if ids.is_empty() {
            break;
        }
        let found = visit
            .aside("GET /v1/records/{id}", json!({ "ids": ids }))
            .await;
        level = with_ids(&found);
        nodes.extend(
            level
                .iter()
                .map(|(id, one)| Node::record(id, &title_text(one), -(depth as i32))),
        );
        // Sources that are deleted, or that the visitor may not see.
        for missing in found.texts("missing") {
            nodes.push(Node::missing(missing, -(depth as i32)));
        }
    }
    nodes
}

/// The records that were made from it, the nearest first.
async fn derived(visit: &Visit<'_>, record: &Value) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut seen = BTreeSet::from([record.text("id").to_owned()]);
    let mut level = vec![record.text("id").to_owned()];
    for depth in 1..=DEPTH {
        let fields = json!({ "derived_from": level, "limit": RELATED, "order": "oldest" });
        let found = visit.aside("GET /v1/records", fields).await;
        let mut next = Vec::new();
        for (id, one) in with_ids(&found) {
            let of_level = one.texts("derived_from").into_iter();
            let of_level = of_level.filter(|source| level.iter().any(|known| known == source));
            nodes.extend(of_level.map(|source| Node::link(source, &id)));
            if seen.insert(id.clone()) && next.len() < RELATED {
                nodes.push(Node::record(&id, &title_text(&one), depth as i32));
                next.push(id);
            }
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    nodes
}

fn with_ids(found: &Value) -> Vec<(String, Value)> {
    let records = found.items("records").iter();
    records
        .map(|one| (one.text("id").to_owned(), one.clone()))
        .collect()
}

fn title_text(record: &Value) -> String {
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

fn provenance(record: &Value, sources: &[Node], derived: &[Node]) -> Markup {
    let own = Node::record(record.text("id"), &title_text(record), 0);
    let all: Vec<&Node> = sources.iter().chain([&own]).chain(derived).collect();
    html! {
        section.card {
            h2 { "Where it comes from, and what was made from it" }
            @if sources.is_empty() && derived.is_empty() {
                p.quiet { "It was not made from other records, and none was made from it. Origin: "
                    (text::name(record.text("origin"))) "." }
            } @else { (graph::draw(&all)) }
        }
    }
}

fn versions(changes: &Value) -> Markup {
    html! {
        section.card {
            h2 { "History" }
            (shell::notices(changes))
            ol.versions {
                @for change in changes.items("changes") { li { (history::version(change)) } }
            }
        }
    }
}

fn neighbours(id: &str, similar: &Value) -> Markup {
    let others = || {
        similar
            .items("hits")
            .iter()
            .filter(|hit| hit.pointer("/record/id").and_then(Value::as_str) != Some(id))
    };
    html! {
        section.card {
            h2 { "Similar records" }
            @if others().next().is_none() { p.quiet { "No other record is like it." } }
            ul.plain {
                @for hit in others().take(SIMILAR as usize) {
                    @let record = hit.get("record").unwrap_or(&Value::Null);
                    @let score = hit.number("score");
                    li {
                        a href=(record_path(record.text("id"))) { (title(record)) }
                        @if score >= NEAR_DUPLICATE { " " (shell::label("near-duplicate")) }
                    }
                }
            }
        }
    }
}

pub(crate) async fn confirm_delete(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let record = read(visit, visit.in_path("id")).await?;
    let id = record.text("id");
    let effect = visit
        .call("POST /v1/forget/preview", json!({ "ids": [id] }))
        .await?;
    let derived = effect.texts("cascaded");
    // A key of one user is not shown them, as they may be records of others.
    let is_known = effect.get("cascaded").is_some();
    let shown: Vec<&str> = derived.iter().copied().take(LISTED).collect();
    let found = match shown.is_empty() {
        true => Value::Null,
        false => {
            visit
                .aside("GET /v1/records/{id}", json!({ "ids": shown }))
                .await
        }
    };
    let content = html! {
        h1 { "Delete this record?" }
        section.card {
            (table(std::slice::from_ref(&record)))
            @if !is_known {
                p { "Records that were derived from it go with it, also those of other users." }
            } @else if derived.is_empty() {
                p { "No other record goes with it." }
            } @else {
                h2 { (derived.len()) " derived " (if derived.len() == 1 { "record goes" } else { "records go" }) " with it" }
                (table(found.items("records")))
                @if derived.len() > LISTED { p.quiet { "and " (derived.len() - LISTED) " more" } }
            }
            p.quiet { "The deletion is one commit. Undo brings everything back." }
            div.actions {
                form method="post" action={ (record_path(id)) "/delete" } {
                    (token(visit.visitor))
                    input type="hidden" name="version" value=(record.whole("version"));
                    button.danger type="submit" { "Delete" }
                }
                a.button href=(record_path(id)) { "Cancel" }
            }
        }
    };
    Ok(shell::page(visit.visitor, "/records", "Delete a record", &content).into())
}

pub(crate) async fn delete(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let version = visit
        .sent("version")
        .and_then(|version| version.parse::<u64>().ok());
    let fields = json!({ "id": visit.in_path("id"), "if_version": version });
    let done = visit.call("DELETE /v1/records/{id}", fields).await?;
    Ok(match done.get("commit").and_then(Value::as_u64) {
        Some(commit) => Answer::See(format!("/history/{commit}?done=deleted")),
        None => Answer::See("/records".to_owned()),
    })
}

/// A button that undoes a commit.
pub(crate) fn undo_button(visit: &Visit<'_>, commit: u64) -> Markup {
    button(
        visit.visitor,
        &format!("/history/{commit}/undo"),
        "Undo",
        "",
    )
}
