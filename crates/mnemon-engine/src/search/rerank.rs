//! The optional last look: a model reads the question and each hit together.

use mnemon_core::Grant;
use mnemon_core::rank::after_rerank;

use crate::records::Records;
use crate::search::retrieve::{Hit, Query};

/// Hits that the model reads. It takes about a millisecond for each.
const RERANKED: usize = 30;

impl Records {
    /// How many hits must be fetched for the model to choose from.
    pub(crate) fn rerank_depth(&self) -> usize {
        self.reranker.as_ref().map_or(0, |_| RERANKED)
    }

    /// The hits in the order that the model and the arms together give them. A model that fails,
    /// or says what is no number, costs the last look, not the search; a notice says so.
    pub(crate) async fn rerank(
        &self,
        grant: &Grant,
        query: &Query,
        mut hits: Vec<Hit>,
    ) -> Vec<Hit> {
        let Some(reranker) = &self.reranker else {
            return hits;
        };
        let rest = hits.split_off(hits.len().min(RERANKED));
        let texts: Vec<&str> = hits.iter().map(|hit| hit.record.content.as_str()).collect();
        let said = match reranker.scores(&query.text, &texts).await {
            Ok(said) if said.len() == hits.len() && said.iter().all(|s| s.is_finite()) => said,
            other => {
                let why = other.err().map(|error| error.to_string());
                let why = why.unwrap_or_else(|| "it did not give each a number".to_owned());
                let what = "The reranker failed, so the hits have the order of words and meaning";
                grant.notices().add(format!("{what}: {why}."));
                Vec::new()
            }
        };
        let least = said.iter().copied().fold(f32::INFINITY, f32::min);
        let most = said.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if most > least {
            let fused = |hit: &Hit| hit.parts.map_or(0.0, |parts| parts.score());
            let best = hits.first().map_or(0.0, fused);
            let mut reordered: Vec<(f32, Hit)> = Vec::with_capacity(hits.len());
            for (mut hit, said) in hits.into_iter().zip(said) {
                let reread = (said - least) / (most - least);
                if let Some(parts) = &mut hit.parts {
                    parts.reread = Some(reread);
                }
                reordered.push((after_rerank(fused(&hit), best, reread), hit));
            }
            reordered.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            hits = reordered.into_iter().map(|(_, hit)| hit).collect();
            // The best place has the best score, whichever hit the model put there.
            let mut scores: Vec<f64> = hits.iter().map(|hit| hit.score).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            hits.iter_mut()
                .zip(scores)
                .for_each(|(hit, score)| hit.score = score);
        }
        hits.extend(rest);
        hits
    }
}
