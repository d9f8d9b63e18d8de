//! `mnemon chat compress`

use super::super::door::Door;
use super::super::text;
use super::{ConversationArgs, WindowArgs, chat};
use crate::Error;

#[derive(Debug, clap::Args)]
pub(super) struct CompressArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// Only if it is due
    #[arg(long)]
    if_needed: bool,
    #[command(flatten)]
    window: WindowArgs,
}

pub(super) async fn compress(args: CompressArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, Some(args.window), door).await?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let done = chat.compress(&memory, &ctx, args.if_needed).await?;
    return_json!(door, &done);
    if done.events.is_empty() {
        return door
            .out
            .line("nothing was compressed: there is nothing to be gained");
    }
    for event in &done.events {
        let before = event.number("tokenBefore").unwrap_or_default();
        let after = event.number("tokenAfter").unwrap_or_default();
        let count = text::count(event.compressed_message_count as u64, "message");
        let what = text::one_line(&event.event_type);
        door.out
            .line(format!("{what}: {count}, {before} → {after} tokens"))?;
    }
    let (before, after) = (done.tokens_before, done.tokens_after);
    door.out
        .line(format!("the window: {before} → {after} tokens"))
}
