//! From what a caller says to a record.

use mnemon_core::{
    Audience, Ctx, Id, IdempotencyKey, Ids, Invalid, Kind, Namespace, Origin, Owner, Record, Scope,
    Time,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something to remember, as the caller says it. What it leaves out gets the usual value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Draft {
    /// A name of the caller's choice; a fresh one otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    pub content: String,
    #[serde(skip_serializing_if = "Owner::is_empty")]
    pub owner: Owner,
    /// Who may see it, if not its user, or everyone if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Audience>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f64>,
    /// When it was said, if not now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Time>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub derived_from: Vec<Id>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Draft {
    pub fn note(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }

    /// Gives it to this audience: to a user as the owner, to an agent or a team by name.
    pub(crate) fn belongs_to(&mut self, audience: &Audience) {
        self.owner.user = audience.user().map(str::to_owned);
        self.audience = Some(audience.clone()).filter(Audience::is_closed);
    }

    /// Whether it would be accepted, before anything is written: every rule of a record.
    pub fn check(&self, ctx: &Ctx) -> Result<(), Invalid> {
        let record = self
            .clone()
            .into_record(ctx, &Ids::new(0), Retention::default());
        check_alive(&record, ctx)?;
        record.check()
    }

    /// Who will see it.
    pub(crate) fn audience(&self) -> Audience {
        let implied = || Audience::of_user(self.owner.user.as_deref());
        self.audience.clone().unwrap_or_else(implied)
    }

    pub(crate) fn into_record(mut self, ctx: &Ctx, ids: &Ids, retention: Retention) -> Record {
        let id = self.id.unwrap_or_else(|| ids.next(ctx.now));
        let kind = self.kind.unwrap_or(Kind::Note);
        let plain = Record::new(id, ctx, kind, self.content);
        let namespace = self.namespace.unwrap_or(plain.namespace);
        if let Some(Audience::Agent(agent)) = &self.audience {
            // What is private to an agent is found among what belongs to it.
            self.owner.agent.get_or_insert_with(|| agent.clone());
        }
        Record {
            owner: self.owner,
            audience: self.audience,
            scope: self.scope.unwrap_or(plain.scope),
            namespace,
            summary: self.summary,
            body: self.body,
            tags: self.tags,
            source: self.source,
            origin: self.origin.unwrap_or(plain.origin),
            importance: self.importance.unwrap_or(plain.importance),
            created: self.created.unwrap_or(ctx.now),
            expires: self
                .expires
                .or_else(|| retention.expiry(namespace, ctx.now)),
            valid_from: self.valid_from,
            valid_to: self.valid_to,
            derived_from: self.derived_from,
            metadata: self.metadata,
            ..plain
        }
    }
}

/// A record that has already expired would be acknowledged and never seen.
pub(crate) fn check_alive(record: &Record, ctx: &Ctx) -> Result<(), Invalid> {
    if record.is_live(ctx.now) {
        return Ok(());
    }
    let expired = record.expires.map(|at| at.to_string()).unwrap_or_default();
    Err(Invalid::new(
        "expires",
        format!("is {expired}, which is in the past; omit it or give a future time"),
    ))
}

/// How many days records are kept, by namespace; `None` keeps them until they are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub short_term_days: Option<i64>,
    pub long_term_days: Option<i64>,
}

impl Default for Retention {
    /// Two weeks and ten years.
    fn default() -> Self {
        Self {
            short_term_days: Some(14),
            long_term_days: Some(3650),
        }
    }
}

impl Retention {
    pub(crate) fn expiry(self, namespace: Namespace, now: Time) -> Option<Time> {
        let days = match namespace {
            Namespace::ShortTerm => self.short_term_days,
            Namespace::LongTerm => self.long_term_days,
        };
        days.map(|days| now.plus_days(days))
    }
}

/// The value as JSON; an error names the field.
pub(crate) fn to_json(field: &str, value: &impl Serialize) -> Result<Value, Invalid> {
    serde_json::to_value(value).map_err(|error| Invalid::new(field, error.to_string()))
}

/// The key with a digest of what the caller wants, ids and times that we make up left out: a retry
/// has the same digest, another wish under the same key has not.
pub(crate) fn intent(name: &str, wish: &impl Serialize) -> Result<IdempotencyKey, Invalid> {
    let wish =
        serde_json::to_vec(wish).map_err(|error| Invalid::new("request", error.to_string()))?;
    Ok(IdempotencyKey {
        name: name.to_owned(),
        digest: blake3::hash(&wish).to_hex().to_string(),
    })
}
