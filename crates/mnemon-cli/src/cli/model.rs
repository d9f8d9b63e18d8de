//! `mnemon model`

use std::path::PathBuf;

use super::door::Door;
use super::text;
use mnemon_operations::config::ConfigError;
use mnemon_operations::{Error, wiring};

/// Download the weights of an embedder
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon model pull\n  \
    mnemon model pull minilm --from ./downloaded --to /srv/models/minilm\n\n\
    No other command downloads weights, and no search waits for a download.")]
pub(super) enum Args {
    /// Download the weights into a folder and check them
    ///
    /// Files that are already complete are not downloaded again, so a pull that was interrupted can
    /// be repeated.
    Pull(PullArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct PullArgs {
    /// Model to download
    #[arg(value_enum, default_value_t)]
    model: Model,
    /// Folder that has the files, or the address of the model on a hub [default: Hugging Face]
    #[arg(long, value_name = "FOLDER|URL")]
    from: Option<String>,
    /// Folder to write to [default: in the user's data folder]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Model {
    /// all-MiniLM-L6-v2, quantised, 23 MB
    #[default]
    Minilm,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let Args::Pull(args) = args;
    let Model::Minilm = args.model;
    let models = || door.config.models.as_ref();
    let to = args.to.or_else(|| Some(models()?.join("minilm")));
    let to = to.ok_or(ConfigError::NoHome)?;
    if !cfg!(feature = "minilm") {
        let what = "this build cannot use the weights: rebuild with --features minilm";
        door.out.note(what);
    }
    wiring::pull_minilm(&to, args.from.as_deref()).await?;
    if door.out.json {
        let embedder = format!("minilm:{}", to.display());
        return door.out.json(&serde_json::json!({ "embedder": embedder }));
    }
    let place = text::one_line(&to.display().to_string());
    say!(door, "the weights are in {place}")?;
    say!(door, "use them with: MNEMON_EMBEDDER=minilm:{place}")
}
