//! Finding documents in a version of a table.

use std::collections::{BTreeSet, HashMap};

use futures::TryStreamExt;
use lance::dataset::scanner::{ColumnOrdering, Scanner};
use lance::deps::arrow_array::{Float32Array, RecordBatch};
use lance::{Dataset, Result};
use mnemon_adapters::external_index::{Audience, Entry, Found, Question, ServerAnswer};
use mnemon_core::{Embedding, Id, Probe, Statistics, limits};

use crate::rows::{self, TermColumns};
use crate::words::{Best, Counts, Query, Scorer};
use crate::{filter, schema};

/// Rows that a scan reads at once.
const ROWS: usize = 4096;

pub(super) async fn documents(table: Dataset, asked: &Question<'_>) -> Result<ServerAnswer> {
    let probe = asked.probe;
    let within = |filter| {
        filter::filter(&Audience {
            tenant: asked.tenant,
            filter,
            now: asked.now,
        })
    };
    let meant = within(&probe.filter);
    let mut answer = ServerAnswer::default();
    if probe.depth == 0 {
        return Ok(answer);
    }
    if probe.terms.is_empty() && probe.vectors.is_empty() {
        answer.newest = newest(&table, &meant, probe.depth).await?;
        return Ok(answer);
    }
    if !probe.terms.is_empty() {
        let audience = within(&probe.filter.audience_only());
        let (words, statistics) = words(&table, &meant, &audience, probe).await?;
        answer.words = words;
        answer.statistics = Some(statistics);
    }
    for query in &probe.vectors {
        let nearest = nearest(&table, &meant, query, probe.depth).await?;
        answer.meaning.extend(nearest);
    }
    Ok(answer)
}

fn scan(table: &Dataset, filter: &str, columns: &[&str]) -> Result<Scanner> {
    let mut scan = table.scan();
    scan.filter(filter)?;
    scan.project(columns)?;
    scan.batch_size(ROWS);
    Ok(scan)
}

async fn words(
    table: &Dataset,
    meant: &str,
    audience: &str,
    probe: &Probe,
) -> Result<(Vec<Found>, Statistics)> {
    let query = Query::new(probe);
    let mut counts = Counts::default();
    let read = scan(table, audience, &TermColumns::NAMES)?;
    let mut batches = read.try_into_stream().await?;
    while let Some(batch) = batches.try_next().await? {
        let terms = TermColumns::of(&batch)?;
        (0..batch.num_rows()).for_each(|row| counts.add(&query, terms.row(row)));
    }
    let statistics = counts.statistics(&query);
    let scorer = Scorer::new(&query, &statistics);
    let mut best = Best::new(probe.depth);
    let [terms, counts, length] = TermColumns::NAMES;
    let read = scan(table, meant, &["id", "version", terms, counts, length])?;
    let mut batches = read.try_into_stream().await?;
    while let Some(batch) = batches.try_next().await? {
        let terms = TermColumns::of(&batch)?;
        for row in 0..batch.num_rows() {
            let score = scorer.score(terms.row(row));
            if best.wants(score) {
                best.add(rows::found(&batch, row, score)?);
            }
        }
    }
    Ok((best.finish(), statistics))
}

/// The nearest vectors. All of them are compared, as the table has no index of vectors.
async fn nearest(
    table: &Dataset,
    meant: &str,
    query: &Embedding,
    depth: usize,
) -> Result<Vec<Found>> {
    let column = schema::vector_column(&query.model);
    if table.schema().field(&column).is_none() {
        return Ok(Vec::new());
    }
    let vector = Float32Array::from(query.vector.clone());
    let mut scan = table.scan();
    scan.filter(&filter::placed(meant, &column))?
        .prefilter(true)
        .nearest(&column, &vector, depth)?
        .distance_metric("cosine".try_into()?)
        .use_index(false)
        .disable_scoring_autoprojection()
        .project(&["id", "version", rows::DISTANCE])?;
    all(&scan).await
}

async fn newest(table: &Dataset, meant: &str, depth: usize) -> Result<Vec<Found>> {
    let mut scan = scan(table, meant, &["id", "version", "created"])?;
    scan.order_by(Some(vec![
        ColumnOrdering::desc_nulls_last("created".to_owned()),
        ColumnOrdering::desc_nulls_last("version".to_owned()),
    ]))?;
    scan.limit(Some(limit(depth)), None)?;
    all(&scan).await
}

pub(super) async fn entries(table: Dataset, wanted: &str, most: usize) -> Result<Vec<Entry>> {
    let mut scan = scan(&table, wanted, &["id", "version"])?;
    scan.order_by(Some(vec![ColumnOrdering::asc_nulls_last("id".to_owned())]))?;
    scan.limit(Some(limit(most)), None)?;
    let found = all(&scan).await?.into_iter();
    Ok(found
        .map(|Found { id, seq, .. }| Entry { id, seq })
        .collect())
}

/// The vectors that documents have in a column.
pub(super) async fn vectors(
    table: Dataset,
    wanted: &str,
    column: &str,
) -> Result<HashMap<Id, Vec<f32>>> {
    let mut held = HashMap::new();
    if table.schema().field(column).is_none() {
        return Ok(held);
    }
    let scan = scan(&table, wanted, &["id", column])?;
    let mut batches = scan.try_into_stream().await?;
    while let Some(batch) = batches.try_next().await? {
        held.extend(rows::held_vectors(&batch, column)?);
    }
    Ok(held)
}

pub(super) async fn speakers(table: Dataset, wanted: &str) -> Result<Vec<String>> {
    let scan = scan(&table, wanted, &["speaker"])?;
    let mut batches = scan.try_into_stream().await?;
    let mut names: BTreeSet<String> = BTreeSet::new();
    while let Some(batch) = batches.try_next().await? {
        let found = rows::texts(&batch, "speaker")?.iter().flatten();
        names.extend(found.map(str::to_owned));
        while names.len() > limits::SPEAKERS {
            names.pop_last();
        }
    }
    Ok(names.into_iter().collect())
}

async fn all(scan: &Scanner) -> Result<Vec<Found>> {
    let batches: Vec<RecordBatch> = scan.try_into_stream().await?.try_collect().await?;
    let mut found = Vec::new();
    for batch in &batches {
        found.extend(rows::all_found(batch)?);
    }
    Ok(found)
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
