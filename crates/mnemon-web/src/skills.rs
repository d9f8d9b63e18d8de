//! Skills and rules that were learnt, with their evidence.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::listing::{Column, Listing, Order, whole};
use crate::shell::{choice, field, label, path_part, record_path, token};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, chart, shell};

/// Versions of a skill that the chart of its success shows.
const VERSIONS: u64 = 50;
/// Skills and rules that are read for the list.
const MOST: u64 = 1000;
const STATES: &[&str] = &["candidate", "active", "retired"];
/// What a person may decide about a skill.
const DECISIONS: &[(&str, &str)] = &[
    ("approve", "Approve"),
    ("reject", "Reject"),
    ("retire", "Retire"),
    ("pin", "Pin"),
    ("unpin", "Unpin"),
];

pub(crate) async fn list(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (status, task) = (visit.asked("status"), visit.asked("task_type"));
    let page = visit.call(
        "GET /v1/skills",
        json!({ "status": status, "task_type": task, "limit": MOST }),
    );
    let page = page.await?;
    let all = page.items("skills");
    let query = [("status", status), ("task_type", task)];
    let query = query.map(|(name, value)| (name, value.unwrap_or_default()));
    let listing = Listing::of(visit, "/skills", &query, COLUMNS, all);
    let content = html! {
        h1 { "Skills and rules" }
        form.fields method="get" action="/skills" data-auto {
            (choice("status", "Status", "any", STATES, status.unwrap_or_default()))
            (field("task_type", "Type of task", task.unwrap_or_default(), "any"))
            button type="submit" { "Show" }
        }
        (shell::notices(&page))
        @if all.is_empty() {
            (shell::empty("Nothing is learnt yet. Skills come from logged steps of tasks:",
                "mnemon experience log '{\"task_type\":\"deploy\",\"tool\":\"run_cmd\",\"input\":{\"cmd\":\"npm install\"}}'"))
        } @else {
            div.scroll tabindex="0" role="group" aria-label="Table" { table {
                thead { (listing.head()) }
                tbody { @for one in &listing.rows { (row(one)) } }
            } }
            (listing.paging())
            @if all.len() as u64 == MOST { p.notice { "The list ends after " (text::grouped(MOST)) " skills and rules. Restrict it by status or type of task." } }
        }
    };
    Ok(shell::page(visit.visitor, "/skills", "Skills", &content).into())
}

const COLUMNS: &[Column] = &[
    Column {
        name: "title",
        title: "Skill or rule",
        order: Order::Text("/skill/use_when"),
    },
    Column {
        name: "state",
        title: "Status",
        order: Order::Text("/evidence/status"),
    },
    Column {
        name: "runs",
        title: "Runs",
        order: Order::Number(|one| evidence(one).map_or(0.0, |it| whole(it, "support"))),
    },
    Column {
        name: "share",
        title: "",
        order: Order::None,
    },
    Column {
        name: "with",
        title: "Success with it",
        order: Order::Number(|one| success(one, "with")),
    },
    Column {
        name: "without",
        title: "Without",
        order: Order::Number(|one| success(one, "without")),
    },
];

fn evidence(one: &Value) -> Option<&Value> {
    one.get("evidence")
}

/// The success with or without a skill; those without runs come last.
fn success(one: &Value, name: &str) -> f64 {
    let rates = evidence(one).and_then(|evidence| rate(evidence.get(name)));
    rates.unwrap_or(-1.0)
}

fn row(one: &Value) -> Markup {
    let evidence = one.get("evidence").unwrap_or(&Value::Null);
    let with = rate(evidence.get("with"));
    html! {
        tr {
            td.content { a data-row href=(format!("/skills/{}", path_part(one.text("id")))) { (text::line(title(one))) } }
            td { (state(evidence)) }
            td.count { (evidence.whole("support")) }
            td { (chart::bar(with.unwrap_or(0.0))) }
            td.count { (percent(with)) }
            td.count { (percent(rate(evidence.get("without")))) }
        }
    }
}

fn state(evidence: &Value) -> Markup {
    html! {
        (label(evidence.text("status")))
        @if evidence.flag("pinned") { " " (label("pinned")) }
        @if evidence.flag("approved") { " " (label("approved")) }
    }
}

/// A share of the runs, if there are any.
fn rate(rate: Option<&Value>) -> Option<f64> {
    let rate = rate?;
    let of = rate.whole("of");
    (of > 0).then(|| rate.whole("good") as f64 / of as f64)
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.0} %", rate * 100.0))
}

fn title(one: &Value) -> &str {
    let skill = one.pointer("/skill/use_when").and_then(Value::as_str);
    let rule = one.pointer("/rule/text").and_then(Value::as_str);
    skill.or(rule).unwrap_or("(without words)")
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let id = visit.in_path("id");
    let versions = json!({ "id": id, "limit": VERSIONS });
    let (one, versions) = join!(
        visit.call("GET /v1/skills/{id}", json!({ "id": id })),
        visit.aside("GET /v1/history", versions),
    );
    let one = one?;
    let evidence = one.get("evidence").unwrap_or(&Value::Null);
    let may_decide = visit.visitor.may_write && visit.visitor.user.is_none();
    let content = html! {
        h1 { (if one.get("rule").is_some() { "Rule" } else { "Skill" }) " " (text::id(one.text("id"))) }
        @if visit.asked("done").is_some() {
            div.done role="status" { p { "Changed. The history has the commit, and can undo it." } a.button href="/history" { "History" } }
        }
        section.card { (body(&one)) }
        section.card { h2 { "Evidence" } (rates(evidence)) (over_time(&versions)) }
        @if may_decide {
            section.card {
                h2 { "Decide" }
                p.quiet { "Agents see active skills only. An approved skill is active, a rejected or retired one is not. A pinned one is not retired by itself. Each decision can be undone in the history." }
                div.actions { @for (decision, words) in DECISIONS {
                    form method="post" action=(format!("/skills/{}/state", path_part(one.text("id")))) {
                        (token(visit.visitor))
                        input type="hidden" name="decision" value=(decision);
                        button type="submit" { (words) }
                    }
                } }
            }
        }
        section.card {
            h2 { "Runs that speak for it" }
            @if one.texts("runs").is_empty() { p.quiet { "None: a person wrote it." } }
            ul.plain { @for run in one.texts("runs").iter().take(50) {
                li { a href=(record_path(run)) { (text::id(run)) } }
            } }
            p { a href=(record_path(one.text("id"))) { "The record with its history" } }
        }
    };
    Ok(shell::page(visit.visitor, "/skills", "Skill", &content).into())
}

fn body(one: &Value) -> Markup {
    let skill = one.get("skill");
    html! {
        p.lead { (text::clean(text::cut(title(one), 2000).0)) }
        @if let Some(skill) = skill {
            ol.steps { @for step in skill.items("tool_sops") {
                li { code { (text::name(step.text("tool"))) } " " (text::line(step.text("action"))) }
            } }
            @if !skill.text("preferences").is_empty() { p { "Preferences: " (text::line(skill.text("preferences"))) } }
            @if !skill.text("task_type").is_empty() { p.quiet { "Type of task: " (text::name(skill.text("task_type"))) } }
        }
    }
}

/// The success with and without it, from the versions of its record.
fn over_time(versions: &Value) -> Markup {
    let line = |name: &'static str, class: &'static str| {
        let versions = versions.items("changes").iter().rev();
        let points = versions.filter_map(|change| {
            let evidence = change.pointer("/after/metadata/evidence")?;
            Some((text::millis(change.text("at"))?, rate(evidence.get(class))?))
        });
        chart::Line {
            name,
            class,
            points: points.collect(),
        }
    };
    let lines = [line("with it", "with"), line("without it", "without")];
    let at = |version: Option<&Value>| version.map_or("", |version| version.text("at")).to_owned();
    let all = versions.items("changes");
    let (first, last) = text::axis_ends(&at(all.last()), &at(all.first()));
    html! {
        (shell::notices(versions))
        @if lines.iter().any(|line| line.points.len() > 1) {
            (chart::lines(&lines, "success over time, 0 to 100 %", (&first, &last)))
        }
    }
}

fn rates(evidence: &Value) -> Markup {
    let interval = evidence.items("interval");
    let bound = |place: usize| {
        interval
            .get(place)
            .and_then(Value::as_f64)
            .map(|bound| bound * 100.0)
    };
    html! {
        p { (state(evidence)) }
        table.parts {
            thead.hidden { tr { th { "Runs" } th { "Share" } th { "Success" } } }
            tbody {
                @for (name, words) in [("with", "with it"), ("without", "without it")] {
                    @let share = rate(evidence.get(name));
                    tr { th scope="row" { (words) } td { (chart::bar(share.unwrap_or(0.0))) } td.count { (percent(share)) } }
                }
            }
        }
        @if let (Some(low), Some(high)) = (bound(0), bound(1)) {
            p.quiet { "With 95 % confidence the true rate is between " (format!("{low:.0} % and {high:.0} %")) "." }
        }
        @if !evidence.text("held").is_empty() { p.quiet { "Held back: " (text::clean(evidence.text("held"))) } }
        @if !evidence.text("last_confirmed").is_empty() { p.quiet { "Last confirmed " (text::time(evidence.text("last_confirmed"))) } }
    }
}

pub(crate) async fn change(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let sent = visit.sent("decision").unwrap_or_default();
    let known = DECISIONS.iter().find(|(decision, _)| *decision == sent);
    let Some((decision, _)) = known else {
        return Err(Failure::new(400, "invalid", "this decision is not known"));
    };
    let id = visit.in_path("id");
    visit
        .call(
            &format!("POST /v1/skills/{{id}}/{decision}"),
            json!({ "id": id }),
        )
        .await?;
    Ok(Answer::See(format!("/skills/{}?done=1", path_part(id))))
}
