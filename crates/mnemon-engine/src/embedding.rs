//! Vectors: made when a record is written, or later.

use mnemon_core::embed::Embedder;
use mnemon_core::{Ctx, Embedding, Id, Record, Right, limits};
use serde::Serialize;

use crate::{Error, Memory};

/// Records whose vectors are made in one go.
const BATCH: usize = 256;

/// How far re-embedding has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Embedded {
    /// Records that got a vector of the current model.
    pub embedded: u64,
    /// Whether some still have none.
    pub more: bool,
    /// The last record that was looked at, by its `seq`: what means nothing to the model gets no
    /// vector, and must not be looked at again and again.
    #[serde(skip)]
    pub reached: u64,
}

impl Memory {
    /// Vectors for records about to be written. A write never fails because of its vectors: what
    /// has none is found by its words, and upkeep tries again.
    pub(crate) async fn vectors(&self, records: &[&Record]) -> Vec<(Id, Embedding)> {
        let Some(embedder) = self.embedders.first() else {
            return Vec::new();
        };
        let mut vectors = Vec::with_capacity(records.len());
        for batch in records.chunks(BATCH) {
            let texts: Vec<&str> = batch.iter().map(|record| record.content.as_str()).collect();
            let Ok(made) = embedder.embed(&texts).await else {
                continue;
            };
            let model = embedder.model();
            vectors.extend(batch.iter().zip(made).filter_map(|(record, vector)| {
                let embedding = Embedding {
                    model: model.clone(),
                    vector: vector?,
                };
                Some((record.id.clone(), embedding))
            }));
        }
        vectors
    }

    /// Gives up to `limit` records that lack one a vector of the current model. It can be
    /// interrupted at any point and goes on where it was; until it is done, the vectors of other
    /// models that this memory knows are searched as well.
    pub async fn embed_missing(&self, ctx: &Ctx, limit: usize) -> Result<Embedded, Error> {
        self.embed_after(ctx, 0, limit).await
    }

    /// The same for records that were written after this `seq`.
    pub async fn embed_after(
        &self,
        ctx: &Ctx,
        mut after: u64,
        limit: usize,
    ) -> Result<Embedded, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        let Some(embedder) = self.embedders.first() else {
            return Ok(Embedded::default());
        };
        embedder.ready().await?;
        let mut done = Embedded::default();
        let mut left = limit;
        while left > 0 {
            let most = left.min(BATCH).min(limits::PAGE);
            let records = self
                .store
                .lacking(&grant, embedder.model(), after, most)
                .await?;
            let Some(last) = records.last() else {
                return Ok(done);
            };
            after = last.seq;
            done.reached = after;
            left = left.saturating_sub(records.len());
            done.embedded += self
                .embed_records(&grant, embedder.as_ref(), &records)
                .await?;
        }
        let next = self
            .store
            .lacking(&grant, embedder.model(), after, 1)
            .await?;
        done.more = !next.is_empty();
        Ok(done)
    }

    async fn embed_records(
        &self,
        grant: &mnemon_core::Grant,
        embedder: &dyn Embedder,
        records: &[Record],
    ) -> Result<u64, Error> {
        let texts: Vec<&str> = records
            .iter()
            .map(|record| record.content.as_str())
            .collect();
        let made = embedder.embed(&texts).await?;
        let vectors = records.iter().zip(made).filter_map(|(record, vector)| {
            let embedding = Embedding {
                model: embedder.model().clone(),
                vector: vector?,
            };
            Some((record.seq, embedding))
        });
        let vectors: Vec<(u64, Embedding)> = vectors.collect();
        Ok(self.store.embed(grant, vectors).await? as u64)
    }
}
