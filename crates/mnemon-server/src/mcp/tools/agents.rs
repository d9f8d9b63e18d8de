//! Tools for agents whose memory is Markdown in the project.

use mnemon_engine::agentfiles::{Activation, AgentFiles, AgentInfo, ChangedEntry, Ended};
use serde_json::{Value, json};

use super::super::answer::{Answer, TAIL_TOKENS, cut, excerpt};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch};
use mnemon_operations::Error;
use mnemon_operations::operation::agents::{
    self, Agents, Created, ShownContext, Warnings, Written,
};
use mnemon_operations::operation::{self, Access, Interface, Operation};

/// Characters of one line in a list.
pub(super) const LINE: usize = 300;

/// An answer about files.
pub(super) trait Answered {
    fn answer(&self, call: &Call) -> Result<Answer, Error>;
}

/// A tool that calls an operation on files.
pub(super) fn tool<O>(title: &'static str, touch: Touch, about: &'static str) -> Tool
where
    O: Operation<AgentFiles, Answer: Answered + Sync>,
{
    Tool::of::<O, _>(touch, title, about, &[Profile::Agent], |served, call| {
        Box::pin(run::<O>(served, call))
    })
}

async fn run<O>(served: &Served, call: Call) -> Result<Answer, Error>
where
    O: Operation<AgentFiles, Answer: Answered + Sync>,
{
    let access = Access {
        memory: &served.agents,
        ctx: &call.ctx,
        config: &served.config,
        interface: Interface::Mcp,
        user: None,
        agent: None,
        own_only: false,
        watch: &operation::unwatched,
    };
    let answer = operation::call::<O, _>(&access, call.arguments.clone()).await?;
    answer.answer(&call)
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<agents::List>(
            "List agents",
            Touch::Reads,
            "List the agents and team members that have a memory in this project, with their \
             descriptions. Use it when you do not know the name of an agent.",
        )
        .with_max_tokens(),
        tool::<agents::New>(
            "Create an agent",
            Touch::Adds,
            "Create an agent, or add a member to a team: its definition and an empty memory. Use \
             it when another tool says that there is no such agent. Files that exist are not \
             changed.",
        ),
        tool::<agents::Activate>(
            "Begin as an agent",
            Touch::Reads,
            "Load an agent's memory: its context, recent decisions, the knowledge for its task, \
             and its prompt. Call it once, at the start of a session.",
        )
        .with_max_tokens(),
        tool::<agents::Context>(
            "Read or change an agent's context",
            Touch::Edits,
            "Show an agent's context (tasks, blockers, state, next steps), or change lines of it: \
             other lines stay. Use it whenever a task is done, begun or blocked.",
        )
        .with_max_tokens(),
        tool::<agents::Decide>(
            "Log a decision",
            Touch::Adds,
            "Log a decision with its reasons in the agent's decisions.md. Use it when a choice \
             was made that later work depends on.",
        ),
        tool::<agents::Learn>(
            "Add a pattern that was learnt",
            Touch::Adds,
            "Add a pattern to the agent's learnings.md. Use it when something worked, or failed, \
             in a way that will happen again.",
        ),
        tool::<agents::Edit>(
            "Change or remove an entry",
            Touch::Removes,
            "Change or remove a decision or a learning of an agent. Use it when an entry is \
             wrong; log a new decision when circumstances have changed.",
        ),
        tool::<agents::End>(
            "End a session",
            Touch::Adds,
            "End an agent's session: context, decisions, learnings and archive are written \
             together or not at all. Use it once, at the end of a session.",
        ),
        tool::<agents::Lint>(
            "Check an agent's files",
            Touch::Reads,
            "Check the files of an agent, or of all: entries without a reason or a date, vague \
             tasks, conflict marks. Use it before you end a session.",
        )
        .with_max_tokens(),
        tool::<agents::Archive>(
            "Archive old entries",
            Touch::Changes,
            "Move old decisions, learnings and ticked tasks of an agent to its archive, where \
             search still finds them. Use it when its files have become too long to read.",
        ),
    ]
}

/// As many items as fit, each as a line and as data, with the number of those left out.
fn list<T>(
    call: &Call,
    items: &[T],
    [name, none]: [&str; 2],
    item: impl Fn(&T, usize) -> (String, Value),
) -> Result<Answer, Error> {
    Answer::fit(call, items.len(), |room| {
        let shown = items.iter().take(room.items);
        let shown = shown.map(|one| item(one, room.chars.min(LINE)));
        let (mut lines, rows): (Vec<String>, Vec<Value>) = shown.unzip();
        let left = items.len() - rows.len();
        if left > 0 {
            lines.push(format!("{left} more: ask for a larger max_tokens"));
        }
        if items.is_empty() {
            lines.push(none.to_owned());
        }
        Answer::with(lines.join("\n"), &json!({name: rows, "left_out": left}))
    })
}

impl Answered for Agents {
    fn answer(&self, call: &Call) -> Result<Answer, Error> {
        let none = "There are no agents; agent_new creates one.";
        list(call, &self.agents, ["agents", none], |one, chars| {
            let problem = one.problem.as_ref();
            let problem = problem.map(|wrong| format!("{}: {}", wrong.file, wrong.what));
            let about = one.description.clone().or(problem).unwrap_or_default();
            let about = excerpt(&about, chars);
            let line = format!("{}: {about}", one.name);
            let row = AgentInfo {
                description: one.description.as_ref().map(|_| about),
                ..one.clone()
            };
            (line, json!(row))
        })
    }
}

impl Answered for Warnings {
    fn answer(&self, call: &Call) -> Result<Answer, Error> {
        list(
            call,
            &self.warnings,
            ["warnings", "No warnings."],
            |one, chars| {
                let (file, line, rule) = (&one.file, one.line, &one.rule);
                let what = excerpt(&one.what, chars);
                let row = json!({"file": file, "line": line, "rule": rule, "what": what});
                (format!("{file}:{line}: {rule}: {what}"), row)
            },
        )
    }
}

impl Answered for Created {
    fn answer(&self, _: &Call) -> Result<Answer, Error> {
        Answer::with(format!("Created {}.", self.files.join(", ")), self)
    }
}

impl Answered for Written {
    fn answer(&self, _: &Call) -> Result<Answer, Error> {
        Answer::with(format!("Added to {}.", self.file), self)
    }
}

impl Answered for ChangedEntry {
    fn answer(&self, _: &Call) -> Result<Answer, Error> {
        let verb = if self.removed { "Removed" } else { "Changed" };
        Answer::with(format!("{verb} {} in {}.", self.heading, self.file), self)
    }
}

impl Answered for Ended {
    fn answer(&self, _: &Call) -> Result<Answer, Error> {
        let mut text = match self.files.len() {
            0 => "There was nothing to do.".to_owned(),
            _ => format!("Wrote {}.", excerpt(&self.files.join(", "), 1000)),
        };
        for line in self
            .changes
            .iter()
            .take(20)
            .chain(self.clashes.iter().take(5))
        {
            text.push_str(&format!("\n{}", excerpt(line, LINE)));
        }
        Answer::with(text, self)
    }
}

impl Answered for Activation {
    fn answer(&self, call: &Call) -> Result<Answer, Error> {
        let text = prose(&self.notices, &self.prompt, call);
        Answer::with(&text, &json!({"prompt": text, "parts": self.parts}))
    }
}

impl Answered for ShownContext {
    fn answer(&self, call: &Call) -> Result<Answer, Error> {
        if self.changes.is_empty() {
            let text = prose(&self.clashes, &self.context, call);
            if !call.has_schema {
                return Ok(Answer::text(text));
            }
            let data = json!({"context": text, "changes": [], "clashes": self.clashes});
            return Answer::with(text, &data);
        }
        let text = [&self.changes[..], &self.clashes].concat().join("\n");
        Answer::with(
            text,
            &json!({"changes": self.changes, "clashes": self.clashes}),
        )
    }
}

/// The first notices, the text as far as there is room, and where the rest is.
fn prose(notices: &[String], text: &str, call: &Call) -> String {
    let notices = notices.iter().take(5);
    let notices = notices.map(|notice| format!("[{}]\n", excerpt(notice, 200)));
    let text = notices.chain([text.to_owned()]).collect::<String>();
    let tokens = call.text_tokens();
    if cut(&text, tokens).1 == 0 {
        return text;
    }
    let named = ["agent", "team", "member"].map(|name| call.arguments.text(name));
    let agent = named.into_iter().flatten().collect::<Vec<_>>().join("/");
    let (head, rest) = cut(&text, tokens.saturating_sub(2 * TAIL_TOKENS));
    format!(
        "{head}\n[cut: {rest} more characters; ask for a larger max_tokens, \
         or read mnemon://agents/{agent}/context.md]"
    )
}
