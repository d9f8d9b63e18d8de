//! `mnemon reembed`

use super::door::Door;
use super::shared::Shared;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::Reembed;

/// Recompute embeddings with the current embedder
///
/// Records without a vector of the current embedder get one; until then they are found by their
/// words and by their older vectors. The command can be interrupted and continues where it stopped.
/// To return to the previous embedder, set it again and run this command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon reembed\n  \
    MNEMON_EMBEDDER=openai:nomic-embed-text@http://localhost:11434/v1 mnemon reembed")]
pub(super) struct Args {
    #[command(flatten)]
    work: Shared<Reembed>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let done = args.work.call_long(door, "records").await?;
    return_json!(door, &done);
    let count = text::count(done.embedded, "record");
    let done = format!("{count} embedded with {}", done.embedder);
    door.out.line(text::one_line(&done))
}
