//! One tenant's folder: reads from the image, and the way to the disk for those who write.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use mnemon_core::ram::{Arrival, Image, ImageIndex};
use mnemon_core::{StoreError, Tenant};

use super::disk::{Lock, Paths, write_failed};
use super::notices::Notices;
use super::state::State;
use super::write::Job;
use crate::files::make_store_folder;

/// One tenant's log, as one process uses it.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) tenant: Tenant,
    pub(super) paths: Paths,
    pub(super) state: RwLock<State>,
    /// Batches that wait for the disk. Whoever gets hold of the state writes all of them at once.
    pub(super) queue: Mutex<VecDeque<Arc<Job>>>,
    /// Vectors and the search index, made when they are needed: a log keeps neither.
    index: Mutex<ImageIndex>,
}

impl Folder {
    pub(super) fn new(root: &Path, tenant: Tenant) -> Self {
        Self {
            paths: Paths::of(root, &tenant),
            tenant,
            state: RwLock::default(),
            queue: Mutex::default(),
            index: Mutex::default(),
        }
    }

    /// Answers from the image and the index that follows it.
    pub(super) fn search<T>(
        &self,
        work: impl FnOnce(&mut ImageIndex, &Image) -> T,
    ) -> Result<T, StoreError> {
        self.read(|image| {
            let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut index, image)
        })
    }

    /// Keeps the vectors of a batch that was written.
    pub(super) fn keep_vectors(&self, arrivals: Vec<Arrival>) {
        if !arrivals.is_empty() {
            // The batch is on the disk by now; what has no vector gets one later.
            let _ = self.search(|index, image| index.keep(image, arrivals));
        }
    }

    /// Answers from the image once it shows everything that anybody has committed.
    pub(super) fn read<T>(&self, work: impl FnOnce(&Image) -> T) -> Result<T, StoreError> {
        if let Ok(state) = self.state.read()
            && state.is_current(&self.paths)?
        {
            return Ok(work(&state.image));
        }
        let mut state = self.state_mut();
        self.refresh(&mut state)?;
        Ok(work(&state.image))
    }

    pub(super) fn refresh(&self, state: &mut State) -> Result<(), StoreError> {
        if state.is_current(&self.paths)? {
            return Ok(());
        }
        // While a writer is at it the end of the log may be half a commit.
        let _lock = Lock::shared(&self.paths)?;
        state.catch_up(&self.paths, &self.tenant)
    }

    /// The state, for one who changes it. After a panic it is read anew from the disk.
    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        match self.state.write() {
            Ok(state) => state,
            Err(poisoned) => {
                let mut state = poisoned.into_inner();
                *state = State::default();
                self.state.clear_poison();
                state
            }
        }
    }

    /// Waits until nobody else reads or writes, and reads what they wrote.
    pub(super) fn hold(&self, state: &mut State) -> Result<Lock, StoreError> {
        make_store_folder(&self.paths.folder)
            .map_err(|error| write_failed(&self.paths.folder, error))?;
        let lock = Lock::exclusive(&self.paths)?;
        let first_look = state.log.is_none();
        state.catch_up(&self.paths, &self.tenant)?;
        if first_look {
            // What a rewrite left behind can wait for the next one if it cannot be removed.
            let _ = self.sweep(state);
        }
        Ok(lock)
    }

    /// Reads the log for the first time, and removes what an interrupted rewrite left behind,
    /// unless others are busy here.
    pub(super) fn look(&self) -> Result<(), StoreError> {
        let mut state = self.state_mut();
        self.refresh(&mut state)?;
        if !self.leftovers(&state).is_empty()
            && let Some(_lock) = Lock::try_exclusive(&self.paths)
        {
            state.catch_up(&self.paths, &self.tenant)?;
            let _ = self.sweep(&state);
        }
        Ok(())
    }

    /// Whether anything was ever written here.
    pub(super) fn is_there(&self) -> bool {
        self.paths.log.exists()
    }

    pub(super) fn notices(&self) -> Notices {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut notices = state.notices.clone();
        notices.set_aside.extend(self.paths.set_aside());
        notices
    }
}
