//! Makes a small file of the current SQLite format, to be kept under `tests/fixtures` as the
//! example of its version: `cargo run -p mnemon-adapters --example make_fixture -- PATH`.

use std::path::PathBuf;

use mnemon_adapters::Sqlite;
use mnemon_core::{Batch, Ctx, Op, Policy, Record, Right, Store, Tenant, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path: PathBuf = std::env::args_os().nth(1).ok_or("name a file")?.into();
    let store = Sqlite::open(&path)?;
    let ctx = Ctx::new(
        Tenant::default(),
        "fixture",
        Time::from_millis(1_700_000_000_000)?,
    );
    let grant = Policy::default().check(&ctx, Right::Write)?;
    let contents = [
        ("a", "Ann lives in Đà Nẵng"),
        ("b", "Ann drinks coffee"),
        ("a", "Ann moved to Huế"),
        ("b", "Ann prefers tea"),
        ("b", "Ann prefers tea, no sugar"),
    ];
    for (id, content) in contents {
        let mut record = Record::note(id.parse()?, &ctx, content);
        record.owner.user = Some("ann".to_owned());
        record.tags = vec!["fixture".to_owned()];
        if id == "b" {
            record.derived_from = vec!["a".parse()?];
        }
        futures::executor::block_on(store.apply(&grant, Batch::of(Op::put(record))))?;
    }
    Ok(())
}
