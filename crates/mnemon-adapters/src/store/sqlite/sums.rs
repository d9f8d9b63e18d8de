//! Checksums of rows, so that a flipped bit is noticed.
//!
//! A row's checksum has two halves. The lower 32 bits are the CRC-32 of its `doc`, which every read
//! checks. The upper 32 bits are the CRC-32 of the columns that a record shares with its row in the
//! history, so that a row moves there with its checksum as it is. The other columns of `records`
//! repeat what `doc` says; `doctor` compares them.

use crc32fast::Hasher;
use mnemon_core::{Record, StoreError};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

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

/// The columns of [`Row`], in the order that [`Row::of`] numbers them.
pub(super) const SHARED: &str = "key, id, version, commit_seq, at, actor, cause, expires, doc";

impl<'a> Row<'a> {
    /// Takes the columns [`SHARED`] by their numbers.
    pub(super) fn of(
        column: impl Fn(usize) -> rusqlite::Result<ValueRef<'a>>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            key: column(0)?.as_i64()?,
            id: column(1)?.as_str()?,
            version: column(2)?.as_i64()?,
            commit: column(3)?.as_i64()?,
            at: column(4)?.as_i64()?,
            actor: column(5)?.as_str()?,
            cause: column(6)?.as_str()?,
            expires: column(7)?.as_i64_or_null()?,
            doc: column(8)?.as_bytes_or_null()?,
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
            let what = format!("record {} does not match its checksum", record.id);
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

/// Tables that can be lost without losing a record, with the columns under their checksum.
pub(super) const DERIVED: [(&str, &str); 2] = [
    ("search", "key, terms, speaker, tags, model, scale, codes"),
    ("receipts", "tenant, key, digest, at, receipt"),
];

/// Whether a row of one of [`DERIVED`] agrees with its checksum. Needs [`register`].
pub(super) fn agrees(columns: &str) -> String {
    format!("sum IS sum_of_values({columns})")
}

/// Makes the checksums known to the SQL of this connection.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("sum_of_row", 9, flags, |values| {
        let row = Row::of(|column| Ok(values.get_raw(column)))?;
        Ok(row.sum())
    })?;
    connection.create_scalar_function("sum_of_number", 1, flags, |values| {
        Ok(of_number(values.get(0)?))
    })?;
    connection.create_scalar_function("sum_of_values", -1, flags, |values| {
        Ok(of_values((0..values.len()).map(|at| values.get_raw(at))))
    })
}

/// Gives every row its checksum: they come with version 5 of the format.
pub(super) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    register(connection)?;
    connection.execute_batch(&format!(
        "UPDATE records SET sum = sum_of_row({SHARED});
         UPDATE history SET sum = sum_of_row({SHARED}), replaced_sum = sum_of_number(replaced);"
    ))?;
    for (table, columns) in DERIVED {
        let sql = format!("UPDATE {table} SET sum = sum_of_values({columns})");
        connection.execute(&sql, [])?;
    }
    Ok(())
}
