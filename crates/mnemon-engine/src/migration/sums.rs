//! What was compared: counts, and a hash of each side.

use blake3::Hasher;
use mnemon_core::{CodedVector, StoredChange, StoredReceipt, Tenant};
use serde::Serialize;

/// Counts of a tenant, and the hash that source and target have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sums {
    pub tenant: Tenant,
    pub records: u64,
    /// Past versions and tombstones.
    pub versions: u64,
    pub receipts: u64,
    /// The number of the newest change.
    pub seq: u64,
    pub hash: String,
}

impl Sums {
    /// One hash of several tenants, in their order.
    pub fn hash_of(all: &[Self]) -> String {
        let mut hash = Hasher::new();
        for sums in all {
            put(&mut hash, sums.hash.as_bytes());
        }
        hex(&hash)
    }
}

/// The hashes of both sides as far as they were compared.
pub(super) struct Hashes {
    sums: Sums,
    source: Hasher,
    target: Hasher,
}

impl Hashes {
    pub(super) fn new(tenant: &Tenant) -> Self {
        let mut hash = Hasher::new();
        put(&mut hash, tenant.as_str().as_bytes());
        Self {
            sums: Sums {
                tenant: tenant.clone(),
                records: 0,
                versions: 0,
                receipts: 0,
                seq: 0,
                hash: String::new(),
            },
            source: hash.clone(),
            target: hash,
        }
    }

    /// Adds a change as each side has it. A vector counts where both have the current version.
    pub(super) fn add(&mut self, ours: &StoredChange, theirs: &StoredChange, vectors: bool) {
        let vectors = vectors && ours.is_current && theirs.is_current;
        for (hash, change) in [(&mut self.source, ours), (&mut self.target, theirs)] {
            // A change is text and numbers, so this does not fail.
            let json = serde_json::to_vec(change).unwrap_or_default();
            put(hash, &json);
            if let Some(vector) = change.vector.as_ref().filter(|_| vectors) {
                put_vector(hash, vector);
            }
        }
        match ours.is_current {
            true => self.sums.records += 1,
            false => self.sums.versions += 1,
        }
    }

    /// Adds a receipt that both sides have.
    pub(super) fn add_receipt(&mut self, kept: &StoredReceipt) {
        let json = serde_json::to_vec(kept).unwrap_or_default();
        put(&mut self.source, &json);
        put(&mut self.target, &json);
        self.sums.receipts += 1;
    }

    /// The sums up to this change, if both sides are equal.
    pub(super) fn finish(mut self, seq: u64) -> Option<Sums> {
        let (source, target) = (hex(&self.source), hex(&self.target));
        self.sums.seq = seq;
        (source == target).then_some(Sums {
            hash: source,
            ..self.sums
        })
    }
}

/// With its length, so that no byte can move from one text to the next.
fn put(hash: &mut Hasher, bytes: &[u8]) {
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn put_vector(hash: &mut Hasher, vector: &CodedVector) {
    put(hash, vector.model.name.as_bytes());
    hash.update(&(vector.model.dimension as u64).to_le_bytes());
    hash.update(&vector.scale.to_bits().to_le_bytes());
    put(hash, &vector.codes);
}

/// The first 128 bits: enough to tell stores apart.
fn hex(hash: &Hasher) -> String {
    let hash = hash.finalize().to_hex();
    hash.chars().take(32).collect()
}
