//! Vectors: made when a record is written, or later.

use mnemon_core::embed::{EmbedError, Embedder};
use mnemon_core::vector::{VectorError, normalise};
use mnemon_core::{Ctx, Embedding, Grant, Id, Record, Right};
use serde::Serialize;

use crate::records::{Error, Records};

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

impl Records {
    /// Vectors for records about to be written. A write never fails because of its vectors: a
    /// record without one is found by its words, a notice says so, and upkeep tries again.
    pub(crate) async fn vectors(&self, ctx: &Ctx, records: &[&Record]) -> Vec<(Id, Embedding)> {
        let Some(embedder) = self.embedders.first() else {
            return Vec::new();
        };
        let mut vectors = Vec::with_capacity(records.len());
        let mut failure = None;
        for batch in records.chunks(self.limits().embed_batch) {
            let texts: Vec<&str> = batch.iter().map(|record| record.content.as_str()).collect();
            let made = match ask(embedder.as_ref(), &texts).await {
                Ok(made) => made,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            for (record, made) in batch.iter().zip(made) {
                match made {
                    Ok(made) => vectors.extend(made.map(|made| (record.id.clone(), made))),
                    Err(error) => failure = Some(error),
                }
            }
        }
        if let Some(error) = failure {
            ctx.notices.add(format!(
                "Records were written without a vector and are found by their words only, until \
                 upkeep embeds them: {error}."
            ));
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
            let most = left.min(self.limits().embed_batch).min(self.limits().page);
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
        grant: &Grant,
        embedder: &dyn Embedder,
        records: &[Record],
    ) -> Result<u64, Error> {
        let texts: Vec<&str> = records
            .iter()
            .map(|record| record.content.as_str())
            .collect();
        let made = ask(embedder, &texts).await?;
        let mut vectors = Vec::with_capacity(made.len());
        for (record, made) in records.iter().zip(made) {
            vectors.extend(made?.map(|embedding| (record.seq, embedding)));
        }
        Ok(self.store.embed(grant, vectors).await? as u64)
    }
}

/// One answer per text, each of unit length and of the model's dimension, or what is wrong with
/// it: whatever an embedder says, nothing else gets into a store or a search.
pub(crate) async fn ask(
    embedder: &dyn Embedder,
    texts: &[&str],
) -> Result<Vec<Result<Option<Embedding>, EmbedError>>, EmbedError> {
    let made = embedder.embed(texts).await?;
    if made.len() != texts.len() {
        let (asked, got) = (texts.len(), made.len());
        return Err(EmbedError::BadAnswer {
            what: format!("{got} vectors for {asked} texts"),
            source: None,
        });
    }
    let made = made.into_iter().enumerate();
    Ok(made
        .map(|(index, vector)| {
            let Some(vector) = vector else {
                return Ok(None);
            };
            checked(embedder, index, vector)
        })
        .collect())
}

fn checked(
    embedder: &dyn Embedder,
    index: usize,
    mut vector: Vec<f32>,
) -> Result<Option<Embedding>, EmbedError> {
    let model = embedder.model();
    if vector.len() != model.dimension {
        return Err(EmbedError::WrongDimension {
            expected: model.dimension,
            got: vector.len(),
        });
    }
    match normalise(&mut vector) {
        Ok(()) => Ok(Some(Embedding {
            model: model.clone(),
            vector,
        })),
        // No direction: it means nothing to the model.
        Err(VectorError::Zero) => Ok(None),
        Err(_) => Err(EmbedError::NotFinite { index }),
    }
}
