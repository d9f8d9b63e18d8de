//! How well the right records are found: the LoCoMo task. Each turn of a conversation is a
//! record, each question a query, and a hit is a turn that the answer rests on.

use std::collections::{BTreeMap, HashSet};

use mnemon_core::rank::Recipe;
use mnemon_core::{Ctx, Id, Invalid, Kind, Owner, Tenant, Time};
use mnemon_engine::{Draft, Memory, Query};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Config;
use crate::{Error, wiring};

/// As many hits as the deepest measure looks at.
const DEPTH: usize = 20;
/// The recipes that are compared when nobody says.
pub const RECIPES: [Recipe; 3] = [Recipe::Hybrid, Recipe::Words, Recipe::Meaning];
/// Categories of questions that have an answer, and their names.
const CATEGORIES: [(u64, &str); 4] = [
    (1, "multi-hop"),
    (2, "temporal"),
    (3, "open domain"),
    (4, "single-hop"),
];

#[derive(Debug, Clone)]
pub struct Request {
    /// The conversations with their questions, as LoCoMo has them.
    pub samples: Vec<Sample>,
    pub recipes: Vec<Recipe>,
}

/// One conversation with its questions.
#[derive(Debug, Clone, Deserialize)]
pub struct Sample {
    /// `session_N` and `session_N_date_time`, among others.
    conversation: Map<String, Value>,
    qa: Vec<Asked>,
}

#[derive(Debug, Clone, Deserialize)]
struct Asked {
    question: String,
    category: u64,
    #[serde(default)]
    evidence: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    speaker: String,
    dia_id: String,
    text: String,
    #[serde(default)]
    blip_caption: Option<String>,
}

/// The measures over some questions, in percent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub recipe: Recipe,
    /// `all` or the name of a category.
    pub category: &'static str,
    pub questions: usize,
    pub recall_5: f64,
    pub recall_10: f64,
    pub recall_20: f64,
    pub ndcg_10: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub embedder: String,
    pub reranker: String,
    pub conversations: usize,
    pub records: usize,
    pub rows: Vec<Row>,
}

/// What one question scored: recall at 5, 10, 20, NDCG at 10.
type Score = [f64; 4];

/// Runs the task; `progress` hears after each conversation.
pub async fn run(
    config: &Config,
    request: Request,
    mut progress: impl FnMut(),
) -> Result<Response, Error> {
    let mut scores: BTreeMap<(usize, u64), Vec<Score>> = BTreeMap::new();
    let mut records = 0;
    for (n, sample) in request.samples.iter().enumerate() {
        let drafts = drafts(sample).map_err(|what| Invalid::new(format!("data[{n}]"), what))?;
        records += drafts.len();
        let ids: HashSet<Id> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
        let last = drafts.iter().filter_map(|draft| draft.created).max();
        let now = last.unwrap_or(Time::EPOCH).plus_days(1);
        let ctx = Ctx::new(Tenant::default(), "eval", now);
        let memory = memory_of(config)?;
        memory.records().add(&ctx, drafts, None).await?;
        for asked in &sample.qa {
            let wanted = evidence(asked, &ids);
            let answerable = CATEGORIES.iter().any(|(known, _)| *known == asked.category);
            if wanted.is_empty() || !answerable {
                continue;
            }
            for (r, recipe) in request.recipes.iter().enumerate() {
                let found = search(&memory, &ctx, asked, *recipe).await?;
                let list = scores.entry((r, asked.category)).or_default();
                list.push(grade(&found, &wanted));
            }
        }
        progress();
    }
    let rows = request.recipes.iter().enumerate();
    Ok(Response {
        embedder: config.embedder.value.to_string(),
        reranker: config.reranker.value.to_string(),
        conversations: request.samples.len(),
        records,
        rows: rows
            .flat_map(|(r, recipe)| rows_of(*recipe, r, &scores))
            .collect(),
    })
}

/// A store of its own, that nobody else sees and that is gone afterwards.
fn memory_of(config: &Config) -> Result<Memory, Error> {
    let config = Config {
        embedder: config.embedder.clone(),
        embedder_key: config.embedder_key.clone(),
        reranker: config.reranker.clone(),
        ..Config::for_store("ram:")
    };
    Ok(wiring::open(&config)?.memory)
}

async fn search(
    memory: &Memory,
    ctx: &Ctx,
    asked: &Asked,
    recipe: Recipe,
) -> Result<Vec<Id>, Error> {
    let query = Query {
        recipe,
        limit: DEPTH,
        min_score: Some(0.0),
        ..Query::new(
            asked.question.as_str(),
            mnemon_core::Filter::all_of_tenant(),
        )
    };
    let hits = memory.records().search(ctx, &query).await?;
    Ok(hits.into_iter().map(|hit| hit.record.id).collect())
}

/// A conversation's turns, session by session.
fn drafts(sample: &Sample) -> Result<Vec<Draft>, String> {
    let mut drafts = Vec::new();
    let numbers = sample.conversation.keys().filter_map(|key| {
        let number = key.strip_prefix("session_")?;
        number.parse::<u32>().ok()
    });
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    for number in numbers {
        let name = format!("session_{number}");
        let turns = sample.conversation.get(&name).cloned().unwrap_or_default();
        let turns: Vec<Turn> =
            serde_json::from_value(turns).map_err(|error| format!("{name}: {error}"))?;
        let key = format!("{name}_date_time");
        let text = sample.conversation.get(&key).and_then(Value::as_str);
        let start = text
            .and_then(moment)
            .ok_or_else(|| format!("{key} is not like `1:56 pm on 8 May, 2023`"))?;
        for (at, turn) in (0..).zip(turns) {
            drafts.push(draft(turn, &name, start.plus_millis(at))?);
        }
    }
    Ok(drafts)
}

fn draft(turn: Turn, session: &str, created: Time) -> Result<Draft, String> {
    let content = match &turn.blip_caption {
        Some(caption) => format!("{} [shared image: {caption}]", turn.text),
        None => turn.text,
    };
    let id = turn.dia_id.parse();
    let id: Id = id.map_err(|error: Invalid| format!("{session}: {error}"))?;
    let mut metadata = Map::new();
    metadata.insert("speaker".to_owned(), turn.speaker.into());
    Ok(Draft {
        id: Some(id),
        kind: Some(Kind::Message),
        owner: Owner::of(None, Some(session)),
        created: Some(created),
        metadata,
        ..Draft::note(content)
    })
}

/// Reads `1:56 pm on 8 May, 2023`, as UTC.
fn moment(text: &str) -> Option<Time> {
    let text = text.trim();
    let at = jiff::fmt::strtime::parse("%I:%M %p on %d %B, %Y", text).ok()?;
    let at = at.to_datetime().ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Time::from_millis(at.timestamp().as_millisecond()).ok()
}

/// The turns that the answer rests on. Some entries hold several, some are malformed: whatever
/// reads as `D<n>:<m>` counts, if there is such a turn.
fn evidence(asked: &Asked, ids: &HashSet<Id>) -> HashSet<Id> {
    let entries = asked.evidence.iter();
    let places = entries.flat_map(|entry| entry.split('D').skip(1).filter_map(place));
    let named = places.filter_map(|place| place.parse().ok());
    named.filter(|id| ids.contains(id)).collect()
}

/// `3:07; ` after a `D` is the turn `D3:7`.
fn place(text: &str) -> Option<String> {
    let (session, rest) = text.split_once(':')?;
    let turn: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let number = |text: &str| text.parse::<u32>().ok();
    Some(format!("D{}:{}", number(session)?, number(&turn)?))
}

fn grade(found: &[Id], wanted: &HashSet<Id>) -> Score {
    let hits: Vec<bool> = found.iter().map(|id| wanted.contains(id)).collect();
    let recall = |depth: usize| {
        let hits = hits.iter().take(depth).filter(|hit| **hit).count();
        hits as f64 / wanted.len() as f64
    };
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gained = hits.iter().take(10).enumerate();
    let gained: f64 = gained.filter(|(_, hit)| **hit).map(|(n, _)| gain(n)).sum();
    let ideal: f64 = (0..wanted.len().min(10)).map(gain).sum();
    [recall(5), recall(10), recall(20), gained / ideal]
}

/// All questions, then each category that has some.
fn rows_of(recipe: Recipe, r: usize, scores: &BTreeMap<(usize, u64), Vec<Score>>) -> Vec<Row> {
    let of = |category: u64| scores.get(&(r, category)).cloned().unwrap_or_default();
    let all: Vec<Score> = CATEGORIES
        .iter()
        .flat_map(|(number, _)| of(*number))
        .collect();
    let mut rows = vec![row(recipe, "all", &all)];
    let each = CATEGORIES
        .iter()
        .map(|(number, name)| row(recipe, name, &of(*number)));
    rows.extend(each.filter(|row| row.questions > 0));
    rows
}

fn row(recipe: Recipe, category: &'static str, scores: &[Score]) -> Row {
    let count = scores.len().max(1) as f64;
    let mut sums = [0.0; 4];
    for score in scores {
        for (sum, value) in sums.iter_mut().zip(score) {
            *sum += value;
        }
    }
    let [recall_5, recall_10, recall_20, ndcg_10] = sums.map(|sum| 100.0 * sum / count);
    Row {
        recipe,
        category,
        questions: scores.len(),
        recall_5,
        recall_10,
        recall_20,
        ndcg_10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_locomo_writes_them() {
        let at = |text: &str| moment(text).map(|time| time.to_string());
        let spring = at("1:56 pm on 8 May, 2023");
        assert_eq!(spring.as_deref(), Some("2023-05-08T13:56:00.000Z"));
        let night = at("12:09 am on 13 September, 2023");
        assert_eq!(night.as_deref(), Some("2023-09-13T00:09:00.000Z"));
        assert_eq!(at("yesterday"), None);
    }

    #[test]
    fn evidence_is_read_as_it_comes() {
        let ids = ["D1:3", "D2:1", "D30:5"].map(|id| id.parse().unwrap());
        let ids: HashSet<Id> = ids.into_iter().collect();
        let asked = |evidence: &[&str]| Asked {
            question: String::new(),
            category: 1,
            evidence: evidence.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(evidence(&asked(&["D1:3; D2:1"]), &ids).len(), 2);
        assert_eq!(evidence(&asked(&["D1:03 D9:9"]), &ids).len(), 1);
        assert_eq!(evidence(&asked(&["D:11:26", "D", "x"]), &ids).len(), 0);
        assert_eq!(evidence(&asked(&["D30:05"]), &ids).len(), 1);
    }

    #[test]
    fn measures_are_what_they_are_called() {
        let id = |n: usize| -> Id { format!("D1:{n}").parse().unwrap() };
        let found: Vec<Id> = (0..20).map(id).collect();
        let wanted: HashSet<Id> = [id(0), id(7)].into();
        let [five, ten, twenty, ndcg] = grade(&found, &wanted);
        assert_eq!((five, ten, twenty), (0.5, 1.0, 1.0));
        let ideal = 1.0 + 1.0 / 3_f64.log2();
        assert!((ndcg - (1.0 + 1.0 / 9_f64.log2()) / ideal).abs() < 1e-12);
    }
}
