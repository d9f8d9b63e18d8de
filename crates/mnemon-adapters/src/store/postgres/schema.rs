//! The tables, and how an older database becomes the current one.

use std::sync::atomic::Ordering;

use mnemon_core::StoreError;
use tokio_postgres::error::SqlState;

use super::errors::Failure;
use super::pool::{Call, Lease, Pool};
use super::row_security::{self, RowSecurity};
use crate::store::foreign;

/// Each step leads from one version to the next; the last one is current. A step is never edited
/// once it was released.
pub(super) const MIGRATIONS: &[&str] = &[V1, V2, V3, V4];

/// The current version.
pub(super) fn current() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Keeps servers that start together from migrating at once: `MNEM` and the version of this lock.
pub(super) const MIGRATION_LOCK: i64 = 0x4d4e_454d_0000_0001;
/// How often a migration is tried again after a deadlock with servers that use the tables.
const TRIES: usize = 5;

/// Names and ids are compared byte by byte on every store, hence `COLLATE "C"`. A record's row is
/// found by its tenant and its change number, so tables can be partitioned by tenant.
const V1: &str = r#"
CREATE TABLE mnemon.tenants (
    num           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE,
    -- The number of the newest change, of the newest vector that came after its record, and of the
    -- newest removal: what the indexes in the servers follow.
    last_seq      bigint NOT NULL DEFAULT 0,
    embedded      bigint NOT NULL DEFAULT 0,
    removed       bigint NOT NULL DEFAULT 0,
    records       bigint NOT NULL DEFAULT 0,
    history       bigint NOT NULL DEFAULT 0,
    clock_trusted bigint,
    clock_suspect bigint
) WITH (fillfactor = 50);
-- The current version of every record. doc is the canonical JSON as text: jsonb would change
-- numbers and refuse \u0000.
CREATE TABLE mnemon.records (
    tenant     bigint NOT NULL,
    seq        bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    commit_seq bigint NOT NULL,
    at         bigint NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    cause      text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    user_id    text COLLATE "C",
    agent_id   text COLLATE "C",
    session_id text COLLATE "C",
    audience   text COLLATE "C",
    importance double precision NOT NULL,
    created    bigint NOT NULL,
    expires    bigint,
    doc        text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE UNIQUE INDEX records_id ON mnemon.records (tenant, id);
CREATE INDEX records_created ON mnemon.records (tenant, created, seq);
CREATE INDEX records_user ON mnemon.records (tenant, user_id, created, seq)
    WHERE user_id IS NOT NULL;
CREATE INDEX records_session ON mnemon.records (tenant, session_id, created, seq)
    WHERE session_id IS NOT NULL;
CREATE INDEX records_expires ON mnemon.records (tenant, expires, id) WHERE expires IS NOT NULL;
CREATE INDEX records_worth ON mnemon.records (tenant, namespace, importance, created, seq)
    WHERE kind = 'note';
-- What a record is found by: its analysed terms, its speaker, its tags (a line each), and its
-- vector as codes times a scale. embedded numbers vectors that came after their record.
-- The index inside the database uses the last columns: the audience ('' for everyone), the session
-- of that audience and the times, a random number for samples, the first word of the speaker's
-- name, and the keys of the terms. With pgvector there is a column near besides.
CREATE TABLE mnemon.search (
    tenant   bigint NOT NULL,
    seq      bigint NOT NULL,
    terms    bytea NOT NULL,
    speaker  text COLLATE "C",
    tags     text COLLATE "C",
    model    bigint,
    scale    real,
    codes    bytea,
    embedded bigint,
    audience     text COLLATE "C" NOT NULL,
    conversation bigint,
    created      bigint NOT NULL,
    expires      bigint,
    draw         integer NOT NULL,
    named        text COLLATE "C",
    words        integer[] NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX search_embedded ON mnemon.search (tenant, embedded) WHERE embedded IS NOT NULL;
CREATE INDEX search_model ON mnemon.search (tenant, model, seq);
CREATE INDEX search_words ON mnemon.search USING gin (words) WITH (gin_pending_list_limit = 256);
CREATE INDEX search_audience ON mnemon.search (tenant, audience, draw);
CREATE INDEX search_sample ON mnemon.search (tenant, draw) WHERE draw < 536870912;
CREATE INDEX search_conversation ON mnemon.search (tenant, conversation, created, seq)
    WHERE conversation IS NOT NULL;
CREATE INDEX search_speaker ON mnemon.search (tenant, named, speaker, audience)
    WHERE speaker IS NOT NULL;
CREATE TABLE mnemon.models (
    num       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text COLLATE "C" NOT NULL,
    dimension bigint NOT NULL,
    UNIQUE (name, dimension)
);
-- Changes that are no longer the newest of their record: replaced versions, and tombstones of
-- deletions and purges (doc is NULL; version 0 for a purge). replaced is the time of the next
-- change that is kept; a tombstone's own time until then.
CREATE TABLE mnemon.history (
    tenant     bigint NOT NULL,
    seq        bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    commit_seq bigint NOT NULL,
    at         bigint NOT NULL,
    actor      text COLLATE "C" NOT NULL,
    cause      text COLLATE "C" NOT NULL,
    replaced   bigint NOT NULL,
    scope      text COLLATE "C",
    kind       text COLLATE "C",
    user_id    text COLLATE "C",
    agent_id   text COLLATE "C",
    session_id text COLLATE "C",
    expires    bigint,
    doc        text COLLATE "C",
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX history_id ON mnemon.history (tenant, id, seq);
CREATE INDEX history_replaced ON mnemon.history (tenant, replaced);
CREATE INDEX history_expires ON mnemon.history (tenant, expires, seq) WHERE expires IS NOT NULL;
-- Links from sources to derived records, by the newest version of the derived record.
CREATE TABLE mnemon.links (
    tenant  bigint NOT NULL,
    source  text COLLATE "C" NOT NULL,
    derived text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, source, derived)
);
CREATE INDEX links_derived ON mnemon.links (tenant, derived);
CREATE TABLE mnemon.receipts (
    tenant  bigint NOT NULL,
    key     text COLLATE "C" NOT NULL,
    digest  text COLLATE "C" NOT NULL,
    at      bigint NOT NULL,
    receipt text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX receipts_at ON mnemon.receipts (tenant, at, key);
CREATE TABLE mnemon.tally (
    tenant    bigint NOT NULL,
    scope     text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    PRIMARY KEY (tenant, scope, kind, namespace)
) WITH (fillfactor = 50);
-- The newest commit groups, each under the number of its newest change and a random token. After
-- a lost connection they show whether its group was committed.
CREATE TABLE mnemon.groups (
    tenant bigint NOT NULL,
    seq    bigint NOT NULL,
    token  bigint NOT NULL,
    PRIMARY KEY (tenant, seq, token)
);
-- Jobs that one server at a time does, by the clock of the database.
CREATE TABLE mnemon.claims (
    tenant text COLLATE "C" NOT NULL,
    job    text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    ends   timestamptz NOT NULL,
    PRIMARY KEY (tenant, job)
);
-- The log of records that left, for indexes that follow: numbers, no content.
CREATE TABLE mnemon.removals (
    tenant bigint NOT NULL,
    number bigint NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (tenant, number)
);
"#;

/// A list of an agent's records reads no others.
const V2: &str = "
CREATE INDEX records_agent ON mnemon.records (tenant, agent_id, created, seq)
    WHERE agent_id IS NOT NULL;
";

/// A list of one kind reads no records of others.
const V3: &str = "
CREATE INDEX records_kind ON mnemon.records (tenant, kind, created, seq);
";

/// Vectors enter the HNSW index of their tenant later, many at once: `indexed` says which are in it. Up
/// to version 3 one index had the vectors of all tenants; a start drops it ([`near`]).
///
/// [`near`]: super::index::near
const V4: &str = "ALTER TABLE mnemon.search ADD COLUMN indexed boolean NOT NULL DEFAULT false;";

/// The version of the database; 0 before our tables were made. Asks the catalogue's tables: its
/// functions may answer from a cache that is older than the lock around a migration.
pub(super) async fn version(lease: &mut Lease) -> Result<i64, Failure> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE tablename = 'format')
         FROM pg_catalog.pg_tables WHERE schemaname = 'mnemon'";
    let found = lease.one(Call::new(sql)).await?;
    let (tables, ours): (i64, i64) = (found.try_get(0)?, found.try_get(1)?);
    match (tables, ours) {
        (0, _) => return Ok(0),
        (_, 0) => {
            let what = "its schema `mnemon` has tables of another program";
            return Err(foreign(lease.place(), what).into());
        }
        _ => {}
    }
    let row = lease.one(Call::new("SELECT max(version) FROM mnemon.format"));
    Ok(row.await?.try_get::<_, Option<i64>>(0)?.unwrap_or(0))
}

/// Brings the database to the current version. Servers that start together wait for each other.
pub(super) async fn migrate(pool: &Pool) -> Result<(), StoreError> {
    let mut tries = 0..TRIES;
    loop {
        let outcome = async {
            let mut lease = pool.take().await?;
            bring_up(&mut lease, pool.wanted_row_security()).await
        };
        match outcome.await {
            Ok(is_active) => {
                pool.row_security.store(is_active, Ordering::Relaxed);
                return Ok(());
            }
            // Other servers use the tables meanwhile.
            Err(failure) if failure.is_deadlock() && tries.next().is_some() => {}
            Err(failure) => return Err(failure.at(&pool.place)),
        }
    }
}

/// Returns whether row-level security applies to our user.
async fn bring_up(lease: &mut Lease, wanted: Option<bool>) -> Result<bool, Failure> {
    if !is_as_wanted(lease, wanted).await? {
        lease.begin("BEGIN").await?;
        // Steps that build an index take as long as the table is large.
        lease.batch("SET LOCAL statement_timeout = 0").await?;
        let lock = Call::new("SELECT pg_advisory_xact_lock($1)").with(MIGRATION_LOCK);
        lease.one(lock).await?;
        // Another server may have done it in the meantime.
        if !is_as_wanted(lease, wanted).await? {
            apply_steps(lease, wanted).await?;
        }
        lease.end("COMMIT").await?;
    }
    let is_active = RowSecurity::of(lease).await?.is_active;
    match wanted == Some(true) && !is_active {
        true => Err(row_security::bypassed(lease.place())),
        false => Ok(is_active),
    }
}

async fn is_as_wanted(lease: &mut Lease, wanted: Option<bool>) -> Result<bool, Failure> {
    let found = check(lease).await?;
    let is_on = RowSecurity::of(lease).await?.is_on;
    Ok(found == current() && wanted.is_none_or(|wanted| wanted == is_on))
}

async fn apply_steps(lease: &mut Lease, wanted: Option<bool>) -> Result<(), Failure> {
    let found = check(lease).await?;
    if found == 0 {
        create_schema(lease).await?;
    }
    let was_on = RowSecurity::of(lease).await?.is_on;
    if was_on {
        // Steps see the rows of all tenants.
        row_security::switch(lease, false).await?;
    }
    let steps = MIGRATIONS.iter().enumerate();
    for (number, step) in steps.skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        lease.batch(step).await?;
        let version = i64::try_from(number + 1).unwrap_or(i64::MAX);
        let note = "INSERT INTO mnemon.format (version) VALUES ($1)";
        lease.all(Call::new(note).with(version)).await?;
    }
    if wanted.unwrap_or(was_on) {
        row_security::switch(lease, true).await?;
        if !RowSecurity::of(lease).await?.is_active {
            return Err(row_security::bypassed(lease.place()));
        }
    }
    Ok(())
}

/// The version, which must not be newer than this program.
pub(super) async fn check(lease: &mut Lease) -> Result<i64, Failure> {
    let found = version(lease).await?;
    if found > current() {
        let place = lease.place().to_owned();
        let known = current();
        return Err(StoreError::TooNew {
            place,
            found,
            known,
        }
        .into());
    }
    Ok(found)
}

async fn create_schema(lease: &mut Lease) -> Result<(), Failure> {
    let made = lease
        .batch(
            "CREATE SCHEMA IF NOT EXISTS mnemon;
             CREATE TABLE mnemon.format (
                version bigint PRIMARY KEY,
                at      timestamptz NOT NULL DEFAULT now()
             )",
        )
        .await;
    match made {
        Err(Failure::Database(error))
            if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) =>
        {
            Err(super::errors::may_not_create(lease.place(), error).into())
        }
        made => made,
    }
}
