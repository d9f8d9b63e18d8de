//! Operations on teams of agents: shared files, handoffs, blockers.

use mnemon_engine::agentfiles::{
    Activation, AgentFiles, Blocker, ChangedEntry, HandoffInfo, TeamStatus, Whose,
};
use serde::{Deserialize, Serialize};

use super::agents::{
    self, Context, Created, Files, MANY, NAME, Written, change_context, change_entry,
    context_fields, decision, entry, entry_change, file_notes, line, lines, prose, task,
};
use super::arguments::read;
use super::{Arguments, Field, Operation, Spelling};
use crate::Error;

fn team() -> Field {
    let about = "The team, or NAMESPACE/TEAM where several have the name";
    let field = Field::text("team", 2 * NAME + 1, about).required();
    let field = field.or(&["name", "team_name"]);
    field.positional(Spelling::Positional, "TEAM")
}

fn member() -> Field {
    let field = Field::text(
        "member",
        NAME,
        "The member: the name of its folder in the team",
    )
    .required();
    let field = field.or(&["agent", "who"]);
    field.positional(Spelling::Positional, "MEMBER")
}

/// An option that names a member.
fn one(name: &'static str, about: &'static str) -> Field {
    Field::text(name, NAME, about).value("MEMBER")
}

/// The handoff of a member.
fn handoff() -> Vec<Field> {
    let which = line(
        "which",
        "A part of its heading or task, where there are several",
    );
    let which = which.positional(Spelling::Positional, "WHICH");
    vec![team(), member(), which]
}

pub(crate) struct TeamNew;

impl Operation<AgentFiles> for TeamNew {
    const COMMAND: &'static str = "team new";
    const TOOL: &'static str = "team_new";
    type Answer = Created;

    fn fields() -> Vec<Field> {
        let members = Field::texts("members", MANY, NAME, "The other members");
        vec![
            team(),
            one("lead", "The member that leads the team"),
            members.option("member"),
        ]
    }

    async fn run(access: &Files<'_>, arguments: Arguments) -> Result<Created, Error> {
        let new = arguments.read()?;
        let files = access.memory.begin_team(access.ctx, &new).await?;
        Ok(Created { files })
    }
}

pub(crate) struct TeamActivate;

impl Operation<AgentFiles> for TeamActivate {
    const COMMAND: &'static str = "team activate";
    const TOOL: &'static str = "team_activate";
    type Answer = Activation;

    fn fields() -> Vec<Field> {
        vec![team(), member(), task()]
    }

    async fn run(access: &Files<'_>, arguments: Arguments) -> Result<Activation, Error> {
        let [team, member] = ["team", "member"].map(|name| arguments.needed(name));
        let task = arguments.text("task");
        let activation = access
            .memory
            .activate_member(&team, &member, task.as_deref());
        Ok(activation.await?)
    }
}

pub(crate) struct TeamContext;

impl Operation<AgentFiles> for TeamContext {
    const COMMAND: &'static str = "team context";
    const TOOL: &'static str = "team_context";
    type Answer = Context;

    fn fields() -> Vec<Field> {
        context_fields(vec![team()])
    }

    async fn run(access: &Files<'_>, mut arguments: Arguments) -> Result<Context, Error> {
        let team = arguments.take_needed("team");
        change_context(access, access.memory, Whose::Team(&team), arguments).await
    }
}

pub(crate) struct TeamDecide;

impl Operation<AgentFiles> for TeamDecide {
    const COMMAND: &'static str = "team decide";
    const TOOL: &'static str = "team_decide";
    type Answer = Written;

    fn fields() -> Vec<Field> {
        let who = vec![
            one("proposed_by", "The member that proposed it"),
            one("approved_by", "The member that approved it"),
            lines("dissent", "dissent", "Views against it"),
        ];
        [vec![team()], decision(), who].concat()
    }

    async fn run(access: &Files<'_>, mut arguments: Arguments) -> Result<Written, Error> {
        let team = arguments.take_needed("team");
        let decision = arguments.read()?;
        let decided = access
            .memory
            .decide(access.ctx, Whose::Team(&team), &decision);
        let file = decided.await?;
        Ok(Written { file })
    }
}

pub(crate) struct TeamEdit;

impl Operation<AgentFiles> for TeamEdit {
    const COMMAND: &'static str = "team edit";
    const TOOL: &'static str = "team_edit";
    type Answer = ChangedEntry;

    fn fields() -> Vec<Field> {
        entry_change(team())
    }

    async fn run(access: &Files<'_>, mut arguments: Arguments) -> Result<ChangedEntry, Error> {
        let team = arguments.take_needed("team");
        change_entry(access, Whose::Team(&team), arguments).await
    }
}

/// The tool for this is `team_edit`.
pub(crate) struct TeamRemove;

impl Operation<AgentFiles> for TeamRemove {
    const COMMAND: &'static str = "team remove";
    const TOOL: &'static str = "";
    type Answer = ChangedEntry;

    fn fields() -> Vec<Field> {
        entry(team())
    }

    async fn run(access: &Files<'_>, mut arguments: Arguments) -> Result<ChangedEntry, Error> {
        arguments.set("remove", true);
        TeamEdit::run(access, arguments).await
    }
}

pub(crate) struct TeamHandoff;

impl Operation<AgentFiles> for TeamHandoff {
    const COMMAND: &'static str = "team handoff";
    const TOOL: &'static str = "team_handoff";
    type Answer = HandoffInfo;

    fn fields() -> Vec<Field> {
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

    async fn run(access: &Files<'_>, mut arguments: Arguments) -> Result<HandoffInfo, Error> {
        let team = arguments.take_needed("team");
        let handoff = arguments.read()?;
        Ok(access.memory.hand_off(access.ctx, &team, &handoff).await?)
    }
}

pub(crate) struct TeamAccept;

impl Operation<AgentFiles> for TeamAccept {
    const COMMAND: &'static str = "team accept";
    const TOOL: &'static str = "team_accept";
    type Answer = HandoffInfo;

    fn fields() -> Vec<Field> {
        handoff()
    }

    async fn run(access: &Files<'_>, arguments: Arguments) -> Result<HandoffInfo, Error> {
        let [team, member] = ["team", "member"].map(|name| arguments.needed(name));
        let which = arguments.text("which");
        let taken = access.memory.accept(&team, &member, which.as_deref());
        Ok(taken.await?)
    }
}

pub(crate) struct TeamComplete;

impl Operation<AgentFiles> for TeamComplete {
    const COMMAND: &'static str = "team complete";
    const TOOL: &'static str = "team_complete";
    type Answer = HandoffInfo;

    fn fields() -> Vec<Field> {
        let mut fields = handoff();
        fields.push(prose("result", "The result"));
        fields
    }

    async fn run(access: &Files<'_>, arguments: Arguments) -> Result<HandoffInfo, Error> {
        let [team, member] = ["team", "member"].map(|name| arguments.needed(name));
        let [which, result] = ["which", "result"].map(|name| arguments.text(name));
        let (which, result) = (which.as_deref(), result.as_deref());
        let (agents, ctx) = (access.memory, access.ctx);
        Ok(agents.complete(ctx, &team, &member, which, result).await?)
    }
}

/// A blocker that was written or resolved.
#[derive(Debug, Serialize)]
pub(crate) struct Blocked {
    pub(crate) id: String,
    pub(crate) resolved: bool,
}

#[derive(Deserialize)]
struct Resolved {
    id: String,
    resolution: String,
}

pub(crate) struct TeamBlock;

impl Operation<AgentFiles> for TeamBlock {
    const COMMAND: &'static str = "team block";
    const TOOL: &'static str = "team_block";
    type Answer = Blocked;

    fn fields() -> Vec<Field> {
        let blocker = vec![
            agents::title("The blocker in a few words"),
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
                .or_else("resolved"),
            Field::parts("resolved", resolved, gone).by_parts(),
        ]
    }

    async fn run(access: &Files<'_>, mut arguments: Arguments) -> Result<Blocked, Error> {
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
}

pub(crate) struct TeamState;

impl Operation<AgentFiles> for TeamState {
    const COMMAND: &'static str = "team status";
    const TOOL: &'static str = "team_status";
    type Answer = TeamStatus;

    fn fields() -> Vec<Field> {
        vec![team()]
    }

    async fn run(access: &Files<'_>, arguments: Arguments) -> Result<TeamStatus, Error> {
        let team = arguments.needed("team");
        Ok(access.memory.team_status(access.ctx, &team).await?)
    }
}
