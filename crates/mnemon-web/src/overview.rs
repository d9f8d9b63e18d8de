//! The overview: how much there is, what changed lately, and what needs attention.

use std::collections::BTreeMap;

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::text::{self, Fields};
use crate::{Answer, Demo, Failure, Visit, chart, history, shell};

/// Changes in the list.
const LISTED: u64 = 8;
/// The share of a quota from which on a warning is shown.
const NEARLY_FULL: f64 = 0.9;

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    if visit.asked("part") == Some("recent") {
        return newer(visit).await;
    }
    let recent = visit.call("GET /v1/history", json!({ "limit": LISTED }));
    let is_of_tenant = visit.visitor.user.is_none();
    let of_tenant = async {
        match is_of_tenant {
            true => Some(join!(
                visit.aside("GET /v1/stats", json!({})),
                visit.aside("GET /v1/learn", json!({})),
                growth(visit),
            )),
            false => None,
        }
    };
    let server = async {
        match visit.visitor.is_admin {
            true => visit
                .api
                .server()
                .await
                .unwrap_or_else(|failure| json!({ "failure": failure.detail })),
            false => Value::Null,
        }
    };
    let webhooks = async {
        match visit.visitor.is_admin && is_of_tenant {
            true => visit.aside("GET /v1/webhooks", json!({})).await,
            false => Value::Null,
        }
    };
    let notes = async {
        match is_of_tenant {
            true => Value::Null,
            false => visit.aside("GET /v1/notes/stats", json!({})).await,
        }
    };
    let (recent, of_tenant, server, webhooks, notes) =
        join!(recent, of_tenant, server, webhooks, notes);
    let recent = recent?;
    let is_empty = recent.items("changes").is_empty();
    let content = html! {
        h1 { "Overview" }
        @if is_empty { (welcome(visit)) }
        @else {
            @match &of_tenant {
                Some((stats, learning, growth)) => {
                    (shell::notices(&server))
                    (warnings(stats, &server, &webhooks))
                    (numbers(stats, learning))
                    div.columns { (growth_section(growth)) (tiers(stats)) }
                    (groups(stats))
                }
                None => (own_numbers(&notes)),
            }
            section.card {
                div.head { h2 { "Recent changes" } a href="/history" { "History" } }
                div data-live="/?part=recent" aria-live="off" { (changes(&recent)) }
            }
        }
        @if let Some((_, learning, _)) = of_tenant.as_ref().filter(|_| visit.visitor.is_admin && !is_empty) {
            (upkeep(&server, learning))
        }
        @if !server.items("routes").is_empty() { (latencies(&server)) }
        @if visit.visitor.demo == Demo::Offered && !is_empty { (demo_offer(visit)) }
    };
    Ok(shell::page(visit.visitor, "/", "Overview", &content).into())
}

/// The newest changes, if the browser does not show them already. A browser asks every few seconds, so
/// one change is read where there is none to show.
async fn newer(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let shown = visit.asked("after");
    if shown.is_some() {
        let newest = visit.call("GET /v1/history", json!({ "limit": 1 })).await?;
        if shown == Some(newest_seq(&newest).to_string().as_str()) {
            return Ok(Answer::Unchanged);
        }
    }
    let recent = visit.call("GET /v1/history", json!({ "limit": LISTED }));
    Ok(changes(&recent.await?).into())
}

fn newest_seq(recent: &Value) -> u64 {
    let newest = recent.items("changes").first();
    newest.map_or(0, |change| change.whole("seq"))
}

async fn growth(visit: &Visit<'_>) -> Value {
    let growth = visit.api.growth().await;
    growth.unwrap_or_else(|failure| json!({ "failure": failure.detail }))
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
            p { "Or look around first: the demonstration is a small memory in a separate tenant." }
            (shell::button(visit.visitor, "/demo", "Load the demonstration", "primary"))
        }
    }
}

/// What needs attention, each with the way to mend it.
fn warnings(stats: &Value, server: &Value, webhooks: &Value) -> Markup {
    let expired = stats.whole("expired");
    let failed = webhooks.items("webhooks").iter();
    let failed: usize = failed.map(|one| one.items("dead_letters").len()).sum();
    html! {
        (shell::notices(stats))
        @if expired > 0 {
            div.warning {
                p { (text::grouped(expired)) " expired records wait to be erased. Upkeep erases them:" }
                (shell::command("mnemon upkeep"))
            }
        }
        @if let Some(share) = quota_share(stats, server) {
            div.warning {
                p { "This tenant uses " (format!("{:.0} %", share * 100.0)) " of its quota of records; writes are refused when it is full. Delete records, or raise " code { "records" } " under [server.quota] in mnemon.toml." }
            }
        }
        @for failure in server.items("failures") {
            div.warning {
                p { "Failures of " (text::name(failure.text("of"))) " since the start of the server: " (text::grouped(failure.whole("count"))) ". The log of the server has the reasons; this checks the configuration:" }
                (shell::command("mnemon doctor"))
            }
        }
        @if failed > 0 {
            div.warning { p { "Deliveries of webhooks that were given up: " (text::grouped(failed as u64)) ". " a href="/admin" { "Send them again" } " when the receiver works." } }
        }
        @if server.get("has_audit_log").and_then(Value::as_bool) == Some(false) {
            div.warning { p { "No audit log is written. Set " code { "server.audit" } " to a path in mnemon.toml." } }
        }
    }
}

/// The used share of the quota of records, if it is nearly used up.
fn quota_share(stats: &Value, server: &Value) -> Option<f64> {
    let most = server.pointer("/quota/records").and_then(Value::as_u64)?;
    let share = stats.whole("records") as f64 / most.max(1) as f64;
    (share >= NEARLY_FULL).then_some(share)
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

/// The number of changes over time.
fn growth_section(growth: &Value) -> Markup {
    let points = growth.items("points");
    let most = points
        .iter()
        .map(|point| point.whole("count"))
        .max()
        .unwrap_or(0)
        .max(1);
    let places = points.iter().filter_map(|point| {
        let share = point.whole("count") as f64 / most as f64;
        Some((text::millis(point.text("at"))?, share))
    });
    let line = chart::Line {
        name: "changes",
        class: "fill-below",
        points: places.collect(),
    };
    let at = |point: Option<&Value>| point.map_or("", |point| point.text("at")).to_owned();
    let ends = text::axis_ends(&at(points.first()), &at(points.last()));
    html! {
        section.card.wide {
            h2 { "Growth" }
            (shell::notices(growth))
            @if !points.is_empty() {
                @let about = format!("{} changes so far", text::grouped(most));
                (chart::lines(&[line], &about, (&ends.0, &ends.1)))
            }
        }
    }
}

/// Records by how near they are to a prompt.
fn tiers(stats: &Value) -> Markup {
    let (hot, warm) = (
        count(stats, "kind", "session"),
        count(stats, "kind", "summary"),
    );
    let cold = stats.whole("records").saturating_sub(hot + warm);
    let rows = [
        ("hot", "windows and saved states", hot),
        ("warm", "summaries", warm),
        ("cold", "found by search", cold),
        ("frozen", "old versions, for undo", stats.whole("history")),
    ];
    let most = rows
        .iter()
        .map(|(.., count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    html! {
        section.card {
            h2 { "By tier" }
            table.counts {
                thead.hidden { tr { th { "Tier" } th { "Share" } th { "Records" } } }
                tbody {
                    @for (tier, about, count) in rows {
                        tr {
                            th scope="row" { (tier) " " span.quiet { (about) } }
                            td { (chart::bar(count as f64 / most as f64)) }
                            td.count { (text::grouped(count)) }
                        }
                    }
                }
            }
        }
    }
}

/// The newest changes, with the number by which a browser asks for newer ones.
fn changes(recent: &Value) -> Markup {
    let all = recent.items("changes");
    html! {
        div data-seq=(newest_seq(recent)) {
            @if all.is_empty() { p.quiet { "Nothing has changed yet." } }
            @else { (history::table(all)) }
        }
    }
}

/// Work that upkeep did since the start of the server, by the name of its number.
const UPKEEP: &[(&str, &str)] = &[
    ("expired", "expired records erased"),
    ("history", "old versions dropped"),
    ("embedded", "records embedded"),
    ("steps", "steps read to learn from"),
    ("learnt", "skills and rules that changed"),
    ("summaries", "summaries written by the language model"),
];

/// The upkeep and the learning that the server does in the background.
fn upkeep(server: &Value, learning: &Value) -> Markup {
    let done = server.get("upkeep").filter(|done| !done.is_null());
    let numbers = UPKEEP.iter().filter_map(|(name, words)| {
        let count = done.map_or(0, |done| done.whole(name));
        (count > 0).then_some((count, words))
    });
    let numbers: Vec<(u64, &&str)> = numbers.collect();
    html! {
        section.card {
            div.head { h2 { "Upkeep and learning" } a href="/skills" { "Skills" } }
            (shell::notices(learning))
            @if let Some(done) = done {
                p { "Last upkeep " (text::time(done.text("at"))) " UTC, " (text::grouped(done.whole("slices"))) " since the start of the server."
                    @if done.flag("more") { " More work is waiting." } }
                @if numbers.is_empty() { p.quiet { "It had nothing to do." } }
                @else { table.counts {
                    thead.hidden { tr { th { "Work" } th { "Number" } } }
                    tbody { @for (count, words) in numbers { tr { th scope="row" { (words) } td.count { (text::grouped(count)) } } } }
                } }
            } @else {
                p { "This server has done no upkeep for this tenant yet. By hand:" }
                (shell::command("mnemon upkeep"))
            }
            p.quiet { (text::grouped(learning.whole("steps"))) " steps of agents were read; "
                (text::grouped(learning.items("waiting").len() as u64)) " runs have not ended, "
                (text::grouped(learning.items("not_kept").len() as u64)) " procedures were found and not kept." }
        }
    }
}

fn latencies(server: &Value) -> Markup {
    html! {
        section.card {
            div.head { h2 { "Server" } a href="/docs" { "API reference" } }
            p.quiet { "Running for " (duration(server.whole("uptime_seconds"))) ". Time of an answer by route, in milliseconds:" }
            div.scroll tabindex="0" role="group" aria-label="Table" { table {
                thead { tr { th { "Route" } th.count { "Requests" } th.count { "Mean" } th.count { "p50" } th.count { "p99" } } }
                tbody {
                    @for route in server.items("routes").iter().take(8) {
                        tr {
                            td { code { (route.text("route")) } }
                            td.count { (text::grouped(route.whole("requests"))) }
                            @for name in ["mean_ms", "p50_ms", "p99_ms"] {
                                td.count { (format!("{:.1}", route.number(name))) }
                            }
                        }
                    }
                }
            } }
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
