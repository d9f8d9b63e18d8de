//! From `mnemon.toml`, `MNEMON_*` and flags to one [`Config`]. A flag beats a variable, a variable
//! beats the project's file, that beats the user's own file, and this the default; every value
//! remembers which it was. Of a project's file only harmless settings count, unless the user has
//! trusted it.

mod access;
mod address;
mod embedder;
mod environment;
mod error;
mod file;
mod index;
mod llm;
mod memory_json;
mod notes;
mod origin;
mod policies;
mod remote;
mod reranker;
mod risk;
mod sources;
mod trust;
mod tuning;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mnemon_core::window::Settings;
use mnemon_core::{Caps, Invalid, Namespace, Policy, Tenant};
use mnemon_engine::ProjectConfig;
use mnemon_engine::agentfiles::{Language, ROOT as AGENT_FOLDER};
use mnemon_engine::notes::MaxEntries;
use serde::Serialize;
use serde_json::{Value, json};

use crate::env_vars::{self, EnvVar};
pub use access::{AccessSettings, JwksPlace, TokenSettings};
pub use address::{has_password, without_passwords};
pub use embedder::{EmbedderChoice, EmbeddingFunction, Secret};
pub use environment::{Environment, PROJECT, Platform, stays_inside};
pub use error::ConfigError;
use file::File;
pub use index::{BUILTIN, IndexSettings};
pub use llm::{LlmProvider, LlmSettings, Money};
pub use notes::{Lengths, NoteSettings};
pub use origin::{Origin, Sourced};
pub use policies::{FlowPolicies, PolicyRow};
pub use remote::{ExternalSettings, RemoteSettings, Remotes};
pub use reranker::RerankerChoice;
pub use risk::Risk;
use risk::{DELETES, HARMLESS, IMPERSONATES, OPENS, ProjectRule, SENDS, WEAKENS};
use sources::Sources;
pub use sources::{Ignored, Inspected, RiskySetting, ignored_notice, inspect};
pub use trust::{Trust, TrustList, TrustedFile};

/// A setting: its key in the file, its variable, and whether a project's file may have it.
struct Key {
    name: &'static str,
    env: Option<EnvVar>,
    rule: ProjectRule,
}

const fn key(name: &'static str, env: EnvVar, rule: ProjectRule) -> Key {
    let env = Some(env);
    Key { name, env, rule }
}

/// A setting that has no variable.
const fn file_key(name: &'static str, rule: ProjectRule) -> Key {
    let env = None;
    Key { name, env, rule }
}

/// Defines keys, and [`KEYS`] with all of them.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $key:expr;)+) => {
        $($(#[$doc])* const $name: Key = $key;)+
        /// Every key that is defined here.
        pub(in crate::config) const KEYS: &[&Key] = &[$(&$name,)+];
    };
}
use keys;

keys! {
    STORE = key("store", env_vars::MNEMON_STORE, OPENS);
    TENANT = key("tenant", env_vars::MNEMON_TENANT, IMPERSONATES);
    ACTOR = key("actor", env_vars::MNEMON_ACTOR, IMPERSONATES);
    /// Answers in JSON leave out what a person is shown before a question.
    JSON = key("json", env_vars::MNEMON_JSON, WEAKENS);
    EMBEDDER = key("embedder", env_vars::MNEMON_EMBEDDER, SENDS);
    RERANKER = key("reranker", env_vars::MNEMON_RERANKER, SENDS);
    ONNXRUNTIME = key("onnxruntime", env_vars::MNEMON_ONNXRUNTIME, ProjectRule::Never(Risk::Runs));
    SHORT_TTL = key("namespaces.short-term.ttl_days", env_vars::MNEMON_SHORT_TERM_TTL_DAYS, DELETES);
    SHORT_MAX = key("namespaces.short-term.max_entries", env_vars::MNEMON_SHORT_TERM_MAX_ENTRIES, DELETES);
    LONG_TTL = key("namespaces.long-term.ttl_days", env_vars::MNEMON_LONG_TERM_TTL_DAYS, DELETES);
    LONG_MAX = key("namespaces.long-term.max_entries", env_vars::MNEMON_LONG_TERM_MAX_ENTRIES, DELETES);
    HISTORY_DAYS = key("history_days", env_vars::MNEMON_HISTORY_DAYS, DELETES);
    AGENTS = key("agents", env_vars::MNEMON_AGENTS, OPENS);
    AGENT_LANGUAGE = key("agent_language", env_vars::MNEMON_AGENT_LANGUAGE, HARMLESS);
}

fn known_keys() -> Vec<&'static Key> {
    [
        KEYS,
        notes::KEYS,
        llm::KEYS,
        index::KEYS,
        remote::KEYS,
        access::KEYS,
        tuning::KEYS,
    ]
    .concat()
}

/// What was said on the command line.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub store: Option<String>,
    pub tenant: Option<String>,
    pub json: bool,
    pub server: Option<String>,
}

impl Flags {
    fn get(&self, key: &Key) -> Option<(String, &'static str)> {
        match key.name {
            "store" => self.store.clone().map(|store| (store, "--store")),
            "tenant" => self.tenant.clone().map(|tenant| (tenant, "--tenant")),
            "json" if self.json => Some(("true".to_owned(), "--json")),
            _ => None,
        }
    }
}

/// How the records of one namespace are kept.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// Until they expire; `None` keeps them until they are forgotten.
    pub ttl_days: Sourced<Option<i64>>,
    /// How many notes; `None` is no cap.
    pub max_entries: Sourced<Option<u64>>,
}

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    pub store: Sourced<String>,
    pub tenant: Sourced<Tenant>,
    /// Who acts, for the history.
    pub actor: Sourced<String>,
    pub json: Sourced<bool>,
    /// What places records by their meaning.
    pub embedder: Sourced<EmbedderChoice>,
    /// The embedder's key; only from the environment, so that it lies in no file of ours.
    pub embedder_key: Option<Secret>,
    /// The server that has the memory, instead of a store of this machine. Never from a file: a
    /// project could send what is said in it elsewhere.
    pub server: Option<String>,
    /// Certificates that sign the server's, besides those of the system.
    pub server_ca: Option<PathBuf>,
    /// What clients over HTTP must show; only from the environment.
    pub api_key: Option<Secret>,
    /// A file that holds it.
    pub api_key_file: Option<PathBuf>,
    /// The address of an OpenTelemetry collector.
    pub otlp_endpoint: Option<String>,
    /// What reads the best hits once more.
    pub reranker: Sourced<RerankerChoice>,
    /// The library that runs models faster; never from a project's file.
    pub onnxruntime: Sourced<Option<PathBuf>>,
    /// Where weights that were pulled lie, if there is a folder for data.
    pub models: Option<PathBuf>,
    pub short_term: Keeping,
    pub long_term: Keeping,
    /// After how many days upkeep drops old versions; `None` keeps them until they are purged.
    pub history_days: Sourced<Option<i64>>,
    /// The folder of agents' and teams' Markdown.
    pub agents: Sourced<PathBuf>,
    /// The language of labels in new files of agents and teams.
    pub agent_language: Sourced<Language>,
    /// The language model that writes summaries; only from the file, but for its key.
    pub llm: LlmSettings,
    /// The index that searches use.
    pub index: IndexSettings,
    /// Memories and knowledge that other services keep.
    pub remotes: Remotes,
    /// Quotas, tokens and the audit log of a server; only from the file.
    pub access: AccessSettings,
    /// How a conversation's window is kept small; only from the file.
    pub window: Settings,
    /// How the conversations of a project are kept; only from the file.
    pub memory: ProjectConfig,
    /// The folder of the project: where `.mnemon` was found, or else where the user stands.
    pub project: PathBuf,
    /// Where the user stands.
    pub cwd: PathBuf,
    /// The user's folder, and theirs for configurations if it is not `.config` below.
    pub home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
    /// How notes are kept, found and told, and what is kept out of the memory.
    pub notes: NoteSettings,
    /// What each flow and each agent reads and writes; only from the file.
    pub policies: FlowPolicies,
    /// The files that were read, the strongest first.
    pub files: Vec<PathBuf>,
    /// Settings of the project's file that have no effect.
    pub ignored: Vec<Ignored>,
    /// The project's file, if it was read.
    pub project_file: Option<PathBuf>,
    /// The files of projects that the user trusts, if they have a folder for that list.
    pub trust_list: Option<TrustList>,
    /// Sentences for people: variables that look like ours but are not, links that are not
    /// followed.
    pub notices: Vec<String>,
    /// Every setting that was looked for, in the order of the documentation.
    pub found: Vec<Row>,
}

/// One line of `mnemon config`.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub key: String,
    pub value: Value,
    pub origin: String,
}

impl Config {
    /// The defaults with this store; nothing is read.
    pub fn for_store(store: impl Into<String>) -> Self {
        let retention = Keeping {
            ttl_days: Sourced::default(Some(14)),
            max_entries: Sourced::default(None),
        };
        Self {
            store: Sourced::default(store.into()),
            tenant: Sourced::default(Tenant::default()),
            actor: Sourced::default("cli".to_owned()),
            json: Sourced::default(false),
            embedder: Sourced::default(EmbedderChoice::Builtin),
            embedder_key: None,
            server: None,
            server_ca: None,
            api_key: None,
            api_key_file: None,
            otlp_endpoint: None,
            reranker: Sourced::default(RerankerChoice::None),
            onnxruntime: Sourced::default(None),
            models: None,
            short_term: retention.clone(),
            long_term: Keeping {
                ttl_days: Sourced::default(Some(3650)),
                ..retention
            },
            history_days: Sourced::default(None),
            agents: Sourced::default(PathBuf::from(AGENT_FOLDER)),
            agent_language: Sourced::default(Language::default()),
            llm: LlmSettings::default(),
            index: IndexSettings::default(),
            remotes: Remotes::default(),
            access: AccessSettings::default(),
            window: Settings::default(),
            memory: ProjectConfig::default(),
            project: PathBuf::from("."),
            cwd: PathBuf::from("."),
            home: None,
            config_home: None,
            notes: NoteSettings::default(),
            policies: FlowPolicies::default(),
            files: Vec::new(),
            ignored: Vec::new(),
            project_file: None,
            trust_list: None,
            notices: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Reads everything there is to read.
    pub fn load(flags: &Flags, env: &Environment) -> Result<Self, ConfigError> {
        let Sources {
            files,
            ignored,
            mut notices,
        } = Sources::find(flags, env)?;
        let layers = Layers {
            flags,
            env,
            files,
            rows: RefCell::default(),
        };
        let llm = LlmSettings::read(&layers, env)?;
        let index = IndexSettings::read(&layers, env)?;
        let remotes = Remotes::read(&layers, env)?;
        notices.extend(env.notices(&llm.key_env.value, &layers.key_envs()));
        let plain = Self::for_store(String::new());
        Ok(Self {
            store: layers.store()?,
            tenant: layers.read(&TENANT, plain.tenant.value, parse_word)?,
            actor: layers.read(&ACTOR, env.actor(), |text| Ok(text.to_owned()))?,
            json: layers.read(&JSON, false, parse_bool)?,
            embedder: layers.embedder()?,
            embedder_key: env.get(env_vars::MNEMON_EMBEDDER_KEY)?.map(Secret::new),
            server: match &flags.server {
                Some(server) => Some(server.clone()),
                None => env.get(env_vars::MNEMON_SERVER)?.map(str::to_owned),
            },
            server_ca: env.get(env_vars::MNEMON_SERVER_CA)?.map(PathBuf::from),
            api_key: env.get(env_vars::MNEMON_API_KEY)?.map(Secret::new),
            api_key_file: env.get(env_vars::MNEMON_API_KEY_FILE)?.map(PathBuf::from),
            otlp_endpoint: env
                .get(env_vars::OTEL_EXPORTER_OTLP_ENDPOINT)?
                .map(str::to_owned),
            reranker: layers.reranker()?,
            onnxruntime: layers.onnxruntime()?,
            models: env.models(),
            short_term: layers.keeping(&SHORT_TTL, &SHORT_MAX, &plain.short_term)?,
            long_term: layers.keeping(&LONG_TTL, &LONG_MAX, &plain.long_term)?,
            history_days: layers.read(&HISTORY_DAYS, None, parse_days)?,
            agents: layers.agents()?,
            agent_language: layers.read(&AGENT_LANGUAGE, Language::default(), parse_word)?,
            llm,
            access: AccessSettings::read(&layers, env)?,
            window: tuning::read(&layers, "window.", Settings::check)?,
            memory: tuning::read(&layers, "memory.", ProjectConfig::check)?,
            project: env.project_root(),
            cwd: env.cwd().to_owned(),
            home: env.home(),
            config_home: env.config_home(),
            notes: NoteSettings::read(&layers)?,
            policies: FlowPolicies::read(&layers.files)?,
            ignored,
            project_file: layers.project_file(),
            trust_list: TrustList::of(env),
            notices,
            found: layers.rows().into_iter().chain(remotes.rows()).collect(),
            index,
            remotes,
            files: layers.files.into_iter().map(|file| file.path).collect(),
        })
    }

    /// Who may do what, and how much is kept.
    pub fn policy(&self) -> Policy {
        Policy {
            caps: Caps {
                short_term: self.short_term.max_entries.value,
                long_term: self.long_term.max_entries.value,
            },
            history_days: self.history_days.value,
            ..Policy::default()
        }
    }

    /// Whether the store lies below this folder, so that it is the folder's own. One in memory is
    /// nobody else's either.
    pub fn store_is_below(&self, folder: &Path) -> bool {
        let path = self.store_path();
        let is_below = |path: PathBuf| environment::would_be_below(&path, folder);
        self.store.value.starts_with("ram:") || path.is_some_and(is_below)
    }

    /// The file or folder of the store; `None` if it is in memory or in a database server.
    pub fn store_path(&self) -> Option<PathBuf> {
        let (scheme, path) = self.store.value.split_once(':')?;
        let path = path.strip_prefix("//").unwrap_or(path);
        matches!(scheme, "sqlite" | "jsonl").then(|| self.cwd.join(path))
    }

    /// Whether agents' files may be indexed in the store without asking: if it is the project's
    /// own, or if the user named their folder.
    pub fn may_index_agents(&self) -> bool {
        let folder = &self.agents.value;
        let is_named = match &self.agents.origin {
            Origin::File { .. } => true,
            // A relative one is another folder in each project.
            Origin::Env(_) | Origin::Flag(_) => folder.is_absolute(),
            Origin::Default | Origin::Project(_) => false,
        };
        // The files of a clone inside a project are not the project's own.
        let folder = self.cwd.join(folder);
        is_named || folder.parent().is_some_and(|own| self.store_is_below(own))
    }

    /// Every value and where it came from.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.found.clone();
        let namespaces = [
            (SHORT_MAX, Namespace::ShortTerm),
            (LONG_MAX, Namespace::LongTerm),
        ];
        for (key, namespace) in namespaces {
            // Where nobody chose it is notes alone that have a limit.
            let usual = match self.notes_config().of(namespace).max_entries {
                MaxEntries::Usual(most) => most,
                MaxEntries::Chosen(_) => continue,
            };
            for row in rows.iter_mut().filter(|row| row.key == key.name) {
                row.value = json!(usual);
                row.origin.push_str(", for notes");
            }
        }
        let policies = self.policies.rows().into_iter().map(|row| Row {
            key: format!("{}.{}", row.whom, row.key),
            value: row.value,
            origin: row.origin.to_string(),
        });
        rows.extend(policies);
        rows
    }
}

/// Where values are looked for, the strongest first.
struct Layers<'a> {
    flags: &'a Flags,
    env: &'a Environment,
    files: Vec<File>,
    /// What was found.
    rows: RefCell<Vec<Row>>,
}

impl Layers<'_> {
    /// Remembers a setting, in place of what was remembered of it before.
    fn remember(&self, key: &Key, value: impl Serialize, origin: &Origin) {
        let value = match json!(value) {
            Value::String(text) => Value::String(without_passwords(&text)),
            other => other,
        };
        let mut rows = self.rows.borrow_mut();
        rows.retain(|row| row.key != key.name);
        rows.push(Row {
            key: key.name.to_owned(),
            value,
            origin: origin.to_string(),
        });
    }

    /// All that was found, in the order of the documentation.
    fn rows(&self) -> Vec<Row> {
        let order = [
            KEYS,
            llm::KEYS,
            index::KEYS,
            remote::KEYS,
            access::KEYS,
            tuning::KEYS,
            notes::KEYS,
        ];
        let order = order.concat();
        let mut rows = self.rows.take();
        rows.sort_by_key(|row| order.iter().position(|key| key.name == row.key));
        rows
    }

    fn find(&self, key: &Key) -> Result<Option<(String, Origin)>, ConfigError> {
        if let Some((text, flag)) = self.flags.get(key) {
            return Ok(Some((text, Origin::Flag(flag))));
        }
        if let Some(env) = key.env
            && let Some(text) = self.env.get(env)?
        {
            return Ok(Some((text.to_owned(), Origin::Env(env.name))));
        }
        if llm::ENDPOINT.iter().any(|one| one.name == key.name) {
            return Ok(self.endpoint().and_then(|file| file.get(key.name)));
        }
        Ok(self.files.iter().find_map(|file| file.get(key.name)))
    }

    /// The file that says where the language model is. Its key is read from the same file, so that
    /// no key goes to an address that it was not set with.
    fn endpoint(&self) -> Option<&File> {
        let mut files = self.files.iter();
        files.find(|file| llm::ENDPOINT.iter().any(|key| file.get(key.name).is_some()))
    }

    fn project_file(&self) -> Option<PathBuf> {
        let file = self.files.iter().find(|file| file.is_projects);
        file.map(|file| file.path.clone())
    }

    /// Whether this was said by a project's file, which the user has trusted.
    fn is_projects(&self, origin: &Origin) -> bool {
        let Origin::File { path, .. } = origin else {
            return false;
        };
        let mut files = self.files.iter();
        files.any(|file| file.is_projects && file.path == *path)
    }

    fn read<T: Serialize>(
        &self,
        key: &Key,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Sourced<T>, ConfigError> {
        self.read_settled(key, default, parse, |_, _| {})
    }

    /// The same, with `settle` to complete a value, which may be a path, in the light of its origin.
    fn read_settled<T: Serialize>(
        &self,
        key: &Key,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
        settle: impl FnOnce(&mut T, &Origin),
    ) -> Result<Sourced<T>, ConfigError> {
        let mut read = match self.find(key)? {
            None => Sourced::default(default),
            Some((text, origin)) => match parse(&text) {
                Ok(value) => Sourced { value, origin },
                Err(what) => {
                    let key = key.name;
                    return Err(ConfigError::Value { key, origin, what });
                }
            },
        };
        settle(&mut read.value, &read.origin);
        self.remember(key, &read.value, &read.origin);
        Ok(read)
    }

    /// A relative path in a file means a place beside that file, wherever the user stands.
    fn store(&self) -> Result<Sourced<String>, ConfigError> {
        let Some(_) = self.find(&STORE)? else {
            let store = self.env.default_store()?;
            self.remember(&STORE, &store.value, &store.origin);
            return Ok(store);
        };
        let text = |text: &str| Ok(text.to_owned());
        self.read_settled(&STORE, String::new(), text, |store, origin| {
            let base = match origin {
                // The program that this file comes from begins at where it was started.
                Origin::File { path, .. } if memory_json::is_one(path) => None,
                origin => beside(origin),
            };
            *store = self.env.settle(store, base);
        })
    }

    /// A folder of weights is found like a store: beside the file that names it.
    fn embedder(&self) -> Result<Sourced<EmbedderChoice>, ConfigError> {
        let (builtin, parse) = (EmbedderChoice::Builtin, EmbedderChoice::parse);
        self.read_settled(&EMBEDDER, builtin, parse, |choice, origin| {
            if let EmbedderChoice::MiniLm(folder) = choice {
                *folder = self.env.settle_path(folder, beside(origin));
            }
        })
    }

    fn reranker(&self) -> Result<Sourced<RerankerChoice>, ConfigError> {
        let (none, parse) = (RerankerChoice::None, RerankerChoice::parse);
        self.read_settled(&RERANKER, none, parse, |choice, origin| {
            if let RerankerChoice::CrossEncoder(folder) = choice {
                *folder = self.env.settle_path(folder, beside(origin));
            }
        })
    }

    /// A library is code: a relative path would be another file in each project.
    fn onnxruntime(&self) -> Result<Sourced<Option<PathBuf>>, ConfigError> {
        if self.find(&ONNXRUNTIME)?.is_none() {
            let library = self.usual_onnxruntime()?;
            self.remember(&ONNXRUNTIME, &library.value, &library.origin);
            return Ok(library);
        }
        self.read(&ONNXRUNTIME, None, |text| match text {
            NONE => Ok(None),
            path => match self.env.settle_path(path.as_ref(), None) {
                path if path.is_absolute() => Ok(Some(path)),
                _ => Err(format!(
                    "`{}` is not an absolute path; write the whole path of the library, or \"{NONE}\"",
                    text.escape_debug()
                )),
            },
        })
    }

    fn usual_onnxruntime(&self) -> Result<Sourced<Option<PathBuf>>, ConfigError> {
        let named = self.env.get(env_vars::ORT_DYLIB_PATH)?.map(PathBuf::from);
        if let Some(path) = named.filter(|path| path.is_absolute()) {
            let origin = Origin::Env(env_vars::ORT_DYLIB_PATH.name);
            let value = Some(path);
            return Ok(Sourced { value, origin });
        }
        let own = self.env.models().map(|models| models.join(LIBRARY));
        Ok(Sourced::default(own.filter(|path| path.is_file())))
    }

    fn agents(&self) -> Result<Sourced<PathBuf>, ConfigError> {
        let found = self.env.folder_above(AGENT_FOLDER);
        let folder = found.unwrap_or_else(|| self.env.in_project(AGENT_FOLDER));
        self.folder(&AGENTS, folder)
    }

    /// A folder is found like a store: beside the file that names it.
    fn folder(&self, key: &Key, default: PathBuf) -> Result<Sourced<PathBuf>, ConfigError> {
        let path = |text: &str| Ok(PathBuf::from(text));
        self.read_settled(key, default, path, |folder, origin| {
            *folder = self.env.settle_path(folder, beside(origin));
        })
    }

    fn keeping(&self, ttl: &Key, max: &Key, plain: &Keeping) -> Result<Keeping, ConfigError> {
        Ok(Keeping {
            ttl_days: self.read(ttl, plain.ttl_days.value, parse_days)?,
            max_entries: self.read(max, plain.max_entries.value, parse_count)?,
        })
    }
}

/// The folder of the file that has the setting; a path in it is meant from there.
fn beside(origin: &Origin) -> Option<&Path> {
    match origin {
        Origin::File { path, .. } => path.parent(),
        Origin::Default | Origin::Project(_) | Origin::Env(_) | Origin::Flag(_) => None,
    }
}

fn parse_word<T: FromStr<Err = Invalid>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|invalid: Invalid| invalid.what)
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(format!(
            "`{}` is neither true nor false",
            text.escape_debug()
        )),
    }
}

/// The file name of the ONNX runtime library on this platform.
const LIBRARY: &str = match () {
    () if cfg!(windows) => "onnxruntime.dll",
    () if cfg!(target_os = "macos") => "libonnxruntime.dylib",
    () => "libonnxruntime.so",
};

/// The word for "without a limit", since TOML has no null.
const NONE: &str = "none";

fn parse_days(text: &str) -> Result<Option<i64>, String> {
    parse_limit(text, "days")
}

fn parse_count(text: &str) -> Result<Option<u64>, String> {
    parse_limit(text, "records")
}

fn parse_limit<T: FromStr + PartialOrd + From<u8>>(
    text: &str,
    unit: &str,
) -> Result<Option<T>, String> {
    if text == NONE {
        return Ok(None);
    }
    // Other programs write whole numbers with a fraction of nothing.
    let whole = text.strip_suffix(".0").unwrap_or(text);
    match whole.parse::<T>() {
        Ok(number) if number >= T::from(1) => Ok(Some(number)),
        _ => Err(format!(
            "`{}` is not a whole number of {unit}; write 1 or more, or \"{NONE}\" for no limit",
            text.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests;
