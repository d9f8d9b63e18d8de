//! The search port.

use std::collections::HashMap;

use async_trait::async_trait;
use mnemon_core::{
    Answer, Filter, Grant, Id, IndexCapabilities, Invalid, Match, Probe, Right, SearchIndex,
    StoreError,
};

use super::follow::SEARCH_WRITES;
use super::{Audience, ExternalIndex, Found, Question, REBUILDS, ServerAnswer, ServerError};

#[async_trait]
impl SearchIndex for ExternalIndex {
    fn capabilities(&self) -> IndexCapabilities {
        self.server.capabilities()
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        grant.require(Right::Read)?;
        check_vectors(probe)?;
        for _ in 0..REBUILDS {
            let done = self.find_once(grant, probe).await;
            if let Some(answer) = self.settle(done).await? {
                return self.verified(grant, answer).await;
            }
        }
        Err(self.rebuilt_again())
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        grant.require(Right::Read)?;
        if words.is_empty() {
            return Ok(Vec::new());
        }
        for _ in 0..REBUILDS {
            let done = self.speakers_once(grant, audience, words).await;
            if let Some(names) = self.settle(done).await? {
                return Ok(names);
            }
        }
        Err(self.rebuilt_again())
    }
}

fn check_vectors(probe: &Probe) -> Result<(), Invalid> {
    for query in &probe.vectors {
        let (got, expected) = (query.vector.len(), query.model.dimension);
        if got != expected {
            let what = format!("has {got} values, not {expected}");
            return Err(Invalid::new("vector", what));
        }
    }
    Ok(())
}

impl ExternalIndex {
    async fn find_once(&self, grant: &Grant, probe: &Probe) -> Result<ServerAnswer, ServerError> {
        let generation = self.generation().await?;
        let followed = self.follow(&generation, grant, SEARCH_WRITES).await?;
        if followed.behind > 0 {
            grant.notices().add(format!(
                "The index {} is {} changes behind its store, so recent records may be missing; \
                 the next searches bring it up to date.",
                self.place(),
                followed.behind,
            ));
        }
        let asked = Question {
            tenant: grant.tenant(),
            probe,
            now: grant.now(),
        };
        self.server.find(&generation, &asked).await
    }

    async fn speakers_once(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, ServerError> {
        let generation = self.generation().await?;
        self.follow(&generation, grant, SEARCH_WRITES).await?;
        let audience = audience.audience_only();
        let asked = Audience {
            tenant: grant.tenant(),
            filter: &audience,
            now: grant.now(),
        };
        self.server.speakers(&generation, &asked, words).await
    }

    /// The answer without documents of versions that the store does not have now.
    async fn verified(&self, grant: &Grant, answer: ServerAnswer) -> Result<Answer, StoreError> {
        let mut matches: HashMap<Id, (u64, Match)> = HashMap::new();
        let mut order = Vec::new();
        let mut arm = |found: Vec<Found>, set: fn(&mut Match, f32)| {
            for Found { id, seq, score } in found {
                let known = matches.entry(id.clone()).or_insert_with(|| {
                    order.push(id.clone());
                    (seq, bare(id))
                });
                set(&mut known.1, score);
            }
        };
        arm(positive(answer.words), |found, score| {
            found.words = Some(score);
        });
        arm(positive(answer.meaning), |found, score| {
            let nearest = found.meaning.map_or(score, |known| known.max(score));
            found.meaning = Some(nearest);
        });
        arm(answer.newest, |_, _| {});
        let mut verified = Vec::with_capacity(order.len());
        for page in order.chunks(grant.limits().page) {
            let records = self.store.get(grant, page).await?;
            for (id, record) in page.iter().zip(records) {
                if let Some((seq, found)) = matches.remove(id)
                    && record.is_some_and(|record| record.seq == seq)
                {
                    verified.push(found);
                }
            }
        }
        Ok(Answer {
            matches: verified,
            statistics: answer.statistics,
            background: None,
        })
    }
}

fn positive(mut found: Vec<Found>) -> Vec<Found> {
    found.retain(|found| found.score > 0.0);
    found
}

fn bare(id: Id) -> Match {
    Match {
        id,
        words: None,
        meaning: None,
        features: None,
    }
}
