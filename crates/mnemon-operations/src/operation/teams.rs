//! Operations on teams of agents: shared files, handoffs, blockers.

use mnemon_engine::agentfiles::{
    Activation, AgentFiles, Blocker, ChangedEntry, HandoffInfo, TeamInfo, TeamStatus, Whose,
};
use serde::{Deserialize, Serialize};

use super::agents::{
    Created, MANY, NAME, ShownContext, Written, change_context, change_entry, context_fields,
    decision, entry, entry_change, file_notes, line, lines, prose, task, title,
};
use super::arguments::read;
use super::files::{Files, operations_on_files};
use super::{Arguments, Field, Spelling};
use crate::Error;

operations_on_files! {
    List: "team list", "", vec![], list -> Teams;
    New: "team new", "team_new", new_fields(), new -> Created;
    Activate: "team activate", "team_activate", vec![team(), member(), task()], activate -> Activation;
    Context: "team context", "team_context", context_fields(vec![team()]), context -> ShownContext;
    Decide: "team decide", "team_decide", decide_fields(), decide -> Written;
    Edit: "team edit", "team_edit", entry_change(team()), edit -> ChangedEntry;
    Remove: "team remove", "", entry(team()), remove -> ChangedEntry;
    Handoff: "team handoff", "team_handoff", handoff_fields(), handoff -> HandoffInfo;
    Accept: "team accept", "team_accept", open_handoff(), accept -> HandoffInfo;
    Complete: "team complete", "team_complete", complete_fields(), complete -> HandoffInfo;
    Block: "team block", "team_block", block_fields(), block -> Blocked;
    Status: "team status", "team_status", vec![team()], status -> TeamStatus;
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Teams {
    pub teams: Vec<TeamInfo>,
}

async fn list(access: &Files<'_>, _: Arguments) -> Result<Teams, Error> {
    let teams = access.memory.teams().await?;
    Ok(Teams { teams })
}

fn team() -> Field {
    let about = "The team, or NAMESPACE/TEAM where several have the name";
    let field = Field::text("team", 2 * NAME + 1, about).required();
    let field = field.or(&["name", "team_name"]);
    field.positional(Spelling::Positional, "TEAM")
}

fn member() -> Field {
    let about = "The member: the name of its folder in the team";
    let field = Field::text("member", NAME, about).required();
    let field = field.or(&["agent", "who"]);
    field.positional(Spelling::Positional, "MEMBER")
}

/// An option that names a member.
fn one(name: &'static str, about: &'static str) -> Field {
    Field::text(name, NAME, about).value("MEMBER")
}

/// The handoff of a member.
fn open_handoff() -> Vec<Field> {
    let about = "A part of its heading or task, where there are several";
    let which = line("which", about).positional(Spelling::Positional, "WHICH");
    vec![team(), member(), which]
}

fn new_fields() -> Vec<Field> {
    let members = Field::texts("members", MANY, NAME, "The other members");
    vec![
        team(),
        one("lead", "The member that leads the team"),
        members.option("member"),
    ]
}

async fn new(access: &Files<'_>, arguments: Arguments) -> Result<Created, Error> {
    let new = arguments.read()?;
    let files = access.memory.begin_team(access.ctx, &new).await?;
    Ok(Created { files })
}

async fn activate(access: &Files<'_>, arguments: Arguments) -> Result<Activation, Error> {
    let [team, member] = ["team", "member"].map(|name| arguments.needed(name));
    let task = arguments.text("task");
    let activation = access
        .memory
        .activate_member(&team, &member, task.as_deref());
    Ok(activation.await?)
}

async fn context(access: &Files<'_>, mut arguments: Arguments) -> Result<ShownContext, Error> {
    let team = arguments.take_needed("team");
    change_context(access, access.memory, Whose::Team(&team), arguments).await
}

fn decide_fields() -> Vec<Field> {
    let who = vec![
        one("proposed_by", "The member that proposed it"),
        one("approved_by", "The member that approved it"),
        lines("dissent", "dissent", "Views against it"),
    ];
    [vec![team()], decision(), who].concat()
}

async fn decide(access: &Files<'_>, mut arguments: Arguments) -> Result<Written, Error> {
    let team = arguments.take_needed("team");
    let decision = arguments.read()?;
    let decided = access
        .memory
        .decide(access.ctx, Whose::Team(&team), &decision);
    let file = decided.await?;
    Ok(Written { file })
}

async fn edit(access: &Files<'_>, mut arguments: Arguments) -> Result<ChangedEntry, Error> {
    let team = arguments.take_needed("team");
    change_entry(access, Whose::Team(&team), arguments).await
}

async fn remove(access: &Files<'_>, mut arguments: Arguments) -> Result<ChangedEntry, Error> {
    arguments.set("remove", true);
    edit(access, arguments).await
}

fn handoff_fields() -> Vec<Field> {
    let files = "Files that matter, and why";
    vec![
        team(),
        one("from", "The member that hands over").required(),
        one("to", "The member that receives").required(),
        line("task", "The work to be done").required(),
        prose("context", "Necessary information").required(),
        prose("deliverable", "The expected result").required(),
        Field::list("files", file_notes(), MANY, files).by_values("file"),
        line("priority", "A deadline or a priority"),
        Field::flag("planned", "Planned work: it must not start yet"),
    ]
}

async fn handoff(access: &Files<'_>, mut arguments: Arguments) -> Result<HandoffInfo, Error> {
    let team = arguments.take_needed("team");
    let handoff = arguments.read()?;
    Ok(access.memory.hand_off(access.ctx, &team, &handoff).await?)
}

async fn accept(access: &Files<'_>, arguments: Arguments) -> Result<HandoffInfo, Error> {
    let [team, member] = ["team", "member"].map(|name| arguments.needed(name));
    let which = arguments.text("which");
    let taken = access.memory.accept(&team, &member, which.as_deref());
    Ok(taken.await?)
}

fn complete_fields() -> Vec<Field> {
    let mut fields = open_handoff();
    fields.push(prose("result", "The result"));
    fields
}

async fn complete(access: &Files<'_>, arguments: Arguments) -> Result<HandoffInfo, Error> {
    let [team, member] = ["team", "member"].map(|name| arguments.needed(name));
    let [which, result] = ["which", "result"].map(|name| arguments.text(name));
    let (which, result) = (which.as_deref(), result.as_deref());
    let (agents, ctx) = (access.memory, access.ctx);
    Ok(agents.complete(ctx, &team, &member, which, result).await?)
}

/// A blocker that was written or resolved.
#[derive(Debug, Serialize, Deserialize)]
pub struct Blocked {
    pub id: String,
    pub resolved: bool,
}

#[derive(Deserialize)]
struct Resolved {
    id: String,
    resolution: String,
}

fn block_fields() -> Vec<Field> {
    let blocker = vec![
        title("The blocker in a few words"),
        one("by", "The member that found it").required(),
        line("blocking", "The blocked work"),
        one("owner", "The member that works on it"),
    ];
    let id = Field::text(
        "id",
        50,
        "The blocker that is resolved, such as BLOCKER-001",
    );
    let resolved = vec![
        id.required().option("resolve").value("ID"),
        line("resolution", "How it was resolved").required(),
    ];
    let gone = "A blocker that was resolved";
    vec![
        team(),
        Field::parts("blocker", blocker, "A new blocker")
            .by_parts()
            .or_else(&["resolved"]),
        Field::parts("resolved", resolved, gone).by_parts(),
    ]
}

async fn block(access: &Files<'_>, mut arguments: Arguments) -> Result<Blocked, Error> {
    let (agents, ctx) = (access.memory, access.ctx);
    let team = arguments.needed("team");
    if let Some(resolved) = arguments.take("resolved") {
        let Resolved { id, resolution } = read(resolved)?;
        let id = agents.unblock(ctx, &team, &id, &resolution).await?;
        return Ok(Blocked { id, resolved: true });
    }
    let blocker: Blocker = read(arguments.take("blocker").unwrap_or_default())?;
    let id = agents.block(ctx, &team, &blocker).await?.id;
    Ok(Blocked {
        id,
        resolved: false,
    })
}

async fn status(access: &Files<'_>, arguments: Arguments) -> Result<TeamStatus, Error> {
    let team = arguments.needed("team");
    Ok(access.memory.team_status(access.ctx, &team).await?)
}
