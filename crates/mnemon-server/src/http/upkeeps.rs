//! The upkeep that this server has done, for its web page.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mnemon_core::{Tenant, Time};
use mnemon_operations::api::upkeep;
use mnemon_operations::wiring;
use serde::Serialize;
use serde_json::{Value, json};

/// The slices of one tenant since the start.
#[derive(Debug, Clone, Serialize)]
struct Done {
    /// When the last one ended.
    at: Option<Time>,
    slices: u64,
    #[serde(flatten)]
    total: upkeep::Response,
}

/// The upkeep of each tenant that was served lately.
#[derive(Default)]
pub(super) struct Upkeeps(Mutex<HashMap<Tenant, Done>>);

impl Upkeeps {
    /// Adds a slice.
    pub(super) fn add(&self, tenant: &Tenant, slice: &upkeep::Response) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = all.entry(tenant.clone()).or_insert_with(|| Done {
            at: None,
            slices: 0,
            total: upkeep::Response::default(),
        });
        done.at = wiring::now().ok();
        done.slices += 1;
        done.total.add(slice);
    }

    /// Drops the numbers of other tenants.
    pub(super) fn keep_only(&self, tenants: &[Tenant]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|tenant, _| tenants.contains(tenant));
    }

    /// The time of the last slice, the number of slices, and the sums of their work; null without one.
    pub(super) fn of(&self, tenant: &Tenant) -> Value {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(tenant).map_or(Value::Null, |done| json!(done))
    }
}
