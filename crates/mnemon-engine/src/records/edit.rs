//! Changing a record, and finding the one that a part of an id means.

use mnemon_core::{Ctx, Id, Invalid, Kind, Namespace, Record, Right, Time, Viewer, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Error, Records};

/// A change of a record. Fields that are left out stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Edit {
    pub content: Option<String>,
    /// These instead of the tags that it has.
    pub tags: Option<Vec<String>>,
    /// Added to the metadata that it has; null removes a key.
    pub metadata: Map<String, Value>,
    pub importance: Option<f64>,
    /// How long it is kept from now on, unless a time is given.
    pub namespace: Option<Namespace>,
    pub expires: Option<Time>,
    /// Refused unless the record has this version.
    pub if_version: Option<u64>,
}

/// A record after it was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    pub id: Id,
    pub version: u64,
    pub commit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    pub content: String,
}

impl Records {
    /// Changes the record in one commit. Its earlier versions stay in the history, and undo brings
    /// them back.
    pub async fn edit(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        id: &Id,
        edit: Edit,
    ) -> Result<Edited, Error> {
        let found = self
            .get_seen_by(ctx, viewer, std::slice::from_ref(id))
            .await?;
        let record = found.into_iter().flatten().next();
        let mut record = record.ok_or_else(|| Error::NoRecord(id.clone()))?;
        check_editable(&record, &edit)?;
        let unchanged = record.clone();
        record.version = edit.if_version.unwrap_or(record.version);
        self.change(ctx, &mut record, edit);
        if record == unchanged {
            let what = "changes nothing; name a new value that the record does not have";
            return Err(Invalid::new("content", what).into());
        }
        super::draft::check_alive(&record, ctx)?;
        let receipt = self.update(ctx, record).await?;
        let now = self.find(ctx, id).await?;
        let now = now.ok_or_else(|| Error::NoRecord(id.clone()))?;
        Ok(Edited {
            id: now.id,
            version: now.version,
            commit: receipt.commit,
            expires: now.expires,
            content: now.content,
        })
    }

    fn change(&self, ctx: &Ctx, record: &mut Record, edit: Edit) {
        if let Some(content) = edit.content {
            record.content = content;
            // A summary of the old content would be wrong; the content gives its own.
            record.summary = None;
        }
        if let Some(tags) = edit.tags {
            record.tags = match record.kind {
                Kind::Note => folded(&tags),
                _ => tags,
            };
        }
        for (key, value) in edit.metadata {
            match value {
                Value::Null => drop(record.metadata.remove(&key)),
                value => drop(record.metadata.insert(key, value)),
            }
        }
        record.importance = edit.importance.unwrap_or(record.importance);
        if let Some(namespace) = edit.namespace {
            record.namespace = namespace;
            record.expires = self.retention.expiry(namespace, ctx.now);
        }
        record.expires = edit.expires.or(record.expires);
    }

    /// The id that a caller means: the whole id of a record that they may see, or the beginning of a
    /// generated id, of at least [`limits::ID_PREFIX_CHARS`] characters, if no other record begins
    /// with it. An id of no record is returned as it is. Ids that callers chose are never matched by
    /// a beginning: `task-1` must not mean `task-10` once `task-1` is deleted.
    pub async fn resolve(&self, ctx: &Ctx, viewer: &Viewer, id: Id) -> Result<Id, Error> {
        let whole = self
            .get_seen_by(ctx, viewer, std::slice::from_ref(&id))
            .await?;
        let text = id.as_str();
        let is_prefix = text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        if whole.iter().flatten().next().is_some()
            || text.len() < limits::ID_PREFIX_CHARS
            || !is_prefix
            || is_generated(&id)
        {
            return Ok(id);
        }
        let grant = self.policy.check(ctx, Right::Read)?;
        let most = limits::ID_CANDIDATES;
        let ids = self
            .store
            .ids_with_prefix(&grant, id.as_str(), most)
            .await?;
        let seen = self.get_seen_by(ctx, viewer, &ids).await?;
        let seen = seen.into_iter().flatten().map(|record| record.id);
        let mut seen: Vec<Id> = seen.filter(is_generated).collect();
        match (seen.len(), ids.len() < most) {
            (1, true) => Ok(seen.remove(0)),
            // Records that the viewer may not see are not hinted at either.
            (0, _) | (1, false) => Ok(id),
            _ => Err(Error::Ambiguous {
                prefix: id,
                candidates: seen,
            }),
        }
    }
}

/// Whether the program made this id: a UUID, or the sixteen digits of a note.
fn is_generated(id: &Id) -> bool {
    let text = id.as_str();
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    match text.len() {
        16 => text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        36 => text
            .bytes()
            .enumerate()
            .all(|(at, byte)| match is_dash(at) {
                true => byte == b'-',
                false => byte.is_ascii_hexdigit(),
            }),
        _ => false,
    }
}

/// Why an entry of an agent's file is not forgotten.
pub(crate) const FILE_ENTRY: &str =
    "is an entry of an agent's file; remove it with `mnemon agent remove` or in the file";

/// Records that are made from something else are changed there.
fn check_editable(record: &Record, edit: &Edit) -> Result<(), Invalid> {
    let is_content = edit.content.is_some();
    let is_lifetime = edit.expires.is_some() || edit.namespace.is_some();
    let what = match record.kind {
        _ if record.is_of_agent_file() => {
            "is an entry of an agent's file; change it with `mnemon agent edit` or in the file"
        }
        Kind::Document | Kind::Chunk => {
            "is of a document; change the file and run `mnemon ingest` again"
        }
        Kind::Message | Kind::Summary if is_content || is_lifetime => {
            "is of a conversation, which is kept as it was"
        }
        Kind::Skill | Kind::Rule if is_content => "is a skill or a rule; use `mnemon skill edit`",
        Kind::Session => "holds a state of a session and cannot be edited",
        _ if is_content && record.body.is_some() => {
            "has its content from its body; write the body again with `mnemon write`"
        }
        _ => return Ok(()),
    };
    Err(Invalid::new("id", format!("{} {what}", record.id)))
}

/// In lower case, each once.
pub(crate) fn folded(tags: &[String]) -> Vec<String> {
    let mut folded: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags.iter().map(|tag| tag.to_lowercase()) {
        if !folded.contains(&tag) {
            folded.push(tag);
        }
    }
    folded
}
