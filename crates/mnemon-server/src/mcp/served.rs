//! What a server serves: a memory, the agents' files, and the tools it shows.

use std::sync::Arc;
use std::time::Duration;

use mnemon_core::{Ctx, Invalid, Owner, Viewer};
use mnemon_engine::Memory;
use mnemon_engine::access::Rights;
use mnemon_engine::agentfiles::AgentFiles;
use mnemon_engine::longterm::Mode;
use tokio::sync::Mutex;

use super::answer::excerpt;
use super::profile::Profile;
use super::tool::{Tool, Touch};
use super::tools;
use mnemon_operations::api::reembed;
use mnemon_operations::config::{Config, EmbedderChoice};
use mnemon_operations::operation::{Operation, USER, Undo};
use mnemon_operations::{Error, wiring};

/// Summaries that one background task asks the language model for.
const SUMMARIES: usize = 20;

/// Records that the background embeds at a time, and the pause between: with MiniLM a quarter of a
/// second of work, so that a call seldom waits for it.
const PORTION: usize = 16;
const PAUSE: Duration = Duration::from_millis(50);

/// What every connection shares.
pub struct Served {
    pub(super) memory: Arc<Memory>,
    pub(super) agents: AgentFiles,
    pub(super) config: Config,
    pub(super) tools: Vec<Tool>,
    pub(super) long_term: Mode,
    pub(super) structured: bool,
    user: Option<String>,
    options: Options,
    refining: Arc<Mutex<()>>,
}

/// How a server is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// The tools to show.
    pub tools: Vec<Profile>,
    /// The only user whose memory is served, beside records without a user; `None` serves every
    /// user of the tenant.
    pub user: Option<String>,
    /// How long-term memory is used.
    pub long_term: Mode,
    /// Whether tools that read answer with structured content beside the text.
    pub structured: bool,
    /// Who calls from another machine; `None` for a client that started the server.
    pub remote: Option<RemoteCaller>,
}

/// What a caller from another machine may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteCaller {
    pub rights: Rights,
    /// Whether a key binds the caller to the user.
    pub is_bound: bool,
}

impl Served {
    /// Serves this memory.
    pub fn new(config: Config, memory: Arc<Memory>, options: Options) -> Result<Self, Error> {
        Ok(Self {
            memory,
            agents: wiring::agents(&config.tenant.value, &config.agents.value)?
                .safety(config.safety())
                .language(config.agent_language.value),
            tools: tools::of(&options.tools, options.long_term, options.remote),
            long_term: options.long_term,
            structured: options.structured,
            user: options.user.clone(),
            options,
            refining: Arc::default(),
            config,
        })
    }

    /// Lets the language model write the summaries that wait for it, while the client goes on. One
    /// task at a time: what it does not get to, the next one or upkeep does.
    pub(super) fn refine_in_background(&self) -> Result<(), Error> {
        let (memory, ctx) = (self.memory.clone(), self.ctx()?);
        let Ok(refining) = self.refining.clone().try_lock_owned() else {
            return Ok(());
        };
        tokio::spawn(async move {
            // A failure stays in the summary's event, and upkeep tries again.
            let _ = memory.refine_summaries(&ctx, SUMMARIES).await;
            drop(refining);
        });
        Ok(())
    }

    /// Embeds records that have no vector of the current embedder, as after a change of the embedder,
    /// a few at a time while clients are served. An endpoint may cost money for each text, so it is
    /// asked by `mnemon upkeep` and `mnemon reembed` only.
    pub async fn embed_missing(&self) {
        if let EmbedderChoice::OpenAi { .. } = self.config.embedder.value {
            return;
        }
        let mut reached = 0;
        while let Ok(ctx) = self.ctx() {
            match reembed::run(&self.memory, &ctx, reached, PORTION).await {
                Ok(portion) if portion.more => reached = portion.reached,
                // Nothing is left, or upkeep will report the failure.
                Ok(_) | Err(_) => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The only user that is served, if there is one.
    pub fn bound_user(&self) -> Option<String> {
        self.user.clone()
    }

    /// Whether a key binds the caller to the user.
    pub(super) fn is_bound(&self) -> bool {
        self.options.remote.is_some_and(|remote| remote.is_bound)
    }

    /// Whether the tool may change something, and how many records it may add; 0 if it makes existing
    /// ones longer.
    pub fn effect(&self, tool: &str) -> (bool, Option<u64>) {
        let known = self.tools.iter().find(|known| known.name == tool);
        let touch = known.map_or(Touch::Reads, |known| known.touch);
        let added = match touch {
            Touch::Adds => Some(1),
            Touch::Edits if tool != Undo::TOOL => Some(0),
            _ => None,
        };
        (touch != Touch::Reads, added)
    }

    pub fn memory(&self) -> Arc<Memory> {
        self.memory.clone()
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The same memory for another caller.
    pub fn for_caller(
        &self,
        config: Config,
        user: Option<String>,
        remote: RemoteCaller,
    ) -> Result<Self, Error> {
        let options = Options {
            user,
            remote: Some(remote),
            ..self.options.clone()
        };
        Self::new(config, self.memory.clone(), options)
    }

    /// A call that is made now.
    pub(super) fn ctx(&self) -> Result<Ctx, Error> {
        wiring::stamp(&self.config)
    }

    /// That a call means the user of this server, if it has one: `--user` gives the server to one
    /// user, and no caller becomes another by naming them.
    pub(super) fn check_user(&self, named: Option<&str>) -> Result<(), Invalid> {
        match (&self.user, named) {
            (Some(own), Some(named)) if own != named => {
                let what = format!(
                    "is `{}`, and this server serves only `{}`; leave the user out",
                    excerpt(named, 60),
                    excerpt(own, 60)
                );
                Err(Invalid::new("user", what))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn user(&self, named: Option<String>) -> String {
        let user = named.or_else(|| self.user.clone());
        user.unwrap_or_else(|| USER.to_owned())
    }

    /// Who sees what is read: the user that is named or served; the tenant if there is none.
    pub(super) fn viewer(&self, named: Option<String>) -> Viewer {
        Viewer::of_caller(named.or_else(|| self.user.clone()), None)
    }

    pub(super) fn owner(&self, user: Option<String>) -> Owner {
        Owner::of(user.as_deref().or(self.user.as_deref()), None)
    }

    /// Indexes what agents wrote into their files since the last time, if the store is the
    /// project's own. A file that cannot be read holds nobody up.
    pub(super) async fn index_files(&self, ctx: &Ctx) {
        let folder = wiring::agents_folder(&self.config);
        if self.config.may_index_agents()
            && folder.is_dir()
            && let Err(error) = self.agents.index(ctx, &self.memory).await
        {
            let what = format!("{} is not indexed: {error}", folder.display());
            ctx.notices.add(what);
        }
    }
}
