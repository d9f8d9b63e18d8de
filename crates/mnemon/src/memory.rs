//! The memory of a tenant.

use std::path::Path;
use std::sync::Arc;

use mnemon_core::{Changes, Ctx, Filter, Notices, Scan, Tenant, Time, Viewer};
use mnemon_engine::{Edit, Memory};

use crate::{
    Change, Error, Hit, Id, NewDocument, NewRecord, Options, Receipt, Record, Search, User,
};

/// A memory: an open store, and everything that can be done with it. Clones share the store.
///
/// Its methods act for the tenant: they see the records of all users, and what they add is shared
/// by all users. [`Mnemon::user`] gives a handle that sees and writes only what concerns one user.
#[derive(Clone)]
pub struct Mnemon(Arc<Opened>);

pub(crate) struct Opened {
    pub(crate) memory: Memory,
    pub(crate) tenant: Tenant,
    pub(crate) actor: String,
    pub(crate) clock: Arc<dyn Fn() -> Time + Send + Sync>,
    pub(crate) notices: Notices,
}

impl Mnemon {
    /// Opens this SQLite file, and creates it if it does not exist. Any number of processes may have
    /// it open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Options::default().open(path)
    }

    /// A memory without a file, for tests. It ends with its last handle.
    pub fn in_memory() -> Result<Self, Error> {
        Options::default().open_url("ram:")
    }

    /// Choices that are made before a memory is opened.
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn new(opened: Opened) -> Self {
        Self(Arc::new(opened))
    }

    /// A handle for one user: it sees this user's records and those that are shared, and writes
    /// records of this user.
    pub fn user(&self, name: impl Into<String>) -> User {
        User::new(self.clone(), name.into())
    }

    /// Stores a record that all users of the tenant may see.
    pub async fn add(&self, record: impl Into<NewRecord>) -> Result<Receipt, Error> {
        let NewRecord { draft, key } = record.into();
        let (records, ctx) = (self.engine().records(), self.ctx());
        let receipt = records.add(&ctx, vec![draft], key.as_deref()).await?;
        Ok(receipt.into())
    }

    /// Stores several records as one commit: all of them or none. Keys of single records are not
    /// looked at; `key` makes a retry of the whole harmless.
    pub async fn add_all(
        &self,
        records: impl IntoIterator<Item = NewRecord>,
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        let drafts = records.into_iter().map(|record| record.draft).collect();
        let receipt = self
            .engine()
            .records()
            .add(&self.ctx(), drafts, key)
            .await?;
        Ok(receipt.into())
    }

    /// Takes in a document, or replaces the one of the same name.
    pub async fn add_document(&self, document: NewDocument) -> Result<Id, Error> {
        let id = document.0.id();
        let records = self.engine().records();
        records.add_documents(&self.ctx(), vec![document.0]).await?;
        Ok(id)
    }

    /// The record of this id.
    pub async fn get(&self, id: &Id) -> Result<Option<Record>, Error> {
        Ok(self.seen_by(&Viewer::Tenant, id).await?.map(Record::from))
    }

    /// Replaces the content of a record. Its history keeps the version before. Messages, and chunks
    /// of documents, cannot be changed.
    pub async fn update(&self, id: &Id, content: impl Into<String>) -> Result<Receipt, Error> {
        self.replace(&Viewer::Tenant, id, content.into()).await
    }

    /// The records that answer the question best, the best first. The list is empty if nothing
    /// relevant is known.
    pub async fn search(&self, search: impl Into<Search>) -> Result<Vec<Hit>, Error> {
        self.search_as(search.into(), Viewer::Tenant).await
    }

    /// The newest records.
    pub async fn list(&self, limit: usize) -> Result<Vec<Record>, Error> {
        self.list_as(Filter::all_of_tenant(), limit).await
    }

    /// Deletes a record, and the records that were derived only from it. [`Mnemon::undo`] brings
    /// them back.
    pub async fn forget(&self, id: &Id) -> Result<Receipt, Error> {
        let ids = std::slice::from_ref(id);
        let receipt = self
            .engine()
            .records()
            .forget(&self.ctx(), ids, None)
            .await?;
        Ok(receipt.into())
    }

    /// Erases a record from the store, its history and its indexes included, with the records that
    /// were derived only from it. This cannot be undone.
    pub async fn purge(&self, id: &Id) -> Result<Receipt, Error> {
        let ids = std::slice::from_ref(id);
        let receipt = self
            .engine()
            .records()
            .purge(&self.ctx(), ids, None)
            .await?;
        Ok(receipt.into())
    }

    /// Undoes a commit: removes the records that it added, and restores those that it changed or
    /// deleted.
    pub async fn undo(&self, commit: u64) -> Result<Receipt, Error> {
        let receipt = self.engine().records().undo(&self.ctx(), commit).await?;
        Ok(receipt.into())
    }

    /// The newest changes.
    pub async fn history(&self, limit: usize) -> Result<Vec<Change>, Error> {
        let changes = Changes::seen_by(Viewer::Tenant, limit);
        let changes = self
            .engine()
            .records()
            .history(&self.ctx(), &changes)
            .await?;
        Ok(changes.into_iter().map(Change::from).collect())
    }

    /// How many records there are.
    pub async fn count(&self) -> Result<u64, Error> {
        Ok(self.engine().records().stats(&self.ctx()).await?.records())
    }

    /// Removes expired records and does other work that was put off. Call it now and then from a
    /// long-running program. Returns whether there is more to do.
    pub async fn upkeep(&self) -> Result<bool, Error> {
        let done = self.engine().records().upkeep(&self.ctx(), UPKEEP).await?;
        Ok(done.more)
    }

    /// Sentences about results that were degraded since the last call: an embedder that failed, a
    /// secret that was removed, a list that was cut. The list is bounded.
    pub fn take_notices(&self) -> Vec<String> {
        self.0.notices.take()
    }

    pub(crate) fn engine(&self) -> &Memory {
        &self.0.memory
    }

    /// The circumstances of one call. All that the call writes is one commit.
    pub(crate) fn ctx(&self) -> Ctx {
        let (tenant, now) = (self.0.tenant.clone(), (self.0.clock)());
        Ctx {
            notices: self.0.notices.clone(),
            ..Ctx::new(tenant, self.0.actor.clone(), now).as_one_commit()
        }
    }

    pub(crate) async fn seen_by(
        &self,
        viewer: &Viewer,
        id: &Id,
    ) -> Result<Option<mnemon_core::Record>, Error> {
        let ids = std::slice::from_ref(id);
        let records = self.engine().records();
        let found = records.get_seen_by(&self.ctx(), viewer, ids).await?;
        Ok(found.into_iter().next().flatten())
    }

    /// Replaces the content of a record that this viewer may see.
    pub(crate) async fn replace(
        &self,
        viewer: &Viewer,
        id: &Id,
        content: String,
    ) -> Result<Receipt, Error> {
        let edit = Edit {
            content: Some(content),
            ..Edit::default()
        };
        let notes = self.engine().notes();
        let edited = notes.edit(&self.ctx(), viewer, id, edit).await?;
        Ok(Receipt {
            commit: edited.commit,
            ids: vec![edited.id],
            cascaded: Vec::new(),
            evicted: Vec::new(),
        })
    }

    pub(crate) async fn search_as(
        &self,
        search: Search,
        viewer: Viewer,
    ) -> Result<Vec<Hit>, Error> {
        let query = search.seen_by(viewer);
        let hits = self.engine().records().search(&self.ctx(), &query).await?;
        let hits = hits.into_iter().map(|hit| Hit {
            score: hit.score,
            record: hit.record.into(),
        });
        Ok(hits.collect())
    }

    pub(crate) async fn list_as(&self, filter: Filter, limit: usize) -> Result<Vec<Record>, Error> {
        let scan = Scan::new(filter, limit);
        let page = self.engine().records().list(&self.ctx(), &scan).await?;
        Ok(page.records.into_iter().map(Record::from).collect())
    }
}

/// Records that one call of upkeep looks at.
const UPKEEP: usize = 1000;
