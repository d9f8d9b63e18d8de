//! Many callers at once: tenants do not wait for each other, and few connections are enough.

use mnemon_core::{Batch, Filter, Op, Probe};
use mnemon_testkit::make::{Caller, note};
use tokio_postgres::NoTls;

use super::database;
use crate::kit::open;

#[test]
fn a_tenant_that_is_locked_holds_up_no_other() {
    let database = database!();
    let url = database.url();
    mnemon_testkit::block_on(async {
        let store = open(&url);
        let [a, b] = ["a", "b"].map(|tenant| Caller::default().on(tenant));
        let put = |caller: &Caller, name: &str| {
            let mut record = note(name);
            record.tenant = caller.grant(mnemon_core::Right::Write).tenant().clone();
            Batch::of(Op::put(record))
        };
        let grant = |caller: &Caller| caller.grant(mnemon_core::Right::Write);
        store.apply(&grant(&a), put(&a, "first")).await.unwrap();
        store.apply(&grant(&b), put(&b, "first")).await.unwrap();

        let (other, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let lock = "BEGIN; SELECT 1 FROM mnemon.tenants WHERE name = 'a' FOR UPDATE";
        other.batch_execute(lock).await.unwrap();
        let waiting = {
            let (store, grant, put) = (store.clone(), grant(&a), put(&a, "second"));
            tokio::spawn(async move { store.apply(&grant, put).await })
        };
        for number in 0..10 {
            let put = put(&b, &format!("n{number}"));
            store.apply(&grant(&b), put).await.unwrap();
        }
        assert!(!waiting.is_finished());
        // Readers of the locked tenant do not wait, either.
        assert_eq!(store.newest_change(&grant(&a)).await.unwrap(), 1);
        other.batch_execute("ROLLBACK").await.unwrap();
        waiting.await.unwrap().unwrap();
        assert_eq!(store.newest_change(&grant(&a)).await.unwrap(), 2);
    });
}

#[test]
fn two_connections_serve_many_callers() {
    let database = database!();
    let backend = crate::kit::open_backend(&format!("{}?pool=2", database.url()));
    mnemon_testkit::block_on(async {
        let callers: Vec<_> = (0..40)
            .map(|number| {
                let backend = backend.clone();
                tokio::spawn(async move {
                    let caller = Caller::default().on(&format!("t{}", number % 8));
                    let grant = caller.grant(mnemon_core::Right::Write);
                    let mut record = note(&format!("n{number}"));
                    record.tenant = grant.tenant().clone();
                    let id = record.id.clone();
                    let put = Batch::of(Op::put(record));
                    backend.store.apply(&grant, put).await.unwrap();
                    let found = backend
                        .store
                        .get(&grant, std::slice::from_ref(&id))
                        .await
                        .unwrap();
                    assert!(found[0].is_some());
                    let probe = Probe::new(Filter::all_of_tenant(), 100);
                    let found = backend.index.find(&grant, &probe).await.unwrap();
                    assert!(found.matches.iter().any(|it| it.id == id));
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
    });
}
