//! What a search server knows of a record.

use mnemon_core::embed::ModelId;
use mnemon_core::index::{StoredVector, Terms};
use mnemon_core::speakers::first_word;
use mnemon_core::{CodedVector, Id, Kind, Namespace, Owner, Record, Scope};

/// The fields by which a record is found and filtered.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: Id,
    pub seq: u64,
    pub owner: Owner,
    /// `everyone`, `user:NAME`, `agent:NAME` or `team:NAME`.
    pub audience: String,
    pub scope: Scope,
    pub kind: Kind,
    pub namespace: Namespace,
    /// In lower case.
    pub tags: Vec<String>,
    pub source: Option<String>,
    pub derived_from: Vec<Id>,
    /// Milliseconds since 1970.
    pub created: i64,
    /// The same; [`Document::NEVER`] if the record does not expire.
    pub expires: i64,
    pub speaker: Option<String>,
    /// The first word of the speaker's name, in lower case.
    pub speaker_word: Option<String>,
    /// The hash of each term, and its occurrences in quarters.
    pub terms: Vec<(u32, u8)>,
    /// How many words it has, stop words not counted.
    pub length: f32,
    pub vector: Option<Vector>,
}

/// A vector of unit length, and the model that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    pub model: ModelId,
    pub values: Vec<f32>,
}

/// Occurrences are counted in quarters, because a word in a tag counts one and a half times.
pub const QUARTERS: f32 = 4.0;

impl Document {
    /// The time of expiry of a record that does not expire.
    pub const NEVER: i64 = i64::MAX;

    pub fn of(record: &Record, vector: Option<&CodedVector>) -> Self {
        let terms = Terms::of(record);
        let counts = terms.numbers().map(|term| {
            let quarters = (terms.occurs(term) * QUARTERS).round();
            (term, quarters as u8)
        });
        Self {
            id: record.id.clone(),
            seq: record.seq,
            owner: record.owner.clone(),
            audience: record.audience().to_string(),
            scope: record.scope,
            kind: record.kind,
            namespace: record.namespace,
            tags: record.tags.iter().map(|tag| tag.to_lowercase()).collect(),
            source: record.source.clone(),
            derived_from: record.derived_from.clone(),
            created: record.created.millis(),
            expires: record.expires.map_or(Self::NEVER, |time| time.millis()),
            speaker: record.speaker().map(str::to_owned),
            speaker_word: record.speaker().map(first_word),
            terms: counts.collect(),
            length: terms.length(),
            vector: vector.and_then(Vector::of),
        }
    }
}

impl Vector {
    /// `None` for a vector without a direction, for which no cosine is defined.
    pub(super) fn of(coded: &CodedVector) -> Option<Self> {
        let mut values = StoredVector::from(coded).vector.values();
        mnemon_core::vector::normalise(&mut values).ok()?;
        Some(Self {
            model: coded.model.clone(),
            values,
        })
    }
}
