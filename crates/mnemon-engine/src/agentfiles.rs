//! Agents and teams whose memory is Markdown that people read, edit and keep in git.
//!
//! The files are the truth. Every write replaces a file only if it is still what was read; if
//! somebody was faster, the change is made again on what is there now, so that nobody's line is
//! lost. Where several files change together, a journal says what was meant: whoever comes next
//! finishes what was cut off.

mod agent;
mod context;
mod ending;
mod entries;
mod home;
mod indexing;
mod journal;
mod knowledge;
mod lint;
mod names;
mod team;
mod writing;

use std::sync::Arc;

use mnemon_core::files::{File, Files, FilesError, Stamp};
use mnemon_core::markdown::Document;
use mnemon_core::{Ctx, Invalid, limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::records::project::project_tag;
pub use agent::{Activation, AgentInfo, Part};
pub use context::{ContextChange, KeyFile, SectionText, StateRow};
pub use ending::{Archived, Ended, SessionEnd, Sizes};
pub use entries::{ChangedEntry, EntryChange, FieldText};
pub use home::Whose;
pub use indexing::Indexed;
pub use lint::Warning;
pub use mnemon_core::markdown::Language;
pub use team::{
    Blocker, BlockerInfo, Handoff, HandoffInfo, Member, NewTeam, Team, TeamInfo, TeamStatus,
};
pub use writing::{Code, Decision, FileChange, Issue, Learning, SessionLog};

use crate::records::safety::TakenOut;
use crate::records::{Error, Safety};

/// Where the files are when nobody says.
pub const ROOT: &str = ".microai";

/// Agents and teams below one folder.
#[derive(Clone)]
pub struct AgentFiles {
    files: Arc<dyn Files>,
    root: String,
    /// Which project's files they are, in the ids of what is indexed.
    project: String,
    sizes: Sizes,
    safety: Safety,
    /// Of the labels in new files.
    language: Language,
    /// Whether a write makes an agent that is not there.
    creates: bool,
}

/// A file that was read, and the stamp to write it back with.
struct Read {
    text: String,
    stamp: Option<Stamp>,
}

impl AgentFiles {
    /// Agents and teams below the folder `root` of these files.
    pub fn new(files: Arc<dyn Files>, root: &str) -> Result<Self, Error> {
        mnemon_core::files::check_path(root)?;
        Ok(Self {
            files,
            root: root.to_owned(),
            project: String::new(),
            sizes: Sizes::default(),
            safety: Safety::default(),
            language: Language::default(),
            creates: false,
        })
    }

    /// The project, by a name that no other has, such as the real path of its folder: two projects
    /// on one store have entries of their own.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = project.into();
        self
    }

    /// What is kept out of the files.
    #[must_use]
    pub fn safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    /// The language of labels and headings in new files; a file that is there keeps its own.
    #[must_use]
    pub fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Writes make an agent that is not there; without it they fail, as its name may be mistyped.
    #[must_use]
    pub fn creating(mut self, creates: bool) -> Self {
        self.creates = creates;
        self
    }

    /// What may be written of this; a notice names the secrets that were taken out.
    fn screened<T>(&self, ctx: &Ctx, field: &str, value: &T) -> Result<T, Invalid>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        let mut taken = TakenOut::default();
        let clean = self.safety.clean_value(field, value, &mut taken)?;
        ctx.notices.extend(taken.sentences());
        Ok(clean)
    }

    /// How long files may get before the oldest entries move to the archive.
    #[must_use]
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self
    }

    /// The file's text; `None` when there is no such file.
    async fn read(&self, path: &str) -> Result<Option<Read>, Error> {
        let read = self.files.read(path).await.map_err(unreadable)?;
        let Some(File { bytes, stamp }) = read else {
            return Ok(None);
        };
        check_size(path, bytes.len())?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Error::BadFile {
                path: path.to_owned(),
                what: format!("is not UTF-8 text (byte {at}); save it as UTF-8 and try again"),
            }
        })?;
        let stamp = Some(stamp);
        Ok(Some(Read { text, stamp }))
    }

    /// Changes one file; made again on the newest content whenever somebody else was faster. An
    /// edit that changes nothing writes nothing. A file that is not there begins as `template`.
    async fn change<T>(
        &self,
        path: &str,
        template: &str,
        mut edit: impl FnMut(&mut Document) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..limits::FILE_TRIES {
            let read = self.read(path).await?;
            let (text, stamp) = match read {
                Some(read) => (read.text, read.stamp),
                None => (template.to_owned(), None),
            };
            let mut document = Document::parse(text.as_str());
            let done = edit(&mut document)?;
            if stamp.is_some() && document.as_str() == text {
                return Ok(done);
            }
            match self.write(path, document.as_str(), stamp.as_ref()).await {
                Err(Error::Files(FilesError::Conflict { .. })) => {}
                other => return other.map(|_| done),
            }
        }
        let path = path.to_owned();
        Err(Error::Crowded { path })
    }

    async fn write(&self, path: &str, text: &str, stamp: Option<&Stamp>) -> Result<Stamp, Error> {
        check_size(path, text.len())?;
        Ok(self.files.write(path, text.as_bytes(), stamp).await?)
    }

    fn agents(&self) -> String {
        format!("{}/agents", self.root)
    }

    fn agent(&self, name: &str) -> Result<String, Error> {
        names::check(names::Sort::Agent, name)?;
        Ok(format!("{}/{name}", self.agents()))
    }
}

fn unreadable(error: FilesError) -> Error {
    match error {
        // These files have a limit of their own, below that of the port.
        FilesError::TooLarge { path, bytes, .. } => FilesError::TooLarge {
            path,
            bytes,
            most: limits::AGENT_FILE_BYTES as u64,
        }
        .into(),
        // A folder that is set for notes has nothing to do with it.
        FilesError::Outside { path, what } => Invalid::new(path, what).into(),
        other => other.into(),
    }
}

fn check_size(path: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= limits::AGENT_FILE_BYTES {
        return Ok(());
    }
    Err(Error::Files(FilesError::TooLarge {
        path: path.to_owned(),
        bytes: bytes as u64,
        most: limits::AGENT_FILE_BYTES as u64,
    }))
}
