//! Writing notes.

use mnemon_core::files::FilesError;
use mnemon_core::{
    Ctx, Expect, Id, IdempotencyKey, Invalid, Kind, Namespace, Origin, Owner, Record, Scope,
    StoreError, Time, limits, note,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::echo::{NearDuplicate, Resemblance};
use super::view::summary_of;
use super::{Notes, echo, is_note};
use crate::records::edit::folded;
use crate::records::safety::TakenOut;
use crate::records::{Draft, Error, Records, Safety};

/// Something to note, as the caller says it: a content, or a file that holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewNote {
    pub content: Option<String>,
    /// A file below the root, instead of a content.
    #[serde(alias = "contentPath")]
    pub content_path: Option<String>,
    /// Short-term when nobody says.
    #[serde(alias = "type")]
    pub namespace: Option<Namespace>,
    /// Up to [`limits::NOTE_TAGS`]; kept in lower case.
    pub tags: Vec<String>,
    pub source: Option<String>,
    /// From 0 (least) to 1 (most); 2 to 10 are read as tenths, and a notice says so.
    pub importance: Option<f64>,
    pub metadata: Map<String, Value>,
    /// When it is forgotten by itself, if not after the days of its namespace.
    /// A retry counts it from another moment, so a key does not cover it.
    #[serde(skip_serializing)]
    pub expires: Option<Time>,
    pub owner: Owner,
    /// Whose words these are; the user's, or a file's, when nobody says.
    pub origin: Option<Origin>,
}

impl NewNote {
    /// A short-term note with this content.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: Some(content.into()),
            ..Self::default()
        }
    }
}

/// What became of a new note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Added {
    pub id: Id,
    pub namespace: Namespace,
    /// Of what may be stored, in UTF-16 units: without secrets and echoes, but before it is cut.
    pub content_length: usize,
    pub summary: String,
    /// What was done, in a sentence.
    pub message: String,
    /// Whether the same was known already, so that nothing new was stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
    /// Whether it was not kept, as the namespace is full of more important notes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_stored: bool,
    /// Whether the content was too long and was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// When it is forgotten by itself; absent for a note that is kept until somebody forgets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Another note that says nearly the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_duplicate: Option<NearDuplicate>,
    /// How many notes went because the namespace was full.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub evicted: usize,
}

fn is_none_of_them(count: &usize) -> bool {
    *count == 0
}

/// What is told about a new note besides where it went.
struct AddedDetails {
    /// The length of what may be stored,
    length: usize,
    /// and of the part that is stored.
    kept: usize,
    /// The file that it was read from.
    path: Option<String>,
    taken: TakenOut,
}

impl Notes {
    /// Keeps a note. The same content again is not stored again: the answer names the note that
    /// says it already.
    pub async fn add(&self, ctx: &Ctx, new: NewNote, key: Option<&str>) -> Result<Added, Error> {
        let key = key
            .map(|key| crate::records::draft::intent(key, &new))
            .transpose()?;
        let (mut draft, path) = self.checked(ctx, new).await?;
        let mut taken = TakenOut::default();
        Safety::unecho(&mut draft, &mut taken);
        self.records.safety.screen(&mut draft, &mut taken)?;
        draft.tags = folded(&draft.tags);
        let length = note::length(&draft.content);
        let told = AddedDetails {
            length,
            kept: length,
            path,
            taken,
        };
        if draft.content.trim().is_empty() {
            return self.only_recalled(ctx, &draft, told).await;
        }
        let namespace = draft.namespace.unwrap_or(Namespace::ShortTerm);
        let (summary, truncated) = self.shape(namespace, &mut draft);
        let most = self.config.of(namespace).max_content_chars;
        let kept = if truncated { most } else { length };
        let told = AddedDetails { kept, ..told };
        let records = self.capped(ctx, namespace).await?;
        let (owner, content) = (draft.owner.clone(), draft.content.clone());
        let written = self.write(&records, ctx, draft, key).await?;
        if let (Some(copies), Written::New { id, kept: true, .. }) = (&self.copies, &written) {
            copies.hand_over(ctx, id, &owner, &content).await?;
        }
        let added = told.added(ctx, &written, namespace, summary);
        if truncated {
            let what = format!("Only the first {most} chars were kept.");
            ctx.notices.add(what);
        }
        Ok(Added { truncated, ..added })
    }

    /// Cuts the content to what is kept, and gives the draft its summary; whether it was cut.
    fn shape(&self, namespace: Namespace, draft: &mut Draft) -> (String, bool) {
        let limits = self.config.of(namespace);
        let summary = note::summary(&draft.content, limits.max_summary_chars).into_owned();
        let kept = note::truncate(&draft.content, limits.max_content_chars).into_owned();
        let truncated = kept != draft.content;
        let usual = note::summary(&kept, note::SUMMARY_CHARS);
        // A summary that the content gives by itself need not be kept.
        draft.summary = (summary != usual).then(|| summary.clone());
        draft.content = kept;
        (summary, truncated)
    }

    /// Nothing in it is new: the answer names what it came from.
    async fn only_recalled(
        &self,
        ctx: &Ctx,
        draft: &Draft,
        told: AddedDetails,
    ) -> Result<Added, Error> {
        match self.first_of(ctx, draft, &told.taken.ids).await? {
            Some(known) => {
                let (namespace, summary) = (known.namespace, summary_of(&known));
                let written = Written::Known {
                    record: Box::new(known),
                    renewed: false,
                };
                let told = AddedDetails {
                    taken: TakenOut::default(),
                    ..told
                };
                Ok(told.added(ctx, &written, namespace, summary))
            }
            None => {
                let what = "contains only text recalled from memory; nothing new to store";
                Err(Invalid::new("content", what).into())
            }
        }
    }

    /// Everything that can be refused before anything is written.
    async fn checked(&self, ctx: &Ctx, new: NewNote) -> Result<(Draft, Option<String>), Error> {
        check_tags(&new.tags)?;
        check_source(new.source.as_deref())?;
        check_metadata(&new.metadata)?;
        let importance = new.importance.map(|given| scaled(ctx, given)).transpose()?;
        let namespace = new.namespace.unwrap_or(Namespace::ShortTerm);
        let (content, path) = match (new.content, new.content_path) {
            (Some(content), None) => (content, None),
            (None, Some(path)) => (self.read(&path).await?, Some(path)),
            (Some(_), Some(_)) => {
                let what = "there is a content_path as well; give one of the two";
                return Err(Invalid::new("content", what).into());
            }
            (None, None) => {
                let what = "is missing; give the text, or a content_path to read it from";
                return Err(Invalid::new("content", what).into());
            }
        };
        check_content(&content)?;
        let from_file = path.as_ref().map(|path| file_source(path));
        let draft = Draft {
            content,
            owner: new.owner,
            scope: Some(Scope::Semantic),
            kind: Some(Kind::Note),
            namespace: Some(namespace),
            tags: new.tags,
            source: new.source.or_else(|| from_file.clone()),
            origin: new.origin.or(from_file.map(|_| Origin::File)),
            importance,
            expires: new.expires,
            metadata: new.metadata,
            ..Draft::default()
        };
        Ok((draft, path))
    }

    /// The text of a file below the root.
    async fn read(&self, path: &str) -> Result<String, Error> {
        let Some(files) = &self.files else {
            let what = "files are not read here; send the text as content";
            return Err(Invalid::new("content_path", what).into());
        };
        let below = files.below(path);
        if let (true, Some(root)) = (below.starts_with('/'), files.roots.first()) {
            let path = path.escape_debug();
            let what = format!("`{path}` is not a path below the root, {root}");
            return Err(Invalid::new("content_path", what).into());
        }
        let Some(file) = files.files.read(below).await? else {
            let shown = path.escape_debug();
            if !files.files.list(below).await?.is_empty() {
                let what = format!("`{shown}` is a folder; name a file in it");
                return Err(Invalid::new("content_path", what).into());
            }
            let root = files.roots.first().map(|root| format!(" below {root}"));
            let what = format!("there is no file `{shown}`{}", root.unwrap_or_default());
            return Err(Error::NotThere(what));
        };
        let bytes = file.bytes.len();
        if bytes > limits::NOTE_FILE_BYTES {
            return Err(Error::Files(FilesError::TooLarge {
                path: path.to_owned(),
                bytes: bytes as u64,
                most: limits::NOTE_FILE_BYTES as u64,
            }));
        }
        String::from_utf8(file.bytes).map_err(|error| {
            let (path, at) = (path.escape_debug(), error.utf8_error().valid_up_to());
            let what =
                format!("`{path}` is not text: byte {at} is not UTF-8; save it as UTF-8 first");
            Invalid::new("content_path", what).into()
        })
    }
}

/// What a write came to.
enum Written {
    /// What went for it; it may itself be the weakest of a full namespace.
    New {
        id: Id,
        evicted: usize,
        kept: bool,
        expires: Option<Time>,
        near: Option<NearDuplicate>,
    },
    /// It is known; whether something about it was brought up to date.
    Known { record: Box<Record>, renewed: bool },
}

impl Notes {
    /// Writes the note under the id that its content gives, unless it is known.
    async fn write(
        &self,
        records: &Records,
        ctx: &Ctx,
        draft: Draft,
        key: Option<IdempotencyKey>,
    ) -> Result<Written, Error> {
        let mut taken = 0;
        for _ in 0..limits::CHANGE_TRIES {
            let id = note_id(&draft, taken)?;
            let Resemblance { same, near } = match records.find(ctx, &id).await? {
                Some(record) if is_note(&record) && record.content == draft.content => {
                    Resemblance {
                        same: Some(record),
                        near: None,
                    }
                }
                // Somebody else's record under this id: the next one is ours.
                Some(_) => {
                    taken += 1;
                    continue;
                }
                None => self.resembling(ctx, &draft).await?,
            };
            if let Some(record) = same {
                let (record, renewed) = echo::renew(records, ctx, record, &draft).await?;
                let record = Box::new(record);
                return Ok(Written::Known { record, renewed });
            }
            let named = Draft {
                id: Some(id.clone()),
                ..draft.clone()
            };
            let namespace = named.namespace.unwrap_or(Namespace::LongTerm);
            let expires = named.expires;
            let expires = expires.or_else(|| records.retention.expiry(namespace, ctx.now));
            let put = vec![(named, Expect::Absent)];
            match records.put_screened(ctx, put, key.clone()).await {
                Ok(receipt) => {
                    let kept = !receipt.evicted.contains(&id);
                    let evicted = receipt.evicted.len() - usize::from(!kept);
                    return Ok(Written::New {
                        id,
                        evicted,
                        kept,
                        expires,
                        near,
                    });
                }
                // Another wrote it a moment before; look again.
                Err(Error::Store(StoreError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        let path = "the note".to_owned();
        Err(Error::Crowded { path })
    }
}

/// Sixteen hexadecimal digits that the same content of the same owner gives in every process, so
/// that two who note the same at the same moment meet in one note.
fn note_id(draft: &Draft, tries: usize) -> Result<Id, Invalid> {
    let parts = draft.owner.parts().map(|(_, part)| part);
    let tries = tries.to_string();
    let mut names: Vec<Option<&str>> = parts.to_vec();
    names.extend([Some(tries.as_str()), Some(draft.content.as_str())]);
    crate::records::naming::short_id("note", &names)
}

impl AddedDetails {
    fn added(&self, ctx: &Ctx, written: &Written, namespace: Namespace, summary: String) -> Added {
        ctx.notices.extend(self.taken.sentences());
        let (id, namespace, message, evicted) = match written {
            Written::Known { record, renewed } => {
                let (id, namespace) = (&record.id, record.namespace);
                let renewed = match renewed {
                    true => "its tags and metadata were updated",
                    false => "nothing new was stored",
                };
                let message = format!(
                    "Already known in {namespace}; {renewed}. Use memory_search(\"{id}\") to retrieve."
                );
                (id, namespace, message, 0)
            }
            Written::New {
                id,
                evicted,
                kept: false,
                ..
            } => {
                let message = format!(
                    "Not stored: {namespace} is full of more important notes. Give it a higher \
                     importance, or forget some of them."
                );
                (id, namespace, message, *evicted)
            }
            Written::New { id, evicted, .. } => {
                let from = self.path.as_ref();
                let from = from.map_or(String::new(), |path| format!(" from {path}"));
                let chars = if self.length == 1 { "char" } else { "chars" };
                let of = match self.kept < self.length {
                    true => format!("{} of {}", self.kept, self.length),
                    false => self.length.to_string(),
                };
                let message = format!(
                    "Stored {of} {chars}{from} in {namespace}. Use memory_search(\"{id}\") to retrieve."
                );
                (id, namespace, message, *evicted)
            }
        };
        if evicted > 0 {
            let notes = if evicted == 1 {
                "note was"
            } else {
                "notes were"
            };
            ctx.notices.add(format!(
                "{evicted} {notes} evicted, the least important first, as {namespace} is full."
            ));
        }
        Added {
            id: id.clone(),
            namespace,
            content_length: self.length,
            summary,
            message,
            known: matches!(written, Written::Known { .. }),
            not_stored: matches!(written, Written::New { kept: false, .. }),
            truncated: false,
            expires: match written {
                Written::New { expires, .. } => *expires,
                Written::Known { record, .. } => record.expires,
            },
            near_duplicate: match written {
                Written::New { near, .. } => near.clone(),
                Written::Known { .. } => None,
            },
            evicted,
        }
    }
}

fn check_content(content: &str) -> Result<(), Invalid> {
    if content.trim().is_empty() {
        return Err(Invalid::new(
            "content",
            "is empty; give the text of the note",
        ));
    }
    let (bytes, most) = (content.len(), limits::CONTENT_BYTES);
    if bytes > most {
        let what = format!("has {bytes} bytes, at most {most} are allowed");
        return Err(Invalid::new("content", what));
    }
    Ok(())
}

pub(super) fn check_tags(tags: &[String]) -> Result<(), Invalid> {
    let (count, most) = (tags.len(), limits::NOTE_TAGS);
    if count > most {
        let what = format!("there are {count}, at most {most} are allowed");
        return Err(Invalid::new("tags", what));
    }
    for tag in tags {
        let wrong = tag.is_empty() || tag.chars().any(|c| c.is_whitespace() || c.is_control());
        if wrong || tag.chars().count() > limits::NOTE_TAG_CHARS {
            let (tag, most) = (tag.escape_debug(), limits::NOTE_TAG_CHARS);
            let what =
                format!("`{tag}` is not a valid tag; use 1 to {most} characters without spaces");
            return Err(Invalid::new("tags", what));
        }
    }
    Ok(())
}

fn check_source(source: Option<&str>) -> Result<(), Invalid> {
    match source {
        Some(source) => {
            crate::records::naming::check_name("source", source, limits::NOTE_SOURCE_CHARS)
        }
        None => Ok(()),
    }
}

pub(super) fn check_metadata(metadata: &Map<String, Value>) -> Result<(), Invalid> {
    let json = serde_json::to_string(metadata).unwrap_or_default();
    let (chars, most) = (json.chars().count(), limits::NOTE_METADATA_CHARS);
    if chars > most {
        let what = format!("has {chars} characters of JSON, at most {most} are allowed");
        return Err(Invalid::new("metadata", what));
    }
    Ok(())
}

/// The document says 0 to 1, and its program takes up to 10. Between 1 and 2 either scale may be
/// meant, so that is refused.
fn scaled(ctx: &Ctx, importance: f64) -> Result<f64, Invalid> {
    match importance {
        value if (0.0..=1.0).contains(&value) => Ok(value),
        value if (2.0..=10.0).contains(&value) => {
            let scaled = value / 10.0;
            ctx.notices.add(format!(
                "The importance {value} was read as {scaled}: it goes from 0 to 1."
            ));
            Ok(scaled)
        }
        value => Err(Invalid::new(
            "importance",
            format!("is {value}, it must be between 0 and 1"),
        )),
    }
}

fn file_source(path: &str) -> String {
    let source = format!("file:{path}");
    source.chars().take(limits::NOTE_SOURCE_CHARS).collect()
}
