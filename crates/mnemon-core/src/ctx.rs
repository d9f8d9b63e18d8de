//! Who asks, and when: stamped at the door, carried everywhere.

use crate::{Notices, Tenant, Time};

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
}

impl Ctx {
    /// A call by `actor` on `tenant`'s memory at `now`.
    pub fn new(tenant: Tenant, actor: impl Into<String>, now: Time) -> Self {
        Self {
            tenant,
            actor: actor.into(),
            now,
            notices: Notices::default(),
        }
    }
}
