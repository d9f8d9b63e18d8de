//! An index in a real Milvus server: `milvus-lite`, which `./scripts/milvus` obtains.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failure should panic"
)]

mod answers;
mod lite;
mod random;
mod refusals;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use mnemon_adapters::external_index::{ExternalIndex, IndexAccess, IndexUrl};
use mnemon_core::ram::Ram;
use mnemon_core::{Backend, SearchIndex, StoreError};
use mnemon_milvus::Milvus;
use mnemon_testkit::index_operations::words;
use mnemon_testkit::make::{at, grant};
use mnemon_testkit::{Fixture, index_conformance};

use lite::Lite;

/// A store in memory with its index in a server.
struct Indexed {
    store: Arc<Ram>,
    url: String,
}

impl Indexed {
    /// On the server that the tests share, under a name that no other test has.
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            store: Arc::default(),
            url: format!("milvus://{}/test_{number}", Lite::shared()),
        }
    }

    fn index(&self) -> ExternalIndex {
        index_at(&self.store, &self.url)
    }
}

fn index_at(store: &Arc<Ram>, url: &str) -> ExternalIndex {
    let url = IndexUrl::parse(url).unwrap();
    let server = Milvus::new(&url, &IndexAccess::default()).unwrap();
    ExternalIndex::new(store.clone(), Arc::new(server))
}

async fn found(index: &ExternalIndex, query: &str) -> Result<usize, StoreError> {
    let answer = index.find(&grant(at(0)), &words(query)).await?;
    Ok(answer.matches.len())
}

#[async_trait]
impl Fixture for Indexed {
    async fn open(&self) -> Backend {
        Backend {
            store: self.store.clone(),
            index: Arc::new(self.index()),
        }
    }
}

index_conformance!(on_milvus_lite, Indexed::new());
