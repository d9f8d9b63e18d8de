//! `mnemon chat fork|snapshot|restore|clear`

use serde_json::json;

use super::super::door::Door;
use super::super::text;
use super::{ConversationArgs, chat};
use crate::Error;

#[derive(Debug, clap::Args)]
pub(super) struct ForkArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// Name of the copy
    #[arg(value_name = "NEW")]
    to: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct SnapshotArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// Label of the snapshot
    #[arg(value_name = "LABEL")]
    label: String,
}

pub(super) async fn fork(args: ForkArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
    let messages = chat.fork(&door.memory()?, &door.ctx()?, &args.to).await?;
    return_json!(door, &json!({ "session": args.to, "messages": messages }));
    let count = text::count(messages as u64, "message");
    let to = text::one_line(&args.to);
    door.out.line(format!("forked: {to} with {count}"))
}

pub(super) async fn snapshot(args: SnapshotArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let messages = chat.snapshot(&memory, &ctx, &args.label).await?;
    say("saved", &args.label, messages, door)
}

pub(super) async fn restore(args: SnapshotArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let messages = chat.restore(&memory, &ctx, &args.label).await?;
    say("restored", &args.label, messages, door)
}

fn say(word: &str, label: &str, messages: usize, door: &mut Door) -> Result<(), Error> {
    return_json!(door, &json!({ "snapshot": label, "messages": messages }));
    let count = text::count(messages as u64, "message");
    let label = text::one_line(label);
    door.out
        .line(format!("{word}: snapshot {label} with {count}"))
}

pub(super) async fn clear(args: ConversationArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args, None, door).await?;
    chat.clear(&door.memory()?, &door.ctx()?).await?;
    return_json!(door, &json!({ "cleared": chat.session }));
    door.out.line("the window is empty; every message is kept")
}
