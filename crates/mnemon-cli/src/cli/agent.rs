//! `mnemon agent`

mod context;
mod entries;

use std::path::PathBuf;

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::{Activation, AgentFiles, Ended};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::door::Door;
use super::input::given_or_file as given;
use super::text;
use crate::{Error, wiring};

/// Agents whose memory is Markdown in the repository
///
/// An agent's context, decisions, learnings and sessions are files that people read, edit and keep
/// in git, below .microai/agents/AGENT/memory. A change touches the lines it means; what somebody
/// else wrote at the same time is never lost. Decisions, learnings and sessions are found by
/// `mnemon search`, too, if the project has a memory of its own (`mnemon init`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon agent new coder --description \"Writes the code\"\n  \
    mnemon agent activate coder --task \"fix the race\"\n  \
    mnemon agent context coder --done \"race\" --blocker \"no access\"\n  \
    mnemon agent decide coder \"Use Redis\" --decision \"Sessions in Redis\" --reason \"it is there\"\n  \
    mnemon agent end coder --data @session.json")]
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
        Ok(agents.safety(door.config.safety()))
    }
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The agents there are
    List,
    /// Make an agent: its definition and an empty memory
    New {
        #[arg(value_name = "AGENT")]
        agent: String,
        /// What it is for
        #[arg(long, value_name = "TEXT")]
        description: String,
    },
    /// Print exactly what the agent is told before it begins
    ///
    /// The whole context, the ten most recent decisions by date, the knowledge that its task asks
    /// for, and its own prompt. How many tokens that is stands on stderr.
    Activate {
        #[arg(value_name = "AGENT")]
        agent: String,
        /// What it is to do: chooses the knowledge
        #[arg(long, value_name = "TEXT")]
        task: Option<String>,
    },
    Context(Box<context::Args>),
    Decide(Box<entries::DecideArgs>),
    Learn(entries::LearnArgs),
    /// End a session: context, decisions, learnings and archive, all or none
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
        #[arg(value_name = "AGENT")]
        agent: String,
        /// What the session leaves behind; - reads it from stdin, @PATH from a file
        #[arg(long, value_name = "JSON|-|@PATH")]
        data: String,
    },
    /// Warn of entries that will help nobody later
    Lint {
        #[arg(value_name = "AGENT")]
        agent: String,
    },
    /// Move what is too long to memory/archive
    Archive {
        #[arg(value_name = "AGENT")]
        agent: String,
    },
    /// Take the entries of the files into the memory in use, so that `mnemon search` finds them
    ///
    /// Where the memory is the project's own, a search does this by itself. Elsewhere a search
    /// writes nothing: the text of a folder goes into your own memory only by this command.
    Index,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let agents = args.root.open(door)?;
    match args.what {
        What::List => list(&agents, door).await,
        What::New { agent, description } => {
            let files = agents.begin(&door.ctx()?, &agent, &description).await?;
            return_json!(door, &json!({ "files": files }));
            let mut files = files.iter();
            files.try_for_each(|file| door.out.line(format!("made {file}")))
        }
        What::Activate { agent, task } => {
            let told = agents.activate(&agent, task.as_deref()).await?;
            show_activation(&told, door)
        }
        What::Context(args) => context::run(*args, &agents, door).await,
        What::Decide(args) => entries::decide(*args, &agents, door).await,
        What::Learn(args) => entries::learn(args, &agents, door).await,
        What::End { agent, data } => {
            let session = object("data", &given(&data)?)?;
            let ended = agents.end(&door.ctx()?, &agent, &session).await?;
            show_ended(&ended, door)
        }
        What::Lint { agent } => lint(&agent, &agents, door).await,
        What::Archive { agent } => {
            let ended = agents.archive(&door.ctx()?, &agent).await?;
            show_ended(&ended, door)
        }
        What::Index => index(&agents, door).await,
    }
}

async fn list(agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let listed = agents.list().await?;
    return_json!(door, &json!({ "agents": listed }));
    if listed.is_empty() {
        return door
            .out
            .line("there are no agents; make one with: mnemon agent new");
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
    let mut sum = 0;
    for part in &told.parts {
        sum += part.tokens;
        let entries = part
            .entries
            .map(|entries| format!(", {entries} entries"))
            .unwrap_or_default();
        door.out
            .note(&format!("{}: {} tokens{entries}", part.name, part.tokens));
    }
    door.out.note(&format!("together: {sum} tokens"));
    door.out.bytes(told.prompt.as_bytes())
}

fn show_ended(ended: &Ended, door: &mut Door) -> Result<(), Error> {
    door.out.notes(&ended.clashes);
    return_json!(door, ended);
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

async fn lint(agent: &str, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let warnings = agents.lint(&door.ctx()?, agent).await?;
    return_json!(door, &json!({ "warnings": warnings }));
    if warnings.is_empty() {
        return door.out.line("nothing to complain about");
    }
    warnings.iter().try_for_each(|warning| {
        let what = text::one_line(&warning.what);
        door.out.line(format!(
            "{}:{}: {}: {what}",
            text::one_line(&warning.file),
            warning.line,
            warning.rule
        ))
    })
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

pub(super) fn object<T: DeserializeOwned>(field: &str, json: &str) -> Result<T, Error> {
    let read = serde_json::from_str(json);
    Ok(read.map_err(|error| Invalid::new(field, format!("is not what is expected: {error}")))?)
}
