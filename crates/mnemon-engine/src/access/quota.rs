//! How much a tenant may store and ask for.
//!
//! Counts live in this process: two servers on one store count requests separately. Records and
//! bytes are measured in the store now and then, and counted between two measurements.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mnemon_core::{Ctx, Filter, Record, Scan, Tenant, Time, limits};
use serde::{Deserialize, Serialize};

use crate::memory::Buckets;
use crate::records::{Error, Records};

/// How long a count of records is relied on. Counting reads no records.
const RECORDS_MS: i64 = 5_000;
/// The same for bytes. Measuring reads every record of the tenant.
const BYTES_MS: i64 = 600_000;

/// The limits of one tenant; `None` where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    pub records: Option<u64>,
    /// Content, summary, body and metadata of all current records together.
    pub bytes: Option<u64>,
    pub requests_per_minute: Option<u64>,
    /// Enforced where the language model is called.
    pub model_tokens_per_day: Option<u64>,
}

/// Records and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub records: u64,
    pub bytes: u64,
}

/// The quotas of all tenants, and how much of them is used.
#[derive(Debug, Default)]
pub struct Quotas {
    default: Quota,
    tenants: BTreeMap<Tenant, Quota>,
    requests: Buckets<Tenant>,
    stored: Mutex<HashMap<Tenant, Stored>>,
}

/// How much a tenant has stored, and when it was measured.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    records: Option<(Time, u64)>,
    bytes: Option<(Time, u64)>,
}

impl Quotas {
    /// The same quota for every tenant but those that have their own.
    pub fn new(default: Quota, tenants: BTreeMap<Tenant, Quota>) -> Self {
        Self {
            default,
            tenants,
            ..Self::default()
        }
    }

    /// The quota of a tenant.
    pub fn of(&self, tenant: &Tenant) -> Quota {
        self.tenants.get(tenant).copied().unwrap_or(self.default)
    }

    /// Bytes of the tenant as they were measured last, with what was added since; `None` if they
    /// were not measured, as without a quota.
    pub fn bytes_of(&self, tenant: &Tenant) -> Option<u64> {
        let stored = self.stored();
        let (_, bytes) = stored.get(tenant)?.bytes?;
        Some(bytes)
    }

    /// Counts a request, or says how long the caller has to wait. A minute's requests may come at
    /// once; after that they are admitted evenly.
    pub fn check_request(&self, tenant: &Tenant, now: Time) -> Result<(), Error> {
        let Some(most) = self.of(tenant).requests_per_minute else {
            return Ok(());
        };
        let taken = self.requests.take(tenant.clone(), now, most);
        taken.map_err(|retry| {
            let ms = u64::try_from(retry.millis() - now.millis()).unwrap_or(0);
            let seconds = Some(ms.div_ceil(1000).max(1));
            over(tenant, "requests per minute", most, seconds)
        })
    }

    /// Checks that this much more can be stored, and counts it. Deletions count from the next
    /// measurement on: after 5 seconds for records, after 10 minutes for bytes.
    pub async fn check_write(
        &self,
        records: &Records,
        ctx: &Ctx,
        added: Amount,
    ) -> Result<(), Error> {
        let quota = self.of(&ctx.tenant);
        if quota.records.is_some() && self.is_due(ctx, |stored| stored.records, RECORDS_MS) {
            let mut count = 0_u64;
            for records in records.on_all_stores() {
                count = count.saturating_add(records.stats(ctx).await?.records());
            }
            self.keep(ctx, |stored| stored.records = Some((ctx.now, count)));
        }
        if quota.bytes.is_some() && self.is_due(ctx, |stored| stored.bytes, BYTES_MS) {
            let bytes = weigh(records, ctx).await?;
            self.keep(ctx, |stored| stored.bytes = Some((ctx.now, bytes)));
        }
        self.add(&ctx.tenant, added)
    }

    /// Counts what is added to the last measurement, or refuses it whole.
    fn add(&self, tenant: &Tenant, added: Amount) -> Result<(), Error> {
        let quota = self.of(tenant);
        let mut all = self.stored();
        let Some(stored) = all.get_mut(tenant) else {
            return Ok(());
        };
        let parts = [
            ("records", quota.records, &mut stored.records, added.records),
            ("bytes", quota.bytes, &mut stored.bytes, added.bytes),
        ];
        for (what, most, measured, added) in &parts {
            if let (Some(most), Some((_, used))) = (*most, **measured)
                && used.saturating_add(*added) > most
            {
                return Err(over(tenant, what, most, None));
            }
        }
        for (_, _, measured, added) in parts {
            if let Some((_, used)) = measured {
                *used = used.saturating_add(added);
            }
        }
        Ok(())
    }

    fn is_due(
        &self,
        ctx: &Ctx,
        part: impl Fn(&Stored) -> Option<(Time, u64)>,
        interval_ms: i64,
    ) -> bool {
        let measured = self.stored().get(&ctx.tenant).and_then(part);
        let age = measured.map(|(at, _)| ctx.now.millis() - at.millis());
        !age.is_some_and(|age| (0..interval_ms).contains(&age))
    }

    /// Keeps a measurement of the tenant of the call.
    fn keep(&self, ctx: &Ctx, set: impl FnOnce(&mut Stored)) {
        let mut all = self.stored();
        if all.len() >= limits::QUOTA_TENANTS && !all.contains_key(&ctx.tenant) {
            // They are measured again when they write.
            all.clear();
        }
        set(all.entry(ctx.tenant.clone()).or_default());
    }

    fn stored(&self) -> MutexGuard<'_, HashMap<Tenant, Stored>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In how many seconds the day ends, and with it a quota of model tokens. Days are UTC days.
pub fn day_ends_in_s(now: Time) -> u64 {
    let day_ms = 86_400_000;
    let left = day_ms - now.millis().rem_euclid(day_ms);
    u64::try_from(left).unwrap_or(0).div_ceil(1000)
}

/// The bytes of all current records of the tenant, as [`Record::weight`]
/// counts them.
async fn weigh(records: &Records, ctx: &Ctx) -> Result<u64, Error> {
    let mut bytes = 0_u64;
    for records in records.on_all_stores() {
        let scan = Scan::new(Filter::all_of_tenant(), records.limits().page);
        let add = |page: Vec<Record>| {
            let weights = page.iter().map(|record| record.weight() as u64);
            bytes = bytes.saturating_add(weights.sum());
            true
        };
        records.each_page(ctx, scan, add).await?;
    }
    Ok(bytes)
}

fn over(tenant: &Tenant, what: &'static str, most: u64, seconds: Option<u64>) -> Error {
    Error::Quota {
        tenant: tenant.clone(),
        what,
        most,
        seconds,
    }
}
