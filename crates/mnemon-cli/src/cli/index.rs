//! `mnemon index`

use super::door::Door;
use super::shared::Shared;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::{IndexCheck, IndexChecked, IndexRebuild, IndexRebuilt};

/// Compare the index in a search server with the store, or rebuild it
///
/// `index` in mnemon.toml names an index in OpenSearch or Milvus, which follows the store. The
/// built-in index is made from the store and needs neither command.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon index check\n  \
    mnemon index rebuild")]
pub(super) enum Args {
    /// Compare ids and versions of all records with the index; exits with 9 if some cannot be found
    ///
    /// The index is first brought up to the store, as a search does. Nothing else is changed.
    Check(Shared<IndexCheck>),
    /// Rebuild the index from the records of all tenants
    ///
    /// Searches use the old index until the new one is complete; then the old one is deleted. A
    /// rebuild that is interrupted leaves the old index in use.
    Rebuild(Shared<IndexRebuild>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Check(args) => {
            let found = args.call_long(door, "records").await?;
            show(&found, door)?;
            finish(found)
        }
        Args::Rebuild(args) => {
            let done = args.call_long(door, "records").await?;
            return_json!(door, &done);
            say!(door, "{}", rebuilt(&done))
        }
    }
}

fn show(found: &IndexChecked, door: &mut Door) -> Result<(), Error> {
    return_json!(door, found);
    if found.complete {
        let records = text::count(found.records, "record");
        say!(door, "{} agrees with {records}", found.index)?;
    } else {
        let rows = [
            ("missing", found.missing, "records that the index lacks"),
            ("outdated", found.outdated, "records with another version"),
        ];
        let rows = rows.map(|(name, count, meaning)| {
            vec![name.to_owned(), count.to_string(), meaning.to_owned()]
        });
        door.out
            .table(&["STATE", "COUNT", "MEANING"], rows.to_vec())?;
        let examples: Vec<&str> = found.examples.iter().map(|id| id.as_str()).collect();
        say!(door, "for example {}", examples.join(", "))?;
    }
    if found.leftover > 0 {
        let entries = text::count(found.leftover, "entry");
        say!(
            door,
            "{entries} of records that are gone; no search shows them, and the next write removes them"
        )?;
    }
    Ok(())
}

fn finish(found: IndexChecked) -> Result<(), Error> {
    match found.complete {
        true => Ok(()),
        false => Err(Error::IncompleteIndex {
            index: found.index,
            count: found.missing + found.outdated,
            records: found.records,
        }),
    }
}

fn rebuilt(done: &IndexRebuilt) -> String {
    match done.tenants {
        0 if done.index == "builtin" => {
            "the built-in index is made from its store; there is nothing to rebuild".to_owned()
        }
        tenants => format!(
            "rebuilt {} with {} of {}",
            done.index,
            text::count(done.records, "record"),
            text::count(tenants as u64, "tenant"),
        ),
    }
}
