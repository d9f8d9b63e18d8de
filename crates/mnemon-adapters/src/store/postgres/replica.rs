//! Reading everything that the database keeps of a tenant, for a copy of it, and dropping what the
//! original has dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::index::StoredVector;
use mnemon_core::{
    Cause, Clock, CodedVector, EmbeddedPage, Grant, IdempotencyKey, Replica, Right, StoreError,
    StoredChange, StoredPage, StoredReceipt, Tenant,
};
use tokio_postgres::Row;

use super::errors::Failure;
use super::feed::vector;
use super::pool::{Call, Lease};
use super::reads::{OWN, call, record};
use super::row_security::RowSecurity;
use super::view::{bound, count, maybe_time, number, time, word};
use super::writer::RECONNECT;
use super::{Postgres, read, schema};
use crate::store::{corrupt, unavailable};

#[async_trait]
impl Replica for Postgres {
    async fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, StoreError> {
        grant.require(Right::Purge)?;
        read!(self, |lease| tenants(&mut lease))
    }

    async fn stored_changes(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<StoredPage, StoreError> {
        read!(self, |lease| stored_changes(
            &mut lease, grant, after, limit
        ))
    }

    async fn embedded_after(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<EmbeddedPage, StoreError> {
        read!(self, |lease| embedded_after(
            &mut lease, grant, after, limit
        ))
    }

    async fn stored_receipts(
        &self,
        grant: &Grant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        read!(self, |lease| stored_receipts(
            &mut lease, grant, after, limit
        ))
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

/// Whether the database has no tables of ours yet. Fails if it has newer ones.
pub(crate) fn has_no_tables(url: &str) -> Result<bool, StoreError> {
    let store = Postgres::connect(url)?;
    let pool = Arc::clone(&store.pool);
    store.block_on(async move {
        let version = async {
            let mut lease = pool.take().await?;
            schema::check(&mut lease).await
        };
        let version: Result<i64, Failure> = version.await;
        Ok(version.map_err(|failure| failure.at(&pool.place))? == 0)
    })
}

async fn tenants(lease: &mut Lease) -> Result<Vec<Tenant>, Failure> {
    if RowSecurity::of(lease).await?.is_active {
        let what = "row-level security hides the tenants from this user; use one with BYPASSRLS";
        return Err(unavailable(lease.place(), what, "mnemon.tenants").into());
    }
    let sql = "SELECT name FROM mnemon.tenants ORDER BY name";
    let rows = lease.all(Call::new(sql)).await?;
    let tenants = rows.iter().map(|row| {
        let tenant = Tenant::from_store(row.try_get(0)?);
        tenant.map_err(|error| StoreError::from(error).into())
    });
    tenants.collect()
}

/// One statement, so that everything comes from one moment.
async fn stored_changes(
    lease: &mut Lease,
    grant: &Grant,
    after: u64,
    limit: usize,
) -> Result<StoredPage, Failure> {
    let models = models(lease).await?;
    let shared = "seq, id, version, commit_seq, at, actor, cause, expires, doc";
    let part = |table: &str, is_current: bool| {
        format!(
            "(SELECT {shared}, {is_current} AS is_current FROM mnemon.{table}
                WHERE tenant = {OWN} AND seq > $2 ORDER BY seq LIMIT $3)"
        )
    };
    let sql = format!(
        "SELECT c.*, s.model, s.scale, s.codes, t.last_seq, t.clock_trusted, t.clock_suspect
         FROM mnemon.tenants t
         LEFT JOIN LATERAL ({} UNION ALL {} ORDER BY seq LIMIT $3) c ON true
         LEFT JOIN LATERAL (SELECT model, scale, codes FROM mnemon.search s
            WHERE s.tenant = t.num AND s.seq = c.seq AND c.is_current) s ON true
         WHERE t.name = $1 ORDER BY c.seq",
        part("records", true),
        part("history", false),
    );
    // One more than the limit, to see whether there are more.
    let call = call(grant, sql)?.with(bound(after)).with(count(limit + 1));
    let rows = lease.all(call).await?;
    let mut page = StoredPage::default();
    if let Some(row) = rows.first() {
        page.last_seq = number(row, 13)?;
        page.clock = Clock {
            trusted: maybe_time(row, 14)?,
            suspect: maybe_time(row, 15)?,
        };
    }
    let mut filled = Vec::with_capacity(rows.len());
    for row in &rows {
        // A tenant without changes after this number is one row of nothing.
        if row.try_get::<_, Option<i64>>(0)?.is_some() {
            filled.push(row);
        }
    }
    let place = lease.place();
    let changes = filled.into_iter().map(|row| change(place, row, &models));
    page.fill(changes, limit)?;
    Ok(page)
}

fn change(place: &str, row: &Row, models: &HashMap<i64, ModelId>) -> Result<StoredChange, Failure> {
    let doc: Option<&str> = row.try_get(8)?;
    Ok(StoredChange {
        seq: number(row, 0)?,
        id: word(row, 1)?,
        version: number(row, 2)?,
        commit: number(row, 3)?,
        at: time(row, 4)?,
        actor: row.try_get(5)?,
        cause: word::<Cause>(row, 6)?,
        expires: maybe_time(row, 7)?,
        record: doc.map(|doc| record(place, doc)).transpose()?.map(Box::new),
        is_current: row.try_get(9)?,
        vector: vector(row, 10, models)?.map(|vector| vector.coded()),
    })
}

async fn models(lease: &mut Lease) -> Result<HashMap<i64, ModelId>, Failure> {
    let sql = "SELECT num, name, dimension FROM mnemon.models";
    let rows = lease.all(Call::new(sql)).await?;
    let models = rows.iter().map(|row| {
        let model = ModelId {
            name: row.try_get(1)?,
            dimension: usize::try_from(number(row, 2)?).unwrap_or(0),
        };
        Ok((row.try_get(0)?, model))
    });
    models.collect()
}

/// One statement, so that everything comes from one moment.
async fn embedded_after(
    lease: &mut Lease,
    grant: &Grant,
    after: u64,
    limit: usize,
) -> Result<EmbeddedPage, Failure> {
    let models = models(lease).await?;
    let sql = "SELECT e.embedded, e.doc, e.model, e.scale, e.codes, t.embedded
         FROM mnemon.tenants t
         LEFT JOIN LATERAL (
            SELECT s.embedded, r.doc, s.model, s.scale, s.codes FROM mnemon.search s
            JOIN mnemon.records r ON r.tenant = s.tenant AND r.seq = s.seq
            WHERE s.tenant = t.num AND s.embedded > $2 ORDER BY s.embedded LIMIT $3
         ) e ON true
         WHERE t.name = $1 ORDER BY e.embedded";
    // One more than the limit, to see whether there are more.
    let call = call(grant, sql)?.with(bound(after)).with(count(limit + 1));
    let rows = lease.all(call).await?;
    let mut page = EmbeddedPage::default();
    if let Some(row) = rows.first() {
        page.reached = number(row, 5)?;
    }
    page.more = rows.len() > limit;
    for (place, row) in rows.iter().take(limit).enumerate() {
        // A tenant without such records is one row of nothing.
        let Some(doc) = row.try_get::<_, Option<&str>>(1)? else {
            break;
        };
        if page.more && place + 1 == limit {
            page.reached = number(row, 0)?;
        }
        if let Some(vector) = vector(row, 2, &models)? {
            let record = record(lease.place(), doc)?;
            page.records.push((record, vector.coded()));
        }
    }
    Ok(page)
}

async fn stored_receipts(
    lease: &mut Lease,
    grant: &Grant,
    after: &str,
    limit: usize,
) -> Result<Vec<StoredReceipt>, Failure> {
    let sql = format!(
        "SELECT key, digest, at, receipt FROM mnemon.receipts
         WHERE tenant = {OWN} AND key > $2 ORDER BY key LIMIT $3"
    );
    let call = call(grant, sql)?.with(after.to_owned()).with(count(limit));
    let rows = lease.all(call).await?;
    let place = lease.place();
    let receipts = rows.iter().map(|row| {
        let (name, digest) = (row.try_get(0)?, row.try_get(1)?);
        let key = IdempotencyKey { name, digest };
        let receipt = serde_json::from_str(row.try_get(3)?).map_err(|error| {
            let what = format!("the receipt of key `{}` cannot be read: {error}", key.name);
            corrupt(place, what)
        })?;
        let at = time(row, 2)?;
        Ok(StoredReceipt { key, at, receipt })
    });
    receipts.collect()
}

/// The statements that drop past changes and receipts of a copy, as the original has dropped them.
/// The change before each is followed by what followed it, and a record of which no version is
/// left is derived from nothing any more.
pub(super) fn drop_copied(tenant: i64, seqs: &[u64], keys: &[String]) -> Vec<Call> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| bound(*seq)).collect();
    let follow = "UPDATE mnemon.history p SET replaced = d.replaced FROM mnemon.history d
         WHERE d.tenant = $1 AND d.seq = $2 AND p.tenant = $1 AND p.version > 0
            AND p.seq = (SELECT seq FROM mnemon.history
                WHERE tenant = $1 AND id = d.id AND seq < $2 ORDER BY seq DESC LIMIT 1)";
    let followed = seqs.iter();
    let mut calls: Vec<Call> = followed
        .map(|seq| Call::new(follow).with(tenant).with(*seq))
        .collect();
    if !seqs.is_empty() {
        let drop = "WITH gone AS (DELETE FROM mnemon.history WHERE tenant = $1 AND seq = ANY($2)
                RETURNING id, version),
             unlinked AS (DELETE FROM mnemon.links l
                WHERE l.tenant = $1 AND l.derived IN (SELECT id FROM gone)
                AND NOT EXISTS (SELECT 1 FROM mnemon.records WHERE tenant = $1 AND id = l.derived)
                AND NOT EXISTS (SELECT 1 FROM mnemon.history WHERE tenant = $1 AND id = l.derived
                    AND doc IS NOT NULL AND NOT seq = ANY($2)))
             UPDATE mnemon.tenants
             SET history = history - (SELECT count(*) FROM gone WHERE version > 0)
             WHERE num = $1";
        calls.push(Call::new(drop).with(tenant).with(seqs));
    }
    if !keys.is_empty() {
        let sql = "DELETE FROM mnemon.receipts WHERE tenant = $1 AND key = ANY($2)";
        calls.push(Call::new(sql).with(tenant).with(keys.to_vec()));
    }
    calls
}
