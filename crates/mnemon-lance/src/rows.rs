//! Documents as rows of a table, and rows as answers.

use std::sync::Arc;

use lance::deps::arrow_array::builder::{
    FixedSizeListBuilder, Float32Builder, ListBuilder, StringBuilder, UInt8Builder, UInt32Builder,
};
use lance::deps::arrow_array::cast::AsArray;
use lance::deps::arrow_array::types::{Float32Type, Int64Type, UInt8Type, UInt32Type};
use lance::deps::arrow_array::{
    Array, ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use lance::deps::arrow_schema::{ArrowError, DataType, Field, Schema};
use mnemon_adapters::external_index::{Document, Found};
use mnemon_core::{Id, Tenant};

use crate::schema;
use crate::words::Terms;

/// A document, and the number of its version.
pub(crate) struct Row<'a> {
    pub(crate) document: &'a Document,
    pub(crate) version: u64,
}

/// Numbers of changes are far below the highest one.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The rows, with the columns of a table.
pub(crate) fn batch(
    tenant: &Tenant,
    rows: &[Row<'_>],
    table: &Schema,
) -> Result<RecordBatch, ArrowError> {
    let columns = table.fields().iter();
    let columns = columns.map(|field| column(tenant, rows, field));
    let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
    RecordBatch::try_new(Arc::new(table.clone()), columns)
}

fn column(tenant: &Tenant, rows: &[Row<'_>], field: &Field) -> Result<ArrayRef, ArrowError> {
    let documents = rows.iter().map(|row| row.document);
    Ok(match field.name().as_str() {
        "version" => numbers(rows.iter().map(|row| number(row.version))),
        "created" => numbers(documents.map(|it| it.created)),
        "expires" => numbers(documents.map(|it| it.expires)),
        "length" => Arc::new(Float32Array::from_iter_values(
            documents.map(|it| it.length),
        )),
        "tags" => {
            let mut list = ListBuilder::new(StringBuilder::new()).with_field(items(field)?);
            for document in documents {
                list.append_value(document.tags.iter().map(Some));
            }
            Arc::new(list.finish())
        }
        "terms" => {
            let mut list = ListBuilder::new(UInt32Builder::new()).with_field(items(field)?);
            for document in documents {
                list.append_value(document.terms.iter().map(|(term, _)| Some(*term)));
            }
            Arc::new(list.finish())
        }
        "counts" => {
            let mut list = ListBuilder::new(UInt8Builder::new()).with_field(items(field)?);
            for document in documents {
                list.append_value(document.terms.iter().map(|(_, count)| Some(*count)));
            }
            Arc::new(list.finish())
        }
        name if schema::dimension(field).is_some() => vectors(rows, name, field)?,
        name => Arc::new(StringArray::from_iter(
            documents.map(|it| text(tenant, it, name)),
        )),
    })
}

fn numbers(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// The field of the items of a column of lists.
fn items(field: &Field) -> Result<Arc<Field>, ArrowError> {
    match field.data_type() {
        DataType::List(item) | DataType::FixedSizeList(item, _) => Ok(item.clone()),
        _ => Err(wrong(field.name())),
    }
}

fn text<'a>(tenant: &'a Tenant, document: &'a Document, column: &str) -> Option<&'a str> {
    let owner = &document.owner;
    match column {
        "tenant" => Some(tenant.as_str()),
        "id" => Some(document.id.as_str()),
        "audience" => Some(&document.audience),
        "scope" => Some(document.scope.as_str()),
        "kind" => Some(document.kind.as_str()),
        "namespace" => Some(document.namespace.as_str()),
        // Documents without a speaker have an empty word.
        "speaker_word" => Some(document.speaker_word.as_deref().unwrap_or_default()),
        "owner_user" => owner.user.as_deref(),
        "owner_agent" => owner.agent.as_deref(),
        "owner_session" => owner.session.as_deref(),
        "speaker" => document.speaker.as_deref(),
        _ => None,
    }
}

/// The vectors of the model of this column; null for documents that have none.
fn vectors(rows: &[Row<'_>], name: &str, field: &Field) -> Result<ArrayRef, ArrowError> {
    let length = schema::dimension(field).unwrap_or_default();
    let width = i32::try_from(length).map_err(|_| wrong(name))?;
    let mut list =
        FixedSizeListBuilder::new(Float32Builder::new(), width).with_field(items(field)?);
    for row in rows {
        let vector = row.document.vector.as_ref();
        let vector = vector.filter(|it| schema::vector_column(&it.model) == name);
        match vector.filter(|vector| vector.values.len() == length) {
            Some(vector) => {
                list.values().append_slice(&vector.values);
                list.append(true);
            }
            None => {
                list.values().append_nulls(length);
                list.append(false);
            }
        }
    }
    Ok(Arc::new(list.finish()))
}

fn wrong(column: &str) -> ArrowError {
    ArrowError::SchemaError(format!("the column `{column}` has another form"))
}

/// The texts of a column.
pub(crate) fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray, ArrowError> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_string_opt::<i32>());
    column.ok_or_else(|| wrong(name))
}

/// The numbers of a column.
pub(crate) fn longs<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Int64Array, ArrowError> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.ok_or_else(|| wrong(name))
}

fn floats<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Float32Array, ArrowError> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<Float32Type>());
    column.ok_or_else(|| wrong(name))
}

/// The document of a row, with this score.
pub(crate) fn found(batch: &RecordBatch, row: usize, score: f32) -> Result<Found, ArrowError> {
    let id = texts(batch, "id")?.value(row);
    let version = u64::try_from(longs(batch, "version")?.value(row));
    Ok(Found {
        id: id.parse().map_err(|_| wrong("id"))?,
        seq: version.map_err(|_| wrong("version"))? / 2,
        score,
    })
}

/// The vectors of a column, of the documents that have one.
pub(crate) fn held_vectors(
    batch: &RecordBatch,
    name: &str,
) -> Result<Vec<(Id, Vec<f32>)>, ArrowError> {
    let ids = texts(batch, "id")?;
    let lists = batch.column_by_name(name);
    let lists = lists.and_then(|column| column.as_fixed_size_list_opt());
    let lists = lists.ok_or_else(|| wrong(name))?;
    let mut held = Vec::new();
    for row in (0..batch.num_rows()).filter(|row| lists.is_valid(*row)) {
        let values = lists.value(row);
        let values = values.as_primitive_opt::<Float32Type>();
        let values = values.ok_or_else(|| wrong(name))?.values().to_vec();
        held.push((ids.value(row).parse().map_err(|_| wrong("id"))?, values));
    }
    Ok(held)
}

/// The documents of all rows, with scores by distance if there is a column of distances.
pub(crate) fn all_found(batch: &RecordBatch) -> Result<Vec<Found>, ArrowError> {
    let distances = match batch.column_by_name(DISTANCE) {
        Some(_) => Some(floats(batch, DISTANCE)?),
        None => None,
    };
    let rows = 0..batch.num_rows();
    let score = |row| distances.map_or(0.0, |distances| 1.0 - distances.value(row));
    rows.map(|row| found(batch, row, score(row))).collect()
}

/// The column that a search by vectors adds.
pub(crate) const DISTANCE: &str = "_distance";

/// The terms of the documents of a batch.
pub(crate) struct TermColumns<'a> {
    terms: (&'a ListArray, &'a [u32]),
    counts: (&'a ListArray, &'a [u8]),
    lengths: &'a Float32Array,
}

impl<'a> TermColumns<'a> {
    /// The columns that it reads.
    pub(crate) const NAMES: [&'static str; 3] = ["terms", "counts", "length"];

    pub(crate) fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let list = |name: &str| {
            let column = batch.column_by_name(name);
            let column = column.and_then(|column| column.as_list_opt::<i32>());
            column.ok_or_else(|| wrong(name))
        };
        let (terms, counts) = (list("terms")?, list("counts")?);
        let hashes = terms.values().as_primitive_opt::<UInt32Type>();
        let quarters = counts.values().as_primitive_opt::<UInt8Type>();
        Ok(Self {
            terms: (terms, hashes.ok_or_else(|| wrong("terms"))?.values()),
            counts: (counts, quarters.ok_or_else(|| wrong("counts"))?.values()),
            lengths: floats(batch, "length")?,
        })
    }

    pub(crate) fn row(&self, row: usize) -> Terms<'a> {
        Terms {
            hashes: items_of(self.terms, row),
            counts: items_of(self.counts, row),
            length: self.lengths.value(row),
        }
    }
}

/// The items of one list.
fn items_of<'a, T>((lists, items): (&'a ListArray, &'a [T]), row: usize) -> &'a [T] {
    let offsets = lists.value_offsets().get(row..row + 2);
    let range = match offsets {
        Some([begin, end]) => usize::try_from(*begin).ok().zip(usize::try_from(*end).ok()),
        _ => None,
    };
    let items = range.and_then(|(begin, end)| items.get(begin..end));
    items.unwrap_or_default()
}

/// An empty batch of the columns of documents, from which a table is made.
pub(crate) fn nothing() -> RecordBatch {
    RecordBatch::new_empty(Arc::new(schema::documents()))
}
