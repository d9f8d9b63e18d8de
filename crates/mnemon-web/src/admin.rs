//! Administration: keys, quotas, tenants, policies, webhooks and the audit log.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::shell::{choice, escaped, field, link, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, shell};

/// Entries on the page of the audit log when nobody says, and at most.
const ENTRIES: usize = 100;
const MOST_ENTRIES: usize = 1000;

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (keys, webhooks, policies, server) = join!(
        visit.call("GET /v1/keys", json!({})),
        visit.aside("GET /v1/webhooks", json!({})),
        visit.aside("GET /v1/policies", json!({})),
        visit.api.server(),
    );
    let (keys, server) = (keys?, server?);
    let content = html! {
        h1 { "Administration" }
        (key_section(visit, &keys))
        (webhook_section(visit, &webhooks))
        div.columns {
            (quota_section(&server))
            (tenant_section(&server))
            section.card { h2 { "Audit log" } p { a href="/admin/audit" { "The newest entries of this tenant" } }
                (shell::command("mnemon audit verify")) }
        }
        (policy_section(&policies))
    };
    Ok(shell::page(visit.visitor, "/admin", "Administration", &content).into())
}

fn key_section(visit: &Visit<'_>, keys: &Value) -> Markup {
    let all = keys.items("keys");
    html! {
        section.card {
            h2 { "Keys" }
            (shell::notices(keys))
            @if all.is_empty() {
                p { "There is no key: everybody on this machine is the administrator. As soon as there is one, every request must show a key. Make one with the right admin first." }
            } @else {
                div.scroll tabindex="0" role="group" aria-label="Table" { table {
                    thead { tr { th { "Name" } th { "Prefix" } th { "Rights" } th { "User" } th { "Last used" } th { "Expires" } th {} } }
                    tbody { @for key in all { (key_row(key)) } }
                } }
            }
            details { summary { "New key" }
                form.fields method="post" action="/admin/keys" {
                    (token(visit.visitor))
                    (field("name", "Name", "", "laptop"))
                    // The first key must be able to make others: from then on nobody gets in without one.
                    (choice("rights", "Rights", "", &["read", "write", "admin"], if all.is_empty() { "admin" } else { "read" }))
                    (field("user", "Only for the user", "", "any"))
                    (field("expires", "Expires after", "", "90d, or never"))
                    button type="submit" { "Create" }
                }
            }
        }
    }
}

fn key_row(key: &Value) -> Markup {
    let is_over = !key.text("revoked").is_empty();
    html! {
        tr class=[is_over.then_some("gone")] {
            td { (text::name(key.text("name"))) }
            td { code { (text::name(key.text("prefix"))) } }
            td { (key.text("rights")) }
            td { (text::name(key.text("user"))) }
            td.time { (text::time(key.text("last_used"))) }
            td.time { (text::time(key.text("expires"))) }
            td { @if is_over { "revoked" } @else {
                a href=(format!("/admin/keys/{}/revoke", escaped(key.text("prefix")))) { "Revoke…" }
            } }
        }
    }
}

pub(crate) async fn create_key(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let fields = json!({
        "name": visit.sent("name"), "rights": visit.sent("rights"),
        "user": visit.sent("user"), "expires": visit.sent("expires"),
    });
    let made = visit.call("POST /v1/keys", fields).await?;
    Ok(secret(visit, "The new key", made.text("secret")).into())
}

/// A secret is shown in the answer to the form and never again: no URL leads to it.
fn secret(visit: &Visit<'_>, title: &str, secret: &str) -> Markup {
    let content = html! {
        h1 { (title) }
        section.card {
            p { "It is shown only now. Store it in a safe place." }
            (shell::command(secret))
            p { a.button href="/admin" { "Administration" } }
        }
    };
    shell::page(visit.visitor, "/admin", title, &content)
}

async fn find(
    visit: &Visit<'_>,
    route: &str,
    list: &str,
    name: &str,
    value: &str,
) -> Result<Value, Failure> {
    let all = visit.call(route, json!({})).await?;
    let found = all.items(list).iter().find(|one| one.text(name) == value);
    found
        .cloned()
        .ok_or_else(|| Failure::not_found("there is nothing of this name"))
}

pub(crate) async fn confirm_revoke(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let prefix = visit.in_path("prefix");
    let key = find(visit, "GET /v1/keys", "keys", "prefix", prefix).await?;
    let effect = html! {
        p { "The key " strong { (text::name(key.text("name"))) } " (" code { (text::name(prefix)) } ", right "
            (key.text("rights")) ") stops working within a second. Programs that use it are refused." }
        p { @match key.text("last_used") { "" => "It was never used.", at => { "Last used: " (text::time(at)) } } }
        p.quiet { "This cannot be undone; a new key can be made." }
    };
    Ok(confirm(
        visit,
        "Revoke this key?",
        &effect,
        &format!("/admin/keys/{}/revoke", escaped(prefix)),
        "Revoke",
    ))
}

fn confirm(visit: &Visit<'_>, title: &str, effect: &Markup, action: &str, verb: &str) -> Answer {
    let content = html! {
        h1 { (title) }
        section.card {
            (effect)
            div.actions {
                (shell::button(visit.visitor, action, verb, "danger"))
                a.button href="/admin" { "Cancel" }
            }
        }
    };
    shell::page(visit.visitor, "/admin", title, &content).into()
}

pub(crate) async fn revoke(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let fields = json!({ "prefix": visit.in_path("prefix") });
    visit.call("DELETE /v1/keys/{prefix}", fields).await?;
    Ok(Answer::See("/admin".to_owned()))
}

fn webhook_section(visit: &Visit<'_>, webhooks: &Value) -> Markup {
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
                    td.count { (one.items("dead_letters").len()) }
                    td { (text::line(one.text("last_error"))) }
                    td { a href=(format!("/admin/webhooks/{}/delete", escaped(one.text("id")))) { "Delete…" } }
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

pub(crate) async fn create_webhook(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let made = visit
        .call("POST /v1/webhooks", json!({ "url": visit.sent("url") }))
        .await?;
    Ok(secret(visit, "The secret of the webhook", made.text("secret")).into())
}

pub(crate) async fn confirm_webhook(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let id = visit.in_path("webhook");
    let one = find(visit, "GET /v1/webhooks", "webhooks", "id", id).await?;
    let effect = html! {
        p { "Changes are no longer sent to " code { (text::name(one.text("url"))) } ". "
            (one.items("dead_letters").len()) " deliveries that were given up are dropped." }
        p.quiet { "This cannot be undone; a new webhook can be made." }
    };
    Ok(confirm(
        visit,
        "Delete this webhook?",
        &effect,
        &format!("/admin/webhooks/{}/delete", escaped(id)),
        "Delete",
    ))
}

pub(crate) async fn delete_webhook(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let fields = json!({ "webhook": visit.in_path("webhook") });
    visit.call("DELETE /v1/webhooks/{webhook}", fields).await?;
    Ok(Answer::See("/admin".to_owned()))
}

fn quota_section(server: &Value) -> Markup {
    let quota = server.get("quota").unwrap_or(&Value::Null);
    let rows = [
        ("records", "records"),
        ("bytes", "bytes"),
        ("requests_per_minute", "requests per minute"),
        ("model_tokens_per_day", "model tokens per day"),
    ];
    html! {
        section.card {
            h2 { "Quotas" }
            table { thead.hidden { tr { th { "Quota" } th { "Limit" } } } tbody { @for (name, words) in rows { tr {
                th scope="row" { (words) }
                td.count { @match quota.get(name).and_then(Value::as_u64) { Some(most) => (text::grouped(most)), None => "no limit" } }
            } } } }
            p.quiet { "Set under [server.quota] in mnemon.toml." }
        }
    }
}

fn tenant_section(server: &Value) -> Markup {
    html! {
        section.card {
            h2 { "Tenants" }
            table { thead.hidden { tr { th { "Tenant" } th { "Records" } } } tbody { @for one in server.items("tenants") { tr {
                th scope="row" { (text::name(one.text("tenant"))) } td.count { (text::grouped(one.whole("records"))) }
            } } } }
            p.quiet { "Tenants that were served lately." }
        }
    }
}

fn policy_section(policies: &Value) -> Markup {
    html! {
        details.card {
            summary { "Policies" }
            (shell::notices(policies))
            table {
                thead { tr { th { "Setting" } th { "Value" } th { "Origin" } } }
                tbody { @for one in policies.items("values") { tr {
                    th scope="row" { code { (text::name(one.text("key"))) } }
                    td { (text::name(&one.get("value").map(plain).unwrap_or_default())) }
                    td { (text::name(one.text("origin"))) }
                } } }
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

pub(crate) async fn audit(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let limit = visit
        .asked("limit")
        .and_then(|limit| limit.parse::<usize>().ok());
    let limit = limit.unwrap_or(ENTRIES).clamp(1, MOST_ENTRIES);
    let entries = visit.api.audit(limit).await?;
    let more = (entries.len() == limit && limit < MOST_ENTRIES)
        .then(|| link("/admin/audit", &[("limit", &MOST_ENTRIES.to_string())]));
    let content = html! {
        h1 { "Audit log" }
        p.quiet { "Requests that change something, and refused ones, newest first. Each entry has the hash of the one before it; " code { "mnemon audit verify" } " checks the chain." }
        @if entries.is_empty() { p { "None of the newest 10,000 entries of the server concerns this tenant." } }
        @else { div.scroll tabindex="0" role="group" aria-label="Table" { table {
            thead { tr { th.count { "No." } th { "Time (UTC)" } th { "Caller" } th { "Operation" } th.count { "Records" } th.count { "Status" } } }
            tbody { @for one in &entries { tr {
                td.count { (one.whole("seq")) }
                td.time { (text::time(one.text("at"))) }
                td { (text::name(one.text("caller"))) }
                td { (text::name(one.text("operation"))) }
                td.count { (one.whole("count")) }
                td.count { (one.whole("status")) }
            } } }
        } } }
        @if let Some(more) = more { nav.paging { a href=(more) { "More entries" } } }
    };
    Ok(shell::page(visit.visitor, "/admin", "Audit log", &content).into())
}
