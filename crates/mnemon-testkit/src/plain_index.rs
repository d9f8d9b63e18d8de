//! An index that leaves to the engine all that it can: it reads the store for each probe, and scores
//! each record by its own words and its own vector.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mnemon_core::embed::Embedder;
use mnemon_core::index::{Terms, hash};
use mnemon_core::speakers::first_word;
use mnemon_core::vector::{Quantised, VectorSet};
use mnemon_core::{
    Answer, Backend, Background, Embedding, Filter, Grant, Id, IndexCapabilities, IndexFilters,
    Invalid, Match, Order, Probe, Record, Scan, ScoreScale, SearchIndex, Statistics, Store,
    StoreError, limits,
};

/// Scans a store. It knows no neighbours.
pub struct PlainIndex {
    store: Arc<dyn Store>,
    embedder: Option<Arc<dyn Embedder>>,
    capabilities: IndexCapabilities,
    gives_statistics: bool,
    /// The records as they were when the index was last told of changes, if it lags.
    seen: Mutex<Option<Vec<Record>>>,
}

impl PlainIndex {
    /// An index over this store that embeds its records by itself.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let capabilities = IndexCapabilities {
            neighbour_context: false,
            ..IndexCapabilities::BUILT_IN
        };
        Self {
            store,
            embedder,
            capabilities,
            gives_statistics: true,
            seen: Mutex::default(),
        }
    }

    /// It applies no filter.
    #[must_use]
    pub fn without_filters(mut self) -> Self {
        self.capabilities.filters = IndexFilters::NONE;
        self
    }

    /// It gives no statistics.
    #[must_use]
    pub fn without_statistics(mut self) -> Self {
        self.gives_statistics = false;
        self
    }

    /// Its scores mean nothing but an order: they are squared.
    #[must_use]
    pub fn without_scale(mut self) -> Self {
        self.capabilities.words = ScoreScale::Unknown;
        self.capabilities.meaning = ScoreScale::Unknown;
        self
    }

    /// It says that it applies neighbour context, which it does not.
    #[must_use]
    pub fn claiming_context(mut self) -> Self {
        self.capabilities.neighbour_context = true;
        self
    }

    /// It hears of changes no more.
    pub async fn lag(&mut self, grant: &Grant) {
        self.capabilities.deletes_at_once = false;
        let records = self.records(grant).await.unwrap();
        *self.seen.lock().unwrap() = Some(records);
    }

    /// The store with this index.
    #[must_use]
    pub fn backend(self) -> Backend {
        Backend {
            store: self.store.clone(),
            index: Arc::new(self),
        }
    }

    async fn records(&self, grant: &Grant) -> Result<Vec<Record>, StoreError> {
        if let Some(seen) = self.seen.lock().unwrap().clone() {
            return Ok(seen);
        }
        let mut scan = Scan {
            order: Order::Written,
            ..Scan::new(Filter::all_of_tenant(), limits::PAGE)
        };
        let mut records = Vec::new();
        loop {
            let page = self.store.scan(grant, &scan).await?;
            records.extend(page.records);
            match page.next {
                Some(next) => scan.after = Some(next),
                None => return Ok(records),
            }
        }
    }

    /// How near each record is by the first model of the probe that this index has.
    async fn cosines(
        &self,
        records: &[&Record],
        vectors: &[Embedding],
    ) -> Result<Vec<f32>, StoreError> {
        for Embedding { model, vector } in vectors {
            if vector.len() != model.dimension {
                let what = format!("has {} values, not {}", vector.len(), model.dimension);
                return Err(Invalid::new("vector", what).into());
            }
        }
        let Some(embedder) = &self.embedder else {
            return Ok(Vec::new());
        };
        let asked = vectors
            .iter()
            .find(|asked| asked.model == *embedder.model());
        let Some(asked) = asked else {
            return Ok(Vec::new());
        };
        let texts: Vec<&str> = records.iter().map(|r| r.content.as_str()).collect();
        let made = embedder.embed(&texts).await.unwrap();
        // The same arithmetic as the built-in index has, so that only neighbours make a difference.
        let mut set = VectorSet::new(asked.model.dimension).unwrap();
        for vector in made {
            match vector {
                Some(vector) => set.push(&vector).unwrap(),
                None => {
                    let nothing = Quantised::nothing(asked.model.dimension);
                    set.push_quantised(&nothing).unwrap()
                }
            };
        }
        let slots: Vec<u32> = (0..records.len() as u32).collect();
        Ok(set.similarities(&asked.vector, &slots).unwrap())
    }

    fn scaled(&self, score: f32) -> f32 {
        match self.capabilities.words {
            ScoreScale::Unknown => score * score,
            _ => score,
        }
    }
}

fn statistics(terms: &[&Terms], probe: &Probe) -> Statistics {
    let length: f32 = terms.iter().map(|own| own.length()).sum();
    let having = |term: u32| terms.iter().filter(|own| own.occurs(term) > 0.0).count();
    let probed = probe.terms.iter();
    Statistics {
        documents: terms.len(),
        mean_length: length / terms.len().max(1) as f32,
        documents_with: probed.map(|term| having(hash(&term.text))).collect(),
    }
}

/// BM25 of a record's own words.
fn bm25(own: &Terms, probe: &Probe, known: &Statistics) -> f32 {
    let documents = known.documents as f32;
    let scores = probe.terms.iter().zip(&known.documents_with);
    let scores = scores.map(|(term, having)| {
        let (tf, having) = (own.occurs(hash(&term.text)), *having as f32);
        let idf = (1.0 + (documents - having + 0.5) / (having + 0.5)).ln();
        let held = 1.2 * (0.25 + 0.75 * own.length() / known.mean_length.max(1e-6));
        term.weight * idf * 2.2 * tf / (tf + held)
    });
    scores.sum()
}

/// The best records by these scores.
fn top(scores: &[f32], depth: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(depth);
    order
}

#[async_trait]
impl SearchIndex for PlainIndex {
    fn capabilities(&self) -> IndexCapabilities {
        self.capabilities
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let records = self.records(grant).await?;
        let terms: Vec<Terms> = records.iter().map(Terms::of).collect();
        let audience = probe.filter.audience_only();
        let seen = records.iter().zip(&terms);
        let seen = seen.filter(|(record, _)| audience.matches(record));
        let seen: Vec<&Terms> = seen.map(|(_, terms)| terms).collect();
        let known = statistics(&seen, probe);
        let filters = self.capabilities.filters == IndexFilters::ALL;
        let meant = |record: &Record| !filters || probe.filter.matches(record);
        let meant = records
            .iter()
            .zip(terms)
            .filter(|(record, _)| meant(record));
        let (meant, terms): (Vec<&Record>, Vec<Terms>) = meant.unzip();
        let bare = |record: &Record| Match {
            id: record.id.clone(),
            words: None,
            meaning: None,
            features: None,
        };
        if probe.terms.is_empty() && probe.vectors.is_empty() {
            let mut newest = meant;
            newest.sort_by_key(|record| std::cmp::Reverse((record.created, record.seq)));
            let newest = newest.into_iter().take(probe.depth);
            return Ok(Answer {
                matches: newest.map(bare).collect(),
                ..Answer::default()
            });
        }
        let words: Vec<f32> = terms.iter().map(|own| bm25(own, probe, &known)).collect();
        let near = self.cosines(&meant, &probe.vectors).await?;
        let mut matches: HashMap<Id, Match> = HashMap::new();
        for at in top(&words, probe.depth) {
            let found = matches.entry(meant[at].id.clone());
            found.or_insert_with(|| bare(meant[at])).words = Some(self.scaled(words[at]));
        }
        for at in top(&near, probe.depth) {
            let found = matches.entry(meant[at].id.clone());
            found.or_insert_with(|| bare(meant[at])).meaning = Some(self.scaled(near[at]));
        }
        Ok(Answer {
            matches: matches.into_values().collect(),
            statistics: self.gives_statistics.then_some(known),
            background: Background::of(near),
        })
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let records = self.records(grant).await?;
        let seen = records.iter().filter(|record| audience.matches(record));
        let named = seen.filter_map(Record::speaker);
        let named = named.filter(|name| words.contains(&first_word(name).as_str()));
        let named: BTreeSet<&str> = named.collect();
        let named = named.into_iter().take(limits::SPEAKERS);
        Ok(named.map(str::to_owned).collect())
    }
}
