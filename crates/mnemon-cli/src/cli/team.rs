//! `mnemon team`

use mnemon_engine::agentfiles::{HandoffInfo, TeamStatus};

use super::agent::{OnFiles, Root, note_problems};
use super::door::Door;
use super::shared::Shown;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::teams::{self, Blocked, Teams};

/// Manage teams of agents: shared context and decisions, handoffs, blockers
///
/// A team is a folder below .microai/teams or .microai/agents/NAMESPACE/teams. Each member has a
/// folder; the folder team-memory is shared. The memory of a member is read and written by `mnemon
/// agent`, under the name TEAM/MEMBER.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon team new core --lead ada --member linus\n  \
    mnemon team list\n  \
    mnemon team context core --task \"Ship version 2\"\n  \
    mnemon team decide core \"Use SQLite\" --decision \"One file\" --proposed-by linus --approved-by ada\n  \
    mnemon team handoff core --from ada --to linus --task \"Fix it\" --context \"It leaks\" --deliverable \"a patch\"\n  \
    mnemon team activate core linus\n  \
    mnemon team accept core linus\n  \
    mnemon team complete core linus --result \"It holds\"\n  \
    mnemon team block core \"No access\" --by linus\n  \
    mnemon team block core --resolve BLOCKER-001 --resolution \"Got it\"\n  \
    mnemon team status core")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the teams
    #[command(visible_alias = "ls")]
    List(OnFiles<teams::List>),
    /// Create a team and its members, or add missing parts to a team that exists
    ///
    /// A member gets a definition (agent.md) and an empty memory. If an agent of that name exists,
    /// the member uses the memory of that agent.
    New(OnFiles<teams::New>),
    /// Print the prompt of a member: shared memory, its own context, handoffs, definition
    Activate(OnFiles<teams::Activate>),
    /// Change single lines of the team's context; without options, print it
    #[command(visible_alias = "show")]
    Context(OnFiles<teams::Context>),
    /// Log a decision of the team
    Decide(OnFiles<teams::Decide>),
    /// Change a decision of the team; git keeps the text that was there before
    Edit(OnFiles<teams::Edit>),
    /// Remove a decision of the team, and print its text
    #[command(visible_alias = "rm")]
    Remove(OnFiles<teams::Remove>),
    /// Hand work to another member
    Handoff(OnFiles<teams::Handoff>),
    /// Accept a handoff that waits for a member
    Accept(OnFiles<teams::Accept>),
    /// Complete a handoff
    Complete(OnFiles<teams::Complete>),
    /// Report a blocker of the team, or close one with --resolve
    Block(OnFiles<teams::Block>),
    /// Show open handoffs and blockers, and who should be informed
    Status(OnFiles<teams::Status>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let agents = args.root.open(door)?;
    match args.what {
        What::List(args) => args.run_on(&agents, door).await,
        What::New(args) => args.run_on(&agents, door).await,
        What::Activate(args) => args.run_on(&agents, door).await,
        What::Context(args) => args.run_on(&agents, door).await,
        What::Decide(args) => args.run_on(&agents, door).await,
        What::Edit(args) => args.run_on(&agents, door).await,
        What::Remove(args) => args.run_on(&agents, door).await,
        What::Handoff(args) => args.run_on(&agents, door).await,
        What::Accept(args) => args.run_on(&agents, door).await,
        What::Complete(args) => args.run_on(&agents, door).await,
        What::Block(args) => args.run_on(&agents, door).await,
        What::Status(args) => args.run_on(&agents, door).await,
    }
}

impl Shown for Teams {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.teams.is_empty() {
            return door
                .out
                .line("there are no teams; make one with `mnemon team new NAME --lead MEMBER`");
        }
        note_problems(self.teams.iter().flat_map(|team| &team.problems), door);
        let rows = self.teams.iter().map(|team| {
            let lead = team.lead.clone().unwrap_or_default();
            let members = team.members.join(" ");
            vec![team.name.clone(), lead, members, team.folder.clone()]
        });
        door.out
            .table(&["team", "lead", "members", "folder"], rows.collect())
    }
}

impl Shown for HandoffInfo {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let line = format!("{}  {}", self.status, self.heading);
        door.out.line(text::one_line(&line))
    }
}

impl Shown for Blocked {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let verb = if self.resolved { "resolved" } else { "wrote" };
        door.out.line(format!("{verb} {}", self.id))
    }
}

impl Shown for TeamStatus {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let team = &self.team;
        note_problems(team.problems.iter(), door);
        let lead = team.lead.as_deref();
        let lead = lead.map_or("no lead".to_owned(), |lead| format!("lead {lead}"));
        let members = match team.members.is_empty() {
            true => "no members".to_owned(),
            false => format!("members {}", team.members.join(", ")),
        };
        door.out.line(format!("{}: {lead}; {members}", team.name))?;
        for handoff in &self.handoffs {
            let task = text::cut(&text::one_line(&handoff.task), 60);
            let line = format!("{}  {}  {task}", handoff.status, handoff.heading);
            door.out.line(text::one_line(&line))?;
        }
        for blocker in &self.blockers {
            let age = blocker.minutes.map(|minutes| format!(", {}", age(minutes)));
            let age = age.unwrap_or_default();
            let line = format!(
                "{}: {} (owner {}{age}; escalation: {})",
                blocker.id, blocker.title, blocker.owner, blocker.escalation
            );
            door.out.line(text::one_line(&line))?;
        }
        match self.handoffs.is_empty() && self.blockers.is_empty() {
            true => door.out.line("no open handoffs, no blockers"),
            false => Ok(()),
        }
    }
}

/// How long ago, as exactly as it matters.
fn age(minutes: i64) -> String {
    match minutes / 60 {
        0 => format!("{minutes} min"),
        hours @ 1..48 => format!("{hours} h {} min", minutes % 60),
        hours => text::count(hours.unsigned_abs() / 24, "day"),
    }
}
