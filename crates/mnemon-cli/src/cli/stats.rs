//! `mnemon stats`

use super::door::Door;
use super::text;
use crate::{Error, api};

/// Show the number of records and the size of the store
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon stats\n  \
    mnemon stats --json | jq .records")]
pub(super) struct Args {}

pub(super) async fn run(_args: Args, door: &mut Door) -> Result<(), Error> {
    let stats = api::stats::run(&*door.memory()?, &door.ctx()?).await?;
    return_json!(door, &stats);
    let mut facts = vec![
        ("store", text::one_line(&door.config.store.value)),
        ("tenant", stats.tenant.to_string()),
        ("records", stats.records.to_string()),
        ("history", text::count(stats.tally.history, "old version")),
        ("newest change", stats.tally.seq.to_string()),
    ];
    if stats.tally.expired > 0 {
        let expired = format!("{} to be erased by upkeep", stats.tally.expired);
        facts.insert(3, ("expired", expired));
    }
    for (name, value) in facts {
        say!(door, "{name:<14} {value}")?;
    }
    if stats.tally.groups.is_empty() {
        return Ok(());
    }
    door.out.line("")?;
    let rows = stats.tally.groups.iter().map(|group| {
        vec![
            group.scope.to_string(),
            group.kind.to_string(),
            group.namespace.to_string(),
            group.count.to_string(),
        ]
    });
    door.out
        .table(&["SCOPE", "KIND", "NAMESPACE", "COUNT"], rows.collect())
}
