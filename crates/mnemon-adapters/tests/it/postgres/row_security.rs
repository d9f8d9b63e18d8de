//! Row-level security: statements that forget the tenant show nothing of another one.

use mnemon_core::{Backend, Batch, Claim, Grant, Op, Store};
use mnemon_testkit::Fixture;
use mnemon_testkit::make::{Caller, note};

use super::Database;
use crate::kit::{open, wait};

/// A database whose tables belong to a user to whom row-level security applies.
pub(crate) struct Walled {
    database: Database,
    owner: String,
    /// Parameters of the URL besides the one that switches it on.
    parameters: &'static str,
}

impl Walled {
    fn fresh() -> Option<Self> {
        let database = Database::fresh()?;
        let (name, owner) = (&database.name, format!("{}_owner", database.name));
        database.run(&format!(
            "CREATE ROLE {owner} LOGIN PASSWORD 's3cret';
             GRANT CREATE ON DATABASE {name} TO {owner}"
        ));
        let parameters = "";
        Some(Self {
            database,
            owner,
            parameters,
        })
    }

    fn searched_in_the_database(mut self) -> Self {
        self.parameters = "&index=database&index_exact=0";
        self
    }

    fn url(&self) -> String {
        self.database.url_as(&self.owner, "s3cret")
    }

    fn walled_url(&self) -> String {
        format!("{}?row_security=on{}", self.url(), self.parameters)
    }
}

impl Drop for Walled {
    fn drop(&mut self) {
        let owner = &self.owner;
        self.database
            .run(&format!("DROP OWNED BY {owner} CASCADE; DROP ROLE {owner}"));
    }
}

#[async_trait::async_trait]
impl Fixture for Walled {
    async fn open(&self) -> Backend {
        crate::kit::open_backend(&self.walled_url())
    }
}

macro_rules! walled {
    () => {
        match Walled::fresh() {
            Some(walled) => walled,
            None => return,
        }
    };
}

mnemon_testkit::conformance!(conformance, walled!());
mnemon_testkit::index_conformance!(index_conformance, walled!());
mnemon_testkit::index_conformance!(database_index, walled!().searched_in_the_database());

#[test]
fn a_copy_needs_a_user_who_sees_all_tenants() {
    let walled = walled!();
    let opened = mnemon_adapters::open_replica(&walled.walled_url()).unwrap();
    let grant = Caller::default().on("one").grant(mnemon_core::Right::Purge);
    let error = wait(opened.tenants(&grant)).unwrap_err().to_string();
    assert!(error.contains("BYPASSRLS"), "{error}");
}

fn grant(tenant: &str) -> Grant {
    Caller::default()
        .on(tenant)
        .grant(mnemon_core::Right::Write)
}

fn put(store: &dyn Store, tenant: &str) {
    let grant = grant(tenant);
    let mut record = note("n");
    record.tenant = grant.tenant().clone();
    wait(store.apply(&grant, Batch::of(Op::put(record)))).unwrap();
}

/// The rows of every table that a connection sees without any condition.
fn seen(url: &str, setting: Option<&str>) -> Result<Vec<(String, i64)>, tokio_postgres::Error> {
    let (url, setting) = (url.to_owned(), setting.map(str::to_owned));
    let work = async move {
        let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let transaction = client.transaction().await?;
        if let Some(setting) = setting {
            let name = "SELECT set_config('mnemon.tenant', $1, true)";
            transaction.query(name, &[&setting]).await?;
        }
        let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'mnemon'
            AND tablename NOT IN ('format', 'models') ORDER BY 1";
        let mut counts = Vec::new();
        for table in transaction.query(tables, &[]).await? {
            let table: String = table.get(0);
            let count = format!("SELECT count(*) FROM mnemon.{table}");
            counts.push((table, transaction.query_one(&count, &[]).await?.get(0)));
        }
        Ok(counts)
    };
    let thread = std::thread::spawn(move || mnemon_testkit::block_on(work));
    thread.join().unwrap()
}

#[test]
fn a_statement_without_its_condition_shows_nothing_of_another_tenant() {
    let walled = walled!();
    let store = open(&walled.walled_url());
    put(store.as_ref(), "a");
    put(store.as_ref(), "a");
    let claim = Claim {
        job: "upkeep",
        holder: "one",
        lasts: std::time::Duration::from_secs(60),
    };
    wait(store.claim(&grant("a"), &claim)).unwrap();
    put(store.as_ref(), "b");
    let url = walled.url();
    let of_a = seen(&url, Some("a")).unwrap();
    let of = |counts: &[(String, i64)], table: &str| {
        let found = counts.iter().find(|(name, _)| name == table);
        found.unwrap().1
    };
    for table in ["tenants", "records", "search", "tally", "claims"] {
        assert_eq!(of(&of_a, table), 1, "{table}");
    }
    let of_b = seen(&url, Some("b")).unwrap();
    assert_eq!((of(&of_b, "records"), of(&of_b, "claims")), (1, 0));
    // Without a tenant there is an error, and with an unknown one nothing, in every table.
    let error = seen(&url, None).unwrap_err();
    assert!(error.to_string().contains("db error"), "{error}");
    let of_none = seen(&url, Some("c")).unwrap();
    assert!(of_none.iter().all(|(_, count)| *count == 0), "{of_none:?}");
    // A tenant writes no rows of another one.
    let all = seen(&walled.database.url(), None).unwrap();
    assert_eq!(of(&all, "tenants"), 2, "a superuser sees all");
}

#[test]
fn it_can_be_switched_while_servers_run() {
    let walled = walled!();
    let server = open(&walled.url());
    put(server.as_ref(), "a");
    let read = |store: &dyn Store| wait(store.newest_change(&grant("a"))).unwrap();
    // A superuser cannot switch it on: it would not apply.
    let superuser = format!("{}?row_security=on", walled.database.url());
    let error = mnemon_adapters::open(&superuser).map(drop).unwrap_err();
    assert!(error.to_string().contains("BYPASSRLS"), "{error}");
    let switched = open(&walled.walled_url());
    assert_eq!((read(switched.as_ref()), read(server.as_ref())), (1, 1));
    put(server.as_ref(), "a");
    // It stays on for servers that do not mention it.
    let later = open(&walled.url());
    assert_eq!(read(later.as_ref()), 2);
    let examination = mnemon_adapters::examine(&walled.url()).unwrap();
    assert!(examination.is_clean(), "{examination:?}");
    drop(open(&format!("{}?row_security=off", walled.url())));
    put(server.as_ref(), "a");
    assert_eq!((read(switched.as_ref()), read(later.as_ref())), (3, 3));
    let all = seen(&walled.url(), None).unwrap();
    assert!(
        all.iter()
            .any(|(table, count)| table == "records" && *count == 1)
    );
}

#[test]
fn servers_under_load_survive_the_switch() {
    let walled = walled!();
    let server = open(&walled.url());
    put(server.as_ref(), "a");
    std::thread::scope(|scope| {
        let writers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|tenant| {
                let server = &server;
                scope.spawn(move || {
                    for _ in 0..20 {
                        put(server.as_ref(), tenant);
                        wait(server.get(&grant(tenant), &[note("n").id])).unwrap();
                    }
                })
            })
            .collect();
        for mode in ["on", "off"].into_iter().cycle() {
            drop(open(&format!("{}?row_security={mode}", walled.url())));
            if writers.iter().all(|writer| writer.is_finished()) {
                break;
            }
        }
    });
    let newest = ["a", "b"].map(|tenant| wait(server.newest_change(&grant(tenant))).unwrap());
    assert_eq!(newest, [21, 20]);
}
