//! One search over everything that a caller may see, whichever stores it is kept on.

use futures::future::join;
use mnemon_core::{Ctx, Filter, Id, Record, Scope};

use super::Memory;
use crate::records::{Error, Records};
use crate::search::external::merge;
use crate::search::{Hit, Query};

impl Memory {
    /// The records that answer the query best: notes, facts, decisions, documents, messages and
    /// skills, as far as the filter means them. A query that is the id of a record finds that
    /// record. Scores are comparable, so hits of several stores are merged by them.
    pub async fn search(&self, ctx: &Ctx, query: &Query) -> Result<Vec<Hit>, Error> {
        if let Some(record) = self.named(ctx, query).await? {
            return Ok(vec![Hit {
                score: 1.0,
                parts: None,
                matched: Vec::new(),
                external: None,
                record,
            }]);
        }
        let records = self.records_of(Scope::Semantic);
        let external = self.external_knowledge();
        let external = external.search(records, ctx, query);
        let (own, external) = join(self.search_stores(ctx, query), external).await;
        Ok(merge(own?, external, query.limit))
    }

    async fn search_stores(&self, ctx: &Ctx, query: &Query) -> Result<Vec<Hit>, Error> {
        let stores = self.stores_of(&query.filter.scopes);
        if let [(records, _)] = stores.as_slice() {
            return records.search(ctx, query).await;
        }
        let mut hits = Vec::new();
        for (records, scopes) in stores {
            let filter = Filter {
                scopes,
                ..query.filter.clone()
            };
            let query = Query {
                filter,
                ..query.clone()
            };
            hits.extend(records.search(ctx, &query).await?);
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        hits.truncate(query.limit);
        Ok(hits)
    }

    /// The record that the query names by its id, if it looks like one that the program made.
    async fn named(&self, ctx: &Ctx, query: &Query) -> Result<Option<Record>, Error> {
        let text = query.text.trim();
        let Some(id) = is_made_id(text).then(|| text.parse::<Id>().ok()).flatten() else {
            return Ok(None);
        };
        for (records, _) in self.stores_of(&[]) {
            let ids = std::slice::from_ref(&id);
            let found = records.get_seen_by(ctx, &query.filter.viewer, ids).await?;
            let mut found = found.into_iter().flatten();
            if let Some(record) = found.find(|record| query.filter.matches(record)) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The stores that keep these scopes, or all scopes, each once and with those it keeps.
    fn stores_of(&self, scopes: &[Scope]) -> Vec<(&Records, Vec<Scope>)> {
        let wanted = if scopes.is_empty() {
            Scope::ALL
        } else {
            scopes
        };
        let mut stores: Vec<(&Records, Vec<Scope>)> = Vec::new();
        for scope in wanted {
            let records = self.records_of(*scope);
            let number = records.store_number();
            match stores
                .iter_mut()
                .find(|(known, _)| known.store_number() == number)
            {
                Some((_, kept)) => kept.push(*scope),
                None => stores.push((records, vec![*scope])),
            }
        }
        stores
    }
}

/// Whether a text is an id as the program makes them: 16 hexadecimal digits, or a UUID.
pub(crate) fn is_made_id(text: &str) -> bool {
    let digits = text.bytes().filter(|byte| *byte != b'-');
    let (digits, all_hex) = digits.fold((0, true), |(count, all), byte| {
        (count + 1, all && byte.is_ascii_hexdigit())
    });
    all_hex && ((digits == 16 && text.len() == 16) || (digits == 32 && text.len() == 36))
}
