//! How well the right records are found: each entry of a data set is a record, each question a
//! query, and a hit is an entry that the answer rests on.

pub mod answer;
pub mod beam;
pub mod beir;
pub mod compare;
pub mod dataset;
pub mod jsonl;
pub mod locomo;
mod measure;
mod store;

use std::time::{Duration, Instant};

use mnemon_core::rank::{Recipe, Steps};
use mnemon_core::{Ctx, Invalid, text};
use serde::Serialize;

use crate::Error;
use crate::config::{BUILTIN, Config, without_passwords};
use answer::{AnswerReport, Answerer, Answering};
use compare::{Comparison, EarlierRun};
use dataset::{Conversation, Dataset, Question};
use measure::Grade;
pub use measure::{Estimate, Estimates, Measured, Row};
use store::{FilledStore, Place};

/// The recipes that are measured by default.
pub const RECIPES: [Recipe; 3] = [Recipe::Hybrid, Recipe::Words, Recipe::Meaning];

#[derive(Debug)]
pub struct Request {
    pub dataset: Dataset,
    pub recipes: Vec<Recipe>,
    pub setup: Setup,
    /// The store that is filled; one in memory otherwise.
    pub place: Option<String>,
    /// The index in a search server that searches use; the store's own otherwise. It needs a place.
    pub index: Option<String>,
    /// Whether and how a language model answers the questions.
    pub answering: Option<Answering>,
    /// The run to compare with.
    pub earlier: Option<EarlierRun>,
}

/// How the entries are stored and searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Setup {
    pub stores: Stores,
    pub filter: SearchFilter,
    /// How often each entry is stored.
    pub copies: usize,
    pub copy_style: CopyStyle,
    /// The steps of ranking that are taken.
    pub steps: Steps,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            stores: Stores::Separate,
            filter: SearchFilter::None,
            copies: 1,
            copy_style: CopyStyle::Exact,
            steps: Steps::ALL,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Stores {
    /// A store for each conversation
    Separate,
    /// All conversations in one store, each belonging to a user
    One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SearchFilter {
    /// Search as the user to whom the conversation belongs
    User,
    /// Search the whole store
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum CopyStyle {
    /// Copies are equal to the original
    Exact,
    /// Copies begin with a few added words
    Words,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub format: &'static str,
    pub embedder: String,
    pub reranker: String,
    /// The URL of the index, or `builtin`.
    pub index: String,
    pub timing: Timing,
    #[serde(flatten)]
    pub setup: Setup,
    pub conversations: usize,
    /// Without copies.
    pub records: usize,
    /// Questions that were not measured because no record is known to answer them.
    pub left_out: usize,
    pub rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answering: Option<AnswerReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    pub questions: Vec<Measured>,
}

/// How long the run took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Timing {
    /// Seconds for storing, embedding and indexing all records.
    pub write_s: f64,
    /// Milliseconds for one search: the median.
    pub search_ms: f64,
}

/// Notes the time that a run takes.
#[derive(Default)]
struct Clock {
    writing: Duration,
    searches: Vec<Duration>,
}

impl Clock {
    fn timing(mut self) -> Timing {
        self.searches.sort();
        let median = self.searches.get(self.searches.len() / 2);
        Timing {
            write_s: self.writing.as_secs_f64(),
            search_ms: median.map_or(0.0, |median| median.as_secs_f64() * 1000.0),
        }
    }
}

impl Request {
    /// Writes and questions, which are the steps of `progress`.
    pub fn steps(&self) -> usize {
        self.dataset.entries() * self.setup.copies + self.dataset.questions()
    }

    /// The conversations of each store.
    fn stores(&self) -> impl Iterator<Item = &[Conversation]> {
        let all = &self.dataset.conversations;
        let size = match self.setup.stores {
            Stores::Separate => 1,
            Stores::One => all.len().max(1),
        };
        all.chunks(size)
    }
}

/// Runs the questions; `progress` is called with the number of steps that were done.
pub async fn run(
    config: &Config,
    ctx: &Ctx,
    request: Request,
    mut progress: impl FnMut(usize),
) -> Result<Response, Error> {
    if !request.setup.steps.irregular_forms {
        text::leave_out_irregular_forms();
    }
    let answerer = |how| Answerer::new(config, ctx, how, &request.dataset);
    let mut answerer = request.answering.map(answerer).transpose()?;
    let is_capped = request.dataset.is_recall_capped;
    let (mut questions, mut clock) = (Vec::new(), Clock::default());
    for (number, conversations) in request.stores().enumerate() {
        let place = request.place.as_deref().map(|store| Place {
            store,
            index: request.index.as_deref(),
            number,
        });
        let began = Instant::now();
        let store = FilledStore::open(config, ctx, request.setup, conversations, place)?;
        store.fill(&mut progress).await?;
        clock.writing += began.elapsed();
        for (number, conversation) in conversations.iter().enumerate() {
            for question in &conversation.questions {
                for recipe in &request.recipes {
                    let began = Instant::now();
                    let found = store.search(number, question, *recipe).await?;
                    clock.searches.push(began.elapsed());
                    let grade = measure::grade(&found, &question.expected, is_capped);
                    let mut measured = Measured::new(*recipe, question, grade);
                    if let Some(answerer) = &mut answerer {
                        let size = (answerer.tokens(), answerer.counter.as_ref());
                        let context = store.context(number, question, *recipe, size).await?;
                        let today = store.asked(number, question);
                        let answered = answerer.answer(question, &context, today).await?;
                        (measured.answer, measured.right) = answered;
                    }
                    questions.push(measured);
                }
                progress(1);
            }
        }
    }
    let report = answerer.map(Answerer::into_report);
    let mut response = respond(config, &request, questions, report)?;
    response.timing = clock.timing();
    Ok(response)
}

impl Measured {
    fn new(recipe: Recipe, question: &Question, grade: Grade) -> Self {
        let [recall_5, recall_10, recall_20] = grade.recalls;
        Self {
            recipe,
            id: question.id.clone(),
            category: question.category.clone(),
            recall_5,
            recall_10,
            recall_20,
            ndcg_10: grade.ndcg_10,
            rank: grade.rank,
            right: None,
            answer: None,
        }
    }
}

fn respond(
    config: &Config,
    request: &Request,
    questions: Vec<Measured>,
    answering: Option<AnswerReport>,
) -> Result<Response, Error> {
    let comparison = match &request.earlier {
        None => None,
        Some(earlier) => match compare::compare(&questions, earlier) {
            None => {
                let what = "the two runs have no question in common; compare runs on the same data";
                return Err(Invalid::new("compare", what).into());
            }
            comparison => comparison,
        },
    };
    let conversations = &request.dataset.conversations;
    Ok(Response {
        format: request.dataset.format,
        embedder: config.embedder.value.to_string(),
        reranker: config.reranker.value.to_string(),
        index: request
            .index
            .as_deref()
            .map_or(BUILTIN.to_owned(), without_passwords),
        timing: Timing::default(),
        setup: request.setup,
        conversations: conversations.len(),
        records: request.dataset.entries(),
        left_out: conversations.iter().map(|one| one.left_out).sum(),
        rows: measure::rows(&questions),
        answering,
        comparison,
        questions,
    })
}
