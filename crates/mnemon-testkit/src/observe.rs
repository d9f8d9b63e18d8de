//! All that can be seen of a tenant's memory, to compare two moments or two stores.

use mnemon_core::{
    Change, Changes, Filter, Grant, Id, Order, Record, Scan, Store, StoreError, Tally,
};

/// What a tenant sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    pub written: Vec<Record>,
    pub newest: Vec<Id>,
    pub oldest: Vec<Id>,
    pub changes: Vec<Change>,
    /// The changes as the feed shows them.
    pub feed: Vec<Change>,
    pub tally: Tally,
}

/// Looks at everything, in pages of `page`.
pub async fn observe(
    store: &dyn Store,
    grant: &Grant,
    page: usize,
) -> Result<Observed, StoreError> {
    let ids = |records: Vec<Record>| records.into_iter().map(|record| record.id).collect();
    let all = Filter::all_of_tenant();
    Ok(Observed {
        written: scan_all(store, grant, &all, Order::Written, page).await?,
        newest: ids(scan_all(store, grant, &all, Order::Newest, page).await?),
        oldest: ids(scan_all(store, grant, &all, Order::Oldest, page).await?),
        changes: changes_all(store, grant, &Changes::all_of_tenant(0), page).await?,
        feed: changes_all(store, grant, &Changes::feed(0, 0), page).await?,
        tally: store.tally(grant).await?,
    })
}

/// What the filter means, page by page. Panics when a page is fuller than asked, or when there is
/// no end.
pub(crate) async fn scan_all(
    store: &dyn Store,
    grant: &Grant,
    filter: &Filter,
    order: Order,
    page: usize,
) -> Result<Vec<Record>, StoreError> {
    let mut scan = Scan {
        filter: filter.clone(),
        order,
        after: None,
        limit: page,
    };
    let mut all: Vec<Record> = Vec::new();
    loop {
        let found = store.scan(grant, &scan).await?;
        assert!(found.records.len() <= page, "a page of more than {page}");
        all.extend(found.records);
        assert!(all.len() <= 1_000_000, "the pages have no end");
        scan.after = found.next;
        if scan.after.is_none() {
            return Ok(all);
        }
    }
}

/// The history that `wanted` means, page by page.
pub(crate) async fn changes_all(
    store: &dyn Store,
    grant: &Grant,
    wanted: &Changes,
    page: usize,
) -> Result<Vec<Change>, StoreError> {
    let page = page.min(grant.limits().changes);
    let mut all: Vec<Change> = Vec::new();
    loop {
        let mut next = Changes {
            limit: page,
            ..wanted.clone()
        };
        if let Some(last) = all.last() {
            match &mut next.after {
                Some(after) => *after = last.seq,
                None => next.before = Some(last.seq),
            }
        }
        let found = store.changes(grant, &next).await?;
        assert!(found.len() <= page, "a page of more than {page}");
        assert!(all.len() <= 1_000_000, "the pages have no end");
        let last = found.len() < page;
        all.extend(found);
        if last {
            return Ok(all);
        }
    }
}
