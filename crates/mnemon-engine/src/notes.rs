//! Notes: short-term and long-term, with answers that say as little as is needed.
//!
//! A note is a record of the kind `note` in the scope semantic. What is told about one is its id,
//! its summary and what describes it; the content comes only when it is asked for.

mod adding;
mod clearing;
mod echo;
mod editing;
mod finding;
mod view;

use std::sync::Arc;

use mnemon_core::longterm::LongTerm;
use mnemon_core::{Caps, Ctx, Filter, Id, Kind, Namespace, Owner, Record, Scope, Viewer};

pub use crate::memory::notes_config::{MaxEntries, NamespaceLimits, NoteFiles, NotesConfig};
pub use adding::{Added, NewNote};
pub use clearing::{Cleaned, Cleared, NoteCounts};
pub use echo::NearDuplicate;
pub use finding::{FoundNotes, NoteFilter, NotePage, NoteQuery};
pub use view::{NoteText, NoteView};

use crate::conversation::longterm::NoteCopies;
use crate::memory::Memory;
use crate::records::{Error, Records};

/// The notes of a memory.
pub struct Notes {
    records: Records,
    config: NotesConfig,
    /// Where a note's content may be read from.
    files: Option<NoteFiles>,
    /// The service that keeps copies.
    copies: Option<Arc<NoteCopies>>,
}

impl Memory {
    /// Short-term and long-term notes.
    pub fn notes(&self) -> Notes {
        let records = self.records_of(Scope::Semantic);
        let remote = self.long_term.as_ref();
        let remote = remote.filter(|_| self.notes.in_long_term);
        let copies =
            |remote: &Arc<dyn LongTerm>| Arc::new(NoteCopies::new(records.clone(), remote.clone()));
        Notes {
            records: records.clone(),
            config: self.notes.clone(),
            files: self.note_files.clone(),
            copies: remote.map(copies),
        }
    }
}

impl Notes {
    /// How notes are kept, found and told.
    pub fn config(&self) -> &NotesConfig {
        &self.config
    }

    /// What is known under this id: a note, or another piece of knowledge that an answer named.
    async fn one(&self, ctx: &Ctx, viewer: &Viewer, id: &Id) -> Result<Option<Record>, Error> {
        let found = self.readable(ctx, viewer, id).await?;
        Ok(found.filter(|record| record.scope == Scope::Semantic))
    }

    /// The record with this id, of whatever kind: a search names all of them.
    async fn readable(&self, ctx: &Ctx, viewer: &Viewer, id: &Id) -> Result<Option<Record>, Error> {
        for records in self.records.on_all_stores() {
            let ids = std::slice::from_ref(id);
            let found = records.get_seen_by(ctx, viewer, ids).await?;
            if let Some(record) = found.into_iter().flatten().next() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The records, with the cap of the namespace that a note goes to.
    async fn capped(&self, ctx: &Ctx, namespace: Namespace) -> Result<Records, Error> {
        let limits = self.config.of(namespace);
        let cap = match limits.max_entries {
            MaxEntries::Chosen(cap) => cap,
            // A cap that nobody chose makes room for what is new; it does not take what others
            // have written without it.
            MaxEntries::Usual(cap) => Some(cap.max(self.count(ctx, Some(namespace)).await?)),
        };
        let mut records = self.records.clone();
        records.policy.caps = match namespace {
            Namespace::ShortTerm => Caps {
                short_term: cap,
                long_term: None,
            },
            Namespace::LongTerm => Caps {
                short_term: None,
                long_term: cap,
            },
        };
        Ok(records)
    }
}

fn is_note(record: &Record) -> bool {
    record.kind == Kind::Note && record.scope == Scope::Semantic
}

/// All notes of an owner, in one namespace or both.
fn notes_of(owner: &Owner, namespace: Option<Namespace>) -> Filter {
    Filter {
        owner: owner.clone(),
        scopes: vec![Scope::Semantic],
        kinds: vec![Kind::Note],
        namespaces: namespace.into_iter().collect(),
        ..Filter::all_of_tenant()
    }
}
