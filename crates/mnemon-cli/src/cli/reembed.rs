//! `mnemon reembed`

use super::door::Door;
use super::{progress, text};
use crate::{Error, api};

/// Recompute embeddings with the current embedder
///
/// Records without a vector of the current embedder get one; until then they are found by their
/// words and by their older vectors. The command can be interrupted and continues where it stopped.
/// To return to the previous embedder, set it again and run this command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon reembed\n  \
    MNEMON_EMBEDDER=openai:nomic-embed-text@http://localhost:11434/v1 mnemon reembed")]
pub(super) struct Args {}

pub(super) async fn run(_args: Args, door: &mut Door) -> Result<(), Error> {
    let memory = door.memory()?;
    let stats = api::stats::run(&memory, &door.ctx()?).await?;
    let bar = progress::bar(&door.out, stats.records, "records");
    let (mut embedded, mut reached) = (0, 0);
    // In slices, so that other processes get their turn in between.
    loop {
        let slice = api::reembed::run(&memory, &door.ctx()?, reached, api::reembed::LIMIT).await?;
        embedded += slice.embedded;
        bar.inc(slice.embedded);
        reached = slice.reached;
        if !slice.more {
            break;
        }
    }
    bar.finish_and_clear();
    return_json!(door, &serde_json::json!({ "embedded": embedded }));
    let embedder = &door.config.embedder.value;
    let done = format!(
        "{} embedded with {embedder}",
        text::count(embedded, "record")
    );
    door.out.line(text::one_line(&done))
}
