//! Deletion: one rule for everything that forgets or purges.
//!
//! **What goes.** The records that are named, and of the records that were derived from them,
//! through any number of steps and on whichever store:
//!
//! - A record of one source goes with it. A record of several sources stays as long as one of them
//!   stays, and loses the others: it names them no more. A circle that nothing else holds goes.
//! - Summaries, chunks and documents repeat what they were made from: they go with any of their
//!   sources, and can be made again from the others.
//! - Profiles stay, and lose the source.
//! - A purge leaves no copy: what would stay goes, too, if any version of it quotes any version of
//!   something purged that it was derived from
//!   ([`core::closure::quotes`](mnemon_core::closure::quotes)), and so do the books of learning,
//!   which copy steps. That also holds for records that lost the source when it was forgotten;
//!   the commit that forgot it names them. Records that were deleted earlier or have expired go with any of their
//!   sources, as nobody sees them. Forgetting leaves them as they are, but follows their links.
//!
//! **How.** Records that stay lose their sources first, then derived records on other stores go,
//! then the named records, with which a store takes everything that still hangs on them. All of it
//! is one commit, and where it fits one batch. Whatever stops it on the way, the next call finds
//! the rest.
//!
//! **Sessions** ([`Memory::forget_session`](crate::memory::Memory::forget_session)): the session's records
//! are the named ones. A purge erases logs, pages and saved states as well. **Logs:** a purged line
//! leaves a mark, so that it is not indexed again. Whatever holds the text and stays is listed as
//! [`NotErased`].

mod family;
mod listing;
mod session;
mod session_files;
mod session_records;
mod single;

use std::collections::HashSet;

use mnemon_core::{
    Batch, Ctx, Expect, Fate, Id, IdempotencyKey, Invalid, Op, Receipt, Record, Right, StoreError,
    limits,
};
use serde::{Deserialize, Serialize};

pub use session::{Forgotten, SessionForget};
pub use session_files::{ProjectFiles, SavedFolder};
pub use single::Purged;

use crate::records::draft::intent;
use crate::records::edit::FILE_ENTRY;
use crate::records::{Error, Records, in_batches};
use family::Family;

/// Whether deleted records can come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They stay in the history for undo.
    Forget,
    /// They are erased with their history.
    Purge,
}

impl Mode {
    fn op(self, id: &Id) -> Op {
        match self {
            Self::Forget => Op::delete(id.clone()),
            Self::Purge => Op::Purge { id: id.clone() },
        }
    }

    fn right(self) -> Right {
        match self {
            Self::Forget => Right::Write,
            Self::Purge => Right::Purge,
        }
    }
}

/// A file or a record that holds text of a session, and why it stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotErased {
    pub path: String,
    pub why: String,
}

impl Records {
    /// Takes the records, and what was derived only from them, out of sight; undo brings them back.
    pub async fn forget(&self, ctx: &Ctx, ids: &[Id], key: Option<&str>) -> Result<Receipt, Error> {
        self.remove(ctx, ids, Mode::Forget, key, None).await
    }

    /// Derived records that forgetting these would delete, too.
    pub async fn would_cascade(&self, ctx: &Ctx, ids: &[Id]) -> Result<Vec<Id>, Error> {
        let stores = self.on_all_stores();
        let family = Family::of(&stores, ctx, &self.roots(&stores, ids), Mode::Forget).await?;
        Ok(family.goes_seen().cloned().collect())
    }

    /// The same for one record, if it still has this version.
    pub async fn forget_version(
        &self,
        ctx: &Ctx,
        id: &Id,
        version: u64,
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        let ids = std::slice::from_ref(id);
        self.remove(ctx, ids, Mode::Forget, key, Some(version))
            .await
    }

    /// That none of them is an entry of an agent's file: forgetting it would hide it only until the
    /// file changes.
    pub async fn check_no_file_entries(&self, ctx: &Ctx, ids: &[Id]) -> Result<(), Error> {
        let found = self.get_all(ctx, ids).await?;
        let mut found = found.into_iter().flatten();
        match found.find(Record::is_of_agent_file) {
            Some(entry) => Err(Invalid::new("id", format!("{} {FILE_ENTRY}", entry.id)).into()),
            None => Ok(()),
        }
    }

    /// Erases the records, what was derived from them, and their history, permanently.
    pub async fn purge(&self, ctx: &Ctx, ids: &[Id], key: Option<&str>) -> Result<Receipt, Error> {
        self.remove(ctx, ids, Mode::Purge, key, None).await
    }

    async fn remove(
        &self,
        ctx: &Ctx,
        ids: &[Id],
        mode: Mode,
        key: Option<&str>,
        version: Option<u64>,
    ) -> Result<Receipt, Error> {
        let is_purge = mode == Mode::Purge;
        let key = key
            .map(|key| intent(key, &("remove", is_purge, ids)))
            .transpose()?;
        self.check_key(key.as_ref())?;
        if ids.is_empty() {
            let grant = self.policy.check(ctx, mode.right())?;
            return self
                .apply(ctx, &grant, Batch::default().with_key(key))
                .await;
        }
        let ctx = ctx.as_one_commit();
        let stores = self.on_all_stores();
        let is_own = |one: &Self| one.store_number() == self.store_number();
        let deletion = Deletion {
            key,
            version,
            told: stores.iter().position(is_own).unwrap_or(0),
            ..Deletion::new(&stores, &ctx, mode)
        };
        Ok(deletion.run(&self.roots(&stores, ids)).await?.receipt)
    }

    /// Takes records that this store is about to delete out of the sources of all that stays, and
    /// deletes what was derived from them on other stores.
    pub(crate) async fn part_from(&self, ctx: &Ctx, ids: &[Id]) -> Result<(), Error> {
        let stores = self.on_all_stores();
        let deletion = Deletion::new(&stores, ctx, Mode::Forget);
        let family = Family::of(&stores, ctx, &self.roots(&stores, ids), Mode::Forget).await?;
        let steps = deletion.steps(&family, &[]);
        deletion.apply(steps, &mut Removed::of(&[])).await
    }

    /// Operations that the rule asks for on this store when records are deleted, but for those
    /// that stay in any case. An undo takes nothing along by itself.
    pub(crate) async fn derived_since(
        &self,
        ctx: &Ctx,
        deleted: Vec<Id>,
        stays: &(dyn Fn(&Record) -> bool + Sync),
    ) -> Result<Vec<Op>, Error> {
        let stores = [self.clone()];
        let family = Family::without(&stores, ctx, &[deleted], Mode::Forget, stays).await?;
        let mut ops = family.partings(0, ctx.now);
        ops.extend(family.goes_seen().map(|id| Op::delete(id.clone())));
        Ok(ops)
    }

    /// The records to remove for each store; all of them are on this one.
    fn roots(&self, stores: &[Self], ids: &[Id]) -> Vec<Vec<Id>> {
        let roots = stores
            .iter()
            .map(|one| match one.store_number() == self.store_number() {
                true => ids.to_vec(),
                false => Vec::new(),
            });
        roots.collect()
    }
}

/// Records that go, on all stores of a memory.
struct Deletion<'a> {
    stores: &'a [Records],
    ctx: &'a Ctx,
    mode: Mode,
    key: Option<IdempotencyKey>,
    /// The version that the named records must have.
    version: Option<u64>,
    /// The store whose commit is told.
    told: usize,
}

impl<'a> Deletion<'a> {
    fn new(stores: &'a [Records], ctx: &'a Ctx, mode: Mode) -> Self {
        Self {
            stores,
            ctx,
            mode,
            key: None,
            version: None,
            told: 0,
        }
    }

    /// Removes the roots, which are given for each store; again if somebody changes a record that
    /// stays meanwhile.
    async fn run(&self, roots: &[Vec<Id>]) -> Result<Removed, Error> {
        let mut removed = Removed::of(roots);
        let mut tries = 0;
        loop {
            let family = Family::of(self.stores, self.ctx, roots, self.mode).await?;
            let steps = self.steps(&family, roots);
            tries += 1;
            match self.apply(steps, &mut removed).await {
                Err(Error::Store(StoreError::Conflict { .. })) if tries < limits::CHANGE_TRIES => {}
                done => return done.map(|()| removed),
            }
        }
    }

    /// Operations with the number of their store, in order. On a single store it is one step.
    fn steps(&self, family: &Family, roots: &[Vec<Id>]) -> Vec<(usize, Vec<Op>)> {
        let partings = |store| family.partings(store, self.ctx.now);
        let elsewhere = |store| {
            let ids = family.goes_by_itself(store, self.mode);
            ids.map(|id| self.mode.op(id)).collect()
        };
        let op = |id: &Id| match self.version {
            Some(version) => Op::Delete {
                id: id.clone(),
                expect: Expect::Version(version),
            },
            None => self.mode.op(id),
        };
        let named = |ids: &Vec<Id>| ids.iter().map(op).collect();
        let numbers = 0..self.stores.len();
        let all = numbers.clone().map(|store| (store, partings(store)));
        let all = all.chain(numbers.map(|store| (store, elsewhere(store))));
        let all = all.chain(roots.iter().map(named).enumerate());
        let mut steps: Vec<(usize, Vec<Op>)> = Vec::new();
        for (store, ops) in all.filter(|(_, ops): &(usize, Vec<Op>)| !ops.is_empty()) {
            match steps.last_mut() {
                Some((last, before)) if *last == store => before.extend(ops),
                _ => steps.push((store, ops)),
            }
        }
        steps
    }

    async fn apply(
        &self,
        steps: Vec<(usize, Vec<Op>)>,
        removed: &mut Removed,
    ) -> Result<(), Error> {
        let mut keyed = 0;
        for (store, ops) in steps {
            let Some(records) = self.stores.get(store) else {
                continue;
            };
            let grant = records.policy.check(self.ctx, self.mode.right())?;
            let is_named = |op: &Op| removed.named.contains(op.id());
            let mut batches = in_batches(ops, grant.limits());
            if batches.len() > 1 {
                // What else goes or stays is another matter at a retry, so that batches with a key
                // hold the named records only: the same ones each time.
                let ops = batches.into_iter().flatten();
                let (named, others) = ops.partition(is_named);
                batches = in_batches(others, grant.limits());
                batches.extend(in_batches(named, grant.limits()));
            }
            for ops in batches {
                let is_named = ops.iter().any(|op| removed.named.contains(op.id()));
                let key = self.key.clone().filter(|_| is_named);
                let key = key.map(|key| {
                    keyed += 1;
                    numbered(key, keyed)
                });
                let batch = Batch::from(ops).with_key(key);
                let receipt = records.apply(self.ctx, &grant, batch).await?;
                // That records lost a purged source is nothing to undo.
                let is_told = store == self.told && self.mode == Mode::Forget;
                removed.add(receipt, is_told);
            }
        }
        Ok(())
    }
}

/// What a deletion did.
struct Removed {
    named: HashSet<Id>,
    /// The named records are its items.
    receipt: Receipt,
    /// Records that stay and lost a source.
    parted: u64,
}

impl Removed {
    fn of(roots: &[Vec<Id>]) -> Self {
        Self {
            named: roots.iter().flatten().cloned().collect(),
            receipt: Receipt::default(),
            parted: 0,
        }
    }

    fn add(&mut self, receipt: Receipt, is_told: bool) {
        if is_told {
            self.receipt.commit = self.receipt.commit.or(receipt.commit);
        }
        self.receipt.cascaded.extend(receipt.cascaded);
        self.receipt.evicted.extend(receipt.evicted);
        for item in receipt.items {
            match item.fate {
                _ if self.named.contains(&item.id) => self.receipt.items.push(item),
                Fate::Updated { .. } => self.parted += 1,
                Fate::Deleted | Fate::Purged => self.receipt.cascaded.push(item.id),
                _ => {}
            }
        }
    }
}

/// The key of one of several batches. The first has the caller's own.
fn numbered(key: IdempotencyKey, number: usize) -> IdempotencyKey {
    IdempotencyKey {
        name: match number {
            1 => key.name,
            _ => format!("{}#{number}", key.name),
        },
        ..key
    }
}
