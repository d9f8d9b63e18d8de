//! Webhooks: other servers that changes are sent to, and deliveries that failed.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::shell::{field, path_part, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, admin, shell};

/// Failed deliveries on a page.
const LETTERS: usize = 100;

pub(crate) fn section(visit: &Visit<'_>, webhooks: &Value) -> Markup {
    let all = webhooks.items("webhooks");
    html! {
        section.card {
            h2 { "Webhooks" }
            (shell::notices(webhooks))
            @if all.is_empty() { p.quiet { "No webhook sends changes to another server." } }
            @else { div.scroll tabindex="0" role="group" aria-label="Table" { table {
                thead { tr { th { "URL" } th.count { "Reached" } th.count { "Failures" } th.count { "Given up" } th { "Last error" } th {} } }
                tbody { @for one in all { tr {
                    td.content { (text::name(one.text("url"))) }
                    td.count { (one.whole("reached")) } td.count { (one.whole("failures")) }
                    td.count { (failed(one)) }
                    td { (text::line(one.text("last_error"))) }
                    td { a href=(format!("/admin/webhooks/{}/delete", path_part(one.text("id")))) { "Delete…" } }
                } } }
            } } }
            details { summary { "New webhook" }
                form.fields method="post" action="/admin/webhooks" {
                    (token(visit.visitor))
                    (field("url", "URL", "", "https://…"))
                    button type="submit" { "Create" }
                }
            }
        }
    }
}

/// The number of deliveries that were given up, with the way to them.
fn failed(one: &Value) -> Markup {
    let count = one.items("dead_letters").len() as u64 + one.whole("dropped_letters");
    html! {
        @if count == 0 { "0" }
        @else { a href=(format!("/admin/webhooks/{}/failed", path_part(one.text("id")))) { (text::grouped(count)) } }
    }
}

pub(crate) async fn failed_deliveries(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let id = visit.in_path("webhook");
    let webhook = admin::find(visit, "GET /v1/webhooks", "webhooks", "id", id).await?;
    let letters = webhook.items("dead_letters");
    let dropped = webhook.whole("dropped_letters");
    let content = html! {
        h1 { "Deliveries that were given up" }
        @if visit.asked("done").is_some() { div.done role="status" { p { "Delivered." } } }
        p { "To " code { (text::name(webhook.text("url"))) } "." }
        @if dropped > 0 { p.notice { (text::grouped(dropped)) " older ones were dropped, as only the newest are kept." } }
        @if letters.is_empty() { p.quiet { "None is left." } }
        @else { div.scroll tabindex="0" role="group" aria-label="Table" { table {
            thead { tr { th.count { "No." } th { "Time (UTC)" } th.count { "Changes" } th.count { "Attempts" } th { "Error" } th {} } }
            tbody { @for one in letters.iter().take(LETTERS) { tr {
                td.count { (one.whole("number")) }
                td.time { (text::time(one.text("at"))) }
                td.count { (one.whole("after") + 1) "–" (one.whole("reached")) }
                td.count { (one.whole("attempts")) }
                td { (text::line(one.text("error"))) }
                td { form method="post" action=(format!("/admin/webhooks/{}/redeliver", path_part(id))) {
                    (token(visit.visitor))
                    input type="hidden" name="number" value=(one.whole("number"));
                    button type="submit" { "Send again" }
                } }
            } } }
        } } }
        @if letters.len() > LETTERS { p.quiet { "and " (letters.len() - LETTERS) " more" } }
        p { a href="/admin" { "Administration" } }
    };
    Ok(shell::page(visit.visitor, "/admin", "Failed deliveries", &content).into())
}

pub(crate) async fn redeliver(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let id = visit.in_path("webhook");
    let number = visit
        .sent("number")
        .and_then(|number| number.parse::<u64>().ok());
    let fields = json!({ "webhook": id, "number": number });
    visit
        .call("POST /v1/webhooks/{webhook}/redeliver", fields)
        .await?;
    let path = format!("/admin/webhooks/{}/failed?done=1", path_part(id));
    Ok(Answer::See(path))
}

pub(crate) async fn create(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let made = visit
        .call("POST /v1/webhooks", json!({ "url": visit.sent("url") }))
        .await?;
    Ok(admin::secret(visit, "The secret of the webhook", made.text("secret")).into())
}

pub(crate) async fn confirm_delete(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let id = visit.in_path("webhook");
    let one = admin::find(visit, "GET /v1/webhooks", "webhooks", "id", id).await?;
    let effect = html! {
        p { "Changes are no longer sent to " code { (text::name(one.text("url"))) } ". "
            (one.items("dead_letters").len()) " deliveries that were given up are dropped." }
        p.quiet { "This cannot be undone; a new webhook can be made." }
    };
    Ok(admin::confirm(
        visit,
        "Delete this webhook?",
        &effect,
        &format!("/admin/webhooks/{}/delete", path_part(id)),
        "Delete",
    ))
}

pub(crate) async fn delete(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let fields = json!({ "webhook": visit.in_path("webhook") });
    visit.call("DELETE /v1/webhooks/{webhook}", fields).await?;
    Ok(Answer::See("/admin".to_owned()))
}
