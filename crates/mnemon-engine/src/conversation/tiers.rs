//! The tiers of a session: hot (the last lines), warm (summaries in the library), cold (the index),
//! frozen (the log). They lie in files, or on any store without files.
//!
//! ```text
//! .airsspec/contexts/agent/{session}.jsonl      frozen; its end is hot
//! .airsspec/knowledge/library/history-001.md    warm
//! the semantic records of a memory              cold
//! .airsspec/airsspec.toml                       [memory]
//! ```
//!
//! Without files a line and a page are each a record.
//!
//! A line is in the log before it is hot, and in the library or the index before it is hot no
//! more: a crash at any point loses nothing. Lines and pages from before a purge of their session
//! are neither shown nor indexed, even if their files could not be erased.

mod boot;
mod cold;
mod config;
mod hot;
mod line;
mod store_backed;
mod summary;
mod warm;

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::log::Log;
use mnemon_core::{Ctx, Invalid, Scope, Time, limits};

pub use boot::{Boot, Skipped};
pub use cold::Excerpt;
pub(crate) use cold::{is_indexed_line, is_library_page, is_log_line, library_pages, pages_of};
pub use config::TierConfig;
pub use hot::{Hot, HotLine};
pub(crate) use line::after_purge;
pub use line::{Line, Said};
pub use summary::Summariser;
pub(crate) use warm::is_page_of;
pub use warm::{Compressed, Summarise, first_sentences};

use crate::conversation::session::SessionId;
use crate::memory::Memory;
use crate::records::Error;
use crate::records::safety::TakenOut;
use crate::records::undo::as_index;

/// The folder that the tiers lie in.
const ROOT: &str = ".airsspec";

/// How many tokens a text has.
pub type CountTokens = fn(&str) -> usize;

/// The tiers of a project.
pub struct Tiers {
    place: TierStorage,
    cold: Arc<Memory>,
    /// Where the pages of the library are indexed, if not in the cold memory.
    library: Option<Arc<Memory>>,
    config: TierConfig,
    tokens: CountTokens,
    /// Where the files lie: part of the ids of what is indexed, and how a purge finds them.
    root: Option<String>,
}

/// Where lines and pages lie.
enum TierStorage {
    Files {
        files: Arc<dyn Files>,
        log: Arc<dyn Log>,
    },
    /// In the memory that is the cold tier, too.
    Records,
}

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Appended {
    /// How many lines were pushed out of the window.
    pub pushed_out: usize,
}

impl Tiers {
    /// The tiers below the root that both ports lead to, with this memory as the cold one.
    pub fn new(
        files: Arc<dyn Files>,
        log: Arc<dyn Log>,
        cold: Arc<Memory>,
        config: TierConfig,
        tokens: CountTokens,
    ) -> Result<Self, Invalid> {
        config.check()?;
        Ok(Self {
            place: TierStorage::Files { files, log },
            cold,
            library: None,
            config,
            tokens,
            root: None,
        })
    }

    /// The tiers in this memory, whatever its store, without any file.
    pub fn on_store(
        memory: Arc<Memory>,
        config: TierConfig,
        tokens: CountTokens,
    ) -> Result<Self, Invalid> {
        config.check()?;
        Ok(Self {
            place: TierStorage::Records,
            cold: memory,
            library: None,
            config,
            tokens,
            root: None,
        })
    }

    /// The absolute path of the root. It is part of the ids of what is indexed, so that two projects
    /// on one memory do not mix, and the memory keeps it for each session that is written, so that a
    /// purge of the session finds its files.
    #[must_use]
    pub fn at(mut self, root: impl Into<String>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Indexes the pages of the library in this memory instead of the cold one, which then holds
    /// nothing of them.
    #[must_use]
    pub fn library_apart(mut self, library: Arc<Memory>) -> Self {
        self.library = Some(library);
        self
    }

    /// The memory that holds the pages of the library apart, up to date with them.
    pub async fn library(&self, ctx: &Ctx) -> Result<Option<Arc<Memory>>, Error> {
        if self.library.is_some() {
            self.index_library(ctx).await?;
        }
        Ok(self.library.clone())
    }

    /// What `airsspec.toml` says, and `plain` where it says nothing.
    pub async fn read_config(files: &dyn Files, plain: TierConfig) -> Result<TierConfig, Error> {
        let path = format!("{ROOT}/airsspec.toml");
        let Some(file) = files.read(&path).await? else {
            return Ok(plain);
        };
        let text = String::from_utf8(file.bytes)
            .map_err(|_| Invalid::new(path.clone(), "is not UTF-8 text"))?;
        let config = TierConfig::from_toml(&text, plain);
        Ok(config.map_err(|error| Invalid::new(path, error.to_string()))?)
    }

    /// How the tiers are set.
    #[must_use]
    pub fn config(&self) -> &TierConfig {
        &self.config
    }

    /// The hot lines of a session: the last valid ones of its log, read from the end.
    pub async fn boot(&self, ctx: &Ctx, session: &SessionId) -> Result<Boot, Error> {
        let wanted = self.config.hot_window_size;
        let mut boot = Boot::of(Hot::new(session.clone()));
        boot.purged = self.purged_at(ctx, session).await?;
        match &self.place {
            TierStorage::Files { log, .. } => boot::boot(&**log, boot, session, wanted).await,
            TierStorage::Records => {
                store_backed::boot(&self.cold, ctx, boot, session, wanted).await
            }
        }
    }

    /// Which project's files these are; empty if they are not known by a path.
    fn project(&self) -> &str {
        self.root.as_deref().unwrap_or_default()
    }

    /// When the session was last purged: lines that are not younger are not read.
    async fn purged_at(&self, ctx: &Ctx, session: &SessionId) -> Result<Option<Time>, Error> {
        let records = self.cold.records_of(Scope::Dialog);
        records.purged_at(ctx, session.as_str()).await
    }

    /// Writes the line to the log, durably, and then to the window. What the window has no room
    /// for is indexed.
    pub async fn append(&self, ctx: &Ctx, hot: &mut Hot, said: Said) -> Result<Appended, Error> {
        let mut taken = TakenOut::default();
        let safety = self.cold.records_of(Scope::Dialog).safety;
        let said = safety.clean_value("line", &said, &mut taken)?;
        ctx.notices.extend(taken.sentences());
        // A line is in the log whether or not the store answers.
        let purged = self.purged_at(ctx, &hot.session).await;
        let purged = purged.unwrap_or_else(|error| {
            ctx.notices.add(format!(
                "The store did not say whether the session was purged: {error}."
            ));
            None
        });
        let line = Line::new(said, after_purge(ctx.now, purged));
        let bytes = line.to_bytes()?;
        if bytes.len() > limits::LOG_LINE_BYTES {
            let most = limits::LOG_LINE_BYTES;
            let what = format!("has {} bytes, at most {most} are allowed", bytes.len());
            return Err(Invalid::new("line", what).into());
        }
        let offset = match &self.place {
            TierStorage::Files { log, .. } => {
                if let Err(error) = self.mark_root(ctx, &hot.session).await {
                    ctx.notices.add(format!(
                        "The store does not know yet where the log is, so a purge would miss it; \
                         the next line tries again: {error}."
                    ));
                }
                let end = log.append(&log_path(&hot.session), &bytes).await?;
                end.saturating_sub(bytes.len() as u64)
            }
            TierStorage::Records => {
                store_backed::append(&self.cold, ctx, &hot.session, &line, &bytes).await?
            }
        };
        hot.lines.push_back(HotLine { offset, line });
        let surplus = hot.lines.len().saturating_sub(self.config.hot_window_size);
        if surplus == 0 {
            return Ok(Appended::default());
        }
        let old: Vec<HotLine> = hot.lines.iter().take(surplus).cloned().collect();
        let indexed = self.index_lines(ctx, &hot.session, &old).await;
        // A line that cannot be indexed now stays in view and is tried again, for a while.
        let has_room = hot.lines.len() < self.config.hot_window_size.saturating_mul(2);
        let pushed_out = if indexed.is_err() && has_room {
            0
        } else {
            hot.lines.drain(..surplus).count()
        };
        not_indexed(ctx, indexed);
        Ok(Appended { pushed_out })
    }

    async fn mark_root(&self, ctx: &Ctx, session: &SessionId) -> Result<(), Error> {
        let Some(root) = &self.root else {
            return Ok(());
        };
        let records = self.cold.records_of(Scope::Dialog);
        records.mark_root(ctx, session.as_str(), root).await
    }

    /// Tokens in the window.
    #[must_use]
    pub fn tokens(&self, hot: &Hot) -> usize {
        hot.texts().iter().map(|text| (self.tokens)(text)).sum()
    }

    /// Whether the window has more tokens than the threshold allows.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "tokens of a window are far below 2^52"
    )]
    pub fn is_over(&self, hot: &Hot) -> bool {
        self.tokens(hot) as f64 > self.config.compression_threshold * self.config.max_tokens as f64
    }

    /// If the window is over its threshold: the older half becomes a summary in the library and a
    /// link to it. On an error the window is as it was.
    pub async fn compress_if_needed(
        &self,
        ctx: &Ctx,
        hot: &mut Hot,
        summarise: &dyn Summarise,
    ) -> Result<Option<Compressed>, Error> {
        if !self.is_over(hot) {
            return Ok(None);
        }
        // A window that was just read from its log does not know what became a page before.
        if hot.links.is_empty() && self.leave_out_paged(ctx, hot).await? && !self.is_over(hot) {
            return Ok(None);
        }
        let Some(split) = hot.half() else {
            return Ok(None);
        };
        let tokens_before = self.tokens(hot);
        let old: Vec<HotLine> = hot.lines.iter().take(split).cloned().collect();
        let saved: usize = old.iter().map(|hot| (self.tokens)(&hot.line.text())).sum();
        // A link that is no shorter than what it stands for would not help.
        if saved <= (self.tokens)(&hot::link_text("history-000.md")) {
            return Ok(None);
        }
        let tree = warm::reduce(ctx, &old, self.config.chunk_size, summarise).await;
        let session = &hot.session;
        let history = match &self.place {
            TierStorage::Files { files, .. } => {
                warm::write(&**files, ctx, session, &tree, &old).await?
            }
            TierStorage::Records => {
                store_backed::write_page(&self.cold, ctx, session, &tree, &old).await?
            }
        };
        // The library and the log hold everything now; the index can be made from them again.
        let lines = self.index_lines(ctx, session, &old).await;
        let library = self.index_library(ctx).await;
        not_indexed(ctx, lines.and(library));
        hot.lines.drain(..split);
        hot.link(&history);
        Ok(Some(Compressed {
            history,
            lines: split,
            levels: tree.levels,
            tokens_before,
            tokens_after: self.tokens(hot),
        }))
    }

    /// Puts a link in the place of the lines that the last page of the session covers; whether there
    /// are such lines.
    async fn leave_out_paged(&self, ctx: &Ctx, hot: &mut Hot) -> Result<bool, Error> {
        let last = match &self.place {
            TierStorage::Files { files, .. } => warm::last_page(&**files, &hot.session).await?,
            TierStorage::Records => store_backed::last_page(&self.cold, ctx, &hot.session).await?,
        };
        let Some((history, through)) = last else {
            return Ok(false);
        };
        let before = hot.lines.len();
        hot.lines.retain(|line| line.offset > through);
        let has_left = hot.lines.len() < before;
        if has_left {
            hot.link(&history);
        }
        Ok(has_left)
    }

    /// The tool `query_memory`: excerpts from what left the window, from the library and from all
    /// that is known, the best first.
    pub async fn query_memory(
        &self,
        ctx: &Ctx,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Excerpt>, Error> {
        self.index_library(ctx).await?;
        let mut found = cold::query(&self.cold, ctx, query, limit).await?;
        if let Some(library) = &self.library {
            found.extend(cold::query(library, ctx, query, limit).await?);
            found.sort_by(|one, other| other.score.total_cmp(&one.score));
            found.truncate(limit);
        }
        Ok(found)
    }

    async fn index_lines(
        &self,
        ctx: &Ctx,
        session: &SessionId,
        lines: &[HotLine],
    ) -> Result<(), Error> {
        let is_kept = matches!(self.place, TierStorage::Records);
        let source = match is_kept {
            true => store_backed::source(session),
            false => log_path(session),
        };
        let from = cold::From {
            source,
            is_kept,
            project: self.project(),
        };
        // A window may be older than the purge of its session.
        let purged = self.purged_at(ctx, session).await?;
        let lines = lines.iter().filter(|hot| !hot.line.is_purged(purged));
        let lines: Vec<HotLine> = lines.cloned().collect();
        cold::index_lines(&self.cold, ctx, session, &lines, &from).await
    }

    /// Pages that are records are found as they are.
    async fn index_library(&self, ctx: &Ctx) -> Result<(), Error> {
        match &self.place {
            TierStorage::Files { files, .. } => {
                let index = self.library.as_ref().unwrap_or(&self.cold);
                let ctx = as_index(ctx);
                let marks = self.cold.records_of(Scope::Dialog);
                cold::index_library(index, marks, &ctx, &**files, self.project()).await
            }
            TierStorage::Records => Ok(()),
        }
    }
}

/// Reports lines that could not be indexed. They are in the log in any case.
fn not_indexed(ctx: &Ctx, indexed: Result<(), Error>) {
    if let Err(error) = indexed {
        ctx.notices
            .add(format!("What left the window is not indexed yet: {error}."));
    }
}

/// The folder of the logs, below the root.
pub(crate) fn log_folder() -> String {
    format!("{ROOT}/contexts/agent")
}

/// The log of a session, below the root.
pub(crate) fn log_path(session: &SessionId) -> String {
    format!("{}/{session}.jsonl", log_folder())
}

/// The folder of the pages, below the root.
pub(crate) fn library() -> String {
    format!("{ROOT}/knowledge/library")
}
