//! Reading an image: records, pages, the history, the counts.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{ByCreation, Image};
use crate::model::{Filter, Grant, Id, Order, Page, Record, Scan, Time};
use crate::ports::{Change, Changes, Group, Hidden, HiddenScan, StoreError, Tally};

impl Image {
    /// Live records by id.
    pub fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        if ids.len() > grant.limits().page {
            return Err(StoreError::TooLarge {
                what: "ids in one get",
                count: ids.len(),
                most: grant.limits().page,
            });
        }
        Ok(ids
            .iter()
            .map(|id| self.live(id, grant.now()).cloned())
            .collect())
    }

    fn live(&self, id: &Id, now: Time) -> Option<&Record> {
        let record = &self.rows.get(id)?.record;
        record.is_live(now).then_some(record)
    }

    /// A page of live records in order.
    pub fn scan(&self, grant: &Grant, scan: &Scan) -> Page {
        let limit = scan.limit.min(grant.limits().page);
        if !scan.filter.derived_from.is_empty() {
            return self.scan_derived(grant, scan, limit);
        }
        let records = self
            .seqs_after(scan)
            .filter_map(|seq| self.live(self.by_seq.get(&seq)?, grant.now()))
            .filter(|record| scan.filter.matches(record))
            .take(limit + 1)
            .cloned()
            .collect();
        Page::cut(records, limit, scan.order)
    }

    /// The same for a filter that names sources: along the links.
    fn scan_derived(&self, grant: &Grant, scan: &Scan, limit: usize) -> Page {
        let sources = scan.filter.derived_from.iter();
        let ids: BTreeSet<&Id> = sources
            .filter_map(|id| self.derived.get(id))
            .flatten()
            .collect();
        let filter = Filter {
            derived_from: Vec::new(),
            ..scan.filter.clone()
        };
        let is_after = |record: &&Record| {
            let place = (record.created, record.seq);
            scan.after.is_none_or(|after| match scan.order {
                Order::Newest => place < (clamped(after.key), after.seq),
                Order::Oldest => place > (clamped(after.key), after.seq),
                Order::Written => record.seq > after.seq,
            })
        };
        let live = ids.into_iter().filter_map(|id| self.live(id, grant.now()));
        let meant = live.filter(|record| filter.matches(record));
        let mut found: Vec<&Record> = meant.filter(is_after).collect();
        match scan.order {
            Order::Newest => found.sort_by_key(|one| Reverse((one.created, one.seq))),
            Order::Oldest => found.sort_by_key(|one| (one.created, one.seq)),
            Order::Written => found.sort_by_key(|one| one.seq),
        }
        let records = found.into_iter().take(limit + 1).cloned().collect();
        Page::cut(records, limit, scan.order)
    }

    /// The numbers of the records that come after the cursor, in order.
    fn seqs_after<'a>(&'a self, scan: &Scan) -> Box<dyn Iterator<Item = u64> + 'a> {
        use std::ops::Bound::{Excluded, Unbounded};
        let place = scan.after.map(|cursor| (clamped(cursor.key), cursor.seq));
        let place = place.map_or(Unbounded, Excluded);
        let Some(records) = self.narrowest(scan) else {
            return Box::new(std::iter::empty());
        };
        match scan.order {
            Order::Newest => {
                let range = records.range((Unbounded, place)).rev();
                Box::new(range.map(|(_, seq)| *seq))
            }
            Order::Oldest => Box::new(records.range((place, Unbounded)).map(|(_, seq)| *seq)),
            Order::Written => {
                let from = scan.after.map_or(Unbounded, |cursor| Excluded(cursor.seq));
                Box::new(self.by_seq.range((from, Unbounded)).map(|(seq, _)| *seq))
            }
        }
    }

    /// The records of the session or the user that the filter names; all otherwise.
    fn narrowest(&self, scan: &Scan) -> Option<&ByCreation> {
        let owner = &scan.filter.owner;
        match (&owner.session, &owner.user) {
            (Some(session), _) => self.by_session.get(session),
            (None, Some(user)) => self.by_user.get(user),
            (None, None) => Some(&self.by_created),
        }
    }

    /// A page of records that a scan does not show, by id.
    pub fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Vec<Hidden> {
        let sources = &scan.filter.derived_from;
        let ids: BTreeSet<&Id> = match sources.is_empty() {
            true => {
                let expired = self.expired(grant.now()).map(|(_, id)| id);
                self.past_of.keys().chain(expired).collect()
            }
            false => {
                let derived = sources.iter().filter_map(|id| self.derived.get(id));
                derived.flatten().collect()
            }
        };
        let after = |id: &&&Id| scan.after.as_ref().is_none_or(|after| **id > after);
        let found = ids.iter().filter(after).filter_map(|id| {
            let current = self.rows.get(*id).map(|row| &row.record);
            let past = self.past_of.get(*id).into_iter().flatten().rev();
            let past = past.filter_map(|seq| self.past.get(seq)?.record.as_ref());
            let versions: Vec<Record> = current.into_iter().chain(past).cloned().collect();
            let is_live = current.is_some_and(|record| record.is_live(grant.now()));
            Hidden::of(&scan.filter, versions, is_live)
        });
        found.take(scan.limit.min(grant.limits().page)).collect()
    }

    /// A part of the history, newest first, or oldest first if the changes after one are asked for.
    pub fn changes(&self, grant: &Grant, changes: &Changes) -> Vec<Change> {
        match (changes.after, &changes.id) {
            (Some(after), None) => self.page(grant, changes, self.changes_after(after)),
            (Some(after), Some(id)) => {
                let seqs = self.seqs_of(id).into_iter();
                self.page(grant, changes, seqs.filter(|seq| *seq > after))
            }
            (None, Some(id)) => self.page(grant, changes, self.seqs_of(id).into_iter().rev()),
            (None, None) => {
                let seqs = self.seqs_from(changes.commit.unwrap_or(0));
                self.page(grant, changes, seqs.into_iter().rev())
            }
        }
    }

    /// The first of these changes that are asked for.
    fn page(
        &self,
        grant: &Grant,
        changes: &Changes,
        seqs: impl Iterator<Item = u64>,
    ) -> Vec<Change> {
        let before = changes.before.unwrap_or(u64::MAX);
        let mut weight = 0;
        seqs.filter(|seq| *seq < before)
            .filter_map(|seq| self.change(seq, grant.now()))
            .filter(|change| changes.shows(change))
            .take(changes.limit.min(grant.limits().changes))
            .take_while(|change| {
                let has_room = weight < changes.bytes;
                weight += change.weight();
                has_room
            })
            .collect()
    }

    /// The numbers of changes after this one, in order; the ones before it are not read.
    fn changes_after(&self, after: u64) -> impl Iterator<Item = u64> {
        let mut reached = after;
        std::iter::from_fn(move || {
            let beyond = reached.checked_add(1)?;
            let current = self.by_seq.range(beyond..).next().map(|(seq, _)| *seq);
            let past = self.past.range(beyond..).next().map(|(seq, _)| *seq);
            reached = current.into_iter().chain(past).min()?;
            Some(reached)
        })
    }

    fn seqs_of(&self, id: &Id) -> BTreeSet<u64> {
        let past = self.past_of.get(id).into_iter().flatten().copied();
        let current = self.rows.get(id).map(|row| row.entry.seq);
        past.chain(current).collect()
    }

    fn seqs_from(&self, commit: u64) -> BTreeSet<u64> {
        let past = self.past.range(commit..).map(|(seq, _)| *seq);
        let current = self.by_seq.range(commit..).map(|(seq, _)| *seq);
        past.chain(current).collect()
    }

    /// The change with this number. One that has expired is not there any more, neither as a
    /// change of its own nor as what was before the next.
    fn change(&self, seq: u64, now: Time) -> Option<Change> {
        let (entry, id, version, after) = match self.past.get(&seq) {
            Some(past) if !past.is_live(now) => return None,
            Some(past) => (&past.entry, &past.id, past.version, past.record.clone()),
            None => {
                let id = self.by_seq.get(&seq)?;
                let record = self.live(id, now)?;
                let entry = &self.rows.get(id)?.entry;
                (entry, id, record.version, Some(record.clone()))
            }
        };
        let previous = self
            .past_of
            .get(id)
            .and_then(|seqs| seqs.range(..seq).next_back())
            .and_then(|seq| self.past.get(seq))
            .filter(|past| past.version.checked_add(1) == Some(version) && past.is_live(now));
        Some(Change {
            commit: entry.commit,
            seq,
            at: entry.at,
            actor: entry.actor.clone(),
            cause: entry.cause.clone(),
            id: id.clone(),
            version,
            before: previous.and_then(|past| past.record.clone()),
            before_known: version == 1 || previous.is_some(),
            after,
        })
    }

    /// How much there is.
    pub fn tally(&self, grant: &Grant) -> Tally {
        let groups = self.groups.iter().map(|(sort, count)| Group {
            scope: sort.0,
            kind: sort.1,
            namespace: sort.2,
            count: *count,
        });
        let expired = self.expired(grant.now()).count();
        Tally {
            groups: groups.collect(),
            expired: expired as u64,
            history: self.past.len() as u64 - self.tombstones,
            seq: self.last_seq,
        }
    }
}

fn clamped(millis: i64) -> Time {
    Time::EPOCH.plus_millis(millis)
}
