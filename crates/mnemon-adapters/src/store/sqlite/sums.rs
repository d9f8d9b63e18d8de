//! Checksums of rows, so that a flipped bit is noticed.
//!
//! A row's checksum has two halves. The lower 32 bits are the CRC-32 of its `doc`, which every read
//! checks. The upper 32 bits are the CRC-32 of the columns that a record shares with its row in the
//! history, so that a row moves there with its checksum as it is. The other columns of `records`
//! repeat what `doc` says; `doctor` compares them.

use crc32fast::Hasher;
use mnemon_core::{Record, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use crate::store::corrupt;

/// The columns that a row of `records` and its row in `history` have in common.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) key: i64,
    pub(super) id: &'a str,
    pub(super) version: i64,
    pub(super) commit: i64,
    pub(super) at: i64,
    pub(super) actor: &'a str,
    pub(super) cause: &'a str,
    pub(super) expires: Option<i64>,
    /// `None` for a deletion.
    pub(super) doc: Option<&'a [u8]>,
}

/// The columns of [`Row`], in the order that [`Row::of`] reads them.
pub(super) const SHARED: &str = "key, id, version, commit_seq, at, actor, cause, expires, doc";

impl<'a> Row<'a> {
    /// Reads the columns [`SHARED`], which must be the first of the statement.
    pub(super) fn of(row: &'a rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            id: row.get_ref(1)?.as_str()?,
            version: row.get(2)?,
            commit: row.get(3)?,
            at: row.get(4)?,
            actor: row.get_ref(5)?.as_str()?,
            cause: row.get_ref(6)?.as_str()?,
            expires: row.get(7)?,
            doc: row.get_ref(8)?.as_bytes_or_null()?,
        })
    }
    /// The checksum as its column keeps it.
    pub(super) fn sum(&self) -> i64 {
        let mut columns = Hasher::new();
        for number in [self.key, self.version, self.commit, self.at] {
            columns.update(&number.to_le_bytes());
        }
        for text in [self.id, self.actor, self.cause] {
            // With its length, so that no byte can move from one text to the next.
            columns.update(&(text.len() as u64).to_le_bytes());
            columns.update(text.as_bytes());
        }
        columns.update(&[
            u8::from(self.expires.is_some()),
            u8::from(self.doc.is_some()),
        ]);
        columns.update(&self.expires.unwrap_or(0).to_le_bytes());
        let columns = u64::from(columns.finalize());
        ((columns << 32) | u64::from(of_doc(self.doc.unwrap_or_default()))).cast_signed()
    }
}

/// A row without a checksum: a process of an earlier version that was running when the file was
/// migrated goes on writing such rows.
pub(super) const UNSIGNED: i64 = 0;

fn of_doc(doc: &[u8]) -> u32 {
    crc32fast::hash(doc)
}

/// The record in a row's `doc`, if the doc agrees with the row's checksum.
pub(super) fn record(place: &str, doc: &str, sum: i64) -> Result<Record, StoreError> {
    let parsed = serde_json::from_str::<Record>(doc);
    match parsed {
        Err(error) => Err(corrupt(place, format!("a record cannot be read: {error}"))),
        Ok(record) if sum == UNSIGNED => Ok(record),
        Ok(record) if of_doc(doc.as_bytes()) as u64 != sum.cast_unsigned() & 0xffff_ffff => {
            let what = format!("record {} does not agree with its checksum", record.id);
            Err(corrupt(place, what))
        }
        Ok(record) => Ok(record),
    }
}

/// The checksum of a single number.
pub(super) fn of_number(number: i64) -> i64 {
    i64::from(crc32fast::hash(&number.to_le_bytes()))
}

/// The checksum of values in order. It tells their types and lengths apart.
pub(super) fn of_values<'a>(values: impl IntoIterator<Item = ValueRef<'a>>) -> i64 {
    let mut sum = Hasher::new();
    for value in values {
        match value {
            ValueRef::Null => sum.update(&[0]),
            ValueRef::Integer(number) => {
                sum.update(&[1]);
                sum.update(&number.to_le_bytes());
            }
            ValueRef::Real(number) => {
                sum.update(&[2]);
                sum.update(&number.to_bits().to_le_bytes());
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                sum.update(&[3]);
                sum.update(&(bytes.len() as u64).to_le_bytes());
                sum.update(bytes);
            }
        }
    }
    i64::from(sum.finalize())
}

/// The checksum of some columns of a row.
pub(super) fn of_columns(
    row: &rusqlite::Row<'_>,
    columns: std::ops::Range<usize>,
) -> rusqlite::Result<i64> {
    let values: rusqlite::Result<Vec<ValueRef<'_>>> =
        columns.map(|column| row.get_ref(column)).collect();
    Ok(of_values(values?))
}

/// Rows whose checksums are made in one go.
const FILL: usize = 1000;

/// Gives every row its checksum: they come with version 5 of the format.
pub(super) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    fill_table(connection, "records", &[])?;
    fill_table(connection, "history", &["replaced"])?;
    let search = "SELECT key, terms, speaker, tags, model, scale, codes FROM search
        WHERE key > ?1 ORDER BY key LIMIT ?2";
    let mut after = i64::MIN;
    loop {
        let mut select = connection.prepare_cached(search)?;
        let mut rows = select.query(params![after, FILL as i64])?;
        let mut sums = Vec::new();
        while let Some(row) = rows.next()? {
            sums.push((row.get::<_, i64>(0)?, of_columns(row, 0..7)?));
        }
        drop(rows);
        let Some((last, _)) = sums.last() else { break };
        after = *last;
        let mut update = connection.prepare_cached("UPDATE search SET sum = ?2 WHERE key = ?1")?;
        for (key, sum) in sums {
            update.execute([key, sum])?;
        }
    }
    fill_receipts(connection)
}

fn fill_table(connection: &Connection, table: &str, more: &[&str]) -> rusqlite::Result<()> {
    let more = more.iter().map(|column| format!(", {column}"));
    let sql = format!(
        "SELECT {SHARED}{} FROM {table} WHERE key > ?1 ORDER BY key LIMIT ?2",
        more.collect::<String>()
    );
    let update = match table {
        "history" => "UPDATE history SET sum = ?2, replaced_sum = ?3 WHERE key = ?1",
        _ => "UPDATE records SET sum = ?2 WHERE key = ?1",
    };
    let mut after = i64::MIN;
    loop {
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query(params![after, FILL as i64])?;
        let mut sums = Vec::new();
        while let Some(row) = rows.next()? {
            let replaced = match table {
                "history" => Some(of_number(row.get(9)?)),
                _ => None,
            };
            sums.push((row.get::<_, i64>(0)?, Row::of(row)?.sum(), replaced));
        }
        drop(rows);
        let Some((last, ..)) = sums.last() else { break };
        after = *last;
        let mut update = connection.prepare_cached(update)?;
        for (key, sum, replaced) in sums {
            match replaced {
                Some(replaced) => update.execute([key, sum, replaced])?,
                None => update.execute([key, sum])?,
            };
        }
    }
    Ok(())
}

fn fill_receipts(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare("SELECT tenant, key, digest, at, receipt FROM receipts")?;
    let mut rows = select.query([])?;
    let mut sums = Vec::new();
    while let Some(row) = rows.next()? {
        let sum = of_columns(row, 0..5)?;
        sums.push((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, sum));
    }
    let mut update =
        connection.prepare("UPDATE receipts SET sum = ?3 WHERE tenant = ?1 AND key = ?2")?;
    for (tenant, key, sum) in sums {
        update.execute(params![tenant, key, sum])?;
    }
    Ok(())
}
