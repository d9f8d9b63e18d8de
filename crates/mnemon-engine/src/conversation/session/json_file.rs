//! A JSON file for each session: `{folder}/{session}.json`.

use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::files::{Files, FilesError, Sweep};
use mnemon_core::{Ctx, Limits};

use super::{Mark, SessionId, SessionInfo, SessionState, Sessions};
use crate::records::{Error, Safety};

/// Sessions as JSON files in one folder.
pub struct JsonSessions {
    files: Arc<dyn Files>,
    folder: String,
    safety: Safety,
}

impl JsonSessions {
    /// Sessions in this folder; an empty name is the root of the files.
    pub fn new(files: Arc<dyn Files>, folder: impl Into<String>) -> Self {
        Self {
            files,
            folder: folder.into(),
            safety: Safety::default(),
        }
    }

    /// What is kept out of what is saved.
    #[must_use]
    pub fn safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    fn path(&self, id: &SessionId) -> String {
        match self.folder.as_str() {
            "" => format!("{id}.json"),
            folder => format!("{folder}/{id}.json"),
        }
    }
}

#[async_trait]
impl Sessions for JsonSessions {
    async fn load(
        &self,
        _ctx: &Ctx,
        id: &SessionId,
    ) -> Result<Option<(SessionState, Mark)>, Error> {
        let path = self.path(id);
        let Some(file) = self.files.read(&path).await? else {
            return Ok(None);
        };
        let state = SessionState::from_text(id, &file.bytes, &path)?;
        Ok(Some((state, Mark::Stamp(file.stamp))))
    }

    async fn save(
        &self,
        ctx: &Ctx,
        state: &SessionState,
        seen: Option<&Mark>,
    ) -> Result<(), Error> {
        let path = self.path(&state.session);
        let stamp = match seen {
            Some(Mark::Stamp(stamp)) => Some(stamp),
            None => None,
            // It was seen elsewhere, so what is here was not seen.
            Some(_) => return Err(FilesError::Conflict { path }.into()),
        };
        let state = state.screened(ctx, self.safety)?;
        self.files.write(&path, &state.to_text()?, stamp).await?;
        Ok(())
    }

    async fn delete(&self, _ctx: &Ctx, id: &SessionId) -> Result<bool, Error> {
        let path = self.path(id);
        let Some(file) = self.files.read(&path).await? else {
            return Ok(false);
        };
        self.files.remove(&path, &file.stamp).await?;
        // A writer that was killed may have left a copy beside it.
        self.files.sweep(&self.folder, Sweep::All).await?;
        Ok(true)
    }

    async fn list(&self, _ctx: &Ctx) -> Result<Vec<String>, Error> {
        let files = self.files.list(&self.folder).await?;
        let prefix = match self.folder.as_str() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let names = files.iter().filter_map(|file| {
            let name = file.path.strip_prefix(&prefix)?.strip_suffix(".json")?;
            // Files in folders below are somebody else's.
            name.parse::<SessionId>().ok()
        });
        let mut names: Vec<String> = names.map(|id| id.to_string()).collect();
        names.sort();
        names.truncate(Limits::DEFAULT.sessions);
        Ok(names)
    }

    async fn info(&self, _ctx: &Ctx, id: &SessionId) -> Result<Option<SessionInfo>, Error> {
        let path = self.path(id);
        let Some(file) = self.files.read(&path).await? else {
            return Ok(None);
        };
        let state = SessionState::from_text(id, &file.bytes, &path)?;
        Ok(Some(SessionInfo {
            session_id: id.to_string(),
            size: file.bytes.len() as u64,
            last_modified: file.stamp.modified,
            component_count: state.components.len(),
        }))
    }
}
