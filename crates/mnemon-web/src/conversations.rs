//! Conversations: everything that was said, beside the window that the model sees.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::shell::{path_part, field, label, link, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, chart, shell};

const PAGE: u64 = 50;
/// Messages on a page of a conversation.
const MESSAGES: u64 = 100;
/// Characters of a message in the list; the rest opens in place.
const MESSAGE: usize = 600;

pub(crate) async fn list(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let skip = visit
        .asked("skip")
        .and_then(|skip| skip.parse::<u64>().ok());
    let skip = skip.unwrap_or(0);
    let page = visit
        .call(
            "GET /v1/conversations",
            json!({ "limit": PAGE, "skip": skip }),
        )
        .await?;
    let all = page.items("conversations");
    let next =
        shell::next(&page).map(|_| link("/conversations", &[("skip", &(skip + PAGE).to_string())]));
    let first = (skip > 0).then_some("/conversations");
    let content = html! {
        h1 { "Conversations" }
        (shell::notices(&page))
        @if all.is_empty() {
            (shell::empty("No conversation is stored yet.", "mnemon chat append planning \"Let us meet on Monday\""))
        } @else {
            div.scroll tabindex="0" role="group" aria-label="Table" { table {
                thead { tr { th { "Conversation" } th { "User" } th.count { "Messages" } th { "Last used (UTC)" } } }
                tbody {
                    @for one in all {
                        tr {
                            td.content { a data-row href=(path(one.text("session"), one.text("user"))) { (text::name(one.text("session"))) } }
                            td { (text::name(one.text("user"))) }
                            td.count { (text::grouped(one.whole("messages"))) }
                            td.time { (text::time(one.text("last"))) }
                        }
                    }
                }
            } }
        }
        (shell::paging(first, next.as_deref()))
    };
    Ok(shell::page(visit.visitor, "/conversations", "Conversations", &content).into())
}

fn path(session: &str, user: &str) -> String {
    link(
        &format!("/conversations/{}", path_part(session)),
        &[("user", user)],
    )
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (session, user) = (visit.in_path("session"), visit.asked("user"));
    let of = json!({ "session": session, "user": user });
    let said = visit.call(
        "GET /v1/conversations/{session}/messages",
        json!({ "session": session, "user": user, "count": MESSAGES, "before": visit.asked("before") }),
    );
    let window = visit.aside("GET /v1/conversations/{session}/window", of.clone());
    let events = visit.aside("GET /v1/conversations/{session}/compressions", of);
    let (said, window, events) = join!(said, window, events);
    let said = said?;
    let user = user.unwrap_or_default();
    let earlier = shell::next(&said).map(|before| {
        let path = format!("/conversations/{}", path_part(session));
        link(&path, &[("user", user), ("before", &before)])
    });
    let seen = window.items("messages");
    let tokens: u64 = seen.iter().map(|one| one.whole("tokens")).sum();
    let content = html! {
        h1 { "Conversation " (text::name(session)) }
        @if let Some(done) = visit.asked("done") { div.done role="status" { p { (done_words(done)) } } }
        @if visit.visitor.may_write { (actions(visit, session, user)) }
        (tiers(seen))
        div.beside.even {
            section.card aria-label="Said" {
                h2 { "Said" }
                (shell::notices(&said))
                @if let Some(earlier) = earlier { p { a href=(earlier) { "Earlier messages" } } }
                ol.messages { @for one in said.items("messages") { li { (message(one)) } } }
            }
            section.card aria-label="The window" {
                h2 { "What the model sees " small { (text::grouped(tokens)) " tokens" } }
                (shell::notices(&window))
                ol.messages { @for one in seen { li { (seen_message(one)) } } }
            }
        }
        (compressions(&events))
    };
    Ok(shell::page(visit.visitor, "/conversations", "Conversation", &content).into())
}

fn done_words(done: &str) -> &'static str {
    match done {
        "fork" => "Copied. This is the copy.",
        _ => "A snapshot of the window is stored.",
    }
}

fn actions(visit: &Visit<'_>, session: &str, user: &str) -> Markup {
    let path = format!("/conversations/{}", path_part(session));
    html! {
        div.actions {
            form.inline method="post" action={ (path) "/fork" } {
                (token(visit.visitor)) input type="hidden" name="user" value=(user);
                (field("to", "Copy to", "", "name of the copy"))
                button type="submit" { "Fork" }
            }
            form.inline method="post" action={ (path) "/snapshots" } {
                (token(visit.visitor)) input type="hidden" name="user" value=(user);
                (field("label", "Snapshot", "", "label"))
                button type="submit" { "Take a snapshot" }
            }
        }
    }
}

/// How many tokens of the window each form of a message takes.
fn tiers(window: &[Value]) -> Markup {
    let sum = |word: &str, name: &str| -> u64 {
        let of = window.iter().filter(|one| one.text("as") == word);
        of.map(|one| one.whole(name)).sum()
    };
    let total = window
        .iter()
        .map(|one| one.whole("tokens"))
        .sum::<u64>()
        .max(1);
    let rows = [
        ("hot", "as they were said"),
        ("summarised", "as a summary"),
        ("offloaded", "shortened, the rest is stored"),
    ];
    html! {
        table.counts.tiers {
            thead { tr { th { "Tier" } th { "Share of the window" } th.count { "Messages" } th.count { "Tokens" } } }
            tbody {
                @for (word, about) in rows {
                    @let tokens = sum(word, "tokens");
                    tr {
                        th scope="row" { (word) " " span.quiet { (about) } }
                        td { (chart::bar(tokens as f64 / total as f64)) }
                        td.count { (text::grouped(sum(word, "covers"))) }
                        td.count { (text::grouped(tokens)) }
                    }
                }
            }
        }
    }
}

fn message(message: &Value) -> Markup {
    let speaker = match message.text("name") {
        "" => message.text("role").to_lowercase(),
        name => name.to_owned(),
    };
    html! {
        p.facts { strong { (text::name(&speaker)) } (text::time(message.text("timestamp"))) }
        @for block in message.items("content") { (part(block)) }
    }
}

/// A block of a message: text, or a call of a tool and its result.
fn part(block: &Value) -> Markup {
    let words = match block.text("type") {
        "text" => block.text("text").to_owned(),
        "thinking" => block.text("thinking").to_owned(),
        _ => serde_json::to_string_pretty(block).unwrap_or_default(),
    };
    let (start, has_more) = text::cut(&words, MESSAGE);
    html! {
        @if !matches!(block.text("type"), "text" | "") { (label(block.text("type"))) }
        @if has_more {
            details.long {
                summary { pre.text dir="auto" { (text::clean(start)) "…" } }
                (text::block(&words))
            }
        } @else { pre.text dir="auto" { (text::clean(start)) } }
    }
}

fn seen_message(one: &Value) -> Markup {
    let tier = one.text("as");
    html! {
        p.facts {
            span class={ "tier " (tier) } { (tier) }
            @if one.whole("covers") > 1 { span { "stands for " (one.whole("covers")) " messages" } }
            span.count { (text::grouped(one.whole("tokens"))) " tokens" }
        }
        (message(one.get("message").unwrap_or(&Value::Null)))
    }
}

fn compressions(events: &Value) -> Markup {
    let all = events.items("events");
    html! {
        @if !all.is_empty() {
            section.card {
                h2 { "Compressions" }
                div.scroll tabindex="0" role="group" aria-label="Table" { table {
                    thead { tr { th { "Strategy" } th.count { "Messages" } th.count { "Tokens before" } th.count { "after" } } }
                    tbody {
                        @for event in all {
                            @let numbers = event.get("metadata").unwrap_or(&Value::Null);
                            tr {
                                td { (text::name(event.text("eventType"))) }
                                td.count { (event.whole("compressedMessageCount")) }
                                td.count { (text::grouped(any(numbers, &["tokenBefore", "inputToken", "tokens_before"]))) }
                                td.count { (text::grouped(any(numbers, &["tokenAfter", "outputToken", "tokens_after"]))) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn any(numbers: &Value, names: &[&str]) -> u64 {
    let mut all = names.iter().filter_map(|name| numbers.get(name)?.as_u64());
    all.next().unwrap_or_default()
}

pub(crate) async fn fork(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (to, user) = (visit.sent("to"), visit.sent("user"));
    let fields = json!({ "session": visit.in_path("session"), "user": user, "to": to });
    visit
        .call("POST /v1/conversations/{session}/fork", fields)
        .await?;
    let path = format!("/conversations/{}", path_part(to.unwrap_or_default()));
    Ok(Answer::See(link(
        &path,
        &[("user", user.unwrap_or_default()), ("done", "fork")],
    )))
}

pub(crate) async fn snapshot(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (session, user) = (visit.in_path("session"), visit.sent("user"));
    let fields = json!({ "session": session, "user": user, "label": visit.sent("label") });
    visit
        .call("POST /v1/conversations/{session}/snapshots", fields)
        .await?;
    let path = format!("/conversations/{}", path_part(session));
    Ok(Answer::See(link(
        &path,
        &[("user", user.unwrap_or_default()), ("done", "snapshot")],
    )))
}
