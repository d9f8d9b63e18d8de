//! The store under test, with the calls that cases make most.

use std::future::Future;
use std::sync::Arc;

use mnemon_core::{
    Backend, Batch, Change, Changes, Filter, Grant, Op, Order, Receipt, Record, SearchIndex, Store,
    StoreError, Tally, Upkept,
};

use crate::make::{id, limits};
use crate::observe::{changes_all, scan_all};
use crate::{Fixture, Observed, observe};

/// Runs one case on a store opened at this place.
pub fn run<F, C, Fut>(fixture: F, case: C)
where
    F: Fixture + 'static,
    C: FnOnce(Subject) -> Fut,
    Fut: Future<Output = ()>,
{
    crate::block_on(async {
        let backend = Some(fixture.open().await);
        let fixture = Box::new(fixture);
        case(Subject { backend, fixture }).await;
    });
}

/// An open store and the place to open it at again.
pub struct Subject {
    backend: Option<Backend>,
    fixture: Box<dyn Fixture>,
}

impl Subject {
    /// The store itself.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.backend.as_ref().unwrap().store
    }

    /// Its index.
    #[must_use]
    pub fn index(&self) -> &Arc<dyn SearchIndex> {
        &self.backend.as_ref().unwrap().index
    }

    /// Closes the store and opens it again.
    pub async fn reopen(&mut self) {
        drop(self.backend.take());
        self.backend = Some(self.fixture.open().await);
    }

    /// Applies the operations together.
    pub async fn apply(
        &self,
        grant: &Grant,
        batch: impl Into<Batch>,
    ) -> Result<Receipt, StoreError> {
        self.store().apply(grant, batch.into()).await
    }

    /// Applies the operations together, which must succeed.
    pub async fn done(&self, grant: &Grant, batch: impl Into<Batch>) -> Receipt {
        self.apply(grant, batch).await.unwrap()
    }

    /// Puts the records, one commit each.
    pub async fn put(&self, grant: &Grant, records: impl IntoIterator<Item = Record>) {
        for record in records {
            self.done(grant, vec![Op::put(record)]).await;
        }
    }

    /// Deletes the record.
    pub async fn delete(&self, grant: &Grant, name: &str) -> Receipt {
        self.done(grant, vec![Op::delete(id(name))]).await
    }

    /// Purges the record.
    pub async fn purge(&self, grant: &Grant, name: &str) -> Receipt {
        self.done(grant, vec![Op::Purge { id: id(name) }]).await
    }

    /// The record.
    pub async fn get(&self, grant: &Grant, name: &str) -> Option<Record> {
        let found = self.store().get(grant, &[id(name)]).await.unwrap();
        let [record] = <[_; 1]>::try_from(found).unwrap();
        record
    }

    /// Whether the record is to be seen.
    pub async fn has(&self, grant: &Grant, name: &str) -> bool {
        self.get(grant, name).await.is_some()
    }

    /// The records that the filter means, in the order they were written.
    pub async fn scan(&self, grant: &Grant, filter: &Filter) -> Vec<String> {
        let store = &**self.store();
        let found = scan_all(store, grant, filter, Order::Written, limits().page).await;
        let ids = found.unwrap().into_iter();
        ids.map(|record| record.id.to_string()).collect()
    }

    /// All records there are, in the order they were written.
    pub async fn names(&self, grant: &Grant) -> Vec<String> {
        self.scan(grant, &Filter::all_of_tenant()).await
    }

    /// The history of one record, newest first.
    pub async fn changes(&self, grant: &Grant, name: &str) -> Vec<Change> {
        let of = Changes {
            id: Some(id(name)),
            ..Changes::all_of_tenant(0)
        };
        let store = &**self.store();
        changes_all(store, grant, &of, limits().changes)
            .await
            .unwrap()
    }

    /// How much there is.
    pub async fn tally(&self, grant: &Grant) -> Tally {
        self.store().tally(grant).await.unwrap()
    }

    /// A slice of housekeeping.
    pub async fn upkeep(&self, grant: &Grant, limit: usize) -> Upkept {
        self.store().upkeep(grant, limit).await.unwrap()
    }

    /// Everything this grant lets one see.
    pub async fn seen(&self, grant: &Grant) -> Observed {
        observe(&**self.store(), grant, limits().page)
            .await
            .unwrap()
    }

    /// The batch is refused and nothing that can be seen has changed.
    pub async fn refused(&self, grant: &Grant, batch: impl Into<Batch>) -> StoreError {
        let before = self.seen(grant).await;
        let error = self.apply(grant, batch).await.unwrap_err();
        assert_eq!(self.seen(grant).await, before, "refused: {error}");
        error
    }
}
