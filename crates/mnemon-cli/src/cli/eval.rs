//! `mnemon eval`

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use mnemon_core::Invalid;
use mnemon_core::rank::Recipe;

use super::door::Door;
use super::{filters, progress};
use crate::api::eval::{Request, Response, Sample};
use crate::{Error, api};

/// Measure how well searches find the right records
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon eval locomo --data locomo10.json\n  \
    MNEMON_EMBEDDER=none mnemon eval locomo --data locomo10.json --recipe words --out words.json")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Run LoCoMo: find the turns of long conversations that answer a question
    ///
    /// Every conversation gets a separate store in memory; yours is not used. Prints recall and
    /// NDCG in percent, over the questions of categories 1 to 4 that have valid evidence.
    Locomo(LocomoArgs),
}

#[derive(Debug, clap::Args)]
struct LocomoArgs {
    /// The conversations with their questions, as JSON
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Recipes to measure [default: hybrid, words, meaning]
    #[arg(long, value_parser = filters::recipe())]
    recipe: Vec<Recipe>,
    /// Use only this many conversations, from the first
    #[arg(long, value_name = "N")]
    limit_conversations: Option<usize>,
    /// Write the measures as JSON to this file, too
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let What::Locomo(args) = args.what;
    let mut samples = read(&args.data)?;
    samples.truncate(args.limit_conversations.unwrap_or(usize::MAX));
    let bar = progress::bar(&door.out, samples.len() as u64, "conversations");
    let recipes = match args.recipe.is_empty() {
        true => api::eval::RECIPES.to_vec(),
        false => args.recipe,
    };
    let request = Request { samples, recipes };
    let measured = api::eval::run(&door.config, request, || bar.inc(1)).await?;
    bar.finish_and_clear();
    if let Some(path) = &args.out {
        let json = serde_json::to_string_pretty(&measured).map_err(Error::no_json)?;
        std::fs::write(path, json + "\n").map_err(Error::file("written", path))?;
    }
    return_json!(door, &measured);
    show(&measured, door)
}

/// Data of this kind has a few megabytes; more is another file.
const DATA_BYTES: u64 = 1 << 30;

fn read(path: &Path) -> Result<Vec<Sample>, Error> {
    let file = File::open(path).map_err(Error::file("read", path))?;
    let reader = BufReader::new(file.take(DATA_BYTES));
    serde_json::from_reader(reader).map_err(|error| {
        let what = format!("{} is not LoCoMo's JSON: {error}", path.display());
        Invalid::new("data", what).into()
    })
}

fn show(measured: &Response, door: &mut Door) -> Result<(), Error> {
    say!(
        door,
        "{} conversations, {} records, embedder {}, reranker {}\n",
        measured.conversations,
        measured.records,
        measured.embedder,
        measured.reranker
    )?;
    let percent = |value: f64| format!("{value:>5.1}");
    let rows = measured.rows.iter().map(|row| {
        vec![
            row.recipe.as_str().to_owned(),
            row.category.to_owned(),
            percent(row.recall_5),
            percent(row.recall_10),
            percent(row.recall_20),
            percent(row.ndcg_10),
            format!("{:>4}", row.questions),
        ]
    });
    let header = ["RECIPE", "CATEGORY", "R@5", "R@10", "R@20", "NDCG@10", "N"];
    door.out.table(&header, rows.collect())
}
