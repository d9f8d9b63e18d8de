//! Vectors in pgvector: a column of half-precision vectors, and an HNSW index for each model.
//!
//! The column is there if the server has the extension. The index of a model is built when a
//! tenant is searched that has too many vectors to compare them all, as it makes writes slower.

use std::sync::Arc;

use mnemon_core::vector::Quantised;

use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::{Call, Lease, Pool};
use crate::store::postgres::schema::MIGRATION_LOCK;

/// The oldest version that goes on searching where a filter leaves too few matches.
const OLDEST: (u32, u32) = (0, 8);
/// Dimensions that an index of half-precision vectors may have.
const MOST_DIMENSIONS: usize = 4000;

/// The statement that inserts what records are found by.
pub(in crate::store::postgres) fn insert(with_near: bool) -> String {
    let (column, value, list) = match with_near {
        true => (", near", ", n.near::halfvec", ", $16::text[]"),
        false => ("", "", ""),
    };
    format!(
        "INSERT INTO mnemon.search (tenant, seq, terms, speaker, tags, model, scale, codes, created,
            expires, audience, conversation, draw, named, words{column})
         SELECT $1, n.seq, n.terms, n.speaker, n.tags, n.model, n.scale, n.codes, n.created,
            n.expires, n.audience, n.conversation, n.draw, n.named, n.words::integer[]{value}
         FROM unnest($2::bigint[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::real[],
            $8::bytea[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::integer[],
            $14::text[], $15::text[]{list})
            AS n(seq, terms, speaker, tags, model, scale, codes, created, expires, audience,
                conversation, draw, named, words{column})"
    )
}

/// A vector as pgvector reads it. The codes have its direction, and cosines depend on nothing else.
pub(in crate::store::postgres) fn text(vector: &Quantised) -> String {
    let codes: Vec<String> = vector.codes.iter().map(ToString::to_string).collect();
    format!("[{}]", codes.join(","))
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

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST
}

/// Makes the column where the server has pgvector. Failing to do so is not an error: the store
/// works without it. Only a table that never had a record gets the column, so that no record lacks
/// it. Its size says so, as row-level security hides records here.
pub(in crate::store::postgres) async fn prepare(pool: &Pool) -> Result<(), Failure> {
    let mut lease = pool.take().await?;
    if has_column(&mut lease).await? {
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
    let made = lease
        .batch(&format!(
            "DO $$ BEGIN
                PERFORM pg_advisory_xact_lock({MIGRATION_LOCK});
                IF pg_relation_size('mnemon.search') + coalesce((SELECT sum(pg_relation_size(relid))
                    FROM pg_partition_tree('mnemon.search')), 0) = 0 THEN
                    CREATE EXTENSION IF NOT EXISTS vector;
                    ALTER TABLE mnemon.search ADD COLUMN IF NOT EXISTS near halfvec;
                END IF;
             END $$"
        ))
        .await;
    match made {
        Err(failure) if failure.is_lost() => Err(failure),
        _ => {
            pool.set_near(has_column(&mut lease).await?);
            Ok(())
        }
    }
}

/// The name of the index for the vectors of a model.
pub(super) fn index_name(model: i64) -> String {
    format!("search_near_{model}")
}

/// Builds the index of a model, unless another server is at it. Searches go on meanwhile.
pub(super) async fn build(pool: Arc<Pool>, model: i64, dimension: usize) -> Result<(), Failure> {
    if dimension > MOST_DIMENSIONS {
        return Ok(());
    }
    let mut lease = pool.take().await?;
    let lock = MIGRATION_LOCK.wrapping_add(model);
    let call = Call::new("SELECT pg_try_advisory_lock($1)").with(lock);
    if !lease.one(call).await?.try_get::<_, bool>(0)? {
        return Ok(());
    }
    let name = index_name(model);
    // The settings of this connection would end it; a connection in a transaction is closed after
    // its call, which also frees the lock.
    lease.never_return();
    lease.batch("SET statement_timeout = 0").await?;
    let columns = format!(
        "USING hnsw ((near::halfvec({dimension})) halfvec_cosine_ops) WHERE model = {model}"
    );
    let partitions =
        "SELECT relid::regclass::text, c.relname::text FROM pg_partition_tree('mnemon.search') t
         JOIN pg_class c ON c.oid = t.relid WHERE isleaf";
    let partitions = lease.all(Call::new(partitions)).await?;
    if partitions.is_empty() {
        return build_one(&mut lease, "mnemon.search", &name, &columns).await;
    }
    // The index of a partitioned table is not built concurrently, but those of its parts are.
    for part in &partitions {
        let (table, part): (&str, &str) = (part.try_get(0)?, part.try_get(1)?);
        build_one(&mut lease, table, &format!("{part}_near_{model}"), &columns).await?;
    }
    lease
        .batch(&format!(
            "CREATE INDEX IF NOT EXISTS {name} ON mnemon.search {columns}"
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
