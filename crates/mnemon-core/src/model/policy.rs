//! Permission as a value: no store is touched without a [`Grant`], and only a [`Policy`] makes one.

use crate::model::limits::{self, Limits};
use crate::model::owner::check_line;
use crate::model::{Ctx, Namespace, Notices, Tenant, Time};

/// What a call wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Read,
    Write,
    /// Erase permanently, history included.
    Purge,
}

impl Right {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Purge => "purge",
        }
    }
}

/// What a policy allows at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rights {
    Read,
    /// Read and write, but nothing is ever erased permanently.
    Write,
    #[default]
    All,
}

impl Rights {
    fn allow(self, right: Right) -> bool {
        match self {
            Self::Read => right == Right::Read,
            Self::Write => right != Right::Purge,
            Self::All => true,
        }
    }
}

/// How many notes a tenant may keep in each namespace; `None` is no cap.
///
/// Only notes count: a long conversation is not evicted because there are many notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    pub short_term: Option<u64>,
    pub long_term: Option<u64>,
}

impl Caps {
    /// The cap of one namespace.
    pub fn of(&self, namespace: Namespace) -> Option<u64> {
        match namespace {
            Namespace::ShortTerm => self.short_term,
            Namespace::LongTerm => self.long_term,
        }
    }
}

/// Who may do what, and within which bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The only tenants served; empty means every tenant.
    pub tenants: Vec<Tenant>,
    /// What callers may do at the most.
    pub rights: Rights,
    /// How many notes are kept.
    pub caps: Caps,
    /// After how many days upkeep drops old versions; `None` keeps them until they are purged.
    pub history_days: Option<i64>,
    /// How many there may be of something; tests shrink them.
    pub limits: &'static Limits,
}

/// The policy said no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("tenant `{0}` is not served here")]
    Tenant(Tenant),
    #[error("this policy does not allow the caller to {}", .0.word())]
    Right(Right),
    #[error("the actor is not valid: {0}")]
    Actor(crate::error::Invalid),
}

impl Policy {
    /// Permission to use the right on the caller's tenant, or the reason why not.
    pub fn check(&self, ctx: &Ctx, right: Right) -> Result<Grant, Denied> {
        let is_served = self.tenants.is_empty() || self.tenants.contains(&ctx.tenant);
        if !is_served || ctx.tenant.is_system() {
            return Err(Denied::Tenant(ctx.tenant.clone()));
        }
        self.grant(ctx, right, ctx.tenant.clone())
    }

    /// The same on the reserved tenant, for the part of the engine that keeps its own records
    /// there. The caller's tenant does not matter.
    pub fn check_system(&self, ctx: &Ctx, right: Right) -> Result<Grant, Denied> {
        self.grant(ctx, right, Tenant::system())
    }

    fn grant(&self, ctx: &Ctx, right: Right, tenant: Tenant) -> Result<Grant, Denied> {
        check_line("actor", &ctx.actor, limits::NAME_CHARS).map_err(Denied::Actor)?;
        if !self.rights.allow(right) {
            return Err(Denied::Right(right));
        }
        Ok(Grant {
            tenant,
            actor: ctx.actor.clone(),
            now: ctx.now,
            right,
            caps: self.caps,
            history_days: self.history_days,
            limits: self.limits,
            accepts_clock: false,
            notices: ctx.notices.clone(),
        })
    }
}

/// Permission for one call on one tenant at one moment. Its fields are private and only
/// [`Policy::check`] fills them, so a store method that takes one cannot be called without.
#[derive(Debug, Clone)]
pub struct Grant {
    tenant: Tenant,
    actor: String,
    now: Time,
    right: Right,
    caps: Caps,
    history_days: Option<i64>,
    limits: &'static Limits,
    accepts_clock: bool,
    notices: Notices,
}

impl Grant {
    /// The same grant of a caller who knows that the clock is right, however far it is ahead of
    /// the newest write; see [`crate::model::clock`].
    #[must_use]
    pub fn accept_clock(mut self) -> Self {
        self.accepts_clock = true;
        self
    }

    /// Whether the caller knows that the clock is right.
    pub fn accepts_clock(&self) -> bool {
        self.accepts_clock
    }

    /// The only tenant this grant opens.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Who acts.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// When.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Where to report what the call could not do.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// How many there may be of something.
    pub fn limits(&self) -> &'static Limits {
        self.limits
    }

    /// How many notes may be kept.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Versions replaced before this moment may be dropped; `None` keeps all.
    pub fn history_until(&self) -> Option<Time> {
        self.history_days
            .map(|days| self.now.plus_days(days.saturating_neg()))
    }

    /// Whether the grant covers `right`: purging includes writing, writing includes reading.
    pub fn require(&self, right: Right) -> Result<(), Denied> {
        let covered = match right {
            Right::Read => true,
            Right::Write => self.right != Right::Read,
            Right::Purge => self.right == Right::Purge,
        };
        if covered {
            Ok(())
        } else {
            Err(Denied::Right(right))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ctx(tenant: &str) -> Ctx {
        Ctx::new(
            tenant.parse().unwrap(),
            "test",
            Time::from_millis(0).unwrap(),
        )
    }

    #[test]
    fn rights_are_held_to() {
        let policy = |rights| Policy {
            rights,
            ..Policy::default()
        };
        let reader = policy(Rights::Read);
        assert!(reader.check(&ctx("a"), Right::Read).is_ok());
        assert_eq!(
            reader
                .check(&ctx("a"), Right::Write)
                .unwrap_err()
                .to_string(),
            "this policy does not allow the caller to write"
        );
        assert!(
            policy(Rights::Write)
                .check(&ctx("a"), Right::Purge)
                .is_err()
        );
    }

    #[test]
    fn only_listed_tenants_are_served() {
        let policy = Policy {
            tenants: vec!["a".parse().unwrap()],
            ..Policy::default()
        };
        assert!(policy.check(&ctx("a"), Right::Read).is_ok());
        assert!(policy.check(&ctx("b"), Right::Read).is_err());
    }

    #[test]
    fn the_reserved_tenant_is_granted_to_the_engine_alone() {
        let caller = Ctx {
            tenant: Tenant::system(),
            ..ctx("a")
        };
        let denied = Policy::default().check(&caller, Right::Read).unwrap_err();
        assert_eq!(denied, Denied::Tenant(Tenant::system()));
        let grant = Policy::default().check_system(&ctx("a"), Right::Read);
        assert_eq!(*grant.unwrap().tenant(), Tenant::system());
        assert!("mnemon-system".parse::<Tenant>().is_err());
        assert_eq!(Tenant::from_store("mnemon-system"), Ok(Tenant::system()));
    }

    #[test]
    fn a_read_grant_does_not_write() {
        let grant = Policy::default().check(&ctx("a"), Right::Read).unwrap();
        assert!(grant.require(Right::Read).is_ok());
        assert!(grant.require(Right::Write).is_err());
        let grant = Policy::default().check(&ctx("a"), Right::Purge).unwrap();
        assert!(grant.require(Right::Write).is_ok());
    }
}
