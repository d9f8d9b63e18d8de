//! The overview: how much there is, what changed lately, and what needs attention.

use std::collections::BTreeMap;

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::text::{self, Fields};
use crate::{Answer, Demo, Failure, Visit, chart, history, shell};

/// Changes that the chart of activity counts.
const CHANGES: u64 = 200;
/// Changes in the list.
const LISTED: usize = 8;

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let recent = visit.call("GET /v1/history", json!({ "limit": CHANGES }));
    if visit.asked("part") == Some("recent") {
        return Ok(changes(&recent.await?).into());
    }
    let is_of_tenant = visit.visitor.user.is_none();
    let of_tenant = async {
        match is_of_tenant {
            true => Some(join!(
                visit.aside("GET /v1/stats", json!({})),
                visit.aside("GET /v1/learn", json!({})),
            )),
            false => None,
        }
    };
    let server = async {
        match visit.visitor.is_admin {
            true => visit.api.server().await.unwrap_or_default(),
            false => Value::Null,
        }
    };
    let notes = visit.aside("GET /v1/notes/stats", json!({}));
    let (recent, of_tenant, server, notes) = join!(recent, of_tenant, server, notes);
    let recent = recent?;
    let is_empty = recent.items("changes").is_empty();
    let content = html! {
        h1 { "Overview" }
        @if is_empty { (welcome(visit)) }
        @else {
            @match &of_tenant {
                Some((stats, learning)) => {
                    (warnings(stats, &server)) (numbers(stats, learning)) (groups(stats))
                }
                None => (own_numbers(&notes)),
            }
            section.card {
                div.head { h2 { "Recent changes" } a href="/history" { "History" } }
                div data-live="/?part=recent" aria-live="off" { (changes(&recent)) }
            }
        }
        @if !server.items("routes").is_empty() { (latencies(&server)) }
        @if visit.visitor.demo == Demo::Offered && !is_empty { (demo_offer(visit)) }
    };
    Ok(shell::page(visit.visitor, "/", "Overview", &content).into())
}

/// The first thing that a newcomer sees.
fn welcome(visit: &Visit<'_>) -> Markup {
    html! {
        section.card.welcome {
            h2 { "This memory is empty" }
            p { "Store a note, and it can be found by its words and its meaning:" }
            (shell::command("mnemon add \"Ann prefers green tea in the afternoon\""))
            p { "Give your agent access to it over MCP:" }
            (shell::command("mnemon mcp install"))
            @if visit.visitor.demo == Demo::Offered { (demo_offer(visit)) }
        }
    }
}

fn demo_offer(visit: &Visit<'_>) -> Markup {
    html! {
        div.offer {
            p { "Or look around first: the demonstration is a small memory in a tenant of its own." }
            (shell::button(visit.visitor, "/demo", "Load the demonstration", "primary"))
        }
    }
}

fn warnings(stats: &Value, server: &Value) -> Markup {
    let expired = stats.whole("expired");
    html! {
        (shell::notices(stats))
        @if expired > 0 {
            div.warning {
                p { (text::grouped(expired)) " expired records wait to be erased. Upkeep erases them:" }
                (shell::command("mnemon upkeep"))
            }
        }
        @for warning in server.items("warnings") {
            div.warning {
                p { (text::clean(warning.text("text"))) }
                (shell::command(warning.text("command")))
            }
        }
    }
}

fn numbers(stats: &Value, learning: &Value) -> Markup {
    let number = |count: u64, words: &str, path: &str| {
        html! { a.number href=(path) { strong { (text::grouped(count)) } span { (words) } } }
    };
    html! {
        section.numbers aria-label="Totals" {
            (number(stats.whole("records"), "records", "/records"))
            (number(count(stats, "kind", "message"), "messages", "/conversations"))
            (number(learning.whole("active"), "active skills and rules", "/skills?status=active"))
            (number(learning.whole("candidates"), "candidates", "/skills?status=candidate"))
            (number(stats.whole("history"), "old versions", "/history"))
        }
    }
}

fn own_numbers(notes: &Value) -> Markup {
    html! {
        section.numbers aria-label="Totals" {
            a.number href="/records" { strong { (text::grouped(notes.whole("total"))) } span { "notes that you may see" } }
        }
    }
}

/// Records of one kind, scope or namespace.
fn count(stats: &Value, name: &str, word: &str) -> u64 {
    let groups = stats.items("groups").iter();
    groups
        .filter(|group| group.text(name) == word)
        .map(|group| group.whole("count"))
        .sum()
}

/// Three tables of counts: by kind, by scope, by namespace.
fn groups(stats: &Value) -> Markup {
    let table = |title: &str, name: &str| {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for group in stats.items("groups") {
            *counts.entry(group.text(name)).or_default() += group.whole("count");
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most = counts.first().map_or(1, |(_, count)| *count).max(1);
        html! {
            section.card {
                h2 { (title) }
                table.counts {
                    thead.hidden { tr { th { (title) } th { "Share" } th { "Records" } } }
                    tbody {
                        @for (word, count) in counts {
                            tr {
                                th scope="row" { a href=(shell::link("/records", &[(name, word)])) { (word) } }
                                td { (chart::bar(count as f64 / most as f64)) }
                                td.count { (text::grouped(count)) }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        div.columns {
            (table("By kind", "kind"))
            (table("By scope", "scope"))
            (table("By namespace", "namespace"))
        }
    }
}

/// The activity as a chart, and the newest changes.
fn changes(recent: &Value) -> Markup {
    let all = recent.items("changes");
    html! {
        @if all.is_empty() {
            p.quiet { "Nothing has changed yet." }
        } @else {
            @let (counts, about) = activity(all);
            (chart::columns(&counts, &about))
            (history::table(all.get(..LISTED).unwrap_or(all)))
        }
    }
}

/// Counts of changes by day, or by hour or minute where they are of one day or one hour.
fn activity(changes: &[Value]) -> (Vec<(String, u64)>, String) {
    let words = [(10, "day"), (13, "hour"), (16, "minute")];
    let span = |length: usize| {
        let mut all = changes
            .iter()
            .map(|change| prefix(change.text("at"), length));
        let first = all.next();
        all.any(|one| Some(one) != first)
    };
    let found = words.into_iter().find(|(length, _)| span(*length));
    let (length, word) = found.unwrap_or((16, "minute"));
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for change in changes {
        *counts.entry(prefix(change.text("at"), length)).or_default() += 1;
    }
    let count = changes.len();
    (
        counts.into_iter().collect(),
        format!("the last {count} changes by {word}"),
    )
}

fn prefix(time: &str, length: usize) -> String {
    time.get(..length).unwrap_or(time).replace('T', " ")
}

fn latencies(server: &Value) -> Markup {
    html! {
        section.card {
            div.head { h2 { "Server" } a href="/docs" { "API reference" } }
            p.quiet { "Running for " (duration(server.whole("uptime_seconds"))) ". Mean time of an answer by route:" }
            table {
                thead { tr { th { "Route" } th.count { "Requests" } th.count { "Mean ms" } } }
                tbody {
                    @for route in server.items("routes").iter().take(8) {
                        tr {
                            td { code { (route.text("route")) } }
                            td.count { (text::grouped(route.whole("requests"))) }
                            td.count { (format!("{:.1}", route.number("mean_ms"))) }
                        }
                    }
                }
            }
        }
    }
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min"),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}
