//! Short ways to the values that tests need.

use std::cell::Cell;

use mnemon_core::{
    Audience, Caps, Ctx, Grant, Id, IdempotencyKey, Kind, Limits, Namespace, Origin, Owner, Policy,
    Record, Right, Time,
};
use serde_json::json;

/// So many milliseconds after the moment at which every test begins.
#[must_use]
pub fn at(ms: i64) -> Time {
    Time::EPOCH.plus_millis(1_700_000_000_000 + ms)
}

/// A call by `test` on the default tenant.
#[must_use]
pub fn ctx(now: Time) -> Ctx {
    Ctx::new("default".parse().unwrap(), "test", now)
}

/// Permission for everything, by `test` on the default tenant.
#[must_use]
pub fn grant(now: Time) -> Grant {
    Caller::default().at(now).grant(Right::Purge)
}

/// Permission for everything on this tenant, at the first moment.
#[must_use]
pub fn grant_on(tenant: &str) -> Grant {
    Caller::default().on(tenant).grant(Right::Purge)
}

/// Who calls, when, and under which policy.
#[derive(Debug, Clone)]
pub struct Caller {
    ctx: Ctx,
    policy: Policy,
}

impl Default for Caller {
    fn default() -> Self {
        Self {
            ctx: ctx(at(0)),
            policy: Policy {
                limits: limits(),
                ..Policy::default()
            },
        }
    }
}

thread_local! {
    static LIMITS: Cell<&'static Limits> = const { Cell::new(&Limits::DEFAULT) };
}

/// The limits of every grant that is made on this thread.
#[must_use]
pub fn limits() -> &'static Limits {
    LIMITS.get()
}

/// Runs a test under these limits: every grant that it makes on this thread has them.
pub fn with_limits<T>(limits: &'static Limits, test: impl FnOnce() -> T) -> T {
    let before = LIMITS.replace(limits);
    let done = test();
    LIMITS.set(before);
    done
}

impl Caller {
    /// Calls at this moment.
    #[must_use]
    pub fn at(mut self, now: Time) -> Self {
        self.ctx.now = now;
        self
    }

    /// Calls on this tenant's memory.
    #[must_use]
    pub fn on(mut self, tenant: &str) -> Self {
        self.ctx.tenant = tenant.parse().unwrap();
        self
    }

    /// Calls under this name.
    #[must_use]
    pub fn named(mut self, actor: &str) -> Self {
        self.ctx.actor = actor.to_owned();
        self
    }

    /// At most so many notes are kept.
    #[must_use]
    pub fn capped(mut self, short_term: Option<u64>, long_term: Option<u64>) -> Self {
        self.policy.caps = Caps {
            short_term,
            long_term,
        };
        self
    }

    /// Upkeep drops history after so many days.
    #[must_use]
    pub fn keeping_history(mut self, days: i64) -> Self {
        self.policy.history_days = Some(days);
        self
    }

    /// Who calls, and when.
    #[must_use]
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Permission to use this right.
    #[must_use]
    pub fn grant(&self, right: Right) -> Grant {
        self.policy.check(&self.ctx, right).unwrap()
    }
}

/// The id with this text.
#[must_use]
pub fn id(text: &str) -> Id {
    text.parse().unwrap()
}

/// The ids with these texts.
#[must_use]
pub fn ids(texts: &[&str]) -> Vec<Id> {
    texts.iter().map(|text| id(text)).collect()
}

/// An idempotency key whose digest stands for this intent.
#[must_use]
pub fn key(name: &str, intent: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        name: name.to_owned(),
        digest: intent.to_owned(),
    })
}

/// A long-term note of the default tenant, written at the first moment.
#[must_use]
pub fn note(name: &str) -> Record {
    Record::note(id(name), &ctx(at(0)), format!("content of {name}"))
}

/// A fact of the default tenant, which no cap counts.
#[must_use]
pub fn fact(name: &str) -> Record {
    Record::new(id(name), &ctx(at(0)), Kind::Fact, format!("fact {name}"))
}

/// A record with every field filled in.
#[must_use]
pub fn full(name: &str) -> Record {
    Record {
        owner: Owner {
            user: Some("ann".into()),
            agent: Some("planner".into()),
            session: Some("s1".into()),
            flow: Some("buyer".into()),
            node: Some("plan".into()),
        },
        audience: Some(Audience::User("ann".into())),
        namespace: Namespace::ShortTerm,
        summary: Some("tea".into()),
        body: Some(json!({"subject": "Ann", "list": [1, -2.5, null, true, {"deep": {}}]})),
        tags: vec!["drinks".into(), "sở thích".into(), "Drinks".into()],
        source: Some("file:notes.md#3".into()),
        origin: Origin::Derived,
        importance: 0.75,
        created: at(-5),
        updated: at(-3),
        expires: Some(at(0).plus_days(14)),
        valid_from: Some(at(0).plus_days(-1)),
        valid_to: Some(at(0).plus_days(1)),
        derived_from: ids(&["m2", "m1"]),
        superseded_by: Some(id("n2")),
        metadata: json!({"lang": "vi", "n": 3}).as_object().unwrap().clone(),
        ..fact(name)
    }
}

/// Changes to a record that read as a sentence.
pub trait Remade: Sized {
    /// The same under another tenant.
    #[must_use]
    fn on(self, tenant: &str) -> Self;
    /// The same with other content.
    #[must_use]
    fn saying(self, content: &str) -> Self;
    /// The same, to be gone after this moment.
    #[must_use]
    fn until(self, expires: Time) -> Self;
    /// The same, made from these.
    #[must_use]
    fn made_from(self, sources: &[&str]) -> Self;
    /// The same with this importance.
    #[must_use]
    fn worth(self, importance: f64) -> Self;
    /// The same, created at this moment.
    #[must_use]
    fn created(self, at: Time) -> Self;
    /// The same in the short-term namespace.
    #[must_use]
    fn short_term(self) -> Self;
}

impl Remade for Record {
    fn on(mut self, tenant: &str) -> Self {
        self.tenant = tenant.parse().unwrap();
        self
    }

    fn saying(mut self, content: &str) -> Self {
        self.content = content.to_owned();
        self
    }

    fn until(mut self, expires: Time) -> Self {
        self.expires = Some(expires);
        self
    }

    fn made_from(mut self, sources: &[&str]) -> Self {
        self.derived_from = ids(sources);
        self
    }

    fn worth(mut self, importance: f64) -> Self {
        self.importance = importance;
        self
    }

    fn created(mut self, at: Time) -> Self {
        self.created = at;
        self
    }

    fn short_term(mut self) -> Self {
        self.namespace = Namespace::ShortTerm;
        self
    }
}
