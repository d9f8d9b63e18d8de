//! The log of records that left `records`, for indexes that follow the file: numbers, no content.

use rusqlite::Connection;

use super::errors::Query;
use super::tables::{count, key, seq};

/// Logs that a record has left, and drops what is more than `most` removals old. The newest stays:
/// the next one is counted on from it.
pub(super) fn log(
    connection: &Connection,
    tenant: i64,
    removed: u64,
    most: usize,
) -> rusqlite::Result<()> {
    let (start, end) = (key(tenant, 0), key(tenant + 1, 0));
    connection
        .prepare_cached(
            "INSERT INTO removals (key, seq) VALUES (1 + coalesce((SELECT key FROM removals
                WHERE key > ?1 AND key < ?2 ORDER BY key DESC LIMIT 1), ?1), ?3)",
        )?
        .execute([start, end, removed.cast_signed()])?;
    let newest = connection.last_insert_rowid();
    connection
        .prepare_cached("DELETE FROM removals WHERE key > ?1 AND key <= ?2")?
        .execute([start, newest - count(most.max(1))])?;
    Ok(())
}

/// The records that left after this removal, as far as the log reaches back.
pub(super) fn since(
    connection: &Connection,
    tenant: i64,
    removed: u64,
) -> rusqlite::Result<Vec<u64>> {
    let sql = "SELECT seq FROM removals WHERE key > ?1 AND key < ?2";
    let range = [key(tenant, removed), key(tenant + 1, 0)];
    connection.all(sql, range, |row| Ok(seq(row.get(0)?)))
}
