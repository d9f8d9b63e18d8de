//! Take in files and folders as documents.

use std::path::{Path, PathBuf};

use mnemon_core::{
    Ctx, Cursor, ErrorKind, Filter, Id, Invalid, Kind, Origin, Owner, Receipt, Record, Scan, Scope,
    Time, limits, secrets,
};
use mnemon_engine::{
    ChunkCounts, Document, DocumentFate, DocumentReceipt, FileStamp, Known, Memory, Records,
};
use serde::Serialize;

use super::list;
use crate::Error;
use crate::wiring::{self, FileProblem, FoundFile};

/// Documents that are added in one call.
const DOCUMENTS: usize = 256;
/// Bytes of text that are added in one call, if one document alone has no more.
const BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    pub owner: Owner,
    pub tags: Vec<String>,
    /// Globs of what is left out in folders, as in a `.gitignore`.
    pub exclude: Vec<String>,
    /// Forget the documents whose files in the named folders are gone.
    pub prune: bool,
    /// Look and say what would be done.
    pub dry_run: bool,
}

/// What became of the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Response {
    pub dry_run: bool,
    pub added: u64,
    pub replaced: u64,
    pub unchanged: u64,
    pub pruned: u64,
    pub skipped: u64,
    pub failed: u64,
    pub chunks: ChunkCounts,
    /// What undo knows all of it by.
    pub commit: Option<u64>,
    /// Every file but those that are unchanged.
    pub files: Vec<FileOutcome>,
}

impl Response {
    /// The paths that the caller named and that were not taken in.
    pub fn named_failures(&self) -> impl Iterator<Item = &FileOutcome> {
        self.files
            .iter()
            .filter(|file| file.named && file.kind.is_some())
    }
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileOutcome {
    pub path: String,
    pub fate: Fate,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// Why it was not taken in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ErrorKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<ChunkCounts>,
    /// What was left out of it, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Whether the caller named it, as opposed to a folder it is in.
    #[serde(skip)]
    pub named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    Added,
    Replaced,
    /// Its file is gone.
    Pruned,
    /// Not meant: a binary file, a link, an empty one in a folder.
    Skipped,
    /// Meant, but it could not be taken in.
    Failed,
}

/// How far it has come, in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Where documents are kept: in a store, or on a server.
pub trait Library {
    /// Documents as they are there already.
    fn known(
        &self,
        documents: &[Document],
    ) -> impl Future<Output = Result<Vec<Option<Known>>, Error>> + Send;

    fn add(
        &self,
        documents: Vec<Document>,
    ) -> impl Future<Output = Result<Vec<DocumentReceipt>, Error>> + Send;

    /// A page of documents, among them those of this owner.
    fn page(
        &self,
        owner: &Owner,
        after: Option<Cursor>,
    ) -> impl Future<Output = Result<list::Response, Error>> + Send;

    fn forget(&self, ids: &[Id]) -> impl Future<Output = Result<Receipt, Error>> + Send;
}

/// The documents of a store.
struct Here<'a> {
    records: &'a Records,
    ctx: &'a Ctx,
}

impl Library for Here<'_> {
    async fn known(&self, documents: &[Document]) -> Result<Vec<Option<Known>>, Error> {
        Ok(self.records.known_documents(self.ctx, documents).await?)
    }

    async fn add(&self, documents: Vec<Document>) -> Result<Vec<DocumentReceipt>, Error> {
        Ok(self.records.add_documents(self.ctx, documents).await?)
    }

    async fn page(&self, owner: &Owner, after: Option<Cursor>) -> Result<list::Response, Error> {
        let filter = Filter {
            kinds: vec![Kind::Document],
            owner: owner.clone(),
            ..Filter::all_of_tenant()
        };
        let scan = Scan {
            after,
            ..Scan::new(filter, limits::PAGE)
        };
        let page = self.records.list(self.ctx, &scan).await?;
        Ok(list::Response {
            records: page.records,
            next: page.next,
        })
    }

    async fn forget(&self, ids: &[Id]) -> Result<Receipt, Error> {
        Ok(self.records.forget(self.ctx, ids, None).await?)
    }
}

/// What cannot be taken in is reported in the response and does not hinder the rest.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    request: Request,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Response, Error> {
    let records = memory.records_of(Scope::Semantic);
    run_in(&Here { records, ctx }, ctx.now, request, watch).await
}

/// The same for any library.
pub async fn run_in<L: Library>(
    library: &L,
    now: Time,
    request: Request,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Response, Error> {
    if request.paths.is_empty() {
        let what = "are missing; name the files and folders to index";
        return Err(Invalid::new("paths", what).into());
    }
    let found = wiring::find_files(&request.paths, &request.exclude)?;
    let mut work = Work {
        library,
        now,
        response: Response {
            dry_run: request.dry_run,
            ..Response::default()
        },
        pending: Vec::new(),
        request,
    };
    for not_taken in &found.not_taken {
        work.refuse(&not_taken.path, not_taken.named, &not_taken.why);
    }
    let total = found.files.len() as u64;
    let mut done = 0;
    for files in found.files.chunks(limits::PAGE) {
        let documents: Vec<Document> = files.iter().map(|file| work.document(file)).collect();
        let known = library.known(&documents).await?;
        for ((file, document), known) in files.iter().zip(documents).zip(known) {
            work.take(file, document, known.as_ref());
            if work.is_full() {
                work.flush().await?;
            }
            done += 1;
            watch(Progress { done, total });
        }
    }
    work.flush().await?;
    if work.request.prune {
        work.prune(&found.folders).await?;
    }
    Ok(work.response)
}

/// A document that waits for others to go into one commit with it.
struct Pending {
    path: PathBuf,
    named: bool,
    document: Document,
}

struct Work<'a, L> {
    library: &'a L,
    now: Time,
    request: Request,
    response: Response,
    pending: Vec<Pending>,
}

impl<L: Library> Work<'_, L> {
    /// The document that a file becomes, without its text.
    fn document(&self, file: &FoundFile) -> Document {
        Document {
            uri: file.uri.clone(),
            syntax: Some(file.syntax()),
            converted: file.is_converted(),
            owner: self.request.owner.clone(),
            tags: self.request.tags.clone(),
            origin: Some(Origin::File),
            ..Document::default()
        }
    }

    /// Reads the file if it may have changed.
    fn take(&mut self, file: &FoundFile, document: Document, known: Option<&Known>) {
        let before = known.filter(|known| known.same_frame);
        let before = before.and_then(|known| known.file.as_ref());
        if before.is_some_and(|stamp| stamp.vouches_for(file.bytes, file.modified)) {
            self.response.unchanged += 1;
            return;
        }
        let read = match file.read() {
            Ok(read) => read,
            Err(why) => return self.refuse(&file.path, file.named, &why),
        };
        if before.is_some_and(|stamp| stamp.digest == read.digest) {
            self.response.unchanged += 1;
            return;
        }
        let stamp = FileStamp {
            bytes: read.bytes,
            modified: read.modified,
            read: self.now,
            digest: read.digest.clone(),
        };
        let text = match read.into_text() {
            Ok(text) => text,
            Err(why) => return self.refuse(&file.path, file.named, &why),
        };
        let document = Document {
            text,
            file: Some(stamp),
            ..document
        };
        if self.request.dry_run {
            let fate = match known {
                None => Fate::Added,
                Some(_) => Fate::Replaced,
            };
            return self.report(outcome(&file.path, fate));
        }
        self.pending.push(Pending {
            path: file.path.clone(),
            named: file.named,
            document,
        });
    }

    fn is_full(&self) -> bool {
        let bytes = self
            .pending
            .iter()
            .map(|pending| pending.document.text.len());
        self.pending.len() >= DOCUMENTS || bytes.sum::<usize>() >= BYTES
    }

    /// Adds what is pending. A refused document is reported; the others are added.
    async fn flush(&mut self) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let documents: Vec<Document> = pending.iter().map(|it| it.document.clone()).collect();
        match self.library.add(documents).await {
            Ok(receipts) => {
                for (pending, receipt) in pending.iter().zip(receipts) {
                    self.added(&pending.path, receipt);
                }
                return Ok(());
            }
            Err(error) if !is_of_document(&error) => return Err(error),
            // One of them is to blame; which one shows when they go one by one.
            Err(_) => {}
        }
        for Pending {
            path,
            named,
            document,
        } in pending
        {
            match self.library.add(vec![document]).await {
                Ok(receipts) => receipts.into_iter().for_each(|it| self.added(&path, it)),
                Err(error) if is_of_document(&error) => self.report(FileOutcome {
                    reason: Some(error.to_string()),
                    kind: Some(error.kind()),
                    named,
                    ..outcome(&path, Fate::Failed)
                }),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn added(&mut self, path: &Path, receipt: DocumentReceipt) {
        let fate = match receipt.fate {
            DocumentFate::Added => Fate::Added,
            DocumentFate::Replaced => Fate::Replaced,
            DocumentFate::Unchanged => {
                self.response.unchanged += 1;
                return;
            }
        };
        self.response.commit = self.response.commit.or(receipt.commit);
        let all = &mut self.response.chunks;
        all.added += receipt.chunks.added;
        all.kept += receipt.chunks.kept;
        all.removed += receipt.chunks.removed;
        self.report(FileOutcome {
            id: Some(receipt.id),
            chunks: Some(receipt.chunks),
            notices: receipt.notices,
            ..outcome(path, fate)
        });
    }

    fn refuse(&mut self, path: &Path, named: bool, why: &FileProblem) {
        // What is passed over in a folder was not meant; what was named was.
        let fate = match why.is_usual() && !named {
            true => Fate::Skipped,
            false => Fate::Failed,
        };
        let source = std::error::Error::source(why).map(|source| format!(": {source}"));
        self.report(FileOutcome {
            reason: Some(format!("{why}{}", source.unwrap_or_default())),
            kind: Some(why.kind()),
            named,
            ..outcome(path, fate)
        });
    }

    fn report(&mut self, outcome: FileOutcome) {
        *match outcome.fate {
            Fate::Added => &mut self.response.added,
            Fate::Replaced => &mut self.response.replaced,
            Fate::Pruned => &mut self.response.pruned,
            Fate::Skipped => &mut self.response.skipped,
            Fate::Failed => &mut self.response.failed,
        } += 1;
        self.response.files.push(outcome);
    }

    /// Forgets the documents of this owner whose files in the folders are gone.
    async fn prune(&mut self, folders: &[String]) -> Result<(), Error> {
        let mut gone: Vec<Record> = Vec::new();
        let mut after = None;
        loop {
            let page = self.library.page(&self.request.owner, after).await?;
            let records = page.records.into_iter();
            gone.extend(records.filter(|record| self.is_gone(record, folders)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for gone in gone.chunks(limits::PAGE) {
            if !self.request.dry_run {
                let ids: Vec<Id> = gone.iter().map(|record| record.id.clone()).collect();
                let receipt = self.library.forget(&ids).await?;
                self.response.chunks.removed += receipt.cascaded.len();
                self.response.commit = self.response.commit.or(receipt.commit);
            }
            for record in gone {
                let path = record.source.clone().unwrap_or_default();
                self.report(FileOutcome {
                    id: Some(record.id.clone()),
                    ..outcome(Path::new(&path), Fate::Pruned)
                });
            }
        }
        Ok(())
    }

    fn is_gone(&self, record: &Record, folders: &[String]) -> bool {
        let path = record.source.as_deref().unwrap_or_default();
        let inside = |folder: &String| Path::new(path).starts_with(folder) && path != folder;
        record.origin == Origin::File
            && record.owner == self.request.owner
            && folders.iter().any(inside)
            // A path that lost a secret leads nowhere, and its file may still be there.
            && !secrets::is_masked(path)
            && wiring::is_gone(path)
    }
}

fn outcome(path: &Path, fate: Fate) -> FileOutcome {
    FileOutcome {
        path: path.display().to_string(),
        fate,
        id: None,
        reason: None,
        kind: None,
        chunks: None,
        notices: Vec::new(),
        named: false,
    }
}

/// Whether the document is to blame, as opposed to the store.
fn is_of_document(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::TooLarge)
}
