//! Agents and teams: the Markdown of their memory, decisions, handoffs, and the prompt that activates
//! them.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::shell::path_part;
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, markdown, record, shell};

pub(crate) async fn list(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let (agents, teams) = join!(
        visit.call("GET /v1/agents", json!({})),
        visit.aside("GET /v1/teams", json!({})),
    );
    let agents = agents?;
    let content = html! {
        h1 { "Agents and teams" }
        (shell::notices(&agents)) (shell::notices(&teams))
        section.card {
            h2 { "Agents" }
            @if agents.items("agents").is_empty() {
                (shell::empty("No agent has a memory yet.", "mnemon agent new reviewer --description \"Reviews changes\""))
            } @else {
                table {
                    thead { tr { th { "Name" } th { "Description" } th.count { "Files" } } }
                    tbody { @for one in agents.items("agents") { tr {
                        td.content { a data-row href=(agent_path(one.text("name"))) { (text::name(one.text("name"))) } }
                        td { (text::line(one.text("description"))) }
                        td.count { (one.whole("files")) }
                    } } }
                }
            }
        }
        section.card {
            h2 { "Teams" }
            @if teams.items("teams").is_empty() {
                (shell::empty("No team is stored yet.", "mnemon team new core --lead ada --member bob"))
            } @else {
                table {
                    thead { tr { th { "Name" } th { "Lead" } th { "Members" } } }
                    tbody { @for one in teams.items("teams") { tr {
                        td.content { a data-row href=(format!("/teams/{}", path_part(one.text("name")))) { (text::name(one.text("name"))) } }
                        td { (text::name(one.text("lead"))) }
                        td { @for member in one.texts("members") { (text::name(member)) " " } }
                    } } }
                }
            }
        }
    };
    Ok(shell::page(visit.visitor, "/agents", "Agents", &content).into())
}

/// Members of a team are named TEAM/MEMBER.
fn agent_path(name: &str) -> String {
    format!("/agents/{}", path_part(name))
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let agent = visit.in_path("agent");
    let decisions = json!({ "agent": agent, "kind": ["decision"], "limit": 20 });
    let (prompt, decisions) = join!(
        visit.call(
            "POST /v1/agents/{agent}/activate",
            json!({ "agent": agent })
        ),
        visit.aside("GET /v1/records", decisions),
    );
    let prompt = prompt?;
    let content = html! {
        h1 { "Agent " (text::name(agent)) }
        (shell::notices(&prompt))
        div.beside {
            section.card.markdown aria-label="Memory" { h2 { "Its memory, as it is activated" } (markdown::render(prompt.text("prompt"))) }
            aside { section.card { h2 { "Parts of the prompt" } (parts(&prompt)) } (timeline(&decisions)) }
        }
        (raw(&prompt))
    };
    Ok(shell::page(visit.visitor, "/agents", "Agent", &content).into())
}

/// Decisions that are indexed, newest first.
fn timeline(decisions: &Value) -> Markup {
    let all = decisions.items("records");
    html! {
        section.card {
            h2 { "Decisions" }
            @if all.is_empty() { p.quiet { "No decision is indexed; " code { "mnemon agent index" } " reads them from the files." } }
            @else { (record::table(all)) }
        }
    }
}

fn parts(prompt: &Value) -> Markup {
    html! {
        table {
            thead { tr { th { "Part" } th.count { "Tokens" } } }
            tbody { @for part in prompt.items("parts") {
                tr { td { (text::name(part.text("name"))) } td.count { (text::grouped(part.whole("tokens"))) } }
            } }
        }
    }
}

fn raw(prompt: &Value) -> Markup {
    html! { details.card { summary { "The prompt as text" } (text::block(prompt.text("prompt"))) } }
}

pub(crate) async fn team(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let team = visit.in_path("team");
    let status = visit
        .call("GET /v1/teams/{team}", json!({ "team": team }))
        .await?;
    let member = visit
        .asked("member")
        .or(status.get("lead").and_then(Value::as_str));
    let prompt = match member {
        Some(member) => {
            visit
                .aside(
                    "POST /v1/teams/{team}/activate",
                    json!({ "team": team, "member": member }),
                )
                .await
        }
        None => Value::Null,
    };
    let content = html! {
        h1 { "Team " (text::name(team)) }
        (shell::notices(&status))
        p.facts { "Members: " @for one in status.texts("members") {
            a href=(shell::link(&format!("/teams/{}", path_part(team)), &[("member", one)])) aria-current=[(Some(one) == member).then_some("true")] { (text::name(one)) }
        } }
        (board(&status))
        (blockers(&status))
        @if let Some(member) = member {
            section.card.markdown { h2 { "The prompt of " (text::name(member)) }
                (shell::notices(&prompt)) (markdown::render(prompt.text("prompt"))) }
        }
    };
    Ok(shell::page(visit.visitor, "/agents", "Team", &content).into())
}

fn board(status: &Value) -> Markup {
    html! {
        section.card {
            h2 { "Open handoffs" }
            @if status.items("handoffs").is_empty() { p.quiet { "No work waits for a member." } }
            @else { table {
                thead { tr { th { "Work" } th { "From" } th { "To" } th { "Status" } } }
                tbody { @for one in status.items("handoffs") { tr {
                    td.content { (text::line(one.text("task"))) }
                    td { (text::name(one.text("from"))) } td { (text::name(one.text("to"))) } td { (text::name(one.text("status"))) }
                } } }
            } }
        }
    }
}

fn blockers(status: &Value) -> Markup {
    html! {
        @if !status.items("blockers").is_empty() {
            section.card {
                h2 { "Blockers" }
                table {
                    thead { tr { th { "Blocker" } th { "Member" } th.count { "Minutes" } th { "Next step" } } }
                    tbody { @for one in status.items("blockers") { tr {
                        td.content { (text::line(one.text("title"))) } td { (text::name(one.text("owner"))) }
                        td.count { (one.whole("minutes")) } td { (text::name(one.text("escalation"))) }
                    } } }
                }
            }
        }
    }
}
