//! Every record that a filter means, page by page.

use mnemon_core::{Ctx, Filter, HiddenScan, Record, Scan, StoreError};

use crate::records::{Error, Records};

/// How a record was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// A scan shows it.
    Listed,
    /// It was deleted or has expired; its newest version with content was found.
    Hidden,
    /// It is there, but only an older version of it matches.
    OlderVersion,
}

/// Tells of every record that the filter means; with `hidden` also of those that no scan shows. More
/// than `most` are an error.
pub(super) async fn each(
    records: &Records,
    ctx: &Ctx,
    filter: &Filter,
    hidden: bool,
    most: usize,
    mut tell: impl FnMut(Record, Shown),
) -> Result<(), Error> {
    let mut count = 0;
    let page = records.policy.limits.page;
    let mut scan = Scan::new(filter.clone(), page);
    loop {
        let page = records.list(ctx, &scan).await?;
        count += page.records.len();
        check(count, most)?;
        for record in page.records {
            tell(record, Shown::Listed);
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => break,
        }
    }
    if !hidden {
        return Ok(());
    }
    let mut scan = HiddenScan {
        limit: page,
        ..HiddenScan::new(filter.clone())
    };
    loop {
        let page = records.hidden(ctx, &scan).await?;
        count += page.len();
        check(count, most)?;
        scan.after = page.last().map(|last| last.record.id.clone());
        let is_last = page.len() < scan.limit;
        for found in page {
            let shown = match found.is_live {
                true => Shown::OlderVersion,
                false => Shown::Hidden,
            };
            tell(found.record, shown);
        }
        if is_last {
            return Ok(());
        }
    }
}

pub(super) fn check(count: usize, most: usize) -> Result<(), StoreError> {
    match count > most {
        true => Err(StoreError::TooLarge {
            what: "records that belong together",
            count,
            most,
        }),
        false => Ok(()),
    }
}
