//! Looking at a file without using it, and mending what can be mended.

use std::path::Path;

use mnemon_core::{Record, StoreError};
use rusqlite::{Connection, Row};

use super::errors::At;
use super::{embeddings, salvage, schema, sums};
use crate::health::Finding;
use crate::store::numbered;

/// Damaged rows that a finding names; of more it only says how many.
const NAMED: usize = 5;

const SALVAGE: &str = "copy every record that can still be read into a new file, and keep the damaged one as FILE.bad";

/// Checks that need no write: is it there, ours, whole, and do its counts and checksums agree with
/// its rows?
pub(crate) fn examine(path: &Path) -> Vec<Finding> {
    let place = path.display().to_string();
    if !path.exists() {
        let mut findings = vec![Finding::good(
            "file",
            "does not exist yet; the first write creates it",
        )];
        findings.extend(set_aside(path));
        return findings;
    }
    let mut findings = vec![permissions(path)];
    // SQLite takes a file of a few bytes for an empty database; opening it for use would not.
    let opened = schema::check_path(path, &place).and_then(|()| schema::look(path));
    match opened {
        Ok((connection, version)) => findings.extend(contents(&connection, version)),
        // Not ours, too new, or out of reach: nothing that a repair should touch.
        Err(error @ StoreError::Corrupt { .. }) => {
            findings.push(Finding::mendable("integrity", error.to_string(), SALVAGE));
        }
        Err(error) => findings.push(Finding::bad("format", error.to_string())),
    }
    findings.extend(set_aside(path));
    findings
}

/// What can be said of an open file of this version.
pub(super) fn contents(connection: &Connection, version: i64) -> Vec<Finding> {
    let mut findings = vec![Finding::good(
        "format",
        format!("version {version} of {}", schema::current()),
    )];
    findings.push(integrity(connection));
    if version == schema::current() {
        findings.extend([
            checksums(connection),
            counts(connection),
            links(connection),
            derived(connection),
        ]);
    }
    findings
}

/// Does what the findings proposed, and says what it did.
pub(crate) fn repair(path: &Path) -> Result<Vec<String>, StoreError> {
    let place = path.display().to_string();
    let mut done = Vec::new();
    let mut connection = match schema::open(path) {
        Ok(connection) => connection,
        Err(StoreError::Corrupt { .. }) => return salvage::salvage(path),
        Err(error) => return Err(error),
    };
    if !integrity(&connection).ok {
        // Damage to an index only is no loss: tables are the truth.
        let rebuilt = connection.execute_batch("REINDEX");
        if rebuilt.is_ok() && integrity(&connection).ok {
            done.push("rebuilt every index from its table".to_owned());
        } else {
            drop(connection);
            return salvage::salvage(path);
        }
    }
    if !checksums(&connection).ok {
        drop(connection);
        done.extend(salvage::salvage(path)?);
        return Ok(done);
    }
    let steps = [
        (&counts(&connection), RECOUNT, "counted the records again"),
        (
            &links(&connection),
            RELINK,
            "recorded again which record was derived from which",
        ),
    ];
    let transaction = connection.transaction().at(&place)?;
    for (finding, sql, said) in steps {
        if !finding.ok {
            transaction.execute_batch(sql).at(&place)?;
            done.push(said.to_owned());
        }
    }
    if !derived(&transaction).ok {
        done.extend(drop_damaged(&transaction).at(&place)?);
        embeddings::analyse_missing(&transaction).at(&place)?;
    }
    transaction.commit().at(&place)?;
    Ok(done)
}

fn permissions(path: &Path) -> Finding {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.permissions().readonly() => {
            let what = "the file is read-only: it can be read and searched, but not changed";
            Finding::warning("permissions", what)
        }
        Ok(_) => Finding::good("permissions", "the file can be read and written"),
        Err(error) => Finding::bad(
            "permissions",
            format!("the file cannot be accessed: {error}"),
        ),
    }
}

/// Damaged files that a repair has kept. They are reported until somebody removes them.
fn set_aside(path: &Path) -> Option<Finding> {
    let names = (1..).map(|number| numbered(path, ".bad", number));
    let names = names.take_while(|path| path.exists());
    let names: Vec<String> = names.map(|path| path.display().to_string()).collect();
    (!names.is_empty()).then(|| {
        Finding::good(
            "set aside",
            format!(
                "an earlier repair kept the damaged file as {}; remove it when you do not need it",
                names.join(", ")
            ),
        )
    })
}

pub(super) fn integrity(connection: &Connection) -> Finding {
    let lines = connection
        .prepare("PRAGMA integrity_check(20)")
        .and_then(|mut check| {
            let rows = check.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        });
    match lines {
        Ok(lines) if lines.len() == 1 && lines.first().is_some_and(|line| line == "ok") => {
            Finding::good("integrity", "every page and index is intact")
        }
        Ok(lines) if lines.iter().all(|line| line.contains("index")) => Finding::mendable(
            "integrity",
            lines.join("; "),
            "rebuild every index from its table",
        ),
        Ok(lines) => Finding::mendable("integrity", lines.join("; "), SALVAGE),
        Err(error) => Finding::mendable("integrity", error.to_string(), SALVAGE),
    }
}

/// The columns of a record that [`check_record`] looks at, after [`sums::SHARED`] and `sum`.
pub(super) const RECORD_COLUMNS: &str = "scope, kind, namespace, user, agent, session, importance,
    created, (SELECT name FROM tenants WHERE num = tenant), audience";

/// What is wrong with a row of `records`: its columns are [`sums::SHARED`], `sum` and
/// [`RECORD_COLUMNS`]. The record, if nothing is.
pub(super) fn check_record(row: &Row<'_>) -> Result<Record, String> {
    let record = check_row(row)?.ok_or("it has no content")?;
    let text = |column| {
        let value = row.get_ref(column).ok()?;
        value.as_str_or_null().ok()?.map(str::to_owned)
    };
    let owner = &record.owner;
    let audience = record.audience.as_ref().map(ToString::to_string);
    let columns = [
        ("scope", text(10), Some(record.scope.as_str())),
        ("kind", text(11), Some(record.kind.as_str())),
        ("namespace", text(12), Some(record.namespace.as_str())),
        ("user", text(13), owner.user.as_deref()),
        ("agent", text(14), owner.agent.as_deref()),
        ("session", text(15), owner.session.as_deref()),
        ("tenant", text(18), Some(record.tenant.as_str())),
        ("audience", text(19), audience.as_deref()),
    ];
    for (name, found, meant) in columns {
        if found.as_deref() != meant {
            return Err(format!("its column {name} does not match its content"));
        }
    }
    let importance = row.get::<_, f64>(16);
    let created = row.get::<_, i64>(17);
    if importance.ok() != Some(record.importance) || created.ok() != Some(record.created.millis()) {
        return Err("its columns do not match its content".to_owned());
    }
    Ok(record)
}

/// What is wrong with a row of `records` or `history` whose columns are [`sums::SHARED`] and `sum`.
/// The record in it, if nothing is; `None` for a deletion.
pub(super) fn check_row(row: &Row<'_>) -> Result<Option<Record>, String> {
    let columns = sums::Row::of(|column| row.get_ref(column)).map_err(|error| error.to_string())?;
    let sum = row.get::<_, i64>(9).ok();
    if sum != Some(sums::UNSIGNED) && sum != Some(columns.sum()) {
        return Err("it does not match its checksum".to_owned());
    }
    content(&columns)
}

/// The record in a row, if the columns that repeat it agree with it.
fn content(columns: &sums::Row<'_>) -> Result<Option<Record>, String> {
    let Some(doc) = columns.doc else {
        return Ok(None);
    };
    let record: Record = serde_json::from_slice(doc).map_err(|error| error.to_string())?;
    let agrees = record.id.as_str() == columns.id
        && record.seq == super::tables::seq(columns.key)
        && record.version.cast_signed() == columns.version;
    match agrees {
        true => Ok(Some(record)),
        false => Err("its columns do not match its content".to_owned()),
    }
}

/// The same of a row from before there were checksums: only its content can be compared.
pub(super) fn check_unsigned(row: &Row<'_>) -> Result<Option<Record>, String> {
    let columns = sums::Row::of(|column| row.get_ref(column)).map_err(|error| error.to_string())?;
    content(&columns)
}

/// Reads every record and its history, and compares them with their checksums.
fn checksums(connection: &Connection) -> Finding {
    let mut checked = 0_usize;
    let mut damaged = Vec::new();
    let mut look = |sql: &str, check: &dyn Fn(&Row<'_>) -> Result<(), String>| {
        let mut select = connection.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            checked += 1;
            if let Err(what) = check(row) {
                let id = row.get::<_, String>(1).unwrap_or_default();
                damaged.push(format!("{} ({what})", id.escape_debug()));
            }
        }
        Ok::<(), rusqlite::Error>(())
    };
    let shared = sums::SHARED;
    let records = format!("SELECT {shared}, sum, {RECORD_COLUMNS} FROM records");
    let history = format!("SELECT {shared}, sum, {PAST_COLUMNS} FROM history");
    let looked = look(&records, &|row| check_record(row).map(drop))
        .and_then(|()| look(&history, &|row| check_past(row).map(drop)));
    if let Err(error) = looked {
        return Finding::mendable("checksums", error.to_string(), SALVAGE);
    }
    if damaged.is_empty() {
        return Finding::good(
            "checksums",
            format!("match the records and versions ({checked} checked)"),
        );
    }
    let mut named: Vec<String> = damaged.iter().take(NAMED).cloned().collect();
    if damaged.len() > NAMED {
        named.push(format!("and {} more", damaged.len() - NAMED));
    }
    Finding::mendable(
        "checksums",
        format!("{} damaged: {}", damaged.len(), named.join(", ")),
        SALVAGE,
    )
}

/// The same as [`check_row`] of a row of `history`, which goes on with [`PAST_COLUMNS`].
pub(super) fn check_past(row: &Row<'_>) -> Result<Option<Record>, String> {
    let record = check_row(row)?;
    let replaced = row.get::<_, i64>(10).map(sums::of_number).ok();
    let sum = row.get::<_, i64>(11).ok();
    if sum != Some(sums::UNSIGNED) && sum != replaced {
        return Err("the time of its replacement does not match its checksum".to_owned());
    }
    let tenant = row.get::<_, i64>(0).map(|key| key >> schema::SEQ_BITS);
    match tenant.ok() == row.get::<_, i64>(12).ok() {
        true => Ok(record),
        false => Err("its tenant does not match its key".to_owned()),
    }
}

/// The columns of a past version that [`check_past`] looks at, after [`sums::SHARED`] and `sum`.
pub(super) const PAST_COLUMNS: &str = "replaced, replaced_sum, tenant";

const MISCOUNTED: &str = "
SELECT count(*) FROM (
    SELECT tenant, scope, kind, namespace, count(*) FROM records GROUP BY 1, 2, 3, 4
    EXCEPT SELECT tenant, scope, kind, namespace, count FROM tally)
UNION ALL
SELECT count(*) FROM (
    SELECT tenant, scope, kind, namespace, count FROM tally WHERE count <> 0
    EXCEPT SELECT tenant, scope, kind, namespace, count(*) FROM records GROUP BY 1, 2, 3, 4)
UNION ALL
SELECT count(*) FROM tenants t
WHERE t.history <> (SELECT count(*) FROM history h WHERE h.tenant = t.num AND h.version > 0)
    OR t.last_seq < (SELECT coalesce(max(key), 0) & ((1 << 40) - 1) FROM records
        WHERE key >= t.num << 40 AND key < (t.num + 1) << 40)
    OR t.last_seq < (SELECT coalesce(max(key), 0) & ((1 << 40) - 1) FROM history
        WHERE key >= t.num << 40 AND key < (t.num + 1) << 40)";

pub(super) const RECOUNT: &str = "
DELETE FROM tally;
INSERT INTO tally (tenant, scope, kind, namespace, count)
    SELECT tenant, scope, kind, namespace, count(*) FROM records GROUP BY 1, 2, 3, 4;
UPDATE tenants SET history = (SELECT count(*) FROM history h
        WHERE h.tenant = num AND h.version > 0),
    last_seq = max(last_seq,
        (SELECT coalesce(max(key), 0) & ((1 << 40) - 1) FROM records
            WHERE key >= num << 40 AND key < (num + 1) << 40),
        (SELECT coalesce(max(key), 0) & ((1 << 40) - 1) FROM history
            WHERE key >= num << 40 AND key < (num + 1) << 40));";

fn counts(connection: &Connection) -> Finding {
    mismatches(
        connection,
        "counts",
        MISCOUNTED,
        "match the records",
        "count the records again",
    )
}

const MISLINKED: &str = "
SELECT count(*) FROM records r, json_each(r.doc, '$.derived_from') j WHERE NOT EXISTS
    (SELECT 1 FROM links l WHERE l.tenant = r.tenant AND l.source = j.value AND l.derived = r.id)
UNION ALL
SELECT count(*) FROM links l JOIN records r ON r.tenant = l.tenant AND r.id = l.derived
WHERE NOT EXISTS (SELECT 1 FROM json_each(r.doc, '$.derived_from') j WHERE j.value = l.source)
UNION ALL
SELECT count(*) FROM links l
WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.tenant = l.tenant AND r.id = l.derived)
    AND NOT EXISTS (SELECT 1 FROM history h WHERE h.tenant = l.tenant AND h.id = l.derived)";

/// Links are made again from the newest version of each record that has content.
pub(super) const RELINK: &str = "
DELETE FROM links;
INSERT OR IGNORE INTO links (tenant, source, derived)
    SELECT r.tenant, j.value, r.id FROM records r, json_each(r.doc, '$.derived_from') j;
INSERT OR IGNORE INTO links (tenant, source, derived)
    SELECT h.tenant, j.value, h.id FROM history h, json_each(h.doc, '$.derived_from') j
    WHERE h.doc IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM records r WHERE r.tenant = h.tenant AND r.id = h.id)
        AND h.key = (SELECT max(n.key) FROM history n
            WHERE n.tenant = h.tenant AND n.id = h.id AND n.doc IS NOT NULL);";

fn links(connection: &Connection) -> Finding {
    mismatches(
        connection,
        "links",
        MISLINKED,
        "match the records",
        "record again which record was derived from which",
    )
}

fn mismatches(
    connection: &Connection,
    check: &'static str,
    sql: &str,
    good: &str,
    repair: &str,
) -> Finding {
    let wrong = connection.prepare(sql).and_then(|mut check| {
        let rows = check.query_map([], |row| row.get::<_, i64>(0))?;
        rows.sum::<rusqlite::Result<i64>>()
    });
    match wrong {
        Ok(0) => Finding::good(check, good),
        Ok(wrong) => Finding::mendable(check, format!("{wrong} do not match the records"), repair),
        Err(error) => Finding::mendable(check, error.to_string(), repair),
    }
}

/// Rows that make searches and retries quick.
fn derived(connection: &Connection) -> Finding {
    let found = count_damaged(connection)
        .and_then(|damaged| Ok((damaged, embeddings::count_missing(connection)?)));
    let (damaged, missing) = match found {
        Ok(found) => found,
        Err(error) => return Finding::mendable("derived", error.to_string(), SALVAGE),
    };
    if missing == 0 && damaged.iter().all(|(_, count)| *count == 0) {
        return Finding::good(
            "derived",
            "analysed words, vectors and receipts match their checksums",
        );
    }
    let counts = damaged
        .iter()
        .map(|(table, count)| format!("{count} rows of {table}"));
    let damaged = counts.collect::<Vec<_>>().join(", ");
    Finding::mendable(
        "derived",
        format!("damaged: {damaged}; records without analysed words: {missing}"),
        "remove damaged rows, and analyse the records again",
    )
}

/// How many rows of which table do not match their checksums.
fn count_damaged(connection: &Connection) -> rusqlite::Result<Vec<(&'static str, i64)>> {
    sums::register(connection)?;
    let counts = sums::DERIVED.map(|(table, columns)| {
        let agrees = sums::agrees(columns);
        let sql = format!("SELECT count(*) FROM {table} WHERE NOT ({agrees})");
        Ok((table, connection.query_row(&sql, [], |row| row.get(0))?))
    });
    counts.into_iter().collect()
}

fn drop_damaged(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut done = Vec::new();
    for (table, columns) in sums::DERIVED {
        let agrees = sums::agrees(columns);
        let dropped =
            connection.execute(&format!("DELETE FROM {table} WHERE NOT ({agrees})"), [])?;
        if dropped > 0 {
            done.push(format!("removed {dropped} damaged rows of {table}"));
        }
    }
    Ok(done)
}
