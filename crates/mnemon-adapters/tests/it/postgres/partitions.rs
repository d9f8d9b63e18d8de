//! Tables that are partitioned by tenant, with the statements of docs/scale-out.md.

use async_trait::async_trait;
use mnemon_core::Backend;
use mnemon_testkit::Fixture;

use super::{Database, database, rows};
use crate::kit::{open, open_backend, rounds};

struct Partitioned(Database, &'static str);

impl Partitioned {
    fn new(database: Database, parameters: &'static str) -> Self {
        drop(open(&database.url()));
        let page = include_str!("../../../../../docs/scale-out.md");
        let (_, section) = page.split_once("\n## Partitions\n").unwrap();
        let (_, block) = section.split_once("```sql\n").unwrap();
        let (sql, _) = block.split_once("\n```").unwrap();
        database.run(sql);
        Self(database, parameters)
    }
}

#[async_trait]
impl Fixture for Partitioned {
    async fn open(&self) -> Backend {
        open_backend(&format!("{}?{}", self.0.url(), self.1))
    }
}

const LOOKED_UP: &str = "index=database&index_exact=0";

mnemon_testkit::index_conformance!(conformance, Partitioned::new(database!(), LOOKED_UP));

#[test]
fn partitioned_tables_agree_with_the_reference() {
    drop(database!());
    let fresh = || Partitioned::new(Database::fresh().unwrap(), LOOKED_UP);
    mnemon_testkit::oracle::check_against_ram(fresh, rounds(20, 4));
}

#[test]
fn rows_are_in_partitions() {
    let partitioned = Partitioned::new(database!(), "");
    let count = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'mnemon' AND c.relispartition AND c.relkind = 'r'";
    assert_eq!(rows(&partitioned.0.url(), count), ["64"]);
}
