//! Copying what can still be read of a damaged file into a new one.
//!
//! Rows are read in every way that can reach them: along the table in both directions, by each
//! index, and, when one of these walks came to an error, by the number of every change that there
//! can have been. Only rows that agree with their checksum are taken. What can be made from them
//! (links, counts, analysed words) is made again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use mnemon_core::{Cause, Record, StoreError, Time};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, Transaction, params, params_from_iter};

use super::backup;
use super::errors::At;
use super::health::{self, RECOUNT, RELINK};
use super::tables::{INSERT_PAST, INSERT_RECORD, insert_past, insert_record, key, seq};
use super::{embeddings, schema, sums};
use crate::store::{corrupt, free_name};

/// Change numbers that are looked up one by one, at the most.
const PROBES: u64 = 10_000_000;
/// Lost records that are named.
const NAMED: usize = 20;

/// What is known of the damaged file.
struct Source {
    connection: Connection,
    has_sums: bool,
}

/// What was taken, and what was met but could not be.
#[derive(Default)]
struct Haul {
    records: BTreeSet<i64>,
    history: BTreeSet<i64>,
    /// Rows that were met and are damaged: their ids, as far as these could be read.
    damaged: BTreeMap<i64, String>,
    /// The names that the records themselves give to their tenants' numbers.
    tenants: HashMap<i64, String>,
    /// Whether a walk ended in an error.
    broken: bool,
}

/// Which of the two tables with checksums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Records,
    History,
}

/// Writes what can be read into a new file, puts it in the place of the damaged one, and says what
/// was kept and what was lost.
pub(super) fn salvage(path: &Path) -> Result<Vec<String>, StoreError> {
    let place = path.display().to_string();
    // Nobody writes while it is copied: what they wrote would be missing in the new file.
    let held = backup::hold(path)?;
    let source = Source::open(path, &place)?;
    let new = backup::unfinished(path);
    let copied = copy(&source, &new);
    drop(source);
    let haul = match copied {
        Ok(haul) => haul,
        Err(error) => {
            backup::discard(&new);
            return Err(error);
        }
    };
    if haul.records.is_empty() && haul.history.is_empty() {
        backup::discard(&new);
        return Err(corrupt(
            place,
            "no record in it can be read; restore a backup with `mnemon restore FILE`, or move the \
             file away to start with an empty store",
        ));
    }
    let bad = free_name(path, ".bad");
    backup::replace(path, &new, Some(&bad), held)?;
    Ok(haul.report(&bad))
}

impl Haul {
    fn report(&self, bad: &Path) -> Vec<String> {
        let mut said = vec![format!(
            "copied {} records and {} past versions into a new file, and kept the damaged one as {}",
            self.records.len(),
            self.history.len(),
            bad.display()
        )];
        let lost = self
            .damaged
            .iter()
            .filter(|(key, _)| !self.records.contains(key) && !self.history.contains(key));
        let lost: Vec<&str> = lost.map(|(_, id)| id.as_str()).collect();
        if !lost.is_empty() {
            let named: Vec<&str> = lost.iter().take(NAMED).copied().collect();
            let more = lost.len() - named.len();
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            said.push(format!(
                "lost {} that do not match their checksums: {}{more}",
                lost.len(),
                named.join(", ")
            ));
        }
        if self.broken {
            said.push("records on pages that cannot be read at all are lost".to_owned());
        }
        said
    }

    /// The number of the tenant of this name, as far as it is known.
    fn number_of(&self, source: &Source, name: &str) -> Option<i64> {
        let met = self.tenants.iter().find(|(_, known)| *known == name);
        let met = met.map(|(number, _)| *number);
        met.or_else(|| {
            let mut named = tenants(source).into_iter();
            Some(named.find(|(_, known, _)| known == name)?.0)
        })
    }

    /// Copies a row that is whole, if it is new.
    fn keep(
        &mut self,
        table: Table,
        row: &sums::Row<'_>,
        replaced: i64,
        record: Option<&Record>,
        target: &Transaction<'_>,
    ) -> rusqlite::Result<()> {
        if let Some(record) = record {
            let tenant = row.key >> schema::SEQ_BITS;
            let name = record.tenant.as_str().to_owned();
            self.tenants.entry(tenant).or_insert(name);
        }
        if insert(table, row, replaced, record, target)? {
            self.taken(table).insert(row.key);
        }
        Ok(())
    }

    fn taken(&mut self, table: Table) -> &mut BTreeSet<i64> {
        match table {
            Table::Records => &mut self.records,
            Table::History => &mut self.history,
        }
    }
}

impl Source {
    fn open(path: &Path, place: &str) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).at(place)?;
        let version = schema::version(&connection, place);
        // One moment, if the damage allows it.
        let _ = connection.execute_batch("BEGIN");
        Ok(Self {
            connection,
            has_sums: version.map_or(true, |version| version >= schema::SUMS_SINCE),
        })
    }

    /// The statement that reads rows of the table under this condition, with the columns that
    /// [`health::check_record`] and [`health::check_past`] expect.
    fn select(&self, table: Table, rest: &str) -> String {
        let shared = sums::SHARED;
        let sum = if self.has_sums { "sum" } else { "0" };
        match table {
            // Not the tenants' names: that table may be damaged, too. Nor the last column, the
            // audience: the content says it, and a reader of the record does not need it.
            Table::Records => format!(
                "SELECT {shared}, {sum}, scope, kind, namespace, user, agent, session, importance,
                    created, CASE WHEN json_valid(doc) THEN json_extract(doc, '$.tenant') END
                 FROM records {rest}"
            ),
            Table::History => {
                let sum_of_time = if self.has_sums { "replaced_sum" } else { "0" };
                format!(
                    "SELECT {shared}, {sum}, replaced, {sum_of_time}, tenant FROM history {rest}"
                )
            }
        }
    }
}

fn copy(source: &Source, new: &Path) -> Result<Haul, StoreError> {
    let place = new.display().to_string();
    let mut target = schema::open(new)?;
    let transaction = target.transaction().at(&place)?;
    let mut haul = Haul::default();
    for table in [Table::Records, Table::History] {
        walk_all(source, table, &transaction, &mut haul).at(&place)?;
    }
    if haul.broken {
        probe(source, &transaction, &mut haul).at(&place)?;
    }
    copy_tenants(source, &transaction, &haul).at(&place)?;
    copy_derived(source, &transaction).at(&place)?;
    transaction.execute_batch(RELINK).at(&place)?;
    transaction.execute_batch(RECOUNT).at(&place)?;
    transaction.execute_batch(schema::RECLOCK).at(&place)?;
    transaction.commit().at(&place)?;
    target
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .at(&place)?;
    drop(target);
    Ok(haul)
}

/// Walks along the table in both directions, and by each of its indexes.
fn walk_all(
    source: &Source,
    table: Table,
    target: &Transaction<'_>,
    haul: &mut Haul,
) -> rusqlite::Result<()> {
    let walks: &[&str] = match table {
        Table::Records => &[
            "NOT INDEXED ORDER BY key",
            "NOT INDEXED ORDER BY key DESC",
            "INDEXED BY records_id",
            "INDEXED BY records_id ORDER BY tenant DESC, id DESC",
            // A file has one of the two: the first since version 8, the second before it.
            "INDEXED BY records_kind",
            "INDEXED BY records_kind ORDER BY tenant DESC, kind DESC, created DESC",
            "INDEXED BY records_created",
            "INDEXED BY records_created ORDER BY tenant DESC, created DESC",
        ],
        Table::History => &[
            "NOT INDEXED ORDER BY key",
            "NOT INDEXED ORDER BY key DESC",
            "INDEXED BY history_id",
            "INDEXED BY history_replaced",
        ],
    };
    for (number, rest) in walks.iter().enumerate() {
        let sql = source.select(table, rest);
        let whole = walk(source, table, &sql, [], target, haul)?;
        haul.broken |= !whole;
        // The table itself is whole: the indexes lead nowhere else.
        if whole && number == 0 {
            break;
        }
    }
    Ok(())
}

/// Takes the rows of a statement until it ends or fails. Whether it came to its end. Errors of the
/// new file are errors; those of the damaged one are expected.
fn walk(
    source: &Source,
    table: Table,
    sql: &str,
    values: impl rusqlite::Params,
    target: &Transaction<'_>,
    haul: &mut Haul,
) -> rusqlite::Result<bool> {
    let Ok(mut select) = source.connection.prepare_cached(sql) else {
        return Ok(false);
    };
    let Ok(mut rows) = select.query(values) else {
        return Ok(false);
    };
    loop {
        match rows.next() {
            Ok(Some(row)) => take(source, table, row, target, haul)?,
            Ok(None) => return Ok(true),
            Err(_) => return Ok(false),
        }
    }
}

/// Copies a row if its content is whole and it is new.
fn take(
    source: &Source,
    table: Table,
    row: &Row<'_>,
    target: &Transaction<'_>,
    haul: &mut Haul,
) -> rusqlite::Result<()> {
    let Ok(met) = row.get::<_, i64>(0) else {
        haul.broken = true;
        return Ok(());
    };
    if haul.taken(table).contains(&met) {
        return Ok(());
    }
    let checked = match (source.has_sums, table) {
        (true, Table::Records) => health::check_record(row).map(Some),
        (true, Table::History) => health::check_past(row),
        (false, _) => health::check_unsigned(row),
    };
    let replaced = match table {
        Table::Records => Ok(0),
        Table::History => row.get::<_, i64>(10),
    };
    let columns = sums::Row::of(|column| row.get_ref(column));
    let is_kept = match (checked, columns, replaced) {
        (Ok(record), Ok(columns), Ok(replaced)) => {
            haul.keep(table, &columns, replaced, record.as_ref(), target)?;
            true
        }
        (Err(_), _, replaced) if source.has_sums => {
            rebuild(source, table, row, replaced.ok(), target, haul)?
        }
        _ => false,
    };
    if !is_kept {
        let id = row.get::<_, String>(1).unwrap_or_default();
        haul.damaged.insert(met, id.escape_debug().to_string());
    }
    Ok(())
}

/// The content agrees with its checksum, but a column beside it does not: what the content says is
/// taken from there, and the rest as far as it can be. Whether there was any content.
fn rebuild(
    source: &Source,
    table: Table,
    row: &Row<'_>,
    replaced: Option<i64>,
    target: &Transaction<'_>,
    haul: &mut Haul,
) -> rusqlite::Result<bool> {
    let content = || {
        let doc: String = row.get(8).ok()?;
        let record = sums::record("", &doc, row.get(9).ok()?).ok()?;
        // The key may be what is damaged, so the name that the content gives counts first.
        let tenant = haul.number_of(source, record.tenant.as_str());
        let tenant = tenant.or_else(|| Some(row.get::<_, i64>(0).ok()? >> schema::SEQ_BITS))?;
        Some((doc, record, tenant))
    };
    let Some((doc, record, tenant)) = content() else {
        return Ok(false);
    };
    let at = row.get(4).unwrap_or(record.updated.millis());
    let actor: Option<String> = row.get(5).ok();
    let cause = row.get::<_, String>(6).ok();
    let cause = cause.filter(|cause| cause.parse::<Cause>().is_ok());
    let columns = sums::Row {
        key: key(tenant, record.seq),
        id: record.id.as_str(),
        version: record.version.cast_signed(),
        commit: row.get(3).unwrap_or(record.seq.cast_signed()),
        at,
        actor: actor.as_deref().unwrap_or("unknown"),
        cause: &cause.unwrap_or_else(|| Cause::Written.to_string()),
        expires: record.expires.map(Time::millis),
        doc: Some(doc.as_bytes()),
    };
    haul.keep(
        table,
        &columns,
        replaced.unwrap_or(at),
        Some(&record),
        target,
    )?;
    Ok(true)
}

/// Puts a row with its checksums into the new file. Whether it was new to the table.
fn insert(
    table: Table,
    row: &sums::Row<'_>,
    replaced: i64,
    record: Option<&Record>,
    target: &Transaction<'_>,
) -> rusqlite::Result<bool> {
    let prepare = |sql: &str| target.prepare_cached(&sql.replacen("INSERT", "INSERT OR IGNORE", 1));
    let inserted = match (table, record) {
        (Table::History, _) => insert_past(&mut *prepare(INSERT_PAST)?, row, replaced)?,
        (Table::Records, Some(record)) => {
            insert_record(&mut *prepare(INSERT_RECORD)?, row, record)?
        }
        (Table::Records, None) => 0,
    };
    Ok(inserted > 0)
}

/// Looks up every change that there can have been, one by one: a page that is damaged only takes
/// its own rows along.
fn probe(source: &Source, target: &Transaction<'_>, haul: &mut Haul) -> rusqlite::Result<()> {
    let mut last: HashMap<i64, u64> = HashMap::new();
    let keys = haul.records.iter().chain(&haul.history);
    for key in keys.chain(haul.damaged.keys()) {
        let newest = last.entry(key >> schema::SEQ_BITS).or_default();
        *newest = (*newest).max(seq(*key));
    }
    for (num, _, last_seq) in tenants(source) {
        let newest = last.entry(num).or_default();
        *newest = (*newest).max(last_seq);
    }
    let mut left = PROBES;
    for (tenant, newest) in last {
        let newest = newest.min(left);
        left -= newest;
        for seq in 1..=newest {
            let key = key(tenant, seq);
            if haul.records.contains(&key) || haul.history.contains(&key) {
                continue;
            }
            for table in [Table::Records, Table::History] {
                let sql = source.select(table, "WHERE key = ?1");
                walk(source, table, &sql, [key], target, haul)?;
            }
        }
    }
    Ok(())
}

/// The tenants that the damaged file still names: number, name, newest change.
fn tenants(source: &Source) -> Vec<(i64, String, u64)> {
    let mut found = Vec::new();
    let select = source
        .connection
        .prepare("SELECT num, name, last_seq FROM tenants");
    let Ok(mut select) = select else {
        return found;
    };
    let Ok(mut rows) = select.query([]) else {
        return found;
    };
    while let Ok(Some(row)) = rows.next() {
        if let (Ok(num), Ok(name), Ok(last_seq)) = (row.get(0), row.get(1), row.get::<_, i64>(2)) {
            // A number that cannot be one would keep others from being given out.
            let last_seq = u64::try_from(last_seq).unwrap_or(0);
            let sane = last_seq < 1 << (schema::SEQ_BITS - 1);
            found.push((num, name, if sane { last_seq } else { 0 }));
        }
    }
    found
}

/// Tenants under the names that their records give them. The new file's indexes are saved anew.
fn copy_tenants(source: &Source, target: &Transaction<'_>, haul: &Haul) -> rusqlite::Result<()> {
    let named = tenants(source);
    let mut insert = target.prepare(
        "INSERT OR IGNORE INTO tenants (num, name, last_seq, saved) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let last_seq = |num| {
        let of = named.iter().find(|(other, ..)| *other == num);
        of.map_or(0, |(.., last_seq)| last_seq.cast_signed())
    };
    for (num, name) in &haul.tenants {
        insert.execute(params![num, name, last_seq(*num), fastrand::i64(1..)])?;
    }
    for (num, name, last_seq) in &named {
        if !haul.tenants.contains_key(num) && mnemon_core::Tenant::from_store(name).is_ok() {
            insert.execute(params![num, name, last_seq.cast_signed(), 0])?;
        }
    }
    Ok(())
}

/// Analysed words, vectors and receipts, as far as they are whole. Without them nothing is lost.
fn copy_derived(source: &Source, target: &Transaction<'_>) -> rusqlite::Result<()> {
    copy_rows(source, target, "models", "num, name, dimension", "true")?;
    if source.has_sums && sums::register(&source.connection).is_ok() {
        for (table, columns) in sums::DERIVED {
            let agrees = sums::agrees(columns);
            copy_rows(source, target, table, &format!("{columns}, sum"), &agrees)?;
        }
    }
    target.execute_batch(
        "DELETE FROM search WHERE key NOT IN (SELECT key FROM records)
            OR (model IS NOT NULL AND model NOT IN (SELECT num FROM models));",
    )?;
    embeddings::analyse_missing(target)
}

/// Copies the rows that can be read and meet the condition.
fn copy_rows(
    source: &Source,
    target: &Transaction<'_>,
    table: &str,
    columns: &str,
    condition: &str,
) -> rusqlite::Result<()> {
    let width = columns.split(',').count();
    let marks = vec!["?"; width].join(", ");
    let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})");
    let mut insert = target.prepare(&insert)?;
    let select = format!("SELECT {columns} FROM {table} WHERE {condition}");
    let Ok(mut select) = source.connection.prepare(&select) else {
        return Ok(());
    };
    let Ok(mut rows) = select.query([]) else {
        return Ok(());
    };
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..width).map(|at| row.get(at)).collect();
        if let Ok(values) = values {
            insert.execute(params_from_iter(values))?;
        }
    }
    Ok(())
}
