//! Administration: keys, quotas, tenants, policies, the use of the language model and the audit log.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::listing::{Column, Listing, Order};
use crate::shell::{choice, field, link, path_part, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, shell, webhooks};

/// Entries on a page of the audit log.
const ENTRIES: usize = 100;

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (keys, hooks, policies, server) = join!(
        visit.call("GET /v1/keys", json!({})),
        visit.aside("GET /v1/webhooks", json!({})),
        visit.aside("GET /v1/policies", json!({})),
        visit.api.server(),
    );
    let (keys, server) = (keys?, server?);
    let content = html! {
        h1 { "Administration" }
        (key_section(visit, &keys))
        (webhooks::section(visit, &hooks))
        div.columns {
            (quota_section(&server))
            (tenant_section(&server))
            section.card { h2 { "Audit log" } p { a href="/admin/audit" { "The newest entries of this tenant" } }
                (shell::command("mnemon audit verify")) }
        }
        (model_section(&server))
        (policy_section(&policies))
    };
    Ok(shell::page(visit.visitor, "/admin", "Administration", &content).into())
}

const KEY_COLUMNS: &[Column] = &[
    Column {
        name: "name",
        title: "Name",
        order: Order::Text("/name"),
    },
    Column {
        name: "prefix",
        title: "Prefix",
        order: Order::Text("/prefix"),
    },
    Column {
        name: "rights",
        title: "Rights",
        order: Order::Text("/rights"),
    },
    Column {
        name: "user",
        title: "User",
        order: Order::Text("/user"),
    },
    Column {
        name: "used",
        title: "Last used",
        order: Order::Text("/last_used"),
    },
    Column {
        name: "expires",
        title: "Expires",
        order: Order::Text("/expires"),
    },
    Column {
        name: "actions",
        title: "",
        order: Order::None,
    },
];

fn key_section(visit: &Visit<'_>, keys: &Value) -> Markup {
    let all = keys.items("keys");
    let listing = Listing::of(visit, "/admin", &[], KEY_COLUMNS, all);
    html! {
        section.card {
            h2 { "Keys" }
            (shell::notices(keys))
            @if all.is_empty() {
                p { "No key exists: every user of this machine has the right admin. With the first key, every request needs a key, so create one with the right admin first." }
            } @else {
                div.scroll tabindex="0" role="group" aria-label="Table" { table {
                    thead { (listing.head()) }
                    tbody { @for key in &listing.rows { (key_row(key)) } }
                } }
                (listing.paging())
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
                @let path = format!("/admin/keys/{}", path_part(key.text("prefix")));
                a href={ (path) "/rotate" } { "Rotate…" } " "
                a href={ (path) "/revoke" } { "Revoke…" }
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
pub(crate) fn secret(visit: &Visit<'_>, title: &str, secret: &str) -> Markup {
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

pub(crate) async fn find(
    visit: &Visit<'_>,
    route: &str,
    list: &str,
    name: &str,
    value: &str,
) -> Result<Value, Failure> {
    let all = visit.call(route, json!({})).await?;
    let found = all.items(list).iter().find(|one| one.text(name) == value);
    found.cloned().ok_or_else(|| {
        Failure::not_found(
            "this name is not known; the list of the administration has the current ones",
        )
    })
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
        &format!("/admin/keys/{}/revoke", path_part(prefix)),
        "Revoke",
    ))
}

pub(crate) fn confirm(
    visit: &Visit<'_>,
    title: &str,
    effect: &Markup,
    action: &str,
    verb: &str,
) -> Answer {
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

pub(crate) async fn confirm_rotate(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let prefix = visit.in_path("prefix");
    let key = find(visit, "GET /v1/keys", "keys", "prefix", prefix).await?;
    let content = html! {
        h1 { "Rotate this key?" }
        section.card {
            p { "A new key with the name " strong { (text::name(key.text("name"))) } " and the same rights is made. The old one (" code { (text::name(prefix)) } ") stays valid for the time below, so that programs can change over." }
            form method="post" action=(format!("/admin/keys/{}/rotate", path_part(prefix))) {
                (token(visit.visitor))
                div.fields { (field("overlap", "The old key stays valid for", "", "24h, or 0s")) }
                div.actions {
                    button.primary type="submit" { "Rotate" }
                    a.button href="/admin" { "Cancel" }
                }
            }
        }
    };
    Ok(shell::page(visit.visitor, "/admin", "Rotate a key", &content).into())
}

pub(crate) async fn rotate(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let fields = json!({ "prefix": visit.in_path("prefix"), "overlap": visit.sent("overlap") });
    let made = visit.call("POST /v1/keys/{prefix}/rotate", fields).await?;
    Ok(secret(visit, "The new key", made.text("secret")).into())
}

/// Tokens and cost of the language model by day and task.
fn model_section(server: &Value) -> Markup {
    let model = server.get("model").unwrap_or(&Value::Null);
    let accounts = model.items("accounts");
    html! {
        section.card {
            h2 { "Language model" }
            (shell::notices(model))
            @if accounts.is_empty() { p.quiet { "No language model was used for this tenant lately." } }
            @else { div.scroll tabindex="0" role="group" aria-label="Table" { table {
                thead { tr { th { "Day" } th { "Task" } th.count { "Calls" } th.count { "Tokens read" } th.count { "Tokens written" } th.count { "Cost" } } }
                tbody { @for one in accounts { tr {
                    td.time { (text::name(one.text("day"))) } td { (text::name(one.text("task"))) }
                    td.count { (text::grouped(one.whole("calls"))) }
                    td.count { (text::grouped(one.whole("input_tokens"))) }
                    td.count { (text::grouped(one.whole("output_tokens"))) }
                    td.count { (text::name(one.text("cost"))) }
                } } }
            } } }
            p.quiet { "Prices and daily limits are set under [llm] in mnemon.toml." }
        }
    }
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
    let before = visit.asked("before");
    let before = before.and_then(|before| before.parse::<u64>().ok());
    let page = visit.api.audit(before, ENTRIES).await?;
    let next = shell::next(&page).map(|next| link("/admin/audit", &[("before", &next)]));
    let first = before.map(|_| "/admin/audit");
    let unreadable = page.whole("unreadable");
    let content = html! {
        h1 { "Audit log" }
        p.quiet { "Requests that change something, and refused ones, of this tenant, newest first. Each entry has the hash of the entry before it; " code { "mnemon audit verify" } " checks the chain." }
        @if unreadable > 0 {
            p.notice { (text::grouped(unreadable)) " lines of the log are damaged and are not shown. " code { "mnemon audit verify" } " names them." }
        }
        @if !page.flag("is_kept") {
            p.notice { "This server writes no audit log. Set " code { "server.audit" } " to a path in mnemon.toml." }
        } @else if !page.items("entries").is_empty() { (audit_table(page.items("entries"))) }
        @else if next.is_some() { p { "None of the entries that were read for this page is of this tenant; older ones may be." } }
        @else { p { "There are no entries of this tenant" @if first.is_some() { " before these" } "." } }
        (shell::paging(first, next.as_deref()))
    };
    Ok(shell::page(visit.visitor, "/admin", "Audit log", &content).into())
}

fn audit_table(entries: &[Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Table" { table {
            thead { tr { th.count { "No." } th { "Time (UTC)" } th { "Caller" } th { "Operation" } th.count { "Records" } th.count { "Status" } } }
            tbody { @for one in entries { tr {
                td.count { (one.whole("seq")) }
                td.time { (text::time(one.text("at"))) }
                td { (text::name(one.text("caller"))) }
                td { (text::name(one.text("operation"))) }
                td.count { (one.whole("count")) }
                td.count { (one.whole("status")) }
            } } }
        } }
    }
}
