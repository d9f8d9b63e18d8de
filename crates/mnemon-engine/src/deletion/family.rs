//! Everything that was derived from records that go, on whichever store it lies, and what becomes
//! of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use mnemon_core::closure::{Bond, Closure, Derived, closure, quotes};
use mnemon_core::{Change, Changes, Ctx, Expect, Filter, Id, Kind, Op, Record, Right, Scope, Time};
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
    /// It lost a root when that was forgotten, so that no cascade reaches it.
    is_parted: bool,
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
        if mode == Mode::Purge {
            for (store, (records, roots)) in stores.iter().zip(roots).enumerate() {
                for (record, lost, is_hidden) in parted(records, ctx, roots).await? {
                    seen.insert((store, record.id.clone()));
                    frontier.push(record.id.clone());
                    family.take(store, record, is_hidden, mode);
                    family.lost(lost);
                }
            }
        }
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
        let roots = family.roots.keys().cloned().collect();
        family.closure = closure(&roots, &family.derived);
        if mode == Mode::Purge {
            family.find_quotes(stores, ctx).await?;
            family.closure = closure(&roots, &family.derived);
        }
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
            is_parted: false,
        });
    }

    /// The record that was taken last was once derived from these, too.
    fn lost(&mut self, sources: Vec<Id>) {
        if let (Some(one), Some(member)) = (self.derived.last_mut(), self.members.last_mut()) {
            one.sources.extend(sources);
            member.is_parted = true;
        }
    }

    /// Looks which records that stay otherwise quote one that goes, directly or through others.
    async fn find_quotes(&mut self, stores: &[Records], ctx: &Ctx) -> Result<(), Error> {
        let goes: HashSet<usize> = self.closure.goes.iter().copied().collect();
        let within: HashMap<&Id, &Derived> =
            self.derived.iter().map(|one| (&one.id, one)).collect();
        let mut texts: HashMap<&Id, Vec<String>> = HashMap::new();
        let mut found: Vec<(usize, Id)> = Vec::new();
        for (number, one) in self.derived.iter().enumerate() {
            if goes.contains(&number) || one.bond == Bond::None {
                continue;
            }
            let said = versions(stores, ctx, &one.id).await?;
            let mut seen = HashSet::from([&one.id]);
            let mut open: Vec<&Id> = one.sources.iter().collect();
            while let Some(source) = open.pop() {
                let derived = within.get(source);
                let may_go = derived.is_some() || self.roots.contains_key(source);
                if !may_go || !seen.insert(source) {
                    continue;
                }
                open.extend(derived.iter().flat_map(|one| &one.sources));
                if !texts.contains_key(source) {
                    texts.insert(source, versions(stores, ctx, source).await?);
                }
                let texts = texts.get(source).into_iter().flatten();
                let mut pairs = texts.flat_map(|text| said.iter().map(move |said| (said, text)));
                if pairs.any(|(said, text)| quotes(said, text)) {
                    found.push((number, source.clone()));
                }
            }
        }
        for (number, source) in found {
            if let Some(Bond::AnySource { quoted }) =
                self.derived.get_mut(number).map(|one| &mut one.bond)
            {
                quoted.push(source);
            }
        }
        Ok(())
    }

    /// Writes that take sources which go out of records of this store that stay.
    pub(super) fn partings(&self, store: usize, now: Time) -> Vec<Op> {
        let loses = self.closure.loses.iter();
        let ops = loses.filter_map(|(number, left)| {
            let member = self.members.get(*number).filter(|one| one.store == store)?;
            let record = member
                .record
                .as_ref()
                .filter(|one| one.derived_from != *left);
            let record = record.cloned()?;
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

    /// Records of this store that go where no cascade reaches them: because of one on another
    /// store, or because they quote one that they are not linked to.
    pub(super) fn goes_by_itself(&self, store: usize, mode: Mode) -> impl Iterator<Item = &Id> {
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
            let mut gone = one
                .sources
                .iter()
                .filter_map(|id| gone_on.get(id))
                .peekable();
            let is_unlinked = member.is_parted || gone.peek().is_none();
            let is_reached = !is_unlinked && gone.all(|other| *other == store);
            (member.store == store && is_seen && !is_reached).then_some(&one.id)
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

/// Records that lost one of these roots when it was forgotten, which was the same commit; with what
/// they lost, and whether they are hidden now.
async fn parted(
    records: &Records,
    ctx: &Ctx,
    roots: &[Id],
) -> Result<Vec<(Record, Vec<Id>, bool)>, Error> {
    let grant = records.policy.check(ctx, Right::Read)?;
    let mut commits = BTreeSet::new();
    let found = records.get_all(ctx, roots).await?;
    let absent = roots.iter().zip(found).filter(|(_, found)| found.is_none());
    for (root, _) in absent {
        let deleted = |one: &Change| one.after.is_none().then_some(one.commit);
        let changes = Changes {
            id: Some(root.clone()),
            limit: grant.limits().changes,
            ..Changes::all_of_tenant(0)
        };
        let changes = records.history(ctx, &changes).await?;
        commits.extend(changes.iter().filter_map(deleted));
    }
    let roots: HashSet<&Id> = roots.iter().collect();
    let mut parted: BTreeMap<Id, (Record, Vec<Id>)> = BTreeMap::new();
    for commit in commits {
        let see = |change: Change| {
            let (Some(before), Some(after)) = (change.before, change.after) else {
                return Ok(());
            };
            let is_lost = |id: &Id| roots.contains(id) && !after.derived_from.contains(id);
            let lost: Vec<Id> = before.derived_from.into_iter().filter(is_lost).collect();
            if !lost.is_empty() && !roots.contains(&change.id) {
                let entry = parted.entry(change.id).or_insert((after, Vec::new()));
                entry.1.extend(lost);
            }
            Ok(())
        };
        records.each_change(&grant, commit, see).await?;
    }
    let ids: Vec<Id> = parted.keys().cloned().collect();
    let now = records.get_all(ctx, &ids).await?;
    let now = now.into_iter().zip(parted.into_values());
    let now = now.map(|(now, (then, lost))| {
        let is_hidden = now.is_none();
        (now.unwrap_or(then), lost, is_hidden)
    });
    Ok(now.collect())
}

/// What all versions of a record say, on whichever store it is.
async fn versions(stores: &[Records], ctx: &Ctx, id: &Id) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for records in stores {
        let mut page = Changes {
            id: Some(id.clone()),
            limit: records.policy.limits.changes,
            ..Changes::all_of_tenant(0)
        };
        loop {
            let changes = records.history(ctx, &page).await?;
            let is_last = changes.len() < page.limit;
            page.before = changes.last().map(|change| change.seq);
            let said = changes
                .into_iter()
                .filter_map(|one| one.after.or(one.before));
            texts.extend(said.map(|record| text_of(&record)));
            if is_last {
                break;
            }
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
