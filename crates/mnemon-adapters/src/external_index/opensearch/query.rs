//! Searches in OpenSearch's query language.

use mnemon_core::index::hash;
use mnemon_core::rank::SIMILAR_WEIGHT;
use mnemon_core::{Embedding, Filter, Probe, QueryTerm, limits};
use serde_json::{Value, json};

use super::mapping::{token, vector_field};
use crate::external_index::Audience;

/// Terms of one query at the most; OpenSearch allows 1024 clauses.
const TERMS: usize = 500;
/// Matches of one search at the most, which is OpenSearch's own limit.
const MATCHES: usize = 10_000;

/// The conditions of a search. Metadata are not in the index.
pub(super) fn filter(asked: &Audience<'_>) -> Vec<Value> {
    let filter = asked.filter;
    let mut all = vec![
        json!({"term": {"tenant": asked.tenant.as_str()}}),
        json!({"range": {"expires": {"gte": asked.now.millis()}}}),
    ];
    for (field, part) in filter.owner.parts() {
        all.extend(part.map(|name| json!({"term": {field: name}})));
    }
    if let Some(audiences) = filter.viewer.audiences() {
        let seen = audiences.iter().map(ToString::to_string);
        let seen: Vec<String> = seen.chain(["everyone".to_owned()]).collect();
        all.push(json!({"terms": {"audience": seen}}));
    }
    all.extend(among("scope", filter.scopes.iter().map(|it| it.as_str())));
    all.extend(among("kind", filter.kinds.iter().map(|it| it.as_str())));
    let namespaces = filter.namespaces.iter().map(|it| it.as_str());
    all.extend(among("namespace", namespaces));
    let tags: Vec<String> = filter.tags.iter().map(|tag| tag.to_lowercase()).collect();
    all.extend(among("tags", tags.iter().map(String::as_str)));
    all.extend(among("source", filter.source.as_deref().into_iter()));
    let sources = filter.derived_from.iter().map(|id| id.as_str());
    all.extend(among("derived_from", sources));
    all.extend(created(filter));
    all
}

fn among<'a>(field: &str, values: impl Iterator<Item = &'a str>) -> Option<Value> {
    let values: Vec<&str> = values.collect();
    (!values.is_empty()).then(|| json!({"terms": {field: values}}))
}

fn created(filter: &Filter) -> Option<Value> {
    let mut range = serde_json::Map::new();
    if let Some(since) = filter.since {
        range.insert("gte".to_owned(), json!(since.millis()));
    }
    if let Some(until) = filter.until {
        range.insert("lt".to_owned(), json!(until.millis()));
    }
    (!range.is_empty()).then(|| json!({"range": {"created": range}}))
}

/// The search with this query, whose hits show id and number.
fn search(depth: usize, query: &Value) -> Value {
    json!({
        "size": depth.min(MATCHES), "_source": false, "track_total_hits": false,
        "docvalue_fields": ["id", "seq"], "query": query,
    })
}

/// The terms of a probe that are looked up: those of the highest weight.
pub(super) fn terms(probe: &Probe) -> Vec<&QueryTerm> {
    let mut terms: Vec<&QueryTerm> = probe.terms.iter().collect();
    if terms.len() > TERMS {
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        terms.truncate(TERMS);
    }
    terms
}

/// The words arm.
pub(super) fn words(filter: &[Value], probe: &Probe) -> Value {
    let clause = |text: &str, weight: f32| {
        let value = token(hash(text));
        json!({"term": {"terms": {"value": value, "boost": weight.max(0.0)}}})
    };
    let terms = terms(probe);
    let mut should: Vec<Value> = terms.iter().map(|it| clause(&it.text, it.weight)).collect();
    for similar in &probe.similar {
        let of = terms.iter().find(|term| term.text == similar.of);
        if let Some(of) = of.filter(|_| should.len() < 2 * TERMS) {
            let weight = of.weight * similar.similarity * SIMILAR_WEIGHT;
            should.push(clause(&similar.text, weight));
        }
    }
    let query = json!({"bool": {
        "filter": filter, "should": should, "minimum_should_match": 1,
    }});
    search(probe.depth, &query)
}

/// The meaning arm for one model.
pub(super) fn meaning(filter: &[Value], query: &Embedding, depth: usize) -> Value {
    let near = json!({
        "vector": query.vector, "k": depth.clamp(1, MATCHES),
        "filter": {"bool": {"filter": filter}},
    });
    let query = json!({"knn": {vector_field(&query.model): near}});
    search(depth, &query)
}

/// The newest documents.
pub(super) fn newest(filter: &[Value], depth: usize) -> Value {
    let mut search = search(depth, &json!({"bool": {"filter": filter}}));
    if let Some(search) = search.as_object_mut() {
        let order = json!([{"created": "desc"}, {"seq": "desc"}]);
        search.insert("sort".to_owned(), order);
    }
    search
}

/// How many documents there are, how long they are, and how many have each term.
pub(super) fn statistics(audience: &[Value], probe: &Probe) -> Value {
    let having = probe.terms.iter().map(|term| {
        let value = token(hash(&term.text));
        json!({"term": {"terms": {"value": value}}})
    });
    let having: Vec<Value> = having.collect();
    json!({
        "size": 0, "track_total_hits": true, "query": {"bool": {"filter": audience}},
        "aggs": {
            "length": {"avg": {"field": "length"}},
            "having": {"filters": {"filters": having}},
        },
    })
}

/// Whether the statistics of all terms of the probe can be asked for at once.
pub(super) fn has_statistics(probe: &Probe) -> bool {
    (1..=TERMS).contains(&probe.terms.len())
}

/// Speakers by their first words.
pub(super) fn speakers(mut audience: Vec<Value>, words: &[&str]) -> Value {
    audience.push(json!({"terms": {"speaker_word": words}}));
    json!({
        "size": 0, "track_total_hits": false, "query": {"bool": {"filter": audience}},
        "aggs": {"names": {"terms": {
            "field": "speaker", "size": limits::SPEAKERS, "order": {"_key": "asc"},
        }}},
    })
}

/// The documents of a tenant after this id.
pub(super) fn entries(tenant: &str, after: Option<&str>, limit: usize) -> Value {
    let query = json!({"bool": {"filter": [{"term": {"tenant": tenant}}]}});
    let mut search = search(limit, &query);
    if let Some(search) = search.as_object_mut() {
        search.insert("sort".to_owned(), json!([{"id": "asc"}]));
        if let Some(after) = after {
            search.insert("search_after".to_owned(), json!([after]));
        }
    }
    search
}
