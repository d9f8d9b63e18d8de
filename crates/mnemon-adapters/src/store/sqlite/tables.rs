//! One tenant's tables inside a write transaction: the primitive moves that core's rules ask for.

use std::collections::HashSet;

use mnemon_core::commit::{Entry, KeptReceipt, Slot, Tables};
use mnemon_core::embed::ModelId;
use mnemon_core::index::{Doc, StoredVector, Terms};
use mnemon_core::{
    Clock, Grant, Id, IdempotencyKey, Kind, Namespace, Receipt, Record, Right, StoreError, Time,
};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Statement, params};

use super::counts::{Counts, Known, Newest, State};
use super::errors::At;
use super::schema::SEQ_BITS;
use super::{removals, speakers, sums};

/// A tenant within a transaction.
pub(super) struct SqlTables<'c, 'b> {
    pub(super) connection: &'c Connection,
    pub(super) place: &'b str,
    pub(super) tenant: i64,
    pub(super) state: &'b mut State,
    /// How many removals are logged.
    removal_log: usize,
    /// What the records that are about to be written are found by, in their order.
    found_by: FoundBys,
    hot: &'b mut Hot<'c>,
}

/// What every row needs, at hand from one batch to the next: finding a statement by its text takes
/// a microsecond.
#[derive(Default)]
pub(super) struct Hot<'c> {
    slot: Option<CachedStatement<'c>>,
    insert: Option<CachedStatement<'c>>,
    insert_search: Option<CachedStatement<'c>>,
    pub(super) known: Known,
    /// A record's JSON on its way into its row.
    doc: Vec<u8>,
}

/// The statement, prepared when it is first needed.
fn at_hand<'h, 'a>(
    place: &'h mut Option<CachedStatement<'a>>,
    connection: &'a Connection,
    sql: &str,
) -> rusqlite::Result<&'h mut CachedStatement<'a>> {
    Ok(match place {
        Some(statement) => statement,
        None => place.insert(connection.prepare_cached(sql)?),
    })
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

/// One for each put of a batch, in order. They may still be in the making.
pub(super) type FoundBys = Box<dyn Iterator<Item = FoundBy> + Send>;

/// The key of the row with this number.
pub(super) fn key(tenant: i64, seq: u64) -> i64 {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX) & ((1 << SEQ_BITS) - 1);
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
        grant.require(Right::Write)?;
        let name = grant.tenant().as_str();
        let state = counts.of(connection, place, name, &hot.known)?;
        Ok(Self {
            connection,
            place,
            tenant: state.num,
            state,
            removal_log: grant.limits().removal_log,
            found_by: Box::new(std::iter::empty()),
            hot,
        })
    }

    /// What the records that are about to be written are found by.
    pub(super) fn expect(&mut self, found_by: FoundBys) {
        self.found_by = found_by;
    }

    /// Gives records vectors, each under a number by which indexes that follow find it; a record
    /// that has been changed since is left out.
    pub(super) fn embed(&mut self, vectors: &[(u64, StoredVector)]) -> Result<usize, StoreError> {
        let newest: i64 = self
            .connection
            .prepare_cached("SELECT embedded FROM tenants WHERE num = ?1")
            .and_then(|mut select| select.query_row([self.tenant], |row| row.get(0)))
            .at(self.place)?;
        let mut number = newest;
        for (seq, stored) in vectors {
            let row = key(self.tenant, *seq);
            let doc: Option<(String, i64)> = self
                .connection
                .prepare_cached("SELECT doc, sum FROM records WHERE key = ?1")
                .and_then(|mut select| {
                    let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                    select.query_row([row], columns).optional()
                })
                .at(self.place)?;
            if let Some((doc, sum)) = doc {
                let record = sums::record(self.place, &doc, sum)?;
                self.run("DELETE FROM search WHERE key = ?1", params![row])?;
                let found_by = FoundBy {
                    id: record.id.clone(),
                    terms: Terms::of(&record).to_bytes(),
                    vector: Some(stored.clone()),
                };
                self.insert_search(row, &record, found_by)?;
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
        found_by: FoundBy,
    ) -> Result<(), StoreError> {
        let FoundBy { terms, vector, .. } = found_by;
        let vector = match &vector {
            Some(stored) => Some((self.model(&stored.model)?, stored)),
            None => None,
        };
        at_hand(&mut self.hot.insert_search, self.connection, INSERT_SEARCH)
            .and_then(|insert| insert_search(insert, key, record, &terms, vector))
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

    /// The answer to a question with one row of one truth value.
    pub(super) fn yes(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<bool, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row(values, |row| row.get(0)))
            .at(self.place)
    }

    pub(super) fn ids(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<Id>, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                let rows = statement.query_map(values, |row| word::<Id>(row, 0))?;
                rows.collect()
            })
            .at(self.place)
    }

    /// Whether the tenant never had this id, as is plain of one that comes after all others: then
    /// there is nothing of it to look for. Asked for every row.
    fn is_new(&mut self, id: &Id) -> Result<bool, StoreError> {
        if let Some(newest) = &self.state.newest {
            return Ok(self.state.is_new(newest, id));
        }
        let newest: String = self
            .connection
            .prepare_cached(
                "SELECT max(coalesce((SELECT max(id) FROM records WHERE tenant = ?1), ''),
                    coalesce((SELECT max(id) FROM history WHERE tenant = ?1), ''))",
            )
            .and_then(|mut select| select.query_row([self.tenant], |row| row.get(0)))
            .at(self.place)?;
        let newest = Newest::from(newest);
        let new = self.state.is_new(&newest, id);
        self.state.newest = Some(newest);
        Ok(new)
    }

    /// When the next record expires; the end of time if none does.
    fn soonest_expiry(&self) -> Result<i64, StoreError> {
        self.connection
            .prepare_cached(
                "SELECT coalesce(min(expires), ?2) FROM records
                 WHERE tenant = ?1 AND expires IS NOT NULL",
            )
            .and_then(|mut select| {
                select.query_row(params![self.tenant, i64::MAX], |row| row.get(0))
            })
            .at(self.place)
    }

    /// The record with this key is about to leave the table.
    fn uncount_speaker(&mut self, key: i64) -> Result<(), StoreError> {
        let speaker = speakers::of_record(self.connection, key).at(self.place)?;
        self.state.count_speaker(speaker.as_deref(), -1);
        Ok(())
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
        self.take_out(slot)
    }

    /// Takes the row out of `records`: replaced, deleted, purged, expired or evicted. There is no
    /// other way out, so that the log of removals is complete.
    fn take_out(&mut self, slot: &Slot) -> Result<(), StoreError> {
        let key = key(self.tenant, slot.seq);
        self.uncount_speaker(key)?;
        self.run("DELETE FROM records WHERE key = ?1", params![key])?;
        self.run("DELETE FROM search WHERE key = ?1", params![key])?;
        self.count(slot, -1);
        removals::log(self.connection, self.tenant, slot.seq, self.removal_log).at(self.place)
    }

    fn insert(&mut self, entry: &Entry, record: &Record) -> Result<(), StoreError> {
        let Hot {
            insert, doc: json, ..
        } = &mut *self.hot;
        json.clear();
        serde_json::to_writer(&mut *json, record)
            .map_err(|error| StoreError::Internal(error.to_string()))?;
        let cause = entry.cause.to_string();
        let sum = sums::Row {
            key: key(self.tenant, entry.seq),
            id: record.id.as_str(),
            version: record.version.cast_signed(),
            commit: entry.commit.cast_signed(),
            at: entry.at.millis(),
            actor: &entry.actor,
            cause: &cause,
            expires: record.expires.map(Time::millis),
            doc: Some(json),
        }
        .sum();
        let doc = ToSqlOutput::Borrowed(ValueRef::Text(json));
        let sql = "INSERT INTO records (key, tenant, id, scope, kind, namespace, user, agent, session,
                importance, created, expires, version, commit_seq, at, actor, cause, doc, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
                ?19)";
        at_hand(insert, self.connection, sql)
            .and_then(|insert| {
                insert.execute(params![
                    key(self.tenant, entry.seq),
                    self.tenant,
                    record.id.as_str(),
                    record.scope.as_str(),
                    record.kind.as_str(),
                    record.namespace.as_str(),
                    record.owner.user,
                    record.owner.agent,
                    record.owner.session,
                    record.importance,
                    record.created.millis(),
                    record.expires.map(Time::millis),
                    record.version.cast_signed(),
                    entry.commit.cast_signed(),
                    entry.at.millis(),
                    entry.actor,
                    cause,
                    doc,
                    sum,
                ])
            })
            .at(self.place)?;
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
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Tables for SqlTables<'_, '_> {
    fn slot(&mut self, id: &Id) -> Result<Option<Slot>, StoreError> {
        if self.is_new(id)? {
            return Ok(None);
        }
        let sql = "SELECT key, version, scope, kind, namespace, expires
                 FROM records WHERE tenant = ?1 AND id = ?2";
        at_hand(&mut self.hot.slot, self.connection, sql)
            .and_then(|select| {
                select
                    .query_row(params![self.tenant, id.as_str()], |row| {
                        Ok(Slot {
                            seq: seq(row.get(0)?),
                            version: row.get::<_, i64>(1)?.cast_unsigned(),
                            scope: word(row, 2)?,
                            kind: word(row, 3)?,
                            namespace: word(row, 4)?,
                            expires: row
                                .get::<_, Option<i64>>(5)?
                                .map(|ms| Time::EPOCH.plus_millis(ms)),
                        })
                    })
                    .optional()
            })
            .at(self.place)
    }

    fn buried_version(&mut self, id: &Id) -> Result<u64, StoreError> {
        // While nothing was ever replaced or deleted there is nothing to look for.
        if self.state.history + self.state.history_grown == 0 || self.is_new(id)? {
            return Ok(0);
        }
        let version: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT version FROM history WHERE tenant = ?1 AND id = ?2
                 ORDER BY key DESC LIMIT 1",
            )
            .and_then(|mut select| {
                select
                    .query_row(params![self.tenant, id.as_str()], |row| row.get(0))
                    .optional()
            })
            .at(self.place)?;
        Ok(version.unwrap_or(0).cast_unsigned())
    }

    fn last_seq(&mut self) -> Result<u64, StoreError> {
        Ok(self.state.last_seq)
    }

    fn write(
        &mut self,
        entry: &Entry,
        record: Record,
        replaced: Option<Slot>,
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
        self.insert(entry, &record)?;
        self.state.count_speaker(record.speaker(), 1);
        // Every put is written once and in order, so the next one is this record's.
        let found_by = self.found_by.next().filter(|next| next.id == record.id);
        let found_by = found_by.unwrap_or_else(|| FoundBy {
            id: record.id.clone(),
            terms: Terms::of(&record).to_bytes(),
            vector: None,
        });
        self.insert_search(key(self.tenant, entry.seq), &record, found_by)?;
        self.link(&record)?;
        self.state.has_written(&record.id);
        if let (Some(soonest), Some(expires)) = (&mut self.state.soonest_expiry, record.expires) {
            *soonest = (*soonest).min(expires.millis());
        }
        self.count(&Slot::of(&record), 1);
        self.state.last_seq = self.state.last_seq.max(entry.seq);
        Ok(())
    }

    fn bury(&mut self, entry: &Entry, id: &Id, slot: Slot) -> Result<(), StoreError> {
        self.retire(&slot, entry.at)?;
        let cause = entry.cause.to_string();
        let row = sums::Row {
            key: key(self.tenant, entry.seq),
            id: id.as_str(),
            version: (slot.version + 1).cast_signed(),
            commit: entry.commit.cast_signed(),
            at: entry.at.millis(),
            actor: &entry.actor,
            cause: &cause,
            expires: slot.expires.map(Time::millis),
            doc: None,
        };
        self.run(
            "INSERT INTO history (key, tenant, id, version, commit_seq, at, actor, cause, replaced,
                expires, doc, sum, replaced_sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?6, ?9, NULL, ?10, ?11)",
            params![
                row.key,
                self.tenant,
                row.id,
                row.version,
                row.commit,
                row.at,
                row.actor,
                row.cause,
                row.expires,
                row.sum(),
                sums::of_number(row.at),
            ],
        )?;
        self.state.history_grown += 1;
        self.state.last_seq = self.state.last_seq.max(entry.seq);
        Ok(())
    }

    fn erase(&mut self, id: &Id) -> Result<bool, StoreError> {
        let tenant = self.tenant;
        let target = params![tenant, id.as_str()];
        let slot = self.slot(id)?;
        if let Some(slot) = &slot {
            self.take_out(slot)?;
        }
        let dropped = self.run("DELETE FROM history WHERE tenant = ?1 AND id = ?2", target)?;
        self.state.history_grown -= count(dropped);
        self.run(
            "DELETE FROM links WHERE tenant = ?1 AND derived = ?2",
            target,
        )?;
        Ok(slot.is_some() || dropped > 0)
    }

    fn derived(&mut self, id: &Id) -> Result<Vec<Id>, StoreError> {
        self.ids(
            "SELECT derived FROM links WHERE tenant = ?1 AND source = ?2 ORDER BY derived",
            params![self.tenant, id.as_str()],
        )
    }

    fn notes(&mut self, namespace: Namespace) -> Result<u64, StoreError> {
        let before: i64 = self
            .connection
            .prepare_cached(
                "SELECT coalesce(sum(count), 0) FROM tally
                 WHERE tenant = ?1 AND kind = 'note' AND namespace = ?2",
            )
            .and_then(|mut select| {
                select.query_row(params![self.tenant, namespace.as_str()], |row| row.get(0))
            })
            .at(self.place)?;
        let grown: i64 = self
            .state
            .grown
            .iter()
            .filter(|((_, kind, space), _)| *kind == Kind::Note && *space == namespace)
            .map(|(_, grown)| grown)
            .sum();
        Ok(u64::try_from(before + grown).unwrap_or(0))
    }

    fn weakest(&mut self, namespace: Namespace, most: usize) -> Result<Vec<Id>, StoreError> {
        self.ids(
            "SELECT id FROM records WHERE tenant = ?1 AND namespace = ?2 AND kind = 'note'
             ORDER BY importance, created, key LIMIT ?3",
            params![self.tenant, namespace.as_str(), count(most)],
        )
    }

    fn expired(&mut self, now: Time, most: usize) -> Result<Vec<Id>, StoreError> {
        // Every batch asks; batches that share a transaction need not look again.
        let soonest = match self.state.soonest_expiry {
            Some(known) => known,
            None => self.soonest_expiry()?,
        };
        self.state.soonest_expiry = Some(soonest);
        if soonest >= now.millis() {
            return Ok(Vec::new());
        }
        self.state.soonest_expiry = None;
        self.ids(
            "SELECT id FROM records WHERE tenant = ?1 AND expires < ?2 ORDER BY expires, id LIMIT ?3",
            params![self.tenant, now.millis(), count(most)],
        )
    }

    fn clock(&mut self) -> Result<Clock, StoreError> {
        Ok(self.state.clock)
    }

    fn keep_clock(&mut self, clock: Clock) -> Result<(), StoreError> {
        self.state.clock = clock;
        Ok(())
    }

    fn receipt(&mut self, key: &str) -> Result<Option<KeptReceipt>, StoreError> {
        let kept: Option<(String, String)> = self
            .connection
            .prepare_cached("SELECT digest, receipt FROM receipts WHERE tenant = ?1 AND key = ?2")
            .and_then(|mut select| {
                select
                    .query_row(params![self.tenant, key], |row| {
                        Ok((row.get(0)?, row.get(1)?))
                    })
                    .optional()
            })
            .at(self.place)?;
        kept.map(|(digest, text)| {
            let receipt = serde_json::from_str(&text).map_err(|error| StoreError::Corrupt {
                place: self.place.to_owned(),
                what: format!("the receipt of key `{key}` cannot be read: {error}"),
            })?;
            Ok(KeptReceipt { digest, receipt })
        })
        .transpose()
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
