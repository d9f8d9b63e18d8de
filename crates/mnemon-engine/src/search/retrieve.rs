//! Finding: plan → find → rank → fetch.

mod distinct;
mod find;
mod similar;

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use distinct::Distinct;
use futures::future::try_join_all;
use mnemon_core::embed::EmbedError;
use mnemon_core::rank::{self, Parts, Question, Ranked, Recipe, Scale, Steps};
use mnemon_core::text::{self, query_terms};
use mnemon_core::{
    Background, Ctx, Filter, Grant, Id, Invalid, Order, Origin, Probe, QueryTerm, Record, Right,
    Scan, SimilarTerm, TermRole, Viewer, limits, speakers,
};
use serde::{Deserialize, Serialize};

use crate::records::embedding::ask;
use crate::records::project::is_of_other_project;
use crate::records::{Error, Records};

/// So many of the nearest are asked for where nothing is searched by its words, if the index finds their
/// neighbours with them. More of them gain nothing; see `docs/ranking.md`.
const NEAREST: usize = 30;

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub text: String,
    pub filter: Filter,
    pub recipe: Recipe,
    pub limit: usize,
    /// Hits that score less are left out; 0 keeps all. Without it [`rank::MIN_SCORE`] decides
    /// whether anything is known.
    pub min_score: Option<f64>,
    /// Whether to say which words of the query each hit has.
    pub explain: bool,
    /// The steps of ranking; all of them, unless their worth is measured.
    pub steps: Steps,
    /// Whether the caller waits for this search and nothing else ([`Probe::may_run_inline`]).
    pub may_run_inline: bool,
}

impl Query {
    /// A hybrid search for ten of the records that the filter means.
    pub fn new(text: impl Into<String>, filter: Filter) -> Self {
        Self {
            text: text.into(),
            filter,
            recipe: Recipe::Hybrid,
            limit: 10,
            min_score: None,
            explain: false,
            steps: Steps::ALL,
            may_run_inline: false,
        }
    }
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    pub score: f64,
    /// What each arm and each step contributed; not for the formula.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Words of the query that stand in the record, and words that count in part for one of them
    /// (`pup (for dog)`), if the query asked to explain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<String>,
    /// The external source that has it; such a text is not a record of this store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<String>,
    pub record: Record,
}

/// Records that were found, and how many others may not be shown or have gone in the meantime.
#[derive(Default)]
struct Fetched {
    hits: Vec<Hit>,
    hidden: usize,
    /// How often each record was found on average, copies included.
    repetition: usize,
}

/// When a search need not fetch any further: it has so many of which this is true.
#[derive(Clone, Copy)]
pub(crate) struct Enough {
    pub(crate) count: usize,
    pub(crate) of: fn(&Record) -> bool,
}

impl Records {
    /// Has the store read what searches need, so that the first of them does not wait for it.
    /// Nothing is recalled by that.
    pub async fn warm(&self, ctx: &Ctx) -> Result<(), Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        let probe = Probe {
            terms: QueryTerm::words_of("warm"),
            ..Probe::new(Filter::all_of_tenant(), 1)
        };
        self.index.find(&grant, &probe).await?;
        Ok(())
    }

    /// The records that answer the query best. Near-copies of a better hit come last.
    pub async fn search(&self, ctx: &Ctx, query: &Query) -> Result<Vec<Hit>, Error> {
        let filters = std::slice::from_ref(&query.filter);
        let answers = self.search_each(ctx, query, filters, None);
        Ok(answers.await?.into_iter().flatten().collect())
    }

    /// What answers the query best among the records of each of these filters, which have the
    /// audience of the query's own. What it asks is read and placed once.
    pub(crate) async fn search_each(
        &self,
        ctx: &Ctx,
        query: &Query,
        filters: &[Filter],
        enough: Option<Enough>,
    ) -> Result<Vec<Vec<Hit>>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        check(query, self.limits().hits)?;
        self.recalled.store(true, Ordering::Relaxed);
        if query.recipe == Recipe::Formula {
            let answers = filters.iter().map(|each| self.by_formula(ctx, query, each));
            return try_join_all(answers).await;
        }
        if query.recipe == Recipe::Recent && query.text.trim().is_empty() {
            let answers = filters.iter().map(|each| self.newest(ctx, query, each));
            return try_join_all(answers).await;
        }
        if !self.store.capabilities().keeps_vectors {
            match self.embed_missing(ctx, usize::MAX).await {
                Ok(_) => {}
                // Records without a vector are still found by their words.
                Err(Error::Embed(error)) => without_meaning(&grant, &error),
                // Who may only read makes no vectors.
                Err(Error::Denied(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let words = speakers::lookup_words(&query.text);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let audience = query.filter.audience_only();
        let speakers = self.index.speakers(&grant, &audience, &words).await?;
        let question = Question {
            asker: asker(&query.filter),
            ..Question::read(&query.text, &speakers, ctx.now, query.steps)
        };
        let probe = self.probe(&grant, query, &question).await;
        let says_nothing = probe.vectors.is_empty() || !has_letters(&query.text);
        if probe.terms.is_empty() && probe.asked.is_empty() && says_nothing {
            // A query that says nothing is not one for the newest records.
            return Ok(filters.iter().map(|_| Vec::new()).collect());
        }
        let answers = filters.iter().map(|each| {
            let probe = Probe {
                filter: each.clone(),
                ..probe.clone()
            };
            self.answer(ctx, &grant, query, &question, probe, enough)
        });
        try_join_all(answers).await
    }

    /// The hits of one probe.
    async fn answer(
        &self,
        ctx: &Ctx,
        grant: &Grant,
        query: &Query,
        question: &Question,
        mut probe: Probe,
        enough: Option<Enough>,
    ) -> Result<Vec<Hit>, Error> {
        let (depth, deepest) = (probe.depth, grant.limits().search_depth_most);
        let mut hits = loop {
            let found = self.candidates(grant, &probe).await?;
            let scale = self.scale(question, found.background);
            let ranked = rank::rank(&found.list, query.recipe, question, &scale, ctx.now);
            let mut ranked = rank::known(ranked, query.min_score.map(|least| least as f32));
            if query.recipe == Recipe::Recent {
                ranked.sort_by(rank::newest_first);
            }
            let fetched = self.distinct(grant, ranked, query, &probe.filter, enough);
            let fetched = fetched.await?;
            let hits = fetched.hits;
            let hidden = fetched.hidden + found.left_out;
            // Records that may not be shown must not crowd out those that may,
            let crowded = hidden > 0 && hits.len() < query.limit;
            // and copies leave room for as many distinct records as there would be without them.
            let needed = match crowded {
                true => probe.depth.saturating_mul(8),
                false => depth.saturating_mul(fetched.repetition),
            };
            let needed = needed.min(deepest);
            if needed <= probe.depth || found.is_all {
                if hits.len() < query.limit && found.list.len() + found.left_out >= deepest {
                    ctx.notices.add(format!(
                        "Most of the best {deepest} matches may not be shown; the search looked \
                         no deeper."
                    ));
                }
                break hits;
            }
            probe.depth = needed;
        };
        level(&mut hits, query.recipe);
        if query.explain {
            let words = words_of(&query.text);
            for hit in &mut hits {
                hit.matched = matched(&words, &probe.similar, &hit.record);
            }
        }
        Ok(hits)
    }

    /// What the evidence for a hit is measured against.
    fn scale(&self, question: &Question, measured: Option<Background>) -> Scale {
        let query = question.rest.as_str();
        let says_nothing = question.asks_only_for_days() || says_nothing(query);
        let embedder = self.embedders.first().filter(|_| !says_nothing);
        let fluency = embedder.map_or(0.0, |embedder| embedder.fluency(query));
        Scale::new(query, fluency, measured)
    }

    /// The newest records that the filter means, newest first. Unlike a list it finds tags by the
    /// index, so that it reads no more than it returns.
    pub async fn latest(
        &self,
        ctx: &Ctx,
        filter: Filter,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        let probe = Probe::new(filter, limit);
        let index = self.index.capabilities();
        if !index.deletes_at_once || !index.filters.cover(&probe.filter) {
            let scan = Scan::new(probe.filter, limit);
            return Ok(self.store.scan(&grant, &scan).await?.records);
        }
        let found = self.index.find(&grant, &probe).await?;
        let ids: Vec<Id> = found.matches.into_iter().map(|found| found.id).collect();
        let mut records = Vec::with_capacity(ids.len());
        for page in ids.chunks(grant.limits().page) {
            let page = self.store.get(&grant, page).await?.into_iter().flatten();
            records.extend(page.filter(|record| probe.filter.matches(record)));
        }
        Ok(records)
    }

    /// What the stores are asked. An embedder that fails costs the meaning arm, not the search.
    async fn probe(&self, grant: &Grant, query: &Query, question: &Question) -> Probe {
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut vectors = Vec::new();
        if query.recipe != Recipe::Meaning {
            terms = QueryTerm::words_of(&question.rest);
            terms.extend(named_terms(question, &terms));
            terms.extend(dated_terms(question, &terms));
        }
        if query.recipe != Recipe::Words {
            for embedder in &self.embedders {
                let made = ask(embedder.as_ref(), &[question.rest.as_str()]).await;
                match made.and_then(|made| made.into_iter().collect::<Result<Vec<_>, _>>()) {
                    Ok(made) => vectors.extend(made.into_iter().flatten()),
                    Err(error) => without_meaning(grant, &error),
                }
            }
        }
        let embedder = self.embedders.first().filter(|_| query.steps.similar_words);
        let similar = embedder.map_or_else(Vec::new, |embedder| {
            similar::terms(embedder.as_ref(), &question.rest, &terms)
        });
        let depth = match terms.is_empty() && self.index.capabilities().neighbour_context {
            true => self.limits().search_depth.min(NEAREST),
            false => self.limits().search_depth,
        };
        Probe {
            filter: Filter::all_of_tenant(),
            terms,
            similar,
            vectors,
            asked: question.dates.clone(),
            rarest: None,
            after_question: query.steps.after_question,
            depth: depth.max(query.limit * 2),
            may_run_inline: query.may_run_inline,
        }
    }

    /// The best of them, as they are now; copies come last. More are looked at only where some are
    /// copies or have gone in the meantime.
    async fn distinct(
        &self,
        grant: &Grant,
        ranked: Vec<Ranked>,
        query: &Query,
        filter: &Filter,
        enough: Option<Enough>,
    ) -> Result<Fetched, Error> {
        let (limit, page) = (query.limit, grant.limits().page);
        let (wanted, step) = match (self.rerank_depth(), enough) {
            (0, Some(enough)) => (limit, enough.count.min(limit)),
            (0, None) => (limit, limit),
            // It chooses from all of them.
            (most, _) => (most.max(limit * 2), most.max(limit * 2)),
        };
        let mut distinct = Distinct::new(wanted, enough, query.steps.copies);
        let mut hidden = 0;
        for chunk in ranked.chunks(step.clamp(1, page)) {
            let fetched = self.fetch(grant, chunk, filter).await?;
            hidden += fetched.hidden;
            fetched.hits.into_iter().for_each(|hit| distinct.push(hit));
            if distinct.is_full() || distinct.has_enough() {
                break;
            }
        }
        let repetition = distinct.repetition();
        let (hits, copies) = distinct.into_parts();
        let mut hits = self.rerank(grant, query, hits).await;
        hits.extend(copies);
        hits.truncate(limit);
        Ok(Fetched {
            hits,
            hidden,
            repetition,
        })
    }

    /// The records themselves, as they are now: what has gone in the meantime is left out.
    async fn fetch(
        &self,
        grant: &Grant,
        ranked: &[Ranked],
        filter: &Filter,
    ) -> Result<Fetched, Error> {
        let ids: Vec<Id> = ranked.iter().map(|ranked| ranked.id.clone()).collect();
        let records = self.store.get(grant, &ids).await?;
        let mut fetched = Fetched::default();
        for (ranked, record) in ranked.iter().zip(records) {
            let shown = |record: &Record| filter.matches(record) && self.shows(record);
            let Some(record) = record.filter(shown) else {
                fetched.hidden += 1;
                continue;
            };
            fetched.hits.push(Hit {
                score: f64::from(ranked.score),
                parts: Some(ranked.parts),
                matched: Vec::new(),
                external: None,
                record,
            });
        }
        Ok(fetched)
    }

    /// Whether a search may show the record: entries of another project's files are not for this
    /// one, and our own books, which have no words, are for nobody.
    fn shows(&self, record: &Record) -> bool {
        let own = self.project_tag.as_deref();
        let is_book = record.origin == Origin::Derived && record.content.is_empty();
        !is_book && own.is_none_or(|own| !is_of_other_project(record, own))
    }

    async fn newest(&self, ctx: &Ctx, query: &Query, filter: &Filter) -> Result<Vec<Hit>, Error> {
        let scan = Scan::new(filter.clone(), query.limit);
        let mut records = Vec::new();
        let take = |page: Vec<Record>| {
            records.extend(page.into_iter().filter(|record| self.shows(record)));
            records.len() < query.limit
        };
        self.each_page(ctx, scan, take).await?;
        records.truncate(query.limit);
        let hits = records.into_iter().map(|record| Hit {
            // Each of them is what was asked for.
            score: 1.0,
            parts: None,
            matched: Vec::new(),
            external: None,
            record,
        });
        Ok(hits.collect())
    }

    /// The formula has no index: it reads every record that the filter means.
    async fn by_formula(
        &self,
        ctx: &Ctx,
        query: &Query,
        filter: &Filter,
    ) -> Result<Vec<Hit>, Error> {
        let tokens = rank::formula_tokens(&query.text);
        let scan = Scan {
            order: Order::Written,
            ..Scan::new(filter.clone(), self.policy.limits.page)
        };
        let (mut read, most) = (0, self.policy.limits.formula_reads);
        let mut hits: Vec<Hit> = Vec::new();
        let take = |page: Vec<Record>| {
            read += page.len();
            let shown = page.into_iter().filter(|record| self.shows(record));
            hits.extend(shown.map(|record| Hit {
                score: rank::formula(&record, &tokens, ctx.now),
                parts: None,
                matched: Vec::new(),
                external: None,
                record,
            }));
            read < most
        };
        if self.each_page(ctx, scan, take).await? {
            ctx.notices.add(format!(
                "The recipe `formula` compared the first {read} records only; narrow the \
                 filter to reach the others."
            ));
        }
        let least = query.min_score.unwrap_or(0.0);
        hits.retain(|hit| hit.score > 0.0 && hit.score >= least);
        // Stable: equals stay in the order they were written.
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(query.limit);
        Ok(hits)
    }
}

fn check(query: &Query, hits: usize) -> Result<(), Invalid> {
    if query.text.trim().is_empty() && query.recipe != Recipe::Recent {
        return Err(Invalid::new(
            "query",
            "is empty; say what to look for, or use the recipe `recent`",
        ));
    }
    if query.text.len() > limits::QUERY_BYTES {
        let (bytes, most) = (query.text.len(), limits::QUERY_BYTES);
        return Err(Invalid::new(
            "query",
            format!("has {bytes} bytes, at most {most} are allowed"),
        ));
    }
    if !(1..=hits).contains(&query.limit) {
        let what = format!("is {}, it must lie between 1 and {hits}", query.limit);
        return Err(Invalid::new("limit", what));
    }
    if let Some(least) = query.min_score
        && !(0.0..=1.0).contains(&least)
    {
        let what = format!("is {least}, it must lie between 0 and 1");
        return Err(Invalid::new("min_score", what));
    }
    Ok(())
}

fn has_letters(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// The user who asks.
fn asker(filter: &Filter) -> Option<String> {
    let viewer = match &filter.viewer {
        Viewer::Person { user, .. } => user.clone(),
        Viewer::Tenant => None,
    };
    filter.owner.user.clone().or(viewer)
}

/// Whether there are only stop words, which mean the same in every text.
fn says_nothing(text: &str) -> bool {
    text::analyse(text).terms().all(|term| term.stop)
}

/// The terms of the names in the question that are not among its other terms.
fn named_terms(question: &Question, known: &[QueryTerm]) -> Vec<QueryTerm> {
    let terms = question.named.iter().flat_map(|name| query_terms(name));
    let terms = terms.filter(|term| known.iter().all(|known| known.text != term.text));
    let terms = terms.map(|term| QueryTerm {
        text: term.text,
        weight: rank::NAME_WEIGHT * term.weight,
        role: TermRole::Speaker,
    });
    terms.collect()
}

/// The words for the days in the question: a record may write them as the question does.
fn dated_terms(question: &Question, known: &[QueryTerm]) -> Vec<QueryTerm> {
    // `Yesterday` in a record is another day.
    let is_written = question
        .dated
        .contains(|c: char| c.is_ascii_digit() || c.is_uppercase());
    let dated = if is_written {
        question.dated.as_str()
    } else {
        ""
    };
    let terms = QueryTerm::words_of(dated).into_iter();
    let terms = terms.filter(|term| known.iter().all(|known| known.text != term.text));
    let terms = terms.map(|term| QueryTerm {
        weight: rank::DATE_WEIGHT * term.weight,
        ..term
    });
    terms.collect()
}

/// Reports that a search went on without vectors.
fn without_meaning(grant: &Grant, error: &EmbedError) {
    grant.notices().add(format!(
        "The search went without an embedder and may miss records that use other words: {error}."
    ));
}

/// The distinct words of a text, as the index knows them.
fn words_of(text: &str) -> Vec<String> {
    let terms = query_terms(text);
    let words = terms.into_iter().filter(|term| !term.stop);
    words.map(|term| term.text).collect()
}

/// The words of the query that the record itself has, and those that count for one of them.
fn matched(terms: &[String], similar: &[SimilarTerm], record: &Record) -> Vec<String> {
    let mut own: HashSet<String> = words_of_record(record);
    let matched = terms.iter().filter(|term| own.remove(*term));
    // The mark of a spelled-out form is for the index, not for people.
    let matched = matched.map(|term| term.trim_start_matches('ǀ').to_owned());
    let mut matched: Vec<String> = matched.collect();
    let similar = similar.iter().filter(|similar| own.contains(&similar.text));
    matched.extend(similar.map(|similar| format!("{} (for {})", similar.text, similar.of)));
    matched
}

fn words_of_record(record: &Record) -> HashSet<String> {
    let mut texts = vec![record.content.as_str()];
    texts.extend(record.tags.iter().map(String::as_str));
    texts.extend(record.summary.as_deref());
    let terms = texts.into_iter().flat_map(text::index_terms);
    terms.map(|term| term.text).collect()
}

/// Scores do not rise from hit to hit: a near-copy that comes last counts no more than the hits
/// before it.
fn level(hits: &mut [Hit], recipe: Recipe) {
    let mut most = f64::INFINITY;
    for hit in hits.iter_mut().filter(|_| recipe != Recipe::Recent) {
        most = hit.score.min(most);
        hit.score = most;
    }
}
