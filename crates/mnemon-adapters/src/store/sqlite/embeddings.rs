//! Vectors that records are given after they were written, and records that lack one.

use mnemon_core::embed::ModelId;
use mnemon_core::index::Terms;
use mnemon_core::{Grant, Record, StoreError};
use rusqlite::{Connection, Row, params};

use super::errors::{At, Query};
use super::pool::Reader;
use super::tables::{INSERT_SEARCH, count, insert_search, key};
use super::{reads, sums};

/// The number of a model, if any record has a vector of it.
pub(super) fn model_number(
    connection: &Connection,
    place: &str,
    model: &ModelId,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT num FROM models WHERE name = ?1 AND dimension = ?2";
    let values = params![model.name, count(model.dimension)];
    connection.first(sql, values, |row| row.get(0)).at(place)
}

/// Live records without a vector of this model: those without any, and those of other models.
pub(super) fn lacking(
    reader: &Reader<'_>,
    grant: &Grant,
    model: &ModelId,
    after: u64,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let Some(tenant) = reads::tenant(reader, grant)? else {
        return Ok(Vec::new());
    };
    let number = model_number(reader.connection, reader.place, model)?.unwrap_or(-1);
    let others = "SELECT num FROM models WHERE num <> ?1";
    let others: rusqlite::Result<Vec<i64>> =
        reader.connection.all(others, [number], |row| row.get(0));
    let most = limit.min(grant.limits().page);
    let mut docs: Vec<(i64, String, i64)> = Vec::new();
    for other in others.at(reader.place)?.into_iter().map(Some).chain([None]) {
        // Asked by the index: where no record lacks a vector, none is looked at.
        let sql = "SELECT r.key, r.doc, r.sum
             FROM search s INDEXED BY search_model CROSS JOIN records r ON r.key = s.key
             WHERE s.model IS ?1 AND s.key > ?2 AND s.key < ?3
             AND (r.expires IS NULL OR r.expires >= ?4) ORDER BY s.key LIMIT ?5";
        let (start, end) = (key(tenant, after), key(tenant + 1, 0));
        let values = params![other, start, end, grant.now().millis(), count(most)];
        let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let more = reader.connection.all(sql, values, columns);
        docs.extend(more.at(reader.place)?);
    }
    docs.sort_unstable_by_key(|(key, ..)| *key);
    docs.truncate(most);
    let docs = docs.iter();
    docs.map(|(_, doc, sum)| sums::record(reader.place, doc, *sum))
        .collect()
}

/// Analyses the words of all records again, as after a change of the analysis. Vectors stay as they
/// are. A row that does not match its checksum is for `doctor` to mend.
pub(super) fn analyse_again(connection: &Connection) -> rusqlite::Result<()> {
    sums::register(connection)?;
    let update = "UPDATE search
        SET terms = ?2, sum = sum_of_values(key, ?2, speaker, tags, model, scale, codes)
        WHERE key = ?1
            AND sum IS sum_of_values(key, terms, speaker, tags, model, scale, codes)";
    let mut update = connection.prepare(update)?;
    let mut select = connection.prepare("SELECT key, doc FROM records")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if let Ok(record) = serde_json::from_slice::<Record>(row.get_ref(1)?.as_bytes()?) {
            let key: i64 = row.get(0)?;
            update.execute(params![key, Terms::of(&record).to_bytes()])?;
        }
    }
    Ok(())
}

/// Records that have no row in `search`.
const MISSING: &str =
    "FROM records r WHERE NOT EXISTS (SELECT 1 FROM search s WHERE s.key = r.key)";

/// How many records have no row in `search`.
pub(super) fn count_missing(connection: &Connection) -> rusqlite::Result<i64> {
    let count = format!("SELECT count(*) {MISSING}");
    connection.query_row(&count, [], |row| row.get(0))
}

/// Analyses the records that have no row in `search`: those of a file from before there was a
/// search, and those whose row was damaged.
pub(super) fn analyse_missing(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare(&format!("SELECT key, doc {MISSING}"))?;
    let mut rows = select.query([])?;
    let mut insert = connection.prepare(INSERT_SEARCH)?;
    while let Some(row) = rows.next()? {
        // A record that cannot be read is for `doctor` to report.
        if let Ok(record) = serde_json::from_slice::<Record>(row.get_ref(1)?.as_bytes()?) {
            let terms = Terms::of(&record).to_bytes();
            insert_search(&mut insert, row.get(0)?, &record, &terms, None)?;
        }
    }
    Ok(())
}
