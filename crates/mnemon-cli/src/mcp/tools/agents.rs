//! Tools for agents whose memory is Markdown in the project.

use mnemon_core::limits;
use mnemon_engine::agentfiles::{Activation, Ended, Whose};
use serde_json::{Value, json};

use super::super::answer::{Answer, TAIL_TOKENS, cut, excerpt};
use super::super::arguments::read;
use super::super::field::Field;
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use crate::Error;
use crate::api::agent as api;

/// The name of an agent, a team or a member, in characters.
pub(super) const NAME: usize = limits::AGENT_NAME_CHARS;
/// A title, a task or another text on one line, in characters.
pub(super) const LINE: usize = limits::AGENT_LINE_CHARS;
/// A longer text, in characters.
pub(super) const PROSE: usize = 100_000;
/// Entries of a list.
pub(super) const MANY: usize = 100;
pub(super) const AGENT: &[Profile] = &[Profile::Agent];

/// The address of a member: NAMESPACE/TEAM/MEMBER.
pub(super) const ADDRESS: usize = 3 * NAME + 2;

fn named(about: &'static str) -> Field {
    Field::text("agent", ADDRESS, about).or(&["name", "agent_name"])
}

pub(super) fn agent() -> Field {
    named("The agent's name, or TEAM/MEMBER for a member of a team").required()
}

fn lines(name: &'static str, about: &'static str) -> Field {
    Field::texts(name, MANY, LINE, about)
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        list(),
        new(),
        activate(),
        context(),
        decide(),
        learn(),
        edit(),
        end(),
        lint(),
        archive(),
    ]
}

fn list() -> Tool {
    Tool {
        name: "agent_list",
        title: "List agents",
        about: "List the agents and team members that have a memory in this project, with their \
            descriptions. Use it when you do not know the name of an agent.",
        fields: vec![max_tokens()],
        touch: Touch::Reads,
        profiles: AGENT,
        run: |served, call| Box::pin(run_list(served, call)),
    }
}

async fn run_list(served: &Served, call: Call) -> Result<Answer, Error> {
    let agents = served.agents.list().await?;
    Answer::fit(&call, agents.len(), |room| {
        let shown = || agents.iter().take(room.items);
        let about = |text: &Option<String>| {
            excerpt(text.as_deref().unwrap_or_default(), room.chars.min(300))
        };
        let rows = shown().map(|one| format!("{}: {}", one.name, about(&one.description)));
        let mut text = rows.collect::<Vec<_>>().join("\n");
        let left = agents.len() - shown().count();
        if left > 0 {
            text.push_str(&format!("\n{left} more: ask for a larger max_tokens"));
        }
        if agents.is_empty() {
            text = "There are no agents; agent_new creates one.".to_owned();
        }
        let rows: Vec<Value> = shown()
            .map(|one| json!({"name": one.name, "description": about(&one.description), "files": one.files}))
            .collect();
        Answer::with(text, &json!({"agents": rows, "left_out": left}))
    })
}

fn new() -> Tool {
    Tool {
        name: "agent_new",
        title: "Create an agent",
        about: "Create an agent, or add a member to a team: its definition and an empty memory. \
            Use it when another tool says that there is no such agent. Files that exist are not \
            changed.",
        fields: vec![
            agent(),
            Field::text("description", LINE, "Purpose of the agent").required(),
        ],
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_new(served, call)),
    }
}

async fn run_new(served: &Served, call: Call) -> Result<Answer, Error> {
    let [agent, about] = ["agent", "description"].map(|name| call.arguments.needed(name));
    made(&served.agents.begin(&call.ctx, &agent, &about).await?)
}

pub(super) fn made(files: &[String]) -> Result<Answer, Error> {
    let text = format!("Created {}.", files.join(", "));
    let answer = Answer::with(text, &json!({ "files": files }))?;
    Ok(answer.within(super::super::answer::TOKENS))
}

fn activate() -> Tool {
    let task = "Your task: selects the knowledge to include";
    Tool {
        name: "agent_activate",
        title: "Begin as an agent",
        about: "Load an agent's memory: its context, recent decisions, the knowledge for its \
            task, and its prompt. Call it once, at the start of a session.",
        fields: vec![agent(), Field::text("task", PROSE, task), max_tokens()],
        touch: Touch::Reads,
        profiles: AGENT,
        run: |served, call| Box::pin(run_activate(served, call)),
    }
}

async fn run_activate(served: &Served, call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.needed("agent");
    let task = call.arguments.text("task");
    let told = served.agents.activate(&agent, task.as_deref()).await?;
    Ok(activation(&told, &agent, call.tokens()))
}

pub(super) fn activation(told: &Activation, agent: &str, tokens: usize) -> Answer {
    prose(&told.notices, &told.prompt, agent, tokens)
}

/// The first notices, the text as far as there is room, and where the rest is.
fn prose(notices: &[String], text: &str, agent: &str, tokens: usize) -> Answer {
    let notices = notices.iter().take(5);
    let notices = notices.map(|notice| format!("[{}]\n", excerpt(notice, 200)));
    let text = notices.chain([text.to_owned()]).collect::<String>();
    if cut(&text, tokens).1 == 0 {
        return Answer::text(text);
    }
    let (head, rest) = cut(&text, tokens.saturating_sub(2 * TAIL_TOKENS));
    Answer::text(format!(
        "{head}\n[cut: {rest} more characters; ask for a larger max_tokens, \
         or read mnemon://agents/{agent}/context.md]"
    ))
}

/// What changes in a context.
fn changes() -> Vec<Field> {
    let row = |first, about| {
        vec![
            Field::text(first, LINE, about).required(),
            Field::text(
                if first == "aspect" { "status" } else { "state" },
                LINE,
                "Current state",
            )
            .required(),
            Field::text("notes", LINE, "Other information"),
        ]
    };
    let section = vec![
        Field::text("section", LINE, "Its heading").required(),
        Field::text("text", PROSE, "Its whole text").required(),
    ];
    vec![
        lines(
            "done",
            "Tasks to tick: their words, or a part only one of them has",
        ),
        lines("reopened", "Tasks to untick"),
        lines("tasks", "New tasks"),
        lines("blockers", "New blockers"),
        lines("resolved", "Blockers to remove"),
        Field::list(
            "state",
            row("aspect", "Aspect of the project"),
            MANY,
            "Rows of the project's state",
        ),
        Field::list(
            "files",
            row("file", "Its path"),
            MANY,
            "Rows of the key files",
        ),
        lines(
            "next",
            "Steps for the next session; replaces the current ones",
        ),
        lines("notes", "New notes"),
        Field::list("sections", section, MANY, "Whole sections, replaced"),
    ]
}

/// The fields of a tool that shows or changes a context.
pub(super) fn context_fields(whose: Field) -> Vec<Field> {
    let rewrite = vec![
        Field::text("text", PROSE, "The new context").required(),
        Field::text("base", PROSE, "The context as you read it before").required(),
    ];
    let mut fields = vec![whose];
    fields.extend(changes());
    fields.push(Field::parts(
        "rewrite",
        rewrite,
        "Replace the whole context; others' changes are merged",
    ));
    fields.push(max_tokens());
    fields
}

fn context() -> Tool {
    Tool {
        name: "agent_context",
        title: "Read or change an agent's context",
        about: "Show an agent's context (tasks, blockers, state, next steps), or change lines of \
            it: other lines stay. Use it whenever a task is done, begun or blocked.",
        fields: context_fields(agent()),
        touch: Touch::Edits,
        profiles: AGENT,
        run: |served, call| Box::pin(run_context(served, call)),
    }
}

async fn run_context(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.take_needed("agent");
    shown_context(served, call, Whose::Agent(&agent)).await
}

/// The context as it is, or the changes that were made to it.
pub(super) async fn shown_context(
    served: &Served,
    mut call: Call,
    whose: Whose<'_>,
) -> Result<Answer, Error> {
    let rewrite = call.arguments.take("rewrite");
    let rewrite: Option<api::Rewrite> = rewrite.map(read).transpose()?;
    let tokens = call.tokens();
    let change = std::mem::take(&mut call.arguments).read()?;
    let (agents, ctx) = (&served.agents, &call.ctx);
    let shown = api::context(agents, ctx, whose, &change, rewrite.as_ref()).await?;
    let (Whose::Agent(name) | Whose::Team(name)) = whose;
    if shown.changes.is_empty() {
        return Ok(prose(&shown.clashes, &shown.context, name, tokens));
    }
    let lines: Vec<&String> = shown.changes.iter().chain(&shown.clashes).collect();
    let lines: Vec<&str> = lines.into_iter().map(String::as_str).collect();
    let data = json!({ "changes": shown.changes, "clashes": shown.clashes });
    Ok(Answer::with(lines.join("\n"), &data)?.within(tokens))
}

pub(super) fn decision() -> Vec<Field> {
    vec![
        Field::text("title", LINE, "The decision in a few words").required(),
        Field::text("context", PROSE, "Why a decision was needed").required(),
        Field::text("decision", PROSE, "The decision").required(),
        lines("reasons", "Reasons for it").or(&["reason", "rationale"]),
        lines("alternatives", "Alternatives, and why they were rejected"),
        lines("impact", "Consequences").or(&["consequences"]),
        Field::text("reversible", LINE, "Whether and how it can be reversed"),
        Field::text("date", 10, "YYYY-MM-DD; default: today"),
    ]
}

fn decide() -> Tool {
    let mut fields = vec![agent()];
    fields.extend(decision());
    Tool {
        name: "agent_decide",
        title: "Log a decision",
        about: "Log a decision with its reasons in the agent's decisions.md. Use it when a choice \
            was made that later work depends on.",
        fields,
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_decide(served, call)),
    }
}

async fn run_decide(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.take_needed("agent");
    let decision = call.arguments.read()?;
    let file = served.agents.decide(&call.ctx, &agent, &decision).await?;
    Answer::with(format!("Logged in {file}."), &json!({ "file": file }))
}

fn learning() -> Vec<Field> {
    let code = vec![
        Field::text("language", 50, "Its language").required(),
        Field::text("text", PROSE, "The code").required(),
    ];
    vec![
        Field::text("title", LINE, "The pattern in a few words").required(),
        Field::text("pattern", PROSE, "The practice to follow or avoid").required(),
        Field::text("why", PROSE, "Why it works").required(),
        Field::parts("code", code, "An example"),
        Field::text("date", 10, "YYYY-MM-DD; default: today"),
    ]
}

fn learn() -> Tool {
    let mut fields = vec![agent()];
    fields.extend(learning());
    Tool {
        name: "agent_learn",
        title: "Add a pattern that was learnt",
        about: "Add a pattern to the agent's learnings.md. Use it when something worked, or \
            failed, in a way that will happen again.",
        fields,
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_learn(served, call)),
    }
}

async fn run_learn(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.take_needed("agent");
    let learning = call.arguments.read()?;
    let file = served.agents.learn(&call.ctx, &agent, &learning).await?;
    Answer::with(format!("Added to {file}."), &json!({ "file": file }))
}

/// Which entry is meant, and what becomes of it.
pub(super) fn entry_fields(whose: Field) -> Vec<Field> {
    let field = vec![
        Field::text("label", LINE, "Such as Reason").required(),
        Field::text("text", PROSE, "Its new text").required(),
    ];
    vec![
        whose,
        Field::text(
            "which",
            LINE,
            "The title of the entry, or a part only one has",
        )
        .required(),
        Field::text("date", 10, "YYYY-MM-DD, where several have this title"),
        Field::text("title", LINE, "A new title"),
        Field::text("new_date", 10, "A new date: YYYY-MM-DD"),
        Field::list("fields", field, MANY, "Fields to set"),
        Field::flag("remove", "Remove the entry"),
    ]
}

fn edit() -> Tool {
    Tool {
        name: "agent_edit",
        title: "Change or remove an entry",
        about: "Change or remove a decision or a learning of an agent. Use it when an entry is \
            wrong; log a new decision when circumstances have changed.",
        fields: entry_fields(agent()),
        touch: Touch::Removes,
        profiles: AGENT,
        run: |served, call| Box::pin(run_edit(served, call)),
    }
}

async fn run_edit(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.take_needed("agent");
    change_entry(served, call, Whose::Agent(&agent)).await
}

pub(super) async fn change_entry(
    served: &Served,
    call: Call,
    whose: Whose<'_>,
) -> Result<Answer, Error> {
    let change = call.arguments.read()?;
    let done = served
        .agents
        .change_entry(&call.ctx, whose, &change)
        .await?;
    let verb = if done.removed { "Removed" } else { "Changed" };
    let text = format!("{verb} {} in {}.", done.heading, done.file);
    Ok(Answer::with(text, &done)?.within(super::super::answer::TOKENS))
}

fn end() -> Tool {
    let issue = vec![
        Field::text("title", LINE, "In a few words").required(),
        Field::text("problem", PROSE, "The problem").required(),
        Field::text("solution", PROSE, "The solution").required(),
    ];
    let archive = vec![
        Field::text("summary", PROSE, "The session in a paragraph").required(),
        lines("tasks", "Completed tasks"),
        Field::list("changes", file_changes(), MANY, "Files that changed"),
        Field::list("issues", issue, MANY, "Problems and their solutions"),
        lines("follow_up", "Remaining work"),
    ];
    Tool {
        name: "agent_end",
        title: "End a session",
        about: "End an agent's session: context, decisions, learnings and archive are written \
            together or not at all. Use it once, at the end of a session.",
        fields: vec![
            agent(),
            Field::parts("context", changes(), "Changes of the context"),
            Field::list("decisions", decision(), MANY, "Decisions to log"),
            Field::list("learnings", learning(), MANY, "Patterns that were learnt"),
            Field::parts(
                "archive",
                archive,
                "A page about the session, for complex ones",
            ),
        ],
        touch: Touch::Adds,
        profiles: AGENT,
        run: |served, call| Box::pin(run_end(served, call)),
    }
}

pub(super) fn file_changes() -> Vec<Field> {
    vec![
        Field::text("file", LINE, "Its path").required(),
        Field::text("change", LINE, "Notes about the file")
            .required()
            .or(&["note", "notes"]),
    ]
}

async fn run_end(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.take_needed("agent");
    let session = call.arguments.read()?;
    let ended = served.agents.end(&call.ctx, &agent, &session).await?;
    told(&ended)
}

fn lint() -> Tool {
    Tool {
        name: "agent_lint",
        title: "Check an agent's files",
        about: "Check the files of an agent, or of all: entries without a reason or a date, vague \
            tasks, conflict marks. Use it before you end a session.",
        fields: vec![named("The agent; default: all agents"), max_tokens()],
        touch: Touch::Reads,
        profiles: AGENT,
        run: |served, call| Box::pin(run_lint(served, call)),
    }
}

async fn run_lint(served: &Served, call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.text("agent");
    let warnings = api::lint(&served.agents, &call.ctx, agent.as_deref()).await?;
    Answer::fit(&call, warnings.len(), |room| {
        let shown = || warnings.iter().take(room.items);
        let what = |text: &str| excerpt(text, room.chars.min(300));
        let lines = shown().map(|one| {
            format!(
                "{}:{}: {}: {}",
                one.file,
                one.line,
                one.rule,
                what(&one.what)
            )
        });
        let left = warnings.len() - shown().count();
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if left > 0 {
            text.push_str(&format!("\n{left} more: ask for a larger max_tokens"));
        }
        if warnings.is_empty() {
            text = "No warnings.".to_owned();
        }
        let rows: Vec<Value> = shown()
            .map(|one| json!({"file": one.file, "line": one.line, "rule": one.rule, "what": what(&one.what)}))
            .collect();
        Answer::with(text, &json!({"warnings": rows, "left_out": left}))
    })
}

fn archive() -> Tool {
    Tool {
        name: "agent_archive",
        title: "Archive old entries",
        about: "Move old decisions, learnings and ticked tasks of an agent to its archive, where \
            search still finds them. Use it when its files have become too long to read.",
        fields: vec![agent()],
        touch: Touch::Changes,
        profiles: AGENT,
        run: |served, call| Box::pin(run_archive(served, call)),
    }
}

async fn run_archive(served: &Served, call: Call) -> Result<Answer, Error> {
    let agent = call.arguments.needed("agent");
    call.progress.tell(0, 1, "archiving").await;
    let ended = served.agents.archive(&call.ctx, &agent).await?;
    call.progress.tell(1, 1, "done").await;
    told(&ended)
}

fn told(ended: &Ended) -> Result<Answer, Error> {
    let mut text = match ended.files.len() {
        0 => "There was nothing to do.".to_owned(),
        _ => format!("Wrote {}.", excerpt(&ended.files.join(", "), 1000)),
    };
    for change in ended.changes.iter().take(20) {
        text.push_str(&format!("\n{}", excerpt(change, 200)));
    }
    for clash in ended.clashes.iter().take(5) {
        text.push_str(&format!("\n{}", excerpt(clash, 300)));
    }
    let answer = Answer::with(text, ended)?;
    Ok(answer.within(super::super::answer::TOKENS))
}
