//! Which records, and in which order.

mod expr;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use expr::Expr;

use crate::error::Invalid;
use crate::model::{Id, Kind, Namespace, Owner, Record, Scope, Time, Viewer};

/// Which records are meant. Every condition that is given must hold; within a list one suffices.
///
/// [`Filter::matches`] is the meaning. A store may push a part of it into its indexes, but what it
/// returns has passed this function, so that all stores agree.
///
/// It has no default: whoever makes one says who looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    #[serde(default)]
    pub owner: Owner,
    /// Only records that this viewer may see.
    pub viewer: Viewer,
    #[serde(default)]
    pub scopes: Vec<Scope>,
    #[serde(default)]
    pub kinds: Vec<Kind>,
    #[serde(default)]
    pub namespaces: Vec<Namespace>,
    /// At least one of these, whatever its case.
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub source: Option<String>,
    /// Created at or after.
    #[serde(default)]
    pub since: Option<Time>,
    /// Created before.
    #[serde(default)]
    pub until: Option<Time>,
    /// What their metadata must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Expr>,
    /// Made from at least one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived_from: Vec<Id>,
}

impl Filter {
    /// Every record that this viewer may see.
    pub fn seen_by(viewer: Viewer) -> Self {
        Self {
            viewer,
            owner: Owner::default(),
            scopes: Vec::new(),
            kinds: Vec::new(),
            namespaces: Vec::new(),
            tags: Vec::new(),
            source: None,
            since: None,
            until: None,
            metadata: None,
            derived_from: Vec::new(),
        }
    }

    /// Every record of the tenant, whoever may see it. For the tenant's own upkeep and
    /// administration, and for records that are told apart by their ids or owners.
    pub fn all_of_tenant() -> Self {
        Self::seen_by(Viewer::Tenant)
    }

    /// Whether the record is meant. Expiry and tenant are not the filter's business: a store
    /// never shows an expired or a foreign record, whatever is asked.
    pub fn matches(&self, record: &Record) -> bool {
        let among = |list_is_empty: bool, found: bool| list_is_empty || found;
        record.owner.includes(&self.owner)
            && (self.viewer == Viewer::Tenant || self.viewer.sees(&record.audience()))
            && among(self.scopes.is_empty(), self.scopes.contains(&record.scope))
            && among(self.kinds.is_empty(), self.kinds.contains(&record.kind))
            && among(
                self.namespaces.is_empty(),
                self.namespaces.contains(&record.namespace),
            )
            && self.matches_tags(record)
            && (self.source.is_none() || self.source == record.source)
            && self.since.is_none_or(|since| record.created >= since)
            && self.until.is_none_or(|until| record.created < until)
            && self.matches_metadata(record)
            && self.matches_sources(record)
    }

    fn matches_sources(&self, record: &Record) -> bool {
        let mut sources = record.derived_from.iter();
        self.derived_from.is_empty() || sources.any(|source| self.derived_from.contains(source))
    }

    fn matches_metadata(&self, record: &Record) -> bool {
        let expr = self.metadata.as_ref();
        expr.is_none_or(|expr| expr.matches(&record.metadata))
    }

    fn matches_tags(&self, record: &Record) -> bool {
        if self.tags.is_empty() {
            return true;
        }
        let folded: Vec<String> = record.tags.iter().map(|tag| tag.to_lowercase()).collect();
        self.tags
            .iter()
            .any(|tag| folded.contains(&tag.to_lowercase()))
    }

    /// Whether it asks for something that only the whole record tells.
    pub fn needs_records(&self) -> bool {
        let owner = self.owner.flow.is_some() || self.owner.node.is_some();
        let links = !self.derived_from.is_empty();
        owner || links || self.source.is_some() || self.metadata.is_some()
    }

    /// The part that says whose records may be seen: the viewer and the user. Statistics are taken
    /// from these records, whatever else is asked for.
    pub fn audience_only(&self) -> Self {
        Self {
            owner: Owner {
                user: self.owner.user.clone(),
                ..Owner::default()
            },
            ..Self::seen_by(self.viewer.clone())
        }
    }

    /// Whether nothing is asked for, so that every record is meant.
    pub fn is_empty(&self) -> bool {
        *self == Self::all_of_tenant()
    }
}

/// In which order records come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Youngest first, by creation.
    #[default]
    Newest,
    /// Oldest first, by creation.
    Oldest,
    /// As the store wrote them: what follows a cursor is what changed since.
    Written,
}

/// One page of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    pub filter: Filter,
    pub order: Order,
    pub after: Option<Cursor>,
    /// At most this many, and never more than [`Limits::page`](crate::model::Limits::page).
    pub limit: usize,
}

impl Scan {
    /// The first page of what the filter means, newest first.
    pub fn new(filter: Filter, limit: usize) -> Self {
        Self {
            filter,
            order: Order::Newest,
            after: None,
            limit,
        }
    }
}

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    pub records: Vec<Record>,
    /// Where to go on; `None` when this was the last page.
    pub next: Option<Cursor>,
}

/// A place between two records in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The last record's creation in milliseconds (its `seq` in [`Order::Written`]).
    pub key: i64,
    /// The last record's `seq`.
    pub seq: u64,
}

impl Cursor {
    /// The place right after this record.
    pub fn after(record: &Record, order: Order) -> Self {
        let key = match order {
            Order::Newest | Order::Oldest => record.created.millis(),
            Order::Written => i64::try_from(record.seq).unwrap_or(i64::MAX),
        };
        Self {
            key,
            seq: record.seq,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.key, self.seq)
    }
}

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parts = text
            .split_once('.')
            .and_then(|(key, seq)| Some((key.parse().ok()?, seq.parse().ok()?)));
        match parts {
            Some((key, seq)) => Ok(Self { key, seq }),
            None => Err(Invalid::new(
                "cursor",
                format!(
                    "`{}` is not a cursor; pass the cursor of the previous page",
                    text.escape_debug()
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ctx, Tenant};

    fn record(change: impl FnOnce(&mut Record)) -> Record {
        let now = Time::from_millis(1000).unwrap();
        let ctx = Ctx::new(Tenant::default(), "test", now);
        let mut record = Record::note("n".parse().unwrap(), &ctx, "x");
        change(&mut record);
        record
    }

    #[test]
    fn every_condition_can_exclude() {
        let excluded = [
            r#"{"owner": {"user": "bob"}}"#,
            r#"{"viewer": {"person": {"user": "bob"}}}"#,
            r#"{"scopes": ["dialog", "state"]}"#,
            r#"{"kinds": ["fact"]}"#,
            r#"{"namespaces": ["short-term"]}"#,
            r#"{"tags": ["b"]}"#,
            r#"{"source": "web"}"#,
            r#"{"since": "1970-01-01T00:00:01.001Z"}"#,
            r#"{"until": "1970-01-01T00:00:01.000Z"}"#,
            r#"{"metadata": {"lang": "vi"}}"#,
            r#"{"derived_from": ["m1"]}"#,
        ];
        let record = record(|r| {
            r.tags = vec!["a".into()];
            r.owner.user = Some("ann".into());
        });
        assert!(Filter::all_of_tenant().matches(&record));
        for filter in excluded {
            let mut json: serde_json::Value = serde_json::from_str(filter).unwrap();
            let conditions = json.as_object_mut().unwrap();
            conditions.entry("viewer").or_insert("tenant".into());
            let wanted: Filter = serde_json::from_value(json).unwrap();
            assert_ne!(wanted, Filter::all_of_tenant());
            assert!(!wanted.matches(&record), "{filter}");
        }
    }

    #[test]
    fn tags_match_whatever_their_case() {
        let record = record(|r| r.tags = vec!["Đà Nẵng".into()]);
        let wanted = |tag: &str| Filter {
            tags: vec!["other".into(), tag.into()],
            ..Filter::all_of_tenant()
        };
        assert!(wanted("đà nẵng").matches(&record));
        assert!(!wanted("đà").matches(&record));
    }

    #[test]
    fn a_cursor_prints_and_reads() {
        let cursor = Cursor { key: -5, seq: 9 };
        assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        for bad in ["", "5", "a.b", "1.-1"] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }
}
