//! `mnemon chat append`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::{Invalid, Role};
use mnemon_engine::Utterance;

use super::super::door::Door;
use super::super::input;
use super::{ConversationArgs, WindowArgs, chat};
use crate::Error;
use crate::api::chat::Append;

#[derive(Debug, clap::Args)]
pub(super) struct AppendArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// What was said; without it, or with -, it is read from stdin
    #[arg(value_name = "TEXT", conflicts_with = "message")]
    text: Vec<String>,
    /// Who speaks
    #[arg(long, value_parser = role(), default_value = "user", conflicts_with = "message")]
    role: Role,
    /// The speaker's name
    #[arg(long, value_name = "NAME", conflicts_with = "message")]
    name: Option<String>,
    /// The message in JSON, with role and content; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "JSON|-|@PATH")]
    message: Option<String>,
    /// Makes a retry harmless: under the same key the same is said once
    #[arg(long)]
    key: Option<String>,
    /// Leave the window as it is
    #[arg(long)]
    leave_window: bool,
    /// Write it to the frozen log of this project, too: ROOT/.airsspec/contexts/agent/SESSION.jsonl
    #[arg(long, value_name = "ROOT")]
    files: Option<PathBuf>,
    #[command(flatten)]
    window: WindowArgs,
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(["user", "assistant", "system", "tool"]).map(|word| {
        match word.as_str() {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "tool" => Role::Tool,
            _ => Role::User,
        }
    })
}

pub(super) async fn append(args: AppendArgs, door: &mut Door) -> Result<(), Error> {
    let message = match args.message.as_deref() {
        Some(json) => parse(json)?,
        None => {
            let said = input::words(&args.text)?;
            if said.trim().is_empty() {
                return Err(Invalid::new("text", "is empty; nothing was said").into());
            }
            Utterance {
                name: args.name,
                ..Utterance::text(args.role, said)
            }
        }
    };
    let append = Append {
        message,
        key: args.key.as_deref(),
        leave_window: args.leave_window,
        files: args.files.as_deref(),
    };
    let chat = chat(
        args.conversation,
        Some(args.window),
        door.config.window.value,
    );
    let done = chat.append(&door.memory()?, &door.ctx()?, append).await?;
    return_json!(door, &done);
    let commit = done.receipt.commit.unwrap_or_default();
    for item in &done.receipt.items {
        door.out
            .line(format!("appended {} (commit {commit})", item.id))?;
    }
    match done.compressed {
        true => door.out.line("the window was compressed"),
        false => Ok(()),
    }
}

fn parse(json: &str) -> Result<Utterance, Error> {
    serde_json::from_str(&input::given_or_file(json)?)
        .map_err(|error| Invalid::new("message", format!("is no message: {error}")).into())
}
