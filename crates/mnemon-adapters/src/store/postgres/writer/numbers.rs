//! The numbers of tenants and models, which do not change once they are given.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mnemon_core::embed::ModelId;
use mnemon_core::{StoreError, Tenant};

use crate::store::postgres::apply::Models;
use crate::store::postgres::embeddings;
use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::{Call, Lease};

/// Tenants whose numbers are kept at the most.
const KNOWN: usize = 10_000;

/// Numbers that this process has read.
#[derive(Default)]
pub(super) struct Numbers {
    tenants: Mutex<HashMap<Tenant, i64>>,
    models: Mutex<Models>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Numbers {
    /// The tenant's number, if it ever wrote.
    pub(super) async fn find_tenant(
        &self,
        lease: &mut Lease,
        tenant: &Tenant,
    ) -> Result<Option<i64>, Failure> {
        if let Some(number) = self.known_tenant(tenant) {
            return Ok(Some(number));
        }
        let sql = "SELECT num FROM mnemon.tenants WHERE name = $1";
        let rows = lease.all(Call::new(sql).with(tenant.as_str().to_owned()));
        Ok(rows.await?.first().map(|row| row.try_get(0)).transpose()?)
    }

    /// The tenant's number; it gets one with its first write.
    pub(super) async fn add_tenant(
        &self,
        lease: &mut Lease,
        tenant: &Tenant,
    ) -> Result<i64, Failure> {
        if let Some(number) = self.find_tenant(lease, tenant).await? {
            return Ok(self.remember(tenant, number));
        }
        let add = "INSERT INTO mnemon.tenants (name) VALUES ($1) ON CONFLICT DO NOTHING";
        lease
            .all(Call::new(add).with(tenant.as_str().to_owned()))
            .await?;
        let number = self.find_tenant(lease, tenant).await?;
        let lost = || StoreError::Internal("a tenant was lost".to_owned());
        Ok(self.remember(tenant, number.ok_or_else(lost)?))
    }

    fn known_tenant(&self, tenant: &Tenant) -> Option<i64> {
        lock(&self.tenants).get(tenant).copied()
    }

    fn remember(&self, tenant: &Tenant, number: i64) -> i64 {
        let mut tenants = lock(&self.tenants);
        if tenants.len() >= KNOWN {
            tenants.clear();
        }
        tenants.insert(tenant.clone(), number);
        number
    }

    /// Reads the tenant's number again the next time.
    pub(super) fn forget(&self, tenant: &Tenant) {
        lock(&self.tenants).remove(tenant);
    }

    /// The numbers of these models.
    pub(super) async fn models<'a>(
        &self,
        lease: &mut Lease,
        wanted: impl Iterator<Item = &'a ModelId>,
    ) -> Result<Models, Failure> {
        let mut found = Models::new();
        let mut missing: Vec<ModelId> = Vec::new();
        {
            let known = lock(&self.models);
            for model in wanted {
                match known.get(model) {
                    _ if found.contains_key(model) || missing.contains(model) => {}
                    Some(number) => drop(found.insert(model.clone(), *number)),
                    None => missing.push(model.clone()),
                }
            }
        }
        for model in missing {
            let number = embeddings::add_model(lease, &model).await?;
            found.insert(model.clone(), number);
            lock(&self.models).insert(model, number);
        }
        Ok(found)
    }
}
