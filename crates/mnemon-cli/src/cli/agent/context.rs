//! `mnemon agent context` and `mnemon team context`

use mnemon_core::Invalid;
use mnemon_engine::agentfiles::{AgentFiles, ContextChange, KeyFile, SectionText, StateRow, Whose};

use crate::cli::door::Door;
use crate::cli::input::given_or_file as given;
use crate::cli::text;
use crate::{Error, api};

/// Change single lines of an agent's context; without options, print it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon agent context coder --create --task \"Fix the race\"\n  \
    mnemon agent context coder --done race --next \"Write a test\"\n  \
    mnemon agent context coder --section Notes \"- only this\"")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) target: super::Target,
    #[command(flatten)]
    pub(super) change: ChangeArgs,
}

/// What changes in a context.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ChangeArgs {
    /// Tick a task: its words, or a part that only one task has
    #[arg(long, value_name = "TASK", allow_hyphen_values = true)]
    done: Vec<String>,
    /// Remove the tick of a task
    #[arg(long, value_name = "TASK", allow_hyphen_values = true)]
    reopen: Vec<String>,
    /// Add a task
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    task: Vec<String>,
    /// Add a blocker
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    blocker: Vec<String>,
    /// Remove a blocker: its words, or a part that only one has
    #[arg(long, value_name = "BLOCKER", allow_hyphen_values = true)]
    resolve: Vec<String>,
    /// Set a row of the project's state: --state Build "Passing" or --state Build "Passing" "Notes"
    #[arg(long, value_names = ["ASPECT", "STATUS", "NOTES"], num_args = 2..=3, action = clap::ArgAction::Set)]
    state: Vec<String>,
    /// Set a row of the key files
    #[arg(long, value_names = ["FILE", "STATE", "NOTES"], num_args = 2..=3, action = clap::ArgAction::Set)]
    file: Vec<String>,
    /// Replace the steps of the next session; may be repeated
    #[arg(long, value_name = "STEP", allow_hyphen_values = true)]
    next: Vec<String>,
    /// Add a note
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Vec<String>,
    /// Replace the text of a section; - reads it from stdin, @PATH from a file
    #[arg(long, value_names = ["SECTION", "TEXT"], num_args = 2, action = clap::ArgAction::Set, allow_hyphen_values = true)]
    section: Vec<String>,
    /// Replace the whole context; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "-|@PATH", requires = "base")]
    rewrite: Option<String>,
    /// The context as you read it before: changes that others made since then are merged
    #[arg(long, value_name = "@PATH", requires = "rewrite")]
    base: Option<String>,
}

pub(in crate::cli) async fn run(
    args: ChangeArgs,
    whose: Whose<'_>,
    agents: &AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let rewrite = match (&args.rewrite, &args.base) {
        (Some(text), Some(base)) => Some(api::agent::Rewrite {
            text: given(text)?,
            base: given(base)?,
        }),
        _ => None,
    };
    let change = change(args)?;
    let ctx = door.ctx()?;
    let answer = api::agent::context(agents, &ctx, whose, &change, rewrite.as_ref()).await?;
    door.out.notes(&answer.clashes);
    return_json!(door, &answer);
    if answer.changes.is_empty() {
        return door.out.bytes(answer.context.as_bytes());
    }
    let mut changes = answer.changes.iter();
    changes.try_for_each(|change| door.out.line(text::one_line(change)))
}

fn change(args: ChangeArgs) -> Result<ContextChange, Error> {
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
