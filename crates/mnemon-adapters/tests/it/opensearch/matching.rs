//! Searches of the double: filters, BM25, cosines, sorting and aggregations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct Doc {
    pub(super) version: u64,
    pub(super) number: u64,
    pub(super) source: Value,
}

fn only(value: &Value) -> (&str, &Value) {
    let object = value.as_object().unwrap();
    assert_eq!(object.len(), 1, "{value}");
    let (name, value) = object.iter().next().unwrap();
    (name, value)
}

/// The values of a field: one, several or none.
fn values<'a>(doc: &'a Doc, field: &str) -> Vec<&'a Value> {
    match &doc.source[field] {
        Value::Null => Vec::new(),
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    }
}

fn tokens<'a>(doc: &'a Doc, field: &str) -> Vec<&'a str> {
    let text = doc.source[field].as_str().unwrap_or_default();
    text.split_whitespace().collect()
}

/// Whether a filter means the document.
pub(super) fn matches(query: &Value, doc: &Doc) -> bool {
    let (name, clause) = only(query);
    match name {
        "bool" => {
            let parts = clause["filter"].as_array().unwrap();
            parts.iter().all(|part| matches(part, doc))
        }
        "term" => {
            let (field, value) = only(clause);
            let value = value.get("value").unwrap_or(value);
            match field {
                "terms" => tokens(doc, field).contains(&value.as_str().unwrap()),
                _ => values(doc, field).contains(&value),
            }
        }
        "terms" => {
            let (field, wanted) = only(clause);
            let wanted = wanted.as_array().unwrap();
            values(doc, field).iter().any(|it| wanted.contains(it))
        }
        "range" => {
            let (field, range) = only(clause);
            let Some(value) = doc.source[field].as_i64() else {
                return false;
            };
            range.as_object().unwrap().iter().all(|(bound, limit)| {
                let limit = limit.as_i64().unwrap();
                match bound.as_str() {
                    "gte" => value >= limit,
                    "lt" => value < limit,
                    other => panic!("unknown bound {other}"),
                }
            })
        }
        other => panic!("unknown clause {other}"),
    }
}

/// The score of a document; `None` if the query does not find it.
fn score(query: &Value, doc: &Doc, corpus: &Corpus<'_>) -> Option<f64> {
    let (name, clause) = only(query);
    if name == "knn" {
        let (field, near) = only(clause);
        assert!(near["k"].as_u64().unwrap() > 0);
        let own = doc.source[field].as_array()?;
        let is_meant = matches(&near["filter"], doc);
        return is_meant.then(|| (1.0 + cosine(own, near["vector"].as_array().unwrap())) / 2.0);
    }
    if !matches(query, doc) {
        return None;
    }
    let Some(should) = clause["should"].as_array() else {
        return Some(0.0);
    };
    assert_eq!(clause["minimum_should_match"], 1);
    let tokens = tokens(doc, "terms");
    let scores = should.iter();
    let scores = scores.filter_map(|term| bm25(term, &tokens, corpus));
    scores.reduce(|sum, score| sum + score)
}

fn cosine(one: &[Value], other: &[Value]) -> f64 {
    assert_eq!(one.len(), other.len(), "the dimension of the field");
    let number = |value: &Value| value.as_f64().unwrap();
    let dot = |a: &[Value], b: &[Value]| -> f64 {
        a.iter().zip(b).map(|(a, b)| number(a) * number(b)).sum()
    };
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// All documents of the index, for one search.
struct Corpus<'a> {
    docs: f64,
    mean_length: f64,
    /// How many documents have each token.
    having: HashMap<&'a str, f64>,
}

impl<'a> Corpus<'a> {
    /// With counts of the tokens that a search looks for.
    fn of(docs: &'a BTreeMap<String, Doc>, query: &Value) -> Self {
        let should = query["bool"]["should"].as_array().into_iter().flatten();
        let wanted = should.filter_map(|term| only(&term["term"]).1["value"].as_str());
        let wanted: BTreeSet<&str> = wanted.collect();
        let (mut length, mut having) = (0, HashMap::new());
        for doc in docs.values().filter(|_| !wanted.is_empty()) {
            let mut tokens = tokens(doc, "terms");
            length += tokens.len();
            tokens.retain(|token| wanted.contains(token));
            for token in tokens.into_iter().collect::<BTreeSet<&str>>() {
                *having.entry(token).or_default() += 1.0;
            }
        }
        let docs = docs.len() as f64;
        Self {
            docs,
            mean_length: length as f64 / docs,
            having,
        }
    }
}

fn bm25(term: &Value, tokens: &[&str], corpus: &Corpus<'_>) -> Option<f64> {
    let (field, term) = only(&term["term"]);
    assert_eq!(field, "terms");
    let wanted = term["value"].as_str().unwrap();
    let own = tokens.iter().filter(|it| **it == wanted).count() as f64;
    let having = *corpus.having.get(wanted).filter(|_| own > 0.0)?;
    let idf = (1.0 + (corpus.docs - having + 0.5) / (having + 0.5)).ln();
    let length = tokens.len() as f64;
    let held = 3.6 * (0.25 + 0.75 * length / corpus.mean_length.max(1.0));
    Some(term["boost"].as_f64().unwrap() * idf * own / (own + held))
}

const KEYS: [&str; 8] = [
    "size",
    "_source",
    "track_total_hits",
    "docvalue_fields",
    "query",
    "sort",
    "search_after",
    "aggs",
];

/// The answer to a search.
pub(super) fn search(search: &Value, docs: &BTreeMap<String, Doc>) -> Value {
    let keys = search.as_object().unwrap().keys();
    assert!(
        keys.into_iter().all(|key| KEYS.contains(&key.as_str())),
        "{search}"
    );
    let query = &search["query"];
    let corpus = Corpus::of(docs, query);
    let found = docs.values();
    let mut found: Vec<(f64, &Doc)> = found
        .filter_map(|doc| Some((score(query, doc, &corpus)?, doc)))
        .collect();
    let total = found.len();
    let aggregations = search.get("aggs").map(|aggs| aggregate(aggs, &found));
    sort(search, &mut found);
    found.truncate(search["size"].as_u64().unwrap() as usize);
    let hits: Vec<Value> = found
        .into_iter()
        .map(|(score, doc)| {
            let fields = json!({"id": [doc.source["id"]], "seq": [doc.source["seq"]]});
            json!({"_score": score, "fields": fields})
        })
        .collect();
    let mut answer = json!({
        "timed_out": false, "status": 200, "_shards": {"failed": 0},
        "hits": {"total": {"value": total}, "hits": hits},
    });
    if let Some(aggregations) = aggregations {
        answer["aggregations"] = aggregations;
    }
    answer
}

fn sort(search: &Value, found: &mut Vec<(f64, &Doc)>) {
    let Some(order) = search["sort"].as_array() else {
        found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        return;
    };
    match only(&order[0]).0 {
        "id" => {
            found.sort_by_key(|(_, doc)| doc.source["id"].as_str().unwrap().to_owned());
            if let Some(after) = search["search_after"][0].as_str() {
                found.retain(|(_, doc)| doc.source["id"].as_str().unwrap() > after);
            }
        }
        _ => found.sort_by_key(|(_, doc)| {
            let number = |field: &str| doc.source[field].as_i64().unwrap();
            std::cmp::Reverse((number("created"), number("seq")))
        }),
    }
}

fn aggregate(aggs: &Value, found: &[(f64, &Doc)]) -> Value {
    let mut answer = json!({});
    for (name, aggregation) in aggs.as_object().unwrap() {
        let (kind, asked) = only(aggregation);
        answer[name] = match kind {
            "avg" => {
                let field = asked["field"].as_str().unwrap();
                let all: Vec<f64> = found
                    .iter()
                    .filter_map(|(_, it)| it.source[field].as_f64())
                    .collect();
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                json!({"value": (!all.is_empty()).then_some(mean)})
            }
            "filters" => {
                let filters = asked["filters"].as_array().unwrap().iter();
                let counts = filters.map(|filter| {
                    let count = found.iter().filter(|(_, doc)| matches(filter, doc)).count();
                    json!({"doc_count": count})
                });
                json!({"buckets": counts.collect::<Vec<_>>()})
            }
            "terms" => {
                let field = asked["field"].as_str().unwrap();
                let names: BTreeSet<&str> = found
                    .iter()
                    .filter_map(|(_, doc)| doc.source[field].as_str())
                    .collect();
                let most = asked["size"].as_u64().unwrap() as usize;
                let names = names
                    .into_iter()
                    .take(most)
                    .map(|name| json!({"key": name}));
                json!({"buckets": names.collect::<Vec<_>>()})
            }
            other => panic!("unknown aggregation {other}"),
        };
    }
    answer
}
