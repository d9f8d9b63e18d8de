//! How many records each speaker has. The counts change in the transaction that writes or removes
//! the records, so that a search looks up the few speakers that it may name.

use std::collections::BTreeMap;

use mnemon_core::speakers::first_word;
use mnemon_core::{Grant, Right, StoreError, limits};
use rusqlite::{Connection, params};

use super::errors::{At, Query};
use super::pool::Reader;
use super::reads;
use super::tables::count;

/// A part of format 6.
pub(super) const CREATE: &str = "
-- first is the first word of the name, in lower case.
CREATE TABLE speakers (
    tenant INTEGER NOT NULL,
    first  TEXT NOT NULL,
    name   TEXT NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (tenant, first, name)
) WITHOUT ROWID;
";

/// The version that brought them.
pub(super) const SINCE: i64 = 6;

/// The speaker of a row of `records` (r). Its row of `search` (s) knows it without the JSON being
/// parsed, if there is one.
macro_rules! speaker {
    () => {
        "CASE WHEN s.key IS NOT NULL THEN s.speaker
            WHEN json_type(r.doc, '$.metadata.speaker') = 'text'
                THEN json_extract(r.doc, '$.metadata.speaker')
            WHEN json_type(r.doc, '$.body.name') = 'text' THEN json_extract(r.doc, '$.body.name')
        END"
    };
}

const OF_RECORD: &str = concat!(
    "SELECT ",
    speaker!(),
    " FROM records r LEFT JOIN search s ON s.key = r.key WHERE r.key = ?1"
);

const COUNTED: &str = concat!(
    "SELECT * FROM (SELECT r.tenant, ",
    speaker!(),
    " AS speaker, count(*) FROM records r LEFT JOIN search s ON s.key = r.key GROUP BY 1, 2)
    WHERE speaker IS NOT NULL"
);

/// How many speakers are counted wrongly.
pub(super) fn miscounted() -> String {
    let kept = "SELECT tenant, name, count FROM speakers";
    format!(
        "SELECT count(*) FROM ({COUNTED} EXCEPT {kept})
         UNION ALL SELECT count(*) FROM ({kept} EXCEPT {COUNTED})"
    )
}

/// Counts all records again.
pub(super) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM speakers", [])?;
    let mut select = connection.prepare(COUNTED)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        add(connection, row.get(0)?, &name, row.get(2)?)?;
    }
    Ok(())
}

/// Writes by how much the counts of a tenant have changed.
pub(super) fn save(
    connection: &Connection,
    tenant: i64,
    grown: &BTreeMap<String, i64>,
) -> rusqlite::Result<()> {
    for (name, grown) in grown.iter().filter(|(_, grown)| **grown != 0) {
        add(connection, tenant, name, *grown)?;
        if *grown < 0 {
            let gone = "DELETE FROM speakers
                WHERE tenant = ?1 AND first = ?2 AND name = ?3 AND count <= 0";
            let values = params![tenant, first_word(name), name];
            connection.prepare_cached(gone)?.execute(values)?;
        }
    }
    Ok(())
}

fn add(connection: &Connection, tenant: i64, name: &str, grown: i64) -> rusqlite::Result<usize> {
    let insert = "INSERT INTO speakers (tenant, first, name, count) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET count = count + excluded.count";
    let values = params![tenant, first_word(name), name, grown];
    connection.prepare_cached(insert)?.execute(values)
}

/// Who speaks in the record with this key.
pub(super) fn of_record(connection: &Connection, key: i64) -> rusqlite::Result<Option<String>> {
    let speaker = connection.first(OF_RECORD, [key], |row| row.get(0))?;
    Ok(speaker.flatten())
}

/// The tenant's speakers whose first word is among these, the most talkative first.
pub(super) fn named(
    reader: &Reader<'_>,
    grant: &Grant,
    words: &[&str],
) -> Result<Vec<String>, StoreError> {
    grant.require(Right::Read)?;
    let Some(tenant) = reads::tenant(reader, grant)? else {
        return Ok(Vec::new());
    };
    let words =
        serde_json::to_string(words).map_err(|error| StoreError::Internal(error.to_string()))?;
    let sql = "SELECT name FROM speakers WHERE tenant = ?1
            AND first IN (SELECT value FROM json_each(?2))
         ORDER BY count DESC, name LIMIT ?3";
    let values = params![tenant, words, count(limits::SPEAKERS)];
    reader
        .connection
        .all(sql, values, |row| row.get(0))
        .at(reader.place)
}
