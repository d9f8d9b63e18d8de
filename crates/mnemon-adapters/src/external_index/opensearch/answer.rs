//! Reading what OpenSearch found.

use mnemon_core::{Statistics, StoreError};
use serde_json::Value;

use super::Part;
use super::client::Client;
use crate::external_index::{Found, ServerAnswer, ServerError};

/// The answers to several searches.
pub(super) struct Answers<'a> {
    client: &'a Client,
    parts: Vec<Part>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(client: &'a Client, parts: Vec<Part>) -> Self {
        Self { client, parts }
    }

    pub(super) fn read(&self, answer: &Value) -> Result<ServerAnswer, ServerError> {
        let responses = answer["responses"].as_array();
        let responses = responses.filter(|it| it.len() == self.parts.len());
        let responses =
            responses.ok_or_else(|| self.client.unreadable("an answer to each search"))?;
        let mut found = ServerAnswer::default();
        for (part, response) in self.parts.iter().zip(responses) {
            if response.get("error").is_some() {
                let status = response["status"].as_u64().unwrap_or(500);
                let status = u16::try_from(status).unwrap_or(500);
                return Err(self.client.refused(status, response));
            }
            if response["timed_out"] == true || response["_shards"]["failed"] != 0 {
                let lacks = "the results of every shard";
                return Err(self.client.unreadable(lacks).into());
            }
            match part {
                Part::Words => found.words = hits(self.client, response, |score| score)?,
                Part::Meaning => {
                    found.meaning.extend(hits(self.client, response, cosine)?);
                }
                Part::Newest => found.newest = hits(self.client, response, |_| 0.0)?,
                Part::Statistics => found.statistics = Some(self.statistics(response)?),
            }
        }
        Ok(found)
    }

    fn statistics(&self, response: &Value) -> Result<Statistics, StoreError> {
        let unreadable = || self.client.unreadable("statistics");
        let number = |value: &Value| {
            let number = value.as_u64().and_then(|it| usize::try_from(it).ok());
            number.ok_or_else(unreadable)
        };
        let having = response.pointer("/aggregations/having/buckets");
        let having = having.and_then(Value::as_array).ok_or_else(unreadable)?;
        let having = having.iter().map(|bucket| number(&bucket["doc_count"]));
        let length = &response["aggregations"]["length"]["value"];
        Ok(Statistics {
            documents: number(&response["hits"]["total"]["value"])?,
            // The mean of no documents is null.
            mean_length: length.as_f64().unwrap_or(0.0) as f32,
            documents_with: having.collect::<Result<_, _>>()?,
        })
    }
}

/// The cosine behind a score: OpenSearch adds one and divides by two, as scores are not negative.
fn cosine(score: f32) -> f32 {
    2.0 * score - 1.0
}

/// The hits of one search.
pub(super) fn hits(
    client: &Client,
    response: &Value,
    score: fn(f32) -> f32,
) -> Result<Vec<Found>, StoreError> {
    let unreadable = || client.unreadable("hits with an id and a number");
    let hits = response.pointer("/hits/hits").and_then(Value::as_array);
    let hits = hits.ok_or_else(unreadable)?.iter();
    hits.map(|hit| {
        let id = hit.pointer("/fields/id/0").and_then(Value::as_str);
        let seq = hit.pointer("/fields/seq/0").and_then(Value::as_u64);
        let id = id.and_then(|id| id.parse().ok());
        // A search that is sorted has no scores.
        let found = hit["_score"].as_f64().unwrap_or(0.0) as f32;
        Ok(Found {
            id: id.ok_or_else(unreadable)?,
            seq: seq.ok_or_else(unreadable)?,
            score: score(found),
        })
    })
    .collect()
}

/// The names of documents that have this field, and its numbers.
pub(super) fn vectors(
    client: &Client,
    answer: &Value,
    field: &str,
) -> Result<Vec<(String, Vec<f32>)>, StoreError> {
    let unreadable = || client.unreadable("documents with a name");
    let documents = answer["docs"].as_array().ok_or_else(unreadable)?;
    let mut found = Vec::new();
    for document in documents {
        let name = document["_id"].as_str().ok_or_else(unreadable)?;
        let numbers = document["_source"][field].as_array();
        let numbers = numbers.map(|numbers| numbers.iter().filter_map(Value::as_f64));
        if let Some(numbers) = numbers {
            let vector = numbers.map(|number| number as f32).collect();
            found.push((name.to_owned(), vector));
        }
    }
    Ok(found)
}
