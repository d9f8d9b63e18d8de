//! Several files that change together.
//!
//! What is to be written is first written down whole, in one file: the journal. Then the files
//! follow, then the journal goes. A crash before the journal leaves everything as it was; a crash
//! after it leaves a journal, and whoever touches this memory next writes what is missing. Two who
//! do so at once write the same, so that it does not matter who is first. A file that somebody
//! else changed meanwhile is merged, section by section.

use mnemon_core::files::{FilesError, Stamp};
use mnemon_core::limits;
use mnemon_core::markdown::merge;
use serde::{Deserialize, Serialize};

use super::AgentFiles;
use crate::records::Error;

/// The journal's name in the folder that it is about.
pub(super) const JOURNAL: &str = ".mnemon-journal.json";

/// The version of the journal's form.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    v: u32,
    files: Vec<Step>,
}

/// A file as it was read and as it shall be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) path: String,
    /// `None`: there was none.
    pub(super) before: Option<String>,
    pub(super) after: String,
}

impl AgentFiles {
    /// Writes all the files or, after a crash, has the next one who comes write them. Says where
    /// two changes met in one place and both were kept.
    pub(super) async fn write_together(
        &self,
        folder: &str,
        steps: Vec<Step>,
    ) -> Result<Vec<String>, Error> {
        let steps: Vec<Step> = steps
            .into_iter()
            .filter(|step| step.before.as_deref() != Some(step.after.as_str()))
            .collect();
        for step in &steps {
            super::check_size(&step.path, step.after.len())?;
        }
        if let [] | [_] = steps.as_slice() {
            let mut clashes = Vec::new();
            for step in &steps {
                clashes.extend(self.settle(step).await?);
            }
            return Ok(clashes);
        }
        let journal = Journal {
            v: VERSION,
            files: steps,
        };
        let text = serde_json::to_string(&journal).map_err(|error| Error::BadFile {
            path: folder.to_owned(),
            what: format!("the journal cannot be written: {error}"),
        })?;
        let path = format!("{folder}/{JOURNAL}");
        for _ in 0..limits::FILE_TRIES {
            match self.files.write(&path, text.as_bytes(), None).await {
                Ok(stamp) => return self.follow(&path, &journal, &stamp).await,
                Err(FilesError::Conflict { .. }) => self.recover(folder).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Crowded { path })
    }

    /// Finishes what a crash (or somebody slower) left undone in this folder.
    pub(super) async fn recover(&self, folder: &str) -> Result<(), Error> {
        let path = format!("{folder}/{JOURNAL}");
        let Some(file) = self.files.read(&path).await? else {
            return Ok(());
        };
        let bad = |what: String| Error::BadFile {
            path: path.clone(),
            what: format!("{what}; look at it, write what is missing by hand, and remove it"),
        };
        let journal: Journal = serde_json::from_slice(&file.bytes)
            .map_err(|error| bad(format!("is not a journal ({error})")))?;
        if journal.v != VERSION {
            return Err(bad(format!(
                "has the form {}, {VERSION} is known",
                journal.v
            )));
        }
        let inside = |step: &Step| {
            let below = step
                .path
                .strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'));
            below.is_some() && step.path.ends_with(".md")
        };
        if !journal.files.iter().all(inside) {
            return Err(bad("names a file that is not its own".to_owned()));
        }
        self.follow(&path, &journal, &file.stamp).await.map(|_| ())
    }

    async fn follow(
        &self,
        path: &str,
        journal: &Journal,
        stamp: &Stamp,
    ) -> Result<Vec<String>, Error> {
        let mut clashes = Vec::new();
        for step in &journal.files {
            // Somebody else may have finished it long ago, and the file have changed since.
            let there = self.files.read(path).await?;
            if there.is_none_or(|file| file.stamp.digest != stamp.digest) {
                return Ok(clashes);
            }
            clashes.extend(self.settle(step).await?);
        }
        match self.files.remove(path, stamp).await {
            Ok(()) | Err(FilesError::Conflict { .. }) => Ok(clashes),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings one file from what it is to what it shall be.
    async fn settle(&self, step: &Step) -> Result<Vec<String>, Error> {
        for _ in 0..limits::FILE_TRIES {
            let read = self.read(&step.path).await?;
            let (now, stamp) = read.map_or((None, None), |read| (Some(read.text), read.stamp));
            if now.as_deref() == Some(step.after.as_str()) {
                return Ok(Vec::new());
            }
            let (text, clashes) = if now == step.before {
                (step.after.clone(), Vec::new())
            } else {
                let before = step.before.as_deref().unwrap_or_default();
                let merged = merge(before, &step.after, now.as_deref().unwrap_or_default());
                let place = |heading: &str| match heading.trim_start_matches(['#', ' ']) {
                    "" => step.path.clone(),
                    heading => format!("{}, {heading}", step.path),
                };
                let clashes = merged.clashes.iter();
                let clashes =
                    clashes.map(|clash| format!("{}: {}", place(&clash.heading), clash.what));
                (merged.text, clashes.collect())
            };
            if now.as_deref() == Some(text.as_str()) {
                return Ok(clashes);
            }
            match self.write(&step.path, &text, stamp.as_ref()).await {
                Err(Error::Files(FilesError::Conflict { .. })) => {}
                other => return other.map(|_| clashes),
            }
        }
        let path = step.path.clone();
        Err(Error::Crowded { path })
    }
}
