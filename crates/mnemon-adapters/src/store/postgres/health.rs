//! Looks at a database without using it.

use mnemon_core::StoreError;

use super::errors::Failure;
use super::index::INDEXED_PER_EXACT;
use super::index::hnsw;
use super::index::near::{self, Pgvector};
use super::pool::{Call, Lease};
use super::row_security::RowSecurity;
use super::schema;
use super::url::Address;
use super::view::count;
use crate::health::Finding;

/// Without pgvector, for tenants whose index is not in memory.
const SLOWER: &str = "of tenants that are searched in the database, the vectors of the newest \
    20000 records are compared one by one";

/// Checks the connection, the version of the tables and the counts.
pub(super) async fn examine(lease: &mut Lease, address: &Address) -> Result<Vec<Finding>, Failure> {
    let server = lease.one(Call::new("SHOW server_version")).await?;
    let mut findings = vec![Finding::good(
        "connection",
        format!("PostgreSQL {}", server.try_get::<_, &str>(0)?),
    )];
    let found = match schema::check(lease).await {
        Ok(found) => found,
        Err(Failure::Store(error @ (StoreError::TooNew { .. } | StoreError::Foreign { .. }))) => {
            findings.push(Finding::bad("format", error.to_string()));
            return Ok(findings);
        }
        Err(failure) => return Err(failure),
    };
    if found == 0 {
        let detail = "the database is still without our tables; the first use makes them";
        findings.push(Finding::good("format", detail));
        return Ok(findings);
    }
    findings.push(match found == schema::current() {
        true => Finding::good("format", format!("version {found}")),
        false => Finding::good(
            "format",
            format!(
                "version {found}; the next use migrates it to {}",
                schema::current()
            ),
        ),
    });
    findings.push(match RowSecurity::of(lease).await?.is_active {
        true => Finding::good(
            "integrity",
            "not checked: row-level security hides the rows",
        ),
        false => counts(lease).await?,
    });
    if found == schema::current() {
        findings.push(vectors(lease, address).await?);
    }
    Ok(findings)
}

/// How the index in the database finds vectors.
async fn vectors(lease: &mut Lease, address: &Address) -> Result<Finding, Failure> {
    let detail = match (near::is_ready(lease).await?, near::look(lease).await?) {
        (true, Pgvector::Installed(version)) => match unfilled(lease).await? {
            0 => match unindexed(lease, address).await? {
                0 => format!("pgvector {version}"),
                lacking if hnsw::indexes(lease).await? >= hnsw::MOST_INDEXES => format!(
                    "pgvector {version}, but {lacking} vectors are in no index, as there are {most} \
                     already. They are compared one by one, the newest 20000 if a tenant has more; \
                     drop an index `mnemon.search_nearest_MODEL_TENANT` that is not needed",
                    most = hnsw::MOST_INDEXES
                ),
                lacking => format!(
                    "pgvector {version}, but {lacking} vectors are not in their index yet; a search \
                     of their tenant adds them, and the log of the database says why if that \
                     fails. Until then they are compared one by one, the newest 20000 if a tenant \
                     has more"
                ),
            },
            waiting => format!(
                "pgvector {version}, but {waiting} vectors are not in its column; `mnemon upkeep` \
                 adds them, and until then {SLOWER}"
            ),
        },
        (_, Pgvector::Missing) => format!(
            "the server lacks pgvector, so {SLOWER}; install it there, and the next start of \
             Mnemon uses it"
        ),
        (_, Pgvector::Installed(version) | Pgvector::Available(version))
            if !near::is_new_enough(&version) =>
        {
            format!("pgvector {version} is older than 0.8, so {SLOWER}; update the extension")
        }
        _ => format!(
            "the tables do not use pgvector, so {SLOWER}; start Mnemon once without `pgvector=off`, \
             as a user who owns the tables and may create extensions"
        ),
    };
    Ok(Finding::good("vectors", detail))
}

/// Vectors that are not in the column for pgvector; 0 where row-level security hides the rows.
async fn unfilled(lease: &mut Lease) -> Result<i64, Failure> {
    if RowSecurity::of(lease).await?.is_active {
        return Ok(0);
    }
    let sql = "SELECT count(*) FROM mnemon.search WHERE near IS NULL AND model IS NOT NULL";
    Ok(lease.one(Call::new(sql)).await?.try_get(0)?)
}

/// Vectors that are not in their index, of tenants that are searched in the database and have more of
/// them than searches leave there; 0 where row-level security hides the rows.
async fn unindexed(lease: &mut Lease, address: &Address) -> Result<i64, Failure> {
    if RowSecurity::of(lease).await?.is_active {
        return Ok(0);
    }
    let sql = "SELECT coalesce(sum(count), 0)::bigint FROM (
            SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_index WHERE indisvalid AND indexrelid =
                    to_regclass('mnemon.search_nearest_' || m.num || '_' || s.tenant))
                THEN count(*) FILTER (WHERE NOT s.indexed) ELSE count(*) END AS count
            FROM mnemon.search s JOIN mnemon.models m ON m.num = s.model
            WHERE m.dimension <= $2
            GROUP BY s.tenant, m.num HAVING count(*) > $1) lacking WHERE count > $3";
    let (exact, fitting) = (address.index_exact, address.records_in_memory());
    let call = Call::new(sql)
        .with(count(fitting.max(INDEXED_PER_EXACT * exact)))
        .with(count(near::MOST_DIMENSIONS))
        .with(count(exact));
    Ok(lease.one(call).await?.try_get(0)?)
}

/// Whether the counts that are kept are those of the rows, and every record can be found.
async fn counts(lease: &mut Lease) -> Result<Finding, Failure> {
    let sql = "SELECT
        (SELECT count(*) FROM mnemon.tenants t WHERE
            t.records <> (SELECT count(*) FROM mnemon.records r WHERE r.tenant = t.num)
            OR t.records <> (SELECT coalesce(sum(count), 0) FROM mnemon.tally g WHERE g.tenant = t.num)
            OR t.history <> (SELECT count(*) FROM mnemon.history h
                WHERE h.tenant = t.num AND h.version > 0)),
        (SELECT count(*) FROM mnemon.records r LEFT JOIN mnemon.search s USING (tenant, seq)
            WHERE s.seq IS NULL),
        (SELECT count(*) FROM mnemon.records)";
    let row = lease.one(Call::new(sql)).await?;
    let (wrong, lost): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let records: i64 = row.try_get(2)?;
    Ok(match (wrong, lost) {
        (0, 0) => Finding::good("integrity", format!("{records} records, all counts agree")),
        (0, lost) => Finding::bad("integrity", format!("{lost} records have no search terms")),
        (wrong, _) => Finding::bad(
            "integrity",
            format!("the counts of {wrong} tenants differ from their rows"),
        ),
    })
}
