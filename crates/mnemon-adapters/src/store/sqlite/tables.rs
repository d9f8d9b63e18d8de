//! One tenant's tables inside a write transaction: carries out what core planned.

use std::borrow::Cow;
use std::collections::HashSet;

use mnemon_core::commit::{Effect, Entry, Move, Plan, Slot};
use mnemon_core::embed::ModelId;
use mnemon_core::index::{Doc, StoredVector, Terms};
use mnemon_core::{Grant, Id, IdempotencyKey, Receipt, Record, StoreError, Time};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, Statement, params};

use super::counts::{Counts, Known, State};
use super::errors::{At, Query};
use super::schema::SEQ_BITS;
use super::{removals, sums};

/// A tenant within a transaction.
pub(super) struct SqlTables<'c, 'b> {
    pub(super) connection: &'c Connection,
    pub(super) place: &'b str,
    pub(super) tenant: i64,
    pub(super) state: &'b mut State,
    pub(super) hot: &'b mut Hot<'c>,
    /// How many removals are logged.
    removal_log: usize,
}

/// What every row needs, at hand from one batch to the next: finding a statement by its text takes
/// a microsecond.
#[derive(Default)]
pub(super) struct Hot<'c> {
    pub(super) slot: Option<CachedStatement<'c>>,
    insert: Option<CachedStatement<'c>>,
    insert_search: Option<CachedStatement<'c>>,
    pub(super) known: Known,
    /// A record's JSON on its way into its row.
    doc: Vec<u8>,
}

/// The statement, prepared when it is first needed.
pub(super) fn at_hand<'h, 'a>(
    place: &'h mut Option<CachedStatement<'a>>,
    connection: &'a Connection,
    sql: &str,
) -> rusqlite::Result<&'h mut CachedStatement<'a>> {
    Ok(match place {
        Some(statement) => statement,
        None => place.insert(connection.prepare_cached(sql)?),
    })
}

/// What [`insert_record`] runs.
pub(super) const INSERT_RECORD: &str =
    "INSERT INTO records (key, tenant, id, scope, kind, namespace, user, agent, session,
        importance, created, expires, version, commit_seq, at, actor, cause, doc, sum, audience)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
        ?20)";

/// Writes the current version of a record: the row with its checksum, and the columns that repeat
/// what its content says.
pub(super) fn insert_record(
    insert: &mut Statement<'_>,
    row: &sums::Row<'_>,
    record: &Record,
) -> rusqlite::Result<usize> {
    insert.execute(params![
        row.key,
        row.key >> SEQ_BITS,
        row.id,
        record.scope.as_str(),
        record.kind.as_str(),
        record.namespace.as_str(),
        record.owner.user,
        record.owner.agent,
        record.owner.session,
        record.importance,
        record.created.millis(),
        row.expires,
        row.version,
        row.commit,
        row.at,
        row.actor,
        row.cause,
        row.doc.map(as_text),
        row.sum(),
        record.audience.as_ref().map(ToString::to_string),
    ])
}

/// What [`insert_past`] runs.
pub(super) const INSERT_PAST: &str =
    "INSERT INTO history (key, tenant, id, version, commit_seq, at, actor, cause, replaced, expires,
        doc, sum, replaced_sum)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// Writes a past version or a deletion.
pub(super) fn insert_past(
    insert: &mut Statement<'_>,
    row: &sums::Row<'_>,
    replaced: i64,
) -> rusqlite::Result<usize> {
    insert.execute(params![
        row.key,
        row.key >> SEQ_BITS,
        row.id,
        row.version,
        row.commit,
        row.at,
        row.actor,
        row.cause,
        replaced,
        row.expires,
        row.doc.map(as_text),
        row.sum(),
        sums::of_number(replaced),
    ])
}

/// JSON, as its column keeps it.
fn as_text(json: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(json))
}

/// What [`insert_search`] runs.
pub(super) const INSERT_SEARCH: &str =
    "INSERT INTO search (key, terms, speaker, tags, model, scale, codes, sum)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Writes what the record is found by; its vector with the number of its model.
pub(super) fn insert_search(
    insert: &mut Statement<'_>,
    key: i64,
    record: &Record,
    terms: &[u8],
    vector: Option<(i64, &StoredVector)>,
) -> rusqlite::Result<()> {
    let doc = Doc::of(record);
    let tags = (!doc.tags.is_empty()).then(|| doc.tags.join("\n"));
    let model = vector.map(|(model, _)| model);
    let codes = vector.map(|(_, stored)| stored.vector.to_bytes());
    let scale = vector.map(|(_, stored)| f64::from(stored.vector.scale));
    let sum = sums::of_values([
        ValueRef::Integer(key),
        ValueRef::Blob(terms),
        ValueRef::from(doc.speaker),
        ValueRef::from(tags.as_deref()),
        model.map_or(ValueRef::Null, ValueRef::Integer),
        scale.map_or(ValueRef::Null, ValueRef::Real),
        ValueRef::from(codes.as_deref()),
    ]);
    let speaker = doc.speaker;
    insert.execute(params![key, terms, speaker, tags, model, scale, codes, sum])?;
    Ok(())
}

/// What a record is found by, made ready before its turn to be written.
#[derive(Clone)]
pub(super) struct FoundBy {
    pub(super) id: Id,
    pub(super) terms: Vec<u8>,
    pub(super) vector: Option<StoredVector>,
}

/// The key of the row with this number. A number that no row can have becomes the largest one.
pub(super) fn key(tenant: i64, seq: u64) -> i64 {
    let seq = i64::try_from(seq)
        .unwrap_or(i64::MAX)
        .min((1 << SEQ_BITS) - 1);
    (tenant << SEQ_BITS) | seq
}

/// The number of the row with this key.
pub(super) fn seq(key: i64) -> u64 {
    u64::try_from(key & ((1 << SEQ_BITS) - 1)).unwrap_or(0)
}

/// A word of one of our enums, as a column keeps it.
pub(super) fn word<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

/// A moment, as a column keeps it.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    Ok(Time::EPOCH.plus_millis(row.get(column)?))
}

impl<'c, 'b> SqlTables<'c, 'b> {
    pub(super) fn open(
        connection: &'c Connection,
        place: &'b str,
        grant: &Grant,
        counts: &'b mut Counts,
        hot: &'b mut Hot<'c>,
    ) -> Result<Self, StoreError> {
        let name = grant.tenant().as_str();
        let state = counts.of(connection, place, name, &hot.known)?;
        Ok(Self {
            connection,
            place,
            tenant: state.num,
            state,
            removal_log: grant.limits().removal_log,
            hot,
        })
    }

    /// Takes over the numbers of a plan, before its moves are made.
    pub(super) fn settle(&mut self, grant: &Grant, plan: &Plan) -> Result<(), StoreError> {
        let mut planned = plan.outcomes.iter().flatten();
        if planned.any(|planned| !planned.moves.is_empty()) {
            let name = grant.tenant().as_str();
            self.tenant = self.state.number(self.connection, self.place, name)?;
        }
        self.state.last_seq = plan.last_seq;
        self.state.clock = plan.clock;
        Ok(())
    }

    /// Makes the moves of one batch. Its puts are written once and in order, and so is what they
    /// are found by.
    pub(super) fn apply<'f>(
        &mut self,
        moves: Vec<Move>,
        mut found_by: impl Iterator<Item = Cow<'f, FoundBy>>,
    ) -> Result<(), StoreError> {
        for Move { effect, leaves } in moves {
            match (effect, leaves) {
                (Effect::Write { entry, record }, leaves) => {
                    self.write(&entry, &record, leaves, found_by.next())?;
                }
                (Effect::Bury { entry, id }, Some(slot)) => self.bury(&entry, &id, slot)?,
                (
                    Effect::Tombstone {
                        entry,
                        id,
                        version,
                        expires,
                    },
                    leaves,
                ) => {
                    if let Some(slot) = leaves {
                        self.retire(&slot, entry.at)?;
                    }
                    self.state.history_grown += 1;
                    self.insert_tombstone(&entry, &id, version, expires)?;
                }
                (Effect::Erase { id, purged }, leaves) => {
                    self.erase(&id, leaves)?;
                    if let Some(entry) = purged {
                        // Version 0: for every rule the record was never there.
                        self.insert_tombstone(&entry, &id, 0, None)?;
                    }
                }
                (Effect::Receipt { key, at, receipt }, _) => {
                    self.keep_receipt(&key, at, &receipt)?;
                }
                (Effect::Drop { seqs, keys }, _) => self.drop_copied(&seqs, &keys)?,
                // Nothing is buried that is not there.
                (Effect::Bury { .. }, None) => {}
            }
        }
        Ok(())
    }

    /// Gives records vectors, each under a number by which indexes that follow find it; a record
    /// that has been changed since is left out.
    pub(super) fn embed(&mut self, vectors: &[(u64, StoredVector)]) -> Result<usize, StoreError> {
        let newest = "SELECT embedded FROM tenants WHERE num = ?1";
        let newest = self
            .connection
            .first(newest, [self.tenant], |row| row.get(0));
        // A tenant that never wrote has no records to embed.
        let Some(newest) = newest.at(self.place)? else {
            return Ok(0);
        };
        let mut number: i64 = newest;
        for (seq, stored) in vectors {
            let row = key(self.tenant, *seq);
            let sql = "SELECT doc, sum FROM records WHERE key = ?1";
            let columns = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
            let found = self.connection.first(sql, [row], columns).at(self.place)?;
            if let Some((doc, sum)) = found {
                let record = sums::record(self.place, &doc, sum)?;
                self.run("DELETE FROM search WHERE key = ?1", params![row])?;
                let found_by = FoundBy {
                    id: record.id.clone(),
                    terms: Terms::of(&record).to_bytes(),
                    vector: Some(stored.clone()),
                };
                self.insert_search(row, &record, &found_by)?;
                number += 1;
                let embedded = key(self.tenant, number.cast_unsigned());
                self.run(
                    "UPDATE search SET embedded = ?2 WHERE key = ?1",
                    params![row, embedded],
                )?;
            }
        }
        self.run(
            "UPDATE tenants SET embedded = ?2 WHERE num = ?1",
            params![self.tenant, number],
        )?;
        Ok(usize::try_from(number - newest).unwrap_or(0))
    }

    fn model(&self, model: &ModelId) -> Result<i64, StoreError> {
        if let Some(known) = super::embeddings::model_number(self.connection, self.place, model)? {
            return Ok(known);
        }
        self.run(
            "INSERT INTO models (name, dimension) VALUES (?1, ?2)",
            params![model.name, count(model.dimension)],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Keeps what the record is found by.
    fn insert_search(
        &mut self,
        key: i64,
        record: &Record,
        found_by: &FoundBy,
    ) -> Result<(), StoreError> {
        let FoundBy { terms, vector, .. } = found_by;
        let vector = match vector {
            Some(stored) => Some((self.model(&stored.model)?, stored)),
            None => None,
        };
        at_hand(&mut self.hot.insert_search, self.connection, INSERT_SEARCH)
            .and_then(|insert| insert_search(insert, key, record, terms, vector))
            .at(self.place)
    }

    pub(super) fn run(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<usize, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .at(self.place)
    }

    pub(super) fn ids(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<Id>, StoreError> {
        let ids = self.connection.all(sql, values, |row| word(row, 0));
        ids.at(self.place)
    }

    fn count(&mut self, slot: &Slot, grown: i64) {
        let sort = (slot.scope, slot.kind, slot.namespace);
        *self.state.grown.entry(sort).or_default() += grown;
    }

    /// Moves the current version to the history.
    fn retire(&mut self, slot: &Slot, at: Time) -> Result<(), StoreError> {
        let key = key(self.tenant, slot.seq);
        self.run(
            "INSERT INTO history (key, tenant, id, version, commit_seq, at, actor, cause, replaced,
                expires, doc, sum, replaced_sum)
             SELECT key, tenant, id, version, commit_seq, at, actor, cause, ?2, expires, doc, sum, ?3
             FROM records WHERE key = ?1",
            params![key, at.millis(), sums::of_number(at.millis())],
        )?;
        self.state.history_grown += 1;
        self.remove(slot)
    }

    /// Takes the current version out of its place; every row of `records` leaves through here.
    fn remove(&mut self, slot: &Slot) -> Result<(), StoreError> {
        let key = key(self.tenant, slot.seq);
        self.run("DELETE FROM records WHERE key = ?1", params![key])?;
        self.run("DELETE FROM search WHERE key = ?1", params![key])?;
        self.count(slot, -1);
        removals::log(self.connection, self.tenant, slot.seq, self.removal_log).at(self.place)
    }

    /// Puts a current version in its place; every row of `records` enters through here.
    fn insert(&mut self, entry: &Entry, record: &Record) -> Result<(), StoreError> {
        let Hot {
            insert, doc: json, ..
        } = &mut *self.hot;
        json.clear();
        serde_json::to_writer(&mut *json, record)
            .map_err(|error| StoreError::Internal(error.to_string()))?;
        let cause = entry.cause.to_string();
        let row = sums::Row {
            key: key(self.tenant, entry.seq),
            id: record.id.as_str(),
            version: record.version.cast_signed(),
            commit: entry.commit.cast_signed(),
            at: entry.at.millis(),
            actor: &entry.actor,
            cause: &cause,
            expires: record.expires.map(Time::millis),
            doc: Some(json),
        };
        at_hand(insert, self.connection, INSERT_RECORD)
            .and_then(|insert| insert_record(insert, &row, record))
            .at(self.place)?;
        self.state.has_written(&record.id, record.expires);
        self.count(&Slot::of(record), 1);
        Ok(())
    }

    /// Records what it was derived from. A skill names hundreds of runs and gets a few new ones at
    /// a time: only what differs is written.
    fn link(&self, record: &Record) -> Result<(), StoreError> {
        let derived = record.id.as_str();
        let before = match record.version > 1 {
            true => self.ids(
                "SELECT source FROM links WHERE tenant = ?1 AND derived = ?2",
                params![self.tenant, derived],
            )?,
            false => Vec::new(),
        };
        let before: HashSet<&Id> = before.iter().collect();
        let now: HashSet<&Id> = record.derived_from.iter().collect();
        for gone in before.difference(&now) {
            self.run(
                "DELETE FROM links WHERE tenant = ?1 AND source = ?2 AND derived = ?3",
                params![self.tenant, gone.as_str(), derived],
            )?;
        }
        for source in &record.derived_from {
            if !before.contains(source) {
                self.run(
                    "INSERT OR IGNORE INTO links (tenant, source, derived) VALUES (?1, ?2, ?3)",
                    params![self.tenant, source.as_str(), derived],
                )?;
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        entry: &Entry,
        record: &Record,
        replaced: Option<Slot>,
        found_by: Option<Cow<'_, FoundBy>>,
    ) -> Result<(), StoreError> {
        match replaced {
            Some(slot) => self.retire(&slot, entry.at)?,
            // It comes back after a deletion, whose mark is now followed by this change.
            None if record.version > 1 => {
                self.run(
                    "UPDATE history SET replaced = ?3, replaced_sum = ?4
                     WHERE key = (SELECT max(key) FROM history WHERE tenant = ?1 AND id = ?2)",
                    params![
                        self.tenant,
                        record.id.as_str(),
                        entry.at.millis(),
                        sums::of_number(entry.at.millis())
                    ],
                )?;
            }
            None => {}
        }
        self.insert(entry, record)?;
        let found_by = found_by.filter(|next| next.id == record.id);
        let found_by = found_by.unwrap_or_else(|| {
            Cow::Owned(FoundBy {
                id: record.id.clone(),
                terms: Terms::of(record).to_bytes(),
                vector: None,
            })
        });
        self.insert_search(key(self.tenant, entry.seq), record, &found_by)?;
        self.link(record)
    }

    fn bury(&mut self, entry: &Entry, id: &Id, slot: Slot) -> Result<(), StoreError> {
        self.retire(&slot, entry.at)?;
        self.state.history_grown += 1;
        self.insert_tombstone(entry, id, slot.version + 1, slot.expires)
    }

    /// Adds the tombstone of a deletion or a purge to the history.
    fn insert_tombstone(
        &self,
        entry: &Entry,
        id: &Id,
        version: u64,
        expires: Option<Time>,
    ) -> Result<(), StoreError> {
        let cause = entry.cause.to_string();
        let row = sums::Row {
            key: key(self.tenant, entry.seq),
            id: id.as_str(),
            version: version.cast_signed(),
            commit: entry.commit.cast_signed(),
            at: entry.at.millis(),
            actor: &entry.actor,
            cause: &cause,
            expires: expires.map(Time::millis),
            doc: None,
        };
        self.connection
            .prepare_cached(INSERT_PAST)
            .and_then(|mut insert| insert_past(&mut insert, &row, row.at))
            .at(self.place)
            .map(drop)
    }

    /// Leaves nothing of the record, of which `slot` is the current version, but the
    /// tombstones of earlier purges.
    pub(super) fn erase(&mut self, id: &Id, slot: Option<Slot>) -> Result<(), StoreError> {
        if let Some(slot) = slot {
            self.remove(&slot)?;
        }
        let target = params![self.tenant, id.as_str()];
        let sql = "DELETE FROM history WHERE tenant = ?1 AND id = ?2 AND version > 0";
        let dropped = self.run(sql, target)?;
        self.state.history_grown -= count(dropped);
        self.run(
            "DELETE FROM links WHERE tenant = ?1 AND derived = ?2",
            params![self.tenant, id.as_str()],
        )
        .map(drop)
    }

    fn keep_receipt(
        &mut self,
        key: &IdempotencyKey,
        at: Time,
        receipt: &Receipt,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(receipt)
            .map_err(|error| StoreError::Internal(error.to_string()))?;
        let sum = sums::of_values([
            ValueRef::Integer(self.tenant),
            ValueRef::from(key.name.as_str()),
            ValueRef::from(key.digest.as_str()),
            ValueRef::Integer(at.millis()),
            ValueRef::from(text.as_str()),
        ]);
        self.run(
            "INSERT INTO receipts (tenant, key, digest, at, receipt, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![self.tenant, key.name, key.digest, at.millis(), text, sum],
        )?;
        Ok(())
    }
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
