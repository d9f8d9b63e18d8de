//! Operations on agents whose memory is Markdown in the project.

use mnemon_core::limits;
use mnemon_engine::agentfiles::{
    Activation, AgentFiles, AgentInfo, ChangedEntry, ContextChange, Ended, Indexed, Warning, Whose,
};
use serde::{Deserialize, Serialize};

use super::arguments::read;
use super::files::{Files, operations_on_files};
use super::routes::Seat;
use super::{Access, Arguments, Field, Interface, Operation, Spelling};
use crate::Error;

/// The name of an agent, a team or a member, in characters.
pub(super) const NAME: usize = limits::AGENT_NAME_CHARS;
/// A title, a task or another text on one line, in characters.
const LINE: usize = limits::AGENT_LINE_CHARS;
/// A longer text, in characters.
const PROSE: usize = 100_000;
/// Entries of a list.
pub(super) const MANY: usize = 100;
/// The address of a member: NAMESPACE/TEAM/MEMBER.
const ADDRESS: usize = 3 * NAME + 2;

/// The agent that lint checks.
const LINTED: &str = "The agent; without it, all agents and teams";

operations_on_files! {
    List: "agent list", "agent_list", vec![], list -> Agents;
    New: "agent new", "agent_new", vec![agent(), description()], new -> Created;
    Activate: "agent activate", "agent_activate", vec![agent(), task()], activate -> Activation;
    Context: "agent context", "agent_context", context_fields(written()), context -> ShownContext;
    Decide: "agent decide", "agent_decide", [written(), decision()].concat(), decide -> Written;
    Learn: "agent learn", "agent_learn", [written(), learning()].concat(), learn -> Written;
    Edit: "agent edit", "agent_edit", entry_change(agent()), edit -> ChangedEntry;
    Remove: "agent remove", "", entry(agent()), remove -> ChangedEntry;
    End: "agent end", "agent_end", end_fields(), end -> Ended;
    Lint: "agent lint", "agent_lint", vec![named(LINTED)], lint -> Warnings;
    Archive: "agent archive", "agent_archive", vec![agent()], archive -> Ended;
}

/// Brings the index of the files in the store up to date.
#[derive(Debug)]
pub struct Index;

impl Operation<Seat> for Index {
    const COMMAND: &'static str = "agent index";
    type Answer = Indexed;

    async fn run(access: &Access<'_, Seat>, _: Arguments) -> Result<Indexed, Error> {
        let Seat { memory, agents, .. } = access.memory;
        Ok(agents.index(access.ctx, memory).await?)
    }
}

pub(super) fn line(name: &'static str, about: &'static str) -> Field {
    Field::text(name, LINE, about).prose().value("TEXT")
}

/// A line that is one of several values of an option.
fn cell(name: &'static str, about: &'static str) -> Field {
    Field::text(name, LINE, about)
}

pub(super) fn prose(name: &'static str, about: &'static str) -> Field {
    let field = Field::text(name, PROSE, about).prose();
    field.piped_or_file().value("TEXT")
}

/// Lines, each an option of the command line.
pub(super) fn lines(name: &'static str, option: &'static str, about: &'static str) -> Field {
    let field = Field::texts(name, MANY, LINE, about);
    field.prose().option(option).value("TEXT")
}

fn named(about: &'static str) -> Field {
    let field = Field::text("agent", ADDRESS, about).or(&["name", "agent_name"]);
    field.positional(Spelling::Positional, "AGENT")
}

fn agent() -> Field {
    named("The agent, or TEAM/MEMBER for a member of a team").required()
}

fn date(name: &'static str, about: &'static str) -> Field {
    Field::text(name, 10, about).value("YYYY-MM-DD")
}

/// The agent that is written to.
fn written() -> Vec<Field> {
    let create = Field::flag("create", "Create the agent if it does not exist");
    vec![agent(), create.only(Interface::CommandLine)]
}

/// The files, and the agent's name. A write makes the agent if the caller says so.
fn target(access: &Files<'_>, arguments: &mut Arguments) -> (AgentFiles, String) {
    let creates = arguments.take("create").is_some();
    let agents = access.memory.clone().creating(creates);
    (agents, arguments.take_needed("agent"))
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Agents {
    pub agents: Vec<AgentInfo>,
}

/// The files that were made.
#[derive(Debug, Serialize, Deserialize)]
pub struct Created {
    pub files: Vec<String>,
}

/// The file that has the new entry.
#[derive(Debug, Serialize, Deserialize)]
pub struct Written {
    pub file: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Warnings {
    pub warnings: Vec<Warning>,
}

/// The context of an agent or a team.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShownContext {
    /// The context as it is now.
    pub context: String,
    /// Each change, in a few words; empty if the context was only read.
    pub changes: Vec<String>,
    /// Where two changes met in one place and both were kept.
    pub clashes: Vec<String>,
}

async fn list(access: &Files<'_>, _: Arguments) -> Result<Agents, Error> {
    let agents = access.memory.list().await?;
    Ok(Agents { agents })
}

fn description() -> Field {
    line("description", "Purpose of the agent, on one line").required()
}

async fn new(access: &Files<'_>, arguments: Arguments) -> Result<Created, Error> {
    let [agent, about] = ["agent", "description"].map(|name| arguments.needed(name));
    let files = access.memory.begin(access.ctx, &agent, &about).await?;
    Ok(Created { files })
}

pub(super) fn task() -> Field {
    prose("task", "The task: selects the knowledge to include")
}

async fn activate(access: &Files<'_>, arguments: Arguments) -> Result<Activation, Error> {
    let (agent, task) = (arguments.needed("agent"), arguments.text("task"));
    Ok(access.memory.activate(&agent, task.as_deref()).await?)
}

/// What changes in a context.
fn changes() -> Vec<Field> {
    let row = |[first, second]: [&'static str; 2], about| {
        let (first, second) = (cell(first, about), cell(second, "Current state"));
        let notes = cell("notes", "Other information");
        vec![first.required(), second.required(), notes]
    };
    let state = row(["aspect", "status"], "Aspect of the project");
    let file = row(["file", "state"], "Its path");
    let section = vec![
        cell("section", "Its heading").required(),
        prose("text", "Its whole text").required(),
    ];
    let done = "Tasks to tick: their words, or a part only one of them has";
    let next = "Steps for the next session; replaces the current ones";
    vec![
        lines("done", "done", done),
        lines("reopened", "reopen", "Tasks to untick"),
        lines("tasks", "task", "New tasks"),
        lines("blockers", "blocker", "New blockers"),
        lines("resolved", "resolve", "Blockers to remove"),
        Field::list("state", state, MANY, "Rows of the project's state to set").by_values("state"),
        Field::list("files", file, MANY, "Rows of the key files to set").by_values("file"),
        lines("next", "next", next),
        lines("notes", "note", "New notes"),
        Field::list("sections", section, MANY, "Sections whose text is replaced")
            .by_values("section"),
    ]
}

/// The fields of an operation that shows or changes a context.
pub(super) fn context_fields(mut fields: Vec<Field>) -> Vec<Field> {
    let base = "The context as you read it before; changes since then are merged";
    let rewrite = vec![
        prose("text", "The new context, in place of the whole one")
            .required()
            .option("rewrite"),
        prose("base", base).required(),
    ];
    let about = "Replace the whole context";
    fields.extend(changes());
    fields.push(Field::parts("rewrite", rewrite, about).by_parts());
    fields
}

/// A context that replaces the one that is there.
#[derive(Deserialize)]
struct Rewrite {
    text: String,
    /// What the writer had read: changes that others made since then are merged.
    base: String,
}

/// Replaces a context or changes lines of it, and shows it.
pub(super) async fn change_context(
    access: &Files<'_>,
    agents: &AgentFiles,
    whose: Whose<'_>,
    mut arguments: Arguments,
) -> Result<ShownContext, Error> {
    let (mut changes, mut clashes) = (Vec::new(), Vec::new());
    if let Some(rewrite) = arguments.take("rewrite") {
        let Rewrite { text, base } = read(rewrite)?;
        let rewritten = agents.rewrite_context(access.ctx, whose, &text, &base);
        clashes = rewritten.await?;
        changes.push("replaced the whole context".to_owned());
    }
    let change: ContextChange = arguments.read()?;
    if !change.is_empty() {
        changes.extend(agents.update_context(access.ctx, whose, &change).await?);
    }
    let context = agents.show(whose, "context.md").await?;
    let (Whose::Agent(name) | Whose::Team(name)) = whose;
    let missing = || mnemon_engine::Error::NotThere(format!("`{name}` has no context yet"));
    Ok(ShownContext {
        context: context.ok_or_else(missing)?,
        changes,
        clashes,
    })
}

async fn context(access: &Files<'_>, mut arguments: Arguments) -> Result<ShownContext, Error> {
    let (agents, agent) = target(access, &mut arguments);
    change_context(access, &agents, Whose::Agent(&agent), arguments).await
}

pub(super) fn title(about: &'static str) -> Field {
    let field = line("title", about).required();
    field.positional(Spelling::Positional, "TITLE")
}

pub(super) fn decision() -> Vec<Field> {
    let alternatives = "Alternatives, and why they were rejected";
    vec![
        title("The decision in a few words"),
        prose("decision", "The decision").required(),
        prose("context", "Why a decision was needed"),
        lines("reasons", "reason", "Reasons for it").or(&["reason", "rationale"]),
        lines("alternatives", "alternative", alternatives),
        lines("impact", "impact", "Consequences").or(&["consequences"]),
        line("reversible", "Whether and how it can be reversed"),
        date("date", "Its date, YYYY-MM-DD").default("today"),
    ]
}

async fn decide(access: &Files<'_>, mut arguments: Arguments) -> Result<Written, Error> {
    let (agents, agent) = target(access, &mut arguments);
    let decision = arguments.read()?;
    let file = agents.decide(access.ctx, &agent, &decision).await?;
    Ok(Written { file })
}

fn learning() -> Vec<Field> {
    let code = vec![
        prose("text", "An example of code")
            .required()
            .option("code"),
        Field::text("language", 50, "Language of the code"),
    ];
    vec![
        title("The pattern in a few words"),
        prose("pattern", "The practice to follow or avoid").required(),
        Field::parts("code", code, "An example of code").by_parts(),
        prose("why", "Why it works"),
        date("date", "Its date, YYYY-MM-DD").default("today"),
    ]
}

async fn learn(access: &Files<'_>, mut arguments: Arguments) -> Result<Written, Error> {
    let (agents, agent) = target(access, &mut arguments);
    let learning = arguments.read()?;
    let file = agents.learn(access.ctx, &agent, &learning).await?;
    Ok(Written { file })
}

/// Which entry is meant.
pub(super) fn entry(whose: Field) -> Vec<Field> {
    let which = "The title of the entry, a part that only one has, or the id that a search shows";
    let which = line("which", which).required();
    vec![
        whose,
        which.positional(Spelling::Positional, "ENTRY"),
        date(
            "date",
            "Its date, YYYY-MM-DD, where several have this title",
        ),
    ]
}

/// What becomes of it.
pub(super) fn entry_change(whose: Field) -> Vec<Field> {
    let field = vec![
        cell("label", "Its label, such as Reason").required(),
        prose("text", "Its new text").required(),
    ];
    let change = vec![
        line("title", "A new title"),
        date("new_date", "A new date, YYYY-MM-DD"),
        Field::list("fields", field, MANY, "Fields to set, such as Reason").by_values("set"),
        Field::flag("remove", "Remove the entry").only(Interface::Mcp),
    ];
    [entry(whose), change].concat()
}

pub(super) async fn change_entry(
    access: &Files<'_>,
    whose: Whose<'_>,
    arguments: Arguments,
) -> Result<ChangedEntry, Error> {
    let change = arguments.read()?;
    let changed = access.memory.change_entry(access.ctx, whose, &change);
    Ok(changed.await?)
}

async fn edit(access: &Files<'_>, mut arguments: Arguments) -> Result<ChangedEntry, Error> {
    let agent = arguments.take_needed("agent");
    change_entry(access, Whose::Agent(&agent), arguments).await
}

async fn remove(access: &Files<'_>, mut arguments: Arguments) -> Result<ChangedEntry, Error> {
    arguments.set("remove", true);
    edit(access, arguments).await
}

/// A file and a note about it.
pub(super) fn file_notes() -> Vec<Field> {
    let note = line("change", "Notes about the file").required();
    vec![
        cell("file", "Its path").required(),
        note.or(&["note", "notes"]).value("NOTE"),
    ]
}

fn end_fields() -> Vec<Field> {
    let issue = vec![
        title("In a few words"),
        prose("problem", "The problem").required(),
        prose("solution", "The solution").required(),
    ];
    let archive = vec![
        prose("summary", "The session in a paragraph").required(),
        lines("tasks", "task", "Completed tasks"),
        Field::list("changes", file_notes(), MANY, "Files that changed"),
        Field::list("issues", issue, MANY, "Problems and their solutions"),
        lines("follow_up", "follow-up", "Remaining work"),
    ];
    let page = "A page about the session, for complex ones";
    let mut fields = written();
    fields.extend([
        Field::parts("context", changes(), "Changes of the context").piped_or_file(),
        Field::list("decisions", decision(), MANY, "Decisions to log").piped_or_file(),
        Field::list("learnings", learning(), MANY, "Patterns that were learnt").piped_or_file(),
        Field::parts("archive", archive, page).piped_or_file(),
    ]);
    fields
}

async fn end(access: &Files<'_>, mut arguments: Arguments) -> Result<Ended, Error> {
    let (agents, agent) = target(access, &mut arguments);
    let session = arguments.read()?;
    Ok(agents.end(access.ctx, &agent, &session).await?)
}

async fn lint(access: &Files<'_>, arguments: Arguments) -> Result<Warnings, Error> {
    let warnings = match arguments.text("agent") {
        Some(agent) => access.memory.lint(access.ctx, &agent).await?,
        None => access.memory.lint_all(access.ctx).await?,
    };
    Ok(Warnings { warnings })
}

async fn archive(access: &Files<'_>, arguments: Arguments) -> Result<Ended, Error> {
    let agent = arguments.needed("agent");
    Ok(access.memory.archive(access.ctx, &agent).await?)
}
