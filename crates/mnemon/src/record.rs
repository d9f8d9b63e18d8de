//! The nouns: what is written, what is found, and what became of a write.

use mnemon_core::{Fate, Filter, Id, Kind, Time, Viewer};
use mnemon_engine::{Document, Draft};

use crate::Metadata;

/// Something to remember. A text becomes one with the usual settings.
///
/// ```
/// use mnemon::NewRecord;
///
/// let record = NewRecord::from("The door code changes on Fridays")
///     .tag("office")
///     .importance(0.8)
///     .key("request-17");
/// # let _ = record;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct NewRecord {
    pub(crate) draft: Draft,
    pub(crate) key: Option<String>,
}

impl<T: Into<String>> From<T> for NewRecord {
    fn from(content: T) -> Self {
        Self {
            draft: Draft::note(content),
            key: None,
        }
    }
}

impl NewRecord {
    /// Says what the record holds; a note otherwise.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.draft.kind = Some(kind);
        self
    }

    /// Adds a tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.draft.tags.push(tag.into());
        self
    }

    /// Sets the importance, from 0 to 1.
    pub fn importance(mut self, importance: f64) -> Self {
        self.draft.importance = Some(importance);
        self
    }

    /// Names where it came from: a URL, a path, a name.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.draft.source = Some(source.into());
        self
    }

    /// Deletes the record at this time; without it the record is kept for ten years.
    pub fn expires(mut self, at: Time) -> Self {
        self.draft.expires = Some(at);
        self
    }

    /// Attaches a JSON object.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.draft.metadata = metadata;
        self
    }

    /// Chooses the id instead of getting a fresh one.
    pub fn id(mut self, id: Id) -> Self {
        self.draft.id = Some(id);
        self
    }

    /// Makes a retry harmless: under the same key the same record is stored once.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// A text to take in as a document: it is cut into chunks, and a search finds the chunks. Adding a
/// document of the same name again replaces it.
#[derive(Debug, Clone)]
#[must_use]
pub struct NewDocument(pub(crate) Document);

impl NewDocument {
    /// A document of this name: a path, an address or a title. The ending of the name (`.md`,
    /// `.rs`, …) decides how it is cut.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self(Document {
            uri: name.into(),
            text: text.into(),
            ..Document::default()
        })
    }

    /// Adds a tag to the document and its chunks.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.0.tags.push(tag.into());
        self
    }
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    pub id: Id,
    pub content: String,
    pub kind: Kind,
    /// The user it belongs to; shared by all users of the tenant if `None`.
    pub user: Option<String>,
    pub session: Option<String>,
    pub tags: Vec<String>,
    pub source: Option<String>,
    pub importance: f64,
    pub created: Time,
    pub expires: Option<Time>,
    /// 1 for the first version under this id.
    pub version: u64,
    pub metadata: Metadata,
}

impl From<mnemon_core::Record> for Record {
    fn from(record: mnemon_core::Record) -> Self {
        Self {
            id: record.id,
            content: record.content,
            kind: record.kind,
            user: record.owner.user,
            session: record.owner.session,
            tags: record.tags,
            source: record.source,
            importance: record.importance,
            created: record.created,
            expires: record.expires,
            version: record.version,
            metadata: record.metadata,
        }
    }
}

/// A record that a search found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    pub score: f64,
    pub record: Record,
}

/// A search. A text becomes one for the ten best hits.
///
/// ```
/// use mnemon::{Kind, Search};
///
/// let search = Search::from("deployment").limit(3).kind(Kind::Decision);
/// # let _ = search;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Search {
    text: String,
    limit: usize,
    kinds: Vec<Kind>,
    tags: Vec<String>,
    since: Option<Time>,
}

impl<T: Into<String>> From<T> for Search {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            limit: 10,
            kinds: Vec::new(),
            tags: Vec::new(),
            since: None,
        }
    }
}

impl Search {
    /// Returns at most this many hits, up to 1,000.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Finds only records of this kind; repeat it for several kinds.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Finds only records with this tag; repeat it for any of several tags.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Finds only records that were created at this time or later.
    pub fn since(mut self, since: Time) -> Self {
        self.since = Some(since);
        self
    }

    pub(crate) fn seen_by(self, viewer: Viewer) -> mnemon_engine::Query {
        let filter = Filter {
            kinds: self.kinds,
            tags: self.tags,
            since: self.since,
            ..Filter::seen_by(viewer)
        };
        mnemon_engine::Query {
            limit: self.limit,
            ..mnemon_engine::Query::new(self.text, filter)
        }
    }
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The number of the commit, for [`Mnemon::undo`](crate::Mnemon::undo). `None` if nothing
    /// changed.
    pub commit: Option<u64>,
    /// The ids of the records that were written or deleted, in the order of the request. A record
    /// that was not there, or for which there was no room, is left out.
    pub ids: Vec<Id>,
    /// Records that were deleted because they were derived from a deleted one.
    pub cascaded: Vec<Id>,
    /// Records that were deleted because a limit on their number was reached.
    pub evicted: Vec<Id>,
}

impl From<mnemon_core::Receipt> for Receipt {
    fn from(receipt: mnemon_core::Receipt) -> Self {
        let done = receipt.items.into_iter();
        let done = done.filter(|item| !matches!(item.fate, Fate::Missing | Fate::Rejected { .. }));
        Self {
            commit: receipt.commit,
            ids: done.map(|item| item.id).collect(),
            cascaded: receipt.cascaded,
            evicted: receipt.evicted,
        }
    }
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The number of the commit, for [`Mnemon::undo`](crate::Mnemon::undo).
    pub commit: u64,
    pub at: Time,
    pub actor: String,
    /// `written`, `forgotten`, `evicted`, …
    pub cause: String,
    pub id: Id,
    /// The version before; `None` if there was none, or if it is no longer in the history.
    pub before: Option<Record>,
    /// The version after; `None` if the record was deleted.
    pub after: Option<Record>,
}

impl From<mnemon_core::Change> for Change {
    fn from(change: mnemon_core::Change) -> Self {
        Self {
            commit: change.commit,
            at: change.at,
            actor: change.actor,
            cause: change.cause.to_string(),
            id: change.id,
            before: change.before.map(Record::from),
            after: change.after.map(Record::from),
        }
    }
}

/// Text for a prompt, within its token budget.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Context {
    /// Markdown.
    pub text: String,
    /// An upper bound of the tokens that `text` has, whatever the model.
    pub tokens: usize,
}
