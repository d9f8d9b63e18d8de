//! `mnemon agent`

pub(super) mod context;
pub(super) mod entries;

use std::path::PathBuf;

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::{Activation, AgentFiles, Ended, Whose};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::door::Door;
use super::input::given_or_file as given;
use super::text;
use crate::{Error, api, wiring};

/// Manage agents whose memory is Markdown in the repository
///
/// The context, decisions, learnings and sessions of an agent are files that people read, edit and
/// keep in git, below .microai/agents/AGENT/memory. The folder .microai is searched for in the
/// current folder, then in each parent folder up to the root of the project. A change affects only
/// the lines it names, and never overwrites concurrent changes. `mnemon search` finds decisions,
/// learnings and sessions, too, if the project has its own memory (`mnemon init`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon agent new coder --description \"Writes the code\"\n  \
    mnemon agent context coder --task \"Fix the race\" --blocker \"No access\"\n  \
    mnemon agent context coder --done race --resolve access\n  \
    mnemon agent decide coder \"Use Redis\" --decision \"Sessions in Redis\" --reason \"It is there\"\n  \
    mnemon agent edit coder Redis --set Impact \"- One server more\"\n  \
    mnemon agent activate coder --task \"fix the race\"\n  \
    mnemon agent end coder --data '{\"context\": {\"next\": [\"Write a test\"]}}'\n  \
    mnemon agent lint\n  \
    mnemon agent remove coder \"Use Redis\"")]
pub(super) struct Args {
    #[command(flatten)]
    root: Root,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Args)]
pub(super) struct Root {
    /// The folder of agents and teams [env: MNEMON_AGENTS]
    #[arg(long, value_name = "PATH", global = true)]
    root: Option<PathBuf>,
}

impl Root {
    pub(super) fn open(&self, door: &Door) -> Result<AgentFiles, Error> {
        let folder = self.root.as_deref();
        let folder = folder.unwrap_or(&door.config.agents.value);
        let agents = wiring::agents(&door.config.tenant.value, folder)?;
        let language = door.config.agent_language.value;
        Ok(agents.safety(door.config.safety()).language(language))
    }
}

/// The agent that a command reads.
#[derive(Debug, clap::Args)]
struct Name {
    /// The agent, or TEAM/MEMBER for a member of a team
    #[arg(value_name = "AGENT")]
    agent: String,
}

/// The agent that a command writes to.
#[derive(Debug, clap::Args)]
struct Target {
    /// The agent, or TEAM/MEMBER for a member of a team
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Create the agent if it does not exist
    #[arg(long)]
    create: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the agents and the members of teams
    #[command(visible_alias = "ls")]
    List,
    /// Create an agent: its definition and an empty memory
    New {
        /// The name of the agent, or TEAM/MEMBER to add a member to a team
        #[arg(value_name = "AGENT")]
        agent: String,
        /// Purpose of the agent, on one line
        #[arg(long, value_name = "TEXT")]
        description: String,
    },
    /// Print the prompt of an agent: its memory, knowledge and definition
    ///
    /// Prints the whole context, the ten most recent decisions by date, the knowledge for the task,
    /// and the prompt of the agent. The number of tokens is printed on stderr.
    Activate {
        #[command(flatten)]
        name: Name,
        /// The task, which selects the knowledge
        #[arg(long, value_name = "TEXT")]
        task: Option<String>,
    },
    #[command(visible_alias = "show")]
    Context(Box<context::Args>),
    Decide(Box<entries::DecideArgs>),
    Learn(entries::LearnArgs),
    /// Change a decision or a learning; git keeps the text that was there before
    Edit {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        edit: entries::EditArgs,
    },
    /// Remove a decision or a learning, and print its text
    #[command(visible_alias = "rm")]
    Remove {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        which: entries::WhichArgs,
    },
    /// End a session: write context, decisions, learnings and archive, all or none
    ///
    /// The data is a JSON object:
    ///   context    done, reopened, tasks, blockers, resolved, notes: lists of texts;
    ///              state: [{aspect, status, notes}], files: [{file, state, notes}],
    ///              next: list of steps, sections: [{section, text}]
    ///   decisions  [{title, date, context, decision, reasons, alternatives, impact, reversible}]
    ///   learnings  [{title, date, pattern, code: {language, text}, why}]
    ///   archive    {summary, tasks, changes: [{file, change}],
    ///              issues: [{title, problem, solution}], follow_up}
    #[command(verbatim_doc_comment)]
    End {
        #[command(flatten)]
        target: Target,
        /// The changes of the session; - reads them from stdin, @PATH from a file
        #[arg(long, value_name = "JSON|-|@PATH")]
        data: String,
    },
    /// Check the files of an agent, or of all agents and teams
    ///
    /// Warns of entries without a date, reason or context, of vague tasks, and of files that are
    /// too long. Conflict marks (<<<<<<<) are an error: the command then exits with 9.
    Lint {
        /// The agent, or TEAM/MEMBER; without it all agents and teams are checked
        #[arg(value_name = "AGENT")]
        agent: Option<String>,
        /// Exit with 9 if there is any warning
        #[arg(long)]
        strict: bool,
    },
    /// Move old entries and done tasks to memory/archive
    Archive {
        #[command(flatten)]
        name: Name,
    },
    /// Index the entries of the files in the memory in use, so that `mnemon search` finds them
    ///
    /// If the memory in use is the project's own, a search does this automatically. Otherwise a
    /// search writes nothing, and only this command copies the text of the files into your own
    /// memory.
    Index,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let agents = args.root.open(door)?;
    match args.what {
        What::List => list(&agents, door).await,
        What::New { agent, description } => {
            let files = agents.begin(&door.ctx()?, &agent, &description).await?;
            show_made(&files, door)
        }
        What::Activate { name, task } => {
            let activation = agents.activate(&name.agent, task.as_deref()).await?;
            show_activation(&activation, door)
        }
        What::Context(args) => {
            let (target, agents) = (&args.target, agents.creating(args.target.create));
            let agent = target.agent.clone();
            context::run(args.change, Whose::Agent(&agent), &agents, door).await
        }
        What::Decide(args) => {
            let agents = agents.creating(args.target.create);
            let decision = args.decision.read()?;
            entries::decide(&decision, Whose::Agent(&args.target.agent), &agents, door).await
        }
        What::Learn(args) => {
            let agents = agents.creating(args.target.create);
            entries::learn(args, &agents, door).await
        }
        What::Edit { name, edit } => {
            entries::change(&edit.read()?, Whose::Agent(&name.agent), &agents, door).await
        }
        What::Remove { name, which } => {
            let change = which.read(true);
            entries::change(&change, Whose::Agent(&name.agent), &agents, door).await
        }
        What::End { target, data } => {
            let session = object("data", &given(&data)?)?;
            let agents = agents.creating(target.create);
            let ended = agents.end(&door.ctx()?, &target.agent, &session).await?;
            show_ended(&ended, door)
        }
        What::Lint { agent, strict } => lint(agent.as_deref(), strict, &agents, door).await,
        What::Archive { name } => {
            let ended = agents.archive(&door.ctx()?, &name.agent).await?;
            show_ended(&ended, door)
        }
        What::Index => index(&agents, door).await,
    }
}

pub(super) fn show_made(files: &[String], door: &mut Door) -> Result<(), Error> {
    return_json!(door, &json!({ "files": files }));
    let mut files = files.iter();
    files.try_for_each(|file| door.out.line(format!("created {file}")))
}

async fn list(agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let listed = agents.list().await?;
    return_json!(door, &json!({ "agents": listed }));
    if listed.is_empty() {
        return door
            .out
            .line("there are no agents; make one with `mnemon agent new NAME --description TEXT`");
    }
    let width = door.out.width.saturating_sub(30);
    let rows = listed.iter().map(|agent| {
        let about = text::one_line(agent.description.as_deref().unwrap_or_default());
        vec![
            agent.name.clone(),
            agent.files.to_string(),
            text::cut(&about, width),
        ]
    });
    door.out
        .table(&["agent", "files", "description"], rows.collect())
}

/// The prompt as it is; what it is made of goes to stderr.
pub(super) fn show_activation(told: &Activation, door: &mut Door) -> Result<(), Error> {
    door.out.notes(&told.notices);
    return_json!(door, told);
    let tokens = |tokens: u64| text::count(tokens, "token");
    let mut sum = 0;
    for part in &told.parts {
        sum += part.tokens;
        let entries = part.entries.map(|count| text::count(count as u64, "entry"));
        let entries = entries
            .map(|count| format!(", {count}"))
            .unwrap_or_default();
        let said = format!("{}: {}{entries}", part.name, tokens(part.tokens));
        door.out.note(&said);
    }
    door.out.note(&format!("together: {}", tokens(sum)));
    door.out.bytes(told.prompt.as_bytes())
}

fn show_ended(ended: &Ended, door: &mut Door) -> Result<(), Error> {
    door.out.notes(&ended.clashes);
    return_json!(door, ended);
    let mut changes = ended.changes.iter();
    changes.try_for_each(|change| door.out.line(text::one_line(change)))?;
    let moved = &ended.archived;
    for (count, noun) in [
        (moved.decisions, "decision"),
        (moved.learnings, "learning"),
        (moved.tasks, "task"),
    ] {
        if count > 0 {
            door.out
                .line(format!("archived: {}", text::count(count as u64, noun)))?;
        }
    }
    if ended.files.is_empty() {
        return door.out.line("there was nothing to do");
    }
    ended
        .files
        .iter()
        .try_for_each(|file| door.out.line(format!("wrote {}", text::one_line(file))))
}

async fn lint(
    agent: Option<&str>,
    strict: bool,
    agents: &AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let warnings = api::agent::lint(agents, &door.ctx()?, agent).await?;
    if door.out.json {
        door.out.json(&json!({ "warnings": warnings }))?;
    } else if warnings.is_empty() {
        door.out.line("no warnings")?;
    } else {
        for warning in &warnings {
            let (file, line, rule) = (&warning.file, warning.line, warning.rule);
            let said = format!("{file}:{line}: {rule}: {}", warning.what);
            door.out.line(text::one_line(&said))?;
        }
    }
    let failed = warnings.iter().filter(|one| strict || one.is_conflict());
    match failed.count() {
        0 => Ok(()),
        count => Err(Error::Lint(count)),
    }
}

async fn index(agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let done = agents.index(&door.ctx()?, &door.memory()?).await?;
    return_json!(door, &done);
    door.out.line(format!(
        "read {}; entries written: {}, removed: {}",
        text::count(done.files as u64, "changed file"),
        done.written,
        done.removed
    ))
}

/// A JSON object as a request. An array would be read as one without names.
fn object<T: DeserializeOwned>(field: &str, json: &str) -> Result<T, Error> {
    let wrong = |what: String| Invalid::new(field, what);
    let value: Value =
        serde_json::from_str(json).map_err(|error| wrong(format!("is not valid JSON: {error}")))?;
    if !value.is_object() {
        return Err(wrong("is not a JSON object".to_owned()).into());
    }
    let read = serde_json::from_value(value);
    Ok(read.map_err(|error| {
        let said = error.to_string();
        // The parser names types of this program.
        let said = match said.split_once(", expected struct ") {
            Some((before, _)) => format!("{before}, expected an object with named fields"),
            None => said,
        };
        wrong(format!("does not fit: {said}"))
    })?)
}
