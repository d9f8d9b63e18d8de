//! `mnemon list`

use mnemon_core::Record;

use super::door::Door;
use super::shared::{Shared, Shown};
use super::text;
use mnemon_operations::operation::List;
use mnemon_operations::{Error, api};

/// List records, a page at a time
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon list --user ann --since 7d\n  \
    mnemon list --kind decision --kind rule --order oldest\n  \
    mnemon list --json --limit 1000 | jq -r '.records[].content'")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) page: Shared<List>,
}

impl Shown for api::list::Response {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.records.is_empty() {
            return door.out.line("nothing");
        }
        table(&self.records, door)?;
        door.out.next_page("--after", self.next)
    }
}

/// The narrowest that content is cut to.
const CONTENT: usize = 24;

/// One line per record: the content is cut to what the terminal has room for.
pub(super) fn table(records: &[Record], door: &mut Door) -> Result<(), Error> {
    let longest = |of: fn(&Record) -> &str| records.iter().map(|r| of(r).len()).max();
    let ids = longest(|record| record.id.as_str()).unwrap_or_default();
    let kinds = longest(|record| record.kind.as_str()).unwrap_or_default();
    let before = ids + 2 + "2026-01-31 12:00".len() + 2 + kinds.max(4) + 2;
    let room = door.out.width.saturating_sub(before).max(CONTENT);
    let rows = records.iter().map(|record| {
        let head = record.summary.as_deref();
        let head = head.unwrap_or_else(|| text::first_paragraph(&record.content));
        let content = format!("{} {}", text::cut(head, room), text::tags(record));
        vec![
            record.id.to_string(),
            text::local(record.created),
            record.kind.to_string(),
            text::cut(content.trim_end(), room),
        ]
    });
    door.out
        .table(&["ID", "CREATED", "KIND", "CONTENT"], rows.collect())
}
