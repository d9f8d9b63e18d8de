//! From a document, and what is there of it, to what has to be written.

use std::collections::{HashMap, HashSet};

use mnemon_core::chunk::{self, Divided, Size, Syntax, divide};
use mnemon_core::{Ctx, Expect, Id, Invalid, Kind, Limits, Op, Origin, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ChunkCounts, Document, DocumentFate, DocumentReceipt, FileStamp, Known};
use crate::records::draft::to_json;
use crate::records::{Error, Records};

/// Between the headings of a path.
const UNDER: &str = " › ";

/// The body of a document's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    pub(super) title: String,
    /// Of the text.
    digest: String,
    /// Of everything else that its chunks depend on.
    frame: String,
    bytes: usize,
    syntax: Syntax,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<FileStamp>,
    /// Each chunk with its first and last line, in order; lines that mean nothing are 0.
    chunks: Vec<(Id, usize, usize)>,
}

impl Contents {
    /// What the record says, if it is a document's.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let body = record
            .body
            .as_ref()
            .filter(|_| record.kind == Kind::Document)?;
        Self::deserialize(body).ok()
    }
}

/// What has to be written for one document.
pub(super) struct Planned {
    pub(super) ops: Vec<Op>,
    pub(super) bytes: usize,
    pub(super) receipt: DocumentReceipt,
}

/// What to do for a document that is there as it should be: nothing.
pub(super) fn unchanged(document: &Document, there: &Record) -> Option<Planned> {
    let contents = Contents::of(there)?;
    let same = contents.frame == frame(document) && contents.digest == digest(&document.text);
    same.then(|| Planned {
        ops: Vec::new(),
        bytes: 0,
        receipt: DocumentReceipt {
            id: there.id.clone(),
            uri: document.uri().to_owned(),
            title: contents.title,
            fate: DocumentFate::Unchanged,
            chunks: ChunkCounts {
                kept: contents.chunks.len(),
                ..ChunkCounts::default()
            },
            commit: None,
            notices: Vec::new(),
        },
    })
}

pub(super) fn known(document: &Document, there: &Record) -> Option<Known> {
    let contents = Contents::of(there)?;
    Some(Known {
        id: there.id.clone(),
        same_frame: contents.frame == frame(document),
        chunks: contents.chunks.len(),
        title: contents.title,
        file: contents.file,
    })
}

/// A document in chunks, before it is known which of them are there already.
pub(super) struct DividedDocument<'a> {
    document: &'a Document,
    /// The document's own record.
    record: Record,
    there: Option<Record>,
    /// The chunks it had; `None` when its record does not say.
    before: Option<Vec<Id>>,
    chunks: Vec<Record>,
    title: String,
}

impl<'a> DividedDocument<'a> {
    pub(super) fn of(
        ctx: &Ctx,
        document: &'a Document,
        there: Option<Record>,
        records: &Records,
    ) -> Result<Self, Error> {
        let (retention, limits) = (records.retention, records.limits());
        let before = match &there {
            None => Some(Vec::new()),
            Some(record) => chunks_before(document, record)?,
        };
        let syntax = document
            .syntax
            .unwrap_or_else(|| Syntax::of_name(document.uri()));
        let divided = divide(&document.text, syntax, Size::DEFAULT);
        if divided.chunks.len() > limits.document_chunks() {
            let (count, most) = (divided.chunks.len(), limits.document_chunks());
            return Err(too_large(document, "chunks", count, most));
        }
        let title = title(document, &divided);
        let mut record = Record::new(document.id(), ctx, Kind::Document, name(&title, document));
        record.owner = document.owner.clone();
        record.audience = document.audience.clone();
        record.tags = document.tags.clone();
        record.source = Some(document.uri().to_owned());
        record.origin = document.origin.unwrap_or(Origin::User);
        record.metadata = metadata(document, syntax);
        record.expires = retention.expiry(record.namespace, ctx.now);
        record.created = there.as_ref().map_or(ctx.now, |there| there.created);
        let chunks = chunk_records(ctx, document, &record, &divided, &title);
        let lines = divided.chunks.iter().map(|chunk| match document.converted {
            true => (0, 0),
            false => chunk.lines(),
        });
        let places = chunks.iter().zip(lines);
        let contents = Contents {
            title: title.clone(),
            digest: digest(&document.text),
            frame: frame(document),
            bytes: document.text.len(),
            syntax,
            file: document.file.clone(),
            chunks: places
                .map(|(chunk, (first, last))| (chunk.id.clone(), first, last))
                .collect(),
        };
        record.body = Some(to_json("document", &contents)?);
        for record in [&record].into_iter().chain(chunks.first()) {
            record.check().map_err(|wrong| blame(document, wrong))?;
        }
        Ok(Self {
            document,
            record,
            there,
            before,
            chunks,
            title,
        })
    }

    /// Chunks of the document as it was that it still has.
    pub(super) fn may_be_kept(&self) -> Vec<Id> {
        let before: HashSet<&Id> = self.before.iter().flatten().collect();
        let ids = self.chunks.iter().map(|chunk| &chunk.id);
        ids.filter(|id| before.contains(id)).cloned().collect()
    }

    /// What is left to write, given the chunks that are there.
    pub(super) fn settle(
        self,
        there: &HashMap<Id, Record>,
        limits: &Limits,
    ) -> Result<Planned, Error> {
        let now: HashSet<Id> = self.chunks.iter().map(|chunk| chunk.id.clone()).collect();
        let before = self.before.as_deref();
        let gone = before
            .unwrap_or_default()
            .iter()
            .filter(|id| !now.contains(*id));
        let gone: Vec<Id> = gone.cloned().collect();
        let stays = |chunk: &Record| there.get(&chunk.id).is_some_and(|it| same(it, chunk));
        let stay = self.chunks.iter().filter(|chunk| stays(chunk)).count();
        let ops = 1 + gone.len() + self.chunks.len() - stay;
        // What it had is not known, or taking it away piece by piece is too much for a batch: then
        // all of it goes at once, and nothing is kept.
        let afresh = before.is_none() || ops > limits.batch_ops;
        let chunks = match afresh {
            true => ChunkCounts {
                added: self.chunks.len(),
                kept: 0,
                removed: before.map_or(0, <[Id]>::len),
            },
            false => ChunkCounts {
                added: self.chunks.len() - stay,
                kept: stay,
                removed: gone.len(),
            },
        };
        let receipt = DocumentReceipt {
            id: self.record.id.clone(),
            uri: self.document.uri().to_owned(),
            title: self.title,
            fate: match self.there {
                None => DocumentFate::Added,
                Some(_) => DocumentFate::Replaced,
            },
            chunks,
            commit: None,
            notices: Vec::new(),
        };
        let mut expect = match &self.there {
            None => Expect::Absent,
            Some(there) => Expect::Version(there.version),
        };
        let mut ops = Vec::with_capacity(ops);
        if afresh && self.there.is_some() {
            let id = self.record.id.clone();
            ops.push(Op::Delete { id, expect });
            expect = Expect::Absent;
        } else {
            ops.extend(gone.into_iter().map(Op::delete));
        }
        let puts = self
            .chunks
            .into_iter()
            .filter(|chunk| afresh || !stays(chunk));
        let puts: Vec<Record> = puts.collect();
        let bytes = self.record.weight() + puts.iter().map(Record::weight).sum::<usize>();
        if bytes > limits.batch_bytes {
            let what = "bytes in all chunks with their metadata";
            return Err(too_large(self.document, what, bytes, limits.batch_bytes));
        }
        ops.push(Op::put_if(self.record, expect));
        ops.extend(puts.into_iter().map(Op::put));
        Ok(Planned {
            ops,
            bytes,
            receipt,
        })
    }
}

fn chunks_before(document: &Document, there: &Record) -> Result<Option<Vec<Id>>, Invalid> {
    if there.kind != Kind::Document {
        let what = format!("{} is taken by a {}; choose another", there.id, there.kind);
        return Err(Invalid::new(document.field("id"), what));
    }
    let contents = Contents::of(there);
    Ok(contents.map(|contents| contents.chunks.into_iter().map(|(id, _, _)| id).collect()))
}

/// Whether the chunk that is there is what would be written.
fn same(there: &Record, chunk: &Record) -> bool {
    there.kind == Kind::Chunk
        && there.content == chunk.content
        && there.summary == chunk.summary
        && there.body == chunk.body
        && there.tags == chunk.tags
        && there.owner == chunk.owner
        && there.audience == chunk.audience
        && there.source == chunk.source
        && there.origin == chunk.origin
        && there.metadata == chunk.metadata
        && there.derived_from == chunk.derived_from
}

fn chunk_records(
    ctx: &Ctx,
    document: &Document,
    parent: &Record,
    divided: &Divided,
    title: &str,
) -> Vec<Record> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    let chunks = divided.chunks.iter().map(|chunk| {
        let content = chunk.text(&document.text);
        let time = times.entry(content).or_default();
        *time += 1;
        let id = named(&json!([parent.id, content, *time]));
        Record {
            owner: parent.owner.clone(),
            audience: parent.audience.clone(),
            tags: parent.tags.clone(),
            source: parent.source.clone(),
            origin: parent.origin,
            metadata: parent.metadata.clone(),
            expires: parent.expires,
            summary: Some(path(title, &chunk.headings)),
            body: (!chunk.headings.is_empty()).then(|| json!({ "headings": chunk.headings })),
            derived_from: vec![parent.id.clone()],
            ..Record::new(id, ctx, Kind::Chunk, content)
        }
    });
    chunks.collect()
}

/// Title and headings in a line; a title that is also the first heading is said once.
fn path(title: &str, headings: &[String]) -> String {
    let headings = headings.iter().map(String::as_str);
    let mut path: Vec<&str> = [title].into_iter().chain(headings).collect();
    path.dedup();
    path.join(UNDER)
}

/// A title, in characters.
const TITLE_CHARS: usize = 300;

fn title(document: &Document, divided: &Divided) -> String {
    let one_line = |text: &str| -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").chars().take(TITLE_CHARS).collect()
    };
    let given = document.title.as_deref().or(divided.title.as_deref());
    let given = given.map(one_line).filter(|title| !title.is_empty());
    given.unwrap_or_else(|| {
        let uri = document.uri().trim_end_matches(['/', '\\']);
        one_line(uri.rsplit(['/', '\\']).next().unwrap_or(uri))
    })
}

/// What the document's own record is found by.
fn name(title: &str, document: &Document) -> String {
    match document.uri() {
        uri if uri == title => uri.to_owned(),
        uri => format!("{title}\n{uri}"),
    }
}

fn metadata(document: &Document, syntax: Syntax) -> Map<String, Value> {
    let mut metadata = document.metadata.clone();
    if syntax == Syntax::Code
        && let Some(language) = chunk::language(document.uri())
    {
        metadata
            .entry("language")
            .or_insert_with(|| language.into());
    }
    metadata
}

pub(super) fn document_id(document: &Document) -> Id {
    named(&json!([document.uri, document.owner]))
}

/// The same words always get the same id.
fn named(words: &Value) -> Id {
    let digest = blake3::hash(words.to_string().as_bytes());
    let (half, _) = digest
        .as_bytes()
        .split_first_chunk()
        .unwrap_or((&[0; 16], &[]));
    Id::from_digest(*half)
}

/// A digest of all that chunks depend on but the text.
fn frame(document: &Document) -> String {
    let mut frame = vec![json!([
        chunk::VERSION,
        document.title,
        document.uri(),
        document.syntax,
        document.owner,
        document.tags,
        document.metadata,
        document.origin,
    ])];
    // Frames of documents without one are as they were before there were audiences.
    frame.extend(document.audience.as_ref().map(|audience| json!(audience)));
    let frame: Vec<String> = frame.iter().map(Value::to_string).collect();
    digest(&frame.concat())
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn blame(document: &Document, wrong: Invalid) -> Invalid {
    Invalid::new(document.field(&wrong.field), wrong.what)
}

fn too_large(document: &Document, what: &'static str, count: usize, most: usize) -> Error {
    Error::DocumentTooLarge {
        uri: document.uri().to_owned(),
        what,
        count,
        most,
    }
}
