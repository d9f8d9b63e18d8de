//! Answering a probe.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mnemon_core::dates::Asked;
use mnemon_core::embed::ModelId;
use mnemon_core::index::{Cursor, Index, Sampled, Terms, hash, wrong_vector};
use mnemon_core::vector::{Candidates, Quantised, ScanConfig, TopK, VectorError, VectorSet};
use mnemon_core::{Answer, Embedding, Grant, Probe, Right, StoreError, Time};
use tokio_postgres::Row;

use super::candidates::{Scope, load};
use super::keys::{self, Item};
use super::near;
use super::sample::{Moment, Sample, Samples};
use crate::store::postgres::errors::Failure;
use crate::store::postgres::feed::{self, DOC, TERMS, VECTOR};
use crate::store::postgres::pool::{Call, Lease, Pool};
use crate::store::postgres::reads::{call, record};
use crate::store::postgres::standby::Standby;
use crate::store::postgres::view::number;

/// Postings that are read for the words of a query, the rarest first. More frequent words only
/// rescore records that were found, and choose among the sample.
const POSTINGS: usize = 4_000;
/// Postings that a statement reads at the most, if the sample was wrong about a word.
const POSTINGS_MOST: usize = 3 * POSTINGS;
/// Words that a record must have at once, where all words are frequent.
const TOGETHER: usize = 3;
/// So many times the depth are loaded for the words, as neighbours lift some of them.
const LOADED: usize = 2;
/// Vectors that are compared one by one at the most.
const COMPARED: usize = 20_000;
/// So many times as many vectors are compared by the database as records are loaded at once.
pub(in crate::store::postgres) const VECTORS_PER_EXACT: usize = 20;
/// How soon an index that is still missing is tried again, as another server may have died while it
/// built it, and how soon after a failure.
const BUILD_AGAIN: Duration = Duration::from_secs(2);
const FAILED_AGAIN: Duration = Duration::from_secs(60);
/// Records that are found by the days that are asked for, at the most.
const OF_DAYS: usize = 150;
/// Days that are asked for: intervals that are looked up at the most.
const INTERVALS: usize = 16;

/// A search is one moment. Plans are made once, for tables of any size, so joins go through indexes.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off";
/// The same with pgvector, whose index goes on where a filter leaves too few.
const BEGIN_NEAR: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off; SET LOCAL hnsw.ef_search = 200;
    SET LOCAL hnsw.iterative_scan = relaxed_order";

/// Searches tenants in the database.
pub(in crate::store::postgres) struct DatabaseIndex {
    pool: Arc<Pool>,
    standby: Option<Arc<Standby>>,
    samples: Samples,
    /// Models whose index this process builds, or may build again at a time.
    building: Arc<Mutex<HashMap<i64, Option<Instant>>>>,
}

/// A model that the database knows.
struct Model {
    number: i64,
    id: ModelId,
    has_index: bool,
}

/// Records that may match, with their neighbours.
struct Loaded {
    rows: Vec<Row>,
    /// The whole records of rows whose terms another version wrote.
    rewritten: HashMap<u64, Terms>,
    models: HashMap<i64, ModelId>,
}

impl DatabaseIndex {
    pub(in crate::store::postgres) fn new(pool: Arc<Pool>, standby: Option<Arc<Standby>>) -> Self {
        Self {
            pool,
            standby,
            samples: Samples::default(),
            building: Arc::default(),
        }
    }

    /// The best of each arm. `within` are the records that a filter means which only whole records
    /// can answer.
    pub(in crate::store::postgres) async fn find(
        &self,
        grant: &Grant,
        probe: &Probe,
        within: Option<Arc<HashSet<u64>>>,
    ) -> Result<Answer, Failure> {
        grant.require(Right::Read).map_err(StoreError::from)?;
        check(&probe.vectors)?;
        if let Some(standby) = self.standby.as_ref().filter(|it| it.is_usable()) {
            let mut lease = self.pool.take().await?;
            let newest = feed::newest(&mut lease, grant.tenant()).await?;
            drop(lease);
            let Some((_, newest)) = newest else {
                return Ok(Answer::default());
            };
            let on = (standby.pool.as_ref(), newest);
            let found = self.find_on(on, grant, probe, within.clone()).await;
            if let Some(answer) = standby.accept(found) {
                return Ok(answer);
            }
        }
        let on = (self.pool.as_ref(), Cursor::default());
        let found = self.find_on(on, grant, probe, within).await?;
        Ok(found.unwrap_or_default())
    }

    /// The same on a server of these connections; `None` if it is behind these numbers of the tenant.
    async fn find_on(
        &self,
        (pool, at_least): (&Pool, Cursor),
        grant: &Grant,
        probe: &Probe,
        within: Option<Arc<HashSet<u64>>>,
    ) -> Result<Option<Answer>, Failure> {
        let mut lease = pool.take().await?;
        let begun = self.begin(&mut lease, grant).await?;
        let Some(begun) = begun.filter(|begun| begun.moment.has_seen(&at_least)) else {
            lease.end("ROLLBACK").await?;
            return Ok(None);
        };
        let (moment, models, has_near) = (begun.moment, begun.models, begun.has_near);
        let names: HashMap<i64, ModelId> =
            models.iter().map(|it| (it.number, it.id.clone())).collect();
        let scope = Scope::new(grant, &probe.filter, moment.tenant);
        let exact = self.pool.address().index_exact;
        let few = self
            .few(&mut lease, &scope, within.as_deref(), exact)
            .await?;
        let audience = probe.filter.audience_only();
        let is_whole = few.is_some() && within.is_none() && probe.filter == audience;
        let sample = match is_whole {
            true => Arc::default(),
            false => {
                let samples = &self.samples;
                samples
                    .get(&mut lease, grant, &audience, moment, &names)
                    .await?
            }
        };
        let mut sampled = Sampled {
            population: &sample.population,
            counted: HashMap::new(),
            background: sample.background(&probe.vectors)?,
        };
        let seqs = match few {
            Some(seqs) => seqs,
            None => {
                let chosen = Choice {
                    scope: &scope,
                    probe,
                    sample: &sample,
                    within: within.as_deref(),
                    has_near,
                };
                self.choose(&mut lease, &chosen, &models, &mut sampled)
                    .await?
            }
        };
        let (counted, background) = (sampled.counted, sampled.background);
        let loaded = Loaded::read(&mut lease, grant, seqs, names).await?;
        lease.end("ROLLBACK").await?;
        drop(lease);
        let (probe, now) = (probe.clone(), grant.now());
        let found = crate::blocking::run(move || {
            let sampled = Sampled {
                population: &sample.population,
                counted,
                background,
            };
            loaded.find(
                &probe,
                now,
                within.as_deref(),
                (!is_whole).then_some(&sampled),
            )
        });
        let lost = || StoreError::Internal("a search was lost".to_owned());
        found.await.ok_or_else(lost)?.map(Some)
    }

    /// Begins the transaction of a search; `None` if the tenant never wrote.
    async fn begin(&self, lease: &mut Lease, grant: &Grant) -> Result<Option<Begun>, Failure> {
        let mut calls = vec![tenant(grant)?, models()];
        let begin = match self.pool.has_near() {
            true => {
                calls.push(near::is_lacking(grant)?);
                BEGIN_NEAR
            }
            false => BEGIN,
        };
        let answers = lease.pipeline(Some(begin), &calls, None).await?;
        let mut answers = answers.iter();
        let Some(moment) = moment(answers.next().and_then(|rows| rows.first()))? else {
            return Ok(None);
        };
        let models = read_models(answers.next().map_or(&[], Vec::as_slice))?;
        let lacking = answers.next().and_then(|rows| rows.first());
        let lacking: Option<bool> = lacking.map(|row| row.try_get(0)).transpose()?;
        Ok(Some(Begun {
            moment,
            models,
            has_near: lacking == Some(false),
        }))
    }

    /// The records that the filter may mean, if they are few enough to be compared one by one.
    async fn few(
        &self,
        lease: &mut Lease,
        scope: &Scope<'_>,
        within: Option<&HashSet<u64>>,
        most: usize,
    ) -> Result<Option<Vec<i64>>, Failure> {
        if let Some(within) = within {
            let few = (within.len() <= most).then(|| within.iter().map(|it| it.cast_signed()));
            return Ok(few.map(Iterator::collect));
        }
        let rows = lease.all(scope.few(most + 1)?).await?;
        if rows.len() > most {
            return Ok(None);
        }
        let seqs = rows.iter().map(|row| Ok(row.try_get(0)?));
        seqs.collect::<Result<_, Failure>>().map(Some)
    }

    /// The best candidates of each arm.
    async fn choose(
        &self,
        lease: &mut Lease,
        choice: &Choice<'_>,
        models: &[Model],
        sampled: &mut Sampled<'_>,
    ) -> Result<Vec<i64>, Failure> {
        let words = choice.words(sampled);
        let mut calls = words.calls(choice)?;
        let of_words = calls.len();
        calls.extend(choice.days()?);
        let near = self.nearest(choice, models, sampled.population.documents)?;
        calls.extend(near.by_database);
        let of_seqs = calls.len();
        calls.extend(near.compared);
        let answers = lease.pipeline(None, &calls, None).await?;
        let (rows, vectors) = answers.split_at_checked(of_seqs).unwrap_or_default();
        let (rows, seqs) = rows.split_at_checked(of_words).unwrap_or_default();
        let mut found: HashMap<u64, Terms> = HashMap::new();
        for row in rows.iter().flatten() {
            let terms = Terms::from_bytes(row.try_get(1)?);
            found.insert(number(row, 0)?, terms.unwrap_or_default());
        }
        let read = rows.first().filter(|_| !words.rare.is_empty());
        let is_complete = read.is_some_and(|rows| rows.len() < POSTINGS_MOST);
        if is_complete && choice.is_of_audience() {
            sampled.counted = words.count(found.values());
        }
        let mut top = TopK::new(choice.probe.depth.saturating_mul(LOADED));
        let drawn = choice
            .sample
            .docs
            .iter()
            .filter(|_| choice.is_of_audience());
        let drawn = drawn.map(|(seq, terms)| (seq, terms));
        for (seq, terms) in found.iter().chain(drawn) {
            let score = sampled.own_words(choice.probe, terms);
            if score > 0.0 && choice.may_match(*seq) {
                top.push(score, *seq);
            }
        }
        let mut chosen: HashSet<u64> = top.into_sorted().into_iter().map(|(_, seq)| seq).collect();
        for row in seqs.iter().flatten() {
            chosen.insert(number(row, 0)?);
        }
        for (rows, query) in vectors.iter().zip(near.queries) {
            chosen.extend(nearest_of(rows, query, choice)?);
        }
        Ok(chosen.into_iter().map(u64::cast_signed).collect())
    }

    /// The nearest records by each model of the probe. Without pgvector, the vectors of the newest
    /// records are compared here; also until the index of a model is built.
    fn nearest<'a>(
        &self,
        choice: &Choice<'a>,
        models: &[Model],
        documents: usize,
    ) -> Result<Nearest<'a>, Failure> {
        let mut calls = Nearest::default();
        let depth = choice.probe.depth;
        let all_vectors = VECTORS_PER_EXACT * self.pool.address().index_exact;
        for query in &choice.probe.vectors {
            let Some(model) = models.iter().find(|model| model.id == query.model) else {
                continue;
            };
            let (scope, by_index) = (choice.scope, documents > all_vectors);
            let lacks_index = by_index && !model.has_index;
            if lacks_index && choice.has_near {
                self.build(model);
            }
            if choice.within.is_some() || lacks_index || !choice.has_near {
                calls.compared.push(match choice.newest_within() {
                    Some(seqs) => scope.vectors_of(model.number, seqs)?,
                    None => scope.vectors(model.number, COMPARED)?,
                });
                calls.queries.push(query);
                continue;
            }
            // A few more: the codes in the index are rounded.
            let most = depth.saturating_add(depth / 2 + 8);
            let call = scope.nearest(query, model.number, by_index, most)?;
            calls.by_database.push(call);
        }
        Ok(calls)
    }

    /// Builds the index of a model while searches go on, once at a time.
    fn build(&self, model: &Model) {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let again = building.get(&model.number);
        if again.is_some_and(|again| again.is_none_or(|again| Instant::now() < again)) {
            return;
        }
        building.insert(model.number, None);
        let (pool, building) = (Arc::clone(&self.pool), Arc::clone(&self.building));
        let (number, dimension) = (model.number, model.id.dimension);
        self.pool.runtime().spawn(async move {
            // Until it is there, vectors are compared one by one; `doctor` says so.
            let pause = match near::build(pool, number, dimension).await {
                Ok(()) => BUILD_AGAIN,
                Err(_) => FAILED_AGAIN,
            };
            let mut building = building.lock().unwrap_or_else(PoisonError::into_inner);
            building.insert(number, Some(Instant::now() + pause));
        });
    }
}

/// The begin of a search.
struct Begun {
    moment: Moment,
    models: Vec<Model>,
    /// Whether pgvector has all vectors of the tenant.
    has_near: bool,
}

/// Statements for the meaning arm.
#[derive(Default)]
struct Nearest<'a> {
    /// The database chooses the nearest.
    by_database: Vec<Call>,
    /// Vectors that are compared here,
    compared: Vec<Call>,
    /// with these queries.
    queries: Vec<&'a Embedding>,
}

/// The nearest of these vectors.
fn nearest_of(rows: &[Row], query: &Embedding, choice: &Choice<'_>) -> Result<Vec<u64>, Failure> {
    let wrong = |error| Failure::from(wrong_vector(&error));
    let mut set = VectorSet::new(query.model.dimension).map_err(wrong)?;
    let mut seqs = Vec::new();
    for row in rows {
        let seq = number(row, 0)?;
        if choice.may_match(seq) {
            let (scale, codes): (f32, &[u8]) = (row.try_get(2)?, row.try_get(3)?);
            let vector = Quantised::from_bytes(codes, query.model.dimension, scale);
            set.push_quantised(&vector).map_err(wrong)?;
            seqs.push(seq);
        }
    }
    let depth = choice.probe.depth;
    let near = set.search(
        &query.vector,
        depth,
        Candidates::All,
        &ScanConfig::default(),
    );
    let near = near.map_err(wrong)?.into_iter();
    Ok(near
        .filter_map(|it| seqs.get(it.slot as usize).copied())
        .collect())
}

fn check(queries: &[Embedding]) -> Result<(), StoreError> {
    for Embedding { model, vector } in queries {
        let (expected, got) = (model.dimension, vector.len());
        if expected != got {
            return Err(wrong_vector(&VectorError::WrongDimension { expected, got }));
        }
    }
    Ok(())
}

fn tenant(grant: &Grant) -> Result<Call, Failure> {
    call(
        grant,
        "SELECT num, last_seq, embedded, records, removed FROM mnemon.tenants WHERE name = $1",
    )
}

fn moment(row: Option<&Row>) -> Result<Option<Moment>, Failure> {
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(Moment {
        tenant: row.try_get(0)?,
        last_seq: number(row, 1)?,
        embedded: number(row, 2)?,
        records: usize::try_from(number(row, 3)?).unwrap_or(usize::MAX),
        removed: number(row, 4)?,
    }))
}

fn models() -> Call {
    Call::new(
        "SELECT m.num, m.name, m.dimension, EXISTS (
            SELECT 1 FROM pg_index i WHERE i.indisvalid
                AND i.indexrelid = to_regclass('mnemon.search_near_' || m.num))
         FROM mnemon.models m",
    )
}

fn read_models(rows: &[Row]) -> Result<Vec<Model>, Failure> {
    let models = rows.iter().map(|row| {
        Ok(Model {
            number: row.try_get(0)?,
            id: ModelId {
                name: row.try_get(1)?,
                dimension: usize::try_from(number(row, 2)?).unwrap_or(0),
            },
            has_index: row.try_get(3)?,
        })
    });
    models.collect()
}

/// What candidates are chosen by.
struct Choice<'a> {
    scope: &'a Scope<'a>,
    probe: &'a Probe,
    sample: &'a Sample,
    within: Option<&'a HashSet<u64>>,
    /// Whether pgvector has all vectors of the tenant.
    has_near: bool,
}

/// Words to look up.
#[derive(Default)]
struct Words {
    /// So rare that all records with them are read.
    rare: Vec<Item>,
    rare_terms: Vec<u32>,
    /// Whether there are others.
    has_common: bool,
    /// The rarest, which a record must have all, if the rare ones are none.
    together: Vec<Item>,
}

impl Choice<'_> {
    fn is_of_audience(&self) -> bool {
        self.within.is_none() && self.probe.filter == self.probe.filter.audience_only()
    }

    fn may_match(&self, seq: u64) -> bool {
        self.within.is_none_or(|within| within.contains(&seq))
    }

    /// The newest of the records that whole records were read for.
    fn newest_within(&self) -> Option<Vec<i64>> {
        let mut seqs: Vec<u64> = self.within?.iter().copied().collect();
        seqs.sort_unstable_by_key(|seq| Reverse(*seq));
        seqs.truncate(COMPARED);
        Some(seqs.into_iter().map(u64::cast_signed).collect())
    }

    /// The words of the probe and those of similar meaning, the rarest first.
    fn words(&self, sampled: &Sampled<'_>) -> Words {
        let own = self.probe.terms.iter().map(|term| (&term.text, true));
        let similar = self.probe.similar.iter().map(|term| (&term.text, false));
        let all = own.chain(similar).map(|(text, is_own)| {
            let term = hash(text);
            (sampled.having(term), term, is_own)
        });
        let mut all: Vec<(usize, u32, bool)> = all.collect();
        all.sort_unstable();
        all.dedup_by_key(|(_, term, _)| *term);
        let mut words = Words::default();
        let mut postings = 0;
        for (having, term, is_own) in all {
            postings += having;
            if postings <= POSTINGS {
                words.rare.push(Item::Term(term));
                words.rare_terms.push(term);
            } else {
                words.has_common = true;
            }
            if is_own && words.together.len() < TOGETHER {
                words.together.push(Item::Term(term));
            }
        }
        words
    }

    /// Records that tell of the days that are asked for, or are of such a day.
    fn days(&self) -> Result<Vec<Call>, Failure> {
        let (first, last) = self.sample.days.unwrap_or_default();
        let asked = self.probe.asked.iter();
        let asked = asked.flat_map(|asked| asked.in_years(first, last));
        let asked: Vec<Asked> = asked.take(INTERVALS).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let items: Vec<Item> = asked.iter().flat_map(keys::asked).collect();
        let mut calls = vec![self.scope.with_any(&items, OF_DAYS)?];
        for Asked { days, .. } in asked {
            calls.push(self.scope.of_days(days.from, days.to, OF_DAYS)?);
        }
        Ok(calls)
    }
}

impl Words {
    /// The first statement reads all records with a rare word, the others some with frequent ones.
    fn calls(&self, choice: &Choice<'_>) -> Result<Vec<Call>, Failure> {
        let scope = choice.scope;
        let mut calls = Vec::new();
        if !self.rare.is_empty() {
            calls.push(scope.with_any(&self.rare, POSTINGS_MOST)?);
        }
        if self.has_common && self.together.len() > 1 {
            calls.push(scope.with_all(&self.together, POSTINGS)?);
        }
        if self.has_common && !choice.is_of_audience() {
            calls.push(scope.drawn(POSTINGS)?);
        }
        Ok(calls)
    }

    /// How many records have each rare word.
    fn count<'a>(&self, found: impl Iterator<Item = &'a Terms> + Clone) -> HashMap<u32, usize> {
        let terms = self.rare_terms.iter();
        let counted = terms.map(|term| {
            let having = found.clone().filter(|terms| terms.occurs(*term) > 0.0);
            (*term, having.count())
        });
        counted.collect()
    }
}

impl Loaded {
    async fn read(
        lease: &mut Lease,
        grant: &Grant,
        seqs: Vec<i64>,
        models: HashMap<i64, ModelId>,
    ) -> Result<Self, Failure> {
        let rows = lease.all(load(grant, DOC, seqs)?).await?;
        let mut foreign: Vec<i64> = Vec::new();
        for row in &rows {
            if Terms::from_bytes(row.try_get(TERMS)?).is_none() {
                foreign.push(row.try_get(0)?);
            }
        }
        let mut rewritten = HashMap::new();
        if !foreign.is_empty() {
            let sql = format!(
                "SELECT doc FROM mnemon.records WHERE tenant = {} AND seq = ANY($2)",
                crate::store::postgres::reads::OWN
            );
            for row in lease.all(call(grant, sql)?.with(foreign)).await? {
                let record = record(lease.place(), row.try_get(0)?)?;
                rewritten.insert(record.seq, Terms::of(&record));
            }
        }
        Ok(Self {
            rows,
            rewritten,
            models,
        })
    }

    /// Ranks what was loaded as an index of its own.
    fn find(
        &self,
        probe: &Probe,
        now: Time,
        within: Option<&HashSet<u64>>,
        sampled: Option<&Sampled<'_>>,
    ) -> Result<Answer, Failure> {
        let wrong = |error| Failure::from(wrong_vector(&error));
        let mut index = Index::new();
        let mut may_match = HashSet::new();
        for row in &self.rows {
            let doc = feed::doc(row)?;
            let terms = match self.rewritten.get(&doc.seq) {
                Some(terms) => terms.clone(),
                None => Terms::from_bytes(row.try_get(TERMS)?).unwrap_or_default(),
            };
            let vector = feed::vector(row, VECTOR, &self.models)?;
            if row.try_get(VECTOR + 3)? && within.is_none_or(|it| it.contains(&doc.seq)) {
                may_match.insert(doc.seq);
            }
            index.add(&doc, &terms, vector.as_ref()).map_err(wrong)?;
        }
        // Statistics that stand for nothing are those of a sample without records.
        let sampled = sampled.filter(|it| it.population.documents > 0);
        let found = index.find_sampled(probe, now, Some(&may_match), sampled);
        found.map_err(wrong)
    }
}
