//! `mnemon team`

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::{
    AgentFiles, Blocker, Decision, FileChange, Handoff, HandoffInfo, NewTeam, Whose,
};
use serde_json::json;

use super::agent::context::{self, ChangeArgs};
use super::agent::{Root, entries, show_activation, show_made};
use super::door::Door;
use super::input::given_or_file as given;
use super::text;
use crate::{Error, api};

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

/// The team that is meant.
#[derive(Debug, clap::Args)]
struct Name {
    /// The team, or NAMESPACE/TEAM where several have the name
    #[arg(value_name = "TEAM")]
    team: String,
}

/// A member of a team.
#[derive(Debug, clap::Args)]
struct MemberName {
    #[command(flatten)]
    name: Name,
    /// The member: the name of its folder in the team
    #[arg(value_name = "MEMBER")]
    member: String,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the teams
    #[command(visible_alias = "ls")]
    List,
    /// Create a team and its members, or add missing parts to a team that exists
    ///
    /// A member gets a definition (agent.md) and an empty memory. If an agent of that name exists,
    /// the member uses the memory of that agent.
    New {
        /// The name of the team, or NAMESPACE/TEAM
        #[arg(value_name = "TEAM")]
        team: String,
        /// The member that leads the team
        #[arg(long, value_name = "MEMBER")]
        lead: Option<String>,
        /// Another member; may be repeated
        #[arg(long, value_name = "MEMBER")]
        member: Vec<String>,
    },
    /// Print the prompt of a member: shared memory, its own context, handoffs, definition
    Activate {
        #[command(flatten)]
        who: MemberName,
        /// The task, which selects the knowledge
        #[arg(long, value_name = "TEXT")]
        task: Option<String>,
    },
    /// Change single lines of the team's context; without options, print it
    #[command(visible_alias = "show")]
    Context {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        change: Box<ChangeArgs>,
    },
    /// Log a decision of the team
    Decide(Box<DecideArgs>),
    /// Change a decision of the team; git keeps the text that was there before
    Edit {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        edit: entries::EditArgs,
    },
    /// Remove a decision of the team, and print its text
    #[command(visible_alias = "rm")]
    Remove {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        which: entries::WhichArgs,
    },
    Handoff(Box<HandoffArgs>),
    /// Accept a handoff that waits for a member
    Accept {
        #[command(flatten)]
        who: MemberName,
        /// A part of the heading or the task, where several wait
        #[arg(value_name = "WHICH")]
        which: Option<String>,
    },
    /// Complete a handoff
    Complete {
        #[command(flatten)]
        who: MemberName,
        /// A part of the heading or the task, where several are open
        #[arg(value_name = "WHICH")]
        which: Option<String>,
        /// The result; - reads it from stdin, @PATH from a file
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        result: Option<String>,
    },
    Block(BlockArgs),
    /// Show open handoffs and blockers, and who should be informed
    Status {
        #[command(flatten)]
        name: Name,
    },
}

#[derive(Debug, clap::Args)]
struct DecideArgs {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    decision: entries::DecisionArgs,
    /// The member that proposed it
    #[arg(long, value_name = "MEMBER")]
    proposed_by: Option<String>,
    /// The member that approved it
    #[arg(long, value_name = "MEMBER")]
    approved_by: Option<String>,
    /// A view against it; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dissent: Vec<String>,
}

/// Hand work to another member
#[derive(Debug, clap::Args)]
struct HandoffArgs {
    #[command(flatten)]
    name: Name,
    /// The member that hands the work over
    #[arg(long, value_name = "MEMBER")]
    from: String,
    /// The member that gets the work
    #[arg(long, value_name = "MEMBER")]
    to: String,
    /// The work to be done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    task: String,
    /// Information that the other member needs; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    context: String,
    /// The result that is expected
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    deliverable: String,
    /// A file that matters, and why: PATH=NOTE; may be repeated
    #[arg(long, value_name = "PATH=NOTE")]
    file: Vec<String>,
    /// A deadline or a priority
    #[arg(long, value_name = "TEXT")]
    priority: Option<String>,
    /// The work is planned and should not begin yet
    #[arg(long)]
    planned: bool,
}

/// Report a blocker of the team, or close one with --resolve
#[derive(Debug, clap::Args)]
struct BlockArgs {
    #[command(flatten)]
    name: Name,
    /// The blocker, on one line
    #[arg(
        value_name = "TITLE",
        required_unless_present = "resolve",
        requires = "by"
    )]
    title: Option<String>,
    /// The member that found it
    #[arg(long, value_name = "MEMBER")]
    by: Option<String>,
    /// The work that it blocks
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    blocking: Option<String>,
    /// The member that works on it
    #[arg(long, value_name = "MEMBER")]
    owner: Option<String>,
    /// The blocker to close, such as BLOCKER-001
    #[arg(
        long,
        value_name = "ID",
        requires = "resolution",
        conflicts_with = "title"
    )]
    resolve: Option<String>,
    /// How it was resolved
    #[arg(
        long,
        value_name = "TEXT",
        requires = "resolve",
        allow_hyphen_values = true
    )]
    resolution: Option<String>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let agents = args.root.open(door)?;
    match args.what {
        What::List => list(&agents, door).await,
        What::New { team, lead, member } => {
            let new = NewTeam {
                team,
                lead,
                members: member,
            };
            let files = agents.begin_team(&door.ctx()?, &new).await?;
            show_made(&files, door)
        }
        What::Activate { who, task } => {
            let (team, member) = (&who.name.team, &who.member);
            let told = agents
                .activate_member(team, member, task.as_deref())
                .await?;
            show_activation(&told, door)
        }
        What::Context { name, change } => {
            context::run(*change, Whose::Team(&name.team), &agents, door).await
        }
        What::Decide(args) => decide(*args, &agents, door).await,
        What::Edit { name, edit } => {
            entries::change(&edit.read()?, Whose::Team(&name.team), &agents, door).await
        }
        What::Remove { name, which } => {
            let change = which.read(true);
            entries::change(&change, Whose::Team(&name.team), &agents, door).await
        }
        What::Handoff(args) => handoff(*args, &agents, door).await,
        What::Accept { who, which } => {
            let (team, member) = (&who.name.team, &who.member);
            let taken = agents.accept(team, member, which.as_deref()).await?;
            show_handoff(&taken, door)
        }
        What::Complete { who, which, result } => {
            let result = result.as_deref().map(given).transpose()?;
            let (which, result) = (which.as_deref(), result.as_deref());
            let (team, member, ctx) = (&who.name.team, &who.member, door.ctx()?);
            let done = agents.complete(&ctx, team, member, which, result);
            show_handoff(&done.await?, door)
        }
        What::Block(args) => block(args, &agents, door).await,
        What::Status { name } => status(&name.team, &agents, door).await,
    }
}

async fn decide(args: DecideArgs, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let decision = Decision {
        proposed_by: args.proposed_by,
        approved_by: args.approved_by,
        dissent: args.dissent,
        ..args.decision.read()?
    };
    entries::decide(&decision, Whose::Team(&args.name.team), agents, door).await
}

async fn list(agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let listed = agents.teams().await?;
    return_json!(door, &json!({ "teams": listed }));
    if listed.is_empty() {
        return door
            .out
            .line("there are no teams; make one with `mnemon team new NAME --lead MEMBER`");
    }
    let rows = listed.iter().map(|team| {
        let lead = team.lead.clone().unwrap_or_default();
        vec![
            team.name.clone(),
            lead,
            team.members.join(" "),
            team.folder.clone(),
        ]
    });
    door.out
        .table(&["team", "lead", "members", "folder"], rows.collect())
}

async fn handoff(args: HandoffArgs, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let files = args.file.iter().map(|file| {
        let (file, change) = file.split_once('=').ok_or_else(|| {
            Invalid::new(
                "file",
                format!("`{}` is not PATH=NOTE", file.escape_debug()),
            )
        })?;
        Ok(FileChange {
            file: file.to_owned(),
            change: change.to_owned(),
        })
    });
    let handoff = Handoff {
        files: files.collect::<Result<_, Invalid>>()?,
        from: args.from,
        to: args.to,
        task: args.task,
        context: given(&args.context)?,
        deliverable: args.deliverable,
        priority: args.priority,
        planned: args.planned,
    };
    let given = agents
        .hand_off(&door.ctx()?, &args.name.team, &handoff)
        .await?;
    show_handoff(&given, door)
}

fn show_handoff(handoff: &HandoffInfo, door: &mut Door) -> Result<(), Error> {
    return_json!(door, handoff);
    door.out.line(text::one_line(&format!(
        "{}  {}",
        handoff.status, handoff.heading
    )))
}

async fn block(args: BlockArgs, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let by = args.by.unwrap_or_default();
    let blocker = args.title.map(|title| Blocker {
        title,
        by,
        blocking: args.blocking.unwrap_or_default(),
        owner: args.owner,
    });
    let resolved = args.resolve.map(|id| api::team::Resolved {
        id,
        resolution: args.resolution.unwrap_or_default(),
    });
    let request = api::team::BlockRequest {
        team: args.name.team,
        blocker,
        resolved,
    };
    let done = api::team::block(agents, &door.ctx()?, &request).await?;
    return_json!(door, &done);
    let word = if done.resolved { "resolved" } else { "wrote" };
    door.out.line(format!("{word} {}", done.id))
}

async fn status(team: &str, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let status = agents.team_status(&door.ctx()?, team).await?;
    return_json!(door, &status);
    let team = &status.team;
    let lead = team.lead.as_deref();
    let lead = lead.map_or("no lead".to_owned(), |lead| format!("lead {lead}"));
    let members = match team.members.is_empty() {
        true => "no members".to_owned(),
        false => format!("members {}", team.members.join(", ")),
    };
    door.out.line(format!("{}: {lead}; {members}", team.name))?;
    for handoff in &status.handoffs {
        let task = text::cut(&text::one_line(&handoff.task), 60);
        door.out.line(text::one_line(&format!(
            "{}  {}  {task}",
            handoff.status, handoff.heading
        )))?;
    }
    for blocker in &status.blockers {
        let age = blocker
            .minutes
            .map(|minutes| format!(", {}", age(minutes)))
            .unwrap_or_default();
        let line = format!(
            "{}: {} (owner {}{age}; escalation: {})",
            blocker.id, blocker.title, blocker.owner, blocker.escalation
        );
        door.out.line(text::one_line(&line))?;
    }
    if status.handoffs.is_empty() && status.blockers.is_empty() {
        door.out.line("no open handoffs, no blockers")?;
    }
    Ok(())
}

/// How long ago, as exactly as it matters.
fn age(minutes: i64) -> String {
    match minutes / 60 {
        0 => format!("{minutes} min"),
        hours @ 1..48 => format!("{hours} h {} min", minutes % 60),
        hours => text::count(hours.unsigned_abs() / 24, "day"),
    }
}
