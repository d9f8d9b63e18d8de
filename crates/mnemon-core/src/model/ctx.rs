//! Who asks, and when: stamped at the door, carried everywhere.

use std::collections::HashMap;
use std::sync::Arc;

use futures::lock::{Mutex, MutexGuard};

use crate::model::{Notices, Tenant, Time};

/// The circumstances of one call. Nothing below the door looks at a clock or asks who is there.
#[derive(Debug, Clone)]
pub struct Ctx {
    /// Whose memory it is.
    pub tenant: Tenant,
    /// Who acts, in words for the history: `cli:ann`, `key:ci`, `agent:planner`.
    pub actor: String,
    /// The moment of the call.
    pub now: Time,
    /// What this call could not do, for the door to print.
    pub notices: Notices,
    /// The commit that everything written under this context belongs to. `None`: each call of the
    /// engine is a commit of its own.
    pub group: Option<CommitGroup>,
}

impl Ctx {
    /// A call by `actor` on `tenant`'s memory at `now`.
    pub fn new(tenant: Tenant, actor: impl Into<String>, now: Time) -> Self {
        Self {
            tenant,
            actor: actor.into(),
            now,
            notices: Notices::default(),
            group: None,
        }
    }

    /// The same call as one commit, however many batches it takes: that of the command it is part
    /// of, otherwise a new one.
    pub fn as_one_commit(&self) -> Self {
        Self {
            group: Some(self.group.clone().unwrap_or_default()),
            ..self.clone()
        }
    }

    /// The same call outside the commit of the command it is part of.
    pub fn ungrouped(&self) -> Self {
        Self {
            group: None,
            ..self.clone()
        }
    }
}

/// The number of one commit that several batches are written under, for each tenant and store:
/// the first batch begins the commit, later ones continue it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CommitGroup(Arc<Mutex<HashMap<(Tenant, usize), u64>>>);

impl CommitGroup {
    /// The commits that have begun, by tenant and any number that tells stores apart. Whoever
    /// begins one holds this until its number is known, so that writers at the same time continue
    /// it.
    pub async fn begun(&self) -> MutexGuard<'_, HashMap<(Tenant, usize), u64>> {
        self.0.lock().await
    }
}
