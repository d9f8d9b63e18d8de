//! `mnemon chat append`

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::{Invalid, Role};
use mnemon_engine::{LogLine, Utterance};

use super::super::door::Door;
use super::super::input;
use super::{ConversationArgs, WindowArgs, chat};
use crate::Error;
use crate::api::chat::{Append, Appended};

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
    /// A line of the format of a project's log: user, thought, action or observation
    #[arg(long, value_name = "JSON|-|@PATH", requires = "files", conflicts_with_all = ["message", "text"])]
    line: Option<String>,
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
    if let Some(line) = &args.line {
        let line = input::given_or_file(line)?;
        return append_line(args, &line, door).await;
    }
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
    };
    let chat = chat(args.conversation, Some(args.window), door).await?;
    let done = chat.append(&door.memory()?, &door.ctx()?, append).await?;
    report(&done, door)
}

async fn append_line(args: AppendArgs, line: &str, door: &mut Door) -> Result<(), Error> {
    let line: LogLine = serde_json::from_str(line)
        .map_err(|error| Invalid::new("line", format!("is not a line of a log: {error}")))?;
    let chat = chat(args.conversation, Some(args.window), door).await?;
    let (memory, ctx, key) = (door.memory()?, door.ctx()?, args.key.as_deref());
    let done = chat.append_line(&memory, &ctx, &line, key, args.leave_window);
    let done = done.await?;
    report(&done, door)
}

fn report(done: &Appended, door: &mut Door) -> Result<(), Error> {
    return_json!(door, done);
    let commit = done.receipt.commit;
    let commit = commit.map_or(String::new(), |commit| format!(" (commit {commit})"));
    for item in &done.receipt.items {
        door.out.line(format!("appended {}{commit}", item.id))?;
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
