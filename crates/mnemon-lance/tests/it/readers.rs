//! Other programs read the table: `./scripts/lance` obtains them from PyPI.

use std::path::Path;
use std::process::Command;

use mnemon_adapters::external_index::IndexServer;
use mnemon_core::{Batch, Op, Store};
use mnemon_testkit::index_operations::put;
use mnemon_testkit::make::{Remade, at, grant, note};

use crate::{Indexed, found};

#[tokio::test]
async fn pandas_and_duckdb_read_the_table() {
    let Some(python) = std::env::var_os("MNEMON_LANCE_PYTHON") else {
        eprintln!("SKIPPED: ./scripts/lance runs this test with a Python that has pylance");
        return;
    };
    let indexed = Indexed::new();
    put(&*indexed.store, "tea", "green tea").await;
    put(&*indexed.store, "milk", "cold milk").await;
    let mut record = note("cup").saying("a cup");
    record.owner.user = Some("ann".to_owned());
    record.tags = vec!["Kitchen".to_owned()];
    let batch = Batch::of(Op::put(record));
    indexed.store.apply(&grant(at(0)), batch).await.unwrap();
    assert_eq!(found(&indexed.index(), "tea").await.unwrap(), 1);
    let generation = indexed.server().current().await.unwrap();
    let table = indexed.folder().join(generation.0).join("documents.lance");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_table.py");
    let output = Command::new(python)
        .arg(script)
        .arg(table)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("pandas: 3 documents, 2 vectors of 64"),
        "{shown}"
    );
    assert!(
        shown.contains("duckdb: ann has cup with kitchen"),
        "{shown}"
    );
}
