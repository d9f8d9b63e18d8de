//! The settings and fields of an index.

use mnemon_core::Tenant;
use mnemon_core::embed::ModelId;
use serde_json::{Value, json};

use crate::external_index::document::QUARTERS;
use crate::external_index::{Document, DocumentChange};

/// The format of the documents. A server that holds another one has to be rebuilt.
pub(super) const FORMAT: u64 = 1;

/// BM25's saturation. Terms are repeated four times for each occurrence, so it is four times that of
/// the built-in index.
const K1: f32 = 0.9 * QUARTERS;
const B: f32 = 0.75;

/// The settings, fields and names of a new generation.
pub(super) fn index(writing_alias: &str) -> Value {
    let keyword = json!({"type": "keyword"});
    let long = json!({"type": "long"});
    json!({
        "settings": {"index": {
            "knn": true,
            "similarity": {"default": {"type": "BM25", "k1": K1, "b": B}},
        }},
        "mappings": {
            "dynamic": "strict",
            "_meta": {"mnemon_format": FORMAT},
            "_source": {"excludes": ["terms"]},
            "properties": {
                "tenant": keyword, "id": keyword, "seq": long,
                "user": keyword, "agent": keyword, "session": keyword, "flow": keyword,
                "node": keyword, "audience": keyword,
                "scope": keyword, "kind": keyword, "namespace": keyword, "tags": keyword,
                "source": keyword, "derived_from": keyword,
                "created": long, "expires": long,
                "speaker": keyword, "speaker_word": keyword,
                "length": {"type": "float"},
                "terms": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
                "watermark_of": keyword, "watermark_seq": long, "watermark_embedded": long,
            },
        },
        "aliases": {writing_alias: {}},
    })
}

/// The field of the vectors of a model.
pub(super) fn vector_field(model: &ModelId) -> String {
    let name = format!("{} {}", model.name, model.dimension);
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("vector_{}", digest.get(..16).unwrap_or_default())
}

/// The mapping that adds this field.
pub(super) fn vector_mapping(model: &ModelId) -> Value {
    json!({"properties": {vector_field(model): {
        "type": "knn_vector",
        "dimension": model.dimension,
        "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
    }}})
}

/// The id of a record's document: ids of records may be longer than OpenSearch allows.
pub(super) fn document_id(tenant: &Tenant, id: &str) -> String {
    let name = format!("{tenant}\0{id}");
    blake3::hash(name.as_bytes()).to_hex().to_string()
}

/// The id of the document that holds a tenant's watermark.
pub(super) fn watermark_id(tenant: &Tenant) -> String {
    // No tenant has an empty name.
    let name = format!("\0watermark\0{tenant}");
    blake3::hash(name.as_bytes()).to_hex().to_string()
}

/// A term as it stands in the index and in queries.
pub(super) fn token(term: u32) -> String {
    format!("{term:08x}")
}

/// The lines of a bulk request for a change.
pub(super) fn bulk_lines(tenant: &Tenant, change: &DocumentChange, lines: &mut String) {
    let action = json!({
        "_id": document_id(tenant, change.id().as_str()),
        "version": change.version(),
        "version_type": "external_gte",
    });
    match change {
        DocumentChange::Put(document) => {
            lines.push_str(&json!({"index": action}).to_string());
            lines.push('\n');
            lines.push_str(&fields(tenant, document).to_string());
        }
        DocumentChange::Delete { .. } => {
            lines.push_str(&json!({"delete": action}).to_string());
        }
    }
    lines.push('\n');
}

fn fields(tenant: &Tenant, document: &Document) -> Value {
    let mut terms = String::new();
    for (term, quarters) in &document.terms {
        for _ in 0..*quarters {
            terms.push_str(&token(*term));
            terms.push(' ');
        }
    }
    let owner = &document.owner;
    let mut fields = json!({
        "tenant": tenant.as_str(), "id": document.id.as_str(), "seq": document.seq,
        "user": owner.user, "agent": owner.agent, "session": owner.session,
        "flow": owner.flow, "node": owner.node, "audience": document.audience,
        "scope": document.scope.as_str(), "kind": document.kind.as_str(),
        "namespace": document.namespace.as_str(), "tags": document.tags,
        "source": document.source,
        "derived_from": document.derived_from,
        "created": document.created, "expires": document.expires,
        "speaker": document.speaker, "speaker_word": document.speaker_word,
        "length": document.length, "terms": terms.trim_end(),
    });
    if let (Some(vector), Some(fields)) = (&document.vector, fields.as_object_mut()) {
        fields.insert(vector_field(&vector.model), json!(vector.values));
    }
    fields
}
