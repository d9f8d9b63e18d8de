//! What a transaction counts: read once and written once, however many batches share it.

use std::collections::{BTreeMap, HashMap};

use mnemon_core::{Kind, Namespace, Scope, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::At;

/// What is known of a tenant, and what has changed of it but is not written yet.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) num: i64,
    pub(super) last_seq: u64,
    /// The newest change when the transaction began.
    pub(super) began_at: u64,
    /// The greatest id, once it was asked for.
    pub(super) newest: Option<String>,
    /// When the next record expires, or earlier, once it was asked for.
    pub(super) soonest_expiry: Option<i64>,
    /// How many changes the history held when the transaction began.
    pub(super) history: i64,
    /// How many more or fewer records there are of each sort.
    pub(super) grown: BTreeMap<(Scope, Kind, Namespace), i64>,
    pub(super) history_grown: i64,
}

/// The tenants of one transaction. Batches that share it share the reading and writing of counts.
#[derive(Clone, Default)]
pub(super) struct Counts {
    tenants: HashMap<String, State>,
}

impl State {
    fn load(connection: &Connection, place: &str, name: &str) -> Result<Self, StoreError> {
        let found = connection
            .prepare_cached("SELECT num, last_seq, history FROM tenants WHERE name = ?1")
            .and_then(|mut select| {
                select
                    .query_row([name], |row| {
                        let last_seq = row.get::<_, i64>(1)?.cast_unsigned();
                        Ok(Self {
                            num: row.get(0)?,
                            last_seq,
                            began_at: last_seq,
                            history: row.get(2)?,
                            ..Self::default()
                        })
                    })
                    .optional()
            })
            .at(place)?;
        if let Some(found) = found {
            return Ok(found);
        }
        let add = "INSERT INTO tenants (name) VALUES (?1)";
        connection.execute(add, [name]).at(place)?;
        Ok(Self {
            num: connection.last_insert_rowid(),
            ..Self::default()
        })
    }

    fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "UPDATE tenants SET last_seq = ?2, history = history + ?3 WHERE num = ?1",
            )?
            .execute(params![
                self.num,
                self.last_seq.cast_signed(),
                self.history_grown
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

impl Counts {
    /// The tenant as the batches before left it, or as the file knows it.
    pub(super) fn of(
        &mut self,
        connection: &Connection,
        place: &str,
        name: &str,
    ) -> Result<&mut State, StoreError> {
        if !self.tenants.contains_key(name) {
            let state = State::load(connection, place, name)?;
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
}
