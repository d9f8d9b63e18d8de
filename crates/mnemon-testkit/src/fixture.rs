//! How a test gets at a store.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::{Backend, ram::Ram};

/// A place where a store can be opened.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// Opens the store at this place, with its index. It is empty the first time; opened again, after the handle
    /// before was dropped, it holds what was written.
    async fn open(&self) -> Backend;
}

/// The reference store. It has no place to come back from, so that "again" is the same store.
#[derive(Debug, Default)]
pub struct InRam(Arc<Ram>);

#[async_trait]
impl Fixture for InRam {
    async fn open(&self) -> Backend {
        self.0.clone().into()
    }
}

/// Runs a test on a runtime of its own, as stores may need one for their blocking work.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}
