//! Reading everything that the file keeps of a tenant, for a copy of it, and dropping what the
//! original has dropped.

use std::collections::HashMap;

use async_trait::async_trait;
use mnemon_core::index::StoredVector;
use mnemon_core::{
    Cause, Clock, CodedVector, EmbeddedPage, Grant, IdempotencyKey, Replica, Right, StoreError,
    StoredChange, StoredPage, StoredReceipt, Tenant, Time,
};
use rusqlite::{Row, params};

use super::Sqlite;
use super::errors::{At, Query};
use super::feed::{models, vector};
use super::pool::Reader;
use super::tables::{SqlTables, count, key, seq, time, word};
use super::{reads, sums};
use crate::store::corrupt;

#[async_trait]
impl Replica for Sqlite {
    async fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, StoreError> {
        grant.require(Right::Purge)?;
        self.read(|reader| {
            let sql = "SELECT name FROM tenants ORDER BY name";
            let names = |row: &Row<'_>| row.get::<_, String>(0);
            let names = reader.connection.all(sql, [], names).at(reader.place)?;
            let tenants = names.iter().map(|name| Tenant::from_store(name));
            Ok(tenants.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn stored_changes(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<StoredPage, StoreError> {
        let grant = grant.clone();
        self.read(move |reader| stored_changes(reader, &grant, after, limit))
            .await
    }

    async fn embedded_after(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<EmbeddedPage, StoreError> {
        let grant = grant.clone();
        self.read(move |reader| embedded_after(reader, &grant, after, limit))
            .await
    }

    async fn stored_receipts(
        &self,
        grant: &Grant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let (grant, after) = (grant.clone(), after.to_owned());
        self.read(move |reader| stored_receipts(reader, &grant, &after, limit))
            .await
    }

    async fn restore_vectors(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, CodedVector)>,
    ) -> Result<(), StoreError> {
        let vectors = vectors.iter();
        let vectors = vectors.map(|(seq, coded)| (*seq, StoredVector::from(coded)));
        let vectors = vectors.collect();
        self.writer()?.embed(grant, vectors).await.map(drop)
    }
}

/// The rows of both tables in the order of their numbers.
const CHANGES: &str =
    "SELECT r.key, r.id, r.version, r.commit_seq, r.at, r.actor, r.cause, r.expires, r.doc, r.sum,
        1, s.model, s.scale, s.codes
     FROM records r LEFT JOIN search s ON s.key = r.key WHERE r.key > ?1 AND r.key < ?2
     UNION ALL
     SELECT key, id, version, commit_seq, at, actor, cause, expires, doc, sum, 0, NULL, NULL, NULL
     FROM history WHERE key > ?1 AND key < ?2
     ORDER BY 1";

fn stored_changes(
    reader: &Reader<'_>,
    grant: &Grant,
    after: u64,
    limit: usize,
) -> Result<StoredPage, StoreError> {
    let place = reader.place;
    let _moment = reader.connection.unchecked_transaction().at(place)?;
    let Some(tenant) = reads::tenant(reader, grant)? else {
        return Ok(StoredPage::default());
    };
    let sql = "SELECT last_seq, clock_trusted, clock_suspect FROM tenants WHERE num = ?1";
    let moment = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?));
    let found = reader.connection.first(sql, [tenant], moment).at(place)?;
    let (last_seq, trusted, suspect) = found.unwrap_or_default();
    let moment = |millis: Option<i64>| millis.map(|it| Time::EPOCH.plus_millis(it));
    let mut page = StoredPage {
        last_seq: last_seq.cast_unsigned(),
        clock: Clock {
            trusted: moment(trusted),
            suspect: moment(suspect),
        },
        ..StoredPage::default()
    };
    let models = models(reader.connection).at(place)?;
    let mut select = reader.connection.prepare_cached(CHANGES).at(place)?;
    let range = params![key(tenant, after), key(tenant + 1, 0)];
    let mut rows = select.query(range).at(place)?;
    let changes = std::iter::from_fn(|| {
        let row = rows.next().at(place).transpose()?;
        Some(row.and_then(|row| change(place, row, &models)))
    });
    page.fill(changes, limit)?;
    Ok(page)
}

fn change(
    place: &str,
    row: &Row<'_>,
    models: &HashMap<i64, mnemon_core::embed::ModelId>,
) -> Result<StoredChange, StoreError> {
    let read = || -> rusqlite::Result<(StoredChange, Option<String>, i64)> {
        let expires: Option<i64> = row.get(7)?;
        let change = StoredChange {
            seq: seq(row.get(0)?),
            id: word(row, 1)?,
            version: row.get::<_, i64>(2)?.cast_unsigned(),
            commit: row.get::<_, i64>(3)?.cast_unsigned(),
            at: time(row, 4)?,
            actor: row.get(5)?,
            cause: word::<Cause>(row, 6)?,
            expires: expires.map(|it| Time::EPOCH.plus_millis(it)),
            record: None,
            is_current: row.get(10)?,
            vector: vector(row, 11, models)?.map(|vector| vector.coded()),
        };
        Ok((change, row.get(8)?, row.get(9)?))
    };
    let (mut change, doc, sum) = read().at(place)?;
    if let Some(doc) = doc {
        change.record = Some(Box::new(sums::record(place, &doc, sum)?));
    }
    Ok(change)
}

fn embedded_after(
    reader: &Reader<'_>,
    grant: &Grant,
    after: u64,
    limit: usize,
) -> Result<EmbeddedPage, StoreError> {
    let place = reader.place;
    let _moment = reader.connection.unchecked_transaction().at(place)?;
    let Some(tenant) = reads::tenant(reader, grant)? else {
        return Ok(EmbeddedPage::default());
    };
    let sql = "SELECT embedded FROM tenants WHERE num = ?1";
    let newest = reader.connection.first(sql, [tenant], |row| row.get(0));
    let newest: i64 = newest.at(place)?.unwrap_or_default();
    let models = models(reader.connection).at(place)?;
    let sql = "SELECT s.embedded, r.doc, r.sum, s.model, s.scale, s.codes
         FROM search s INDEXED BY search_embedded JOIN records r ON r.key = s.key
         WHERE s.embedded > ?1 AND s.embedded < ?2 ORDER BY s.embedded LIMIT ?3";
    let columns = |row: &Row<'_>| {
        let number = seq(row.get(0)?);
        let (doc, sum): (String, i64) = (row.get(1)?, row.get(2)?);
        Ok((number, doc, sum, vector(row, 3, &models)?))
    };
    let range = params![key(tenant, after), key(tenant + 1, 0), count(limit + 1)];
    let mut rows = reader.connection.all(sql, range, columns).at(place)?;
    let mut page = EmbeddedPage {
        more: rows.len() > limit,
        reached: newest.cast_unsigned(),
        ..EmbeddedPage::default()
    };
    rows.truncate(limit);
    if let Some((number, ..)) = rows.last().filter(|_| page.more) {
        page.reached = *number;
    }
    for (_, doc, sum, vector) in rows {
        if let Some(vector) = vector {
            let record = sums::record(place, &doc, sum)?;
            page.records.push((record, vector.coded()));
        }
    }
    Ok(page)
}

fn stored_receipts(
    reader: &Reader<'_>,
    grant: &Grant,
    after: &str,
    limit: usize,
) -> Result<Vec<StoredReceipt>, StoreError> {
    let Some(tenant) = reads::tenant(reader, grant)? else {
        return Ok(Vec::new());
    };
    let sql = "SELECT key, digest, at, receipt FROM receipts WHERE tenant = ?1 AND key > ?2
         ORDER BY key LIMIT ?3";
    let columns = |row: &Row<'_>| {
        let (name, digest) = (row.get(0)?, row.get(1)?);
        let key = IdempotencyKey { name, digest };
        Ok((key, time(row, 2)?, row.get::<_, String>(3)?))
    };
    let values = params![tenant, after, count(limit)];
    let rows = reader.connection.all(sql, values, columns);
    let rows = rows.at(reader.place)?.into_iter();
    rows.map(|(key, at, text)| {
        let receipt = serde_json::from_str(&text).map_err(|error| {
            let what = format!("the receipt of key `{}` cannot be read: {error}", key.name);
            corrupt(reader.place, what)
        })?;
        Ok(StoredReceipt { key, at, receipt })
    })
    .collect()
}

impl SqlTables<'_, '_> {
    /// Drops past changes and receipts that the original has dropped.
    pub(super) fn drop_copied(&mut self, seqs: &[u64], keys: &[String]) -> Result<(), StoreError> {
        for seq in seqs {
            let row = key(self.tenant, *seq);
            let sql = "SELECT id, version FROM history WHERE key = ?1";
            let columns = |row: &Row<'_>| Ok((word(row, 0)?, row.get::<_, i64>(1)?));
            let found = self.connection.first(sql, [row], columns).at(self.place)?;
            if let Some((id, version)) = found {
                self.drop_past(row, &id)?;
                // Tombstones of purges are not counted as history.
                self.state.history_grown += i64::from(version == 0);
            }
        }
        for key in keys {
            let sql = "DELETE FROM receipts WHERE tenant = ?1 AND key = ?2";
            self.run(sql, params![self.tenant, key])?;
        }
        Ok(())
    }
}
