//! The collections of an index, their names and fields.
//!
//! A generation is a collection `NAME_gN` of all documents; the alias `NAME` names the one that
//! searches use. Vectors of each model are in a collection `NAME_gN_vM`, as a collection's vectors
//! have one length. It repeats the fields that filters need.

use mnemon_adapters::external_index::Generation;
use mnemon_core::Tenant;
use mnemon_core::embed::ModelId;
use prost::Message;

use crate::proto::{Field, NewCollection, NewIndex, Pair, Schema, data_type};

/// The primary key. Its name changes with the format of the documents.
pub(crate) const KEY: &str = "key_1";
/// The field of the weights of terms.
pub(crate) const WORDS: &str = "words";
/// The field of the vectors of a model.
pub(crate) const MEANING: &str = "meaning";

/// Bytes of a text, which is the most that Milvus allows.
pub(crate) const TEXT_BYTES: usize = 65_535;
/// Numbers of an array, which is the most that Milvus allows.
pub(crate) const ARRAY_ITEMS: usize = 4096;
/// Hex digits of the number of a generation, and of the digest of a model.
const DIGITS: usize = 16;

/// Texts that filters need.
pub(crate) const TEXTS: [&str; 9] = [
    "tenant",
    "id",
    "user",
    "agent",
    "session",
    "audience",
    "scope",
    "kind",
    "namespace",
];
/// Numbers that filters need.
pub(crate) const NUMBERS: [&str; 3] = ["version", "created", "expires"];
/// Texts that only documents have.
pub(crate) const DOCUMENT_TEXTS: [&str; 2] = ["speaker", "speaker_word"];

/// A new name for a generation.
pub(crate) fn new_generation(name: &str) -> Generation {
    Generation(format!("{name}_g{:016x}", fastrand::u64(..)))
}

/// The generation that a collection belongs to, if it is one of this index.
pub(crate) fn generation_of<'a>(name: &str, collection: &'a str) -> Option<&'a str> {
    let rest = collection.strip_prefix(name)?.strip_prefix("_g")?;
    let end = collection.len() - rest.len() + DIGITS;
    let (generation, rest) = collection.split_at_checked(end)?;
    let number = generation.get(end - DIGITS..)?;
    let is_vectors = rest.strip_prefix("_v").is_some_and(is_number);
    (is_number(number) && (rest.is_empty() || is_vectors)).then_some(generation)
}

fn is_number(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The collection of the vectors of a model.
pub(crate) fn vectors_of(generation: &Generation, model: &ModelId) -> String {
    let name = format!("{} {}", model.name, model.dimension);
    let digest = blake3::hash(name.as_bytes()).to_hex();
    let digest = digest.get(..DIGITS).unwrap_or_default();
    format!("{}_v{digest}", generation.0)
}

/// The key of a record's document.
pub(crate) fn key(tenant: &Tenant, id: &str) -> String {
    digest(&format!("{tenant}\0{id}"))
}

/// The key of the row that holds a tenant's watermark.
pub(crate) fn watermark_key(tenant: &Tenant) -> String {
    // No tenant has an empty name.
    digest(&format!("\0watermark\0{tenant}"))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The collection of all documents.
pub(crate) fn documents(generation: &Generation) -> NewCollection {
    let mut fields = filtered();
    fields.extend(DOCUMENT_TEXTS.map(text));
    fields.push(plain("embedded", data_type::INT64));
    fields.push(plain("length", data_type::FLOAT));
    fields.push(array("terms", data_type::INT64, ARRAY_ITEMS));
    fields.push(plain(WORDS, data_type::SPARSE_VECTOR));
    collection(&generation.0, fields)
}

/// The collection of the vectors of a model.
pub(crate) fn vectors(name: &str, model: &ModelId) -> NewCollection {
    let mut fields = filtered();
    let mut vector = plain(MEANING, data_type::FLOAT_VECTOR);
    vector.params = vec![Pair::new("dim", model.dimension)];
    fields.push(vector);
    collection(name, fields)
}

/// The index over the weights of terms. The weights are those of BM25 already.
pub(crate) fn words_index(collection: &str) -> NewIndex {
    index(collection, WORDS, "SPARSE_INVERTED_INDEX", "IP")
}

/// The index over vectors.
pub(crate) fn meaning_index(collection: &str) -> NewIndex {
    index(collection, MEANING, "AUTOINDEX", "COSINE")
}

/// Whether a collection has the fields of the documents of this version.
pub(crate) fn has_fields(found: &Schema) -> bool {
    let expected = documents(&Generation(String::new())).schema;
    let Ok(expected) = Schema::decode(expected.as_slice()) else {
        return false;
    };
    let shape = |schema: &Schema| {
        let fields = schema.fields.iter();
        let mut fields: Vec<_> = fields.map(|it| (it.name.clone(), it.data_type)).collect();
        fields.sort();
        fields
    };
    shape(found) == shape(&expected)
}

fn filtered() -> Vec<Field> {
    let mut key = text(KEY);
    key.is_primary = true;
    let mut fields = vec![key];
    fields.extend(TEXTS.map(text));
    fields.extend(NUMBERS.map(|name| plain(name, data_type::INT64)));
    fields.push(array("tags", data_type::VARCHAR, mnemon_core::limits::TAGS));
    fields
}

fn plain(name: &str, data_type: i32) -> Field {
    Field {
        name: name.to_owned(),
        data_type,
        ..Field::default()
    }
}

fn text(name: &str) -> Field {
    Field {
        params: vec![Pair::new("max_length", TEXT_BYTES)],
        ..plain(name, data_type::VARCHAR)
    }
}

fn array(name: &str, element_type: i32, most: usize) -> Field {
    let mut params = vec![Pair::new("max_capacity", most)];
    if element_type == data_type::VARCHAR {
        params.push(Pair::new("max_length", TEXT_BYTES));
    }
    Field {
        element_type,
        params,
        ..plain(name, data_type::ARRAY)
    }
}

fn collection(name: &str, fields: Vec<Field>) -> NewCollection {
    let schema = Schema {
        name: name.to_owned(),
        description: "A search index of Mnemon; `mnemon index rebuild` fills it".to_owned(),
        fields,
    };
    NewCollection {
        collection: name.to_owned(),
        schema: schema.encode_to_vec(),
        shards: 1,
        ..NewCollection::default()
    }
}

fn index(collection: &str, field: &str, index_type: &str, metric: &str) -> NewIndex {
    NewIndex {
        collection: collection.to_owned(),
        field: field.to_owned(),
        params: vec![
            Pair::new("index_type", index_type),
            Pair::new("metric_type", metric),
            Pair::new("params", "{}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_collections_of_the_index_belong_to_its_generations() {
        let generation = new_generation("memory");
        let model = ModelId {
            name: "m".to_owned(),
            dimension: 3,
        };
        let vectors = vectors_of(&generation, &model);
        for own in [&generation.0, &vectors] {
            assert_eq!(generation_of("memory", own), Some(generation.0.as_str()));
        }
        let longer = format!("{}0", generation.0);
        let others = ["memory", "memory_g", "memory_gold", "memories_g1", &longer];
        for other in others {
            assert_eq!(generation_of("memory", other), None, "{other}");
        }
        assert_eq!(generation_of("memory_g", &generation.0), None);
    }
}
