//! One change of one record, as a short diff, and the lines of a text that changed.

use std::collections::BTreeSet;

use console::style;
use mnemon_core::{Cause, Change, Record};
use serde_json::{Map, Value};
use similar::{Algorithm, ChangeTag, capture_diff_slices, group_diff_ops};

use super::door::Door;
use super::text;
use mnemon_operations::Error;

/// Fields that change with every version and say nothing.
const SILENT: &[&str] = &["seq", "version", "updated", "v", "tenant", "id"];

/// Lines that are shown before and after a change.
const AROUND: usize = 3;

/// The lines of a text that changed, with some around them.
pub(super) fn lines(before: &str, after: &str, door: &mut Door) -> Result<(), Error> {
    let before: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let changes = capture_diff_slices(Algorithm::Myers, &before, &after);
    for group in group_diff_ops(changes, AROUND) {
        for change in group.iter().flat_map(|op| op.iter_changes(&before, &after)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            say!(door, "{sign} {}", text::clean(change.value()))?;
        }
    }
    Ok(())
}

/// What happened to the record, then each field that changed with what it was and what it is.
pub(super) fn show(change: &Change, door: &mut Door) -> Result<(), Error> {
    let verb = verb(change);
    say!(door, "  {verb} {}{}", change.id, cause(change))?;
    let room = door.out.width.saturating_sub(20).max(20);
    for (field, before, after) in fields(change) {
        let mut name = field.as_str();
        if let Some(before) = before {
            let line = style(format!("- {}", text::cut(&before, room))).red();
            say!(door, "    {name:<12} {line}")?;
            name = "";
        }
        if let Some(after) = after {
            let line = style(format!("+ {}", text::cut(&after, room))).green();
            say!(door, "    {name:<12} {line}")?;
        }
    }
    Ok(())
}

fn verb(change: &Change) -> String {
    let version = change.version;
    match (&change.before, &change.after) {
        (_, None) if change.cause == Cause::Purged => "purged".to_owned(),
        (_, None) => "removed".to_owned(),
        (None, Some(_)) if version == 1 => "added".to_owned(),
        (None, Some(_)) => format!("restored as version {version}:"),
        (Some(before), Some(_)) => format!("changed version {} to {version}:", before.version),
    }
}

fn cause(change: &Change) -> String {
    match &change.cause {
        Cause::Written | Cause::Forgotten | Cause::Purged => String::new(),
        Cause::Cascaded(id) => format!(", being derived from {id}"),
        Cause::Evicted => ", because the namespace was full".to_owned(),
        Cause::Undone(commit) => format!(", undoing commit {commit}"),
    }
}

type Field = (String, Option<String>, Option<String>);

/// Of a record that came or went only the content is shown; of one that changed, each field.
fn fields(change: &Change) -> Vec<Field> {
    match (&change.before, &change.after) {
        (None, None) => Vec::new(),
        (None, Some(after)) => vec![("content".to_owned(), None, Some(after.content.clone()))],
        (Some(before), None) => vec![("content".to_owned(), Some(before.content.clone()), None)],
        (Some(before), Some(after)) => differences(&object(before), &object(after)),
    }
}

fn differences(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Field> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter(|name| !SILENT.contains(&name.as_str()))
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| {
            let word = |map: &Map<String, Value>| map.get(name).map(plain);
            (name.clone(), word(before), word(after))
        })
        .collect()
}

fn object(record: &Record) -> Map<String, Value> {
    match serde_json::to_value(record) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
