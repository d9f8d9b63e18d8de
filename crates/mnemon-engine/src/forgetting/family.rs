//! What was derived from a session, directly or through others, on whichever store it lies.

use std::collections::{HashMap, HashSet};

use mnemon_core::{Ctx, Filter, Id, Record, Scope, StoreError, limits};

use super::CHUNK;
use super::listing::{Shown, each};
use crate::{Error, Records};

/// A record that was derived from the session, directly or through others.
struct Derived {
    id: Id,
    backend: usize,
    sources: Vec<Id>,
    /// A profile: it stays whatever it was made from.
    outlives: bool,
    /// It was deleted earlier or has expired. A purge erases it even if it has other sources:
    /// nobody sees it, and it repeats what is purged.
    is_hidden: bool,
    stays: bool,
}

/// Everything that was derived from the session, on whichever store it lies.
pub(super) struct Family {
    own: HashSet<Id>,
    derived: Vec<Derived>,
}

impl Family {
    /// With `purge` also what was deleted earlier.
    pub(super) async fn of(
        backends: &[&Records],
        ctx: &Ctx,
        own: &[Vec<Id>],
        purge: bool,
    ) -> Result<Self, Error> {
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
                    for (record, shown) in made_from(records, ctx, chunk, purge).await? {
                        let new = !family.own.contains(&record.id)
                            && seen.insert((backend, record.id.clone()));
                        if new {
                            next.push(record.id.clone());
                            let is_hidden = shown != Shown::Listed;
                            let derived = Derived::new(record, backend, is_hidden);
                            family.derived.push(derived);
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
            if one.is_hidden {
                continue;
            }
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
    pub(super) fn gone_on(&self, backend: usize) -> impl Iterator<Item = &Id> {
        let gone = self
            .derived
            .iter()
            .filter(move |one| !one.stays && one.backend == backend);
        gone.map(|one| &one.id)
    }

    /// Takes what goes out of the sources of what stays, and counts those that stay.
    pub(super) async fn part(&self, backends: &[&Records], ctx: &Ctx) -> Result<u64, Error> {
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
    fn new(record: Record, backend: usize, is_hidden: bool) -> Self {
        Self {
            id: record.id,
            backend,
            sources: record.derived_from,
            outlives: record.scope == Scope::Profile,
            is_hidden,
            stays: false,
        }
    }
}

/// What was derived from one of the sources; with `hidden` also what no scan shows any more.
pub(super) async fn made_from(
    records: &Records,
    ctx: &Ctx,
    sources: &[Id],
    hidden: bool,
) -> Result<Vec<(Record, Shown)>, Error> {
    let filter = Filter {
        derived_from: sources.to_vec(),
        ..Filter::default()
    };
    let mut found = Vec::new();
    each(
        records,
        ctx,
        &filter,
        hidden,
        limits::CASCADE,
        |record, shown| {
            found.push((record, shown));
        },
    )
    .await?;
    Ok(found)
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
        match records.update_screened(ctx, record).await {
            Err(Error::Store(StoreError::Conflict { .. })) if tries < limits::CHANGE_TRIES => {}
            done => return done.map(drop),
        }
    }
}
