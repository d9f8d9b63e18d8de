//! Durable writes: batches beside a bare `COPY` of the same rows, and single records by many writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;
use mnemon_core::{Backend, Batch, Ctx, Embedding, Grant, Ids, Op, Policy, Record, Right, Time};
use tokio_postgres::{Client, NoTls};

use crate::measure::{Outcome, Table, rate};
use crate::recall::Vocabulary;

/// How many writers write at once, a column each.
pub(crate) const WRITERS: [usize; 3] = [1, 8, 64];
const SECONDS: Duration = Duration::from_secs(4);
const TEXTS: usize = 2000;

/// Single records with vectors in PostgreSQL and, beside it, in a file of SQLite.
pub(super) async fn singles(url: &str) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("m.db").display());
    let embedder = Builtin::new()?;
    let mut vocabulary = Vocabulary::new();
    let texts: Vec<String> = (0..TEXTS).map(|_| vocabulary.text(20)).collect();
    let texts_of_all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts_of_all).await?;
    let material = Arc::new(Material {
        ctx: Ctx::new(
            "writes".parse()?,
            "bench",
            Time::from_millis(1_700_000_000_000)?,
        ),
        ids: Ids::new(std::process::id().into()),
        model: embedder.model().clone(),
        texts: texts.into_iter().zip(vectors).collect(),
    });
    let mut table = Table::new(&WRITERS);
    for writers in WRITERS {
        for (label, url) in [("PostgreSQL", url), ("SQLite", &file)] {
            let backend = mnemon_adapters::open(url)?.backend;
            let rate = write(backend, &material, writers).await?;
            table.add(&format!("{label}, single durable writes per second"), rate);
        }
    }
    println!("\nSingle records with vectors, one tenant; the columns are writers:\n");
    table.print();
    Ok(())
}

struct Material {
    ctx: Ctx,
    ids: Ids,
    model: mnemon_core::embed::ModelId,
    texts: Vec<(String, Option<Vec<f32>>)>,
}

impl Material {
    fn batch(&self, number: usize) -> Batch {
        let id = self.ids.next(self.ctx.now);
        let mut batch = Batch::default();
        if let Some((text, vector)) = self.texts.get(number % self.texts.len()) {
            let record = Record::note(id.clone(), &self.ctx, text.clone());
            batch.ops.push(Op::append(record));
            batch.vectors.extend(vector.clone().map(|vector| {
                let model = self.model.clone();
                (id, Embedding { model, vector })
            }));
        }
        batch
    }
}

async fn write(backend: Backend, material: &Arc<Material>, writers: usize) -> Outcome<f64> {
    let grant: Grant = Policy::default().check(&material.ctx, Right::Write)?;
    backend.store.apply(&grant, material.batch(0)).await?;
    let (start, written) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let (store, grant) = (Arc::clone(&backend.store), grant.clone());
        let (material, written) = (Arc::clone(material), Arc::clone(&written));
        tasks.spawn(async move {
            let mut number = writer * 31;
            while start.elapsed() < SECONDS {
                store.apply(&grant, material.batch(number)).await?;
                written.fetch_add(1, Ordering::Relaxed);
                number += 1;
            }
            Ok::<_, mnemon_core::StoreError>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(rate(written.load(Ordering::Relaxed), start))
}

/// Records per second of a bare `COPY`: the rows of a tenant, into copies of their tables with the
/// same indexes.
pub(super) async fn copy_rate(url: &str, tenant: &str, records: usize) -> Outcome<f64> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client
        .batch_execute("DROP SCHEMA IF EXISTS copied CASCADE; CREATE SCHEMA copied")
        .await?;
    let number = "SELECT num FROM mnemon.tenants WHERE name = $1";
    let number: i64 = client.query_one(number, &[&tenant]).await?.get(0);
    let mut took = Duration::ZERO;
    for table in ["records", "search"] {
        took += copy_table(&client, table, number).await?;
    }
    client.batch_execute("DROP SCHEMA copied CASCADE").await?;
    drop(client);
    connection.await??;
    Ok(records as f64 / took.as_secs_f64())
}

async fn copy_table(client: &Client, table: &str, tenant: i64) -> Outcome<Duration> {
    use futures::{SinkExt, StreamExt};
    let columns = "SELECT string_agg(quote_ident(attname), ',' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
        AND attgenerated = ''";
    let name = format!("mnemon.{table}");
    let columns: String = client.query_one(columns, &[&name]).await?.get(0);
    let make = format!("CREATE TABLE copied.{table} (LIKE {name} INCLUDING ALL)");
    client.batch_execute(&make).await?;
    let rows = format!("SELECT {columns} FROM {name} WHERE tenant = {tenant}");
    let out = format!("COPY ({rows}) TO STDOUT (FORMAT binary)");
    let parts: Vec<_> = client.copy_out(&out).await?.collect().await;
    let into = format!("COPY copied.{table} ({columns}) FROM STDIN (FORMAT binary)");
    let start = Instant::now();
    let mut sink = std::pin::pin!(client.copy_in(&into).await?);
    for part in parts {
        sink.feed(part?).await?;
    }
    sink.finish().await?;
    Ok(start.elapsed())
}

/// Whether the tenant has an index of its vectors, with all of them but some that are compared one by
/// one.
pub(super) async fn has_vector_index(url: &str, tenant: &str) -> Outcome<bool> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let complete = "SELECT 1 FROM mnemon.models m, mnemon.tenants t WHERE t.name = $1
        AND EXISTS (SELECT 1 FROM pg_index i WHERE i.indisvalid
            AND i.indexrelid = to_regclass('mnemon.search_nearest_' || m.num || '_' || t.num))
        AND (SELECT count(*) FROM mnemon.search s WHERE s.tenant = t.num AND NOT s.indexed) <= 1000";
    Ok(!client.query(complete, &[&tenant]).await?.is_empty())
}
