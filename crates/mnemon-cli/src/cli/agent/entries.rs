//! Decisions and learnings: `decide`, `learn`, `edit` and `remove` of `mnemon agent` and
//! `mnemon team`

use mnemon_engine::agentfiles::{
    AgentFiles, Code, Decision, EntryChange, FieldText, Learning, Whose,
};
use serde_json::json;

use super::Target;
use crate::Error;
use crate::cli::door::Door;
use crate::cli::input::given_or_file as given;
use crate::cli::text;

/// Log a decision that affects later work
#[derive(Debug, clap::Args)]
pub(super) struct DecideArgs {
    #[command(flatten)]
    pub(super) target: Target,
    #[command(flatten)]
    pub(super) decision: DecisionArgs,
}

/// A decision of an agent or a team.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DecisionArgs {
    /// Title, on one line
    #[arg(value_name = "TITLE")]
    title: String,
    /// The decision; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    decision: String,
    /// The situation that needed a decision; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    context: Option<String>,
    /// Reason; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Vec<String>,
    /// Alternative that was considered; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    alternative: Vec<String>,
    /// Consequence; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    impact: Vec<String>,
    /// Whether it can be reversed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reversible: Option<String>,
    /// Date of the decision [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

impl DecisionArgs {
    pub(in crate::cli) fn read(self) -> Result<Decision, Error> {
        Ok(Decision {
            title: self.title,
            date: self.date,
            context: self.context.as_deref().map_or(Ok(String::new()), given)?,
            decision: given(&self.decision)?,
            reasons: self.reason,
            alternatives: self.alternative,
            impact: self.impact,
            reversible: self.reversible,
            ..Decision::default()
        })
    }
}

/// Add a pattern that was learnt
#[derive(Debug, clap::Args)]
pub(super) struct LearnArgs {
    #[command(flatten)]
    pub(super) target: Target,
    /// Title, on one line
    #[arg(value_name = "TITLE")]
    title: String,
    /// The pattern; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pattern: String,
    /// An example; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    code: Option<String>,
    /// The language of the example
    #[arg(long, value_name = "NAME")]
    language: Option<String>,
    /// Why it is useful
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    why: Option<String>,
    /// Date of the learning [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

/// Which entry is meant.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WhichArgs {
    /// The title of the entry, a part that only one has, or the id that `mnemon search` shows
    #[arg(value_name = "ENTRY")]
    which: String,
    /// The date of the entry, where several have this title
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

/// What becomes of an entry.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct EditArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// A new title
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// A new date
    #[arg(long, value_name = "YYYY-MM-DD")]
    new_date: Option<String>,
    /// Set a field, such as: --set Reason "it is faster"; may be repeated. - reads the text from
    /// stdin, @PATH from a file
    #[arg(long, value_names = ["LABEL", "TEXT"], num_args = 2, allow_hyphen_values = true, action = clap::ArgAction::Append)]
    set: Vec<String>,
}

impl EditArgs {
    pub(in crate::cli) fn read(self) -> Result<EntryChange, Error> {
        let mut fields = Vec::new();
        for pair in self.set.chunks(2) {
            if let [label, text] = pair {
                let (label, text) = (label.clone(), given(text)?);
                fields.push(FieldText { label, text });
            }
        }
        Ok(EntryChange {
            title: self.title,
            new_date: self.new_date,
            fields,
            ..self.which.read(false)
        })
    }
}

impl WhichArgs {
    pub(in crate::cli) fn read(self, remove: bool) -> EntryChange {
        EntryChange {
            which: self.which,
            date: self.date,
            remove,
            ..EntryChange::default()
        }
    }
}

pub(in crate::cli) async fn decide(
    decision: &Decision,
    whose: Whose<'_>,
    agents: &AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let file = agents.decide(&door.ctx()?, whose, decision).await?;
    show_file(&file, door)
}

pub(super) async fn learn(
    args: LearnArgs,
    agents: &AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let code = match &args.code {
        Some(code) => Some(Code {
            language: args.language.unwrap_or_default(),
            text: given(code)?,
        }),
        None => None,
    };
    let learning = Learning {
        title: args.title,
        date: args.date,
        pattern: given(&args.pattern)?,
        code,
        why: args.why.unwrap_or_default(),
    };
    let agent = &args.target.agent;
    let file = agents.learn(&door.ctx()?, agent, &learning).await?;
    show_file(&file, door)
}

fn show_file(file: &str, door: &mut Door) -> Result<(), Error> {
    return_json!(door, &json!({ "file": file }));
    door.out.line(format!("wrote {file}"))
}

/// Changes or removes an entry. The text of a removed one is printed, so that it can be put back.
pub(in crate::cli) async fn change(
    change: &EntryChange,
    whose: Whose<'_>,
    agents: &AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let done = agents.change_entry(&door.ctx()?, whose, change).await?;
    return_json!(door, &done);
    let verb = if done.removed { "removed" } else { "changed" };
    let heading = text::one_line(&done.heading);
    door.out
        .line(format!("{verb} {heading} in {}", done.file))?;
    match done.removed {
        true => door.out.line(format!("\n{}", text::clean(&done.before))),
        false => Ok(()),
    }
}
