//! The columns of the table of a generation.
//!
//! All documents are in one table, so that a page of changes is one commit. Vectors of each model have
//! a column, as the vectors of a column have one length; documents without such a vector have null.

use std::sync::Arc;

use lance::deps::arrow_schema::{DataType, Field, Schema};
use mnemon_core::embed::ModelId;

/// Texts that every document has.
pub(crate) const TEXTS: [&str; 7] = [
    "tenant",
    "id",
    "audience",
    "scope",
    "kind",
    "namespace",
    "speaker_word",
];
/// Texts that may be null.
pub(crate) const OPTIONAL_TEXTS: [&str; 4] =
    ["owner_user", "owner_agent", "owner_session", "speaker"];
/// Numbers; times are milliseconds since 1970.
pub(crate) const NUMBERS: [&str; 3] = ["version", "created", "expires"];
/// What the columns of vectors begin with.
const VECTORS: &str = "vector_";
/// The key of a column's metadata with the name of its model.
pub(crate) const MODEL: &str = "mnemon.model";
/// Columns of vectors in a generation at the most.
pub(crate) const MODELS: usize = 32;

/// The columns without those of vectors.
pub(crate) fn documents() -> Schema {
    let mut fields: Vec<Field> = Vec::new();
    fields.extend(TEXTS.map(|name| Field::new(name, DataType::Utf8, false)));
    fields.extend(OPTIONAL_TEXTS.map(|name| Field::new(name, DataType::Utf8, true)));
    fields.extend(NUMBERS.map(|name| Field::new(name, DataType::Int64, false)));
    fields.push(Field::new("length", DataType::Float32, false));
    fields.push(Field::new("tags", list(DataType::Utf8), false));
    fields.push(Field::new("terms", list(DataType::UInt32), false));
    fields.push(Field::new("counts", list(DataType::UInt8), false));
    Schema::new(fields)
}

fn list(item: DataType) -> DataType {
    DataType::List(list_item(item))
}

/// The field of the items of a list.
pub(crate) fn list_item(item: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", item, true))
}

/// The name of the column of a model's vectors.
pub(crate) fn vector_column(model: &ModelId) -> String {
    let name = format!("{} {}", model.name, model.dimension);
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("{VECTORS}{}", digest.get(..16).unwrap_or_default())
}

/// The column of a model's vectors.
pub(crate) fn vector_field(model: &ModelId) -> Field {
    let length = i32::try_from(model.dimension).unwrap_or(i32::MAX);
    let vector = DataType::FixedSizeList(list_item(DataType::Float32), length);
    let metadata = [(MODEL.to_owned(), model.name.clone())].into();
    Field::new(vector_column(model), vector, true).with_metadata(metadata)
}

/// The length of the vectors of a column, if it is a column of vectors.
pub(crate) fn dimension(field: &Field) -> Option<usize> {
    match field.data_type() {
        DataType::FixedSizeList(_, length) if field.name().starts_with(VECTORS) => {
            usize::try_from(*length).ok()
        }
        _ => None,
    }
}

/// The column that another table lacks or has otherwise, if it is not a table of ours.
pub(crate) fn difference(found: &Schema) -> Option<String> {
    let wrong = |wanted: &Arc<Field>| {
        let found = found.field_with_name(wanted.name()).ok();
        !found.is_some_and(|found| same_type(found.data_type(), wanted.data_type()))
    };
    let wanted = documents();
    let wrong = wanted.fields().iter().find(|wanted| wrong(wanted));
    wrong.map(|field| field.name().clone())
}

/// Whether the values are the same, whatever their items are called.
fn same_type(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::List(one), DataType::List(other)) => one.data_type() == other.data_type(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_vectors_belongs_to_one_model_and_length() {
        let model = |name: &str, dimension| ModelId {
            name: name.to_owned(),
            dimension,
        };
        let columns = [("a", 3), ("a", 4), ("b", 3)].map(|(name, dimension)| {
            let field = vector_field(&model(name, dimension));
            assert_eq!(super::dimension(&field), Some(dimension));
            assert_eq!(field.metadata()[MODEL], name);
            field.name().clone()
        });
        let different: std::collections::HashSet<_> = columns.iter().collect();
        assert_eq!(different.len(), 3, "{columns:?}");
    }

    #[test]
    fn tables_of_other_programs_are_recognised() {
        let ours = documents();
        assert_eq!(difference(&ours), None);
        let fields: Vec<_> = ours.fields().iter().cloned().collect();
        let fewer = fields.iter().filter(|it| it.name() != "tags").cloned();
        let fewer = Schema::new(fewer.collect::<Vec<_>>());
        assert_eq!(difference(&fewer), Some("tags".to_owned()));
        let other = Schema::new(vec![Field::new("tenant", DataType::Int64, false)]);
        assert_eq!(difference(&other), Some("tenant".to_owned()));
    }
}
