//! `mnemon upkeep`

use super::door::Door;
use crate::api::upkeep::Response;
use crate::{Error, api, wiring};

/// Run the maintenance that is due
///
/// Erases expired records, drops old history and receipts, compacts the store, embeds records
/// without a vector, and learns from logged steps (see mnemon learn). Asks the language model for
/// summaries that are due. Removes temporary files, older than a day, that killed writers left in
/// the folder of agents. Every write does a small part of this; this command does the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon upkeep\n  \
    mnemon upkeep --limit 1000\n  \
    mnemon upkeep --accept-clock")]
pub(super) struct Args {
    /// Maximum number of pieces of work [default: all that is due]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Erase expired records although the clock is far ahead of the newest write
    ///
    /// Without this option nothing is erased while the clock is more than 35 days ahead, until it
    /// has been so for a day: a clock that is wrong for a moment must not erase anything.
    #[arg(long)]
    accept_clock: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let memory = door.memory()?;
    let mut done = Response {
        swept: wiring::sweep(&door.config).await?,
        ..Response::default()
    };
    let mut left = args.limit.unwrap_or(usize::MAX);
    // In slices, so that other processes get their turn in between.
    loop {
        let limit = left.min(api::upkeep::LIMIT);
        let slice = api::upkeep::run(&memory, &door.ctx()?, limit, args.accept_clock).await?;
        done = Response {
            expired: done.expired + slice.expired,
            history: done.history + slice.history,
            receipts: done.receipts + slice.receipts,
            compacted: done.compacted || slice.compacted,
            embedded: done.embedded + slice.embedded,
            steps: done.steps + slice.steps,
            learnt: done.learnt + slice.learnt,
            summaries: done.summaries + slice.summaries,
            swept: done.swept,
            more: slice.more,
            clock_days_ahead: slice.clock_days_ahead,
        };
        left -= limit;
        let cleared = slice.expired + slice.history + slice.receipts;
        let progressed =
            cleared + slice.embedded + slice.steps + slice.learnt + slice.summaries > 0;
        if !slice.more || left == 0 || !progressed {
            break;
        }
    }
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
