//! The store in PostgreSQL against a real server.
//!
//! `TEST_DATABASE_URL` names the server, with a user that may create databases and roles; each test
//! makes a database of its own there. `./scripts/test` starts a server. Without the variable these
//! tests do nothing.

mod crashes;
mod cut;
mod database_index;
mod errors;
mod following;
mod format;
mod many;
mod partitions;
mod row_security;
mod standby;
mod tenants;
mod tls;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use mnemon_core::{Backend, Ids, Record};
use mnemon_testkit::Fixture;

use crate::kit::{ctx, ids, rounds};

/// A database of its own, which is dropped at the end.
pub(crate) struct Database {
    pub(crate) name: String,
    /// The URL of the server, with the user who may do everything.
    server: String,
}

impl Database {
    /// `None` without a server.
    pub(crate) fn fresh() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("TEST_DATABASE_URL").ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("mnemon_test_{}_{number}", std::process::id());
        run_sql(&server, &format!("CREATE DATABASE {name}"));
        Some(Self { name, server })
    }

    pub(crate) fn url(&self) -> String {
        let (rest, query) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let (authority, _) = rest.rsplit_once('/').unwrap();
        match query.is_empty() {
            true => format!("{authority}/{}", self.name),
            false => format!("{authority}/{}?{query}", self.name),
        }
    }

    /// The same for another user.
    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        let url = self.url();
        let (_, host) = url.rsplit_once('@').unwrap();
        format!("postgres://{user}:{password}@{host}")
    }

    /// Runs statements in this database.
    pub(crate) fn run(&self, sql: &str) {
        run_sql(&self.url(), sql);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let name = &self.name;
        run_sql(
            &self.server,
            &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        );
    }
}

/// A role that only this test uses; roles belong to the whole server.
struct Role<'a> {
    database: &'a Database,
    name: String,
}

impl<'a> Role<'a> {
    fn new(database: &'a Database) -> Self {
        let name = format!("{}_role", database.name);
        database.run(&format!("CREATE ROLE {name} LOGIN PASSWORD 's3cret'"));
        Self { database, name }
    }

    fn url(&self) -> String {
        self.database.url_as(&self.name, "s3cret")
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        self.database
            .run(&format!("DROP OWNED BY {name}; DROP ROLE {name}"));
    }
}

/// Runs statements on a separate connection and thread, as tests may be inside a runtime. A lock that
/// is never released fails the test instead of stopping all of them.
fn run_sql(url: &str, sql: &str) {
    let (url, sql) = (url.to_owned(), sql.to_owned());
    let work = async move {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
            .batch_execute("SET lock_timeout = '60s'")
            .await
            .unwrap();
        client.batch_execute(&sql).await.unwrap();
    };
    let thread = std::thread::spawn(move || mnemon_testkit::block_on(work));
    thread.join().unwrap();
}

/// The first column of every row as text.
fn rows(url: &str, sql: &str) -> Vec<String> {
    let (url, sql) = (url.to_owned(), sql.to_owned());
    let work = async move {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let answer = client.simple_query(&sql).await.unwrap();
        let rows = answer.into_iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    };
    let thread = std::thread::spawn(move || mnemon_testkit::block_on(work));
    thread.join().unwrap()
}

/// A note with an id of its own.
fn note(content: &str) -> Record {
    static IDS: LazyLock<Ids> = LazyLock::new(ids);
    Record::note(IDS.next(ctx().now), &ctx(), content)
}

#[async_trait]
impl Fixture for Database {
    async fn open(&self) -> Backend {
        crate::kit::open_backend(&self.url())
    }
}

/// A fresh database; ends the test without a server.
macro_rules! database {
    () => {
        match $crate::postgres::Database::fresh() {
            Some(database) => database,
            None => return,
        }
    };
}
pub(crate) use database;

mnemon_testkit::conformance!(conformance, database!());
mnemon_testkit::index_conformance!(index_conformance, database!());

#[test]
fn postgres_agrees_with_the_reference_on_random_operations() {
    drop(database!());
    let fresh = || Database::fresh().unwrap();
    mnemon_testkit::oracle::check_against_ram(fresh, rounds(100, 24));
}

#[test]
fn postgres_keeps_its_properties_under_simulation() {
    drop(database!());
    mnemon_testkit::simulator::sweep(
        "-p mnemon-adapters --features postgres --test it -- properties_under_simulation",
        u64::from(rounds(6, 1)),
        800,
        || Database::fresh().unwrap(),
        |_| mnemon_testkit::simulator::StoreActors::default(),
    );
}
