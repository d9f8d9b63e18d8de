//! The history: who changed which records when, and undo.

use maud::{Markup, html};
use serde_json::{Value, json};
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::shell::{link, record_path};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, record, shell};

const PAGE: u64 = 50;
/// Characters of a version that are compared; more would take long and help nobody.
const COMPARED: usize = 4000;
/// How long two versions are compared. After that the rest counts as replaced: a page has up to a
/// hundred of them, and texts can be made for which the best answer takes seconds.
const COMPARING: Duration = Duration::from_millis(5);

pub(crate) async fn list(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let before = visit
        .asked("before")
        .and_then(|before| before.parse::<u64>().ok());
    let page = visit.call(
        "GET /v1/history",
        json!({ "limit": PAGE, "before": before }),
    );
    let page = page.await?;
    let next = shell::next(&page).map(|next| link("/history", &[("before", &next)]));
    let first = before.map(|_| "/history");
    let content = html! {
        h1 { "History" }
        p.quiet { "Every change, newest first. A commit is undone as a whole." }
        (shell::notices(&page))
        @if page.items("changes").is_empty() {
            (shell::empty("Nothing has changed yet.", "mnemon add \"Ann prefers green tea\""))
        } @else { (table(page.items("changes"))) }
        (shell::paging(first, next.as_deref()))
    };
    Ok(shell::page(visit.visitor, "/history", "History", &content).into())
}

/// A line for each change; the commit stands at its first one.
pub(crate) fn table(changes: &[Value]) -> Markup {
    let mut last = None;
    let rows: Vec<(&Value, bool)> = changes
        .iter()
        .map(|change| {
            let commit = change.get("commit");
            let is_first = commit != last;
            last = commit;
            (change, is_first)
        })
        .collect();
    html! {
        div.scroll tabindex="0" role="group" aria-label="Table" {
            table.changes {
                thead { tr { th { "Commit" } th { "Time (UTC)" } th { "Actor" } th { "Change" } th { "Record" } } }
                tbody {
                    @for (change, is_first) in rows {
                        tr class=[is_first.then_some("first")] {
                            td.count { @if is_first {
                                a data-row href=(format!("/history/{}", change.whole("commit"))) { (change.whole("commit")) }
                            } }
                            td.time { @if is_first { (text::time(change.text("at"))) } }
                            td { @if is_first { (text::name(change.text("actor"))) } }
                            td { (action(change)) }
                            td.content { (subject(change)) }
                        }
                    }
                }
            }
        }
    }
}

/// The change in a word or two.
fn action(change: &Value) -> String {
    let (before, after) = (is_there(change, "before"), is_there(change, "after"));
    let verb = match (before, after) {
        (false, true) => "added",
        (true, true) => "changed",
        _ => "deleted",
    };
    match change.text("cause").split_once(':') {
        Some(("cascaded", _)) => "deleted with its source".to_owned(),
        Some(("undo", commit)) => format!("{verb} by undo of {commit}"),
        _ => match change.text("cause") {
            "evicted" => "evicted".to_owned(),
            "purged" => "purged".to_owned(),
            _ => verb.to_owned(),
        },
    }
}

fn is_there(change: &Value, name: &str) -> bool {
    change.get(name).is_some_and(|version| !version.is_null())
}

/// The record, as it is or as it was.
fn subject(change: &Value) -> Markup {
    let mut versions = ["after", "before"]
        .iter()
        .filter_map(|name| change.get(name));
    let version = versions.find(|version| !version.is_null());
    let content = version.map_or("", |version| version.text("content"));
    html! {
        @if is_there(change, "after") {
            a href=(record_path(change.text("id"))) { (text::line(if content.is_empty() { change.text("id") } else { content })) }
        } @else { span.gone { (text::line(if content.is_empty() { change.text("id") } else { content })) } }
    }
}

/// A change of one record with the differences of its text.
pub(crate) fn version(change: &Value) -> Markup {
    let content = |name: &str| {
        let version = change.get(name).unwrap_or(&Value::Null);
        text::cut(version.text("content"), COMPARED).0.to_owned()
    };
    let (before, after) = (content("before"), content("after"));
    html! {
        p.facts {
            a href=(format!("/history/{}", change.whole("commit"))) { "commit " (change.whole("commit")) }
            span { (action(change)) }
            span { "by " (text::name(change.text("actor"))) }
            (text::time(change.text("at")))
        }
        @if before != after { (difference(&before, &after)) }
        @else { (changed_fields(change)) }
    }
}

/// The text with removed and added words.
fn difference(before: &str, after: &str) -> Markup {
    let (before, after) = (text::clean(before), text::clean(after));
    let mut diff = TextDiff::configure();
    let diff = diff.timeout(COMPARING).diff_words(&before, &after);
    html! {
        p.diff dir="auto" {
            @for change in diff.iter_all_changes() {
                @match change.tag() {
                    ChangeTag::Delete => del { (change.value()) },
                    ChangeTag::Insert => ins { (change.value()) },
                    ChangeTag::Equal => (change.value()),
                }
            }
        }
    }
}

/// Names of the fields that a change of something else than the text concerns.
fn changed_fields(change: &Value) -> Markup {
    let versions = change.get("before").zip(change.get("after"));
    let versions = versions.and_then(|(before, after)| before.as_object().zip(after.as_object()));
    let names = versions.map(|(before, after)| {
        let all = before
            .keys()
            .chain(after.keys().filter(|name| !before.contains_key(*name)));
        let changed = all.filter(|name| before.get(*name) != after.get(*name));
        let changed =
            changed.filter(|name| !["seq", "version", "updated"].contains(&name.as_str()));
        changed.cloned().collect::<Vec<_>>().join(", ")
    });
    html! {
        @if let Some(names) = names.filter(|names| !names.is_empty()) {
            p.quiet { "Changed: " (names) "." }
        }
    }
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let commit = number(visit)?;
    let page = visit
        .call("GET /v1/history", json!({ "commit": commit, "limit": 100 }))
        .await?;
    let changes = page.items("changes");
    let Some(first) = changes.first() else {
        return Err(Failure::not_found(
            "this commit does not exist, or you may not see its records",
        ));
    };
    let done = match visit.asked("done") {
        Some("deleted") => Some("Deleted."),
        Some("undone") => Some("Undone. This commit restored the previous state."),
        Some("changed") => Some("Changed."),
        _ => None,
    };
    let may_undo = visit.visitor.may_undo(changes);
    let content = html! {
        @if let Some(done) = done {
            div.done role="status" { p { (done) } @if may_undo { (record::undo_button(visit, commit)) } }
        }
        div.head {
            h1 { "Commit " (commit) }
            @if done.is_none() && may_undo { (record::undo_button(visit, commit)) }
        }
        p.facts { span { "by " (text::name(first.text("actor"))) } (text::time(first.text("at"))) }
        @if may_undo {
            p.quiet { "Undo removes what this commit added, and restores what it changed or deleted. It is a commit itself, and can be undone." }
        }
        (shell::notices(&page))
        section.card {
            h2 { (changes.len()) @if shell::next(&page).is_some() { " or more" }
                @if changes.len() == 1 { " record" } @else { " records" } }
            ol.versions {
                @for change in changes { li { p.content { (subject(change)) } (version(change)) } }
            }
        }
    };
    Ok(shell::page(visit.visitor, "/history", "Commit", &content).into())
}

fn number(visit: &Visit<'_>) -> Result<u64, Failure> {
    let commit = visit.in_path("commit").parse::<u64>();
    commit.map_err(|_| Failure::not_found("the number of a commit is a whole number"))
}

pub(crate) async fn undo(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let commit = number(visit)?;
    let done = visit
        .call("POST /v1/undo", json!({ "commit": commit }))
        .await?;
    Ok(match done.get("commit").and_then(Value::as_u64) {
        Some(commit) => Answer::See(format!("/history/{commit}?done=undone")),
        None => Answer::See(format!("/history/{commit}")),
    })
}
