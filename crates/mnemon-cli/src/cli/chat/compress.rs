//! `mnemon chat compress`

use super::super::door::Door;
use super::super::shared::{Shared, call};
use super::super::text;
use super::messages::event_line;
use mnemon_operations::Error;
use mnemon_operations::operation::{ChatCompress, ChatCompressPreview, Previews};

const NOTHING: &str = "nothing was compressed: no strategy makes the window smaller";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompressArgs {
    #[command(flatten)]
    conversation: Shared<ChatCompress>,
    /// Show the strategy, the messages and the resulting summary; write nothing
    #[arg(long, conflicts_with_all = ["if_needed", "wait"])]
    dry_run: bool,
}

pub(super) async fn compress(args: CompressArgs, door: &mut Door) -> Result<(), Error> {
    let given = args.conversation.arguments()?;
    if args.dry_run {
        return preview(&call::<ChatCompressPreview>(given, door).await?, door);
    }
    let done = call::<ChatCompress>(given, door).await?;
    return_json!(door, &done);
    if done.events.is_empty() {
        return door.out.line(NOTHING);
    }
    for event in &done.events {
        door.out.line(event_line(event))?;
    }
    let (before, after) = (done.tokens_before, done.tokens_after);
    say!(door, "the window: {before} → {after} tokens")
}

/// What a compression would do: the strategy, which messages, their tokens and the new text.
fn preview(previews: &Previews, door: &mut Door) -> Result<(), Error> {
    return_json!(door, previews);
    if previews.changes.is_empty() {
        return door.out.line(NOTHING);
    }
    for change in &previews.changes {
        let (strategy, first, last) = (&change.strategy, change.from, change.to - 1);
        let (before, after) = (change.tokens_before, change.tokens_after);
        let count = text::count((change.to - change.from) as u64, "message");
        say!(
            door,
            "{strategy}: {count} (# {first} to # {last}), {before} → {after} tokens"
        )?;
        door.out.line(text::clean(&change.text))?;
    }
    door.out.line("nothing was written (--dry-run)")
}
