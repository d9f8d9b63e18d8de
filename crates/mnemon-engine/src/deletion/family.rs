//! Everything that was derived from records that go, on whichever store it lies, and what becomes
//! of it.

use std::collections::{HashMap, HashSet};

use mnemon_core::closure::{Bond, Closure, Derived, closure, quotes};
use mnemon_core::{Changes, Ctx, Expect, Filter, Id, Kind, Op, Record, Scope, Time};
use serde_json::Value;

use super::Mode;
use super::listing::{Shown, check, each};
use crate::records::{Error, Records};

/// A derived record, in the order of the list that the closure was made of.
struct Member {
    store: usize,
    /// Kept if the record may stay.
    record: Option<Record>,
    /// It was deleted earlier or has expired.
    is_hidden: bool,
}

/// The family of records that go.
pub(super) struct Family {
    /// The stores that the roots are on.
    roots: HashMap<Id, usize>,
    members: Vec<Member>,
    derived: Vec<Derived>,
    closure: Closure,
}

impl Family {
    /// The family of the roots, which are given for each store.
    pub(super) async fn of(
        stores: &[Records],
        ctx: &Ctx,
        roots: &[Vec<Id>],
        mode: Mode,
    ) -> Result<Self, Error> {
        Self::without(stores, ctx, roots, mode, &|_| false).await
    }

    /// The same without records that stay in any case.
    pub(super) async fn without(
        stores: &[Records],
        ctx: &Ctx,
        roots: &[Vec<Id>],
        mode: Mode,
        stays: &(dyn Fn(&Record) -> bool + Sync),
    ) -> Result<Self, Error> {
        let numbered = roots.iter().enumerate();
        let numbered = numbered.flat_map(|(store, ids)| ids.iter().map(move |id| (id, store)));
        let mut family = Self {
            roots: numbered.map(|(id, store)| (id.clone(), store)).collect(),
            members: Vec::new(),
            derived: Vec::new(),
            closure: Closure::default(),
        };
        let mut seen: HashSet<(usize, Id)> = HashSet::new();
        let mut frontier: Vec<Id> = roots.iter().flatten().cloned().collect();
        let count = frontier.len();
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for (store, records) in stores.iter().enumerate() {
                let limits = records.policy.limits;
                for ids in frontier.chunks(limits.page) {
                    let filter = derived_from(ids);
                    let most = limits.cascade.saturating_mul(count);
                    each(records, ctx, &filter, true, most, |record, shown| {
                        let is_meant = !family.roots.contains_key(&record.id) && !stays(&record);
                        if is_meant && seen.insert((store, record.id.clone())) {
                            next.push(record.id.clone());
                            family.take(store, record, shown == Shown::Hidden, mode);
                        }
                    })
                    .await?;
                    check(family.members.len(), most)?;
                }
            }
            frontier = next;
        }
        if mode == Mode::Purge {
            family.find_quotes(stores, ctx).await?;
        }
        let roots = family.roots.keys().cloned().collect();
        family.closure = closure(&roots, &family.derived);
        Ok(family)
    }

    fn take(&mut self, store: usize, record: Record, is_hidden: bool, mode: Mode) {
        let bond = match record.kind {
            _ if is_hidden => Bond::EverySource,
            _ if record.scope == Scope::Profile => Bond::None,
            Kind::Summary | Kind::Chunk | Kind::Document => Bond::EverySource,
            Kind::Session if mode == Mode::Purge => Bond::EverySource,
            _ => Bond::AnySource { quoted: Vec::new() },
        };
        self.derived.push(Derived {
            id: record.id.clone(),
            sources: record.derived_from.clone(),
            bond,
        });
        // Most records of a large family have one source: their content is not needed.
        let is_profile = record.scope == Scope::Profile;
        let may_stay = !is_hidden && (is_profile || record.derived_from.len() > 1);
        self.members.push(Member {
            store,
            record: may_stay.then_some(record),
            is_hidden,
        });
    }

    /// Looks which records that may stay quote a source that may go.
    async fn find_quotes(&mut self, stores: &[Records], ctx: &Ctx) -> Result<(), Error> {
        let within: HashSet<Id> = self.derived.iter().map(|one| one.id.clone()).collect();
        let mut texts: HashMap<Id, Vec<String>> = HashMap::new();
        for (one, member) in self.derived.iter_mut().zip(&self.members) {
            let (Bond::AnySource { quoted }, Some(record)) = (&mut one.bond, &member.record) else {
                continue;
            };
            let said = text_of(record);
            for source in &one.sources {
                if !self.roots.contains_key(source) && !within.contains(source) {
                    continue;
                }
                if !texts.contains_key(source) {
                    let found = versions(stores, ctx, source).await?;
                    texts.insert(source.clone(), found);
                }
                if texts
                    .get(source)
                    .is_some_and(|texts| texts.iter().any(|text| quotes(&said, text)))
                {
                    quoted.push(source.clone());
                }
            }
        }
        Ok(())
    }

    /// Writes that take sources which go out of records of this store that stay.
    pub(super) fn partings(&self, store: usize, now: Time) -> Vec<Op> {
        let loses = self.closure.loses.iter();
        let ops = loses.filter_map(|(number, left)| {
            let member = self.members.get(*number).filter(|one| one.store == store)?;
            let record = member.record.clone()?;
            let expect = Expect::Version(record.version);
            let parted = Record {
                derived_from: left.clone(),
                updated: now,
                ..record
            };
            Some(Op::put_if(parted, expect))
        });
        ops.collect()
    }

    /// Records that go and are still seen.
    pub(super) fn goes_seen(&self) -> impl Iterator<Item = &Id> {
        let goes = self.closure.goes.iter();
        goes.filter_map(|number| {
            let member = self.members.get(*number).filter(|one| !one.is_hidden);
            member.and(self.derived.get(*number)).map(|one| &one.id)
        })
    }

    /// Records of this store that go because of one on another store, where no cascade reaches
    /// them.
    pub(super) fn goes_from_elsewhere(
        &self,
        store: usize,
        mode: Mode,
    ) -> impl Iterator<Item = &Id> {
        let goes: HashSet<usize> = self.closure.goes.iter().copied().collect();
        let mut gone_on: HashMap<&Id, usize> =
            self.roots.iter().map(|(id, store)| (id, *store)).collect();
        for (number, (one, member)) in self.derived.iter().zip(&self.members).enumerate() {
            if goes.contains(&number) {
                gone_on.insert(&one.id, member.store);
            }
        }
        self.closure.goes.iter().filter_map(move |number| {
            let (one, member) = (self.derived.get(*number)?, self.members.get(*number)?);
            let is_seen = mode == Mode::Purge || !member.is_hidden;
            let is_elsewhere = |id: &Id| gone_on.get(id).is_some_and(|other| *other != store);
            let goes = member.store == store && is_seen && one.sources.iter().any(is_elsewhere);
            goes.then_some(&one.id)
        })
    }
}

/// Records that were derived from one of the sources.
pub(super) fn derived_from(sources: &[Id]) -> Filter {
    Filter {
        derived_from: sources.to_vec(),
        ..Filter::all_of_tenant()
    }
}

/// The texts of all versions of a record, on whichever store it is.
async fn versions(stores: &[Records], ctx: &Ctx, id: &Id) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for records in stores {
        let changes = Changes {
            id: Some(id.clone()),
            limit: records.policy.limits.changes,
            ..Changes::all_of_tenant(0)
        };
        for change in records.history(ctx, &changes).await? {
            let record = change.after.or(change.before);
            texts.extend(record.map(|record| record.content));
        }
    }
    texts.dedup();
    Ok(texts)
}

/// Everything that a record says.
fn text_of(record: &Record) -> String {
    let mut text = record.content.clone();
    for value in [
        record.summary.clone().map(Value::String),
        record.body.clone(),
    ] {
        add_strings(value.as_ref().unwrap_or(&Value::Null), &mut text);
    }
    text
}

fn add_strings(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => {
            text.push('\n');
            text.push_str(string);
        }
        Value::Array(values) => values.iter().for_each(|value| add_strings(value, text)),
        Value::Object(members) => members.values().for_each(|value| add_strings(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
