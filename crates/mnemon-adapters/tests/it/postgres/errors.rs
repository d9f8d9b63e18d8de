//! Databases that cannot be used, or only read: what users see, and that nothing is half done.

use std::time::Duration;

use mnemon_core::{Batch, Claim, ErrorKind, Grant, IdempotencyKey, Op, Right, StoreError};
use mnemon_testkit::make::Caller;

use super::{Role, database, note};
use crate::kit::{everything, grant, open, wait};

fn error(url: &str) -> StoreError {
    let error = mnemon_adapters::open(url).map(drop).unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    error
}

fn put(store: &dyn mnemon_core::Store, content: &str) -> Result<(), StoreError> {
    wait(store.apply(&grant(), Batch::of(Op::append(note(content))))).map(drop)
}

#[test]
fn a_wrong_password_is_reported() {
    let database = database!();
    let role = Role::new(&database);
    let error = error(&database.url_as(&role.name, "wrong"));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let text = error.to_string();
    assert!(text.contains("user or password"), "{text}");
    assert!(!text.contains("wrong"), "{text}");
}

#[test]
fn a_missing_database_and_a_missing_server_are_reported() {
    let database = database!();
    let url = database.url().replace(&database.name, "no_such_database");
    let missing = error(&url);
    assert_eq!(missing.kind(), ErrorKind::Unavailable);
    assert!(missing.to_string().contains("createdb"), "{missing}");
    let refused = error("postgres://ann:s3cret@127.0.0.1:1/memory");
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    let text = refused.to_string();
    assert!(
        text.starts_with("postgres://ann@127.0.0.1:1/memory: "),
        "{text}"
    );
    assert!(text.contains("cannot be reached"), "{text}");
}

#[test]
fn a_user_who_may_not_create_tables_learns_how() {
    let database = database!();
    let role = Role::new(&database);
    let error = error(&role.url());
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("GRANT CREATE"), "{error}");
    // Nothing was made.
    database.run("CREATE SCHEMA mnemon");
}

#[test]
fn a_user_who_may_only_read_reads() {
    let database = database!();
    let owner = open(&database.url());
    put(owner.as_ref(), "tea").unwrap();
    let role = Role::new(&database);
    database.run(&format!(
        "GRANT USAGE ON SCHEMA mnemon TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA mnemon TO {0}",
        role.name
    ));
    let reader = open(&role.url());
    assert_eq!(everything(reader.as_ref()).len(), 1);
    let error = put(reader.as_ref(), "coffee").unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    let claim = Claim {
        job: "upkeep",
        holder: "reader",
        lasts: Duration::from_secs(60),
    };
    let error = wait(reader.claim(&grant(), &claim)).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert_eq!(everything(owner.as_ref()).len(), 1);
}

#[test]
fn a_database_of_a_newer_version_is_not_touched() {
    let database = database!();
    drop(open(&database.url()));
    database.run("INSERT INTO mnemon.format (version) VALUES (99)");
    let newer = error(&database.url());
    assert!(
        matches!(newer, StoreError::TooNew { found: 99, .. }),
        "{newer}"
    );
    let examination = mnemon_adapters::examine(&database.url()).unwrap();
    assert!(!examination.is_clean(), "{examination:?}");
}

#[test]
fn a_schema_of_another_program_is_not_touched() {
    let database = database!();
    database.run("CREATE SCHEMA mnemon; CREATE TABLE mnemon.records (x int)");
    assert_eq!(error(&database.url()).kind(), ErrorKind::Foreign);
}

#[test]
fn servers_that_start_together_make_the_tables_once() {
    let database = database!();
    let url = database.url();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let url = &url;
            scope.spawn(move || put(open(url).as_ref(), &format!("n{number}")).unwrap());
        }
    });
    assert_eq!(everything(open(&url).as_ref()).len(), 6);
    let examination = mnemon_adapters::examine(&url).unwrap();
    assert!(examination.is_clean(), "{examination:?}");
}

/// PostgreSQL cannot store this character in a text.
#[test]
fn a_nul_character_is_reported_and_fails_alone() {
    let database = database!();
    let store = open(&database.url());
    let found = wait(store.ids_with_prefix(&grant(), "a\0", 1));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Invalid);
    mnemon_testkit::block_on(async {
        let writes = (0..20).map(|number| {
            let key = (number == 7).then(|| IdempotencyKey {
                name: "k".to_owned(),
                digest: "a\0b".to_owned(),
            });
            let batch = Batch::of(Op::append(note("tea"))).with_key(key);
            let store = store.clone();
            tokio::spawn(async move { store.apply(&grant(), batch).await })
        });
        let writes: Vec<_> = writes.collect();
        for (number, write) in writes.into_iter().enumerate() {
            match write.await.unwrap() {
                Ok(_) => assert_ne!(number, 7),
                Err(error) => assert_eq!((number, error.kind()), (7, ErrorKind::Invalid)),
            }
        }
    });
    assert_eq!(everything(store.as_ref()).len(), 19);
}

/// The database server reports a full disk by this code. A trigger does the same after the first
/// rows of the group were written.
#[test]
fn a_full_disk_is_reported_and_leaves_nothing_half_written() {
    let database = database!();
    let store = open(&database.url());
    put(store.as_ref(), "before").unwrap();
    database.run(
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'could not extend file: No space left on device'
                USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER full_disk AFTER INSERT ON mnemon.search EXECUTE FUNCTION fill()",
    );
    let error = put(store.as_ref(), "during").unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert_eq!(everything(store.as_ref()).len(), 1);
    assert_eq!(wait(store.newest_change(&grant())).unwrap(), 1);
    database.run("DROP TRIGGER full_disk ON mnemon.search");
    put(store.as_ref(), "after").unwrap();
    assert_eq!(everything(store.as_ref()).len(), 2);
    let examination = mnemon_adapters::examine(&database.url()).unwrap();
    assert!(examination.is_clean(), "{examination:?}");
}

#[test]
fn an_exhausted_pool_is_reported_after_the_stated_wait() {
    let database = database!();
    let store = open(&format!("{}?pool=2&pool_wait=1", database.url()));
    let [a, b] = ["a", "b"].map(|tenant| Caller::default().on(tenant).grant(Right::Write));
    let batch = |grant: &Grant| {
        let mut record = note("tea");
        record.tenant = grant.tenant().clone();
        Batch::of(Op::append(record))
    };
    mnemon_testkit::block_on(async {
        for grant in [&a, &b] {
            store.apply(grant, batch(grant)).await.unwrap();
        }
        // Both connections wait for locks of somebody else.
        let url = database.url();
        let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let lock = "BEGIN; SELECT 1 FROM mnemon.tenants FOR UPDATE";
        other.batch_execute(lock).await.unwrap();
        let writes = [&a, &b].map(|grant| {
            let (store, grant, batch) = (store.clone(), grant.clone(), batch(grant));
            tokio::spawn(async move { store.apply(&grant, batch).await })
        });
        // Inside its transaction, the connection with the lock would see the same answer for ever.
        let (watcher, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let since = std::time::Instant::now();
        loop {
            let row = watcher.query_one(waiting, &[]).await.unwrap();
            if row.get::<_, i64>(0) == 2 {
                break;
            }
            assert!(since.elapsed().as_secs() < 20, "they do not wait");
        }
        let error = store.newest_change(&a).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("all 2 connections") && text.contains("1 s"),
            "{text}"
        );
        // Calls that have a connection are not disturbed.
        other.batch_execute("ROLLBACK").await.unwrap();
        for write in writes {
            write.await.unwrap().unwrap();
        }
        assert_eq!(store.newest_change(&a).await.unwrap(), 2);
    });
}
