//! The search index inside the database, for tenants that do not fit into memory.
//!
//! A search asks the database for candidates: records with the rarest words of the query, and the
//! nearest vectors. It loads them with their neighbours into an [`Index`] of core, which ranks them
//! as it ranks a whole tenant. The statistics come from a random sample of the records that the
//! caller may see ([`sample`]), so scores do not depend on records of others.
//!
//! All of it is columns of the table `search` ([`Columns`]): it is written and deleted in the
//! transaction of the record, by the same statements.
//!
//! [`Index`]: mnemon_core::index::Index

mod candidates;
mod choice;
mod find;
pub(super) mod hnsw;
mod keys;
mod load;
pub(super) mod near;
pub(super) mod pending;
mod sample;
mod speakers;

use mnemon_core::index::Terms;
use mnemon_core::speakers::first_word;
use mnemon_core::{Audience, Features, Match, Record};

use super::pool::Call;
use super::rows::FoundBy;
pub(super) use find::{DatabaseIndex, INDEXED_PER_EXACT};
use near::HalfVector;
pub(super) use speakers::speakers;

/// The name of an audience in the table; empty for everyone.
fn audience_name(audience: &Audience) -> String {
    match audience {
        Audience::Everyone => String::new(),
        other => other.to_string(),
    }
}

/// A record that no arm was asked for.
pub(super) fn describe(record: &Record) -> Match {
    Match {
        id: record.id.clone(),
        words: None,
        meaning: None,
        features: Some(Features::of(record, &Terms::of(record), 0.0, 0.0)),
    }
}

/// A place in a list that is sent to the database, whose lists are shorter than 2^31.
fn place(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// The columns by which the index in the database finds records, a list each.
#[derive(Default)]
pub(super) struct Columns {
    audience: Vec<String>,
    conversation: Vec<Option<i64>>,
    draw: Vec<i32>,
    named: Vec<Option<String>>,
    words: Vec<i32>,
    /// The first and the last place of each record in `words`, from 1.
    first_word: Vec<i32>,
    last_word: Vec<i32>,
    near: Vec<Option<HalfVector>>,
}

impl Columns {
    pub(super) fn push(&mut self, tenant: i64, record: &Record, found_by: &FoundBy) {
        let audience = record.audience();
        let terms = Terms::from_bytes(&found_by.terms).unwrap_or_default();
        self.first_word.push(place(self.words.len() + 1));
        let words = keys::of_record(tenant, &audience, record, &terms);
        self.words.extend(words);
        self.last_word.push(place(self.words.len()));
        let audience = audience_name(&audience);
        let session = record.owner.session.as_deref();
        self.conversation
            .push(session.map(|session| keys::conversation(&audience, session)));
        self.audience.push(audience);
        self.draw.push(keys::draw(record.id.as_str()));
        self.named.push(record.speaker().map(first_word));
        let vector = found_by.vector.as_ref();
        self.near
            .push(vector.map(|it| HalfVector::from(&it.vector)));
    }

    /// The columns as the next values.
    pub(super) fn with(self, call: Call, with_near: bool) -> Call {
        let call = call
            .with(self.audience)
            .with(self.conversation)
            .with(self.draw)
            .with(self.named)
            .with(self.words)
            .with(self.first_word)
            .with(self.last_word);
        match with_near {
            true => call.with(self.near),
            false => call,
        }
    }
}
