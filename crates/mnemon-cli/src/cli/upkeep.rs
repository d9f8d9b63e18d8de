//! `mnemon upkeep`

use super::door::Door;
use super::shared::Shared;
use mnemon_operations::Error;
use mnemon_operations::api::upkeep::Response;
use mnemon_operations::operation::Upkeep;

/// Run the maintenance that is due
///
/// Erases expired records, drops old history and receipts, compacts the store, embeds records
/// without a vector, and learns from logged steps (see mnemon learn). Asks the language model for
/// summaries that are due. Sends the outbox. Removes temporary files, older than a day, that killed
/// writers left in the folder of agents. Every write does a small part of this; this command does the rest.
///
/// While the clock is more than 35 days ahead of the newest write, nothing is erased until it has been
/// so for a day: a clock that is wrong for a moment must not erase anything. --accept-clock erases
/// at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon upkeep\n  \
    mnemon upkeep --limit 1000\n  \
    mnemon upkeep --accept-clock")]
pub(super) struct Args {
    #[command(flatten)]
    work: Shared<Upkeep>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let done = args.work.call(door).await?;
    return_json!(door, &done);
    show(&done, door)
}

fn show(done: &Response, door: &mut Door) -> Result<(), Error> {
    let pieces = [
        (done.expired, "expired records erased"),
        (done.history, "old versions dropped"),
        (done.receipts, "old receipts dropped"),
        (done.embedded, "records embedded"),
        (done.steps, "steps read to learn from them"),
        (done.learnt, "skills and rules learnt, confirmed or retired"),
        (done.summaries, "summaries written by the language model"),
        (done.remote_sent, "recordings sent to the long-term memory"),
        (done.swept, "temporary files of killed writers removed"),
    ];
    for (count, what) in pieces {
        if count > 0 {
            say!(door, "{count} {what}")?;
        }
    }
    if done.compacted {
        door.out.line("the store was compacted")?;
    }
    if let Some(days) = done.clock_days_ahead {
        door.out.line(mnemon_core::clock::notice(days))?;
    }
    door.out.line(match done.more {
        true => "there is more to do",
        false => "nothing more to do",
    })
}
