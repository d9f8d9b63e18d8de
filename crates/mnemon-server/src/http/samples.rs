//! Metrics that are read when somebody asks for them: what there is, rather than what was done.
//!
//! No records are read for them, except of those that wait for a vector. They take a second at most;
//! values that took longer stay as they were, and `scrape_incomplete` says so.

use std::sync::Arc;
use std::time::Duration;

use mnemon_core::{IndexUsage, Tenant};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::api::Api;
use super::caller::Lock;
use super::connections::Connections;
use mnemon_operations::Error;
use mnemon_operations::wiring::{self, Meter};

/// Tenants that are named; all others are counted together.
const NAMED_TENANTS: usize = 100;
/// The name of all other tenants.
const OTHER: &str = "(other)";
/// After so many records that wait for a vector no more are counted.
const MOST_WAITING: usize = 10_000;
const TIMEOUT: Duration = Duration::from_secs(1);

/// Where the values come from.
pub(super) struct Sources {
    pub(super) api: Arc<Api>,
    pub(super) lock: Arc<Lock>,
    pub(super) connections: Arc<Connections>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTenant {
    tenant: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCache {
    cache: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    queue: &'static str,
}

type Gauges<L> = Family<L, Gauge>;

pub(super) struct Samples {
    meter: Arc<Meter>,
    connections: Gauge,
    refused: Counter,
    tenant_records: Gauges<OfTenant>,
    tenant_bytes: Gauges<OfTenant>,
    tenant_index_bytes: Gauges<OfTenant>,
    index_records: Gauge,
    index_bytes: Gauge,
    cache_hits: Family<OfCache, Counter>,
    cache_misses: Family<OfCache, Counter>,
    queues: Gauges<OfQueue>,
    store_bytes: Gauge,
    resident: Gauge,
    incomplete: Gauge,
    /// Two requests at a time would mix their values.
    taking: Mutex<()>,
}

/// What the store says of one tenant.
struct TenantSample {
    tenant: Tenant,
    records: u64,
    bytes: Option<u64>,
    expired: u64,
    waiting: usize,
}

impl Samples {
    pub(super) fn new(meter: Arc<Meter>) -> Self {
        Self {
            meter,
            connections: Gauge::default(),
            refused: Counter::default(),
            tenant_records: Family::default(),
            tenant_bytes: Family::default(),
            tenant_index_bytes: Family::default(),
            index_records: Gauge::default(),
            index_bytes: Gauge::default(),
            cache_hits: Family::default(),
            cache_misses: Family::default(),
            queues: Family::default(),
            store_bytes: Gauge::default(),
            resident: Gauge::default(),
            incomplete: Gauge::default(),
            taking: Mutex::default(),
        }
    }

    /// The metric that has the name which all programs give it.
    pub(super) fn register_process(&self, registry: &mut Registry) {
        if wiring::resident_bytes().is_some() {
            let text = "Memory that the process uses";
            registry.register("process_resident_memory_bytes", text, self.resident.clone());
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let text = "Open connections";
        registry.register("http_connections", text, self.connections.clone());
        let text = "Connections that were refused because too many were busy";
        registry.register("http_connections_refused", text, self.refused.clone());
        let text = "Records of a tenant that was served lately";
        registry.register("tenant_records", text, self.tenant_records.clone());
        let text = "Bytes of the records of a tenant that has a quota of bytes";
        registry.register("tenant_bytes", text, self.tenant_bytes.clone());
        let text = "Memory of the search index of a tenant";
        registry.register("tenant_index_bytes", text, self.tenant_index_bytes.clone());
        let text = "Records in the search indexes in memory";
        registry.register("index_records", text, self.index_records.clone());
        let text = "Memory of all search indexes";
        registry.register("index_bytes", text, self.index_bytes.clone());
        let text = "Lookups that a cache answered";
        registry.register("cache_hits", text, self.cache_hits.clone());
        let text = "Lookups that a cache could not answer";
        registry.register("cache_misses", text, self.cache_misses.clone());
        let text = "Records that wait: to be erased (expired), or for a vector (vectors)";
        registry.register("queue_depth", text, self.queues.clone());
        let text = "Size of the store's file, 0 for other stores";
        registry.register("store_bytes", text, self.store_bytes.clone());
        let text = "1 if the store was too slow to give new values";
        registry.register("scrape_incomplete", text, self.incomplete.clone());
    }

    /// Reads the values.
    pub(super) async fn take(&self, sources: &Sources) {
        let _alone = self.taking.lock().await;
        set(&self.connections, sources.connections.count());
        raise(&self.refused, sources.connections.refused());
        if let Some(bytes) = wiring::resident_bytes() {
            set(&self.resident, bytes);
        }
        self.take_index(&self.meter.index());
        let (hits, misses) = sources.lock.cache_hits_and_misses();
        self.take_cache("keys", hits, misses);
        let tenants = timeout(TIMEOUT, tenants(&sources.api)).await;
        let is_incomplete = !matches!(tenants, Ok(Ok(_)));
        self.incomplete.set(i64::from(is_incomplete));
        if let Ok(Ok(tenants)) = tenants {
            self.take_tenants(&tenants);
        }
        let config = sources.api.config();
        set(&self.store_bytes, wiring::store_bytes(&config).unwrap_or(0));
    }

    fn take_index(&self, usage: &IndexUsage) {
        let sum = |part: fn(&mnemon_core::TenantIndex) -> usize| -> usize {
            usage.tenants.iter().map(part).sum()
        };
        set(&self.index_records, sum(|index| index.records));
        set(&self.index_bytes, sum(|index| index.bytes));
        self.take_cache("index", usage.hits, usage.misses);
        let sizes = usage
            .tenants
            .iter()
            .filter(|index| !index.tenant.is_system());
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        self.tenant_index_bytes.clear();
        for (place, index) in sizes.into_iter().enumerate() {
            add(&self.tenant_index_bytes, place, &index.tenant, index.bytes);
        }
    }

    fn take_cache(&self, cache: &'static str, hits: u64, misses: u64) {
        let label = OfCache { cache };
        raise(&self.cache_hits.get_or_create(&label), hits);
        raise(&self.cache_misses.get_or_create(&label), misses);
    }

    fn take_tenants(&self, tenants: &[TenantSample]) {
        self.tenant_records.clear();
        self.tenant_bytes.clear();
        let (mut expired, mut waiting) = (0_u64, 0_usize);
        for (place, sample) in tenants.iter().enumerate() {
            add(&self.tenant_records, place, &sample.tenant, sample.records);
            if let Some(bytes) = sample.bytes {
                add(&self.tenant_bytes, place, &sample.tenant, bytes);
            }
            expired = expired.saturating_add(sample.expired);
            waiting = waiting.saturating_add(sample.waiting);
        }
        set(
            &self.queues.get_or_create(&OfQueue { queue: "expired" }),
            expired,
        );
        set(
            &self.queues.get_or_create(&OfQueue { queue: "vectors" }),
            waiting,
        );
    }
}

/// The tenants that this process has open, the configured one first and the others by name.
async fn tenants(api: &Api) -> Result<Vec<TenantSample>, Error> {
    let mut tenants = api.tenants();
    if let Some((_, others)) = tenants.split_first_mut() {
        others.sort();
    }
    let (quotas, records) = (api.quotas(), api.memory.records());
    let mut samples = Vec::with_capacity(tenants.len());
    let mut waiting = 0;
    for tenant in tenants {
        let ctx = wiring::stamp(&api.seat(&tenant)?.config)?;
        let tally = records.stats(&ctx).await?;
        let more = match waiting < MOST_WAITING {
            true => records.without_vector(&ctx).await?,
            false => 0,
        };
        waiting += more;
        samples.push(TenantSample {
            records: tally.records().saturating_sub(tally.expired),
            bytes: quotas.bytes_of(&tenant),
            expired: tally.expired,
            waiting: more,
            tenant,
        });
    }
    Ok(samples)
}

/// Adds a value of a tenant under its name, or under that of all others.
fn add(gauges: &Gauges<OfTenant>, place: usize, tenant: &Tenant, value: impl TryInto<i64>) {
    let tenant = match place < NAMED_TENANTS {
        true => tenant.to_string(),
        false => OTHER.to_owned(),
    };
    let value = value.try_into().unwrap_or(i64::MAX);
    gauges.get_or_create(&OfTenant { tenant }).inc_by(value);
}

fn set(gauge: &Gauge, value: impl TryInto<i64>) {
    gauge.set(value.try_into().unwrap_or(i64::MAX));
}

/// Sets a counter to a count that is kept elsewhere.
fn raise(counter: &Counter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_beyond_the_hundredth_are_counted_together() {
        let samples = Samples::new(Arc::default());
        let sample = |number: u64| TenantSample {
            tenant: format!("t{number:03}").parse().unwrap(),
            records: number,
            bytes: number.is_multiple_of(2).then_some(10),
            expired: 1,
            waiting: 2,
        };
        let tenants: Vec<TenantSample> = (0..150).map(sample).collect();
        samples.take_tenants(&tenants);
        // A second time nothing is added to what was there.
        samples.take_tenants(&tenants);
        let records = |tenant: &str| {
            let tenant = tenant.to_owned();
            let gauge = samples.tenant_records.get(&OfTenant { tenant });
            gauge.map(|gauge| gauge.get())
        };
        let names = (0..150).filter(|number| records(&format!("t{number:03}")).is_some());
        assert_eq!(names.count(), NAMED_TENANTS);
        assert_eq!(records("t099"), Some(99));
        assert_eq!(records("t100"), None);
        assert_eq!(records(OTHER), Some((100..150).sum()));
        for (queue, depth) in [("expired", 150), ("vectors", 300)] {
            let gauge = samples.queues.get_or_create(&OfQueue { queue });
            assert_eq!(gauge.get(), depth, "{queue}");
        }
    }
}
