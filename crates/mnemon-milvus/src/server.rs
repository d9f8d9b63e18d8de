//! The index server.

mod find;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_adapters::external_index::{
    Audience, DocumentChange, Entry, Generation, IndexAccess, IndexServer, IndexUrl, Marked,
    Question, ServerAnswer, ServerError, Watermark,
};
use mnemon_core::embed::ModelId;
use mnemon_core::{Id, StoreError, Tenant};

use crate::client::{Client, Failure};
use crate::proto::{
    Alias, Collections, Description, NewCollection, NewIndex, Nothing, OfCollection, Status,
    Version,
};
use crate::rows::Row;
use crate::{filter, schema};

/// The oldest version with sparse vectors.
const OLDEST: (u64, u64) = (2, 4);

/// An index in a Milvus server.
pub struct Milvus {
    client: Client,
    name: String,
    /// Collections of vectors that this process has seen complete.
    complete: Mutex<HashSet<String>>,
}

impl Milvus {
    /// Nothing is asked of the server yet.
    pub fn new(url: &IndexUrl, access: &IndexAccess) -> Result<Self, StoreError> {
        Ok(Self {
            client: Client::new(url, access)?,
            name: url.name.clone(),
            complete: Mutex::default(),
        })
    }

    async fn check_version(&self) -> Result<(), Failure> {
        let found: Version = self.client.call("GetVersion", &Nothing {}).await?;
        match is_recent(&found.version) {
            true => Ok(()),
            false => {
                let (major, minor) = OLDEST;
                let what = format!(
                    "version `{}` is too old; use Milvus {major}.{minor} or later",
                    found.version.escape_debug()
                );
                Err(self.client.failed(what, "version").into())
            }
        }
    }

    async fn collections(&self) -> Result<Vec<String>, Failure> {
        let found: Collections = self.client.call("ShowCollections", &Nothing {}).await?;
        Ok(found.names)
    }

    /// What the name of the index stands for, if it exists.
    async fn described(&self, name: &str) -> Result<Option<Description>, Failure> {
        let of = OfCollection {
            collection: name.to_owned(),
        };
        match self.client.call("DescribeCollection", &of).await {
            Ok(found) => Ok(Some(found)),
            Err(Failure::Missing) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Makes a collection that can be searched.
    async fn make(&self, collection: NewCollection, index: NewIndex) -> Result<(), Failure> {
        let name = collection.collection.clone();
        let _: Status = self.client.call("CreateCollection", &collection).await?;
        let _: Status = self.client.call("CreateIndex", &index).await?;
        self.client.load(&name).await
    }

    /// Completes a collection whose making was interrupted. An index that is there is kept; without one
    /// the collection cannot be loaded.
    async fn complete(&self, name: &str, index: NewIndex) -> Result<(), Failure> {
        let _: Result<Status, Failure> = self.client.call("CreateIndex", &index).await;
        self.client.load(name).await
    }

    async fn drop_collection(&self, name: String) -> Result<(), Failure> {
        let of = OfCollection { collection: name };
        match self.client.call("DropCollection", &of).await {
            // Another process has dropped it.
            Err(Failure::Missing) => Ok(()),
            done => done.map(|_: Status| ()),
        }
    }

    async fn make_generation(&self) -> Result<Generation, Failure> {
        self.check_version().await?;
        let generation = schema::new_generation(&self.name);
        let index = schema::words_index(&generation.0);
        self.make(schema::documents(&generation), index).await?;
        Ok(generation)
    }

    async fn point_to(&self, generation: &Generation) -> Result<(), Failure> {
        let alias = Alias {
            collection: generation.0.clone(),
            alias: self.name.clone(),
        };
        let method = match self.described(&self.name).await? {
            Some(_) => "AlterAlias",
            None => "CreateAlias",
        };
        let done: Result<Status, Failure> = self.client.call(method, &alias).await;
        done.map(drop)
    }

    fn check_format(&self, found: &Description) -> Result<(), StoreError> {
        let name = found.collection.as_str();
        let is_ours = schema::generation_of(&self.name, name) == Some(name)
            && found.schema.as_ref().is_some_and(schema::has_fields);
        match is_ours {
            true => Ok(()),
            false => Err(self.client.foreign(format!(
                "collection `{}` was made by another program or version; name another index",
                name.escape_debug()
            ))),
        }
    }
}

/// Whether this version is known to have what is needed. The numbers of `milvus-lite` are not those
/// of Milvus.
fn is_recent(version: &str) -> bool {
    if version.starts_with("milvus_lite-") {
        return true;
    }
    let number = version.trim_start_matches('v');
    let mut parts = number.split(['.', '-']).map(|part| part.parse().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= OLDEST,
        // A build without a number is one of the developers of Milvus.
        _ => true,
    }
}

#[async_trait]
impl IndexServer for Milvus {
    fn place(&self) -> &str {
        self.client.place()
    }

    async fn current(&self) -> Result<Generation, ServerError> {
        self.check_version().await?;
        match self.described(&self.name).await? {
            None => {
                let made = self.make_generation().await?;
                self.activate(&made).await?;
                Ok(made)
            }
            Some(found) => {
                self.check_format(&found)?;
                Ok(Generation(found.collection))
            }
        }
    }

    async fn create(&self) -> Result<Generation, ServerError> {
        Ok(self.make_generation().await?)
    }

    async fn activate(&self, generation: &Generation) -> Result<(), ServerError> {
        let all = self.collections().await?;
        if !all.contains(&generation.0) {
            return Err(ServerError::Gone);
        }
        self.point_to(generation).await?;
        for other in all {
            let of = schema::generation_of(&self.name, &other);
            if of.is_some_and(|of| of != generation.0) {
                self.drop_collection(other).await?;
            }
        }
        Ok(())
    }

    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Marked, ServerError> {
        let filter = filter::keys([schema::watermark_key(tenant).as_str()]);
        let fields = ["version", "embedded"];
        let columns = self.client.rows(&generation.0, filter, &fields, 1).await?;
        let number = |name: &str| {
            let found = self.client.longs(&columns, name)?.first().copied();
            Ok::<_, StoreError>(found.and_then(|found| u64::try_from(found).ok()))
        };
        match (number("version")?, number("embedded")?) {
            (Some(seq), Some(embedded)) => Ok(Marked {
                watermark: Watermark { seq, embedded },
                token: Some((seq, embedded)),
            }),
            _ => Ok(Marked::default()),
        }
    }

    /// Milvus cannot compare and write at once. A watermark that has moved is noticed, but for the
    /// moment between reading and writing it.
    async fn mark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: &Marked,
        to: Watermark,
    ) -> Result<Option<Marked>, ServerError> {
        let now = self.watermark(generation, tenant).await?;
        if now.token != from.token {
            return Ok(None);
        }
        let row = Row::of_watermark(tenant, to);
        self.put_documents(generation, &[&row]).await?;
        Ok(Some(Marked {
            watermark: to,
            token: Some((to.seq, to.embedded)),
        }))
    }

    async fn write(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> Result<(), ServerError> {
        Ok(self.write_changes(generation, tenant, changes).await?)
    }

    async fn count(&self, generation: &Generation, tenant: &Tenant) -> Result<u64, ServerError> {
        let filter = filter::of_tenant(tenant);
        Ok(self.client.count(&generation.0, filter).await?)
    }

    async fn entries(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<Entry>, ServerError> {
        Ok(self.list(generation, tenant, after, limit).await?)
    }

    async fn vectors(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        model: &ModelId,
        ids: &[Id],
    ) -> Result<Option<HashMap<Id, Vec<f32>>>, ServerError> {
        let held = self.held_vectors(generation, tenant, model, ids).await?;
        Ok(Some(held))
    }

    async fn find(
        &self,
        generation: &Generation,
        asked: &Question<'_>,
    ) -> Result<ServerAnswer, ServerError> {
        Ok(self.find_documents(generation, asked).await?)
    }

    async fn speakers(
        &self,
        generation: &Generation,
        asked: &Audience<'_>,
        words: &[&str],
    ) -> Result<Vec<String>, ServerError> {
        Ok(self.find_speakers(generation, asked, words).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_sparse_vectors_are_too_old() {
        for recent in ["v2.4.0", "2.5.4", "3.0.1", "milvus_lite-3.2.2", "master"] {
            assert!(is_recent(recent), "{recent}");
        }
        for old in ["v2.3.5", "2.2.16", "1.1.1"] {
            assert!(!is_recent(old), "{old}");
        }
    }
}
