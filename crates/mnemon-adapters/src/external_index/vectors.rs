//! Comparing the vectors of an index with those of its store.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use mnemon_core::embed::ModelId;
use mnemon_core::{CodedVector, Grant, Id};

use super::document::Vector;
use super::follow::PAGE;
use super::{ExternalIndex, Generation, ServerError, Watermark};

/// Vectors that are asked for at once. Those of a model with 4,096 numbers take about 8 MB as JSON.
const VECTORS: usize = 100;
/// The difference between two numbers that counts as none: servers may round.
const ROUNDING: f32 = 1e-4;

/// How the vectors of an index and its store differ.
pub(super) struct VectorDifferences {
    /// Vectors that were compared; `None` if the server does not return vectors.
    pub(super) compared: Option<u64>,
    pub(super) misplaced: BTreeSet<Id>,
}

/// The vectors of a page, by the name and length of their model.
type Placed = BTreeMap<(String, usize), Vec<(Id, Vector)>>;

impl ExternalIndex {
    /// Compares the vectors of the store with those of the index, as far as the index follows it.
    /// Documents that are known to differ are left out.
    pub(super) async fn compare_vectors(
        &self,
        generation: &Generation,
        grant: &Grant,
        followed: Watermark,
        differing: &HashSet<&Id>,
    ) -> Result<VectorDifferences, ServerError> {
        let mut found = VectorDifferences {
            compared: Some(0),
            misplaced: BTreeSet::new(),
        };
        let mut seen: HashSet<Id> = HashSet::new();
        let mut after = 0;
        loop {
            let page = self.store.stored_changes(grant, after, PAGE).await?;
            let mut placed = Placed::new();
            for change in page.changes.iter().filter(|it| it.is_current) {
                let is_meant = change.seq <= followed.seq && !differing.contains(&change.id);
                if is_meant && let Some(vector) = &change.vector {
                    add(&mut placed, &change.id, vector);
                }
            }
            self.compare_page(generation, grant, placed, &mut seen, &mut found)
                .await?;
            after = page.reached();
            if !page.more || found.compared.is_none() {
                break;
            }
        }
        let mut after = 0;
        while found.compared.is_some() {
            let page = self.store.embedded_after(grant, after, PAGE).await?;
            let mut placed = Placed::new();
            for (record, vector) in &page.records {
                if record.seq <= followed.seq && !differing.contains(&record.id) {
                    add(&mut placed, &record.id, vector);
                }
            }
            self.compare_page(generation, grant, placed, &mut seen, &mut found)
                .await?;
            after = page.reached;
            if !page.more {
                break;
            }
        }
        Ok(found)
    }

    async fn compare_page(
        &self,
        generation: &Generation,
        grant: &Grant,
        placed: Placed,
        seen: &mut HashSet<Id>,
        found: &mut VectorDifferences,
    ) -> Result<(), ServerError> {
        for ((name, dimension), mut expected) in placed {
            let model = ModelId { name, dimension };
            expected.retain(|(id, _)| seen.insert(id.clone()));
            for part in expected.chunks(VECTORS) {
                let ids: Vec<Id> = part.iter().map(|(id, _)| id.clone()).collect();
                let held = self
                    .server
                    .vectors(generation, grant.tenant(), &model, &ids);
                let Some(held) = held.await? else {
                    found.compared = None;
                    return Ok(());
                };
                let differs = |(id, vector): &&(Id, Vector)| {
                    let held = held.get(id);
                    !held.is_some_and(|held| is_same(&vector.values, held))
                };
                let misplaced = part.iter().filter(differs).map(|(id, _)| id.clone());
                found.misplaced.extend(misplaced);
                found.compared = found.compared.map(|count| count + part.len() as u64);
            }
        }
        Ok(())
    }
}

fn add(placed: &mut Placed, id: &Id, vector: &CodedVector) {
    if let Some(vector) = Vector::of(vector) {
        let model = (vector.model.name.clone(), vector.model.dimension);
        placed.entry(model).or_default().push((id.clone(), vector));
    }
}

fn is_same(one: &[f32], other: &[f32]) -> bool {
    let mut pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.all(|(one, other)| (one - other).abs() <= ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_the_same_but_for_rounding() {
        assert!(is_same(&[0.6, 0.8], &[0.600_01, 0.8]));
        assert!(!is_same(&[0.6, 0.8], &[0.61, 0.8]));
        assert!(!is_same(&[0.6, 0.8], &[0.6]));
        assert!(!is_same(&[0.6], &[f32::NAN]));
    }
}
