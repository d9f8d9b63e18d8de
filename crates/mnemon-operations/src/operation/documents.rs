//! Operations on documents whose text is sent.

use std::collections::HashSet;

use mnemon_core::chunk::Syntax;
use mnemon_core::{Invalid, Origin, Owner, Scope, limits};
use mnemon_engine::{Document, DocumentReceipt, FileStamp, Known};
use serde::{Deserialize, Serialize};

use super::arguments::read;
use super::notes::owner;
use super::{Access, Arguments, DocumentAdd, DocumentKnown, Field, Operation};
use crate::Error;

/// Documents that are added before the progress is said.
const AT_A_TIME: usize = 32;
/// A digest, in characters.
const DIGEST: usize = 200;

/// What became of documents, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub struct AddedDocuments {
    pub documents: Vec<DocumentReceipt>,
}

/// Documents as they are there already, in the order in which they were asked for.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownDocuments {
    pub documents: Vec<Option<Known>>,
}

/// A document as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct SentDocument {
    pub uri: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syntax: Option<Syntax>,
    #[serde(default)]
    pub converted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileStamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl SentDocument {
    pub fn new(document: &Document) -> Self {
        Self {
            uri: document.uri.clone(),
            text: document.text.clone(),
            title: document.title.clone(),
            syntax: document.syntax,
            converted: document.converted,
            file: document.file.clone(),
            origin: document.origin,
        }
    }

    fn document(self, owner: &Owner, tags: &[String]) -> Document {
        Document {
            uri: self.uri,
            text: self.text,
            title: self.title,
            syntax: self.syntax,
            converted: self.converted,
            file: self.file,
            origin: self.origin,
            owner: owner.clone(),
            tags: tags.to_vec(),
            ..Document::default()
        }
    }
}

/// Documents, whose they are, and their tags.
fn fields(text: Option<Field>) -> Vec<Field> {
    let uri = "Path, address or name; with its owner it identifies the document";
    let syntax = "How it is cut into chunks; without it, as the end of the uri suggests";
    let converted = "Whether the text was made from something else, such as HTML or PDF";
    let file = "The file that it was read from, to recognise it later without its text";
    let time = |name, about| Field::text(name, 64, about).required();
    let stamp = vec![
        Field::whole("bytes", 0, u64::from(u32::MAX), "Size of the file").required(),
        time("modified", "Time of its last change"),
        time("read", "Time at which it was read"),
        Field::text("digest", DIGEST, "Digest of its bytes").required(),
    ];
    let mut document = vec![Field::text("uri", limits::SOURCE_CHARS, uri).required()];
    document.extend(text);
    document.extend([
        Field::text("title", limits::SUMMARY_BYTES, "Its title"),
        Field::one_of(
            "syntax",
            Syntax::ALL.iter().map(|syntax| syntax.as_str()),
            syntax,
        ),
        Field::flag("converted", converted),
        Field::parts("file", stamp, file),
        Field::one_of(
            "origin",
            Origin::ALL.iter().map(|word| word.as_str()),
            "Origin of the information",
        ),
    ]);
    let most = limits::PAGE;
    let documents = Field::list("documents", document, most, "The documents").required();
    let tags = "Tags of each document";
    let tags = Field::words("tags", limits::TAGS, limits::TAG_CHARS, tags);
    let mut fields = vec![documents, tags];
    fields.extend(owner("User whose documents they are"));
    fields
}

fn documents(access: &Access<'_>, arguments: &mut Arguments) -> Result<Vec<Document>, Error> {
    let sent: Vec<SentDocument> = read(arguments.take("documents").unwrap_or_default())?;
    let (owner, tags) = (
        access.owned(arguments.take_owner()),
        arguments.texts("tags"),
    );
    owner.check()?;
    let documents = sent.into_iter().map(|sent| sent.document(&owner, &tags));
    Ok(documents.collect())
}

impl Operation for DocumentAdd {
    type Answer = AddedDocuments;

    fn fields() -> Vec<Field> {
        let text = Field::text("text", limits::DOCUMENT_BYTES, "Its text");
        fields(Some(text.required()))
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<AddedDocuments, Error> {
        let sent = documents(access, &mut arguments)?;
        let mut seen = HashSet::new();
        for document in &sent {
            document.check()?;
            if !seen.insert(document.id()) {
                let what = format!("{} is given twice in one call; remove one", document.uri);
                return Err(Invalid::new("documents", what).into());
            }
        }
        let records = access.memory.records_of(Scope::Semantic);
        let mut documents = Vec::with_capacity(sent.len());
        for some in sent.chunks(AT_A_TIME) {
            let added = records.add_documents(access.ctx, some.to_vec()).await?;
            documents.extend(added);
            (access.watch)(documents.len() as u64, Some(sent.len() as u64));
        }
        Ok(AddedDocuments { documents })
    }
}

impl Operation for DocumentKnown {
    type Answer = KnownDocuments;

    fn fields() -> Vec<Field> {
        fields(None)
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<KnownDocuments, Error> {
        let documents = documents(access, &mut arguments)?;
        let records = access.memory.records_of(Scope::Semantic);
        let documents = records.known_documents(access.ctx, &documents).await?;
        Ok(KnownDocuments { documents })
    }
}
