//! Conversations: everything that was said, beside the window that the model sees.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::listing::{self, Column, Listing, Order, ROWS, whole};
use crate::shell::{field, label, link, path_part, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, chart, shell};

/// Messages on a page of a conversation.
const MESSAGES: u64 = 20;
/// Messages of the window on a page.
const WINDOW: u64 = 20;
/// Characters of a message, over all its blocks; a link opens the whole message.
const MESSAGE: usize = 600;
/// Blocks of a message that are shown.
const BLOCKS: usize = 8;
/// Compressions that are listed.
const EVENTS: usize = 50;
/// Replaced messages that are opened in place.
const REPLACED: usize = 40;

pub(crate) async fn list(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (sort, is_reversed) = listing::sort(visit, COLUMNS).unzip();
    let page = visit
        .call(
            "GET /v1/conversations",
            json!({
                "limit": ROWS, "skip": listing::skip(visit), "sort": sort, "reverse": is_reversed,
            }),
        )
        .await?;
    let all = page.items("conversations");
    let has_more = shell::next(&page).is_some();
    let listing = Listing::of_page(visit, "/conversations", COLUMNS, all, has_more);
    let content = html! {
        h1 { "Conversations" }
        (shell::notices(&page))
        @if all.is_empty() {
            (shell::empty("No conversation is stored yet.", "mnemon chat append planning \"Let us meet on Monday\""))
        } @else {
            div.scroll tabindex="0" role="group" aria-label="Table" { table {
                thead { (listing.head()) }
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
        (listing.paging())
    };
    Ok(shell::page(visit.visitor, "/conversations", "Conversations", &content).into())
}

/// Named as the route sorts them.
const COLUMNS: &[Column] = &[
    Column {
        name: "session",
        title: "Conversation",
        order: Order::Text("/session"),
    },
    Column {
        name: "user",
        title: "User",
        order: Order::Text("/user"),
    },
    Column {
        name: "messages",
        title: "Messages",
        order: Order::Number(|one| whole(one, "messages")),
    },
    Column {
        name: "last",
        title: "Last used (UTC)",
        order: Order::Newest,
    },
];

fn path(session: &str, user: &str) -> String {
    link(
        &format!("/conversations/{}", path_part(session)),
        &[("user", user)],
    )
}

/// The conversation that is shown, with its address.
struct Shown<'a> {
    session: &'a str,
    user: &'a str,
    /// The id of the message that is shown as a whole.
    whole: &'a str,
    before: &'a str,
    /// How many messages of the window come after those that are shown.
    skipped: &'a str,
}

impl Shown<'_> {
    /// The same page with other fields in its query.
    fn link(&self, more: &[(&str, &str)]) -> String {
        let own = [
            ("user", self.user),
            ("before", self.before),
            ("skip", self.skipped),
        ];
        let is_kept = |(name, _): &(&str, &str)| more.iter().all(|(other, _)| other != name);
        let own: Vec<_> = own.into_iter().filter(is_kept).collect();
        let path = format!("/conversations/{}", path_part(self.session));
        link(&path, &[own.as_slice(), more].concat())
    }
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (session, user) = (visit.in_path("session"), visit.asked("user"));
    let of = json!({ "session": session, "user": user });
    let said = visit.call(
        "GET /v1/conversations/{session}/messages",
        json!({ "session": session, "user": user, "count": MESSAGES, "before": visit.asked("before") }),
    );
    let skip = listing::skip(visit);
    let window = visit.aside(
        "GET /v1/conversations/{session}/window",
        json!({ "session": session, "user": user, "count": WINDOW, "skip": skip }),
    );
    let events = visit.aside("GET /v1/conversations/{session}/compressions", of);
    let (said, window, events, replaced) = join!(said, window, events, replaced(visit));
    let said = said?;
    let shown = Shown {
        session,
        user: user.unwrap_or_default(),
        whole: visit.asked("message").unwrap_or_default(),
        before: visit.asked("before").unwrap_or_default(),
        skipped: visit.asked("skip").unwrap_or_default(),
    };
    let earlier = shell::next(&said).map(|before| shown.link(&[("before", &before)]));
    let content = html! {
        h1 { "Conversation " (text::name(session)) }
        @if let Some(done) = visit.asked("done") { div.done role="status" { p { (done_words(done)) } } }
        @if visit.visitor.may_write { (actions(visit, session, shown.user)) }
        (tiers(&window))
        div.beside.even {
            section.card aria-label="Said" {
                h2 { "Said" }
                (shell::notices(&said))
                @if let Some(earlier) = earlier { p { a rel="prev" href=(earlier) { "Earlier messages" } } }
                ol.messages { @for one in said.items("messages") { li { (message(one, &shown)) } } }
                @if !shown.before.is_empty() { p { a href=(shown.link(&[("before", "")])) { "Newest messages" } } }
            }
            section.card aria-label="The window" { (window_section(&window, &shown, &replaced)) }
        }
        (compressions(&events))
    };
    Ok(shell::page(visit.visitor, "/conversations", "Conversation", &content).into())
}

/// The messages that a message of the window stands for, if the visitor opens it.
async fn replaced(visit: &Visit<'_>) -> (String, Value) {
    let Some(uuid) = visit.asked("open") else {
        return (String::new(), Value::Null);
    };
    let fields = json!({
        "session": visit.in_path("session"), "user": visit.asked("user"),
        "working_context_offload_uuid": uuid,
    });
    let route = "GET /v1/conversations/{session}/replaced/{working_context_offload_uuid}";
    (uuid.to_owned(), visit.aside(route, fields).await)
}

fn window_section(window: &Value, shown: &Shown<'_>, replaced: &(String, Value)) -> Markup {
    let (earlier, later) = (window.whole("earlier"), window.whole("later"));
    let skipped = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    html! {
        h2 { "What the model sees " small { (text::grouped(window.whole("tokens"))) " tokens" } }
        (shell::notices(window))
        @if earlier > 0 {
            p { a href=(shown.link(&[("skip", &skipped(later + WINDOW))])) { "Earlier in the window" } " " small { (text::grouped(earlier)) " messages" } }
        }
        ol.messages { @for one in window.items("messages") { li { (seen_message(one, shown, replaced)) } } }
        @if later > 0 {
            p { a href=(shown.link(&[("skip", &skipped(later.saturating_sub(WINDOW)))])) { "Later in the window" } " " small { (text::grouped(later)) " messages" } }
        }
    }
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
fn tiers(window: &Value) -> Markup {
    let number = |tier: &str, name: &str| {
        let number = window.pointer(&format!("/tiers/{tier}/{name}"));
        number.and_then(Value::as_u64).unwrap_or(0)
    };
    let total = window.whole("tokens").max(1);
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
                    @let tokens = number(word, "tokens");
                    tr {
                        th scope="row" { (word) " " span.quiet { (about) } }
                        td { (chart::bar(tokens as f64 / total as f64)) }
                        td.count { (text::grouped(number(word, "covers"))) }
                        td.count { (text::grouped(tokens)) }
                    }
                }
            }
        }
    }
}

/// A message: its beginning, or the whole text if the visitor opened it.
fn message(message: &Value, shown: &Shown<'_>) -> Markup {
    let speaker = match message.text("name") {
        "" => message.text("role").to_lowercase(),
        name => name.to_owned(),
    };
    let id = message.text("id");
    let is_whole = !id.is_empty() && id == shown.whole;
    let blocks = message.items("content");
    let most = if is_whole { text::WHOLE } else { MESSAGE };
    let count = if is_whole { blocks.len() } else { BLOCKS };
    let mut room = most;
    let parts: Vec<(&Value, String, bool)> = blocks
        .iter()
        .take(count)
        .map(|block| {
            let words = words(block);
            let (start, has_more) = text::cut(&words, room);
            room -= start.chars().count();
            (block, start.to_owned(), has_more)
        })
        .collect();
    let is_cut = blocks.len() > count || parts.iter().any(|(.., has_more)| *has_more);
    html! {
        p.facts { strong { (text::name(&speaker)) } (text::time(message.text("timestamp"))) }
        @for (block, start, has_more) in &parts {
            @if !matches!(block.text("type"), "text" | "") { (label(block.text("type"))) }
            @if !start.is_empty() { pre.text dir="auto" { (text::clean(start)) @if *has_more { "…" } } }
        }
        @match (is_cut, is_whole) {
            (true, false) => p { a.quiet href=(shown.link(&[("message", id)])) { "Open the whole message" } },
            (true, true) => p.quiet { "The first " (text::grouped(text::WHOLE as u64)) " characters. " code { "mnemon chat tail" } " prints all of it." },
            _ => {},
        }
    }
}

/// The text of a block of a message: text, or a call of a tool and its result.
fn words(block: &Value) -> String {
    match block.text("type") {
        "text" => block.text("text").to_owned(),
        "thinking" => block.text("thinking").to_owned(),
        _ => serde_json::to_string_pretty(block).unwrap_or_default(),
    }
}

fn seen_message(one: &Value, shown: &Shown<'_>, replaced: &(String, Value)) -> Markup {
    let (tier, uuid) = (one.text("as"), one.text("uuid"));
    let is_open = !uuid.is_empty() && uuid == replaced.0;
    html! {
        p.facts {
            span class={ "tier " (tier) } { (tier) }
            @if one.whole("covers") > 1 { span { "stands for " (one.whole("covers")) " messages" } }
            span.count { (text::grouped(one.whole("tokens"))) " tokens" }
            @if is_open { a href=(shown.link(&[])) { "Close" } }
            @else if !uuid.is_empty() { a data-open href=(shown.link(&[("open", uuid)])) { "Open" } }
        }
        (message(one.get("message").unwrap_or(&Value::Null), shown))
        @if is_open { (originals(&replaced.1, shown)) }
    }
}

/// The messages that a message of the window stands for.
fn originals(replaced: &Value, shown: &Shown<'_>) -> Markup {
    let all = replaced.items("messages");
    html! {
        div.originals {
            (shell::notices(replaced))
            ol.messages { @for one in all.iter().take(REPLACED) { li { (message(one, shown)) } } }
            @if all.len() > REPLACED { p.notice { (text::grouped((all.len() - REPLACED) as u64)) " more are not shown." } }
        }
    }
}

fn compressions(events: &Value) -> Markup {
    let all = events.items("events");
    html! {
        @if !all.is_empty() {
            section.card {
                h2 { "Compressions" @if all.len() > EVENTS { " " small { "the newest " (EVENTS) " of " (text::grouped(all.len() as u64)) } } }
                div.scroll tabindex="0" role="group" aria-label="Table" { table {
                    thead { tr { th { "Strategy" } th.count { "Messages" } th.count { "Tokens before" } th.count { "after" } } }
                    tbody {
                        @for event in all.iter().rev().take(EVENTS) {
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
