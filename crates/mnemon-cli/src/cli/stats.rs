//! `mnemon stats`

use super::door::Door;
use super::shared::{Shared, Shown};
use super::text;
use mnemon_operations::config::without_passwords;
use mnemon_operations::operation::Stats;
use mnemon_operations::{Error, api};

/// Show the number of records and the size of the store
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon stats\n  \
    mnemon stats --json | jq .records")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) stats: Shared<Stats>,
}

impl Shown for api::stats::Response {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let config = &door.config;
        let store = config.server.as_deref().unwrap_or(&config.store.value);
        let mut facts = vec![
            ("store", text::one_line(&without_passwords(store))),
            ("tenant", self.tenant.to_string()),
            ("records", self.records.to_string()),
            ("history", text::count(self.tally.history, "old version")),
            ("newest change", self.tally.seq.to_string()),
        ];
        if self.tally.expired > 0 {
            let expired = format!("{} to be erased by upkeep", self.tally.expired);
            facts.insert(3, ("expired", expired));
        }
        if let Some(outbox) = &self.outbox {
            let waiting = text::count(outbox.waiting, "recording");
            let given_up = outbox.given_up;
            facts.push(("outbox", format!("{waiting}, {given_up} of them given up")));
        }
        for (name, value) in facts {
            say!(door, "{name:<14} {value}")?;
        }
        if self.tally.groups.is_empty() {
            return Ok(());
        }
        door.out.line("")?;
        let rows = self.tally.groups.iter().map(|group| {
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
}
