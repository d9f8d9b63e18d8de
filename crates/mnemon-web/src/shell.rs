//! The frame of every page, and the parts that pages share.

use maud::{DOCTYPE, Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::text::{self, Fields};
use crate::{
    DEMO_TENANT, Demo, Failure, ICON_PATH, SCRIPT_PATH, SIGN_IN, SIGN_OUT, STYLE_PATH, Visitor,
};

/// Views that the navigation leads to; the last two need rights.
const NAVIGATION: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/search", "Search"),
    ("/records", "Records"),
    ("/conversations", "Conversations"),
    ("/skills", "Skills"),
    ("/history", "History"),
    ("/agents", "Agents"),
    ("/admin", "Admin"),
];
/// Views that concern the whole tenant: a key of one user does not open them.
const OF_TENANT: &[&str] = &["/agents"];

/// Everything but letters, digits and the marks that no URL gives a meaning.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A value of a query.
fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// A part of a path. Browsers drop the parts `.` and `..`, also percent-encoded ones, so that these get
/// a `~` before them.
pub(crate) fn path_part(text: &str) -> String {
    match is_dots(text) {
        true => format!("~{text}"),
        false => escaped(text),
    }
}

/// The text of a part of a path, which [`path_part`] made.
pub(crate) fn unescaped_part(part: &str) -> &str {
    match part.strip_prefix('~') {
        Some(text) if is_dots(text) => text,
        _ => part,
    }
}

/// Whether a text is one or two dots, or such a text with `~` before it.
fn is_dots(text: &str) -> bool {
    matches!(text.trim_start_matches('~'), "." | "..")
}

/// A path with a query of the fields that have a value.
pub(crate) fn link(path: &str, query: &[(&str, &str)]) -> String {
    let fields = query.iter().filter(|(_, value)| !value.is_empty());
    let fields: Vec<String> = fields
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    match fields.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", fields.join("&")),
    }
}

/// The page of a record.
pub(crate) fn record_path(id: &str) -> String {
    format!("/records/{}", path_part(id))
}

/// A whole page. `path` is the view of the navigation that it belongs to.
pub(crate) fn page(visitor: &Visitor, path: &str, title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    div.bar {
                        a.brand href="/" { img src=(*ICON_PATH) alt="" width="22" height="22"; "Mnemon" }
                        nav aria-label="Views" {
                            @for (view, name) in NAVIGATION.iter().filter(|(view, _)| is_open(visitor, view)) {
                                a href=(view) aria-current=[(*view == path).then_some("page")] { (name) }
                            }
                        }
                        (account(visitor))
                    }
                }
                @if visitor.demo == Demo::Shown { (demo_banner(visitor)) }
                main #main { (content) }
            }
        }
    }
}

fn is_open(visitor: &Visitor, view: &str) -> bool {
    match view {
        "/admin" => visitor.is_admin,
        view => visitor.user.is_none() || !OF_TENANT.contains(&view),
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (text::clean(title)) " · Mnemon" }
            link rel="icon" href=(*ICON_PATH) type="image/svg+xml";
            link rel="stylesheet" href=(*STYLE_PATH);
            script type="module" src=(*SCRIPT_PATH) {}
        }
    }
}

fn account(visitor: &Visitor) -> Markup {
    html! {
        div.account {
            span title="Tenant" { (text::name(&visitor.tenant)) }
            @if let Some(user) = &visitor.user { span title="User" { (text::name(user)) } }
            @if visitor.is_signed_in {
                form method="post" action=(SIGN_OUT) {
                    (token(visitor))
                    button.link type="submit" { "Sign out" }
                }
            }
        }
    }
}

fn demo_banner(visitor: &Visitor) -> Markup {
    html! {
        div.banner role="status" {
            p { "This is the demonstration memory, in the tenant " code { (DEMO_TENANT) } "." }
            form method="post" action="/demo/leave" {
                (token(visitor))
                button type="submit" { "Back to your memory" }
            }
            a.button href="/demo/remove" { "Remove it" }
        }
    }
}

/// A page for visitors who have not signed in.
pub(crate) fn outside(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body.outside { main #main { (content) } }
        }
    }
}

/// The field of a form that shows that it comes from a page of this visitor.
pub(crate) fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="token" value=(visitor.token); }
}

/// The same, before there is a visitor.
pub(crate) fn token_field(token: &str) -> Markup {
    html! { input type="hidden" name="token" value=(token); }
}

/// A form with one button.
pub(crate) fn button(visitor: &Visitor, action: &str, words: &str, class: &str) -> Markup {
    html! {
        form method="post" action=(action) {
            (token(visitor))
            button type="submit" class=(class) { (words) }
        }
    }
}

/// The page for a request that failed.
pub fn failed(visitor: Option<&Visitor>, failure: &Failure) -> String {
    let title = match failure.status {
        401 => "Sign in",
        403 => "Not allowed",
        404 => "Not found",
        429 => "Too many requests",
        400..=499 => "This did not work",
        _ => "The server failed",
    };
    let content = html! {
        section.card {
            h1 { (title) }
            p role="alert" { (why(failure)) }
            @if let Some(hint) = &failure.hint { p.quiet { (text::clean(hint)) } }
            @if failure.status == 401 { p { a.button href=(SIGN_IN) { "Sign in" } } }
            @else { p { a href="/" { "Overview" } } }
        }
    };
    let page = match visitor {
        Some(visitor) => page(visitor, "", title, &content),
        None => outside(title, &content),
    };
    page.into_string()
}

fn why(failure: &Failure) -> Markup {
    let detail = text::clean(&failure.detail);
    html! {
        @if let Some(field) = &failure.field { code { (text::clean(field)) } " " }
        (detail)
    }
}

/// What the answer says about itself: that something is missing from it.
pub(crate) fn notices(answer: &Value) -> Markup {
    html! {
        @if let Some(failure) = answer.get("failure").and_then(Value::as_str) {
            p.notice { (text::clean(failure)) }
        }
        @for notice in answer.texts("notices") { p.notice { (text::clean(notice)) } }
    }
}

/// An empty list, with the command that fills it.
pub(crate) fn empty(words: &str, command: &str) -> Markup {
    html! {
        div.empty {
            p { (words) }
            (self::command(command))
        }
    }
}

/// A command to copy.
pub(crate) fn command(line: &str) -> Markup {
    html! { pre.command data-copy { code { (line) } } }
}

/// A small label.
pub(crate) fn label(word: &str) -> Markup {
    html! { span.label { (text::name(word)) } }
}

/// Characters of a tag that a list can be filtered by; records may have longer ones.
const FILTER_TAG: usize = 50;

/// A tag, with a link to its records where the API can list them.
pub(crate) fn tag(tag: &str, path: &str) -> Markup {
    let (_, is_long) = text::cut(tag, FILTER_TAG);
    html! {
        @if is_long { span { "#" (text::name(tag)) } }
        @else { a href=(link(path, &[("tag", tag)])) { "#" (text::name(tag)) } }
    }
}

/// Links to the first and to the next page of a list.
pub(crate) fn paging(first: Option<&str>, next: Option<&str>) -> Markup {
    html! {
        @if first.is_some() || next.is_some() {
            nav.paging aria-label="Pages" {
                @if let Some(first) = first { a href=(first) { "First page" } }
                @if let Some(next) = next { a href=(next) rel="next" { "Next page" } }
            }
        }
    }
}

/// The cursor of the next page, which is a text or a number.
pub(crate) fn next(answer: &Value) -> Option<String> {
    match answer.get("next")? {
        Value::String(cursor) => Some(cursor.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A menu of choices, of which the first stands for any.
pub(crate) fn choice(name: &str, label: &str, any: &str, words: &[&str], chosen: &str) -> Markup {
    html! {
        label.field {
            span { (label) }
            select name=(name) {
                @if !any.is_empty() { option value="" { (any) } }
                @for word in words { option value=(word) selected[*word == chosen] { (word) } }
            }
        }
    }
}

/// A field for a line of text.
pub(crate) fn field(name: &str, label: &str, value: &str, hint: &str) -> Markup {
    html! {
        label.field {
            span { (label) }
            input name=(name) value=(text::clean(value)) placeholder=(hint) autocomplete="off";
        }
    }
}

/// Kinds of records that a list can be restricted to.
pub(crate) const KINDS: &[&str] = &[
    "note", "fact", "decision", "event", "message", "summary", "document", "chunk", "skill",
    "rule", "profile", "step",
];
pub(crate) const NAMESPACES: &[&str] = &["short-term", "long-term"];
