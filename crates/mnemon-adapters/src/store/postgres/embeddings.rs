//! Vectors that records are given after they were written, and records that lack one.

use std::collections::BTreeMap;

use mnemon_core::embed::ModelId;
use mnemon_core::index::StoredVector;
use mnemon_core::{Grant, Record, Right, StoreError};

use super::apply::Models;
use super::errors::Failure;
use super::index::near::HalfVector;
use super::pool::{Call, Lease};
use super::reads::{OWN, records};
use super::view::{Locked, bound, count};

/// The number of a model, which gets one with its first vector.
pub(super) async fn add_model(lease: &mut Lease, model: &ModelId) -> Result<i64, Failure> {
    let of = |sql: &str| {
        let call = Call::new(sql).with(model.name.clone());
        call.with(count(model.dimension))
    };
    let calls = [
        of(
            "INSERT INTO mnemon.models (name, dimension) SELECT $1, $2 WHERE NOT EXISTS
                (SELECT 1 FROM mnemon.models WHERE name = $1 AND dimension = $2)
             ON CONFLICT DO NOTHING",
        ),
        of("SELECT num FROM mnemon.models WHERE name = $1 AND dimension = $2"),
    ];
    let answers = lease.pipeline(None, &calls, None).await?;
    let number = answers.last().and_then(|rows| rows.first());
    let lost = || StoreError::Internal("a model was lost".to_owned());
    Ok(number.ok_or_else(lost)?.try_get(0)?)
}

/// Gives records vectors, each under a number by which indexes that follow find it; a record that
/// has been changed since is left out.
pub(super) async fn embed(
    lease: &mut Lease,
    tenant: i64,
    vectors: &[(u64, StoredVector)],
    models: &Models,
    with_near: bool,
) -> Result<usize, Failure> {
    let locked = Locked::begin(lease, tenant).await?;
    // Of two vectors for one record the last one counts.
    let latest: BTreeMap<u64, &StoredVector> =
        vectors.iter().map(|(seq, vector)| (*seq, vector)).collect();
    let (mut seqs, mut numbers) = (Vec::new(), Vec::new());
    let (mut scales, mut codes, mut nears) = (Vec::new(), Vec::new(), Vec::new());
    for (seq, vector) in latest {
        seqs.push(bound(seq));
        numbers.push(models.get(&vector.model).copied());
        scales.push(vector.vector.scale);
        codes.push(vector.vector.to_bytes());
        nears.push(HalfVector::from(&vector.vector));
    }
    let (column, list, set_near) = match with_near {
        true => (", near", ", $7::halfvec[]", ", near = new.near"),
        false => ("", "", ""),
    };
    let sql = format!(
        "WITH new AS (
            SELECT v.*, row_number() OVER (ORDER BY v.seq) AS place
            FROM unnest($3::bigint[], $4::bigint[], $5::real[], $6::bytea[]{list})
                AS v(seq, model, scale, codes{column})
            JOIN mnemon.records r ON r.tenant = $1 AND r.seq = v.seq
        )
        UPDATE mnemon.search s SET model = new.model, scale = new.scale, codes = new.codes,
            indexed = false, embedded = $2 + new.place{set_near}
        FROM new WHERE s.tenant = $1 AND s.seq = new.seq RETURNING 1"
    );
    let mut update = Call::new(sql)
        .with(tenant)
        .with(locked.embedded)
        .with(seqs)
        .with(numbers)
        .with(scales)
        .with(codes);
    if with_near {
        update.add(nears);
    }
    let taken = lease.all(update).await?.len();
    let sql = "UPDATE mnemon.tenants SET embedded = embedded + $2 WHERE num = $1";
    let number = Call::new(sql).with(tenant).with(count(taken));
    lease.pipeline(None, &[number], Some("COMMIT")).await?;
    Ok(taken)
}

/// Live records without a vector of this model: those without any, and those of other models. Where
/// no record lacks a vector, none is read.
pub(super) async fn lacking(
    lease: &mut Lease,
    grant: &Grant,
    model: &ModelId,
    after: u64,
    limit: usize,
) -> Result<Vec<Record>, Failure> {
    grant.require(Right::Read).map_err(StoreError::from)?;
    let live = format!(
        "JOIN mnemon.records r ON r.tenant = s.tenant AND r.seq = s.seq
             AND (r.expires IS NULL OR r.expires >= $2)
         WHERE s.tenant = {OWN} AND s.seq > $3"
    );
    let sql = format!(
        "SELECT doc FROM (
            (SELECT r.seq, r.doc FROM mnemon.search s {live} AND s.model IS NULL
                ORDER BY s.seq LIMIT $4)
            UNION ALL
            (SELECT o.seq, o.doc FROM mnemon.models m, LATERAL (
                SELECT r.seq, r.doc FROM mnemon.search s {live} AND s.model = m.num
                    ORDER BY s.seq LIMIT $4) o
                WHERE NOT (m.name = $5 AND m.dimension = $6))
         ) x ORDER BY x.seq LIMIT $4"
    );
    let call = Call::about(grant.tenant(), sql)
        .with(grant.now().millis())
        .with(bound(after))
        .with(count(limit.min(grant.limits().page)))
        .with(model.name.clone())
        .with(count(model.dimension));
    let rows = lease.all(call).await?;
    records(lease.place(), &rows)
}
