//! Documents as rows, and rows as columns.

use mnemon_adapters::external_index::{Document, QUARTERS, Watermark};
use mnemon_core::Tenant;

use crate::proto::{Arrays, Column, Floats, Longs, Scalars, Sparse, Strings, Vectors, data_type};
use crate::schema::{
    ARRAY_ITEMS, DOCUMENT_TEXTS, KEY, MEANING, NUMBERS, TEXT_BYTES, TEXTS, WORDS, key,
    watermark_key,
};

/// BM25's saturation and its correction for length, as in the built-in index.
const K1: f32 = 0.9;
const B: f32 = 0.75;
/// The length that counts as usual. It is constant, because the weights of a document are computed
/// once; the words of the messages of LoCoMo are about as many.
const USUAL_LENGTH: f32 = 16.0;
/// The index of a weight that every document has, as a sparse vector must not be empty. No query
/// has it.
const ALWAYS: u32 = u32::MAX - 1;
/// What an estimate adds for the fields of a row but terms and vectors.
const ROW_BYTES: usize = 1024;

/// The index of the weight of a term. Milvus does not allow the highest one.
pub(crate) fn sparse_index(term: u32) -> u32 {
    term.min(u32::MAX - 2)
}

/// A row of the collection of all documents.
pub(crate) struct Row {
    key: String,
    texts: Vec<String>,
    numbers: Vec<i64>,
    tags: Vec<String>,
    /// Speaker and first word.
    speaker: [String; 2],
    embedded: i64,
    length: f32,
    terms: Vec<(u32, u8)>,
    vector: Vec<f32>,
}

impl Row {
    pub(crate) fn of(tenant: &Tenant, document: &Document, version: u64) -> Self {
        let owner = &document.owner;
        let name = |part: &Option<String>| part.clone().unwrap_or_default();
        let vector = document.vector.as_ref();
        Self {
            key: key(tenant, document.id.as_str()),
            texts: vec![
                tenant.to_string(),
                document.id.to_string(),
                name(&owner.user),
                name(&owner.agent),
                name(&owner.session),
                document.audience.clone(),
                document.scope.as_str().to_owned(),
                document.kind.as_str().to_owned(),
                document.namespace.as_str().to_owned(),
            ],
            numbers: vec![number(version), document.created, document.expires],
            tags: document.tags.clone(),
            speaker: [&document.speaker, &document.speaker_word]
                .map(|text| cut(text.as_deref().unwrap_or_default())),
            embedded: 0,
            length: document.length,
            terms: document.terms.clone(),
            vector: vector.map_or_else(Vec::new, |vector| vector.values.clone()),
        }
    }

    /// The row that holds a watermark. It belongs to no tenant.
    pub(crate) fn of_watermark(tenant: &Tenant, to: Watermark) -> Self {
        let mut texts = vec![String::new(); TEXTS.len()];
        if let Some(id) = texts.get_mut(1) {
            *id = tenant.to_string();
        }
        Self {
            key: watermark_key(tenant),
            texts,
            numbers: vec![number(to.seq), 0, Document::NEVER],
            tags: Vec::new(),
            speaker: Default::default(),
            embedded: number(to.embedded),
            length: 0.0,
            terms: Vec::new(),
            vector: Vec::new(),
        }
    }

    /// About how many bytes the row takes in a request.
    pub(crate) fn bytes(&self) -> usize {
        ROW_BYTES + self.terms.len() * 16 + self.vector.len() * 4
    }

    /// The weights that BM25 gives to the terms in this document, without how rare they are.
    fn weights(&self) -> Vec<u8> {
        let norm = K1 * (1.0 - B + B * self.length / USUAL_LENGTH);
        let weight = |quarters: u8| {
            let occurs = f32::from(quarters) / QUARTERS;
            occurs * (K1 + 1.0) / (occurs + norm)
        };
        let weights = self.terms.iter();
        let weights = weights.map(|(term, quarters)| (sparse_index(*term), weight(*quarters)));
        sparse(weights.chain([(ALWAYS, 1.0)]).collect())
    }
}

/// A sparse vector: by index, each once.
pub(crate) fn sparse(mut weights: Vec<(u32, f32)>) -> Vec<u8> {
    weights.retain(|(_, weight)| *weight > 0.0);
    weights.sort_by_key(|(index, _)| *index);
    weights.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 += next.1;
        }
        is_same
    });
    let mut bytes = Vec::with_capacity(weights.len() * 8);
    for (index, weight) in weights {
        bytes.extend(index.to_le_bytes());
        bytes.extend(weight.to_le_bytes());
    }
    bytes
}

/// Numbers of changes are far below the highest one.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The text without what Milvus does not take.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES);
    text.get(..end).unwrap_or_default().to_owned()
}

/// Columns for the collection of all documents.
pub(crate) fn documents(rows: &[&Row]) -> Vec<Column> {
    let mut columns = filtered(rows);
    for (at, name) in DOCUMENT_TEXTS.iter().enumerate() {
        let texts = rows.iter().filter_map(|row| row.speaker.get(at).cloned());
        columns.push(strings(name, texts.collect()));
    }
    columns.push(longs(
        "embedded",
        rows.iter().map(|row| row.embedded).collect(),
    ));
    let lengths = rows.iter().map(|row| row.length).collect();
    columns.push(scalars(
        "length",
        data_type::FLOAT,
        Scalars {
            floats: Some(Floats { data: lengths }),
            ..Scalars::default()
        },
    ));
    let terms = rows.iter().map(|row| {
        let terms = row.terms.iter().take(ARRAY_ITEMS);
        Scalars {
            longs: Some(Longs {
                data: terms.map(|(term, _)| i64::from(*term)).collect(),
            }),
            ..Scalars::default()
        }
    });
    columns.push(arrays("terms", data_type::INT64, terms.collect()));
    let weights: Vec<Vec<u8>> = rows.iter().map(|row| row.weights()).collect();
    let dimension = i64::from(u32::MAX);
    columns.push(Column {
        data_type: data_type::SPARSE_VECTOR,
        name: WORDS.to_owned(),
        scalars: None,
        vectors: Some(Vectors {
            dimension,
            dense: None,
            sparse: Some(Sparse {
                rows: weights,
                dimension,
            }),
        }),
    });
    columns
}

/// Columns for the collection of the vectors of a model. All rows have one.
pub(crate) fn vectors(rows: &[&Row]) -> Vec<Column> {
    let mut columns = filtered(rows);
    let dimension = rows.first().map_or(0, |row| row.vector.len());
    let values = rows.iter().flat_map(|row| row.vector.iter().copied());
    columns.push(Column {
        data_type: data_type::FLOAT_VECTOR,
        name: MEANING.to_owned(),
        scalars: None,
        vectors: Some(Vectors {
            dimension: i64::try_from(dimension).unwrap_or(0),
            dense: Some(Floats {
                data: values.collect(),
            }),
            sparse: None,
        }),
    });
    columns
}

fn filtered(rows: &[&Row]) -> Vec<Column> {
    let keys = rows.iter().map(|row| row.key.clone()).collect();
    let mut columns = vec![strings(KEY, keys)];
    for (at, name) in TEXTS.iter().enumerate() {
        let texts = rows.iter().filter_map(|row| row.texts.get(at).cloned());
        columns.push(strings(name, texts.collect()));
    }
    for (at, name) in NUMBERS.iter().enumerate() {
        let numbers = rows.iter().filter_map(|row| row.numbers.get(at).copied());
        columns.push(longs(name, numbers.collect()));
    }
    let tags = rows.iter().map(|row| Scalars {
        strings: Some(Strings {
            data: row.tags.clone(),
        }),
        ..Scalars::default()
    });
    columns.push(arrays("tags", data_type::VARCHAR, tags.collect()));
    columns
}

fn scalars(name: &str, data_type: i32, scalars: Scalars) -> Column {
    Column {
        data_type,
        name: name.to_owned(),
        scalars: Some(scalars),
        vectors: None,
    }
}

fn strings(name: &str, data: Vec<String>) -> Column {
    let values = Scalars {
        strings: Some(Strings { data }),
        ..Scalars::default()
    };
    scalars(name, data_type::VARCHAR, values)
}

fn longs(name: &str, data: Vec<i64>) -> Column {
    let values = Scalars {
        longs: Some(Longs { data }),
        ..Scalars::default()
    };
    scalars(name, data_type::INT64, values)
}

fn arrays(name: &str, element_type: i32, data: Vec<Scalars>) -> Column {
    let values = Scalars {
        arrays: Some(Arrays { data, element_type }),
        ..Scalars::default()
    };
    scalars(name, data_type::ARRAY, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(u32, f32)> {
        let four = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).unwrap();
        let pairs = bytes.chunks(8);
        let read = |pair: &[u8]| {
            let index = u32::from_le_bytes(four(&pair[..4]));
            (index, f32::from_le_bytes(four(&pair[4..])))
        };
        pairs.map(read).collect()
    }

    #[test]
    fn a_sparse_vector_has_each_index_once_by_index() {
        let made = sparse(vec![(7, 1.0), (3, 2.0), (7, 0.5), (5, 0.0)]);
        assert_eq!(read(&made), [(3, 2.0), (7, 1.5)]);
    }

    #[test]
    fn a_document_without_terms_has_a_weight_that_no_query_has() {
        let row = Row::of_watermark(&Tenant::default(), Watermark::default());
        assert_eq!(read(&row.weights()), [(ALWAYS, 1.0)]);
        assert!(sparse_index(u32::MAX) < ALWAYS);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "é".repeat(TEXT_BYTES);
        assert_eq!(cut(&long).len(), TEXT_BYTES - 1);
        assert_eq!(cut("Ann"), "Ann");
    }
}
