//! Vectors in pgvector: a column of half-precision vectors.
//!
//! The column is there if the server has the extension. Records may be older than the column, or come
//! from a server that does not know it yet: an index lists vectors that are not in the column, upkeep
//! fills them in, and until then their tenant is searched as without pgvector.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use mnemon_core::vector::Quantised;
use mnemon_core::{Grant, limits};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::{Call, Lease, PATIENCE, Pool};
use crate::store::postgres::reads::{OWN, call};
use crate::store::postgres::schema::MIGRATION_LOCK;
use crate::store::postgres::view::{count, number};

/// Keeps servers from building indexes at once: those of one table are built one after the other.
const INDEX_LOCK: i64 = MIGRATION_LOCK + 0x1_0000_0000;

/// The oldest version that goes on searching where a filter leaves too few matches.
const OLDEST: (u32, u32) = (0, 8);
/// The index of the records whose vector is not in the column.
const UNFILLED: &str = "search_unfilled";
/// Its columns and its condition.
const UNFILLED_COLUMNS: &str = "(tenant, seq) WHERE near IS NULL AND model IS NOT NULL";
/// The index of the vectors that are not in the HNSW index of their tenant.
const UNINDEXED: &str = "search_unindexed";
const UNINDEXED_COLUMNS: &str = "(tenant, model, seq) WHERE NOT indexed AND model IS NOT NULL";
/// HNSW indexes of all tenants, as version 3 made them: they make every write slow. Servers of that
/// version that still run build them again.
const OLD_INDEXES: &str = "FROM pg_class c JOIN pg_am a ON a.oid = c.relam
    WHERE c.relnamespace = 'mnemon'::regnamespace AND a.amname = 'hnsw'
        AND c.relname ~ 'near_[0-9]+$' AND NOT c.relispartition";
/// How long a start waits until another server has built it, and how often it looks.
const MOST_WAIT: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Dimensions that an index of half-precision vectors may have.
pub(in crate::store::postgres) const MOST_DIMENSIONS: usize = 4000;

/// The statement that inserts what records are found by. As columns of a select the lists are read
/// row by row; in a FROM clause each would first be copied into a table (10 % slower).
pub(in crate::store::postgres) fn insert(with_near: bool) -> String {
    let (column, value, list) = match with_near {
        true => (", near", ", n.near", ", unnest($18::halfvec[]) AS near"),
        false => ("", "", ""),
    };
    format!(
        "INSERT INTO mnemon.search (tenant, seq, terms, speaker, tags, model, scale, codes, created,
            expires, audience, conversation, draw, named, words{column})
         SELECT $1, n.seq, n.terms, n.speaker, n.tags, n.model, n.scale, n.codes, n.created,
            n.expires, n.audience, n.conversation, n.draw, n.named,
            ($15::integer[])[n.first_word:n.last_word]{value}
         FROM (SELECT unnest($2::bigint[]) AS seq, unnest($3::bytea[]) AS terms,
            unnest($4::text[]) AS speaker, unnest($5::text[]) AS tags, unnest($6::bigint[]) AS model,
            unnest($7::real[]) AS scale, unnest($8::bytea[]) AS codes,
            unnest($9::bigint[]) AS created, unnest($10::bigint[]) AS expires,
            unnest($11::text[]) AS audience, unnest($12::bigint[]) AS conversation,
            unnest($13::integer[]) AS draw, unnest($14::text[]) AS named,
            unnest($16::integer[]) AS first_word, unnest($17::integer[]) AS last_word{list}) n"
    )
}

/// A vector in the binary form of pgvector, which costs both sides less than text. The codes have its
/// direction, and cosines depend on nothing else.
#[derive(Debug)]
pub(in crate::store::postgres) struct HalfVector(Vec<u8>);

impl From<&Quantised> for HalfVector {
    /// The number of dimensions, two bytes that are not used, and the elements; big-endian.
    fn from(vector: &Quantised) -> Self {
        let dimension = u16::try_from(vector.codes.len()).unwrap_or(u16::MAX);
        let mut bytes = Vec::with_capacity(4 + 2 * vector.codes.len());
        bytes.extend(dimension.to_be_bytes());
        bytes.extend([0, 0]);
        let halves = vector.codes.iter().map(|code| half(*code));
        bytes.extend(halves.flat_map(u16::to_be_bytes));
        Self(bytes)
    }
}

/// A code as a number of half precision, which holds it exactly.
fn half(code: i8) -> u16 {
    let size = u16::from(code.unsigned_abs());
    let Some(exponent) = size.checked_ilog2() else {
        return 0;
    };
    let sign = if code < 0 { 0x8000 } else { 0 };
    let exponent = u16::try_from(exponent).unwrap_or(0);
    // The highest bit is not stored.
    let fraction = (size << (10 - exponent)) & 0x3ff;
    sign | (exponent + 15) << 10 | fraction
}

impl ToSql for HalfVector {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(wanted: &Type) -> bool {
        wanted.name() == "halfvec"
    }

    to_sql_checked!();
}

/// What the server has of pgvector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::postgres) enum Pgvector {
    /// The extension is in the database, of this version.
    Installed(String),
    /// It can be installed.
    Available(String),
    Missing,
}

pub(in crate::store::postgres) async fn look(lease: &mut Lease) -> Result<Pgvector, Failure> {
    let sql = "SELECT installed_version, default_version FROM pg_available_extensions
         WHERE name = 'vector'";
    let rows = lease.all(Call::new(sql)).await?;
    let Some(row) = rows.first() else {
        return Ok(Pgvector::Missing);
    };
    Ok(match row.try_get::<_, Option<String>>(0)? {
        Some(version) => Pgvector::Installed(version),
        None => Pgvector::Available(row.try_get::<_, Option<String>>(1)?.unwrap_or_default()),
    })
}

/// Whether the table has the column for vectors.
pub(in crate::store::postgres) async fn has_column(lease: &mut Lease) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'mnemon' AND c.relname = 'search' AND a.attname = 'near'
            AND NOT a.attisdropped";
    Ok(!lease.all(Call::new(sql)).await?.is_empty())
}

pub(in crate::store::postgres) fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST
}

/// Whether the table has the column, and the complete indexes of the vectors that are not in it and of
/// those that are in no HNSW index.
pub(in crate::store::postgres) async fn is_ready(lease: &mut Lease) -> Result<bool, Failure> {
    Ok(has_column(lease).await?
        && is_valid(lease, UNFILLED).await?
        && is_valid(lease, UNINDEXED).await?)
}

/// Makes the column and the index of the records that lack it, where the server has pgvector.
/// Failing to do so is not an error: the store works without them.
pub(in crate::store::postgres) async fn prepare(pool: &Pool) -> Result<(), Failure> {
    let mut lease = pool.take().await?;
    drop_old(&mut lease).await?;
    if is_ready(&mut lease).await? {
        pool.set_near(true);
        return Ok(());
    }
    let version = match look(&mut lease).await? {
        Pgvector::Installed(version) | Pgvector::Available(version) => version,
        Pgvector::Missing => return Ok(()),
    };
    if !pool.address().pgvector || !is_new_enough(&version) {
        return Ok(());
    }
    drop(lease);
    match make(pool).await {
        Err(failure) if failure.is_lost() => Err(failure),
        _ => {
            let mut lease = pool.take().await?;
            pool.set_near(is_ready(&mut lease).await?);
            Ok(())
        }
    }
}

/// Drops the indexes of version 3. A user who does not own them leaves them.
async fn drop_old(lease: &mut Lease) -> Result<(), Failure> {
    let there = Call::new(format!("SELECT c.relname::text {OLD_INDEXES}"));
    for index in lease.all(there).await? {
        let name: &str = index.try_get(0)?;
        match lease.batch(&format!("DROP INDEX mnemon.{name}")).await {
            Err(failure) if failure.is_lost() => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the column at once. The indexes take a while where there are records, and are built while
/// others write; another server that starts meanwhile waits for it.
async fn make(pool: &Pool) -> Result<(), Failure> {
    let mut lease = pool.take().await?;
    // The table never had a record. Its size says so, as row-level security hides records here.
    lease
        .batch(&format!(
            "DO $$ BEGIN
                PERFORM pg_advisory_xact_lock({MIGRATION_LOCK});
                CREATE EXTENSION IF NOT EXISTS vector;
                ALTER TABLE mnemon.search ADD COLUMN IF NOT EXISTS near halfvec;
                IF pg_relation_size('mnemon.search') + coalesce((SELECT sum(pg_relation_size(relid))
                    FROM pg_partition_tree('mnemon.search')), 0) = 0 THEN
                    CREATE INDEX IF NOT EXISTS {UNFILLED} ON mnemon.search {UNFILLED_COLUMNS};
                    CREATE INDEX IF NOT EXISTS {UNINDEXED} ON mnemon.search {UNINDEXED_COLUMNS};
                END IF;
             END $$"
        ))
        .await?;
    let since = Instant::now();
    while !is_ready(&mut lease).await? && since.elapsed() < MOST_WAIT {
        for (name, columns) in [(UNFILLED, UNFILLED_COLUMNS), (UNINDEXED, UNINDEXED_COLUMNS)] {
            build_index(pool.take().await?, name, columns).await?;
        }
        // A statement that waits for the other server would hold up its build.
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Whether vectors of the tenant are not in the column.
pub(super) fn is_lacking(grant: &Grant) -> Result<Call, Failure> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM mnemon.search s
            WHERE s.tenant = {OWN} AND s.near IS NULL AND s.model IS NOT NULL)"
    );
    call(grant, sql)
}

/// The same by the tenant's number, where it is locked.
pub(in crate::store::postgres) fn is_lacking_of(tenant: i64) -> Call {
    let sql = "SELECT EXISTS (SELECT 1 FROM mnemon.search s
            WHERE s.tenant = $1 AND s.near IS NULL AND s.model IS NOT NULL)";
    Call::new(sql).with(tenant)
}

/// Copies up to `most` vectors of a locked tenant into the column. Returns how many.
pub(in crate::store::postgres) async fn fill(
    lease: &mut Lease,
    tenant: i64,
    most: usize,
) -> Result<usize, Failure> {
    let lacking = "SELECT s.seq, s.scale, s.codes,
            (SELECT m.dimension FROM mnemon.models m WHERE m.num = s.model)
         FROM mnemon.search s
         WHERE s.tenant = $1 AND s.near IS NULL AND s.model IS NOT NULL ORDER BY s.seq LIMIT $2";
    let fill = "UPDATE mnemon.search s SET near = v.near
         FROM unnest($2::bigint[], $3::halfvec[]) AS v(seq, near)
         WHERE s.tenant = $1 AND s.seq = v.seq";
    let mut filled = 0;
    while filled < most {
        let page = (most - filled).min(limits::PAGE);
        let call = Call::new(lacking).with(tenant).with(count(page));
        let rows = lease.all(call).await?;
        let (mut seqs, mut vectors) = (Vec::new(), Vec::new());
        for row in &rows {
            let (scale, codes): (f32, &[u8]) = (row.try_get(1)?, row.try_get(2)?);
            let dimension = usize::try_from(number(row, 3)?).unwrap_or(0);
            seqs.push(row.try_get::<_, i64>(0)?);
            let vector = Quantised::from_bytes(codes, dimension, scale);
            vectors.push(HalfVector::from(&vector));
        }
        let call = Call::new(fill).with(tenant);
        lease.all(call.with(seqs).with(vectors)).await?;
        filled += rows.len();
        if rows.len() < page {
            break;
        }
    }
    Ok(filled)
}

pub(super) async fn is_valid(lease: &mut Lease, index: &str) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM pg_index WHERE indisvalid
         AND indexrelid = to_regclass('mnemon.' || $1)";
    let call = Call::new(sql).with(index.to_owned());
    Ok(!lease.all(call).await?.is_empty())
}

/// Builds an index of the table, unless another server builds one.
pub(super) async fn build_index(
    mut lease: Lease,
    name: &str,
    columns: &str,
) -> Result<(), Failure> {
    let call = Call::new("SELECT pg_try_advisory_lock($1)").with(INDEX_LOCK);
    if !lease.one(call).await?.try_get::<_, bool>(0)? {
        return Ok(());
    }
    // The settings of this connection would end it; a connection in a transaction is closed after
    // its call, which also frees the lock.
    lease.never_return();
    lease
        .batch("SET statement_timeout = 0; SET lock_timeout = 0")
        .await?;
    let partitions =
        "SELECT relid::regclass::text, c.relname::text FROM pg_partition_tree('mnemon.search') t
         JOIN pg_class c ON c.oid = t.relid WHERE isleaf";
    let partitions = lease.all(Call::new(partitions)).await?;
    if partitions.is_empty() {
        return build_one(&mut lease, "mnemon.search", name, columns).await;
    }
    // The index of a partitioned table is not built concurrently, but those of its parts are.
    for part in &partitions {
        let (table, part): (&str, &str) = (part.try_get(0)?, part.try_get(1)?);
        let suffix = name.strip_prefix("search_").unwrap_or(name);
        build_one(&mut lease, table, &format!("{part}_{suffix}"), columns).await?;
    }
    // Writes wait for this statement, so it must not wait long itself.
    lease
        .batch(&format!(
            "SET lock_timeout = {wait};
             CREATE INDEX IF NOT EXISTS {name} ON mnemon.search {columns}",
            wait = PATIENCE.as_millis()
        ))
        .await
}

async fn build_one(
    lease: &mut Lease,
    table: &str,
    name: &str,
    columns: &str,
) -> Result<(), Failure> {
    // One that was not completed is of no use, and would be kept.
    let invalid = Call::new(
        "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'mnemon' AND c.relname = $1 AND NOT i.indisvalid",
    );
    if !lease.all(invalid.with(name.to_owned())).await?.is_empty() {
        lease
            .batch(&format!("DROP INDEX CONCURRENTLY IF EXISTS mnemon.{name}"))
            .await?;
    }
    lease
        .batch(&format!(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} {columns}"
        ))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_exact_in_half_precision() {
        for code in i8::MIN..=i8::MAX {
            let bits = half(code);
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
            let size = match exponent {
                0 => fraction,
                _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
            };
            let value = if bits >> 15 == 1 { -size } else { size };
            assert!((value - f64::from(code)).abs() < f64::EPSILON, "{code}");
        }
    }
}
