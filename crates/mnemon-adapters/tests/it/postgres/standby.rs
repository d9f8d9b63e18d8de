//! Searches on a standby. `TEST_STANDBY` names one of the server of `TEST_DATABASE_URL`, which no
//! other test uses meanwhile; without it these tests do nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mnemon_core::{Batch, Filter, Op, Probe, QueryTerm, Store};

use super::{Database, database, note, rows};
use crate::kit::{grant, open_backend, wait};

/// How long the standby may take to show what was written.
const PATIENCE: Duration = Duration::from_secs(60);

/// Replay is stopped for the whole standby, so one test at a time uses it.
static ALONE: Mutex<()> = Mutex::new(());

struct Standby {
    server: String,
    database: Database,
    _alone: MutexGuard<'static, ()>,
}

impl Standby {
    fn of(database: Database) -> Option<Self> {
        let server = std::env::var("TEST_STANDBY").ok()?;
        let standby = Self {
            server,
            database,
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
        };
        Some(standby)
    }

    /// The URL of the store with this standby and an index of this kind.
    fn url(&self, index: &str) -> String {
        let (url, server) = (self.database.url(), &self.server);
        format!("{url}?standby={server}&index={index}")
    }

    /// The same database on the standby.
    fn standby_url(&self) -> String {
        let url = self.database.url();
        let (user, _) = url.rsplit_once('@').unwrap();
        format!("{user}@{}/{}", self.server, self.database.name)
    }

    fn first(&self, url: &str, sql: &str) -> String {
        rows(url, sql).into_iter().next().unwrap_or_default()
    }

    /// Waits until the standby shows all that was written.
    fn catch_up(&self) {
        let newest = self.first(&self.database.url(), "SELECT pg_current_wal_lsn()");
        let shown = format!("SELECT pg_last_wal_replay_lsn() >= '{newest}'::pg_lsn");
        let server = self.standby_url();
        let (server, _) = server.rsplit_once('/').unwrap();
        let since = Instant::now();
        while self.first(&format!("{server}/postgres"), &shown) != "t" {
            assert!(since.elapsed() < PATIENCE, "the standby does not follow");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many connections of ours last read search terms there.
    fn searches(&self) -> String {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
            AND pid <> pg_backend_pid() AND application_name = 'mnemon'";
        self.first(&self.standby_url(), sql)
    }
}

fn put(store: &dyn Store, content: &str) {
    wait(store.apply(&grant(), Batch::of(Op::append(note(content))))).unwrap();
}

fn found(backend: &mnemon_core::Backend, word: &str) -> usize {
    let probe = Probe {
        terms: QueryTerm::words_of(word),
        ..Probe::new(Filter::all_of_tenant(), 10)
    };
    let answer = wait(backend.index.find(&grant(), &probe)).unwrap();
    answer.matches.len()
}

fn a_search_reads_there(index: &str) {
    let Some(standby) = Standby::of(database!()) else {
        return;
    };
    put(
        open_backend(&standby.database.url()).store.as_ref(),
        "green tea",
    );
    standby.catch_up();
    let backend = open_backend(&standby.url(index));
    assert_eq!(standby.searches(), "0");
    assert_eq!(found(&backend, "tea"), 1);
    assert_eq!(standby.searches(), "1", "the standby was not asked");

    let replay = |sql: &str| self::rows(&standby.standby_url(), sql);
    replay("SELECT pg_wal_replay_pause()");
    put(backend.store.as_ref(), "black tea");
    let seen = found(&backend, "tea");
    replay("SELECT pg_wal_replay_resume()");
    assert_eq!(seen, 2, "a write that was acknowledged is missing");
    standby.catch_up();
    assert_eq!(found(&backend, "tea"), 2);
    let examination = mnemon_adapters::examine(&standby.url(index)).unwrap();
    let finding = examination.findings.iter().find(|it| it.check == "standby");
    let finding = finding.unwrap();
    assert!(finding.ok && !finding.warning, "{finding:?}");
}

#[test]
fn a_search_in_the_database_reads_there_unless_it_is_behind() {
    a_search_reads_there("database");
}

#[test]
fn an_index_in_memory_is_loaded_from_there_unless_it_is_behind() {
    a_search_reads_there("memory");
}

/// Needs no standby.
#[test]
fn a_standby_that_is_gone_or_is_none_is_reported_and_searches_work() {
    let database = database!();
    let url = database.url();
    let (_, primary) = url.rsplit_once('@').unwrap();
    let (primary, _) = primary.split_once('/').unwrap();
    for (standby, report) in [
        ("127.0.0.1:1", "the primary answers all searches"),
        (primary, "is not a standby"),
    ] {
        let url = format!("{url}?standby={standby}&index=database");
        let backend = open_backend(&url);
        put(backend.store.as_ref(), "oolong");
        assert!(found(&backend, "oolong") > 0);
        let examination = mnemon_adapters::examine(&url).unwrap();
        let finding = examination.findings.iter().find(|it| it.check == "standby");
        let finding = finding.unwrap();
        assert!(
            finding.warning && finding.detail.contains(report),
            "{finding:?}"
        );
    }
}

#[test]
fn a_standby_is_named_by_its_host_and_port() {
    for wrong in ["", "postgres://u@h/d", "a,b", "u@h"] {
        let url = format!("postgres://u:secret@h/d?standby={wrong}");
        let error = mnemon_adapters::open(&url).err().unwrap().to_string();
        assert!(error.contains("`standby` must be HOST"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
