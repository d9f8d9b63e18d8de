//! Forgetting a session: what was said and done in it, and what is known only from it.

use std::collections::{HashMap, HashSet};

use mnemon_core::{Ctx, Fate, Filter, Id, Owner, Receipt, Record, Scan, Scope, StoreError, limits};
use serde::Serialize;

use crate::naming::check_name;
use crate::{Error, Memory, Records};

/// Records that are looked for or deleted in one go.
const CHUNK: usize = 500;
/// How often is looked again for what was written meanwhile.
const ROUNDS: usize = 16;
/// What belongs to a session. Profiles, knowledge and skills outlive it.
const SCOPES: [Scope; 3] = [Scope::Dialog, Scope::State, Scope::Experience];

/// What became of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Records that are gone: the session's own, and what was derived only from them.
    pub records: u64,
    /// Records that were derived from the session and from something else, too: they stay, and
    /// name only the other sources now.
    pub kept: u64,
    /// What undo knows the removals by on the first store, the oldest first.
    pub commits: Vec<u64>,
}

impl Memory {
    /// Forgets a user's session on every store: its dialog, state and experience, and all that was
    /// derived only from them. Profile and shared knowledge stay. With `purge` it is erased for
    /// good, otherwise undo brings it back. Forgetting it again changes nothing.
    pub async fn delete_session(
        &self,
        ctx: &Ctx,
        user: &str,
        session: &str,
        purge: bool,
    ) -> Result<Forgotten, Error> {
        check_name("user", user, limits::NAME_CHARS)?;
        check_name("session", session, limits::NAME_CHARS)?;
        let filter = Filter {
            owner: Owner {
                user: Some(user.to_owned()),
                session: Some(session.to_owned()),
                ..Owner::default()
            },
            scopes: SCOPES.to_vec(),
            ..Filter::default()
        };
        let backends = self.backends();
        let mut done = Forgotten::default();
        for _ in 0..ROUNDS {
            let mut own: Vec<Vec<Id>> = Vec::new();
            for records in &backends {
                own.push(ids_of(records, ctx, &filter).await?);
            }
            if own.iter().all(Vec::is_empty) {
                break;
            }
            let family = Family::of(&backends, ctx, &own).await?;
            // First those that stay are parted from the session, so that no deletion takes them
            // along; then what came from the session goes, and the session last: whatever stops us
            // on the way, the next call finds the rest.
            done.kept += family.part(&backends, ctx).await?;
            for (number, records) in backends.iter().enumerate() {
                let ids = family
                    .gone_on(number)
                    .chain(own.get(number).into_iter().flatten());
                let ids: Vec<Id> = ids.cloned().collect();
                for chunk in ids.chunks(CHUNK) {
                    let receipt = match purge {
                        true => records.purge(ctx, chunk, None).await?,
                        false => records.forget(ctx, chunk, None).await?,
                    };
                    done.count(&receipt, number == 0);
                }
            }
        }
        Ok(done)
    }
}

impl Forgotten {
    fn count(&mut self, receipt: &Receipt, first: bool) {
        let gone = |fate: &Fate| matches!(fate, Fate::Deleted | Fate::Purged);
        let items = receipt.items.iter().filter(|item| gone(&item.fate)).count();
        self.records += (items + receipt.cascaded.len()) as u64;
        self.commits.extend(receipt.commit.filter(|_| first));
    }
}

/// The ids of everything that the filter means.
async fn ids_of(records: &Records, ctx: &Ctx, filter: &Filter) -> Result<Vec<Id>, Error> {
    let mut ids = Vec::new();
    let mut scan = Scan::new(filter.clone(), limits::PAGE);
    loop {
        let page = records.list(ctx, &scan).await?;
        ids.extend(page.records.into_iter().map(|record| record.id));
        if ids.len() > limits::SESSION_RECORDS {
            return Err(StoreError::TooLarge {
                what: "records of a session",
                count: ids.len(),
                most: limits::SESSION_RECORDS,
            }
            .into());
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return Ok(ids),
        }
    }
}

/// A record that was derived from the session, directly or through others.
struct Derived {
    id: Id,
    backend: usize,
    sources: Vec<Id>,
    /// A profile: it stays whatever it was made from.
    outlives: bool,
    stays: bool,
}

/// Everything that was derived from the session, on whichever store it lies.
struct Family {
    own: HashSet<Id>,
    derived: Vec<Derived>,
}

impl Family {
    async fn of(backends: &[&Records], ctx: &Ctx, own: &[Vec<Id>]) -> Result<Self, Error> {
        let mut frontier: Vec<Id> = own.iter().flatten().cloned().collect();
        let mut family = Self {
            own: frontier.iter().cloned().collect(),
            derived: Vec::new(),
        };
        let mut seen: HashSet<(usize, Id)> = HashSet::new();
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for chunk in frontier.chunks(CHUNK) {
                for (backend, records) in backends.iter().enumerate() {
                    for record in made_from(records, ctx, chunk).await? {
                        let new = !family.own.contains(&record.id)
                            && seen.insert((backend, record.id.clone()));
                        if new {
                            next.push(record.id.clone());
                            family.derived.push(Derived::new(record, backend));
                        }
                    }
                }
            }
            if family.derived.len() > limits::CASCADE {
                return Err(StoreError::TooLarge {
                    what: "records derived from the session",
                    count: family.derived.len(),
                    most: limits::CASCADE,
                }
                .into());
            }
            frontier = next;
        }
        family.decide();
        Ok(family)
    }

    /// One that has a source outside stays, and so does what was derived from one that stays.
    fn decide(&mut self) {
        let within: HashSet<&Id> = self.derived.iter().map(|one| &one.id).collect();
        let outside = |id: &Id| !self.own.contains(id) && !within.contains(id);
        let mut stay: Vec<usize> = Vec::new();
        let mut children: HashMap<&Id, Vec<usize>> = HashMap::new();
        for (number, one) in self.derived.iter().enumerate() {
            if one.outlives || one.sources.iter().any(outside) {
                stay.push(number);
            }
            for source in &one.sources {
                children.entry(source).or_default().push(number);
            }
        }
        let mut staying: HashSet<usize> = stay.iter().copied().collect();
        while let Some(number) = stay.pop() {
            let id = self.derived.get(number).map(|one| &one.id);
            let heirs = id.and_then(|id| children.get(id)).into_iter().flatten();
            stay.extend(heirs.copied().filter(|heir| staying.insert(*heir)));
        }
        for (number, one) in self.derived.iter_mut().enumerate() {
            one.stays = staying.contains(&number);
        }
    }

    /// What goes besides the session's own records.
    fn gone_on(&self, backend: usize) -> impl Iterator<Item = &Id> {
        let gone = self
            .derived
            .iter()
            .filter(move |one| !one.stays && one.backend == backend);
        gone.map(|one| &one.id)
    }

    /// Takes what goes out of the sources of what stays, and counts those that stay.
    async fn part(&self, backends: &[&Records], ctx: &Ctx) -> Result<u64, Error> {
        let gone = self.derived.iter().filter(|one| !one.stays);
        let gone: HashSet<&Id> = gone.map(|one| &one.id).chain(&self.own).collect();
        let mut parted = 0;
        for one in self.derived.iter().filter(|one| one.stays) {
            if let Some(records) = backends.get(one.backend)
                && one.sources.iter().any(|source| gone.contains(source))
            {
                part(records, ctx, &one.id, &gone).await?;
                parted += 1;
            }
        }
        Ok(parted)
    }
}

impl Derived {
    fn new(record: Record, backend: usize) -> Self {
        Self {
            id: record.id,
            backend,
            sources: record.derived_from,
            outlives: record.scope == Scope::Profile,
            stays: false,
        }
    }
}

async fn made_from(records: &Records, ctx: &Ctx, sources: &[Id]) -> Result<Vec<Record>, Error> {
    let filter = Filter {
        derived_from: sources.to_vec(),
        ..Filter::default()
    };
    let mut scan = Scan::new(filter, limits::PAGE);
    let mut found = Vec::new();
    loop {
        let page = records.list(ctx, &scan).await?;
        found.extend(page.records);
        match page.next {
            Some(next) if found.len() <= limits::CASCADE => scan.after = Some(next),
            _ => return Ok(found),
        }
    }
}

/// Takes the sources that go out of the record, again if somebody else changes it meanwhile.
async fn part(records: &Records, ctx: &Ctx, id: &Id, gone: &HashSet<&Id>) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        let found = records.get(ctx, std::slice::from_ref(id)).await?;
        let Some(mut record) = found.into_iter().flatten().next() else {
            return Ok(());
        };
        record.derived_from.retain(|source| !gone.contains(source));
        tries += 1;
        match records.rewrite(ctx, record).await {
            Err(Error::Store(StoreError::Conflict { .. })) if tries < limits::CHANGE_TRIES => {}
            done => return done.map(drop),
        }
    }
}
