//! `mnemon team`

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::{AgentFiles, Blocker, FileChange, Handoff, HandoffInfo};
use serde_json::json;

use super::agent::{Root, show_activation};
use super::door::Door;
use super::input::given_or_file as given;
use super::text;
use crate::{Error, api};

/// Teams of agents: shared context, handoffs, blockers
///
/// A team is a folder below .microai/teams or .microai/agents/NAMESPACE/teams; what its members
/// share is in team-memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon team list\n  \
    mnemon team activate core linus\n  \
    mnemon team handoff core --from ada --to linus --task \"Fix it\" --context \"…\" --deliverable \"a patch\"\n  \
    mnemon team accept core linus\n  \
    mnemon team block core \"No access\" --by linus")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The teams there are
    List,
    /// Print exactly what a member is told before it begins
    Activate {
        #[arg(value_name = "TEAM")]
        team: String,
        #[arg(value_name = "MEMBER")]
        member: String,
    },
    Handoff(Box<HandoffArgs>),
    /// Take on work that waits for a member
    Accept {
        #[arg(value_name = "TEAM")]
        team: String,
        #[arg(value_name = "MEMBER")]
        member: String,
        /// A part of the heading or the task, where several wait
        #[arg(value_name = "WHICH")]
        which: Option<String>,
    },
    /// Say that a member's work is done
    Complete {
        #[arg(value_name = "TEAM")]
        team: String,
        #[arg(value_name = "MEMBER")]
        member: String,
        /// A part of the heading or the task, where several are open
        #[arg(value_name = "WHICH")]
        which: Option<String>,
        /// What came of it; - reads it from stdin, @PATH from a file
        #[arg(long, value_name = "TEXT")]
        result: Option<String>,
    },
    Block(BlockArgs),
    /// What waits, what is blocked, and who must hear of it
    Status {
        #[arg(value_name = "TEAM")]
        team: String,
    },
}

/// Give work to another member
#[derive(Debug, clap::Args)]
struct HandoffArgs {
    #[arg(value_name = "TEAM")]
    team: String,
    /// Who gives it
    #[arg(long, value_name = "MEMBER")]
    from: String,
    /// Who gets it
    #[arg(long, value_name = "MEMBER")]
    to: String,
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    task: String,
    /// What one must know to do it; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT")]
    context: String,
    /// What is to come of it
    #[arg(long, value_name = "TEXT")]
    deliverable: String,
    /// A file that matters, and why: PATH=NOTE; may be repeated
    #[arg(long, value_name = "PATH=NOTE")]
    file: Vec<String>,
    /// A deadline or a priority
    #[arg(long, value_name = "TEXT")]
    priority: Option<String>,
    /// It is not to be begun yet
    #[arg(long)]
    planned: bool,
}

/// Say what holds the team up, or with --resolve that it does no longer
#[derive(Debug, clap::Args)]
struct BlockArgs {
    #[arg(value_name = "TEAM")]
    team: String,
    /// What it is, on one line
    #[arg(
        value_name = "TITLE",
        required_unless_present = "resolve",
        requires = "by"
    )]
    title: Option<String>,
    /// Who found it
    #[arg(long, value_name = "MEMBER")]
    by: Option<String>,
    /// What cannot go on
    #[arg(long, value_name = "TEXT")]
    blocking: Option<String>,
    /// Who sees to it
    #[arg(long, value_name = "MEMBER")]
    owner: Option<String>,
    /// A blocker that is gone, such as BLOCKER-001
    #[arg(
        long,
        value_name = "ID",
        requires = "resolution",
        conflicts_with = "title"
    )]
    resolve: Option<String>,
    /// How it went away
    #[arg(long, value_name = "TEXT", requires = "resolve")]
    resolution: Option<String>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let agents = args.root.open(door)?;
    match args.what {
        What::List => list(&agents, door).await,
        What::Activate { team, member } => {
            show_activation(&agents.activate_member(&team, &member).await?, door)
        }
        What::Handoff(args) => handoff(*args, &agents, door).await,
        What::Accept {
            team,
            member,
            which,
        } => {
            let taken = agents.accept(&team, &member, which.as_deref()).await?;
            show_handoff(&taken, door)
        }
        What::Complete {
            team,
            member,
            which,
            result,
        } => {
            let result = result.as_deref().map(given).transpose()?;
            let (which, result) = (which.as_deref(), result.as_deref());
            let ctx = door.ctx()?;
            let done = agents.complete(&ctx, &team, &member, which, result);
            show_handoff(&done.await?, door)
        }
        What::Block(args) => block(args, &agents, door).await,
        What::Status { team } => status(&team, &agents, door).await,
    }
}

async fn list(agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let listed = agents.teams().await?;
    return_json!(door, &json!({ "teams": listed }));
    if listed.is_empty() {
        return door.out.line("there are no teams");
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
    let given = agents.hand_off(&door.ctx()?, &args.team, &handoff).await?;
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
        team: args.team,
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
    let lead = team.lead.as_deref().unwrap_or("nobody");
    door.out.line(format!(
        "{}: lead {lead}; members {}",
        team.name,
        team.members.join(", ")
    ))?;
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
            .map(|minutes| format!(", {} h {} min", minutes / 60, minutes % 60))
            .unwrap_or_default();
        let line = format!(
            "{}: {} (owner {}{age}; escalation: {})",
            blocker.id, blocker.title, blocker.owner, blocker.escalation
        );
        door.out.line(text::one_line(&line))?;
    }
    if status.handoffs.is_empty() && status.blockers.is_empty() {
        door.out.line("nothing waits and nothing is blocked")?;
    }
    Ok(())
}
