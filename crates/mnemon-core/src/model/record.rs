//! The record: the one thing a memory is made of.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::model::owner::check_line;
use crate::model::{
    Audience, Ctx, Id, Kind, Namespace, Origin, Owner, Scope, Tenant, Time, limits,
};

/// The version of the canonical JSON form. It is written into every record; a record of a newer
/// version is refused with a clear message instead of being half understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format;

impl Format {
    /// The version this program writes, and the newest it reads.
    pub const VERSION: u64 = 1;
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(Self::VERSION)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let version = u64::deserialize(deserializer)?;
        if version == Self::VERSION {
            return Ok(Self);
        }
        Err(serde::de::Error::custom(format!(
            "record format {version} is not known to this version of mnemon (it reads {})",
            Self::VERSION
        )))
    }
}

/// A message, a note, a summary, a skill, a step, a fact: whatever is remembered.
///
/// Its serde form is the canonical JSON of `docs/formats.md`: fields in this order, empty ones
/// left out, unknown ones refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub v: Format,
    pub id: Id,
    #[serde(default)]
    pub tenant: Tenant,
    #[serde(default, skip_serializing_if = "Owner::is_empty")]
    pub owner: Owner,
    /// Who may see it, if not whom its owner implies; see [`Record::audience`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Audience>,
    pub scope: Scope,
    pub kind: Kind,
    pub namespace: Namespace,
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The structured form, where there is one: a message's blocks, a state, a skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub origin: Origin,
    /// From 0 (nothing was said about it) to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub importance: f64,
    pub created: Time,
    pub updated: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// When what it says began to be true, if that is not when it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
    /// When what it says ceased to be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Time>,
    /// The store's count of changes when this version was written. Assigned by the store.
    #[serde(default)]
    pub seq: u64,
    /// 1 for the first version under this id. Assigned by the store.
    #[serde(default)]
    pub version: u64,
    /// The records this one was made from. Forgetting one of them forgets this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived_from: Vec<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<Id>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

fn is_zero(importance: &f64) -> bool {
    *importance == 0.0
}

impl Record {
    /// A record of this kind in its usual scope, long-term, said by the user, written now.
    pub fn new(id: Id, ctx: &Ctx, kind: Kind, content: impl Into<String>) -> Self {
        Self {
            v: Format,
            id,
            tenant: ctx.tenant.clone(),
            owner: Owner::default(),
            audience: None,
            scope: kind.usual_scope(),
            kind,
            namespace: Namespace::LongTerm,
            content: content.into(),
            summary: None,
            body: None,
            tags: Vec::new(),
            source: None,
            origin: Origin::User,
            importance: 0.0,
            created: ctx.now,
            updated: ctx.now,
            expires: None,
            valid_from: None,
            valid_to: None,
            seq: 0,
            version: 0,
            derived_from: Vec::new(),
            superseded_by: None,
            metadata: Map::new(),
        }
    }

    /// A note written now.
    pub fn note(id: Id, ctx: &Ctx, content: impl Into<String>) -> Self {
        Self::new(id, ctx, Kind::Note, content)
    }

    /// Where it is from, for people: the file and the headings above it, or the conversation.
    pub fn location(&self) -> Option<String> {
        if self.scope == Scope::Dialog
            && let Some(session) = &self.owner.session
        {
            return Some(match session.rsplit_once('/') {
                Some((project, session)) => format!("conversation {session} of project {project}"),
                None => format!("conversation {session}"),
            });
        }
        let of_file = |key: &str| match self.origin {
            Origin::File => self.metadata.get(key).and_then(Value::as_str),
            _ => None,
        };
        let headings = self.body.as_ref().filter(|_| self.kind == Kind::Chunk);
        let headings = headings.and_then(|body| body.get("headings")?.as_array());
        let headings = headings.into_iter().flatten().filter_map(Value::as_str);
        let place = of_file("file").or(self.source.as_deref())?;
        let parts: Vec<&str> = [place]
            .into_iter()
            .chain(of_file("heading"))
            .chain(headings)
            .collect();
        Some(parts.join(" › "))
    }

    /// The tags that people gave it, without those by which entries of files are kept apart.
    pub fn own_tags(&self) -> impl Iterator<Item = &str> {
        let is_mark = |tag: &str| {
            let digest = ["file:", "agent-files:"]
                .iter()
                .find_map(|mark| tag.strip_prefix(mark));
            digest.is_some_and(|digest| {
                digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        };
        let tags = self.tags.iter().map(String::as_str);
        tags.filter(move |tag| self.origin != Origin::File || !is_mark(tag))
    }

    /// Whether it is the index entry of an agent's or a team's file, which is the source of truth.
    pub fn is_of_agent_file(&self) -> bool {
        self.own_tags().count() < self.tags.len()
    }

    /// Whether it is still to be seen at `now`. A record lives through the moment it expires at.
    pub fn is_live(&self, now: Time) -> bool {
        self.expires.is_none_or(|expires| expires >= now)
    }

    /// Who may see it: the user it belongs to, or everyone if it belongs to none, unless its
    /// `audience` says otherwise.
    pub fn audience(&self) -> Audience {
        let implied = || Audience::of_user(self.owner.user.as_deref());
        self.audience.clone().unwrap_or_else(implied)
    }

    /// Content, summary, body and metadata together, in bytes.
    pub fn weight(&self) -> usize {
        let text = self.content.len() + self.summary.as_ref().map_or(0, String::len);
        let body = self.body.as_ref().map_or(0, json_bytes);
        text + body + map_bytes(&self.metadata)
    }

    /// Every rule a record must keep, whoever made it. Stores call it before they write.
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_text()?;
        self.owner.check()?;
        self.audience.as_ref().map_or(Ok(()), Audience::check)?;
        self.check_tags()?;
        if let Some(source) = &self.source {
            check_line("source", source, limits::SOURCE_CHARS)?;
        }
        self.check_json()?;
        self.check_numbers()?;
        self.check_links()
    }

    fn check_text(&self) -> Result<(), Invalid> {
        if self.content.trim().is_empty() && self.body.is_none() {
            return Err(Invalid::new("content", "is empty; give the text to store"));
        }
        check_size("content", self.content.len(), limits::CONTENT_BYTES)?;
        check_nul("content", &self.content)?;
        let summary = self.summary.as_deref().unwrap_or_default();
        check_size("summary", summary.len(), limits::SUMMARY_BYTES)?;
        check_nul("summary", summary)
    }

    fn check_tags(&self) -> Result<(), Invalid> {
        if self.tags.len() > limits::TAGS {
            let (count, most) = (self.tags.len(), limits::TAGS);
            return Err(Invalid::new(
                "tags",
                format!("there are {count}, at most {most} are allowed"),
            ));
        }
        self.tags
            .iter()
            .try_for_each(|tag| check_line("tags", tag, limits::TAG_CHARS))
    }

    fn check_json(&self) -> Result<(), Invalid> {
        if let Some(body) = &self.body {
            // In JSON it would read back as no body at all.
            if body.is_null() {
                return Err(Invalid::new("body", "is null; leave it out"));
            }
            check_depth("body", body)?;
            check_size("body", json_bytes(body), limits::BODY_BYTES)?;
        }
        for (name, value) in &self.metadata {
            check_line("metadata", name, limits::NAME_CHARS)?;
            check_depth("metadata", value)?;
        }
        check_size(
            "metadata",
            map_bytes(&self.metadata),
            limits::METADATA_BYTES,
        )
    }

    fn check_numbers(&self) -> Result<(), Invalid> {
        if !(0.0..=1.0).contains(&self.importance) {
            let importance = self.importance;
            return Err(Invalid::new(
                "importance",
                format!("is {importance}, it must be between 0 and 1"),
            ));
        }
        if let (Some(from), Some(to)) = (self.valid_from, self.valid_to)
            && to < from
        {
            return Err(Invalid::new(
                "valid_to",
                format!("is {to}, before valid_from {from}"),
            ));
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), Invalid> {
        if self.derived_from.len() > limits::SOURCES {
            let (count, most) = (self.derived_from.len(), limits::SOURCES);
            return Err(Invalid::new(
                "derived_from",
                format!("names {count} sources, at most {most} are allowed"),
            ));
        }
        if self.derived_from.contains(&self.id) {
            return Err(Invalid::new(
                "derived_from",
                "names the record itself; a record cannot be its own source",
            ));
        }
        Ok(())
    }
}

fn check_size(field: &str, bytes: usize, most: usize) -> Result<(), Invalid> {
    if bytes > most {
        return Err(Invalid::new(
            field,
            format!("has {bytes} bytes, at most {most} are allowed"),
        ));
    }
    Ok(())
}

fn check_nul(field: &str, text: &str) -> Result<(), Invalid> {
    match text.bytes().position(|byte| byte == 0) {
        Some(at) => Err(Invalid::new(
            field,
            format!("holds a NUL byte at offset {at}; remove it (is this a binary file?)"),
        )),
        None => Ok(()),
    }
}

fn check_depth(field: &str, value: &Value) -> Result<(), Invalid> {
    // An explicit stack: deep input must not overflow ours while we measure it.
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > limits::JSON_DEPTH {
            let most = limits::JSON_DEPTH;
            return Err(Invalid::new(
                field,
                format!("is nested deeper than {most} levels"),
            ));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

pub fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Writing a Value into a counter cannot fail: its keys are strings and the counter accepts all.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn map_bytes(map: &Map<String, Value>) -> usize {
    map.iter()
        .map(|(name, value)| name.len() + 4 + json_bytes(value))
        .sum()
}

#[cfg(test)]
mod tests;
