//! Finding documents.

use std::collections::{BTreeSet, HashMap};

use futures::future::{try_join, try_join_all};
use mnemon_adapters::external_index::{Audience, Entry, Found, Generation, Question, ServerAnswer};
use mnemon_core::embed::ModelId;
use mnemon_core::index::hash;
use mnemon_core::rank::SIMILAR_WEIGHT;
use mnemon_core::{Embedding, Id, Probe, Statistics, Tenant, limits};

use super::Milvus;
use crate::client::Failure;
use crate::query::{ROWS, Target};
use crate::rows::{sparse, sparse_index};
use crate::{filter, schema};

/// Terms of a probe at the most whose documents are counted, each by a query. For more terms the
/// engine estimates how frequent they are.
const COUNTED_TERMS: usize = 64;
/// Documents whose mean length stands for that of all.
const LENGTHS: usize = 1000;

impl Milvus {
    pub(super) async fn find_documents(
        &self,
        generation: &Generation,
        asked: &Question<'_>,
    ) -> Result<ServerAnswer, Failure> {
        let probe = asked.probe;
        let within = |filter| {
            filter::filter(&Audience {
                tenant: asked.tenant,
                filter,
                now: asked.now,
            })
        };
        let meant = within(&probe.filter);
        if probe.terms.is_empty() && probe.vectors.is_empty() {
            let newest = self.newest(generation, &meant, probe.depth).await?;
            return Ok(ServerAnswer {
                newest,
                ..ServerAnswer::default()
            });
        }
        let audience = within(&probe.filter.audience_only());
        let words = self.words(generation, &meant, audience, probe);
        let meaning = probe.vectors.iter();
        let meaning = meaning.map(|query| self.meaning(generation, &meant, query, probe.depth));
        let ((words, statistics), meaning) = try_join(words, try_join_all(meaning)).await?;
        Ok(ServerAnswer {
            words,
            meaning: meaning.into_iter().flatten().collect(),
            newest: Vec::new(),
            statistics,
        })
    }

    async fn words(
        &self,
        generation: &Generation,
        meant: &str,
        audience: String,
        probe: &Probe,
    ) -> Result<(Vec<Found>, Option<Statistics>), Failure> {
        if probe.terms.is_empty() {
            return Ok((Vec::new(), None));
        }
        let statistics = match probe.terms.len() <= COUNTED_TERMS {
            true => Some(self.statistics(generation, audience, probe).await?),
            false => None,
        };
        let target = Target::Words(sparse(weights(probe, statistics.as_ref())));
        let words = self
            .client
            .search(&generation.0, meant.to_owned(), &target, probe.depth);
        Ok((words.await?, statistics))
    }

    /// How many documents there are, how long they are, and how many have each term.
    async fn statistics(
        &self,
        generation: &Generation,
        audience: String,
        probe: &Probe,
    ) -> Result<Statistics, Failure> {
        let collection = generation.0.as_str();
        let counts = probe.terms.iter().map(|term| {
            let having = filter::having(&audience, hash(&term.text));
            self.client.count(collection, having)
        });
        let all = [self.client.count(collection, audience.clone())];
        let (all, counts) = try_join(try_join_all(all), try_join_all(counts)).await?;
        let lengths = self
            .client
            .rows(collection, audience, &["length"], LENGTHS)
            .await?;
        let lengths = self.client.floats(&lengths, "length")?;
        let sum: f32 = lengths.iter().sum();
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Statistics {
            documents: number(all.into_iter().sum()),
            mean_length: sum / lengths.len().max(1) as f32,
            documents_with: counts.into_iter().map(number).collect(),
        })
    }

    async fn meaning(
        &self,
        generation: &Generation,
        meant: &str,
        query: &Embedding,
        depth: usize,
    ) -> Result<Vec<Found>, Failure> {
        let collection = schema::vectors_of(generation, &query.model);
        let target = Target::Meaning(query.vector.clone());
        let found = self
            .client
            .search(&collection, meant.to_owned(), &target, depth);
        match found.await {
            // No document has a vector of this model, or a rebuild has replaced all of them, which
            // the documents themselves will show.
            Err(Failure::Missing) => Ok(Vec::new()),
            other => other,
        }
    }

    /// The newest documents. Milvus cannot order rows, so all are fetched, or those after a time
    /// that leaves enough of them.
    async fn newest(
        &self,
        generation: &Generation,
        meant: &str,
        depth: usize,
    ) -> Result<Vec<Found>, Failure> {
        let since = self.time_of_newest(generation, meant, depth).await?;
        let meant = match since {
            Some(since) => filter::since(meant, since),
            None => meant.to_owned(),
        };
        let fields = ["id", "version", "created"];
        let columns = self
            .client
            .rows(&generation.0, meant, &fields, ROWS)
            .await?;
        let created = self.client.longs(&columns, "created")?;
        let scores = vec![0.0; created.len()];
        let found = self.client.found(&columns, &scores)?;
        let mut found: Vec<(i64, Found)> = created.iter().copied().zip(found).collect();
        found.sort_by(|(a_time, a), (b_time, b)| (b_time, b.seq).cmp(&(a_time, a.seq)));
        found.truncate(depth);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }

    /// The latest time such that at least `depth` documents were created at it or later; `None` if
    /// all documents fit into one answer.
    async fn time_of_newest(
        &self,
        generation: &Generation,
        meant: &str,
        depth: usize,
    ) -> Result<Option<i64>, Failure> {
        let count = async |since: i64| {
            let filter = filter::since(meant, since);
            self.client.count(&generation.0, filter).await
        };
        let (rows, depth) = (ROWS as u64, depth as u64);
        let all = self.client.count(&generation.0, meant.to_owned()).await?;
        if all <= rows {
            return Ok(None);
        }
        let (mut early, mut late) = (i64::MIN / 4, i64::MAX / 4);
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            match count(middle).await? {
                found if (depth..=rows).contains(&found) => return Ok(Some(middle)),
                found if found < depth => late = middle,
                _ => early = middle,
            }
        }
        Ok(Some(early))
    }

    pub(super) async fn list(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let mut wanted = filter::of_tenant(tenant);
        if let Some(after) = after {
            let after = filter::literal(&schema::key(tenant, after.as_str()));
            wanted = format!("{wanted} and {} > {after}", schema::KEY);
        }
        let fields = [schema::KEY, "id", "version"];
        let columns = self
            .client
            .rows_by_key(&generation.0, wanted, &fields, limit);
        let columns = columns.await?;
        let keys = self.client.strings(&columns, schema::KEY)?;
        if !keys.is_sorted() {
            return Err(self.client.unreadable("rows in the order of keys").into());
        }
        let scores = vec![0.0; keys.len()];
        let found = self.client.found(&columns, &scores)?.into_iter();
        Ok(found
            .map(|Found { id, seq, .. }| Entry { id, seq })
            .collect())
    }

    pub(super) async fn held_vectors(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        model: &ModelId,
        ids: &[Id],
    ) -> Result<HashMap<Id, Vec<f32>>, Failure> {
        let collection = schema::vectors_of(generation, model);
        let keys = ids.iter().map(|id| schema::key(tenant, id.as_str()));
        let keys: Vec<String> = keys.collect();
        let wanted = filter::keys(keys.iter().map(String::as_str));
        let fields = ["id", "version", schema::MEANING];
        let columns = self.client.rows(&collection, wanted, &fields, ids.len());
        let columns = match columns.await {
            // No document has a vector of this model.
            Err(Failure::Missing) => return Ok(HashMap::new()),
            columns => columns?,
        };
        let vectors = self
            .client
            .dense(&columns, schema::MEANING, model.dimension)?;
        let found = self.client.found(&columns, &vec![0.0; vectors.len()])?;
        let ids = found.into_iter().map(|found| found.id);
        Ok(ids.zip(vectors).collect())
    }

    pub(super) async fn find_speakers(
        &self,
        generation: &Generation,
        asked: &Audience<'_>,
        words: &[&str],
    ) -> Result<Vec<String>, Failure> {
        // Documents without a speaker have an empty word.
        let words = words.iter().copied().filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        let mut names: BTreeSet<String> = BTreeSet::new();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let audience = filter::filter(asked);
        // Each answer names a speaker that is new.
        while names.len() < limits::SPEAKERS {
            let known: Vec<String> = names.iter().cloned().collect();
            let wanted = filter::spoken(&audience, &words, &known);
            let columns = self.client.rows(&generation.0, wanted, &["speaker"], ROWS);
            let columns = columns.await?;
            let found = self.client.strings(&columns, "speaker")?;
            names.extend(found.iter().cloned());
            if found.len() < ROWS {
                break;
            }
        }
        Ok(names.into_iter().take(limits::SPEAKERS).collect())
    }
}

/// The weights of the query's terms: how much they count, and how rare they are.
fn weights(probe: &Probe, statistics: Option<&Statistics>) -> Vec<(u32, f32)> {
    let rarity = |at: usize| {
        statistics.map_or(1.0, |known| {
            let all = known.documents as f32;
            let having = known.documents_with.get(at).copied().unwrap_or(0) as f32;
            (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
        })
    };
    let mut weights = Vec::with_capacity(probe.terms.len());
    for (at, term) in probe.terms.iter().enumerate() {
        let weight = term.weight.max(0.0) * rarity(at);
        weights.push((sparse_index(hash(&term.text)), weight));
        let similar = probe.similar.iter().filter(|it| it.of == term.text);
        weights.extend(similar.map(|similar| {
            let part = similar.similarity * SIMILAR_WEIGHT;
            (sparse_index(hash(&similar.text)), weight * part)
        }));
    }
    weights
}
