//! Reading everything that the logs keep, for a copy of them.

use std::fs;

use async_trait::async_trait;
use mnemon_core::{
    CodedVector, EmbeddedPage, Grant, Replica, Right, StoreError, StoredPage, StoredReceipt, Tenant,
};

use super::disk::{self, read_failed};
use super::folder::Folder;
use super::{Jsonl, blocking};

#[async_trait]
impl Replica for Jsonl {
    async fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, StoreError> {
        grant.require(Right::Purge)?;
        let root = self.shelf.root.clone();
        blocking(move || {
            let mut tenants = vec![Tenant::default()];
            let folder = disk::tenants(&root);
            if folder.is_dir() {
                let failed = |error| read_failed(&folder, error);
                for entry in fs::read_dir(&folder).map_err(failed)? {
                    let name = entry.map_err(failed)?.file_name();
                    // A folder with another name is not ours.
                    tenants.extend(Tenant::from_store(&name.to_string_lossy()));
                }
            }
            tenants.retain(|tenant| Folder::new(&root, tenant.clone()).is_there());
            tenants.sort_by(|a, b| a.as_str().cmp(b.as_str()));
            tenants.dedup();
            Ok(tenants)
        })
        .await
    }

    async fn stored_changes(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<StoredPage, StoreError> {
        self.read(grant, move |image| image.stored_changes(after, limit))
            .await
    }

    /// The logs keep no vectors.
    async fn embedded_after(
        &self,
        _: &Grant,
        _: u64,
        _: usize,
    ) -> Result<EmbeddedPage, StoreError> {
        Ok(EmbeddedPage::default())
    }

    async fn stored_receipts(
        &self,
        grant: &Grant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let after = after.to_owned();
        self.read(grant, move |image| image.stored_receipts(&after, limit))
            .await
    }

    /// The logs keep no vectors.
    async fn restore_vectors(
        &self,
        _: &Grant,
        _: Vec<(u64, CodedVector)>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}
