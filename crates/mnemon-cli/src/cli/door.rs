//! What every command is given: the configuration, the way in and the way out.

use std::path::Path;
use std::sync::Arc;

use mnemon_core::{CommitGroup, Ctx, Invalid};
use mnemon_engine::Memory;

use super::input;
use super::out::Out;
use super::remote::Remote;
use mnemon_operations::config::{Config, Origin, Secret};
use mnemon_operations::{Error, wiring};

/// Reads the configuration again.
pub(super) type Reload = Arc<dyn Fn() -> Result<Config, Error> + Send + Sync>;

pub(super) struct Door {
    pub(super) config: Config,
    pub(super) out: Out,
    /// Everything that the command writes is one commit.
    group: CommitGroup,
    /// Whether the command only reads, and so creates no store.
    reads: bool,
    /// The command, without the name of the program.
    command: String,
    /// Reads the configuration again, as it is now.
    pub(super) reload: Reload,
    /// The server that runs the operations, if one is named.
    pub(super) remote: Option<Remote>,
}

impl Door {
    pub(super) fn new(
        config: Config,
        quiet: bool,
        reads: bool,
        command: String,
        reload: Reload,
    ) -> Result<Self, Error> {
        let remote = match &config.server {
            Some(url) => Some(Remote::new(
                url,
                key(&config)?,
                config.server_ca.as_deref(),
            )?),
            None => None,
        };
        let out = Out::new(config.json.value, quiet);
        out.notes(&config.notices);
        let group = CommitGroup::default();
        Ok(Self {
            config,
            out,
            group,
            reads,
            command,
            reload,
            remote,
        })
    }

    /// That the command may use this machine: no server is named.
    pub(super) fn local(&self) -> Result<(), Error> {
        match &self.remote {
            Some(_) => Err(Error::LocalCommand(self.command.clone())),
            None => Ok(()),
        }
    }

    /// The same for an option of the command.
    pub(super) fn local_option(&self, option: &str) -> Result<(), Error> {
        match &self.remote {
            Some(_) => Err(Error::LocalCommand(format!("{} {option}", self.command))),
            None => Ok(()),
        }
    }

    /// Opens the store. What there is to know about it is printed on stderr.
    pub(super) fn memory(&self) -> Result<Arc<Memory>, Error> {
        self.opened(self.reads)
    }

    /// The same for a server, which measures what the store and the models do.
    pub(super) fn metered_memory(&self, meter: &Arc<wiring::Meter>) -> Result<Arc<Memory>, Error> {
        self.local()?;
        Ok(self.noted(wiring::open_metered(&self.config, meter)?))
    }

    fn opened(&self, to_read: bool) -> Result<Arc<Memory>, Error> {
        self.local()?;
        Ok(self.noted(match to_read {
            true => wiring::open_to_read(&self.config)?,
            false => wiring::open(&self.config)?,
        }))
    }

    /// Prints what there is to know about a memory.
    fn noted(&self, wired: wiring::Wired) -> Arc<Memory> {
        self.out.notes(&wired.notices);
        let store = &self.config.store;
        if let (true, Origin::File { path, .. }) = (store.value == "ram:", &store.origin) {
            let what = "puts the store in memory: everything is gone when the program ends";
            self.out.note(&format!("{} {what}", path.display()));
        }
        Arc::new(wired.memory)
    }

    /// Opens the store, with what agents and teams have written into their files since the last
    /// time. A file that cannot be read is said on stderr and holds nobody up. Nothing is written
    /// to a store that is not the project's own.
    pub(super) async fn memory_with_files(&self) -> Result<Arc<Memory>, Error> {
        let folder = wiring::agents_folder(&self.config);
        if !folder.is_dir() {
            return self.memory();
        }
        let memory = self.opened(self.reads && !self.config.may_index_agents())?;
        let agents = wiring::agents(&self.config.tenant.value, &self.config.agents.value)?;
        if !self.config.may_index_agents() {
            let is_behind = agents.is_index_behind(&self.ctx()?, &memory).await;
            if is_behind.unwrap_or(true) {
                self.out.notices.add(not_indexed(&folder));
            }
            return Ok(memory);
        }
        if let Err(error) = agents.index(&self.ctx()?, &memory).await {
            let what = format!("{} is not indexed: {error}", folder.display());
            self.out.notices.add(what);
        }
        Ok(memory)
    }

    /// A call that is made now. Its notices are printed with the answer.
    pub(super) fn ctx(&self) -> Result<Ctx, Error> {
        Ok(Ctx {
            notices: self.out.notices.clone(),
            group: Some(self.group.clone()),
            ..wiring::stamp(&self.config)?
        })
    }
}

/// The key of a server: the key itself, or what its file holds.
pub(super) fn key(config: &Config) -> Result<Option<Secret>, Error> {
    if let Some(key) = &config.api_key {
        return Ok(Some(sendable(key.reveal(), "MNEMON_API_KEY", "the key")?));
    }
    let Some(path) = &config.api_key_file else {
        return Ok(None);
    };
    let key = input::file(path)?;
    let place = format!("the key in {}", path.display());
    Ok(Some(sendable(&key, "MNEMON_API_KEY_FILE", &place)?))
}

/// A key that a header can hold.
fn sendable(key: &str, variable: &str, place: &str) -> Result<Secret, Invalid> {
    let key = key.trim();
    let wrong = match key {
        "" => "is empty",
        key if key.chars().any(char::is_control) => {
            "is malformed: it has a line break or another control character"
        }
        key => return Ok(Secret::new(key)),
    };
    Err(Invalid::new(variable, format!("{place} {wrong}")))
}

/// Why a project's files are not searched, and how they would be.
pub(super) fn not_indexed(folder: &Path) -> String {
    format!(
        "{} is not searched, since its text would be written to a memory outside this project; \
         `mnemon init` gives the project its own memory, `mnemon agent index` takes the text into \
         the memory in use",
        folder.display()
    )
}
