//! Answering a probe.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mnemon_core::embed::ModelId;
use mnemon_core::index::{Cursor, Sampled, wrong_vector};
use mnemon_core::vector::VectorError;
use mnemon_core::{Answer, Background, Embedding, Filter, Grant, Probe, Right, StoreError};
use tokio_postgres::Row;

use super::candidates::Scope;
use super::choice::{Choice, Compare, Plan};
use super::hnsw;
use super::load::{Candidates, Loaded, describe};
use super::near;
use super::pending::Pending;
use super::sample::{Known, Moment, Sample, Samples};
use crate::store::postgres::errors::Failure;
use crate::store::postgres::feed;
use crate::store::postgres::pool::{Call, Lease, Pool};
use crate::store::postgres::reads::call;
use crate::store::postgres::standby::Standby;
use crate::store::postgres::view::number;

/// So many times as many vectors are compared by the database as records are loaded at once.
const VECTORS_PER_EXACT: usize = 20;
/// From so many times as many on, the HNSW index is used.
pub(in crate::store::postgres) const INDEXED_PER_EXACT: usize = 4;
/// How soon it is looked again whether vectors wait for their index, or another server has died while
/// it built it, and how soon after a failure.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const FAILED_AGAIN: Duration = Duration::from_secs(60);

/// A search is one moment. Plans are made once, for tables of any size, so joins go through indexes.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off";
/// Vectors that the HNSW index looks at before it chooses, as it may miss some: twice as many as the search
/// asks for, within these bounds.
const LOOKED_AT: std::ops::RangeInclusive<usize> = 64..=160;

/// The numbers of tenants and models whose vectors this process brings into their index; with a time, it
/// may look again from then on.
type BringingIn = HashMap<(i64, i64), Option<Instant>>;

/// Searches tenants in the database.
pub(in crate::store::postgres) struct DatabaseIndex {
    pool: Arc<Pool>,
    standby: Option<Arc<Standby>>,
    samples: Samples,
    bringing_in: Arc<Mutex<BringingIn>>,
    pending: Pending,
}

/// A model that the database knows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    pub(super) number: i64,
    pub(super) id: ModelId,
    /// Whether the tenant has an index of its vectors.
    has_index: bool,
}

/// The begin of a search.
pub(super) struct Begun {
    pub(super) moment: Moment,
    pub(super) models: Vec<Model>,
    /// Whether pgvector has all vectors of the tenant.
    pub(super) has_near: bool,
}

impl Begun {
    pub(super) fn model_ids(&self) -> HashMap<i64, ModelId> {
        let models = self.models.iter();
        models.map(|it| (it.number, it.id.clone())).collect()
    }
}

/// A probe, and who asks.
#[derive(Clone, Copy)]
struct Search<'a> {
    grant: &'a Grant,
    probe: &'a Probe,
    within: Option<&'a HashSet<u64>>,
    /// Up to so many records are all compared.
    exact: usize,
}

impl Search<'_> {
    fn audience(&self) -> Filter {
        self.probe.filter.audience_only()
    }

    /// Whether all records of the audience are meant.
    fn is_of_audience(&self) -> bool {
        self.within.is_none() && self.probe.filter == self.audience()
    }

    /// Whether all of the audience are meant, and are clearly too many to compare them all.
    fn is_of_many(&self, known: &Known) -> bool {
        let documents = known.sample.population.documents;
        self.is_of_audience() && documents > self.exact + self.exact / 2
    }

    /// Counts the records of a part of the tenant, as far as it takes to see that they are many.
    fn count_few(&self, known: &Known) -> Result<Option<Call>, Failure> {
        if self.probe.filter.is_empty() {
            return Ok(None);
        }
        let scope = Scope::new(self.grant, &self.probe.filter, known.tenant());
        scope.few(self.exact + 1).map(Some)
    }
}

/// What a search loads and ranks.
struct Found {
    candidates: Candidates,
    statistics: Option<Statistics>,
}

/// What is known of all records of the audience; not needed where all of them are loaded.
struct Statistics {
    sample: Arc<Sample>,
    counted: HashMap<u32, usize>,
    background: Option<Background>,
}

impl Statistics {
    fn of(sample: &Arc<Sample>, probe: &Probe) -> Result<Self, Failure> {
        Ok(Self {
            counted: HashMap::new(),
            background: sample.background(&probe.vectors)?,
            sample: Arc::clone(sample),
        })
    }

    fn sampled(&self) -> Sampled<'_> {
        Sampled {
            population: &self.sample.population,
            counted: self.counted.clone(),
            background: self.background,
        }
    }
}

impl DatabaseIndex {
    pub(in crate::store::postgres) fn new(pool: Arc<Pool>, standby: Option<Arc<Standby>>) -> Self {
        Self {
            pool,
            standby,
            samples: Samples::default(),
            bringing_in: Arc::default(),
            pending: Pending::default(),
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
        let search = Search {
            grant,
            probe,
            within: within.as_deref(),
            exact: self.pool.address().index_exact,
        };
        // What the last search knew is likely to hold: then candidates come with the first answer.
        let known = self.samples.known(grant, &search.audience());
        let guess = known.filter(|known| search.is_of_many(known));
        let plan = guess.as_ref().map(|known| self.plan(search, known));
        let plan = plan.transpose()?;
        let check = guess.as_ref().map(|known| search.count_few(known));
        let check = check.transpose()?.flatten();
        let calls = plan.as_ref().map_or(&[][..], |plan| &plan.calls);
        let calls: Vec<&Call> = check.iter().chain(calls).collect();
        let begun = self.begin(&mut lease, search, &calls).await;
        if begun.is_err() {
            // The guess may be at fault, if an index was dropped: the next search does without.
            self.samples.forget(grant, &search.audience());
        }
        let (begun, mut answers) = begun?;
        let Some(begun) = begun.filter(|begun| begun.moment.has_seen(&at_least)) else {
            lease.end("ROLLBACK").await?;
            return Ok(None);
        };
        // A part of the tenant may have become small while the tenant did not change much.
        let counted = check.is_some().then(|| answers.remove(0).len());
        let is_of_many = counted.is_none_or(|count| count > search.exact);
        let guess = guess.filter(|known| is_of_many && known.holds(&begun));
        let found = match guess.zip(plan) {
            Some((known, plan)) => choose(&plan, &known, &answers)?,
            None => self.look_up(&mut lease, search, &begun).await?,
        };
        let Found {
            candidates,
            statistics,
        } = found;
        let names = begun.model_ids();
        let loaded = Loaded::read(&mut lease, grant, probe, candidates, names).await?;
        let is_lean = loaded.is_lean();
        if !is_lean {
            lease.end("ROLLBACK").await?;
        }
        let (sent, now) = (probe.clone(), grant.now());
        let ranked = crate::blocking::run(move || {
            let sampled = statistics.as_ref().map(Statistics::sampled);
            loaded.find(&sent, now, within.as_deref(), sampled.as_ref())
        });
        let lost = || StoreError::Internal("a search was lost".to_owned());
        let mut answer = ranked.await.ok_or_else(lost)??;
        if is_lean {
            describe(&mut lease, grant, &mut answer).await?;
        }
        if reads_pending_list(probe) {
            self.pending.clean_soon(&self.pool);
        }
        Ok(Some(answer))
    }

    /// Begins the transaction of a search, with statements that are likely to be needed; `None` if
    /// the tenant never wrote.
    async fn begin(
        &self,
        lease: &mut Lease,
        Search { grant, probe, .. }: Search<'_>,
        likely: &[&Call],
    ) -> Result<(Option<Begun>, Vec<Vec<Row>>), Failure> {
        let mut calls = vec![tenant(grant)?, models(grant)?];
        let mut begin = BEGIN.to_owned();
        if self.pool.has_near() {
            calls.push(near::is_lacking(grant)?);
            let most = probe.depth.saturating_mul(2);
            let looked_at = most.clamp(*LOOKED_AT.start(), *LOOKED_AT.end());
            // The index goes on where a filter leaves too few.
            begin.push_str(&format!(
                "; SET LOCAL hnsw.ef_search = {looked_at};
                 SET LOCAL hnsw.iterative_scan = relaxed_order"
            ));
        }
        let own = calls.len();
        let calls: Vec<&Call> = calls.iter().chain(likely.iter().copied()).collect();
        let mut answers = lease.pipeline(Some(&begin), &calls, None).await?;
        let likely = answers.split_off(own.min(answers.len()));
        let mut answers = answers.iter();
        let Some(moment) = moment(answers.next().and_then(|rows| rows.first()))? else {
            return Ok((None, likely));
        };
        let models = read_models(answers.next().map_or(&[], Vec::as_slice))?;
        let lacking = answers.next().and_then(|rows| rows.first());
        let lacking: Option<bool> = lacking.map(|row| row.try_get(0)).transpose()?;
        let begun = Begun {
            moment,
            models,
            has_near: lacking == Some(false),
        };
        Ok((Some(begun), likely))
    }

    /// All that the filter means if they are few, and the best candidates otherwise.
    async fn look_up(
        &self,
        lease: &mut Lease,
        search: Search<'_>,
        begun: &Begun,
    ) -> Result<Found, Failure> {
        let few = few(lease, search, begun).await?;
        let is_whole = few.is_some() && search.is_of_audience();
        let known = match is_whole {
            true => None,
            false => {
                let audience = search.audience();
                let known = self.samples.get(lease, search.grant, &audience, begun);
                Some(known.await?)
            }
        };
        let known = match (few, known) {
            (None, Some(known)) => known,
            (few, known) => {
                let statistics = known.map(|it| Statistics::of(&it.sample, search.probe));
                return Ok(Found {
                    candidates: Candidates::All(few.unwrap_or_default()),
                    statistics: statistics.transpose()?,
                });
            }
        };
        let plan = self.plan(search, &known)?;
        let calls: Vec<&Call> = plan.calls.iter().collect();
        let answers = lease.pipeline(None, &calls, None).await?;
        choose(&plan, &known, &answers)
    }

    /// The statements that choose candidates.
    fn plan<'a>(&self, search: Search<'a>, known: &Known) -> Result<Plan<'a>, Failure> {
        let Search {
            grant,
            probe,
            within,
            ..
        } = search;
        let choice = Choice {
            scope: Scope::new(grant, &probe.filter, known.tenant()),
            probe,
            sample: Arc::clone(&known.sample),
            within,
        };
        let documents = known.sample.population.documents;
        choice.plan(&known.models, |model| {
            if !known.has_near {
                return Compare::Here;
            }
            let is_narrowed = !search.is_of_audience();
            let (compare, wants_index) =
                compare(search.exact, documents, is_narrowed, model.has_index);
            if wants_index {
                let vectors = hnsw::Vectors {
                    tenant: grant.tenant().clone(),
                    tenant_number: known.tenant(),
                    model: model.number,
                    dimension: model.id.dimension,
                };
                self.bring_in(vectors, search.exact);
            }
            compare
        })
    }

    /// Brings vectors into the index of their tenant while searches go on, if more than `most` are not
    /// in it. A process does it for one tenant at a time, so that it takes no more than one connection.
    fn bring_in(&self, vectors: hnsw::Vectors, most: usize) {
        let key = (vectors.tenant_number, vectors.model);
        let mut bringing_in = lock(&self.bringing_in);
        let now = Instant::now();
        bringing_in.retain(|_, again| again.is_none_or(|again| now < again));
        let is_busy = bringing_in.values().any(Option::is_none);
        if is_busy || bringing_in.contains_key(&key) {
            return;
        }
        bringing_in.insert(key, None);
        let (pool, bringing_in) = (Arc::clone(&self.pool), Arc::clone(&self.bringing_in));
        self.pool.runtime().spawn(async move {
            // Until it is there, vectors are compared one by one; `doctor` says so.
            let pause = match hnsw::bring_in(pool, &vectors, most).await {
                Ok(()) => LOOK_AGAIN,
                Err(_) => FAILED_AGAIN,
            };
            let again = Some(Instant::now() + pause);
            lock(&bringing_in).insert(key, again);
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the search reads the inverted index, and so its pending list.
fn reads_pending_list(probe: &Probe) -> bool {
    let has_tags = !probe.filter.tags.is_empty();
    has_tags || !probe.terms.is_empty() || !probe.asked.is_empty()
}

/// How so many vectors of a model are compared with pgvector, and whether they belong into its index.
/// While it is missing, those of a large tenant are compared here. A filter that narrows the search may
/// leave few of those that the index finds.
fn compare(exact: usize, documents: usize, is_narrowed: bool, has_index: bool) -> (Compare, bool) {
    let is_large = documents > VECTORS_PER_EXACT * exact;
    if !is_large && documents <= INDEXED_PER_EXACT * exact {
        return (Compare::InDatabase, false);
    }
    match (has_index, is_large) {
        (true, false) if is_narrowed => (Compare::InDatabase, false),
        (true, _) => (Compare::ByIndex, true),
        (false, true) => (Compare::Here, true),
        (false, false) => (Compare::InDatabase, true),
    }
}

/// The records that the filter may mean, if they are few enough to be compared one by one.
async fn few(
    lease: &mut Lease,
    search: Search<'_>,
    begun: &Begun,
) -> Result<Option<Vec<i64>>, Failure> {
    if let Some(within) = search.within {
        let few = (within.len() <= search.exact).then(|| within.iter().map(|it| it.cast_signed()));
        return Ok(few.map(Iterator::collect));
    }
    // Only the tenant itself sees as many records as the tenant has.
    if search.probe.filter.is_empty() && begun.moment.records > search.exact {
        return Ok(None);
    }
    let scope = Scope::new(search.grant, &search.probe.filter, begun.moment.tenant);
    let rows = lease.all(scope.few(search.exact + 1)?).await?;
    if rows.len() > search.exact {
        return Ok(None);
    }
    let seqs = rows.iter().map(|row| Ok(row.try_get(0)?));
    seqs.collect::<Result<_, Failure>>().map(Some)
}

/// The best candidates by the answers to the statements of the plan.
fn choose(plan: &Plan<'_>, known: &Known, answers: &[Vec<Row>]) -> Result<Found, Failure> {
    let mut statistics = Statistics::of(&known.sample, plan.choice.probe)?;
    let mut sampled = statistics.sampled();
    let chosen = plan.choose(answers, &mut sampled)?;
    statistics.counted = std::mem::take(&mut sampled.counted);
    Ok(Found {
        candidates: Candidates::Best(chosen),
        statistics: Some(statistics),
    })
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

fn models(grant: &Grant) -> Result<Call, Failure> {
    let sql =
        "SELECT m.num, m.name, m.dimension, EXISTS (SELECT 1 FROM pg_index i WHERE i.indisvalid
            AND i.indexrelid = to_regclass('mnemon.search_nearest_' || m.num || '_' || t.num))
         FROM mnemon.models m, mnemon.tenants t WHERE t.name = $1 ORDER BY m.num";
    call(grant, sql)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_compared_by_the_index_if_there_are_many() {
        use Compare::{ByIndex, Here, InDatabase};
        for (documents, is_narrowed, has_index, expected) in [
            (4_000, false, false, (InDatabase, false)),
            (4_000, false, true, (InDatabase, false)),
            (4_001, false, false, (InDatabase, true)),
            (4_001, false, true, (ByIndex, true)),
            (4_001, true, true, (InDatabase, false)),
            (20_001, false, false, (Here, true)),
            (20_001, true, true, (ByIndex, true)),
        ] {
            let found = compare(1000, documents, is_narrowed, has_index);
            assert_eq!(found, expected, "{documents}, {is_narrowed}, {has_index}");
        }
        assert_eq!(compare(0, 1, false, true), (ByIndex, true));
    }
}
