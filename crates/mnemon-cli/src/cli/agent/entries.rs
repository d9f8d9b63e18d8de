//! `mnemon agent decide` and `mnemon agent learn`

use mnemon_engine::agentfiles::{AgentFiles, Code, Decision, Learning};
use serde_json::json;

use crate::Error;
use crate::cli::door::Door;
use crate::cli::input::given_or_file as given;

/// Log a decision that affects later work
#[derive(Debug, clap::Args)]
pub(super) struct DecideArgs {
    #[arg(value_name = "AGENT")]
    agent: String,
    /// What it is about, on one line
    #[arg(value_name = "TITLE")]
    title: String,
    /// What was decided; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT")]
    decision: String,
    /// In which situation
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// Why; may be repeated
    #[arg(long, value_name = "TEXT")]
    reason: Vec<String>,
    /// What was considered instead; may be repeated
    #[arg(long, value_name = "TEXT")]
    alternative: Vec<String>,
    /// What follows from it; may be repeated
    #[arg(long, value_name = "TEXT")]
    impact: Vec<String>,
    /// Whether it can be taken back
    #[arg(long, value_name = "TEXT")]
    reversible: Option<String>,
    /// When, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

/// Add a pattern that was learnt
#[derive(Debug, clap::Args)]
pub(super) struct LearnArgs {
    #[arg(value_name = "AGENT")]
    agent: String,
    /// What it is about, on one line
    #[arg(value_name = "TITLE")]
    title: String,
    /// The pattern; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT")]
    pattern: String,
    /// An example; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "TEXT")]
    code: Option<String>,
    /// The language of the example
    #[arg(long, value_name = "NAME")]
    language: Option<String>,
    /// Why it is of use
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// When, if not today
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<String>,
}

pub(super) async fn decide(
    args: DecideArgs,
    agents: &AgentFiles,
    door: &mut Door,
) -> Result<(), Error> {
    let decision = Decision {
        title: args.title,
        date: args.date,
        context: args.context.as_deref().map_or(Ok(String::new()), given)?,
        decision: given(&args.decision)?,
        reasons: args.reason,
        alternatives: args.alternative,
        impact: args.impact,
        reversible: args.reversible,
    };
    let file = agents.decide(&door.ctx()?, &args.agent, &decision).await?;
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
    let file = agents.learn(&door.ctx()?, &args.agent, &learning).await?;
    show_file(&file, door)
}

fn show_file(file: &str, door: &mut Door) -> Result<(), Error> {
    return_json!(door, &json!({ "file": file }));
    door.out.line(format!("wrote {file}"))
}
