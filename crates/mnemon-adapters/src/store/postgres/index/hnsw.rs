//! HNSW indexes of vectors.
//!
//! A tenant gets an HNSW index for each model when it is searched and has too many vectors to compare
//! them all. One index for all tenants would pass by the vectors of others, and miss matches. To add a
//! vector to it takes twenty times as long as to write the record, so writes leave that to a task in the
//! background, which the searches start ([`bring_in`]). The column `indexed` says which vectors are in
//! the index. A search compares the others one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mnemon_core::Tenant;

use super::candidates::COMPARED;
use super::near::{MOST_DIMENSIONS, build_index, is_valid};
use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::{Call, Lease, Pool};
use crate::store::postgres::view::{count, number};

/// HNSW indexes at the most, those of partitions counted: each write looks at all of them.
pub(in crate::store::postgres) const MOST_INDEXES: u64 = 100;
/// The end of their names.
const NEAREST: &str = "nearest_[0-9]+_[0-9]+$";
/// After this time another tenant may have its turn.
const MOST_TIME: Duration = Duration::from_secs(300);
/// Vectors that are marked at once while their index is missing, and while it takes them up: a write
/// that changes one of these records has to wait for them.
const MARKED: usize = 2_000;
const TAKEN_UP: usize = 32;
/// So many times some are taken up before those that are left are counted again.
const LOOK_AFTER: usize = 64;
/// Marks that a crash undoes are made again.
const BEGIN_MARKS: &str = "BEGIN; SET LOCAL synchronous_commit = off";

/// The vectors of one tenant by one model.
#[derive(Debug, Clone)]
pub(super) struct Vectors {
    pub(super) tenant: Tenant,
    pub(super) tenant_number: i64,
    pub(super) model: i64,
    pub(super) dimension: usize,
}

impl Vectors {
    fn index_name(&self) -> String {
        format!("search_nearest_{}_{}", self.model, self.tenant_number)
    }

    fn call(&self, sql: &str) -> Call {
        Call::new(sql).with(self.tenant_number).with(self.model)
    }
}

/// Brings vectors into their index if more than `most` of them are not in it. Builds the index if it is
/// missing, unless there are too many. Searches and writes go on meanwhile. No connection is held
/// between two steps.
pub(super) async fn bring_in(
    pool: Arc<Pool>,
    vectors: &Vectors,
    most: usize,
) -> Result<(), Failure> {
    if vectors.dimension > MOST_DIMENSIONS {
        return Ok(());
    }
    let (began, mut after) = (Instant::now(), 0);
    if !has_index(&pool, vectors).await? {
        if !may_build(&pool).await? {
            return Ok(());
        }
        while let Some(last) = mark(&pool, vectors, after, MARKED).await? {
            after = last;
        }
    }
    build(&pool, vectors).await?;
    let mut left = most;
    while began.elapsed() < MOST_TIME {
        let waiting = waiting(&pool, vectors, left.max(COMPARED)).await?;
        if waiting <= left {
            return Ok(());
        }
        left = 0;
        // Searches miss some of them if they are more than are compared.
        let is_urgent = waiting > COMPARED;
        for _ in 0..LOOK_AFTER {
            let since = Instant::now();
            match mark(&pool, vectors, after, TAKEN_UP).await? {
                Some(last) => after = last,
                None => return Ok(()),
            }
            if !is_urgent {
                // The database has as much time for others.
                tokio::time::sleep(since.elapsed()).await;
            }
        }
    }
    Ok(())
}

async fn has_index(pool: &Pool, vectors: &Vectors) -> Result<bool, Failure> {
    let sql = "SELECT to_regclass('mnemon.' || $1) IS NOT NULL";
    let call = Call::new(sql).with(vectors.index_name());
    Ok(pool.take().await?.one(call).await?.try_get(0)?)
}

/// Whether there may be one more index, and our user may build it.
async fn may_build(pool: &Pool) -> Result<bool, Failure> {
    let sql = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class
         WHERE oid = 'mnemon.search'::regclass";
    let mut lease = pool.take().await?;
    let is_owner: bool = lease.one(Call::new(sql)).await?.try_get(0)?;
    Ok(is_owner && indexes(&mut lease).await? < MOST_INDEXES)
}

/// How many HNSW indexes there are.
pub(in crate::store::postgres) async fn indexes(lease: &mut Lease) -> Result<u64, Failure> {
    let sql = "SELECT count(*) FROM pg_class
         WHERE relnamespace = 'mnemon'::regnamespace AND relkind = 'i' AND relname ~ $1";
    let call = Call::new(sql).with(NEAREST.to_owned());
    number(&lease.one(call).await?, 0)
}

/// How many vectors are not in the index; of more than `most` one more.
async fn waiting(pool: &Pool, vectors: &Vectors, most: usize) -> Result<usize, Failure> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM mnemon.search s
         WHERE s.tenant = $1 AND s.model = $2 AND NOT s.indexed LIMIT $3) waiting";
    let call = vectors.call(sql).with(count(most + 1));
    let mut lease = pool.take().await?;
    lease.keep_to(&vectors.tenant);
    let waiting = number(&lease.one(call).await?, 0)?;
    Ok(usize::try_from(waiting).unwrap_or(usize::MAX))
}

/// Marks up to so many vectors as those of the index, which takes them up if it is there: of records
/// whose number is larger than `after`, as entries of those before are not read again. Returns the
/// last of the numbers; `None` after the last vector. The oldest come first, as searches compare the
/// newest of those that wait.
async fn mark(
    pool: &Pool,
    vectors: &Vectors,
    after: i64,
    most: usize,
) -> Result<Option<i64>, Failure> {
    let sql = "UPDATE mnemon.search s SET indexed = true
         WHERE s.tenant = $1 AND s.seq = ANY(ARRAY(SELECT w.seq FROM mnemon.search w
            WHERE w.tenant = $1 AND w.model = $2 AND NOT w.indexed AND w.seq > $3
                AND w.near IS NOT NULL
            ORDER BY w.seq LIMIT $4 FOR UPDATE SKIP LOCKED)) RETURNING s.seq";
    let calls = [vectors.call(sql).with(after).with(count(most))];
    let mut lease = pool.take().await?;
    lease.keep_to(&vectors.tenant);
    let marked = lease.pipeline(Some(BEGIN_MARKS), &calls, Some("COMMIT"));
    let mut last = None;
    for row in marked.await?.iter().flatten() {
        last = last.max(Some(row.try_get(0)?));
    }
    Ok(last)
}

/// Builds the index, unless it is complete or another server is at it.
async fn build(pool: &Pool, vectors: &Vectors) -> Result<(), Failure> {
    let Vectors {
        tenant_number: tenant,
        model,
        dimension,
        ..
    } = vectors;
    let name = vectors.index_name();
    let mut lease = pool.take().await?;
    if is_valid(&mut lease, &name).await? {
        return Ok(());
    }
    // Sums, so that statements can keep the planner from other indexes.
    let columns = format!(
        "USING hnsw ((near::halfvec({dimension})) halfvec_cosine_ops)
         WHERE tenant + 0 = {tenant} AND model + 0 = {model} AND indexed"
    );
    build_index(lease, &name, &columns).await
}
