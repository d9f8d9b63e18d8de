//! Stand-ins for the ports that lead outside.

mod bad_embedder;
mod endpoint;
mod files;
mod hash_embedder;
mod kept_talk;
mod memory_double;
mod scripted;

pub use bad_embedder::{BadEmbedder, Mischief};
pub use endpoint::{Arrived, Endpoint, Move};
pub use files::FilesInRam;
pub use hash_embedder::HashEmbedder;
pub use kept_talk::KeptTalk;
pub use memory_double::{
    DOUBLE_KEY, FORMERLY, MemoryDouble, MemoryService, ONE_USER, RETRY_AFTER_S, Treatment,
};
pub use scripted::Scripted;

/// FNV-1a: the same everywhere and for ever, and good enough to tell texts apart.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
