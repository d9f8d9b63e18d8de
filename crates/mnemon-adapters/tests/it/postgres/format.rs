//! A database of every version is kept as SQL, and opens.

use mnemon_core::{Batch, Filter, Op, Probe, QueryTerm, Viewer};

use super::{database, note, rows};
use crate::kit::{everything, grant, open, open_backend, wait};

/// What `pg_dump` made of a database of each version: three records, of which one was updated and
/// one deleted, a link, a receipt and vectors.
const FIXTURES: [&str; 4] = [
    include_str!("../../fixtures/postgres-v1.sql"),
    include_str!("../../fixtures/postgres-v2.sql"),
    include_str!("../../fixtures/postgres-v3.sql"),
    include_str!("../../fixtures/postgres-v4.sql"),
];

#[test]
fn databases_of_every_version_open() {
    for (number, fixture) in FIXTURES.iter().enumerate() {
        let database = database!();
        database.run(fixture);
        let store = open(&database.url());
        let records = everything(store.as_ref());
        let contents: Vec<&str> = records.iter().map(|it| it.content.as_str()).collect();
        assert_eq!(
            contents,
            ["tea at nine", "Ann prefers green tea"],
            "{number}"
        );
        let tally = wait(store.tally(&grant())).unwrap();
        assert_eq!((tally.records(), tally.history, tally.seq), (2, 3, 5));
        // A short list of new words made writes slow.
        let limits = "SELECT count(reloptions) FROM pg_class WHERE relname = 'search_words'";
        assert_eq!(rows(&database.url(), limits), ["0"], "{number}");
        // Its columns find the records, also those for one user.
        let backend = open_backend(&format!("{}?index=database&index_exact=0", database.url()));
        let probe = Probe {
            terms: QueryTerm::words_of("green tea"),
            ..Probe::new(Filter::seen_by(Viewer::user("ann")), 5)
        };
        let found = wait(backend.index.find(&grant(), &probe)).unwrap().matches;
        assert_eq!(found.len(), 2, "{found:?}");
        wait(store.apply(&grant(), Batch::of(Op::append(note("new"))))).unwrap();
        let gone = wait(store.apply(&grant(), Batch::of(Op::delete("a".parse().unwrap()))));
        assert_eq!(gone.unwrap().cascaded.len(), 1, "the link is kept");
        let examination = mnemon_adapters::examine(&database.url()).unwrap();
        assert!(examination.is_clean(), "{examination:?}");
        // A new version needs a fixture of its own.
        let mut findings = examination.findings.iter();
        let format = findings.find(|finding| finding.check == "format").unwrap();
        assert_eq!(format.detail, format!("version {}", FIXTURES.len()));
    }
}

/// Up to version 3 an index had every vector from the moment when it was written, which made writes
/// slow.
#[test]
fn an_index_of_all_vectors_is_dropped() {
    let database = database!();
    let vector = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
    if rows(&database.url(), vector).is_empty() {
        return;
    }
    database.run(FIXTURES[2]);
    database.run(
        "CREATE EXTENSION vector;
         ALTER TABLE mnemon.search ADD COLUMN near halfvec;
         CREATE INDEX search_near_1 ON mnemon.search
            USING hnsw ((near::halfvec(256)) halfvec_cosine_ops) WHERE model = 1;",
    );
    let left = "SELECT count(to_regclass('mnemon.search_near_1'))";
    assert_eq!(rows(&database.url(), left), ["1"]);
    drop(open(&database.url()));
    assert_eq!(rows(&database.url(), left), ["0"]);
}

/// A list of one agent's records or of one kind reads no others, however many there are.
#[test]
fn lists_of_an_agent_or_a_kind_enter_an_index() {
    let database = database!();
    let store = open(&database.url());
    wait(store.apply(&grant(), Batch::of(Op::append(note("first"))))).unwrap();
    database.run(
        "INSERT INTO mnemon.records (tenant, seq, id, version, commit_seq, at, actor, cause, scope,
            kind, namespace, agent_id, importance, created, doc)
         SELECT tenant, 1000 + n, 'id' || n, 1, 1000 + n, at, actor, cause, scope,
            CASE n WHEN 1 THEN 'skill' ELSE kind END, namespace,
            CASE n WHEN 2 THEN 'coder' ELSE 'other' END, importance, n, doc
         FROM mnemon.records, generate_series(1, 5000) n;
         ANALYZE mnemon.records;",
    );
    for (condition, index) in [
        ("agent_id = 'coder'", "records_agent"),
        (
            "kind || '' = ANY(ARRAY['skill']) AND kind = 'skill'",
            "records_kind",
        ),
    ] {
        let sql = format!(
            "EXPLAIN SELECT doc FROM mnemon.records
             WHERE tenant = (SELECT min(num) FROM mnemon.tenants) AND {condition}
             ORDER BY created DESC, seq DESC LIMIT 51"
        );
        let plan = rows(&database.url(), &sql).join("\n");
        assert!(plan.contains(index), "{plan}");
        assert!(!plan.contains("Sort"), "{plan}");
    }
}
