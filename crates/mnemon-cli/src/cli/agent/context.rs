//! `mnemon agent context`

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::{AgentFiles, ContextChange, KeyFile, SectionText, StateRow};

use crate::cli::door::Door;
use crate::cli::input::given_or_file as given;
use crate::cli::text;
use crate::{Error, api};

/// Change single lines of an agent's context; without options, print it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Tick a task: its words, or a part that only one has
    #[arg(long, value_name = "TASK")]
    done: Vec<String>,
    /// Take a task's tick away
    #[arg(long, value_name = "TASK")]
    reopen: Vec<String>,
    /// Add a task
    #[arg(long, value_name = "TEXT")]
    task: Vec<String>,
    /// Add a blocker
    #[arg(long, value_name = "TEXT")]
    blocker: Vec<String>,
    /// Take a blocker away
    #[arg(long, value_name = "BLOCKER")]
    resolve: Vec<String>,
    /// Set a row of the project's state: --state Build "Passing" or --state Build "Passing" "Notes"
    #[arg(long, value_names = ["ASPECT", "STATUS", "NOTES"], num_args = 2..=3, action = clap::ArgAction::Set)]
    state: Vec<String>,
    /// Set a row of the key files
    #[arg(long, value_names = ["FILE", "STATE", "NOTES"], num_args = 2..=3, action = clap::ArgAction::Set)]
    file: Vec<String>,
    /// What the next session should do, instead of what is there
    #[arg(long, value_name = "STEP")]
    next: Vec<String>,
    /// Add a note
    #[arg(long, value_name = "TEXT")]
    note: Vec<String>,
    /// Replace the text of a section; - reads it from stdin, @PATH from a file
    #[arg(long, value_names = ["SECTION", "TEXT"], num_args = 2, action = clap::ArgAction::Set)]
    section: Vec<String>,
    /// Replace the whole context; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "-|@PATH", requires = "base")]
    rewrite: Option<String>,
    /// The context as you had read it: what others changed since then is merged
    #[arg(long, value_name = "@PATH", requires = "rewrite")]
    base: Option<String>,
}

pub(super) async fn run(args: Args, agents: &AgentFiles, door: &mut Door) -> Result<(), Error> {
    let rewrite = match (&args.rewrite, &args.base) {
        (Some(text), Some(base)) => Some(api::agent::Rewrite {
            text: given(text)?,
            base: given(base)?,
        }),
        _ => None,
    };
    let agent = args.agent.clone();
    let change = change(args)?;
    let ctx = door.ctx()?;
    let answer = api::agent::context(agents, &ctx, &agent, &change, rewrite.as_ref()).await?;
    door.out.notes(&answer.clashes);
    return_json!(door, &answer);
    match change.is_empty() && rewrite.is_none() {
        true => door.out.bytes(answer.context.as_bytes()),
        false => {
            let lines = answer.context.lines().count() as u64;
            door.out.line(format!(
                "the context has {} now",
                text::count(lines, "line")
            ))
        }
    }
}

fn change(args: Args) -> Result<ContextChange, Error> {
    let row = |row: Vec<String>| {
        let mut cells = row.into_iter();
        Some((cells.next()?, cells.next()?, cells.next()))
    };
    let state = row(args.state).map(|(aspect, status, notes)| StateRow {
        aspect,
        status,
        notes,
    });
    let file = row(args.file).map(|(file, state, notes)| KeyFile { file, state, notes });
    let section = match args.section.as_slice() {
        [] => None,
        [section, text] => Some(SectionText {
            section: section.clone(),
            text: given(text)?,
        }),
        _ => return Err(Invalid::new("section", "takes a name and a text").into()),
    };
    Ok(ContextChange {
        done: args.done,
        reopened: args.reopen,
        tasks: args.task,
        blockers: args.blocker,
        resolved: args.resolve,
        state: Vec::from_iter(state),
        files: Vec::from_iter(file),
        next: (!args.next.is_empty()).then_some(args.next),
        notes: args.note,
        sections: Vec::from_iter(section),
    })
}
