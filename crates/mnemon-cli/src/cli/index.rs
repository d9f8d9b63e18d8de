//! `mnemon index`

use super::door::Door;
use super::shared::Shared;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::{IndexCheck, IndexChecked, IndexRebuild, IndexRebuilt};

/// Check or rebuild the index in a search server
///
/// `index` in mnemon.toml names the index. The built-in index needs neither command.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon index check\n  \
    mnemon index rebuild")]
pub(super) enum Args {
    /// Compare the index with the store
    ///
    /// Compares ids, versions and vectors. Exits with 9 if a record or a vector is missing.
    Check(Shared<IndexCheck>),
    /// Rebuild the index of all tenants
    ///
    /// Searches use the old index meanwhile.
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
        let vectors = match (found.vectors, found.index.as_str()) {
            (Some(count), _) => format!(" and {}", text::count(count, "vector")),
            // The built-in index is made from its store.
            (None, "builtin") => String::new(),
            (None, _) => "; its vectors were not compared, as the server returns none".to_owned(),
        };
        say!(door, "{} agrees with {records}{vectors}", found.index)?;
    } else {
        let rows = [
            ("missing", found.missing, "records that the index lacks"),
            ("outdated", found.outdated, "records with another version"),
            (
                "misplaced",
                found.misplaced,
                "records with another vector, or none",
            ),
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
            "{entries} of records that are gone; no search shows them, and a rebuild removes them"
        )?;
    }
    Ok(())
}

fn finish(found: IndexChecked) -> Result<(), Error> {
    match found.complete {
        true => Ok(()),
        false => Err(Error::IncompleteIndex {
            index: found.index,
            count: found.missing + found.outdated + found.misplaced,
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
