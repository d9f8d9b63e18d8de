//! `mnemon add`

use std::path::PathBuf;

use mnemon_core::{
    Audience, Ctx, Fate, Id, Invalid, Kind, Namespace, Origin, Outcome, Receipt, Scope,
};
use mnemon_engine::Draft;
use serde_json::{Map, Value};

use super::door::Door;
use super::filters::{self, OwnerArgs};
use super::lines::{self, Lines};
use super::{input, progress, text, when};
use crate::Error;

/// Remember something
///
/// The content comes from the arguments, from --file, or from stdin. With --jsonl every line of
/// stdin is one draft in JSON, and all lines are checked before the first is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon add \"Ann prefers tea\" --user ann --tag drinks --importance 0.8\n  \
    git log -1 | mnemon add --kind event --source git --namespace short-term\n  \
    mnemon add --file decision.md --kind decision\n  \
    echo '{\"content\":\"Ann prefers tea\",\"tags\":[\"drinks\"]}' | mnemon add --jsonl")]
pub(super) struct Args {
    /// What to remember; - reads it from stdin
    #[arg(value_name = "CONTENT")]
    content: Vec<String>,
    /// Take the content from this file, byte for byte
    #[arg(long, value_name = "PATH", conflicts_with = "content")]
    file: Option<PathBuf>,
    /// One draft in JSON per line of stdin
    #[arg(long, conflicts_with_all = ["content", "file", "user", "agent", "session", "flow", "node",
        "audience", "scope", "kind", "namespace", "tag", "source", "origin", "importance", "summary", "ttl",
        "expires", "created", "metadata", "meta_json", "derived_from", "id"])]
    jsonl: bool,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Who may see it: user:NAME, agent:NAME, team:NAME or everyone [default: its user, or everyone
    /// without one]
    #[arg(long, value_name = "WHO")]
    audience: Option<Audience>,
    /// What kind of memory it is [default: the usual one for its kind]
    #[arg(long, value_parser = filters::scope())]
    scope: Option<Scope>,
    /// What it holds [default: note]
    #[arg(long, value_parser = filters::kind())]
    kind: Option<Kind>,
    /// How long it is kept [default: long-term]
    #[arg(long, value_parser = filters::namespace())]
    namespace: Option<Namespace>,
    /// A tag; repeat for several
    #[arg(long)]
    tag: Vec<String>,
    /// Where it came from: a URL, a path, a name
    #[arg(long)]
    source: Option<String>,
    /// Who said it [default: user; file with --file]
    #[arg(long, value_parser = filters::origin())]
    origin: Option<Origin>,
    /// From 0 to 1
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    importance: Option<f64>,
    /// The short form
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Forget it by itself after this long: 30m, 12h, 14d, 2y
    #[arg(long, value_name = "DURATION", conflicts_with = "expires")]
    ttl: Option<String>,
    /// Forget it by itself at this time
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    /// When it was said, if not now
    #[arg(long, value_name = "WHEN")]
    created: Option<String>,
    /// A piece of metadata; repeat for several
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Metadata as a JSON object
    #[arg(long, value_name = "JSON")]
    meta_json: Option<String>,
    /// A record it was made from; forgetting that one forgets this one
    #[arg(long, value_name = "ID")]
    derived_from: Vec<Id>,
    /// A name of your own for it [default: a fresh one]
    #[arg(long)]
    id: Option<Id>,
    /// Makes a retry harmless: under the same key the same is stored once
    #[arg(long)]
    key: Option<String>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    if args.jsonl {
        return many(args.key, door).await;
    }
    let ctx = door.ctx()?;
    let key = args.key.clone();
    let draft = args.into_draft(&ctx)?;
    let memory = door.memory()?;
    let near = match draft.kind {
        None | Some(Kind::Note | Kind::Fact | Kind::Decision) => {
            memory.notes().near_duplicate(&ctx, &draft).await?
        }
        Some(_) => None,
    };
    let drafts = vec![draft];
    let receipt = memory.records().add(&ctx, drafts, key.as_deref()).await?;
    if let Some(near) = near.filter(|_| receipt.items.iter().any(is_new)) {
        ctx.notices.add(super::note::nearly(&near));
    }
    return_json!(door, &receipt);
    for item in &receipt.items {
        let fate = fate(&item.fate);
        let commit = receipt.commit.unwrap_or_default();
        door.out
            .line(format!("{fate} {} (commit {commit})", item.id))?;
    }
    evicted(&receipt, door)
}

fn is_new(item: &Outcome) -> bool {
    matches!(item.fate, Fate::Stored { .. })
}

pub(super) fn fate(fate: &Fate) -> String {
    match fate {
        Fate::Stored { .. } => "stored".to_owned(),
        Fate::Updated { version } => format!("updated to version {version}:"),
        Fate::Duplicate { of } => format!("duplicate of {of}:"),
        Fate::Deleted => "forgotten".to_owned(),
        Fate::Purged => "purged".to_owned(),
        Fate::Missing => "missing".to_owned(),
        Fate::Rejected { why } => format!("left out ({why}):"),
    }
}

fn evicted(receipt: &Receipt, door: &mut Door) -> Result<(), Error> {
    for id in &receipt.evicted {
        door.out
            .line(format!("evicted {id} (the namespace is full)"))?;
    }
    Ok(())
}

impl Args {
    fn into_draft(self, ctx: &Ctx) -> Result<Draft, Error> {
        let metadata = metadata(&self.metadata, self.meta_json.as_deref())?;
        let expires = match (&self.ttl, &self.expires) {
            (Some(ttl), _) => Some(when::ahead("ttl", ttl, ctx.now)?),
            (None, Some(at)) => Some(when::absolute("expires", at)?),
            (None, None) => None,
        };
        let created = self.created.map(|at| when::past("created", &at, ctx.now));
        let is_file = self.file.is_some();
        let path = self.file.as_ref().map(|path| path.display().to_string());
        Ok(Draft {
            content: content(&self.content, self.file)?,
            id: self.id,
            owner: self.owner.into(),
            audience: self.audience,
            scope: self.scope,
            kind: self.kind,
            namespace: self.namespace,
            summary: self.summary,
            tags: self.tag,
            source: self.source.or(path),
            origin: self.origin.or(is_file.then_some(Origin::File)),
            importance: self.importance,
            created: created.transpose()?,
            expires,
            derived_from: self.derived_from,
            metadata,
            ..Draft::default()
        })
    }
}

fn content(words: &[String], file: Option<PathBuf>) -> Result<String, Error> {
    if let Some(path) = file {
        return input::file(&path);
    }
    input::piped_words(words)
}

pub(super) fn metadata(
    pairs: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Invalid> {
    let mut metadata: Map<String, Value> = match json {
        Some(json) => serde_json::from_str(json)
            .map_err(|error| Invalid::new("meta-json", format!("is not a JSON object: {error}")))?,
        None => Map::new(),
    };
    for (at, pair) in pairs.iter().enumerate() {
        let Some((key, value)) = pair.split_once('=') else {
            // It is not repeated: it may be the value alone, and that a secret.
            let what = format!("number {} has no `=`; write KEY=VALUE", at + 1);
            return Err(Invalid::new("metadata", what));
        };
        if metadata.insert(key.to_owned(), value.into()).is_some() {
            let what = format!("`{}` is given twice", key.escape_debug());
            return Err(Invalid::new("metadata", what));
        }
    }
    Ok(metadata)
}

/// In JSON mode every batch's receipt is printed as soon as it is safe.
async fn many(key: Option<String>, door: &mut Door) -> Result<(), Error> {
    let mut lines = Lines::open(None)?;
    let ctx = door.ctx()?;
    let safety = door.config.safety();
    let count = lines.check::<Draft>(|draft| {
        draft.check(&ctx)?;
        safety.check(draft)
    })?;
    let memory = door.memory()?;
    let bar = progress::bar(count, "records");
    let place = lines.place.clone();
    for (number, batch) in lines.batches::<Draft>(|_| None)?.enumerate() {
        let batch = batch?;
        bar.inc(batch.len() as u64);
        let ids: Vec<_> = batch
            .iter()
            .map(|item| (item.line, item.value.id.clone()))
            .collect();
        let drafts = batch.into_iter().map(|item| item.value).collect();
        let key = key.as_deref().map(|key| batch_key(key, number));
        let records = memory.records();
        let receipt = records.add(&door.ctx()?, drafts, key.as_deref()).await;
        let receipt = receipt.map_err(|error| lines::blame(&place, &ids, error.into()))?;
        if door.out.json {
            door.out.json(&receipt)?;
            door.out.flush()?;
        } else {
            evicted(&receipt, door)?;
        }
    }
    bar.finish_and_clear();
    if door.out.json {
        return Ok(());
    }
    door.out
        .line(format!("stored {}", text::count(count, "record")))
}

/// The first batch has the key itself, the others have it with their number.
fn batch_key(key: &str, number: usize) -> String {
    match number {
        0 => key.to_owned(),
        _ => format!("{key}#{}", number + 1),
    }
}
