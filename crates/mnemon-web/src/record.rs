//! Records: the list, one record with everything known about it, and its deletion.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::shell::{KINDS, NAMESPACES, button, choice, field, link, record_path, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, history, provenance, shell};

const PAGE: u64 = 50;
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
    record.ok_or_else(|| Failure::not_found("this record does not exist, or you may not see it"))
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
        provenance::sources(visit, &record),
        provenance::derived(visit, &record)
    );
    let content = html! {
        div.head {
            h1 { "Record " (text::id(&id)) }
            @if visit.visitor.may_change(&record) {
                a.button.danger href={ (record_path(&id)) "/delete" } { "Delete…" }
            }
        }
        div.beside {
            div {
                section.card { (text::block(record.text("content"))) (structured(&record)) }
                (provenance::section(&record, &sources, &derived))
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
                dd { @for tag in record.texts("tags") { (shell::tag(tag, "/records")) " " } }
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
    let shown: Vec<&str> = derived.iter().copied().take(LISTED).collect();
    let found = match shown.is_empty() {
        true => Value::Null,
        false => {
            visit
                .aside("GET /v1/records/{id}", json!({ "ids": shown }))
                .await
        }
    };
    if !visit.visitor.may_change(&record) {
        let what = "this key may not delete this record";
        return Err(Failure::new(403, "denied", what));
    }
    let content = html! {
        h1 { "Delete this record?" }
        section.card {
            (table(std::slice::from_ref(&record)))
            // A key of one user gets a notice if records of others go with it.
            (shell::notices(&effect))
            @if derived.is_empty() {
                @if effect.texts("notices").is_empty() { p { "No other record goes with it." } }
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
