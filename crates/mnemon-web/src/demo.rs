//! The demonstration: a small memory in a tenant of its own.

use maud::html;
use serde_json::{Value, json};

use crate::text::Fields;
use crate::{Answer, DEMO_TENANT, Demo, Failure, Visit, shell};

/// Rounds of a removal. Each takes as many records as one commit may.
const ROUNDS: usize = 100;

/// Kinds of records that a removal takes.
const KINDS: &[&str] = &[
    "note", "message", "event", "summary", "fact", "state", "task", "document", "chunk", "skill",
    "rule", "profile", "step", "decision", "learning", "session", "handoff", "entity", "relation",
];

/// The source of its records, by which it is recognised.
const SOURCE: &str = "mnemon-demonstration";

/// Records: id, user, tag, importance, content.
const RECORDS: &[(&str, &str, &str, f64, &str)] = &[
    (
        "demo-tea",
        "ann",
        "drinks",
        0.8,
        "Ann prefers green tea in the afternoon",
    ),
    ("demo-nuts", "bob", "health", 1.0, "Bob is allergic to nuts"),
    (
        "demo-train",
        "ann",
        "travel",
        0.4,
        "Ann takes the night train to Vienna on 3 December",
    ),
    (
        "demo-deploy",
        "",
        "ops",
        0.9,
        "The deploy key rotates on the first of the month",
    ),
    (
        "demo-review",
        "",
        "ops",
        0.5,
        "Every change of the billing service needs two reviews",
    ),
    (
        "demo-standup",
        "",
        "meeting",
        0.3,
        "The stand-up is at 9:15, on Mondays at 9:30",
    ),
    (
        "demo-vi",
        "",
        "meeting",
        0.5,
        "Họp nhóm lúc chín giờ sáng thứ Hai",
    ),
    (
        "demo-ja",
        "",
        "meeting",
        0.5,
        "東京の会議は十時に始まります",
    ),
    (
        "demo-css",
        "",
        "web",
        0.2,
        "<b>HTML</b> in a record is shown as text, and never runs: <script>alert(1)</script>",
    ),
];

/// Records that were derived from others: id, sources, content.
const DERIVED: &[(&str, &[&str], &str)] = &[
    (
        "demo-shopping",
        &["demo-tea"],
        "Buy green tea before Ann's visit",
    ),
    (
        "demo-visit",
        &["demo-tea", "demo-train"],
        "Plan for Ann's visit: meet her after the night train, have green tea ready",
    ),
    (
        "demo-menu",
        &["demo-nuts", "demo-visit"],
        "Menu for the visit: soup and rice, no nuts",
    ),
    (
        "demo-reminder",
        &["demo-shopping"],
        "Reminder: the tea shop closes at 18:00",
    ),
];

const TALK: &[(&str, &str)] = &[
    ("user", "Ann arrives on Thursday. What should I prepare?"),
    (
        "assistant",
        "She prefers green tea in the afternoon, and her train arrives in the morning.",
    ),
    ("user", "Bob joins us for dinner."),
    (
        "assistant",
        "Then no nuts: Bob is allergic. I changed the menu to soup and rice.",
    ),
    ("user", "When does the tea shop close?"),
    ("assistant", "At 18:00. I set a reminder."),
];

/// Fills the tenant of the demonstration, and shows it. The server calls it with that tenant.
pub(crate) async fn load(visit: &Visit<'_>) -> Result<Answer, Failure> {
    if visit.visitor.demo != Demo::Shown {
        let what = "the demonstration is loaded by an administrator of the server's own tenant";
        return Err(Failure::new(403, "denied", what));
    }
    let stats = visit.call("GET /v1/stats", json!({})).await?;
    match stats.whole("records") {
        0 => fill(visit).await?,
        _ => check_ours(visit).await?,
    }
    Ok(Answer::ShowDemo(true, "/".to_owned()))
}

/// That the tenant holds the demonstration, and not somebody's memory of the same name.
async fn check_ours(visit: &Visit<'_>) -> Result<(), Failure> {
    let found = visit
        .aside("GET /v1/records", json!({ "source": SOURCE, "limit": 1 }))
        .await;
    // Whoever has a key of the tenant may store such a record, too.
    let keys = visit.call("GET /v1/keys", json!({})).await?;
    match keys.items("keys").is_empty() && !found.items("records").is_empty() {
        true => Ok(()),
        false => {
            let what = "the tenant `demo` holds another memory, so the demonstration is not loaded";
            Err(Failure::new(409, "conflict", what))
        }
    }
}

async fn fill(visit: &Visit<'_>) -> Result<(), Failure> {
    for (id, user, tag, importance, content) in RECORDS {
        let user = (!user.is_empty()).then_some(user);
        let fields = json!({
            "id": id, "content": content, "tags": [tag], "importance": importance, "user": user,
            "audience": "everyone", "source": SOURCE,
        });
        visit.call("POST /v1/records", fields).await?;
    }
    for (id, sources, content) in DERIVED {
        let fields =
            json!({ "id": id, "content": content, "derived_from": sources, "source": SOURCE });
        visit.call("POST /v1/records", fields).await?;
    }
    let changed = json!({ "id": "demo-tea", "content": "Ann prefers oolong tea in the afternoon" });
    visit.call("PATCH /v1/records/{id}", changed).await?;
    for (role, content) in TALK {
        let fields =
            json!({ "session": "visit-plan", "user": "ann", "role": role, "content": content });
        visit
            .call("POST /v1/conversations/{session}/messages", fields)
            .await?;
    }
    visit
        .call("POST /v1/skills/import", json!({ "skills": [skill()] }))
        .await?;
    Ok(())
}

fn skill() -> Value {
    json!({
        "use_when": "a new version of the billing service is deployed", "task_type": "deploy",
        "tool_sops": [
            {"tool": "run_tests", "action": "run the whole suite"},
            {"tool": "build_image", "action": "tag the image with the commit"},
            {"tool": "deploy", "action": "deploy to staging, then to production"},
        ],
        "preferences": "two reviews before a deployment",
    })
}

pub(crate) async fn leave(_: &Visit<'_>) -> Result<Answer, Failure> {
    Ok(Answer::ShowDemo(false, "/".to_owned()))
}

fn check_shown(visit: &Visit<'_>) -> Result<(), Failure> {
    match visit.visitor.demo {
        Demo::Shown => Ok(()),
        _ => Err(Failure::not_found("the demonstration memory is not open")),
    }
}

pub(crate) async fn confirm_remove(visit: &Visit<'_>) -> Result<Answer, Failure> {
    check_shown(visit)?;
    let stats = visit.call("GET /v1/stats", json!({})).await?;
    let count = stats
        .get("records")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let content = html! {
        h1 { "Remove the demonstration?" }
        section.card {
            p { "All " strong { (count) } " records of the tenant " code { (DEMO_TENANT) }
                " are erased with their history. Your own memory is not touched." }
            p.quiet { "This cannot be undone; the demonstration can be loaded again." }
            div.actions {
                (shell::button(visit.visitor, "/demo/remove", "Remove", "danger"))
                a.button href="/" { "Cancel" }
            }
        }
    };
    Ok(shell::page(visit.visitor, "/", "Remove the demonstration", &content).into())
}

pub(crate) async fn remove(visit: &Visit<'_>) -> Result<Answer, Failure> {
    check_shown(visit)?;
    check_ours(visit).await?;
    for _ in 0..ROUNDS {
        let done = visit
            .call("POST /v1/forget", json!({ "kind": KINDS, "purge": true }))
            .await?;
        if done.get("more").and_then(Value::as_bool) != Some(true) {
            break;
        }
    }
    Ok(Answer::ShowDemo(false, "/".to_owned()))
}
