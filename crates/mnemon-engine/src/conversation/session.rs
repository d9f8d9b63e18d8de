//! Sessions: the parts of an agent save their states together and get them back together.
//!
//! A part is a [`StateModule`]. [`Session`] puts several under one id; [`Sessions`] is where it
//! lies: a JSON file ([`JsonSessions`]), a folder with a file for each part ([`FolderSessions`]),
//! or a record in a store ([`KeptSessions`]).

mod copies;
mod folder;
mod id;
mod json_file;
mod state;
mod store_backed;

use async_trait::async_trait;
use mnemon_core::files::Stamp;
use mnemon_core::{Ctx, ErrorKind, Invalid, Time, limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use copies::{FORK_OF, SNAPSHOT_OF, copied_from, copies_of};
pub use copies::{fork, replace, restore, snapshot};
pub use folder::{FolderSessions, Saved};
pub use id::SessionId;
pub use json_file::JsonSessions;
pub use state::SessionState;
pub use store_backed::KeptSessions;

use crate::records::Error;

/// A part of an agent whose state outlives the process.
pub trait StateModule: Send {
    /// The name its state is saved under.
    fn component(&self) -> &str;

    /// Names under which other versions and systems saved the same state. The case of a name's
    /// first letter does not count.
    fn aliases(&self) -> &[&str] {
        &[]
    }

    /// The state as JSON. A list is appended to where the place allows it.
    fn save_state(&self) -> Result<Value, Invalid>;

    /// Takes the state over, whole; on an error it stays as it was.
    fn load_state(&mut self, state: &Value) -> Result<(), Invalid>;
}

/// A place where sessions lie.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// What was saved, and a mark to save over it with; `None` when there is no such session.
    async fn load(&self, ctx: &Ctx, id: &SessionId) -> Result<Option<(SessionState, Mark)>, Error>;

    /// Saves the state, if what is there is still what `seen` says (`None`: nothing).
    async fn save(&self, ctx: &Ctx, state: &SessionState, seen: Option<&Mark>)
    -> Result<(), Error>;

    /// Takes the session away; whether it was there.
    async fn delete(&self, ctx: &Ctx, id: &SessionId) -> Result<bool, Error>;

    /// The names of the sessions, sorted; at most [`Limits::sessions`](mnemon_core::Limits::sessions).
    async fn list(&self, ctx: &Ctx) -> Result<Vec<String>, Error>;

    /// How much there is of it, without its state; `None` when there is no such session.
    async fn info(&self, ctx: &Ctx, id: &SessionId) -> Result<Option<SessionInfo>, Error>;
}

/// Tells one saved state from the next, so that nobody's save is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// Of a file.
    Stamp(Stamp),
    /// Of a record.
    Version(u64),
    /// Of a folder: a digest of what lies in it.
    Digest(String),
}

/// A session as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    #[serde(rename = "session")]
    pub session_id: String,
    /// In bytes of JSON.
    #[serde(rename = "bytes")]
    pub size: u64,
    #[serde(rename = "updated")]
    pub last_modified: Time,
    #[serde(rename = "components")]
    pub component_count: usize,
}

/// Several state modules under one session id.
pub struct Session<'a> {
    id: SessionId,
    place: &'a dyn Sessions,
    parts: Vec<Part<'a>>,
}

struct Part<'a> {
    module: &'a mut dyn StateModule,
    is_optional: bool,
}

impl<'a> Session<'a> {
    /// The session of this id at this place.
    pub fn new(id: SessionId, place: &'a dyn Sessions) -> Self {
        Self {
            id,
            place,
            parts: Vec::new(),
        }
    }

    /// Adds a module. Loading fails when its state was not saved.
    pub fn with(self, module: &'a mut dyn StateModule) -> Result<Self, Invalid> {
        self.add(module, false)
    }

    /// Adds a module that may be newer than what was saved: without a state it stays as it is.
    pub fn with_optional(self, module: &'a mut dyn StateModule) -> Result<Self, Invalid> {
        self.add(module, true)
    }

    fn add(mut self, module: &'a mut dyn StateModule, is_optional: bool) -> Result<Self, Invalid> {
        let name = module.component();
        id::check("component", name)?;
        if self
            .parts
            .iter()
            .any(|part| part.module.component() == name)
        {
            let what = format!("`{name}` is there twice; each module needs a unique name");
            return Err(Invalid::new("component", what));
        }
        self.parts.push(Part {
            module,
            is_optional,
        });
        Ok(self)
    }

    /// Whether something was saved.
    pub async fn exists(&self, ctx: &Ctx) -> Result<bool, Error> {
        Ok(self.place.info(ctx, &self.id).await?.is_some())
    }

    /// Gives every module its state back; `false`, and nothing is changed, if nothing was saved.
    pub async fn load_if_exists(&mut self, ctx: &Ctx) -> Result<bool, Error> {
        let Some((state, _)) = self.place.load(ctx, &self.id).await? else {
            return Ok(false);
        };
        self.take_over(&state)?;
        Ok(true)
    }

    /// Gives every module its state back.
    pub async fn load_or_fail(&mut self, ctx: &Ctx) -> Result<(), Error> {
        match self.load_if_exists(ctx).await? {
            true => Ok(()),
            false => Err(self.not_found()),
        }
    }

    /// Saves the state of every module. What others saved under this id stays beside it.
    pub async fn save(&self, ctx: &Ctx) -> Result<(), Error> {
        self.save_over(ctx, true).await.map(|_| ())
    }

    /// Saves the state of every module if something was saved before; whether it did.
    pub async fn save_if_exists(&self, ctx: &Ctx) -> Result<bool, Error> {
        self.save_over(ctx, false).await
    }

    /// Takes away what was saved; whether there was something.
    pub async fn delete_if_exists(&self, ctx: &Ctx) -> Result<bool, Error> {
        self.place.delete(ctx, &self.id).await
    }

    /// Takes away what was saved.
    pub async fn delete_or_fail(&self, ctx: &Ctx) -> Result<(), Error> {
        match self.delete_if_exists(ctx).await? {
            true => Ok(()),
            false => Err(self.not_found()),
        }
    }

    async fn save_over(&self, ctx: &Ctx, also_new: bool) -> Result<bool, Error> {
        let mut tries = 0;
        loop {
            let (mut state, seen) = match self.place.load(ctx, &self.id).await? {
                Some((state, mark)) => (state, Some(mark)),
                None if also_new => (SessionState::new(self.id.clone()), None),
                None => return Ok(false),
            };
            self.put_into(&mut state)?;
            state.timestamp = Some(ctx.now.to_string());
            tries += 1;
            match self.place.save(ctx, &state, seen.as_ref()).await {
                Err(error)
                    if error.kind() == ErrorKind::Conflict && tries < limits::CHANGE_TRIES => {}
                done => return done.map(|()| true),
            }
        }
    }

    fn put_into(&self, state: &mut SessionState) -> Result<(), Error> {
        for part in &self.parts {
            let saved = part.module.save_state()?;
            let names = part.names();
            // What an older version saved under another name is the same state: it is replaced.
            while let Some(old) = state::find(&state.components, &names) {
                let old = old.to_owned();
                state.components.remove(&old);
            }
            let name = part.module.component().to_owned();
            state.components.insert(name, saved);
        }
        Ok(())
    }

    /// All modules or none: when one refuses its state, those before it get their own back.
    fn take_over(&mut self, state: &SessionState) -> Result<(), Error> {
        let mut chosen: Vec<Option<&Value>> = Vec::new();
        for part in &self.parts {
            let name = state::find(&state.components, &part.names());
            if name.is_none() && !part.is_optional {
                return Err(Error::NoComponent {
                    session: self.id.to_string(),
                    component: part.module.component().to_owned(),
                    there: state.components.keys().cloned().collect(),
                });
            }
            chosen.push(name.and_then(|name| state.components.get(name)));
        }
        let mut before: Vec<Option<Value>> = Vec::new();
        for (part, wanted) in self.parts.iter_mut().zip(&chosen) {
            let Some(wanted) = wanted else {
                before.push(None);
                continue;
            };
            let own = part.module.save_state()?;
            if let Err(error) = part.module.load_state(wanted) {
                let component = part.module.component().to_owned();
                self.give_back(&before);
                return Err(Error::BadState {
                    session: self.id.to_string(),
                    component,
                    what: error,
                });
            }
            before.push(Some(own));
        }
        Ok(())
    }

    fn give_back(&mut self, before: &[Option<Value>]) {
        for (part, own) in self.parts.iter_mut().zip(before) {
            if let Some(own) = own {
                // A module that cannot read what it has just written is beyond help; the error
                // that is being reported matters more.
                let _ = part.module.load_state(own);
            }
        }
    }

    fn not_found(&self) -> Error {
        Error::NoSession(self.id.to_string())
    }
}

impl Part<'_> {
    fn names(&self) -> Vec<&str> {
        let own = std::iter::once(self.module.component());
        own.chain(self.module.aliases().iter().copied()).collect()
    }
}

/// The state of a session that must be there.
pub(crate) async fn load(
    place: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
) -> Result<(SessionState, Mark), Error> {
    let found = place.load(ctx, id).await?;
    found.ok_or_else(|| Error::NoSession(id.to_string()))
}
