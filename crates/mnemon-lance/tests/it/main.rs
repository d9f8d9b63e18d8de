//! An index in real Lance tables. `./scripts/lance` builds and runs these tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failure should panic"
)]

mod answers;
mod buckets;
mod killed;
mod program;
mod readers;
mod refusals;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_adapters::external_index::{ExternalIndex, IndexUrl};
use mnemon_core::ram::Ram;
use mnemon_core::{Backend, Replica, SearchIndex, StoreError};
use mnemon_lance::{Lance, Upkeep};
use mnemon_testkit::index_operations::words;
use mnemon_testkit::make::{at, grant};
use mnemon_testkit::{Fixture, index_conformance};
use tempfile::TempDir;

/// A schedule that compacts often, so that short tests reach it.
const OFTEN: Upkeep = Upkeep {
    versions_most: 6,
    versions_kept: 3,
    rows_per_file: 64,
};

/// A store in memory with its index in a folder.
struct Indexed {
    store: Arc<Ram>,
    place: TempDir,
}

impl Indexed {
    fn new() -> Self {
        Self {
            store: Arc::default(),
            place: tempfile::tempdir().unwrap(),
        }
    }

    /// A name that would be another one if it were read as a URL.
    fn folder(&self) -> PathBuf {
        self.place.path().join("vec tors%20#é?x=1")
    }

    fn server(&self) -> Lance {
        server_at(&self.folder())
    }

    fn index(&self) -> ExternalIndex {
        index_at(&self.store, &self.folder())
    }
}

fn server_at(folder: &Path) -> Lance {
    server_of(&format!("lance:{}", folder.display()))
}

fn server_of(url: &str) -> Lance {
    let server = Lance::new(&IndexUrl::parse(url).unwrap());
    server.unwrap().with_upkeep(OFTEN)
}

fn index_at<S: Replica + 'static>(store: &Arc<S>, folder: &Path) -> ExternalIndex {
    ExternalIndex::new(store.clone(), Arc::new(server_at(folder)))
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

index_conformance!(on_lance_tables, Indexed::new());
