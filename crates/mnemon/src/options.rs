//! How a memory is opened.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use mnemon_adapters::embed::Builtin;
use mnemon_core::embed::Embedder;
use mnemon_core::{Ids, Invalid, Notices, Tenant, Time};
use mnemon_engine::Memory;

use crate::memory::Opened;
use crate::{Error, Mnemon};

/// How a memory is opened; see [`Mnemon::options`].
#[must_use]
pub struct Options {
    tenant: String,
    actor: String,
    clock: Arc<dyn Fn() -> Time + Send + Sync>,
    embed: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tenant: Tenant::default().to_string(),
            actor: "library".to_owned(),
            clock: Arc::new(system_time),
            embed: true,
        }
    }
}

impl Options {
    /// Opens the memory of this tenant. Tenants share a store and never see each other's records.
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.tenant = name.into();
        self
    }

    /// The name under which changes appear in the history.
    pub fn actor(mut self, name: impl Into<String>) -> Self {
        self.actor = name.into();
        self
    }

    /// Takes the time from this clock instead of the system's, for tests.
    pub fn clock(mut self, clock: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Searches by words only and computes no embeddings.
    pub fn without_embedder(mut self) -> Self {
        self.embed = false;
        self
    }

    /// Opens this SQLite file, and creates it if it does not exist.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Mnemon, Error> {
        let path = path.as_ref();
        let Some(text) = path.to_str() else {
            let what = format!("{} is not valid UTF-8", path.display());
            return Err(Invalid::new("path", what).into());
        };
        self.open_url(&format!("sqlite:{text}"))
    }

    /// Opens the store that a URL names: `sqlite:PATH`, `jsonl:FOLDER`, `ram:` or, with the feature
    /// `postgres`, `postgres://USER:PASSWORD@HOST/DATABASE`.
    pub fn open_url(self, url: &str) -> Result<Mnemon, Error> {
        let tenant: Tenant = self.tenant.parse()?;
        let opened = mnemon_adapters::open(url)?;
        let notices = Notices::default();
        notices.extend(opened.notices);
        let ids = Ids::new(RandomState::new().hash_one(url));
        let mut builder = Memory::builder(opened.backend, ids);
        if self.embed {
            let embedder: Arc<dyn Embedder> = Arc::new(Builtin::new()?);
            builder = builder.embedder(embedder);
        }
        Ok(Mnemon::new(Opened {
            memory: builder.build(),
            tenant,
            actor: self.actor,
            clock: self.clock,
            notices,
        }))
    }
}

fn system_time() -> Time {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = passed.map_or(0, |passed| passed.as_millis());
    Time::EPOCH.plus_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
