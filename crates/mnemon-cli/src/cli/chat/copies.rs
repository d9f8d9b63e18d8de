//! `mnemon chat fork|snapshot|restore|clear`

use serde_json::json;

use super::super::door::Door;
use super::super::shared::Shared;
use super::super::text;
use crate::Error;
use crate::operation::Conversation;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForkArgs {
    #[command(flatten)]
    conversation: Shared<Conversation>,
    /// Name of the copy
    #[arg(value_name = "NEW")]
    to: String,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SnapshotArgs {
    #[command(flatten)]
    conversation: Shared<Conversation>,
    /// Label of the snapshot
    #[arg(value_name = "LABEL")]
    label: String,
}

pub(super) async fn fork(args: ForkArgs, door: &mut Door) -> Result<(), Error> {
    let chat = args.conversation.call(door).await?;
    let messages = chat.existing().await?.fork(&chat.ctx, &args.to).await?;
    return_json!(door, &json!({ "session": args.to, "messages": messages }));
    let count = text::count(messages as u64, "message");
    let to = text::one_line(&args.to);
    say!(door, "forked: {to} with {count}")
}

pub(super) async fn snapshot(args: SnapshotArgs, door: &mut Door) -> Result<(), Error> {
    let chat = args.conversation.call(door).await?;
    let messages = chat
        .existing()
        .await?
        .snapshot(&chat.ctx, &args.label)
        .await?;
    say("saved", &args.label, messages, door)
}

pub(super) async fn restore(args: SnapshotArgs, door: &mut Door) -> Result<(), Error> {
    let chat = args.conversation.call(door).await?;
    let messages = chat.restore(&args.label).await?;
    say("restored", &args.label, messages, door)
}

fn say(word: &str, label: &str, messages: usize, door: &mut Door) -> Result<(), Error> {
    return_json!(door, &json!({ "snapshot": label, "messages": messages }));
    let count = text::count(messages as u64, "message");
    let label = text::one_line(label);
    say!(door, "{word}: snapshot {label} with {count}")
}

pub(super) async fn clear(args: Shared<Conversation>, door: &mut Door) -> Result<(), Error> {
    let chat = args.call(door).await?;
    chat.existing().await?.clear(&chat.ctx).await?;
    return_json!(door, &json!({ "cleared": chat.session }));
    door.out.line("the window is empty; every message is kept")
}
