//! Loading candidates with their neighbours, and ranking them.

use std::collections::{HashMap, HashSet};

use mnemon_core::embed::ModelId;
use mnemon_core::index::{Doc, Index, Sampled, StoredVector, Terms, wrong_vector};
use mnemon_core::{
    Answer, Filter, Grant, Id, Kind, Namespace, Probe, Scope as RecordScope, Time, Viewer,
};
use tokio_postgres::Row;

use super::candidates::{Layout, NEIGHBOURS, REACH, described};
use super::choice::{Chosen, wanted};
use crate::store::postgres::errors::Failure;
use crate::store::postgres::feed;
use crate::store::postgres::pool::Lease;
use crate::store::postgres::reads::{OWN, call, record};
use crate::store::postgres::view::{maybe_time, number, time, word};

/// Which records are loaded.
pub(super) enum Candidates {
    /// All that the filter means.
    All(Vec<i64>),
    /// The best of many.
    Best(Vec<Chosen>),
}

/// Records that may match, with their neighbours, in the order of their numbers.
pub(super) struct Loaded {
    layout: Layout,
    rows: Vec<Row>,
    /// The words of the probe in each of them.
    terms: Vec<Terms>,
    may_match: HashSet<u64>,
    models: HashMap<i64, ModelId>,
}

impl Loaded {
    pub(super) async fn read(
        lease: &mut Lease,
        grant: &Grant,
        probe: &Probe,
        candidates: Candidates,
        models: HashMap<i64, ModelId>,
    ) -> Result<Self, Failure> {
        let layout = Layout::of(&probe.filter);
        let signed = |chosen: &[Chosen]| chosen.iter().map(|(seq, _)| seq.cast_signed()).collect();
        let call = match &candidates {
            // They are the whole audience, and so have all their neighbours with them.
            Candidates::All(seqs) if layout == Layout::Lean => layout.rows(grant, seqs.clone())?,
            Candidates::All(seqs) => layout.surroundings(grant, seqs.clone())?,
            Candidates::Best(chosen) => {
                let reaches = chosen.iter().map(|(_, reach)| super::place(*reach));
                layout.windows(grant, signed(chosen), reaches.collect())?
            }
        };
        let mut rows = Vec::new();
        for row in lease.all(call).await? {
            rows.push((number(&row, 0)?, row));
        }
        rows.sort_unstable_by_key(|(seq, _)| *seq);
        rows.dedup_by_key(|(seq, _)| *seq);
        let may_match = may_match(layout, &rows, candidates)?;
        let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
        let terms = read_terms(lease, grant, probe, layout, &rows).await?;
        Ok(Self {
            layout,
            rows,
            terms,
            may_match,
            models,
        })
    }

    /// Whether the matches lack what only the whole records have.
    pub(super) fn is_lean(&self) -> bool {
        self.layout == Layout::Lean
    }

    /// Ranks what was loaded as an index of its own.
    pub(super) fn find(
        &self,
        probe: &Probe,
        now: Time,
        within: Option<&HashSet<u64>>,
        sampled: Option<&Sampled<'_>>,
    ) -> Result<Answer, Failure> {
        let wrong = |error| Failure::from(wrong_vector(&error));
        let mut index = Index::for_one_search();
        for (row, terms) in self.rows.iter().zip(&self.terms) {
            let vector = match probe.vectors.is_empty() {
                true => None,
                false => feed::vector(row, self.layout.vector(), &self.models)?,
            };
            match self.layout {
                Layout::Lean => add_lean(&mut index, row, terms, vector.as_ref())?,
                Layout::Whole => index
                    .add(&feed::doc(row)?, terms, vector.as_ref())
                    .map_err(wrong)?,
            }
        }
        let mut may_match = self.may_match.clone();
        may_match.retain(|seq| within.is_none_or(|it| it.contains(seq)));
        let filter = match self.layout {
            Layout::Lean => seen_by_everyone(&probe.filter),
            Layout::Whole => probe.filter.clone(),
        };
        let probe = Probe {
            filter,
            ..probe.clone()
        };
        // Statistics that stand for nothing are those of a sample without records.
        let sampled = sampled.filter(|it| it.population.documents > 0);
        let found = index.find_sampled(&probe, now, Some(&may_match), sampled);
        found.map_err(wrong)
    }
}

/// The viewer of the filter sees all that was loaded, whose audience was left in the database.
fn seen_by_everyone(filter: &Filter) -> Filter {
    match filter.is_empty() {
        true => Filter::all_of_tenant(),
        false => Filter::seen_by(Viewer::ANYONE),
    }
}

/// Adds a row of [`Layout::Lean`]. Its number is its id until it is known to match.
fn add_lean(
    index: &mut Index,
    row: &Row,
    terms: &Terms,
    vector: Option<&StoredVector>,
) -> Result<(), Failure> {
    let seq = number(row, 0)?;
    let id = seq.to_string();
    let conversation: Option<i64> = row.try_get(Layout::Lean.conversation())?;
    let session = conversation.map(|it| it.to_string());
    let doc = Doc {
        seq,
        id: &id,
        user: None,
        agent: None,
        session: session.as_deref(),
        audience: None,
        scope: RecordScope::Dialog,
        kind: Kind::Note,
        namespace: Namespace::ShortTerm,
        created: time(row, Layout::Lean.created())?,
        expires: maybe_time(row, 2)?,
        importance: 0.0,
        speaker: row.try_get(3)?,
        tags: Vec::new(),
    };
    let added = index.add(&doc, terms, vector);
    added.map_err(|error| wrong_vector(&error).into())
}

/// The records that may match: candidates, and the nearest neighbours of those whose neighbours
/// have all of theirs.
fn may_match(
    layout: Layout,
    rows: &[(u64, Row)],
    candidates: Candidates,
) -> Result<HashSet<u64>, Failure> {
    let chosen: HashMap<u64, usize> = match candidates {
        Candidates::All(seqs) => {
            let seqs = seqs.into_iter().map(i64::cast_unsigned);
            seqs.map(|seq| (seq, REACH)).collect()
        }
        Candidates::Best(chosen) => chosen.into_iter().collect(),
    };
    let mut conversations: HashMap<i64, Vec<(i64, u64)>> = HashMap::new();
    let mut may_match = HashSet::new();
    for (seq, row) in rows {
        if chosen.contains_key(seq) {
            may_match.insert(*seq);
        }
        if let Some(conversation) = row.try_get(layout.conversation())? {
            let said = conversations.entry(conversation).or_default();
            said.push((row.try_get(layout.created())?, *seq));
        }
    }
    for said in conversations.values_mut() {
        said.sort_unstable();
        for (at, (_, seq)) in said.iter().enumerate() {
            if chosen.get(seq) == Some(&REACH) {
                let around = said.iter().skip(at.saturating_sub(NEIGHBOURS));
                let count = NEIGHBOURS + at.min(NEIGHBOURS) + 1;
                may_match.extend(around.take(count).map(|(_, seq)| *seq));
            }
        }
    }
    Ok(may_match)
}

/// The words of the probe in each row. Terms that another version wrote are made again.
async fn read_terms(
    lease: &mut Lease,
    grant: &Grant,
    probe: &Probe,
    layout: Layout,
    rows: &[Row],
) -> Result<Vec<Terms>, Failure> {
    let wanted = wanted(probe);
    let mut terms = Vec::with_capacity(rows.len());
    let mut foreign: HashMap<i64, usize> = HashMap::new();
    for row in rows {
        let read = Terms::of_wanted(row.try_get(layout.terms())?, &wanted);
        if read.is_none() {
            foreign.insert(row.try_get(0)?, terms.len());
        }
        terms.push(read.unwrap_or_default());
    }
    if foreign.is_empty() {
        return Ok(terms);
    }
    let sql = format!("SELECT doc FROM mnemon.records WHERE tenant = {OWN} AND seq = ANY($2)");
    let seqs: Vec<i64> = foreign.keys().copied().collect();
    for row in lease.all(call(grant, sql)?.with(seqs)).await? {
        let record = record(lease.place(), row.try_get(0)?)?;
        let at = foreign.get(&record.seq.cast_signed());
        if let Some(made) = at.and_then(|at| terms.get_mut(*at)) {
            *made = Terms::of(&record);
        }
    }
    Ok(terms)
}

/// Gives the matches of [`Layout::Lean`] what they lack, and ends the transaction.
pub(super) async fn describe(
    lease: &mut Lease,
    grant: &Grant,
    answer: &mut Answer,
) -> Result<(), Failure> {
    let features = answer.matches.iter().filter_map(|it| it.features.as_ref());
    let seqs = features.map(|it| it.seq.cast_signed()).collect();
    let calls = [described(grant, seqs)?];
    let answers = lease.pipeline(None, &calls, Some("ROLLBACK")).await?;
    let mut known: HashMap<u64, (Id, f64)> = HashMap::new();
    for row in answers.iter().flatten() {
        known.insert(number(row, 0)?, (word(row, 1)?, row.try_get(2)?));
    }
    answer.matches.retain_mut(|found| {
        let seq = found.features.as_ref().map(|it| it.seq);
        let Some((id, importance)) = seq.and_then(|seq| known.remove(&seq)) else {
            return false;
        };
        found.id = id;
        if let Some(features) = &mut found.features {
            features.importance = importance as f32;
        }
        true
    });
    Ok(())
}
