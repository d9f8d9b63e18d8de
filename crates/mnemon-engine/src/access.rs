//! Who calls a server, what they may do, and how much: keys, rights and quotas.
//!
//! Keys are records of the reserved tenant of the same store, so they work on every backend and for
//! any number of servers.

mod keys;
mod quota;
mod secret;
mod token;

pub use keys::{CreatedKey, Key, Keys, NewKey, Refused, RotatedKey};
pub use quota::{Amount, Quota, Quotas, day_ends_in_s};
pub use secret::RANDOM_BYTES;
pub use token::ClaimNames;

use std::fmt;
use std::str::FromStr;

use mnemon_core::{Ctx, Invalid, Tenant, Time};
use serde::{Deserialize, Serialize};

/// What a caller may do. Each right includes the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    Read,
    Write,
    /// Manage keys and settings, purge, and read what belongs to any user.
    Admin,
}

impl Rights {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Rights {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|right| right.as_str() == text);
        known.ok_or_else(|| {
            let what = format!(
                "`{}` is not one of: read, write, admin",
                text.escape_debug()
            );
            Invalid::new("rights", what)
        })
    }
}

/// The caller of a request, as a key or a token proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub tenant: Tenant,
    /// The only user whose records the caller may use; any user without one.
    pub user: Option<String>,
    /// The agent that the caller is.
    pub agent: Option<String>,
    pub rights: Rights,
    /// The prefix of the key, the subject of a token, or `local`.
    pub name: String,
}

/// The caller lacks a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this needs the right `{needed}`; the caller has `{has}`")]
pub struct Forbidden {
    pub needed: Rights,
    pub has: Rights,
}

impl Caller {
    /// A caller on this machine, of a server without keys: everybody is the administrator.
    pub fn local(tenant: Tenant) -> Self {
        Self {
            tenant,
            user: None,
            agent: None,
            rights: Rights::Admin,
            name: "local".to_owned(),
        }
    }

    pub fn require(&self, needed: Rights) -> Result<(), Forbidden> {
        match self.rights >= needed {
            true => Ok(()),
            false => Err(Forbidden {
                needed,
                has: self.rights,
            }),
        }
    }

    /// The circumstances of a call that this caller makes over HTTP.
    pub fn ctx(&self, now: Time) -> Ctx {
        Ctx::new(self.tenant.clone(), format!("http:{}", self.name), now)
    }
}
