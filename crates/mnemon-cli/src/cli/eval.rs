//! `mnemon eval`

use std::path::PathBuf;

use mnemon_core::limits;
use mnemon_core::rank::{Recipe, Steps};

use super::door::Door;
use super::{filters, progress, text};
use mnemon_operations::Error;
use mnemon_operations::api::eval::answer::{AnswerReport, Answering, Tokens};
use mnemon_operations::api::eval::compare::{self, Comparison};
use mnemon_operations::api::eval::dataset::Dataset;
use mnemon_operations::api::eval::{
    self, CopyStyle, Estimate, Estimates, Request, Response, SearchFilter, Setup, Stores, Timing,
};

/// Measure how well searches find the right records
///
/// Stores are made in memory; yours is not used. Prints recall and NDCG in percent with 95 %
/// intervals, over the questions that have valid evidence.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon eval locomo --data locomo10.json\n  \
    mnemon eval beam --data chats/100K --recipe hybrid --out new.json --compare old.json\n  \
    mnemon eval jsonl --data questions.jsonl --copies 3 --copy-style words")]
pub(super) enum Args {
    /// Run LoCoMo: find the turns of long conversations that answer a question
    Locomo(RunArgs),
    /// Run BEAM: find the messages of long chats with an assistant that answer a question
    ///
    /// `--data` is the folder of a chat (chat.json, probing_questions.json) or a folder with such
    /// folders. Recall at k is found ÷ min(evidence, k). The category abstention is left out.
    Beam(RunArgs),
    /// Run a BEIR data set: find the documents that are relevant to a query
    ///
    /// `--data` is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv.
    Beir(BeirArgs),
    /// Run your own questions over your own records
    ///
    /// A line of the file is a record or a question:
    /// {"id":"a1","content":"Rex is a puppy","session":"s1","created":"2026-01-31"}
    /// {"question":"What pet is Rex?","expected":["a1"]}
    #[command(verbatim_doc_comment)]
    Jsonl(JsonlArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct BeirArgs {
    /// Judgements to use: qrels/NAME.tsv
    #[arg(long, value_name = "NAME", default_value = "test")]
    split: String,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct JsonlArgs {
    /// File with the questions, if they are not in the file of the records
    #[arg(long, value_name = "PATH")]
    questions: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Data set: a file (locomo, jsonl) or a folder (beam, beir)
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Recipes to measure [default: hybrid, words, meaning]
    #[arg(long, value_parser = filters::recipe())]
    recipe: Vec<Recipe>,
    /// Store conversations separately or together
    #[arg(long, value_enum, default_value_t = Stores::Separate)]
    stores: Stores,
    /// Fill new tenants of this store instead of a store in memory; they stay there
    #[arg(long = "in", value_name = "URL")]
    place: Option<String>,
    /// Index in a search server; needs --in
    #[arg(long, value_name = "URL", requires = "place")]
    index: Option<String>,
    /// Restrict searches to the records of a user
    #[arg(long, value_enum, default_value_t = SearchFilter::None)]
    filter: SearchFilter,
    /// Store each record this many times; a copy counts as its original, once
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=20))]
    copies: u8,
    /// Store copies as they are or with added words
    #[arg(long, value_enum, default_value_t = CopyStyle::Exact)]
    copy_style: CopyStyle,
    /// Leave out a step of ranking; repeat for several
    #[arg(long, value_enum, value_name = "STEP")]
    without: Vec<Step>,
    /// Use only this many conversations, from the first
    #[arg(long, value_name = "N")]
    limit_conversations: Option<usize>,
    /// Write the measures of all questions as JSON to this file, too
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Compare with the run in this file (written with --out), question by question
    #[arg(long, value_name = "PATH")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// A step of ranking, as docs/ranking.md describes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// `I` means the user, `you` the assistant
    FirstPerson,
    /// Records about the days that the query names are lifted
    Dates,
    /// A time or a name is lifted where one is asked for
    AnswerType,
    /// A question lends twice its words to the record after it
    AfterQuestion,
    /// `Went` counts as `go`, and other irregular English forms as their base
    IrregularForms,
    /// Words that mean nearly the same as a word of the query count in part
    SimilarWords,
    /// Near-copies of a better hit come last
    Copies,
}

fn steps(without: &[Step]) -> Steps {
    let takes = |step: Step| !without.contains(&step);
    Steps {
        first_person: takes(Step::FirstPerson),
        dates: takes(Step::Dates),
        answer_type: takes(Step::AnswerType),
        after_question: takes(Step::AfterQuestion),
        irregular_forms: takes(Step::IrregularForms),
        similar_words: takes(Step::SimilarWords),
        copies: takes(Step::Copies),
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Answers")]
struct AnswerArgs {
    /// Answer each question with the configured language model, and judge the answers with it
    #[arg(long)]
    answer: bool,
    /// Tokens of the context for an answer
    #[arg(long, value_name = "N", default_value_t = 2000, requires = "answer",
          value_parser = clap::value_parser!(u32).range(1..=limits::CONTEXT_TOKENS as i64))]
    context_tokens: u32,
    /// Price of a million input tokens [default: llm.input_price]
    #[arg(long, value_name = "PRICE", requires = "answer", value_parser = price)]
    input_price: Option<f64>,
    /// Price of a million output tokens [default: llm.output_price]
    #[arg(long, value_name = "PRICE", requires = "answer", value_parser = price)]
    output_price: Option<f64>,
}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok();
    let price = price.filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "write an amount like 0.15".to_owned())
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let (mut dataset, args) = read(args)?;
    let most = args.limit_conversations.unwrap_or(usize::MAX);
    dataset.conversations.truncate(most);
    let request = request(dataset, &args)?;
    let bar = progress::bar(&door.out, request.steps() as u64, "steps");
    let ctx = door.ctx()?;
    let measured = eval::run(&door.config, &ctx, request, |n| bar.inc(n as u64)).await?;
    bar.finish_and_clear();
    if let Some(path) = &args.out {
        let json = serde_json::to_string_pretty(&measured).map_err(Error::no_json)?;
        std::fs::write(path, json + "\n").map_err(Error::file("written", path))?;
    }
    return_json!(door, &measured);
    show(&measured, args.place.is_some(), door)
}

fn read(format: Args) -> Result<(Dataset, RunArgs), Error> {
    Ok(match format {
        Args::Locomo(args) => (eval::locomo::read(&args.data)?, args),
        Args::Beam(args) => (eval::beam::read(&args.data)?, args),
        Args::Beir(args) => (eval::beir::read(&args.run.data, &args.split)?, args.run),
        Args::Jsonl(args) => {
            let questions = args.questions.as_deref();
            (eval::jsonl::read(&args.run.data, questions)?, args.run)
        }
    })
}

fn request(dataset: Dataset, args: &RunArgs) -> Result<Request, Error> {
    let recipes = match args.recipe.is_empty() {
        true => eval::RECIPES.to_vec(),
        false => args.recipe.clone(),
    };
    Ok(Request {
        dataset,
        recipes,
        setup: Setup {
            stores: args.stores,
            filter: args.filter,
            copies: usize::from(args.copies),
            copy_style: args.copy_style,
            steps: steps(&args.without),
        },
        place: args.place.clone(),
        index: args.index.clone(),
        answering: args.answer.answer.then_some(Answering {
            context_tokens: args.answer.context_tokens as usize,
            input_price: args.answer.input_price,
            output_price: args.answer.output_price,
        }),
        earlier: args.compare.as_deref().map(compare::read).transpose()?,
    })
}

fn show(measured: &Response, is_placed: bool, door: &mut Door) -> Result<(), Error> {
    let count = |number: usize, noun: &str| text::count(number as u64, noun);
    door.out.line(format!(
        "{}, {}, embedder {}, reranker {}\n",
        count(measured.conversations, "conversation"),
        count(measured.records, "record"),
        measured.embedder,
        measured.reranker
    ))?;
    let is_answered = measured.rows.iter().any(|row| row.measures.right.is_some());
    let rows = measured.rows.iter().map(|row| {
        let category = text::one_line(&row.category);
        let mut cells = vec![row.recipe.as_str().to_owned(), category];
        cells.extend(percents(&row.measures, is_answered));
        cells.push(format!("{:>4}", row.questions));
        cells
    });
    let mut header = vec![
        "RECIPE", "CATEGORY", "R@5", "R@10", "95 %", "R@20", "NDCG@10", "95 %",
    ];
    if is_answered {
        header.extend(["RIGHT", "95 %"]);
    }
    header.push("N");
    door.out.table(&header, rows.collect())?;
    if measured.left_out > 0 {
        let left_out = count(measured.left_out, "question");
        let line = format!("\nLeft out: {left_out} without valid evidence.");
        door.out.line(line)?;
    }
    if is_placed {
        let Timing { write_s, search_ms } = measured.timing;
        door.out.line(format!(
            "\nindex {}: records written in {write_s:.1} s, {search_ms:.1} ms per search (median)",
            measured.index
        ))?;
    }
    if let Some(report) = &measured.answering {
        show_answers(report, door)?;
    }
    match &measured.comparison {
        Some(comparison) => show_comparison(comparison, door),
        None => Ok(()),
    }
}

fn percents(measures: &Estimates, is_answered: bool) -> Vec<String> {
    let mean = |estimate: Estimate| format!("{:>5.1}", estimate.mean);
    let range = |estimate: Estimate| format!("{:.1}–{:.1}", estimate.low, estimate.high);
    let mut cells = vec![
        mean(measures.recall_5),
        mean(measures.recall_10),
        range(measures.recall_10),
        mean(measures.recall_20),
        mean(measures.ndcg_10),
        range(measures.ndcg_10),
    ];
    if is_answered {
        let right = measures.right;
        cells.push(right.map(mean).unwrap_or_default());
        cells.push(right.map(range).unwrap_or_default());
    }
    cells
}

fn show_answers(report: &AnswerReport, door: &mut Door) -> Result<(), Error> {
    let spent = |tokens: Tokens| format!("{} tokens in, {} out", tokens.input, tokens.output);
    let cost = match report.cost {
        Some(cost) => format!("; cost {cost:.4}"),
        None => String::new(),
    };
    door.out.line(format!(
        "\n{} judged, {} failed; model {}, context of {} tokens\n\
         answers: {}; judge: {}{cost}",
        text::count(report.judged as u64, "answer"),
        text::count(report.failed as u64, "call"),
        text::one_line(&report.model),
        report.context_tokens,
        spent(report.answer_tokens),
        spent(report.judge_tokens),
    ))
}

fn show_comparison(comparison: &Comparison, door: &mut Door) -> Result<(), Error> {
    let line = "\nDifference to the earlier run, in points, with paired 95 % intervals:\n";
    door.out.line(line)?;
    let points = |estimate: Estimate| {
        let Estimate { mean, low, high } = estimate;
        format!("{mean:+.1} ({low:+.1} to {high:+.1})")
    };
    let is_answered = comparison
        .rows
        .iter()
        .any(|row| row.measures.right.is_some());
    let rows = comparison.rows.iter().map(|row| {
        let recipe = match row.recipe == row.earlier {
            true => row.recipe.as_str().to_owned(),
            false => format!("{} − {}", row.recipe.as_str(), row.earlier.as_str()),
        };
        let measures = &row.measures;
        let mut cells = vec![recipe, text::one_line(&row.category)];
        cells.extend([points(measures.recall_10), points(measures.ndcg_10)]);
        cells.extend(is_answered.then(|| measures.right.map(points).unwrap_or_default()));
        let counts = [row.better, row.worse, row.questions];
        cells.extend(counts.map(|count| format!("{count:>4}")));
        cells
    });
    let mut header = vec!["RECIPE", "CATEGORY", "R@10", "NDCG@10"];
    header.extend(is_answered.then_some("RIGHT"));
    header.extend(["BETTER", "WORSE", "N"]);
    door.out.table(&header, rows.collect())?;
    match comparison.unpaired {
        0 => Ok(()),
        unpaired => {
            let results = text::count(unpaired as u64, "result");
            let line = format!("\nNot compared: {results} that only one of the runs has.");
            door.out.line(line)
        }
    }
}
