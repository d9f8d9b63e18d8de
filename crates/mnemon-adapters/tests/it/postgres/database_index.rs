//! The index inside the database passes the suites of the index in memory, however candidates are
//! chosen.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::{
    Backend, Batch, Embedding, Filter, Match, Op, Owner, Probe, QueryTerm, Record, Viewer,
};
use mnemon_testkit::Fixture;

use super::{Database, database, note, rows};
use crate::kit::{grant, open_backend, rounds, wait};

/// A database of which searches read the index in it.
struct InDatabase {
    database: Database,
    parameters: &'static str,
}

/// All records are compared if they are few.
const EXACT: &str = "index=database";
/// Candidates are looked up by words and vectors, however few records there are.
const LOOKED_UP: &str = "index=database&index_exact=0";
/// The same without pgvector.
const BY_WORDS: &str = "index=database&index_exact=0&pgvector=off";

impl InDatabase {
    fn new(database: Database, parameters: &'static str) -> Self {
        Self {
            database,
            parameters,
        }
    }

    fn url(&self) -> String {
        let url = self.database.url();
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}{}", self.parameters)
    }

    fn backend(&self) -> Backend {
        open_backend(&self.url())
    }
}

#[async_trait]
impl Fixture for InDatabase {
    async fn open(&self) -> Backend {
        self.backend()
    }
}

mnemon_testkit::index_conformance!(exact, InDatabase::new(database!(), EXACT));
mnemon_testkit::index_conformance!(looked_up, InDatabase::new(database!(), LOOKED_UP));
mnemon_testkit::index_conformance!(by_words, InDatabase::new(database!(), BY_WORDS));

fn agrees(parameters: &'static str) {
    let fresh = || InDatabase::new(Database::fresh().unwrap(), parameters);
    mnemon_testkit::oracle::check_against_ram(fresh, rounds(80, 12));
}

#[test]
fn the_database_index_agrees_with_the_reference() {
    drop(database!());
    agrees(EXACT);
}

#[test]
fn the_looked_up_candidates_agree_with_the_reference() {
    drop(database!());
    agrees(LOOKED_UP);
}

fn words(query: &str, filter: Filter) -> Probe {
    Probe {
        terms: QueryTerm::words_of(query),
        ..Probe::new(filter, 10)
    }
}

fn find(backend: &Backend, probe: &Probe) -> Vec<Match> {
    wait(backend.index.find(&grant(), probe)).unwrap().matches
}

fn put(backend: &Backend, records: Vec<(Record, Option<Embedding>)>) {
    let mut batch = Batch::default();
    for (record, vector) in records {
        let id = record.id.clone();
        batch.vectors.extend(vector.map(|vector| (id, vector)));
        batch.ops.push(Op::append(record));
    }
    wait(backend.store.apply(&grant(), batch)).unwrap();
}

#[test]
fn the_size_of_a_tenant_decides_which_index_is_asked() {
    let database = database!();
    let open = |query: &str| open_backend(&format!("{}?{query}", database.url()));
    put(&open("index=auto"), vec![(note("green tea"), None)]);
    // Only the index in the database looks words up by these keys and draws samples.
    database.run("UPDATE mnemon.search SET words = '{}', draw = 2147483647");
    let probe = words("tea", Filter::all_of_tenant());
    for (query, matches) in [
        ("", 1),
        ("index=memory&index_mb=0", 1),
        ("index_mb=0&index_exact=0", 0),
        ("index=database&index_exact=0", 0),
    ] {
        assert_eq!(find(&open(query), &probe).len(), matches, "{query}");
    }
}

/// PostgreSQL puts new words on a list, and every search reads the list.
#[test]
fn searches_move_new_words_into_their_index() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    let (backend, url) = (place.backend(), place.database.url());
    let pages_moved_now = "SELECT gin_clean_pending_list('mnemon.search_words')";
    let probe = words("tea", Filter::all_of_tenant());
    put(&backend, vec![(note("green tea"), None)]);
    assert_eq!(
        rows(&url, pages_moved_now),
        ["1"],
        "a write does not move them"
    );
    put(&backend, vec![(note("black tea"), None)]);
    assert_eq!(find(&backend, &probe).len(), 2);
    let is_done = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
        AND state = 'idle' AND query LIKE 'SELECT gin_clean_pending_list(c.%'";
    let since = Instant::now();
    while rows(&url, is_done).is_empty() {
        assert!(
            since.elapsed().as_secs() < 60,
            "the search did not start it"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(rows(&url, pages_moved_now), ["0"]);
    assert_eq!(find(&backend, &probe).len(), 2);
}

#[test]
fn records_of_others_do_not_change_scores() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    let backend = place.backend();
    let of = |user: &str, content: &str| {
        let mut record = note(content);
        record.owner.user = Some(user.to_owned());
        (record, None)
    };
    put(
        &backend,
        (0..20)
            .map(|number| of("ann", &format!("tea number {number}")))
            .chain([of("ann", "green tea"), (note("tea for all"), None)])
            .collect(),
    );
    let seen = Filter::seen_by(Viewer::user("ann"));
    for filter in [
        seen.clone(),
        Filter {
            owner: Owner {
                user: Some("ann".to_owned()),
                ..Owner::default()
            },
            ..seen
        },
    ] {
        let probe = words("green tea", filter);
        let before = find(&backend, &probe);
        assert!(before.len() > 1);
        let others = (0..100).map(|number| of("bob", &format!("green tea and {number}")));
        put(&backend, others.collect());
        assert_eq!(find(&backend, &probe), before);
    }
}

/// The number of a conversation is a hash of its audience and session. Bob names a session so that it
/// has the number of Ann's.
#[test]
fn a_conversation_with_the_number_of_another_audience_has_neighbours_of_its_own() {
    for parameters in [LOOKED_UP, EXACT] {
        let place = InDatabase::new(database!(), parameters);
        let backend = place.backend();
        let said = |user: &str, content: &str| {
            let mut record = note(content);
            record.owner.user = Some(user.to_owned());
            record.owner.session = Some(format!("session of {user}"));
            (record, None)
        };
        put(
            &backend,
            vec![
                said("ann", "the secret plan"),
                said("bob", "green tea"),
                said("ann", "a secret tea"),
            ],
        );
        let seen = || Filter::seen_by(Viewer::user("bob"));
        let before = find(&backend, &words("green tea", seen()));
        assert_eq!(before.len(), 1);
        let same = "WITH changed AS (UPDATE mnemon.search SET conversation = (
                SELECT min(conversation) FROM mnemon.search WHERE audience = 'user:ann')
            WHERE audience = 'user:bob' AND conversation IS NOT NULL RETURNING 1)
            SELECT count(*) FROM changed";
        assert_eq!(rows(&place.database.url(), same), ["1"]);
        assert_eq!(find(&backend, &words("green tea", seen())), before);
        assert_eq!(find(&backend, &words("secret plan", seen())), []);
    }
}

/// A vector that is the same for the same number.
fn vector(number: u64) -> Embedding {
    let mut state = number + 1;
    let values = (0..16).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    });
    Embedding {
        model: ModelId {
            name: "numbers".to_owned(),
            dimension: 16,
        },
        vector: values.collect(),
    }
}

#[test]
fn the_index_of_vectors_is_built_when_it_is_needed() {
    let database = database!();
    let place = InDatabase::new(database, LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let backend = place.backend();
    put(&backend, numbered(0..300));
    let probe = nearest(7);
    let memory = open_backend(&format!("{}?index=memory", place.database.url()));
    let ids = |matches: Vec<Match>| matches.into_iter().map(|it| it.id).collect::<Vec<_>>();
    let expected = ids(find(&memory, &probe));
    let since = Instant::now();
    while !has_index(&place.database.url()) {
        // Without it, vectors are compared one by one.
        assert_eq!(ids(find(&backend, &probe)), expected);
        assert!(since.elapsed().as_secs() < 60, "it is not built");
    }
    assert_eq!(ids(find(&backend, &probe)), expected);
    let said = vectors_finding(&place.url());
    assert!(said.starts_with("pgvector 0."), "{said}");
}

/// Notes with the vectors of these numbers.
fn numbered(numbers: std::ops::Range<u64>) -> Vec<(Record, Option<Embedding>)> {
    let notes = numbers.map(|it| (note(&format!("note {it}")), Some(vector(it))));
    notes.collect()
}

/// The five records nearest to the vector of this number.
fn nearest(number: u64) -> Probe {
    Probe {
        vectors: vec![vector(number)],
        ..Probe::new(Filter::all_of_tenant(), 5)
    }
}

#[test]
fn neighbours_of_the_nearest_are_found_as_in_memory() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    let backend = place.backend();
    let mut records = numbered(0..60);
    for (number, (record, _)) in records.iter_mut().enumerate() {
        record.owner.session = Some(format!("s{}", number / 20));
    }
    put(&backend, records);
    let memory = open_backend(&format!("{}?index=memory", place.database.url()));
    let mut neighbours = 0;
    for number in [7, 19, 40, 1000] {
        let probe = Probe {
            depth: 2,
            ..nearest(number)
        };
        let expected = find(&memory, &probe);
        neighbours += expected.len() - 2;
        let scores = |found: Vec<Match>| {
            let scores = found.into_iter().map(|it| (it.id, it.meaning));
            scores.collect::<Vec<_>>()
        };
        assert_eq!(scores(find(&backend, &probe)), scores(expected), "{number}");
    }
    assert!(neighbours > 3, "{neighbours}");
}

/// How many vectors are not in the index of their tenant.
fn unindexed(url: &str) -> usize {
    let sql = "SELECT count(*) FROM mnemon.search WHERE NOT indexed";
    rows(url, sql)[0].parse().unwrap()
}

/// Searches until all vectors but `left` are in the index, and compares every answer with that of the
/// index in memory.
fn until_indexed(place: &InDatabase, backend: &Backend, left: usize) {
    let url = place.database.url();
    let memory = open_backend(&format!("{url}?index=memory"));
    let since = Instant::now();
    loop {
        let is_done = has_index(&url) && unindexed(&url) == left;
        for number in [7, 305, 1000] {
            let probe = nearest(number);
            let ids = |backend: &Backend| {
                let matches = find(backend, &probe).into_iter();
                matches.map(|it| it.id).collect::<Vec<_>>()
            };
            assert_eq!(ids(backend), ids(&memory), "{number}");
        }
        if is_done {
            return;
        }
        assert!(since.elapsed().as_secs() < 60, "{}", unindexed(&url));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn vectors_come_into_their_index_after_they_were_written() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let (backend, url) = (place.backend(), place.database.url());
    put(&backend, numbered(0..300));
    assert_eq!(unindexed(&url), 300, "a write is slow if it adds them");
    until_indexed(&place, &backend, 0);
    put(&backend, numbered(300..400));
    until_indexed(&place, &backend, 0);
    // A record gets another vector: it is found by the new one at once.
    let first = rows(&url, "SELECT min(seq) FROM mnemon.search")[0]
        .parse()
        .unwrap();
    let given = vec![(first, vector(1000))];
    assert_eq!(wait(backend.store.embed(&grant(), given)).unwrap(), 1);
    until_indexed(&place, &backend, 0);
}

/// The answers would be the same if all vectors were compared, but slower.
#[test]
fn searches_enter_the_indexes_of_vectors() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let (backend, url) = (place.backend(), place.database.url());
    put(&backend, numbered(0..2000));
    until_indexed(&place, &backend, 0);
    let entered = "SELECT count(*) FROM pg_stat_user_indexes WHERE idx_scan > 5
         AND indexrelname IN ('search_nearest_1_1', 'search_unindexed')";
    let probe = nearest(7);
    let since = Instant::now();
    // The database counts with a delay.
    while rows(&url, entered) != ["2"] {
        assert_eq!(find(&backend, &probe).len(), 5);
        assert!(since.elapsed().as_secs() < 60, "all vectors are compared");
    }
}

/// An index for all tenants would pass by the vectors of the larger one, and give up.
#[test]
fn the_index_of_a_tenant_has_no_vectors_of_others() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let (backend, url) = (place.backend(), place.database.url());
    put(&backend, numbered(0..50));
    until_indexed(&place, &backend, 0);
    let pages = "SELECT pg_relation_size('mnemon.search_nearest_1_1')";
    let before = rows(&url, pages);
    // Those of the other tenant are copies of these, and as near.
    let columns = "seq, terms, model, scale, codes, audience, created, draw, words, indexed";
    place.database.run(&format!(
        "INSERT INTO mnemon.tenants (name) VALUES ('larger');
         INSERT INTO mnemon.search (tenant, near, {columns})
         SELECT t.num, s.near, s.seq + 1000 * copy, {after} FROM mnemon.search s
            JOIN mnemon.tenants t ON t.name = 'larger', generate_series(1, 100) copy",
        after = columns.trim_start_matches("seq, ")
    ));
    assert_eq!(rows(&url, pages), before);
    until_indexed(&place, &backend, 0);
}

#[test]
fn no_index_is_built_if_there_are_too_many() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let (backend, url) = (place.backend(), place.database.url());
    put(&backend, numbered(0..50));
    place.database.run(
        "DO $$ BEGIN
            FOR other IN 2..101 LOOP
                EXECUTE format('CREATE INDEX search_nearest_1_%s ON mnemon.search (seq)
                    WHERE tenant = %s', other, other);
            END LOOP;
         END $$",
    );
    let probe = nearest(7);
    for _ in 0..20 {
        assert_eq!(find(&backend, &probe).len(), 5);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(unindexed(&url), 50);
    let said = vectors_finding(&place.url());
    assert!(said.contains("50 vectors are in no index"), "{said}");
    assert!(!has_index(&url));
    place.database.run("DROP INDEX mnemon.search_nearest_1_2");
    until_indexed(&place, &backend, 0);
}

#[test]
fn a_record_that_is_being_changed_does_not_hold_up_the_index() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let (backend, url) = (place.backend(), place.database.url());
    put(&backend, numbered(0..300));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let changing = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let lock = "BEGIN; SELECT 1 FROM mnemon.search ORDER BY seq LIMIT 1 FOR UPDATE";
        client.batch_execute(lock).await.unwrap();
        client
    });
    let since = Instant::now();
    while unindexed(&url) > 1 {
        let probe = nearest(7);
        find(&backend, &probe);
        assert!(since.elapsed().as_secs() < 60, "it waits");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(changing);
    until_indexed(&place, &backend, 0);
}

#[test]
fn a_search_does_not_rely_on_what_the_last_one_knew() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    let backend = place.backend();
    let notes = (0..200).map(|number| (note(&format!("note {number}")), None));
    put(&backend, notes.collect());
    let probe = Probe {
        vectors: vec![vector(7)],
        ..words("note", Filter::all_of_tenant())
    };
    assert_eq!(find(&backend, &probe).len(), 10);
    // The first vector of its model: the statistics of words still hold.
    let near = note("of another kind");
    let id = near.id.clone();
    put(&backend, vec![(near, Some(vector(7)))]);
    let probe = Probe {
        terms: Vec::new(),
        ..probe
    };
    let found = find(&backend, &probe).into_iter().map(|it| it.id);
    assert_eq!(found.collect::<Vec<_>>(), [id]);
}

#[test]
fn an_index_that_another_server_did_not_complete_is_built() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let (backend, url) = (place.backend(), place.database.url());
    put(&backend, numbered(0..300));
    let probe = nearest(7);
    // The lock of the other server, which has begun and then dies.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let other = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let lock = "SELECT pg_advisory_lock(x'4d4e454e00000001'::bigint)";
        client.batch_execute(lock).await.unwrap();
        client
    });
    find(&backend, &probe);
    let said = vectors_finding(&place.url());
    assert!(
        said.contains("300 vectors are not in their index yet"),
        "{said}"
    );
    drop(other);
    let since = Instant::now();
    while !has_index(&url) {
        find(&backend, &probe);
        assert!(since.elapsed().as_secs() < 60, "it is not built");
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = vectors_finding(&place.url());
    assert!(!said.contains("not in their index"), "{said}");
}

/// Whether the index of the first model and the first tenant is complete.
fn has_index(url: &str) -> bool {
    let sql = "SELECT 1 FROM pg_index WHERE indisvalid
         AND indexrelid = to_regclass('mnemon.search_nearest_1_1')";
    !rows(url, sql).is_empty()
}

/// The tests also run on a server without it.
fn has_pgvector(place: &InDatabase) -> bool {
    let sql = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
    !rows(&place.database.url(), sql).is_empty()
}

fn vectors_finding(url: &str) -> String {
    let findings = mnemon_adapters::examine(url).unwrap().findings;
    let vectors = findings.into_iter().find(|it| it.check == "vectors");
    vectors.unwrap().detail
}

#[test]
fn pgvector_that_comes_after_the_records_is_used() {
    let place = InDatabase::new(database!(), LOOKED_UP);
    if !has_pgvector(&place) {
        return;
    }
    let url = place.database.url();
    let earlier = open_backend(&format!("{url}?{BY_WORDS}"));
    put(&earlier, numbered(0..300));
    let memory = open_backend(&format!("{url}?index=memory"));
    let probe = nearest(7);
    let ids = |backend: &Backend| {
        let matches = find(backend, &probe).into_iter();
        matches.map(|it| it.id).collect::<Vec<_>>()
    };
    // This start makes the column, which the server that runs already does not fill.
    let later = place.backend();
    put(&earlier, vec![(note("the same again"), Some(vector(7)))]);
    assert_eq!(ids(&later), ids(&memory));
    let said = vectors_finding(&url);
    assert!(said.contains("301 vectors are not in its column"), "{said}");
    assert!(!has_index(&url));
    let upkeep = |limit| wait(later.store.upkeep(&grant(), limit)).unwrap();
    assert!(upkeep(0).more && upkeep(100).more && !upkeep(201).more);
    let said = vectors_finding(&url);
    assert!(
        said.starts_with("pgvector 0.") && !said.contains("not in"),
        "{said}"
    );
    let since = Instant::now();
    while !has_index(&url) {
        assert_eq!(ids(&later), ids(&memory));
        assert!(since.elapsed().as_secs() < 60, "it is not built");
    }
    assert_eq!(ids(&later), ids(&memory));
    // A vector that is not in the column is found, also while the index is there.
    put(&earlier, vec![(note("once more"), Some(vector(7)))]);
    assert_eq!(ids(&later), ids(&memory));
    assert!(!upkeep(10).more);
    assert_eq!(ids(&later), ids(&memory));
}

#[test]
fn doctor_says_that_pgvector_is_not_used() {
    let place = InDatabase::new(database!(), BY_WORDS);
    drop(place.backend());
    let (reason, advice) = match has_pgvector(&place) {
        true => ("the tables do not use pgvector", "without `pgvector=off`"),
        false => ("the server lacks pgvector", "install it there"),
    };
    let said = vectors_finding(&place.url());
    assert!(said.contains(reason) && said.contains(advice), "{said}");
}
