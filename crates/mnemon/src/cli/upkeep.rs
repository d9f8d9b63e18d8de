//! `mnemon upkeep`

use mnemon_core::Upkept;

use super::door::Door;
use crate::{Error, api};

/// Do the housekeeping that is due
///
/// Erases what has expired, drops history and receipts past their time, compacts. Every write does
/// a little of this on the side; this does the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon upkeep\n  \
    mnemon upkeep --limit 1000")]
pub(super) struct Args {
    /// Do at most this many pieces of work [default: all that is due]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let memory = door.memory()?;
    let mut done = Upkept::default();
    let mut left = args.limit.unwrap_or(usize::MAX);
    // In slices, so that other processes get their turn in between.
    loop {
        let limit = left.min(api::upkeep::LIMIT);
        let request = api::upkeep::Request { limit };
        let slice = api::upkeep::run(&memory, &door.ctx()?, request).await?;
        done = Upkept {
            expired: done.expired + slice.expired,
            history: done.history + slice.history,
            receipts: done.receipts + slice.receipts,
            compacted: done.compacted || slice.compacted,
            more: slice.more,
        };
        left -= limit;
        let progressed = slice.expired + slice.history + slice.receipts > 0;
        if !slice.more || left == 0 || !progressed {
            break;
        }
    }
    if door.out.json {
        return door.out.json(&done);
    }
    show(&done, door)
}

fn show(done: &Upkept, door: &mut Door) -> Result<(), Error> {
    let pieces = [
        (done.expired, "expired records erased"),
        (done.history, "old versions dropped"),
        (done.receipts, "old receipts dropped"),
    ];
    for (count, what) in pieces {
        if count > 0 {
            door.out.line(format!("{count} {what}"))?;
        }
    }
    if done.compacted {
        door.out.line("the store was compacted")?;
    }
    door.out.line(match done.more {
        true => "there is more to do",
        false => "nothing more to do",
    })
}
