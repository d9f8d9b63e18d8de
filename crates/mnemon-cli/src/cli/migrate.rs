//! `mnemon migrate`

use std::time::Duration;

use mnemon_core::Tenant;
use mnemon_engine::Migration;

use super::door::Door;
use super::{progress, text};
use mnemon_operations::api::migrate::{self, Response};
use mnemon_operations::config::{Origin, without_passwords};
use mnemon_operations::{Error, wiring};

/// How often a source is asked for new changes that is followed.
const POLL: Duration = Duration::from_millis(500);

/// Copy a store to another one, which may be in another format, while it is in use
///
/// Copies every tenant between sqlite:, jsonl: and postgres: stores, with ids, versions, history,
/// idempotency keys, links, expiry and vectors, and compares both stores in the end. With --tenant,
/// copies one tenant. If it is interrupted, run it again: it continues after the last change that
/// the target has. The target must be empty or an earlier copy of the same source.
///
/// To switch without losing a write: run this while the source is in use, then stop its writers, run it
/// again, and start the writers on the target.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon migrate --from sqlite:memory.db --to jsonl:memory\n  \
    mnemon migrate --from sqlite:memory.db --to postgres://mnemon@db.example/memory --dry-run\n  \
    mnemon migrate --from sqlite:memory.db --to postgres://mnemon@db.example/memory --follow")]
pub(super) struct Args {
    /// URL of the store to copy
    #[arg(long, value_name = "URL")]
    from: String,
    /// URL of the store to create
    #[arg(long, value_name = "URL")]
    to: String,
    /// Check both stores and show what would be copied, without copying it
    #[arg(long)]
    dry_run: bool,
    /// Continue to copy new changes until you press Ctrl-C
    #[arg(long, conflicts_with = "dry_run")]
    follow: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    door.local()?;
    let option = |name: &str| matches!(name, "from" | "to").then(|| format!("--{name}"));
    let done = copy(args, door).await;
    done.map_err(|error| error.spelling(option))
}

async fn copy(args: Args, door: &mut Door) -> Result<(), Error> {
    let migration = wiring::migration(&door.config, &args.from, &args.to, args.dry_run)?;
    let tenant = &door.config.tenant;
    let only = matches!(tenant.origin, Origin::Flag(_)).then(|| tenant.value.clone());
    let (planned, _) = migrate::check(&migration, only.as_ref()).await?;
    if args.dry_run {
        return show(&planned, &args, door);
    }
    let total = 2 * (planned.records + planned.history);
    let bar = progress::bar(&door.out, total, "changes copied and compared");
    let done = migrate::run(&migration, only.as_ref(), &|count| bar.inc(count)).await;
    bar.finish_and_clear();
    let done = done?;
    if !args.follow {
        return show(&done, &args, door);
    }
    if !door.out.json {
        show(&done, &args, door)?;
        door.out.flush()?;
    }
    let done = follow(&migration, only.as_ref(), done).await?;
    return_json!(door, &done);
    let copied = text::count(done.copied, "change");
    say!(
        door,
        "copied {copied} in all, up to {}; stop the writers and run this again without --follow",
        newest(&done)
    )
}

/// Copies new changes until somebody presses Ctrl-C.
async fn follow(
    migration: &Migration,
    only: Option<&Tenant>,
    mut done: Response,
) -> Result<Response, Error> {
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        let copied = done.copied;
        done = migrate::follow(migration, only).await?;
        done.copied += copied;
        tokio::select! {
            _ = &mut stop => return Ok(done),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// The newest change of the target, or those of each tenant.
fn newest(done: &Response) -> String {
    let tenants = done.copies.iter();
    let all: Vec<String> = match done.copies.as_slice() {
        [one] => vec![format!("change {}", one.seq)],
        _ => tenants
            .map(|it| format!("change {} of tenant {}", it.seq, it.tenant))
            .collect(),
    };
    all.join(", ")
}

fn show(done: &Response, args: &Args, door: &mut Door) -> Result<(), Error> {
    return_json!(door, done);
    let records = text::count(done.records, "record");
    let history = text::count(done.history, "past version");
    let tenants = text::count(done.tenants, "tenant");
    let behind = text::count(done.behind, "change");
    if done.dry_run {
        say!(
            door,
            "would copy {behind}: {tenants} with {records} and {history}"
        )?;
        return door.out.line("nothing was written");
    }
    let copied = text::count(done.copied, "change");
    say!(door, "copied {copied} of {tenants}")?;
    let receipts = text::count(done.receipts.unwrap_or(0), "receipt");
    let hash = done.hash.as_deref().unwrap_or_default();
    say!(
        door,
        "verified: {records}, {history}, {receipts}, hash {hash}"
    )?;
    let newest = newest(done);
    let place = text::one_line(&without_passwords(&args.to));
    if !done.vectors && args.to.starts_with("jsonl:") {
        door.out
            .line("vectors were not copied: jsonl: stores compute them when they are opened")?;
    } else if !done.vectors {
        say!(
            door,
            "vectors were not copied, since jsonl: stores keep none: run mnemon reembed --store {place}"
        )?;
    }
    match done.behind {
        0 => say!(
            door,
            "the target has caught up to {newest}; to use it, set store = \"{place}\" in mnemon.toml"
        ),
        _ => say!(
            door,
            "the target has caught up to {newest}, and the source has {behind} more: stop its writers \
             and run this again before you use {place}"
        ),
    }
}
