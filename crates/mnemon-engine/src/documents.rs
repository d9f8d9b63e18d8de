//! Documents: texts that are kept in chunks, so that the part that answers is found.
//!
//! A document is one record of [`Kind::Document`] (its title, where it comes from, and the list of
//! its chunks with their lines) and one record of [`Kind::Chunk`] for each chunk, derived from it.
//! A chunk is named by the document and by what it says, not by where it stands: when text is put
//! in before it, the list changes and the chunk does not, so it keeps its vector.
//!
//! A document is written whole, in one commit, or not at all. Forgetting it forgets its chunks.

mod plan;

use std::collections::{HashMap, HashSet};

use mnemon_core::chunk::Syntax;
use mnemon_core::{
    Audience, Batch, Ctx, Grant, Id, Invalid, Limits, Op, Origin, Owner, Record, Right, StoreError,
    Time, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::records::safety::TakenOut;
use crate::records::{Draft, Error, Records};
use plan::Planned;

/// Bytes after which a commit takes no further document.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;
/// How often a commit is planned anew because somebody else changed the same document.
const ATTEMPTS: usize = 4;

/// A text to be kept in chunks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Document {
    /// A name of the caller's choice; otherwise it follows from `uri` and `owner`, so that adding
    /// the same document again replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// Where it comes from: a path, an address, a name. May be left out where there is an `id`.
    #[serde(alias = "name", alias = "source")]
    pub uri: String,
    /// What it is called; otherwise what it calls itself, or the last part of its `uri`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(alias = "content")]
    pub text: String,
    /// By which rules it is cut; otherwise those that its `uri` suggests.
    #[serde(skip_serializing_if = "Option::is_none", alias = "media")]
    pub syntax: Option<Syntax>,
    #[serde(skip_serializing_if = "Owner::is_empty")]
    pub owner: Owner,
    /// Who may see it and its chunks, if not its user, or everyone if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Audience>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Each chunk carries it, too, so that filters find chunks by it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The file it was read from.
    #[serde(skip)]
    pub file: Option<FileStamp>,
    /// Its text was made from something else (HTML, PDF): the lines of its chunks mean nothing.
    #[serde(skip)]
    pub converted: bool,
}

/// What a file was like when it was read, to recognise it without reading it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileStamp {
    pub bytes: u64,
    pub modified: Time,
    /// When it was looked at.
    pub read: Time,
    /// Of its bytes as they are on disk.
    pub digest: String,
}

/// A clock that ticks in larger steps may show a file unchanged that was written twice within one.
const TICK_MS: i64 = 2000;

impl FileStamp {
    /// Whether a file of this size and time must be the same one. One that was changed just before
    /// it was read may have been changed again within the same tick of the file system's clock.
    pub fn vouches_for(&self, bytes: u64, modified: Time) -> bool {
        let settled = self.modified.plus_millis(TICK_MS) <= self.read;
        settled && self.bytes == bytes && self.modified == modified
    }
}

/// What became of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentReceipt {
    pub id: Id,
    pub uri: String,
    pub title: String,
    pub fate: DocumentFate,
    pub chunks: ChunkCounts,
    /// The commit that undo takes back; other documents may be in it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
    /// What was left out, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// What became of a document as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentFate {
    Added,
    Replaced,
    Unchanged,
}

/// What became of its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChunkCounts {
    /// Written, because they are new or what they carry has changed.
    pub added: usize,
    /// Left as they were, vectors included.
    pub kept: usize,
    pub removed: usize,
}

/// A document that is there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub id: Id,
    pub file: Option<FileStamp>,
    pub chunks: usize,
    pub title: String,
    /// Whether it would be cut and labelled the same way now, so that only its text can differ.
    pub same_frame: bool,
}

impl Records {
    /// Keeps the documents. One that is there already is replaced in one commit: chunks that say
    /// what they said before are neither written nor embedded again. All are checked before the
    /// first is written; a commit takes several small ones, and each is whole within one. Should it
    /// fail halfway, the documents before are there, and adding all of them again is harmless.
    pub async fn add_documents(
        &self,
        ctx: &Ctx,
        documents: Vec<Document>,
    ) -> Result<Vec<DocumentReceipt>, Error> {
        let ctx = &ctx.as_one_commit();
        let grant = self.policy.check(ctx, Right::Write)?;
        check_all(&documents, self.limits())?;
        let (documents, notices) = self.screened(documents)?;
        // Two names may have differed in nothing but a secret.
        check_all(&documents, self.limits())?;
        let mut receipts = Vec::with_capacity(documents.len());
        let mut rest = documents.as_slice();
        while !rest.is_empty() {
            let (group, behind) = rest.split_at(group_length(rest, self.limits()));
            receipts.extend(self.add_group(ctx, &grant, group).await?);
            rest = behind;
        }
        for (receipt, notices) in receipts.iter_mut().zip(notices) {
            receipt.notices = notices;
        }
        Ok(receipts)
    }

    /// The documents without secrets, before they are cut: a private key has many lines. What was
    /// taken out of each.
    fn screened(
        &self,
        mut documents: Vec<Document>,
    ) -> Result<(Vec<Document>, Vec<Vec<String>>), Invalid> {
        let mut notices = Vec::with_capacity(documents.len());
        for document in &mut documents {
            let mut fields = Draft {
                content: std::mem::take(&mut document.text),
                summary: document.title.take(),
                source: Some(std::mem::take(&mut document.uri)),
                tags: std::mem::take(&mut document.tags),
                metadata: std::mem::take(&mut document.metadata),
                ..Draft::default()
            };
            let mut taken = TakenOut::default();
            let safety = self.safety;
            if let Err(wrong) = safety.screen(&mut fields, &mut taken) {
                // A name that is itself the secret is not told.
                let uri = fields.source.take().unwrap_or_default();
                document.uri = safety
                    .never_refusing()
                    .clean_text("uri", &uri, &mut taken)?;
                return Err(Invalid::new(document.field(&wrong.field), wrong.what));
            }
            document.uri = fields.source.unwrap_or_default();
            document.text = fields.content;
            document.title = fields.summary;
            document.tags = fields.tags;
            document.metadata = fields.metadata;
            notices.push(taken.sentences());
        }
        Ok((documents, notices))
    }

    /// Adds documents that go into few commits; plans again when somebody was faster.
    async fn add_group(
        &self,
        ctx: &Ctx,
        grant: &Grant,
        group: &[Document],
    ) -> Result<Vec<DocumentReceipt>, Error> {
        let mut done: Vec<DocumentReceipt> = Vec::with_capacity(group.len());
        let mut attempt = 1;
        while done.len() < group.len() {
            let open = group.get(done.len()..).unwrap_or_default();
            let mut planned = self
                .plan_all(ctx, grant, open)
                .await?
                .into_iter()
                .peekable();
            while planned.peek().is_some() {
                let commit = next_commit(&mut planned, self.limits());
                match self.apply_planned(ctx, grant, commit).await {
                    Ok(receipts) => done.extend(receipts),
                    Err(Error::Store(StoreError::Conflict { .. })) if attempt < ATTEMPTS => {
                        attempt += 1;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(done)
    }

    async fn plan_all(
        &self,
        ctx: &Ctx,
        grant: &Grant,
        documents: &[Document],
    ) -> Result<Vec<Planned>, Error> {
        let there = self.documents_there(grant, documents).await?;
        let mut planned = Vec::with_capacity(documents.len());
        for (document, there) in documents.iter().zip(there) {
            if let Some(there) = &there
                && let Some(unchanged) = plan::unchanged(document, there)
            {
                planned.push(unchanged);
                continue;
            }
            let draft = plan::DividedDocument::of(ctx, document, there, self)?;
            let kept = self.get_all(ctx, &draft.may_be_kept()).await?;
            let kept = kept.into_iter().flatten();
            let kept: HashMap<Id, Record> = kept.map(|r| (r.id.clone(), r)).collect();
            planned.push(draft.settle(&kept, self.limits())?);
        }
        Ok(planned)
    }

    async fn apply_planned(
        &self,
        ctx: &Ctx,
        grant: &Grant,
        planned: Vec<Planned>,
    ) -> Result<Vec<DocumentReceipt>, Error> {
        let mut ops: Vec<Op> = Vec::new();
        let mut receipts = Vec::with_capacity(planned.len());
        for document in planned {
            ops.extend(document.ops);
            receipts.push(document.receipt);
        }
        if ops.is_empty() {
            return Ok(receipts);
        }
        let deleted = ops.iter().filter_map(|op| match op {
            Op::Delete { id, .. } => Some(id.clone()),
            _ => None,
        });
        let deleted: Vec<Id> = deleted.collect();
        if !deleted.is_empty() {
            self.part_from(ctx, &deleted).await?;
        }
        let receipt = self.apply(ctx, grant, Batch::from(ops)).await?;
        for document in &mut receipts {
            if document.fate != DocumentFate::Unchanged {
                document.commit = receipt.commit;
            }
        }
        Ok(receipts)
    }

    /// The records of the documents that are there already.
    async fn documents_there(
        &self,
        grant: &Grant,
        documents: &[Document],
    ) -> Result<Vec<Option<Record>>, Error> {
        let ids: Vec<Id> = documents.iter().map(Document::id).collect();
        let mut there = Vec::with_capacity(ids.len());
        for ids in ids.chunks(self.limits().page) {
            there.extend(self.store.get(grant, ids).await?);
        }
        Ok(there)
    }

    /// What is known of these documents. Their texts are not looked at and may be left out.
    pub async fn known_documents(
        &self,
        ctx: &Ctx,
        documents: &[Document],
    ) -> Result<Vec<Option<Known>>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        let there = self.documents_there(&grant, documents).await?;
        let known = documents.iter().zip(there);
        Ok(known
            .map(|(document, record)| plan::known(document, &record?))
            .collect())
    }
}

impl Document {
    /// Its id: the given one, or one that follows from where it comes from and whose it is.
    pub fn id(&self) -> Id {
        self.id.clone().unwrap_or_else(|| plan::document_id(self))
    }

    fn uri(&self) -> &str {
        match (&self.id, self.uri.is_empty()) {
            (Some(id), true) => id.as_str(),
            _ => &self.uri,
        }
    }

    /// Whether it would be accepted, but for what only cutting it tells.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Invalid::new(self.field("text"), what.to_owned());
        if self.uri().trim().is_empty() {
            let what = "is empty; say where the document comes from, or give it an id";
            return Err(Invalid::new("document: uri", what).into());
        }
        if self.text.len() > limits::DOCUMENT_BYTES {
            return Err(Error::DocumentTooLarge {
                uri: self.uri().to_owned(),
                what: "bytes of text",
                count: self.text.len(),
                most: limits::DOCUMENT_BYTES,
            });
        }
        if self.text.trim().is_empty() {
            return Err(wrong("is empty; give the text to store").into());
        }
        if self.text.contains('\0') {
            return Err(wrong("holds a NUL byte; is this a binary file?").into());
        }
        Ok(())
    }

    /// The name of a field, with the document that it is of.
    fn field(&self, field: &str) -> String {
        format!("document `{}`: {field}", self.uri().escape_debug())
    }
}

fn check_all(documents: &[Document], limits: &Limits) -> Result<(), Error> {
    if documents.len() > limits.documents {
        return Err(StoreError::TooLarge {
            what: "documents in one call",
            count: documents.len(),
            most: limits.documents,
        }
        .into());
    }
    let mut seen = HashSet::new();
    for document in documents {
        document.check()?;
        if !seen.insert(document.id()) {
            let what = "is given twice in one call; remove one";
            return Err(Invalid::new(document.field("id"), what).into());
        }
    }
    Ok(())
}

/// How many of the documents are planned together: their texts are held in memory twice.
fn group_length(documents: &[Document], limits: &Limits) -> usize {
    let mut bytes = 0;
    let fitting = documents.iter().take_while(|document| {
        bytes += document.text.len();
        bytes <= COMMIT_BYTES
    });
    fitting.count().clamp(1, limits.page)
}

/// As many documents as go into one commit; at least one.
fn next_commit(
    planned: &mut std::iter::Peekable<std::vec::IntoIter<Planned>>,
    limits: &Limits,
) -> Vec<Planned> {
    let mut commit: Vec<Planned> = planned.next().into_iter().collect();
    let mut ops: usize = commit.iter().map(|first| first.ops.len()).sum();
    let mut bytes: usize = commit.iter().map(|first| first.bytes).sum();
    while let Some(next) = planned.next_if(|next| {
        ops + next.ops.len() <= limits.commit_ops && bytes + next.bytes <= COMMIT_BYTES
    }) {
        ops += next.ops.len();
        bytes += next.bytes;
        commit.push(next);
    }
    commit
}
