//! `mnemon list`

use mnemon_core::{Order, Record};

use super::door::Door;
use super::filters::FilterArgs;
use super::text;
use crate::{Error, api};

/// List records, a page at a time
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon list --user ann --since 7d\n  \
    mnemon list --kind decision --kind rule --order oldest\n  \
    mnemon list --json --limit 1000 | jq -r '.records[].content'")]
pub(super) struct Args {
    /// Records on a page, up to 1000
    #[arg(long, value_name = "N", default_value_t = api::list::LIMIT,
        value_parser = super::list::limit)]
    limit: usize,
    /// Order: by time of creation, or as the store wrote them
    #[arg(long, value_enum, default_value_t)]
    order: OrderArg,
    /// Continue after this cursor, which the previous page printed
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum OrderArg {
    #[default]
    Newest,
    Oldest,
    Written,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Newest => Self::Newest,
            OrderArg::Oldest => Self::Oldest,
            OrderArg::Written => Self::Written,
        }
    }
}

/// A page has at least one record and at most what the store gives at once.
pub(super) fn limit(text: &str) -> Result<usize, String> {
    let most = mnemon_core::limits::PAGE;
    match text.parse() {
        Ok(limit) if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(format!("write a number from 1 to {most}")),
    }
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let ctx = door.ctx()?;
    let request = api::list::Request {
        filter: args.filter.into_filter(ctx.now)?,
        order: args.order.into(),
        after: args.after,
        limit: args.limit,
    };
    let page = api::list::run(&door.memory()?, &ctx, request).await?;
    return_json!(door, &page);
    if page.records.is_empty() {
        return door.out.line("nothing");
    }
    table(&page.records, door)?;
    door.out.next_page("--after", page.next)
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
        let content = match record.tags.is_empty() {
            true => text::cut(head, room),
            false => text::cut(
                &format!("{} {}", text::cut(head, room), text::tags(record)),
                room,
            ),
        };
        vec![
            record.id.to_string(),
            text::local(record.created),
            record.kind.to_string(),
            content,
        ]
    });
    door.out
        .table(&["ID", "CREATED", "KIND", "CONTENT"], rows.collect())
}
