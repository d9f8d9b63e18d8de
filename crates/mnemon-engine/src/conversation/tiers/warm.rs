//! Tree-reduce: many lines become a few summaries, those become one, and that is a page of the
//! library.

use async_trait::async_trait;
use mnemon_core::files::{Files, FilesError};
use mnemon_core::{Ctx, Time, limits};

use super::{HotLine, library};
use crate::conversation::session::SessionId;
use crate::records::Error;

/// Whatever makes one text from several: a function, or a model.
#[async_trait]
pub trait Summarise: Send + Sync {
    /// One paragraph that says what is in the texts. An error, an empty text or one that is longer
    /// than what it sums up is replaced by the first sentences.
    async fn summarise(&self, texts: &[String]) -> Result<String, String>;
}

#[async_trait]
impl<F: Fn(&[String]) -> String + Send + Sync> Summarise for F {
    async fn summarise(&self, texts: &[String]) -> Result<String, String> {
        Ok(self(texts))
    }
}

/// What a compression did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressed {
    /// The page: `history-001.md`.
    pub history: String,
    /// How many lines went into it.
    pub lines: usize,
    /// How many times was summarised, one on top of the other.
    pub levels: usize,
    pub tokens_before: usize,
    pub tokens_after: usize,
}

/// The summaries of some lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    /// One for each chunk.
    pub(super) leaves: Vec<String>,
    pub(super) master: String,
    pub(super) levels: usize,
}

pub(super) async fn reduce(
    ctx: &Ctx,
    lines: &[HotLine],
    chunk: usize,
    summarise: &dyn Summarise,
) -> Tree {
    let texts: Vec<String> = lines.iter().map(|hot| hot.line.text()).collect();
    let leaves = level(ctx, &texts, chunk, summarise).await;
    let (mut tops, mut levels) = (leaves.clone(), 1);
    while tops.len() > 1 {
        // A chunk has at least two, so that each level has fewer than the one before.
        tops = level(ctx, &tops, chunk, summarise).await;
        levels += 1;
    }
    Tree {
        master: tops.pop().unwrap_or_default(),
        leaves,
        levels,
    }
}

async fn level(
    ctx: &Ctx,
    texts: &[String],
    chunk: usize,
    summarise: &dyn Summarise,
) -> Vec<String> {
    let mut summaries = Vec::new();
    for group in texts.chunks(chunk.max(2)) {
        let length: usize = group.iter().map(|text| text.len() + 1).sum();
        let made = summarise.summarise(group).await.unwrap_or_else(|why| {
            ctx.notices
                .add(format!("First sentences stand for a summary: {why}."));
            String::new()
        });
        let made = made.trim();
        summaries.push(match made.is_empty() || made.len() > length {
            true => first_sentences(group),
            false => made.to_owned(),
        });
    }
    summaries
}

/// Characters that the first sentence of a text may have.
const SENTENCE: usize = 160;

/// The simplest of summaries: how each text begins.
#[must_use]
pub fn first_sentences(texts: &[String]) -> String {
    let heads = texts.iter().map(|text| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let end = line.find(". ").map_or(line.len(), |at| at + 1);
        let head: String = line.chars().take(SENTENCE).collect();
        head.get(..end.min(head.len())).unwrap_or(&head).to_owned()
    });
    heads.collect::<Vec<_>>().join(" ")
}

/// Writes the next page of the library and returns its name.
pub(super) async fn write(
    files: &dyn Files,
    ctx: &Ctx,
    session: &SessionId,
    tree: &Tree,
    lines: &[HotLine],
) -> Result<String, Error> {
    let through = through(lines);
    let mut tries = 0;
    loop {
        let listed = files.list(&library()).await?;
        let numbers = listed.iter().filter_map(|file| number_of(&file.path));
        let number = numbers.max().unwrap_or(0).saturating_add(1);
        let name = page_name(number);
        let path = format!("{}/{name}", library());
        let page = page(ctx, session, tree, number, through);
        tries += 1;
        match files.write(&path, page.as_bytes(), None).await {
            // Somebody else has just written a page of this number.
            Err(FilesError::Conflict { .. }) if tries < limits::CHANGE_TRIES => {}
            done => return done.map(|_| name).map_err(Error::from),
        }
    }
}

fn number_of(path: &str) -> Option<u64> {
    let name = path.rsplit('/').next()?;
    name.strip_prefix("history-")?
        .strip_suffix(".md")?
        .parse()
        .ok()
}

/// How a page is called.
pub(super) fn page_name(number: u64) -> String {
    format!("history-{number:03}.md")
}

/// Where the last of the lines stands in the log.
pub(super) fn through(lines: &[HotLine]) -> u64 {
    lines.last().map_or(0, |line| line.offset)
}

/// Pages that are looked at for the last one of a session.
const PAGES: usize = 200;

/// The last page of the session, and the place in its log up to which it goes.
pub(super) async fn last_page(
    files: &dyn Files,
    session: &SessionId,
) -> Result<Option<(String, u64)>, Error> {
    let listed = files.list(&library()).await?;
    let pages = listed.iter().filter_map(|file| number_of(&file.path));
    let mut numbers: Vec<u64> = pages.collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    for number in numbers.into_iter().take(PAGES) {
        let name = page_name(number);
        let Some(file) = files.read(&format!("{}/{name}", library())).await? else {
            continue;
        };
        let text = String::from_utf8_lossy(&file.bytes);
        if !is_page_of(&text, session) {
            continue;
        }
        let mut lines = front_matter(&text).lines();
        let through = lines.find_map(|line| line.strip_prefix(THROUGH)?.trim().parse().ok());
        // A page that was written by hand, or by an older version, says nothing of it.
        return Ok(through.map(|through| (name, through)));
    }
    Ok(None)
}

fn front_matter(text: &str) -> &str {
    let front = text.strip_prefix("---\n").unwrap_or_default();
    front.split("\n---\n").next().unwrap_or_default()
}

/// Whether the page was made of lines of the session.
pub(crate) fn is_page_of(text: &str, session: &SessionId) -> bool {
    session_of(text).as_ref() == Some(session)
}

/// The session that the page was made of; none if it was written by hand.
pub(super) fn session_of(text: &str) -> Option<SessionId> {
    let mut lines = front_matter(text).lines();
    let named = lines.find_map(|line| line.strip_prefix("session: "))?;
    serde_json::from_str(named).ok()
}

/// When the page was made.
pub(super) fn created_at(text: &str) -> Option<Time> {
    let mut lines = front_matter(text).lines();
    let at = lines.find_map(|line| line.strip_prefix("created_at: "))?;
    at.trim().parse().ok()
}

/// What stands before the place of the last line.
const THROUGH: &str = "through:";

pub(super) fn page(
    ctx: &Ctx,
    session: &SessionId,
    tree: &Tree,
    number: u64,
    through: u64,
) -> String {
    let now = ctx.now;
    let mut page = format!(
        "---\nversion: 1\nstatus: final\nauthor: mnemon\ncreated_at: {now}\nsession: {}\n\
         {THROUGH} {through}\n---\n\
         # History {number:03}\n\n{}\n",
        serde_json::json!(session),
        tree.master
    );
    if tree.leaves.len() > 1 {
        page.push_str("\n## Parts\n");
        for leaf in &tree.leaves {
            page.push_str(&format!("\n- {leaf}\n"));
        }
    }
    page
}
