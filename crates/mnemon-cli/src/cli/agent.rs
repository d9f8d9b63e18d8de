//! `mnemon agent`

use std::path::PathBuf;

use mnemon_engine::agentfiles::{Activation, AgentFiles, Archived, ChangedEntry, Ended, Warning};

use super::door::Door;
use super::shared::{Shared, Shown, call_on, remotely};
use super::{input, text};
use mnemon_operations::operation::agents::{
    self, Agents, Created, ShownContext, Warnings, Written,
};
use mnemon_operations::operation::routes::Seat;
use mnemon_operations::operation::unwatched;
use mnemon_operations::{Error, wiring};

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
        if self.root.is_some() {
            door.local_option("--root")?;
        }
        let folder = self.root.as_deref();
        let folder = folder.unwrap_or(&door.config.agents.value);
        let agents = wiring::agents(&door.config.tenant.value, folder)?;
        let language = door.config.agent_language.value;
        Ok(agents.safety(door.config.safety()).language(language))
    }
}

/// The arguments of an operation on files.
pub(super) type OnFiles<O> = Shared<O, AgentFiles>;

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the agents and the members of teams
    #[command(visible_alias = "ls")]
    List(OnFiles<agents::List>),
    /// Create an agent: its definition and an empty memory
    New(OnFiles<agents::New>),
    /// Print the prompt of an agent: its memory, knowledge and definition
    ///
    /// Prints the whole context, the ten most recent decisions by date, the knowledge for the task,
    /// and the prompt of the agent. The number of tokens is printed on stderr.
    Activate(OnFiles<agents::Activate>),
    /// Change single lines of an agent's context; without options, print it
    #[command(visible_alias = "show")]
    #[command(after_help = "Examples:\n  \
        mnemon agent context coder --create --task \"Fix the race\"\n  \
        mnemon agent context coder --done race --next \"Write a test\"\n  \
        mnemon agent context coder --state Build Passing --section Notes \"- only this\"")]
    Context(OnFiles<agents::Context>),
    /// Log a decision that affects later work
    Decide(OnFiles<agents::Decide>),
    /// Add a pattern that was learnt
    Learn(OnFiles<agents::Learn>),
    /// Change a decision or a learning; git keeps the text that was there before
    Edit(OnFiles<agents::Edit>),
    /// Remove a decision or a learning, and print its text
    #[command(visible_alias = "rm")]
    Remove(OnFiles<agents::Remove>),
    /// End a session: write context, decisions, learnings and archive, all or none
    ///
    /// Each part is JSON, as an option or as a field of --data:
    ///   context    done, reopened, tasks, blockers, resolved, notes: lists of texts;
    ///              state: [{aspect, status, notes}], files: [{file, state, notes}],
    ///              next: list of steps, sections: [{section, text}]
    ///   decisions  [{title, date, context, decision, reasons, alternatives, impact, reversible}]
    ///   learnings  [{title, date, pattern, code: {language, text}, why}]
    ///   archive    {summary, tasks, changes: [{file, change}],
    ///              issues: [{title, problem, solution}], follow_up}
    #[command(verbatim_doc_comment)]
    End(EndArgs),
    /// Check the files of an agent, or of all agents and teams
    ///
    /// Warns of entries without a date, reason or context, of vague tasks, and of files that are
    /// too long. Conflict marks (<<<<<<<) and unreadable files are errors: the command then exits
    /// with 9.
    Lint(LintArgs),
    /// Move old entries and done tasks to memory/archive
    Archive(OnFiles<agents::Archive>),
    /// Index the entries of the files in the memory in use, so that `mnemon search` finds them
    ///
    /// If the memory in use is the project's own, a search does this automatically. Otherwise a
    /// search writes nothing, and only this command copies the text of the files into your own
    /// memory.
    Index(Shared<agents::Index, Seat>),
}

#[derive(Debug, clap::Args)]
struct EndArgs {
    #[command(flatten)]
    session: OnFiles<agents::End>,
    /// The whole session; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "JSON|-|@PATH")]
    data: Option<String>,
}

#[derive(Debug, clap::Args)]
struct LintArgs {
    #[command(flatten)]
    which: OnFiles<agents::Lint>,
    /// Exit with 9 if there is any warning
    #[arg(long)]
    strict: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let agents = args.root.open(door)?;
    match args.what {
        What::List(args) => args.run_on(&agents, door).await,
        What::New(args) => args.run_on(&agents, door).await,
        What::Activate(args) => args.run_on(&agents, door).await,
        What::Context(args) => args.run_on(&agents, door).await,
        What::Decide(args) => args.run_on(&agents, door).await,
        What::Learn(args) => args.run_on(&agents, door).await,
        What::Edit(args) => args.run_on(&agents, door).await,
        What::Remove(args) => args.run_on(&agents, door).await,
        What::End(EndArgs { session, data }) => {
            let session = match data {
                Some(data) => session.with_json("--data", &input::given_or_file(&data)?)?,
                None => session,
            };
            session.run_on(&agents, door).await
        }
        What::Lint(args) => lint(args, &agents, door).await,
        What::Archive(args) => args.run_on(&agents, door).await,
        What::Index(args) => index(args, agents, door).await,
    }
}

impl Shown for Agents {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.agents.is_empty() {
            return door.out.line(
                "there are no agents; make one with `mnemon agent new NAME --description TEXT`",
            );
        }
        note_problems(self.agents.iter().flat_map(|agent| &agent.problem), door);
        let width = door.out.width.saturating_sub(30);
        let rows = self.agents.iter().map(|agent| {
            let about = text::one_line(agent.description.as_deref().unwrap_or_default());
            let files = agent.files.to_string();
            vec![agent.name.clone(), files, text::cut(&about, width)]
        });
        door.out
            .table(&["agent", "files", "description"], rows.collect())
    }
}

/// Files that cannot be read, on stderr.
pub(super) fn note_problems<'a>(problems: impl Iterator<Item = &'a Warning>, door: &Door) {
    for problem in problems {
        let said = format!("{}: {}", problem.file, problem.what);
        door.out.note(&text::one_line(&said));
    }
}

impl Shown for Created {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let mut files = self.files.iter();
        files.try_for_each(|file| door.out.line(format!("created {file}")))
    }
}

/// The prompt as it is; the sizes of its parts go to stderr.
impl Shown for Activation {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        door.out.notes(&self.notices);
        let tokens = |tokens: u64| text::count(tokens, "token");
        for part in &self.parts {
            let entries = part.entries.map(|count| text::count(count as u64, "entry"));
            let entries = entries.map(|count| format!(", {count}"));
            let (tokens, entries) = (tokens(part.tokens), entries.unwrap_or_default());
            door.out.note(&format!("{}: {tokens}{entries}", part.name));
        }
        let sum = self.parts.iter().map(|part| part.tokens).sum();
        door.out.note(&format!("together: {}", tokens(sum)));
        door.out.bytes(self.prompt.as_bytes())
    }
}

impl Shown for ShownContext {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        door.out.notes(&self.clashes);
        if self.changes.is_empty() {
            return door.out.bytes(self.context.as_bytes());
        }
        let mut changes = self.changes.iter();
        changes.try_for_each(|change| door.out.line(text::one_line(change)))
    }
}

impl Shown for Written {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        door.out.line(format!("wrote {}", self.file))
    }
}

/// The text of a removed entry is printed, so that it can be put back.
impl Shown for ChangedEntry {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let verb = if self.removed { "removed" } else { "changed" };
        let heading = text::one_line(&self.heading);
        door.out
            .line(format!("{verb} {heading} in {}", self.file))?;
        match self.removed {
            true => door.out.line(format!("\n{}", text::clean(&self.before))),
            false => Ok(()),
        }
    }
}

impl Shown for Ended {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        door.out.notes(&self.clashes);
        for change in &self.changes {
            door.out.line(text::one_line(change))?;
        }
        let Archived {
            decisions,
            learnings,
            tasks,
        } = self.archived;
        for (count, noun) in [
            (decisions, "decision"),
            (learnings, "learning"),
            (tasks, "task"),
        ] {
            if count > 0 {
                let count = text::count(count as u64, noun);
                door.out.line(format!("archived: {count}"))?;
            }
        }
        if self.files.is_empty() {
            return door.out.line("there was nothing to do");
        }
        let mut files = self.files.iter();
        files.try_for_each(|file| door.out.line(format!("wrote {}", text::one_line(file))))
    }
}

impl Shown for Warnings {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.warnings.is_empty() {
            return door.out.line("no warnings");
        }
        self.warnings.iter().try_for_each(|warning| {
            let (file, line, rule) = (&warning.file, warning.line, &warning.rule);
            let said = format!("{file}:{line}: {rule}: {}", warning.what);
            door.out.line(text::one_line(&said))
        })
    }
}

async fn lint(args: LintArgs, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let found = args.which.call_on(agents, door).await?;
    match door.out.json {
        true => door.out.json(&found)?,
        false => found.show(door)?,
    }
    let failed = found
        .warnings
        .iter()
        .filter(|one| args.strict || one.is_error());
    match failed.count() {
        0 => Ok(()),
        count => Err(Error::Lint(count)),
    }
}

async fn index(
    args: Shared<agents::Index, Seat>,
    agents: AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let done = match remotely::<agents::Index, _>(args.arguments()?, door, &unwatched).await {
        Ok(done) => done?,
        Err(arguments) => {
            let seat = Seat {
                memory: door.memory()?,
                agents,
                config: door.config.clone(),
            };
            call_on::<agents::Index, _>(&seat, arguments, door).await?
        }
    };
    return_json!(door, &done);
    door.out.line(format!(
        "read {}; entries written: {}, removed: {}",
        text::count(done.files as u64, "changed file"),
        done.written,
        done.removed
    ))
}
