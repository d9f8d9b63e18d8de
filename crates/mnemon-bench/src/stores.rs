//! The SQLite and JSONL stores beside a bare SQLite loop that writes the same rows.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mnemon_core::index::Terms;
use mnemon_core::{
    Batch, Ctx, Filter, Grant, Id, Ids, Op, Owner, Policy, Record, Right, Scan, Store, Tenant, Time,
};
use rusqlite::{Connection, params};

use crate::measure::{Beside, Outcome, Table, Times, rate};

const BATCH: usize = 1000;
/// Rows that the rounds of one size come to, so that a small size is measured as often as it needs.
const ROUND_ROWS: usize = 100_000;
const SINGLES: usize = 2000;
const LOOKUPS: usize = 2000;

struct World {
    ctx: Ctx,
    grant: Grant,
    ids: Ids,
    runtime: tokio::runtime::Runtime,
}

pub(crate) fn run(sizes: &[usize], folder: Option<&Path>) -> Outcome<()> {
    let temporary = tempfile::tempdir()?;
    let folder = folder.unwrap_or(temporary.path());
    let ctx = Ctx::new(
        Tenant::default(),
        "bench",
        Time::from_millis(1_700_000_000_000)?,
    );
    let grant = Policy::default().check(&ctx, Right::Write)?;
    let world = World {
        ctx,
        grant,
        ids: Ids::new(1),
        runtime: tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()?,
    };
    let mut table = Table::new(sizes);
    for size in sizes {
        let place = folder.join(format!("bench-{size}"));
        std::fs::create_dir_all(&place)?;
        let records = world.records(*size);
        let plain = bare(&place, &records, false)?;
        table.add("bare SQLite loop, no secondary indexes, rows/s", plain);
        for scheme in ["sqlite", "jsonl"] {
            world.store(scheme, &place, &records, &mut table)?;
        }
        std::fs::remove_dir_all(&place)?;
    }
    table.print();
    Ok(())
}

impl World {
    /// Turns of conversations, 24 English words each: a few hundred users, sessions of forty turns.
    fn records(&self, size: usize) -> Vec<Record> {
        let words: Vec<&str> = include_str!("../../mnemon-adapters/assets/vocab.txt")
            .lines()
            .filter(|word| word.len() > 3 && word.bytes().all(|b| b.is_ascii_lowercase()))
            .take(5000)
            .collect();
        (0..size)
            .map(|number| {
                let text: Vec<&str> = (0..24)
                    .filter_map(|at| words.get((number * 31 + at * 17) % words.len()).copied())
                    .collect();
                let now = self.ctx.now.plus_millis(number as i64);
                let mut record = Record::note(self.ids.next(now), &self.ctx, text.join(" "));
                record.created = now;
                record.owner = Owner {
                    user: Some(format!("user-{}", number % 300)),
                    session: Some(format!("session-{}", number / 40)),
                    ..Owner::default()
                };
                record.expires = Some(now.plus_days(3650));
                record
            })
            .collect()
    }

    fn store(
        &self,
        scheme: &str,
        place: &Path,
        records: &[Record],
        table: &mut Table,
    ) -> Outcome<()> {
        let mut add = |what: &str, figure: f64| table.add(&format!("{scheme}: {what}"), figure);
        let rounds = (ROUND_ROWS / records.len()).clamp(3, 15);
        let ingest = Beside::of(rounds, |round| {
            let url = url(scheme, place, round);
            Ok((self.ingest(&url, records)?, bare(place, records, true)?))
        })?;
        add("durable batch ingest, rows/s", ingest.one);
        add(
            "bare SQLite loop, same table and indexes, rows/s",
            ingest.other,
        );
        add("ingest / bare loop", ingest.ratio);

        let url = url(scheme, place, 0);
        let store = mnemon_adapters::open(&url)?.backend.store;
        let commits = Beside::of(7, |round| {
            let one = self.commits(&store, 1, round)?;
            Ok((self.commits(&store, 8, round)?, one))
        })?;
        add("1 writer, durable commits/s", commits.other);
        add("8 writers, durable commits/s", commits.one);
        add("8 writers / 1 writer", commits.ratio);

        let ids: Vec<Id> = records.iter().map(|record| record.id.clone()).collect();
        let get = Times::of(LOOKUPS, |number| {
            let id = ids.get(number * 7919 % ids.len()).cloned();
            let wanted: Vec<Id> = id.into_iter().collect();
            self.block(store.get(&self.grant, &wanted)).map(drop)
        })?;
        add("get p50, µs", get.percentile(0.5));
        add("get p99, µs", get.percentile(0.99));
        if let Some(file) = url.strip_prefix("sqlite:") {
            let bare = bare_get(Path::new(file), &ids)?.percentile(0.5);
            add("bare get of the same rows p50, µs", bare);
            add("get / bare get", get.percentile(0.5) / bare);
        }
        for (what, filter) in lists() {
            let list = Times::of(LOOKUPS / 10, |_| {
                let scan = Scan::new(filter.clone(), 20);
                self.block(store.scan(&self.grant, &scan)).map(drop)
            })?;
            add(&format!("{what} p50, µs"), list.percentile(0.5));
        }
        drop(store);
        let open = Times::of(10, |_| {
            let store = mnemon_adapters::open(&url)?.backend.store;
            let first: Vec<Id> = ids.first().cloned().into_iter().collect();
            self.block(store.get(&self.grant, &first)).map(drop)
        })?;
        add("open and first get p50, µs", open.percentile(0.5));
        Ok(())
    }

    /// Rows per second into a new store, durable per batch.
    fn ingest(&self, url: &str, records: &[Record]) -> Outcome<f64> {
        let store = mnemon_adapters::open(url)?.backend.store;
        // Made beforehand, like the rows of the bare loop.
        let batches: Vec<Batch> = records
            .chunks(BATCH)
            .map(|batch| batch.iter().cloned().map(Op::append).collect::<Vec<Op>>())
            .map(Batch::from)
            .collect();
        let start = Instant::now();
        for batch in batches {
            self.block(store.apply(&self.grant, batch))?;
        }
        Ok(rate(records.len(), start))
    }

    /// Single-record commits per second, by this many writers at once.
    fn commits(&self, store: &Arc<dyn Store>, writers: usize, round: usize) -> Outcome<f64> {
        let start = Instant::now();
        let mut tasks = Vec::new();
        for writer in 0..writers {
            let (store, grant, ctx) = (Arc::clone(store), self.grant.clone(), self.ctx.clone());
            let ids = Ids::new((10_000 * round + 100 * writers + writer) as u64);
            tasks.push(self.runtime.spawn(async move {
                for number in 0..SINGLES / writers {
                    // The clock goes on while they write, as clocks do.
                    let now = ctx
                        .now
                        .plus_millis((round * SINGLES + number * writers) as i64);
                    let ctx = Ctx { now, ..ctx.clone() };
                    let record = Record::note(ids.next(now), &ctx, "a single note, as they come");
                    store.apply(&grant, Batch::of(Op::append(record))).await?;
                }
                Ok::<(), mnemon_core::StoreError>(())
            }));
        }
        for task in tasks {
            self.runtime.block_on(task)??;
        }
        Ok(rate(SINGLES, start))
    }

    fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

fn url(scheme: &str, place: &Path, round: usize) -> String {
    let store = place.join(format!("{scheme}-store-{round}"));
    format!("{scheme}:{}", store.display())
}

fn lists() -> [(&'static str, Filter); 3] {
    let of = |owner: Owner| Filter {
        owner,
        ..Filter::all_of_tenant()
    };
    let user = Owner {
        user: Some("user-7".to_owned()),
        ..Owner::default()
    };
    let session = Owner {
        session: Some("session-3".to_owned()),
        ..Owner::default()
    };
    [
        ("list 20 newest", Filter::all_of_tenant()),
        ("list 20 of a user", of(user)),
        ("list 20 of a session", of(session)),
    ]
}

/// The rows by their ids and nothing else: what the file itself costs as it grows.
fn bare_get(file: &Path, ids: &[Id]) -> Outcome<Times> {
    let connection = Connection::open(file)?;
    connection.execute_batch("PRAGMA cache_size = -16384; PRAGMA mmap_size = 1073741824;")?;
    let mut select = connection.prepare("SELECT doc FROM records WHERE tenant = 1 AND id = ?1")?;
    Times::of(LOOKUPS, |number| {
        let id = ids.get(number * 7919 % ids.len()).map(Id::as_str);
        select
            .query_row([id], |row| row.get::<_, String>(0))
            .map(drop)
    })
    .map_err(Into::into)
}

/// Rows per second of a loop that inserts rows made beforehand, durable per batch.
fn bare(place: &Path, records: &[Record], indexes: bool) -> Outcome<f64> {
    let path = place.join("bare.db");
    for file in ["bare.db", "bare.db-wal", "bare.db-shm"] {
        let gone = std::fs::remove_file(place.join(file));
        gone.or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    // The store itself makes the table, so that it is the same one.
    drop(mnemon_adapters::Sqlite::open(&path)?);
    let mut connection = Connection::open(&path)?;
    let settings =
        "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA cache_size = -16384;";
    connection.execute_batch(settings)?;
    if !indexes {
        connection.execute_batch(
            "DROP INDEX records_kind; DROP INDEX records_user; DROP INDEX records_session;
             DROP INDEX records_agent; DROP INDEX records_expires; DROP INDEX records_worth;",
        )?;
    }
    let docs: Vec<String> = records
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    let words: Vec<Vec<u8>> = records
        .iter()
        .map(|record| Terms::of(record).to_bytes())
        .collect();
    let start = Instant::now();
    let mut key = 1_i64 << 40;
    let rows = docs.chunks(BATCH).zip(words.chunks(BATCH));
    for batch in records.chunks(BATCH).zip(rows) {
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO records (key, tenant, id, scope, kind, namespace, user, agent, session,
                importance, created, expires, version, commit_seq, at, actor, cause, doc)
             VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, 1, ?12, 'bench', 'written', ?13)",
        )?;
        let mut search =
            transaction.prepare_cached("INSERT INTO search (key, terms) VALUES (?1, ?2)")?;
        for (record, (doc, words)) in batch.0.iter().zip(batch.1.0.iter().zip(batch.1.1)) {
            key += 1;
            search.execute(params![key, words])?;
            insert.execute(params![
                key,
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
                record.updated.millis(),
                doc,
            ])?;
        }
        drop((insert, search));
        transaction.commit()?;
    }
    Ok(rate(records.len(), start))
}
