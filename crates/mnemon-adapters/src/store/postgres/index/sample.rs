//! Statistics of the records that a caller may see, from a random sample of them.
//!
//! Every record has a number that is drawn once, from its id. The records of an audience with the
//! smallest numbers are a random sample, and the largest of these numbers says how many there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mnemon_core::dates::day_of_millis;
use mnemon_core::embed::ModelId;
use mnemon_core::index::{Cursor, Population, StoredVector, Terms, wrong_vector};
use mnemon_core::vector::VectorSet;
use mnemon_core::{Audience, Background, Embedding, Filter, Grant, StoreError, Tenant, Viewer};
use tokio_postgres::Row;

use super::audience_name;
use super::find::{Begun, Model};
use crate::store::postgres::errors::Failure;
use crate::store::postgres::feed::vector;
use crate::store::postgres::pool::{Call, Lease};
use crate::store::postgres::reads::{OWN, add_conditions, call};
use crate::store::postgres::view::{count, number};

/// Records of a sample.
const SIZE: usize = 1024;
/// Vectors that tell the background of a query, as in the index in memory.
const VECTORS: usize = 128;
/// Samples that are kept.
const KEPT: usize = 64;
/// A sample serves until one record in so many has changed.
const CHANGED: u64 = 50;
/// Numbers are drawn below this.
const DRAWN: f64 = (1_u64 << 31) as f64;

/// What is known of the tenant at the moment of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) tenant: i64,
    pub(super) last_seq: u64,
    pub(super) embedded: u64,
    pub(super) records: usize,
    pub(super) removed: u64,
}

impl Moment {
    /// Whether this moment shows all that the cursor has seen.
    pub(super) fn has_seen(&self, cursor: &Cursor) -> bool {
        let ours = Cursor {
            seq: self.last_seq,
            embedded: self.embedded,
            removed: self.removed,
            records: self.records,
        };
        ours.has_seen(cursor)
    }

    /// Whether statistics of that moment still serve at this one.
    pub(super) fn is_near(&self, earlier: &Self) -> bool {
        let few = |one: u64, other: u64| one.abs_diff(other) * CHANGED <= earlier.records as u64;
        self.tenant == earlier.tenant
            && few(self.last_seq, earlier.last_seq)
            && few(self.embedded, earlier.embedded)
            && few(self.records as u64, earlier.records as u64)
    }
}

/// A random sample of the records of an audience.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) population: Population,
    /// The records with their terms.
    pub(super) docs: Vec<(u64, Terms)>,
    vectors: Vec<StoredVector>,
    /// The first and the last day on which its records were created.
    pub(super) days: Option<(i32, i32)>,
}

impl Sample {
    /// The cosine of the query to records that were not chosen for it, by the first of its models
    /// that has vectors.
    pub(super) fn background(
        &self,
        queries: &[Embedding],
    ) -> Result<Option<Background>, StoreError> {
        let wrong = |error| wrong_vector(&error);
        for Embedding { model, vector } in queries {
            let own: Vec<&StoredVector> = self
                .vectors
                .iter()
                .filter(|it| it.model == *model)
                .collect();
            if own.is_empty() {
                continue;
            }
            let mut set = VectorSet::without_sketches(model.dimension).map_err(wrong)?;
            for stored in &own {
                set.push_quantised(&stored.vector).map_err(wrong)?;
            }
            let slots: Vec<u32> = (0..).take(own.len()).collect();
            let near = set.similarities(vector, &slots).map_err(wrong)?;
            return Ok(Background::of(near));
        }
        Ok(None)
    }
}

/// The samples that were used last.
#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<HashMap<Key, Known>>);

/// A tenant and an audience.
type Key = (Tenant, String);

/// A sample, and what the last search of the audience found besides.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// The moment of the sample.
    made: Moment,
    pub(super) sample: Arc<Sample>,
    pub(super) models: Vec<Model>,
    pub(super) has_near: bool,
}

impl Known {
    /// Whether statements that were made by it are those that this search would make.
    pub(super) fn holds(&self, begun: &Begun) -> bool {
        begun.moment.is_near(&self.made)
            && begun.models == self.models
            && begun.has_near == self.has_near
    }

    pub(super) fn tenant(&self) -> i64 {
        self.made.tenant
    }
}

fn key(grant: &Grant, audience: &Filter) -> Key {
    (grant.tenant().clone(), format!("{audience:?}"))
}

impl Samples {
    /// What the last search of the audience knew.
    pub(super) fn known(&self, grant: &Grant, audience: &Filter) -> Option<Known> {
        self.lock().get(&key(grant, audience)).cloned()
    }

    /// The next search of the audience knows nothing.
    pub(super) fn forget(&self, grant: &Grant, audience: &Filter) {
        self.lock().remove(&key(grant, audience));
    }

    /// What is known of the audience, with a sample that is not too old.
    pub(super) async fn get(
        &self,
        lease: &mut Lease,
        grant: &Grant,
        audience: &Filter,
        begun: &Begun,
    ) -> Result<Known, Failure> {
        let key = key(grant, audience);
        let moment = begun.moment;
        let earlier = self.lock().get(&key).cloned();
        let earlier = earlier.filter(|it| moment.is_near(&it.made));
        let (made, sample) = match earlier {
            Some(Known { made, sample, .. }) => (made, sample),
            None => {
                let rows = lease.all(select(grant, audience)?).await?;
                let documents = match names(audience) {
                    None => moment.records,
                    Some(_) => estimate(&rows)?,
                };
                (
                    moment,
                    Arc::new(read(&rows, documents, &begun.model_ids())?),
                )
            }
        };
        let known = Known {
            made,
            sample,
            models: begun.models.clone(),
            has_near: begun.has_near,
        };
        let mut kept = self.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, known.clone());
        Ok(known)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The audiences whose records are sampled; `None` for all of the tenant. What belongs to a user is
/// for that user, but for few records.
fn names(audience: &Filter) -> Option<Vec<String>> {
    if let Some(user) = &audience.owner.user {
        let own = Audience::User(user.clone());
        if audience.viewer == Viewer::Tenant || audience.viewer.sees(&own) {
            return Some(vec![audience_name(&own)]);
        }
    }
    let audiences = audience.viewer.audiences()?;
    let names = audiences.iter().map(audience_name);
    Some(names.chain([String::new()]).collect())
}

fn select(grant: &Grant, audience: &Filter) -> Result<Call, Failure> {
    let mut inner = call(grant, "")?.with(count(SIZE));
    let from = "SELECT s.draw, s.seq, s.terms, s.model, s.scale, s.codes, s.created
         FROM mnemon.search s JOIN mnemon.records r ON r.tenant = s.tenant AND r.seq = s.seq";
    add_conditions(&mut inner, grant, audience);
    let Some(names) = names(audience) else {
        return Ok(inner.wrap(|conditions| {
            format!(
                "{from} WHERE s.tenant = {OWN} AND s.draw < 536870912 AND {conditions}
                 ORDER BY s.draw LIMIT $2"
            )
        }));
    };
    let list = inner.next();
    let inner = inner.with(names);
    Ok(inner.wrap(|conditions| {
        format!(
            "SELECT x.* FROM unnest(${list}::text[]) AS a(name), LATERAL (
                {from} WHERE s.tenant = {OWN} AND s.audience = a.name AND {conditions}
                ORDER BY s.draw LIMIT $2) x
             ORDER BY x.draw LIMIT $2"
        )
    }))
}

/// How many records there are of which these have the smallest numbers.
fn estimate(rows: &[Row]) -> Result<usize, Failure> {
    let Some(last) = rows.last().filter(|_| rows.len() >= SIZE) else {
        return Ok(rows.len());
    };
    let largest = f64::from(last.try_get::<_, i32>(0)?.max(1));
    Ok(((rows.len() - 1) as f64 * DRAWN / largest) as usize)
}

fn read(rows: &[Row], documents: usize, models: &HashMap<i64, ModelId>) -> Result<Sample, Failure> {
    let mut sample = Sample::default();
    let mut of_model: HashMap<i64, usize> = HashMap::new();
    for row in rows {
        let terms = Terms::from_bytes(row.try_get(2)?).unwrap_or_default();
        sample.docs.push((number(row, 1)?, terms));
        let day = day_of_millis(row.try_get(6)?);
        let (first, last) = sample.days.unwrap_or((day, day));
        sample.days = Some((first.min(day), last.max(day)));
        if let Some(model) = row.try_get::<_, Option<i64>>(3)? {
            let known = of_model.entry(model).or_default();
            *known += 1;
            if *known <= VECTORS {
                sample.vectors.extend(vector(row, 3, models)?);
            }
        }
    }
    let terms = sample.docs.iter().map(|(_, terms)| terms);
    sample.population = Population::new(documents, terms);
    Ok(sample)
}
