//! Tools for teams of agents: handoffs, blockers, how it stands.

use mnemon_engine::agentfiles::{HandoffInfo, Whose};
use serde_json::json;

use super::super::answer::{Answer, excerpt};
use super::super::field::Field;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use super::agents::{
    AGENT, LINE, MANY, NAME, PROSE, activation, change_entry, context_fields, decision,
    entry_fields, file_changes, made, shown_context,
};
use crate::Error;
use crate::api::team as api;

fn team() -> Field {
    let most = 2 * NAME + 1;
    Field::text("team", most, "The team's name, or NAMESPACE/TEAM")
        .required()
        .or(&["name", "team_name"])
}

fn member() -> Field {
    Field::text("member", NAME, "The member, which is an agent")
        .required()
        .or(&["agent", "who"])
}

/// The team and the member that a call names.
fn whose(call: &Call) -> (String, String) {
    (
        call.arguments.needed("team"),
        call.arguments.needed("member"),
    )
}

fn which() -> Field {
    Field::text(
        "which",
        LINE,
        "A part of its heading or task, where there are several",
    )
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        new(),
        activate(),
        context(),
        decide(),
        edit(),
        handoff(),
        accept(),
        complete(),
        block(),
        status(),
    ]
}

fn new() -> Tool {
    Tool {
        name: "team_new",
        title: "Create a team",
        about: "Create a team and its members, or add members to a team that exists. Use it when \
            several agents work together. Files that exist are not changed.",
        fields: vec![
            team(),
            Field::text("lead", NAME, "The member that leads the team"),
            Field::texts("members", MANY, NAME, "The other members"),
        ],
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_new(served, call)),
    }
}

async fn run_new(served: &Served, call: Call) -> Result<Answer, Error> {
    let new = call.arguments.read()?;
    made(&served.agents.begin_team(&call.ctx, &new).await?)
}

fn context() -> Tool {
    Tool {
        name: "team_context",
        title: "Read or change a team's context",
        about: "Show the context that a team shares, or change lines of it; other lines stay. Use \
            it for information that the whole team needs.",
        fields: context_fields(team()),
        touch: Touch::Edits,
        profiles: AGENT,
        run: |served, call| Box::pin(run_context(served, call)),
    }
}

async fn run_context(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let team = call.arguments.take_needed("team");
    shown_context(served, call, Whose::Team(&team)).await
}

fn decide() -> Tool {
    let mut fields = vec![team()];
    fields.extend(decision());
    fields.extend([
        Field::text("proposed_by", NAME, "The member that proposed it"),
        Field::text("approved_by", NAME, "The member that approved it"),
        Field::texts("dissent", MANY, LINE, "Views against it"),
    ]);
    Tool {
        name: "team_decide",
        title: "Log a decision of a team",
        about: "Log a decision in the team's decisions.md, which every member reads. Use it \
            when a choice binds the whole team.",
        fields,
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_decide(served, call)),
    }
}

async fn run_decide(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let team = call.arguments.take_needed("team");
    let decision = call.arguments.read()?;
    let decided = served
        .agents
        .decide(&call.ctx, Whose::Team(&team), &decision);
    let file = decided.await?;
    Answer::with(format!("Logged in {file}."), &json!({ "file": file }))
}

fn edit() -> Tool {
    Tool {
        name: "team_edit",
        title: "Change or remove a decision of a team",
        about: "Change or remove a decision of a team. Use it when an entry is wrong.",
        fields: entry_fields(team()),
        touch: Touch::Removes,
        profiles: AGENT,
        run: |served, call| Box::pin(run_edit(served, call)),
    }
}

async fn run_edit(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let team = call.arguments.take_needed("team");
    change_entry(served, call, Whose::Team(&team)).await
}

fn activate() -> Tool {
    Tool {
        name: "team_activate",
        title: "Begin as a member of a team",
        about: "Load the memory of a team member: the team's context and decisions, waiting \
            handoffs, and its own memory. Call it instead of agent_activate when you work in a \
            team.",
        fields: vec![
            team(),
            member(),
            Field::text("task", PROSE, "Your task: selects the knowledge to include"),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: AGENT,
        run: |served, call| Box::pin(run_activate(served, call)),
    }
}

async fn run_activate(served: &Served, call: Call) -> Result<Answer, Error> {
    let (team, member) = whose(&call);
    let task = call.arguments.text("task");
    let agents = &served.agents;
    let told = agents
        .activate_member(&team, &member, task.as_deref())
        .await?;
    Ok(activation(
        &told,
        &format!("{team}/{member}"),
        call.tokens(),
    ))
}

fn handoff() -> Tool {
    Tool {
        name: "team_handoff",
        title: "Hand work to another member",
        about: "Give work to another member of the team, with all necessary information. Use it \
            when your part is done or another is better suited.",
        fields: vec![
            team(),
            Field::text("from", NAME, "The member that hands over").required(),
            Field::text("to", NAME, "The member that receives").required(),
            Field::text("task", LINE, "The work to be done").required(),
            Field::text("context", PROSE, "Necessary information").required(),
            Field::text("deliverable", PROSE, "The expected result").required(),
            Field::list("files", file_changes(), MANY, "Files that matter, and why"),
            Field::text("priority", LINE, "A deadline or a priority"),
            Field::flag("planned", "Planned work: it must not start yet"),
        ],
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_handoff(served, call)),
    }
}

async fn run_handoff(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let team = call.arguments.take_needed("team");
    let handoff = call.arguments.read()?;
    shown(&served.agents.hand_off(&call.ctx, &team, &handoff).await?)
}

fn accept() -> Tool {
    Tool {
        name: "team_accept",
        title: "Accept a handoff",
        about: "Accept a handoff that waits for a member. Use it before you start that work.",
        fields: vec![team(), member(), which()],
        touch: Touch::Changes,
        profiles: AGENT,
        run: |served, call| Box::pin(run_accept(served, call)),
    }
}

async fn run_accept(served: &Served, call: Call) -> Result<Answer, Error> {
    let (team, member) = whose(&call);
    let which = call.arguments.text("which");
    let taken = served.agents.accept(&team, &member, which.as_deref());
    shown(&taken.await?)
}

fn complete() -> Tool {
    Tool {
        name: "team_complete",
        title: "Complete a handoff",
        about: "Mark a handoff as done, with its result. Use it when the deliverable is ready.",
        fields: vec![
            team(),
            member(),
            which(),
            Field::text("result", PROSE, "The result"),
        ],
        touch: Touch::Changes,
        profiles: AGENT,
        run: |served, call| Box::pin(run_complete(served, call)),
    }
}

async fn run_complete(served: &Served, call: Call) -> Result<Answer, Error> {
    let (team, member) = whose(&call);
    let [which, result] = ["which", "result"].map(|name| call.arguments.text(name));
    let (which, result) = (which.as_deref(), result.as_deref());
    let done = served
        .agents
        .complete(&call.ctx, &team, &member, which, result);
    shown(&done.await?)
}

fn shown(handoff: &HandoffInfo) -> Result<Answer, Error> {
    let text = format!("{}: {} ({})", handoff.heading, handoff.task, handoff.status);
    let answer = Answer::with(text, handoff)?;
    Ok(answer.within(super::super::answer::TOKENS))
}

fn block() -> Tool {
    let blocker = vec![
        Field::text("title", LINE, "Title of the blocker").required(),
        Field::text("by", NAME, "The member that found it").required(),
        Field::text("blocking", LINE, "The blocked work"),
        Field::text("owner", NAME, "The member that works on it"),
    ];
    let resolved = vec![
        Field::text("id", 50, "Such as BLOCKER-001").required(),
        Field::text("resolution", LINE, "How it was resolved").required(),
    ];
    Tool {
        name: "team_block",
        title: "Report or resolve a blocker",
        about: "Report something that blocks the team (blocker), or that it is resolved \
            (resolved). Use it as soon as you are blocked.",
        fields: vec![
            team(),
            Field::parts("blocker", blocker, "A new blocker"),
            Field::parts("resolved", resolved, "A blocker that was resolved"),
        ],
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_block(served, call)),
    }
}

async fn run_block(served: &Served, call: Call) -> Result<Answer, Error> {
    let request = call.arguments.read()?;
    let done = api::block(&served.agents, &call.ctx, &request).await?;
    let verb = if done.resolved { "resolved" } else { "logged" };
    let answer = Answer::with(format!("{} is {verb}.", done.id), &done)?;
    Ok(answer)
}

fn status() -> Tool {
    Tool {
        name: "team_status",
        title: "Status of a team",
        about: "Show a team's members, open handoffs and blockers, and who should be informed. \
            Use it to find the next work.",
        fields: vec![team(), max_tokens()],
        touch: Touch::Reads,
        profiles: AGENT,
        run: |served, call| Box::pin(run_status(served, call)),
    }
}

async fn run_status(served: &Served, call: Call) -> Result<Answer, Error> {
    let team = call.arguments.needed("team");
    let status = served.agents.team_status(&call.ctx, &team).await?;
    let items = status.handoffs.len().max(status.blockers.len());
    Answer::fit(&call, items, |room| {
        let chars = room.chars.min(300);
        let members = status.team.members.iter().take(MANY);
        let members: Vec<&str> = members.map(String::as_str).collect();
        let lead = status.team.lead.as_deref();
        let lead = lead
            .map(|lead| format!(" (lead {lead})"))
            .unwrap_or_default();
        let mut text = format!("{}{lead}: {}\n", status.team.name, members.join(", "));
        for one in status.handoffs.iter().take(room.items) {
            let (heading, task) = (excerpt(&one.heading, chars), excerpt(&one.task, chars));
            text.push_str(&format!("handoff {heading}: {task} ({})\n", one.status));
        }
        for one in status.blockers.iter().take(room.items) {
            let title = excerpt(&one.title, chars);
            let escalation = one.escalation;
            text.push_str(&format!("{}: {title}; escalation: {escalation}\n", one.id));
        }
        let left = |count: usize| count.saturating_sub(room.items);
        let left_out = left(status.handoffs.len()) + left(status.blockers.len());
        if left_out > 0 {
            text.push_str(&format!("{left_out} more: ask for a larger max_tokens\n"));
        }
        let handoffs: Vec<_> = status
            .handoffs
            .iter()
            .take(room.items)
            .map(|one| {
                json!({
                    "heading": excerpt(&one.heading, chars), "from": one.from, "to": one.to,
                    "task": excerpt(&one.task, chars), "status": one.status,
                })
            })
            .collect();
        let blockers: Vec<_> = status
            .blockers
            .iter()
            .take(room.items)
            .map(|one| {
                json!({
                    "id": one.id, "title": excerpt(&one.title, chars), "owner": one.owner,
                    "minutes": one.minutes, "escalation": one.escalation,
                })
            })
            .collect();
        let data = json!({
            "team": status.team.name, "lead": status.team.lead, "members": members,
            "handoffs": handoffs, "blockers": blockers, "left_out": left_out,
        });
        Answer::with(text, &data)
    })
}
