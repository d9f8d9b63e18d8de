//! What a transaction counts: read once and written once, however many batches share it.

use std::collections::{BTreeMap, HashMap};

use mnemon_core::{Clock, Id, Kind, Namespace, Scope, StoreError, Time};
use rusqlite::{Connection, params};

use super::errors::{At, Query};

/// What is known of a tenant, and what has changed of it but is not written yet.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// 0 until something is written for the tenant.
    pub(super) num: i64,
    pub(super) last_seq: u64,
    /// The greatest id that the tenant ever had, once it was asked for.
    pub(super) newest: Option<String>,
    /// When the next record expires, or earlier, once it was asked for.
    pub(super) soonest_expiry: Option<i64>,
    /// How many changes the history held when the transaction began.
    pub(super) history: i64,
    /// How many more or fewer records there are of each sort.
    pub(super) grown: BTreeMap<(Scope, Kind, Namespace), i64>,
    pub(super) history_grown: i64,
    pub(super) clock: Clock,
}

/// What was known of tenants at the end of a transaction. It holds until somebody else writes,
/// which their newest change tells.
#[derive(Default)]
pub(super) struct Known {
    tenants: HashMap<i64, Seen>,
}

struct Seen {
    last_seq: u64,
    newest: Option<String>,
    soonest_expiry: Option<i64>,
}

/// Tenants that are known at the most.
const KNOWN: usize = 1000;

/// The tenants of one transaction. Batches that share it share the reading and writing of counts.
#[derive(Default)]
pub(super) struct Counts {
    tenants: HashMap<String, State>,
}

impl State {
    fn load(connection: &Connection, place: &str, name: &str) -> Result<Self, StoreError> {
        let sql = "SELECT num, last_seq, history, clock_trusted, clock_suspect
             FROM tenants WHERE name = ?1";
        let found = connection.first(sql, [name], |row| {
            Ok(Self {
                num: row.get(0)?,
                last_seq: row.get::<_, i64>(1)?.cast_unsigned(),
                history: row.get(2)?,
                clock: Clock {
                    trusted: time(row.get(3)?),
                    suspect: time(row.get(4)?),
                },
                ..Self::default()
            })
        });
        Ok(found.at(place)?.unwrap_or_default())
    }

    /// The tenant's number; it gets one with its first write.
    pub(super) fn number(
        &mut self,
        connection: &Connection,
        place: &str,
        name: &str,
    ) -> Result<i64, StoreError> {
        if self.num == 0 {
            let add = "INSERT INTO tenants (name) VALUES (?1)";
            connection.execute(add, [name]).at(place)?;
            self.num = connection.last_insert_rowid();
        }
        Ok(self.num)
    }

    /// Takes over what the transaction before knew, if nobody else has written since.
    fn recall(&mut self, known: &Known) {
        let seen = known.tenants.get(&self.num);
        if let Some(seen) = seen.filter(|seen| seen.last_seq == self.last_seq) {
            self.newest.clone_from(&seen.newest);
            self.soonest_expiry = seen.soonest_expiry;
        }
    }

    /// A record was written under this id.
    pub(super) fn has_written(&mut self, id: &Id, expires: Option<Time>) {
        if let Some(newest) = &mut self.newest
            && id.as_str() > newest.as_str()
        {
            id.as_str().clone_into(newest);
        }
        if let (Some(soonest), Some(expires)) = (&mut self.soonest_expiry, expires) {
            *soonest = (*soonest).min(expires.millis());
        }
    }

    fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "UPDATE tenants SET last_seq = ?2, history = history + ?3, clock_trusted = ?4,
                    clock_suspect = ?5 WHERE num = ?1",
            )?
            .execute(params![
                self.num,
                self.last_seq.cast_signed(),
                self.history_grown,
                self.clock.trusted.map(Time::millis),
                self.clock.suspect.map(Time::millis),
            ])?;
        for ((scope, kind, namespace), grown) in &self.grown {
            connection
                .prepare_cached(
                    "INSERT INTO tally (tenant, scope, kind, namespace, count)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT DO UPDATE SET count = count + excluded.count",
                )?
                .execute(params![
                    self.num,
                    scope.as_str(),
                    kind.as_str(),
                    namespace.as_str(),
                    grown
                ])?;
        }
        Ok(())
    }
}

fn time(millis: Option<i64>) -> Option<Time> {
    millis.map(|millis| Time::EPOCH.plus_millis(millis))
}

impl Counts {
    /// The tenant as the batches before left it, or as the file knows it.
    pub(super) fn of(
        &mut self,
        connection: &Connection,
        place: &str,
        name: &str,
        known: &Known,
    ) -> Result<&mut State, StoreError> {
        if !self.tenants.contains_key(name) {
            let mut state = State::load(connection, place, name)?;
            state.recall(known);
            self.tenants.insert(name.to_owned(), state);
        }
        let known = self.tenants.get_mut(name);
        known.ok_or_else(|| StoreError::Internal("a tenant was lost".to_owned()))
    }

    /// Writes what the batches of the transaction counted.
    pub(super) fn save(&self, connection: &Connection, place: &str) -> Result<(), StoreError> {
        let mut tenants = self.tenants.values();
        tenants
            .try_for_each(|state| state.save(connection))
            .at(place)
    }

    /// The transaction is durable: what it learnt need not be asked for by the next one.
    pub(super) fn remember(self, known: &mut Known) {
        if known.tenants.len() + self.tenants.len() > KNOWN {
            known.tenants.clear();
        }
        for state in self.tenants.into_values().take(KNOWN) {
            let seen = Seen {
                last_seq: state.last_seq,
                newest: state.newest,
                soonest_expiry: state.soonest_expiry,
            };
            known.tenants.insert(state.num, seen);
        }
    }
}
