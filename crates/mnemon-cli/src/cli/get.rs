//! `mnemon get`

use mnemon_core::{Id, Record};

use super::door::Door;
use super::shared::Shared;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::Get;

/// Show records in full
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon get 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f\n  \
    mnemon get --json ID1 ID2 | jq .records[].content\n\n\
    Exits with 3 when one of them is not there; the others are still shown.")]
pub(super) struct Args {
    #[command(flatten)]
    which: Shared<Get>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let found = args.which.call(door).await?;
    if door.out.json {
        door.out.json(&found)?;
    } else {
        for (n, record) in found.records.iter().enumerate() {
            if n > 0 {
                door.out.line("")?;
            }
            show(record, door)?;
        }
    }
    if found.missing.is_empty() {
        return Ok(());
    }
    Err(Error::Missing(found.missing))
}

fn show(record: &Record, door: &mut Door) -> Result<(), Error> {
    let sort = format!("{}, {}, {}", record.kind, record.scope, record.namespace);
    let mut rows = vec![("id", record.id.to_string()), ("kind", sort)];
    let mut add = |name: &'static str, value: String| {
        if !value.is_empty() {
            rows.push((name, value));
        }
    };
    let text = |text: &Option<String>| text::one_line(text.as_deref().unwrap_or_default());
    add("owner", text::owner(&record.owner));
    add("tags", text::tags(record));
    add("source", text(&record.source));
    add("origin", record.origin.to_string());
    if record.importance > 0.0 {
        add("importance", record.importance.to_string());
    }
    add("created", text::local(record.created));
    if record.updated != record.created {
        add("updated", text::local(record.updated));
    }
    add(
        "expires",
        record.expires.map(text::local).unwrap_or_default(),
    );
    add("valid", validity(record));
    add("version", record.version.to_string());
    let sources: Vec<&str> = record.derived_from.iter().map(Id::as_str).collect();
    add("made from", sources.join(", "));
    let successor = record.superseded_by.as_ref();
    add(
        "replaced by",
        successor.map(Id::to_string).unwrap_or_default(),
    );
    if !record.metadata.is_empty() {
        add("metadata", json(&record.metadata));
    }
    add("summary", text(&record.summary));
    add("body", record.body.as_ref().map(json).unwrap_or_default());
    for (name, value) in rows {
        say!(door, "{name:<11} {value}")?;
    }
    door.out.line("")?;
    door.out.line(text::clean(&record.content))
}

fn validity(record: &Record) -> String {
    match (record.valid_from, record.valid_to) {
        (None, None) => String::new(),
        (Some(from), None) => format!("from {}", text::local(from)),
        (None, Some(to)) => format!("until {}", text::local(to)),
        (Some(from), Some(to)) => format!("{} to {}", text::local(from), text::local(to)),
    }
}

fn json(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    text::one_line(&json)
}
