//! A project: the folder whose files hold conversations, their pages and their settings.
//!
//! ```text
//! .airsspec/contexts/agent/{session}.jsonl      the log of a conversation
//! .airsspec/knowledge/library/history-001.md    pages, and Markdown by hand
//! .airsspec/airsspec.toml                       [memory]
//! ```

mod config;

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::log::Log;
use mnemon_core::window::Settings;
use mnemon_core::{Ctx, Invalid, Scope, limits};

pub use config::ProjectConfig;

use super::library;
use super::log::ROOT;
use crate::memory::Memory;
use crate::records::project::short_digest;
use crate::records::undo::as_index;
use crate::records::{Error, Records};

/// Characters of the folder's name that are part of a session's name in the store.
const FOLDER_CHARS: usize = 32;

/// The files of a project, and how its conversations are kept.
pub struct Project {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) log: Arc<dyn Log>,
    root: String,
    config: ProjectConfig,
    /// Whether the pages of the library are indexed in the memory of the conversations.
    indexes_library: bool,
}

impl std::fmt::Debug for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Project").field(&self.root).finish()
    }
}

/// Two are the same if they lie in the same folder.
impl PartialEq for Project {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Project {
    /// The project below the root that both ports lead to, known by its real path.
    pub fn new(
        files: Arc<dyn Files>,
        log: Arc<dyn Log>,
        root: impl Into<String>,
        config: ProjectConfig,
    ) -> Result<Self, Invalid> {
        config.check()?;
        Ok(Self {
            files,
            log,
            root: root.into(),
            config,
            indexes_library: true,
        })
    }

    /// Leaves the pages of the library out of the memory of the conversations:
    /// [`Project::index_library_in`] puts them into another one that they can be searched in.
    #[must_use]
    pub fn library_apart(mut self) -> Self {
        self.indexes_library = false;
        self
    }

    /// What `airsspec.toml` says, and `plain` where it says nothing.
    pub async fn read_config(
        files: &dyn Files,
        plain: ProjectConfig,
    ) -> Result<ProjectConfig, Error> {
        let path = format!("{ROOT}/airsspec.toml");
        let Some(file) = files.read(&path).await? else {
            return Ok(plain);
        };
        let text = String::from_utf8(file.bytes)
            .map_err(|_| Invalid::new(path.clone(), "is not UTF-8 text"))?;
        let config = ProjectConfig::from_toml(&text, plain);
        Ok(config.map_err(|error| Invalid::new(path, error.to_string()))?)
    }

    /// How its conversations are kept.
    pub fn config(&self) -> &ProjectConfig {
        &self.config
    }

    /// The settings of a window in this project.
    pub fn settings(&self, plain: Settings) -> Settings {
        self.config.settings(plain)
    }

    /// Its real path.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Brings the index up to date with the pages of the library, unless they are kept apart.
    pub(crate) async fn index_library(&self, index: &Records, marks: &Records, ctx: &Ctx) {
        if !self.indexes_library {
            return;
        }
        if let Err(error) = library::index(index, marks, &as_index(ctx), self).await {
            let what = format!("The pages of the library are not indexed yet: {error}.");
            ctx.notices.add(what);
        }
    }

    /// Indexes the pages in `library`. The memory of the conversations holds which sessions were
    /// purged.
    pub async fn index_library_in(
        &self,
        library: &Memory,
        memory: &Memory,
        ctx: &Ctx,
    ) -> Result<(), Error> {
        let records = library.records_of(Scope::Semantic);
        let marks = memory.records_of(Scope::Dialog);
        library::index(records, marks, &as_index(ctx), self).await
    }

    /// What marks the index entries of its pages.
    pub(crate) fn tag(&self) -> String {
        format!("project:{}", short_digest(&[&self.root]))
    }
}

/// How a project's session is called in the store: no session that a user names holds a `/`, and
/// no other project has this digest.
pub(crate) fn session_in(root: &str, session: &str) -> Result<String, Invalid> {
    let folder = root
        .trim_end_matches(['/', '\\'])
        .rsplit(['/', '\\'])
        .next();
    let folder = folder.unwrap_or_default().chars().take(FOLDER_CHARS);
    let folder: String = folder
        .map(|c| if c.is_control() { '_' } else { c })
        .collect();
    let project = format!("{folder}.{}/", short_digest(&["session", root]));
    let most = limits::NAME_CHARS.saturating_sub(project.chars().count());
    let chars = session.chars().count();
    if chars > most {
        let what = format!(
            "has {chars} characters, at most {most} are allowed in this project: the store puts \
             the project before it"
        );
        return Err(Invalid::new("session", what));
    }
    Ok(format!("{project}{session}"))
}
