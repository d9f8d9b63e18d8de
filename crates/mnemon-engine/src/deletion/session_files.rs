//! Files of a session: its log, its pages, its saved states.

use std::sync::Arc;

use mnemon_core::Ctx;
use mnemon_core::files::{Files, Sweep};
use mnemon_core::log::Log;

use super::NotErased;
use crate::conversation::session::{SessionId, Sessions, copies_of};
use crate::conversation::{is_page_of, library_folder, log_folder, log_path};
use crate::records::Error;

/// The files of a project, below one root.
pub struct ProjectFiles {
    /// How the root is told to people, and known to the store: an absolute path.
    pub root: String,
    pub files: Arc<dyn Files>,
    pub log: Arc<dyn Log>,
}

/// A folder of saved sessions.
pub struct SavedFolder {
    /// How the folder is told to people.
    pub folder: String,
    pub sessions: Arc<dyn Sessions>,
    /// The files in it, to sweep.
    pub files: Arc<dyn Files>,
}

/// What became of the files.
#[derive(Default)]
pub(super) struct FilesDone {
    pub(super) erased: Vec<String>,
    pub(super) left: Vec<NotErased>,
    pub(super) forks: Vec<String>,
}

impl FilesDone {
    fn count<T>(&mut self, path: String, done: Result<Option<T>, Error>) {
        match done {
            Ok(Some(_)) => self.erased.push(path),
            Ok(None) => {}
            Err(error) => self.leave(path, error.to_string()),
        }
    }

    fn leave(&mut self, path: String, why: String) {
        self.left.push(NotErased { path, why });
    }
}

impl ProjectFiles {
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.root.trim_end_matches('/'))
    }

    /// The files that hold text of the session, and what could not be looked into.
    pub(super) async fn held(&self, session: &SessionId) -> (Vec<String>, Vec<NotErased>) {
        let mut look = FilesDone::default();
        let path = log_path(session);
        let log = self.log.read_before(&path, None, 0).await;
        look.count(path, log.map_err(Error::from));
        let pages = match self.files.list(&library_folder()).await {
            Ok(pages) => pages,
            Err(error) => {
                look.leave(library_folder(), error.to_string());
                Vec::new()
            }
        };
        for page in pages.iter().filter(|page| page.path.ends_with(".md")) {
            let read = self.files.read(&page.path).await.map_err(Error::from);
            let is_theirs = |bytes: &[u8]| is_page_of(&String::from_utf8_lossy(bytes), session);
            let read = read.map(|file| file.filter(|file| is_theirs(&file.bytes)));
            look.count(page.path.clone(), read);
        }
        for left in &mut look.left {
            left.path = self.path(&left.path);
        }
        (look.erased, look.left)
    }

    /// Erases the log and the pages of the session, and what killed writers left beside them.
    pub(super) async fn erase(&self, session: &SessionId) -> FilesDone {
        let (held, left) = self.held(session).await;
        let mut done = FilesDone {
            left,
            ..FilesDone::default()
        };
        for path in held {
            let erased = self.erase_one(&path, session).await;
            done.count(self.path(&path), erased.map(|erased| erased.then_some(())));
        }
        for folder in [log_folder(), library_folder()] {
            match self.files.sweep(&folder, Sweep::All).await {
                Ok(swept) => done.erased.extend(swept.iter().map(|path| self.path(path))),
                Err(error) => done.leave(self.path(&folder), error.to_string()),
            }
        }
        done
    }

    async fn erase_one(&self, path: &str, session: &SessionId) -> Result<bool, Error> {
        if path == log_path(session) {
            return Ok(self.log.erase(path).await?);
        }
        let Some(page) = self.files.read(path).await? else {
            return Ok(false);
        };
        self.files.remove(path, &page.stamp).await?;
        Ok(true)
    }
}

impl SavedFolder {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}.json", self.folder.trim_end_matches('/'))
    }

    /// The session and its snapshots that are saved here, by name, and what could not be looked
    /// into.
    async fn look(&self, ctx: &Ctx, session: &SessionId) -> (Vec<SessionId>, FilesDone) {
        let mut look = FilesDone::default();
        let mut names = Vec::new();
        match self.sessions.list(ctx).await {
            Ok(saved) if saved.iter().any(|name| name == session.as_str()) => {
                names.push(session.clone());
            }
            Ok(_) => {}
            Err(error) => look.leave(self.folder.clone(), error.to_string()),
        }
        match copies_of(&*self.sessions, ctx, session).await {
            Ok(copies) => {
                names.extend(copies.snapshots);
                look.forks.extend(copies.forks);
                for (name, why) in copies.unreadable {
                    look.leave(self.path(&name), why);
                }
            }
            Err(error) => look.leave(self.folder.clone(), error.to_string()),
        }
        (names, look)
    }

    /// The files of the session and its snapshots.
    pub(super) async fn held(&self, ctx: &Ctx, session: &SessionId) -> Vec<String> {
        let (names, _) = self.look(ctx, session).await;
        names.iter().map(|name| self.path(name.as_str())).collect()
    }

    /// Erases the session and its snapshots, and what killed writers left in the folder.
    pub(super) async fn erase(&self, ctx: &Ctx, session: &SessionId) -> FilesDone {
        let (names, mut done) = self.look(ctx, session).await;
        for id in &names {
            let deleted = self.sessions.delete(ctx, id).await;
            let deleted = deleted.map(|deleted| deleted.then_some(()));
            done.count(self.path(id.as_str()), deleted);
        }
        match self.files.sweep("", Sweep::All).await {
            Ok(swept) => {
                let folder = self.folder.trim_end_matches('/');
                done.erased
                    .extend(swept.iter().map(|name| format!("{folder}/{name}")));
            }
            Err(error) => done.leave(self.folder.clone(), error.to_string()),
        }
        done
    }
}
