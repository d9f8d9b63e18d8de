//! How much of a common good one caller, and one tenant, may hold at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mnemon_core::Tenant;
use mnemon_engine::access::Caller;

/// A tenant, or a caller of it.
type Holder = (Tenant, Option<String>);
type Held = Arc<Mutex<HashMap<Holder, usize>>>;

pub(super) struct Shares {
    /// How many one caller may hold.
    caller: usize,
    /// How many all callers of a tenant may hold.
    tenant: usize,
    held: Held,
}

/// A share that is held until it is dropped.
pub(super) struct Share {
    holders: [Holder; 2],
    held: Held,
}

/// Who holds too much, and how much is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OverShare {
    pub(super) of: &'static str,
    pub(super) most: usize,
}

impl Shares {
    pub(super) fn new(caller: usize, tenant: usize) -> Self {
        Self {
            caller,
            tenant,
            held: Held::default(),
        }
    }

    pub(super) fn take(&self, caller: &Caller) -> Result<Share, OverShare> {
        let tenant = caller.tenant.clone();
        let holders = [(tenant.clone(), Some(caller.name.clone())), (tenant, None)];
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let most = [("key", self.caller), ("tenant", self.tenant)];
        for (holder, (of, most)) in holders.iter().zip(most) {
            if held.get(holder).is_some_and(|count| *count >= most) {
                return Err(OverShare { of, most });
            }
        }
        for holder in &holders {
            *held.entry(holder.clone()).or_default() += 1;
        }
        let held = self.held.clone();
        Ok(Share { holders, held })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for holder in &self.holders {
            if let Some(count) = held.get_mut(holder) {
                *count -= 1;
                if *count == 0 {
                    held.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_and_a_tenant_have_a_share() {
        let caller = |tenant: &str, name: &str| {
            let name = name.to_owned();
            let local = Caller::local(tenant.parse().unwrap());
            Caller { name, ..local }
        };
        let shares = Shares::new(2, 3);
        let (ann, bob) = (caller("acme", "ann"), caller("acme", "bob"));
        let first = shares.take(&ann).unwrap();
        let _second = shares.take(&ann).unwrap();
        let over = |of, most| Some(OverShare { of, most });
        assert_eq!(shares.take(&ann).err(), over("key", 2));
        let third = shares.take(&bob).unwrap();
        assert_eq!(shares.take(&bob).err(), over("tenant", 3));
        let _other = shares.take(&caller("beta", "ann")).unwrap();
        drop(first);
        let _again = shares.take(&bob).unwrap();
        drop(third);
        drop(shares.take(&ann).unwrap());
        let held = shares.held.lock().unwrap();
        assert_eq!(
            held.len(),
            5,
            "those that hold nothing are forgotten: {held:?}"
        );
    }
}
