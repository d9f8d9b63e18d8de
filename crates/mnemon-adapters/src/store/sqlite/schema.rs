//! The file's format: what is in it, how it is opened, how an older one becomes the current one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mnemon_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::errors::{At, patience, store_error};
use super::identity::{FileId, FileIds};
use super::tables::count;
use super::{embeddings, sums};
use crate::files::{make_store_folder, parent, sync_folder};
use crate::private;
use crate::store::{beside, foreign, unavailable, write_failed};

/// `MNEM`: tells our files from other programs'.
pub(super) const APPLICATION_ID: i64 = 0x4d4e_454d;

/// Each step leads from one version of the format to the next; the last one is current. Steps are
/// never edited once they were released: a file of every version is kept under `tests/fixtures`.
pub(super) const MIGRATIONS: &[&[&str]] = &[
    &[V1],
    &[V2],
    &[V3],
    &[V4],
    &[V5, RECLOCK],
    &[V6_FEED, V6_SPEAKERS, V6_AUDIENCE],
    &[V7],
    &[V8],
];

/// A row's key is its tenant's number and, in the lower 40 bits, its change number, so that a
/// tenant's records lie together in the order they were written without an index for it.
pub(super) const SEQ_BITS: u32 = 40;

const V1: &str = "
CREATE TABLE tenants (
    num      INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,
    last_seq INTEGER NOT NULL DEFAULT 0,
    history  INTEGER NOT NULL DEFAULT 0
);
-- The current version of every record. doc is the canonical JSON; the other columns repeat what
-- rules and filters need of it.
CREATE TABLE records (
    key        INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    id         TEXT NOT NULL,
    scope      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    user       TEXT,
    agent      TEXT,
    session    TEXT,
    importance REAL NOT NULL,
    created    INTEGER NOT NULL,
    expires    INTEGER,
    version    INTEGER NOT NULL,
    commit_seq INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    cause      TEXT NOT NULL,
    doc        TEXT NOT NULL
);
CREATE UNIQUE INDEX records_id ON records (tenant, id);
CREATE INDEX records_created ON records (tenant, created);
CREATE INDEX records_user ON records (tenant, user, created) WHERE user IS NOT NULL;
CREATE INDEX records_session ON records (tenant, session, created) WHERE session IS NOT NULL;
CREATE INDEX records_expires ON records (tenant, expires, id) WHERE expires IS NOT NULL;
CREATE INDEX records_worth ON records (tenant, namespace, importance, created) WHERE kind = 'note';
-- Changes that are no longer the newest of their record: replaced versions, and deletions
-- (doc is NULL). replaced is when the next change that is kept came; a deletion's own time until
-- then. A deletion expires with the version that it deleted.
CREATE TABLE history (
    key        INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    commit_seq INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    cause      TEXT NOT NULL,
    replaced   INTEGER NOT NULL,
    expires    INTEGER,
    doc        TEXT
);
CREATE INDEX history_id ON history (tenant, id);
CREATE INDEX history_replaced ON history (tenant, replaced);
CREATE INDEX history_expires ON history (tenant, expires) WHERE expires IS NOT NULL;
-- What was derived from what, by the newest version of the derived record.
CREATE TABLE links (
    tenant  INTEGER NOT NULL,
    source  TEXT NOT NULL,
    derived TEXT NOT NULL,
    PRIMARY KEY (tenant, source, derived)
) WITHOUT ROWID;
CREATE INDEX links_derived ON links (tenant, derived);
CREATE TABLE receipts (
    tenant  INTEGER NOT NULL,
    key     TEXT NOT NULL,
    digest  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX receipts_at ON receipts (tenant, at);
-- How many records there are of which sort, so that nobody has to count.
CREATE TABLE tally (
    tenant    INTEGER NOT NULL,
    scope     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (tenant, scope, kind, namespace)
) WITHOUT ROWID;
";

/// What a record is found by, so that an index is loaded without analysing anything again.
const V2: &str = "
CREATE TABLE models (
    num       INTEGER PRIMARY KEY,
    name      TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    UNIQUE (name, dimension)
);
-- Beside each record of the same key: its analysed words, who said it, its tags (a line each), and
-- its vector as int8 codes times a scale, with the model that made it.
CREATE TABLE search (
    key     INTEGER PRIMARY KEY,
    terms   BLOB NOT NULL,
    speaker TEXT,
    tags    TEXT,
    model   INTEGER,
    scale   REAL,
    codes   BLOB
);
";

/// Vectors are given to records without a change of the records: this tells others that it happened.
const V3: &str = "
ALTER TABLE tenants ADD COLUMN embedded INTEGER NOT NULL DEFAULT 0;
";

/// The mark of the index that is saved beside the file; see [`super::snapshot_file`].
const V4: &str = "
ALTER TABLE tenants ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
";

/// Checksums of rows; see [`super::sums`], which fills them in. And the clock; see
/// [`mnemon_core::clock`].
const V5: &str = "
ALTER TABLE records ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE history ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE history ADD COLUMN replaced_sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE search ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE receipts ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
-- What the tenant knows of the clock.
ALTER TABLE tenants ADD COLUMN clock_trusted INTEGER;
ALTER TABLE tenants ADD COLUMN clock_suspect INTEGER;
";

/// A tenant without a time would believe any clock, and then expire by it: it goes by its newest
/// change.
pub(super) const RECLOCK: &str = "
UPDATE tenants SET clock_trusted = (
    SELECT at FROM (
        SELECT key, at FROM records WHERE tenant = tenants.num
        UNION ALL SELECT key, at FROM history WHERE tenant = tenants.num)
    ORDER BY key DESC LIMIT 1);
";

/// How many records each speaker had, until version 7.
const V6_SPEAKERS: &str = "
CREATE TABLE speakers (
    tenant INTEGER NOT NULL,
    first  TEXT NOT NULL,
    name   TEXT NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (tenant, first, name)
) WITHOUT ROWID;
";

/// Who may see a record, where that is not whom its owner implies.
const V6_AUDIENCE: &str = "
ALTER TABLE records ADD COLUMN audience TEXT;
";

/// What indexes follow the file by: see [`super::feed`].
const V6_FEED: &str = "
-- Records that left, as their numbers alone; the key counts removals and begins with the tenant's
-- number, as keys of records do.
CREATE TABLE removals (
    key INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
);
-- Of a vector that came after its record: its number among these, with the tenant's number.
ALTER TABLE search ADD COLUMN embedded INTEGER;
CREATE INDEX search_embedded ON search (embedded) WHERE embedded IS NOT NULL;
-- Finds records without a vector of a model, if there are any.
CREATE INDEX search_model ON search (model);
";

/// The index knows who speaks. The words of all records are analysed again; see
/// [`embeddings::analyse_again`].
const V7: &str = "
DROP TABLE speakers;
";

/// Lists by kind, by agent and of sessions read only their own records. All lists without an owner
/// merge the kinds, so that no index on the time alone is needed. The index on sessions has every
/// column that a list of conversations needs.
const V8: &str = "
DROP INDEX IF EXISTS records_created;
CREATE INDEX records_kind ON records (tenant, kind, created);
CREATE INDEX records_agent ON records (tenant, agent, created) WHERE agent IS NOT NULL;
DROP INDEX IF EXISTS records_session;
CREATE INDEX records_session ON records
    (tenant, session, created, key, kind, user, scope, expires) WHERE session IS NOT NULL;
";

/// The version from which every record has a row in `search`, made by the present analysis.
const ANALYSED_SINCE: i64 = 7;

/// The version that brought checksums.
pub(super) const SUMS_SINCE: i64 = 5;

/// An open database, and which files it was when it was opened.
pub(super) struct OpenFile {
    pub(super) connection: Connection,
    pub(super) ids: FileIds,
}

/// How often a file that is replaced while it is opened is opened again.
pub(super) const OPEN_TRIES: usize = 8;

/// Opens the file as [`open`] does, and says which file it is.
pub(super) fn open_known(path: &Path) -> Result<OpenFile, StoreError> {
    for _ in 0..OPEN_TRIES {
        create(path)?;
        let before = FileId::of(path);
        let connection = open(path)?;
        let ids = FileIds::of(path);
        if before.is_none() || before != ids.main {
            continue;
        }
        if ids.are_complete() {
            return Ok(OpenFile { connection, ids });
        }
        return Err(unavailable(
            path.display().to_string(),
            "its -wal or -shm file was removed while this process was using it; try again, or \
             restart the process",
            "the file was removed",
        ));
    }
    Err(never_stays(&path.display().to_string()))
}

/// The file was another one after each of [`OPEN_TRIES`].
pub(super) fn never_stays(place: &str) -> StoreError {
    let what = "the file is removed or replaced again and again while it is opened";
    unavailable(place, what, "another program changes it")
}

/// Makes an empty file that only its owner can read, if there is none. It and its folders survive a
/// power cut.
fn create(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        return Ok(());
    }
    let folder = parent(path);
    make_store_folder(folder).map_err(|error| {
        let place = path.display().to_string();
        unavailable(place, "its folder cannot be created", error)
    })?;
    let failed = |error| write_failed(path, "the file cannot be created", error);
    match create_private(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
        // Another process may have made the folder, and may not have synced its parent yet.
        Ok(_) => sync_folder(folder)
            .and_then(|()| sync_folder(parent(folder)))
            .map_err(failed),
    }
}

/// Makes a new file that only its owner can read and write.
pub(super) fn create_private(path: &Path) -> io::Result<std::fs::File> {
    private::options().write(true).create_new(true).open(path)
}

/// Opens the file for writing, makes it if it is not there, and brings it to the current format.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let place = path.display().to_string();
    check_path(path, &place)?;
    if is_marked_read_only(path) {
        return Err(StoreError::ReadOnly { place });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = connect(path, flags, &place)?;
    if connection.is_readonly("main").at(&place)? {
        return Err(StoreError::ReadOnly { place });
    }
    // Freed space is overwritten with zeros, so that a purge leaves no copy behind. A migration
    // frees space, too: it writes every row anew.
    connection
        .execute_batch("PRAGMA secure_delete = ON")
        .at(&place)?;
    if version(&connection, &place)? < current() {
        migrate(&mut connection, &place)?;
    }
    use_wal(&connection, &place)?;
    let pragmas = "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
                   PRAGMA journal_size_limit = 16777216; PRAGMA cache_size = -16384;";
    connection.execute_batch(pragmas).at(&place)?;
    // The first read makes the shared memory, which is compared later.
    version(&connection, &place)?;
    Ok(connection)
}

/// Opens the file for reading only. It must be there.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let place = path.display().to_string();
    // Not SQLITE_OPEN_READ_ONLY: a reader of a WAL file takes part in its shared memory.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, flags, &place)?;
    // The writer checkpoints when it closes the file, and only after it has looked that the
    // write-ahead log is still the one that others use.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .at(&place)?;
    connection.execute_batch(READER).at(&place)?;
    Ok(connection)
}

const READER: &str = "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -16384; PRAGMA mmap_size = 1073741824;";

/// Opens a file that cannot be written, or whose folder cannot: on a read-only medium, or another
/// user's.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let place = path.display().to_string();
    check_path(path, &place)?;
    let (connection, found) = look(path)?;
    if found < current() {
        let what = format!(
            "it has format {found}, which has to become format {} before it can be used; copy it \
             to a folder that can be written and open the copy",
            current()
        );
        return Err(unavailable(place, what, "it is read-only"));
    }
    connection.execute_batch(READER).at(&place)?;
    Ok(connection)
}

/// Opens the file to look at it, without changing it, and says its version.
pub(super) fn look(path: &Path) -> Result<(Connection, i64), StoreError> {
    let place = path.display().to_string();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let log = std::fs::metadata(beside(path, "-wal"));
    let has_log = log.is_ok_and(|log| log.len() > 0);
    let opened = connect(path, flags, &place)
        .and_then(|connection| Ok((version(&connection, &place)?, connection)));
    let error = match opened {
        Ok((version, connection)) => return Ok((connection, version)),
        Err(error @ (StoreError::Unavailable { .. } | StoreError::ReadOnly { .. })) => error,
        Err(error) => return Err(error),
    };
    if !path.exists() {
        return Err(error);
    }
    if has_log {
        return Err(unavailable(
            place,
            "commits in its -wal file can only be read where it can be written; copy both files \
             to such a folder and open the copy",
            error,
        ));
    }
    // Nobody has it open, or there would be a log; so it does not change while it is read.
    let uri = immutable_uri(path);
    let connection = connect(&uri, flags | OpenFlags::SQLITE_OPEN_URI, &place)?;
    let version = version(&connection, &place)?;
    Ok((connection, version))
}

/// The file as a URI that promises SQLite that nobody changes it.
fn immutable_uri(path: &Path) -> PathBuf {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    PathBuf::from(uri)
}

/// The owner's mark counts even for those whom the system lets write regardless.
fn is_marked_read_only(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().readonly())
}

fn connect(path: &Path, flags: OpenFlags, place: &str) -> Result<Connection, StoreError> {
    let mut connection = Connection::open_with_flags(path, flags).at(place)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Otherwise the planner looks at bound values, and plans a statement anew for each of them.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .at(place)?;
    connection.busy_handler(Some(wait_a_little)).at(place)?;
    Ok(connection)
}

/// SQLite's own handler backs off to 100 ms and lets a busy neighbour starve us. Short waits of
/// slightly different length give everyone a turn.
pub(super) fn wait_a_little(tries: i32) -> bool {
    if !patience::is_any() {
        return false;
    }
    let tries = u64::try_from(tries).unwrap_or(0);
    let jitter = u64::from(std::process::id()).wrapping_mul(tries + 7) % 1000;
    let wait = Duration::from_micros(500 + jitter + 100 * tries.min(30));
    std::thread::sleep(wait);
    patience::is_left(tries == 0)
}

/// A database is at least one page of 512 bytes; SQLite takes a shorter file for an empty one.
const SMALLEST: u64 = 512;

/// What can be told apart before SQLite touches the file. It is not opened: see [`super::identity`].
pub(super) fn check_path(path: &Path, place: &str) -> Result<(), StoreError> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return create(path);
    };
    if metadata.is_dir() {
        return Err(foreign(place, "it is a folder; name a file in it"));
    }
    if !metadata.is_file() {
        // Opening a pipe would wait for somebody to write to it.
        return Err(foreign(
            place,
            "it is a pipe, a socket or a device; name a regular file",
        ));
    }
    if (1..SMALLEST).contains(&metadata.len()) {
        return Err(foreign(place, "the file is not an SQLite database"));
    }
    Ok(())
}

/// The version of the current format.
pub(super) fn current() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The file's version: 0 for an empty file; an error for another program's or a newer one.
pub(super) fn version(connection: &Connection, place: &str) -> Result<i64, StoreError> {
    // One statement, one moment: another process may be making the file right now.
    let sql = "SELECT (SELECT application_id FROM pragma_application_id),
                      (SELECT user_version FROM pragma_user_version),
                      (SELECT count(*) FROM sqlite_schema),
                      (SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view'))";
    let (owner, found, tables, others): (i64, i64, i64, i64) = connection
        .query_row(sql, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .at(place)?;
    if others > 0 {
        // A file that came with a clone could change or copy every write that way.
        let what = "it has triggers or views, which Mnemon never makes";
        return Err(foreign(place, what));
    }
    if owner == APPLICATION_ID {
        if found > current() {
            return Err(StoreError::TooNew {
                place: place.to_owned(),
                found,
                known: current(),
            });
        }
        return Ok(found);
    }
    if owner == 0 && found == 0 && tables == 0 {
        return Ok(0);
    }
    let what = "it is an SQLite database of another program";
    Err(foreign(place, what))
}

/// Runs the missing steps in one transaction. Of several processes that find an old file at the
/// same time one does it and the others find it done.
fn migrate(connection: &mut Connection, place: &str) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .at(place)?;
    let from = usize::try_from(version(&transaction, place)?).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(from).flat_map(|step| *step) {
        transaction.execute_batch(step).at(place)?;
    }
    if count(from) < SUMS_SINCE {
        complete_history(&transaction).at(place)?;
        sums::fill(&transaction).at(place)?;
    }
    if count(from) < ANALYSED_SINCE {
        embeddings::analyse_again(&transaction).at(place)?;
        embeddings::analyse_missing(&transaction).at(place)?;
    }
    shorten_schema(&transaction).at(place)?;
    let mark = format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
        current()
    );
    transaction.execute_batch(&mark).at(place)?;
    transaction.commit().at(place)
}

/// SQLite keeps each statement of the schema as it was written. Without needless white space they
/// all fit on the file's first page: damage to any other page then leaves the tables known, so that
/// a repair can read them.
fn shorten_schema(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection
        .prepare("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY rowid")?;
    let rows = select.query_map([], |row| {
        let row: (String, String, String, i64, Option<String>) = row.try_into()?;
        Ok(row)
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    // Emptied first, because pages that rows share are not joined when the rows become shorter.
    connection.execute_batch("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema;")?;
    let mut insert = connection.prepare("INSERT INTO sqlite_schema VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (kind, name, table, root, sql) in rows {
        insert.execute(params![
            kind,
            name,
            table,
            root,
            sql.map(|sql| shorten(&sql))
        ])?;
    }
    connection.execute_batch("PRAGMA writable_schema = OFF")
}

/// A statement of the schema without needless white space. None of ours has a comment or quotes
/// white space; one that does was added by hand, and stays as it is.
fn shorten(sql: &str) -> String {
    let mut quoted = sql.split(['\'', '"', '`']).skip(1).step_by(2);
    let has_comment = sql.contains("--") || sql.contains("/*");
    if has_comment || quoted.any(|text| text.contains(char::is_whitespace)) {
        return sql.to_owned();
    }
    let mut short = String::with_capacity(sql.len());
    for word in sql.split_whitespace() {
        if !short.ends_with(['(', ')', ',']) && !word.starts_with(['(', ')', ',']) {
            short.push(' ');
        }
        short.push_str(word);
    }
    short.trim_start().to_owned()
}

/// Some files of format 2 were made before past versions could expire, and lack the column.
fn complete_history(connection: &Connection) -> rusqlite::Result<()> {
    let has_it =
        "SELECT EXISTS (SELECT 1 FROM pragma_table_info('history') WHERE name = 'expires')";
    if connection.query_row(has_it, [], |row| row.get(0))? {
        return Ok(());
    }
    connection.execute_batch(
        "ALTER TABLE history ADD COLUMN expires INTEGER;
         CREATE INDEX history_expires ON history (tenant, expires) WHERE expires IS NOT NULL;",
    )
}

/// Switching to WAL fails at once, without asking the busy handler, while another process does
/// the same; so we ask again.
fn use_wal(connection: &Connection, place: &str) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        });
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::Corrupt {
                    place: place.to_owned(),
                    what: format!("its journal mode is {mode} and cannot be made WAL"),
                });
            }
            Err(error) => {
                let busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
                if !busy || !wait_a_little(tries) {
                    return Err(store_error(place, error));
                }
                tries += 1;
            }
        }
    }
}
