//! `mnemon chat compress`

use super::super::door::Door;
use super::messages::event_line;
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
        door.out.line(event_line(event))?;
    }
    let (before, after) = (done.tokens_before, done.tokens_after);
    door.out
        .line(format!("the window: {before} → {after} tokens"))
}
