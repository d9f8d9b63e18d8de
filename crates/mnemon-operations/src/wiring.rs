//! From a [`Config`] to a memory: the only place that names both the engine and the adapters, and
//! the only one that asks the clock and the operating system's dice.

mod index;
mod meter;
mod remotes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mnemon_adapters::audit;
#[cfg(any(feature = "minilm", feature = "crossencoder"))]
use mnemon_adapters::embed::OnnxRuntime;
use mnemon_adapters::embed::{self, Builtin, LazyOpenAi, OpenAiConfig};
use mnemon_adapters::llm::{Budgets, Ledger, Model, ModelConfig, Prices, Provider};
use mnemon_adapters::token::{JwksFile, TokenRules};
use mnemon_adapters::webhook::HttpWebhooks;
use mnemon_core::embed::{EmbedError, Embedder};
use mnemon_core::files::{Files, Sweep};
use mnemon_core::llm::Llm;
use mnemon_core::ram::Ram;
use mnemon_core::rerank::Reranker;
use mnemon_core::{Ctx, Ids, Invalid, Replica, StoreError, Tenant, Time};
use mnemon_engine::access::{Quota, Quotas};
use mnemon_engine::agentfiles::AgentFiles;
use mnemon_engine::notes::NoteFiles;
use mnemon_engine::session::JsonSessions;
use mnemon_engine::webhooks::Webhooks;
use mnemon_engine::{
    Memory, Migration, NotErased, Project, ProjectFiles, Records, Retention, SavedFolder,
};

use crate::Error;
use crate::config::{
    Config, EmbedderChoice, JwksPlace, LlmProvider, Origin, RerankerChoice, without_passwords,
};

pub(crate) use index::{external_index, read_grant};
pub use meter::Meter;
pub use meter::{Latencies, latencies};
pub use mnemon_adapters::audit::{
    AuditEntry, AuditError, AuditEvent, AuditLog, OldFiles, Verified,
};
pub use mnemon_adapters::documents::{
    FileProblem, Found, FoundFile, NotTaken, PDF_THREAD, find as find_files, is_gone,
};
pub use mnemon_adapters::llm::Account as LlmAccount;
pub use mnemon_adapters::token::{JwksError, TokenRefused, Tokens};
pub use mnemon_adapters::tokens::counter;
pub use mnemon_adapters::{
    BackupSummary, Examination, Finding, Restored, SCHEMES, may_block, sweep_stale,
};
pub use remotes::remote;

/// A memory, and what was noticed while its store was opened.
pub struct Wired {
    pub memory: Memory,
    /// Sentences for people.
    pub notices: Vec<String>,
}

/// Opens the store, making it if it is not there, and puts a memory on top.
pub fn open(config: &Config) -> Result<Wired, Error> {
    open_store(config, &config.store.value, None)
}

/// The same, and measures what the store and the models do.
pub fn open_metered(config: &Config, meter: &Arc<Meter>) -> Result<Wired, Error> {
    open_store(config, &config.store.value, Some(meter))
}

/// The same for a command that only reads, which makes no store. One that the user named must be
/// there; the usual one is empty until something is written.
pub fn open_to_read(config: &Config) -> Result<Wired, Error> {
    let store = &config.store;
    match (mnemon_adapters::missing(&store.value)?, &store.origin) {
        (None, _) => open(config),
        (Some(path), Origin::Flag(_) | Origin::Env(_)) => Err(Error::NoStore(path)),
        (Some(_), _) => open_store(config, "ram:", None),
    }
}

fn open_store(config: &Config, url: &str, meter: Option<&Arc<Meter>>) -> Result<Wired, Error> {
    let index = index::configured(config, url)?;
    let mut opened = mnemon_adapters::open(url)?;
    if let Some(index) = index {
        opened.backend.index = index;
    }
    let backend = match meter {
        Some(meter) => meter.backend(opened.backend),
        None => opened.backend,
    };
    let retention = Retention {
        short_term_days: config.short_term.ttl_days.value,
        long_term_days: config.long_term.ttl_days.value,
    };
    let mut builder = Memory::builder(backend, Ids::new(seed()))
        .policy(config.policy())
        .policies(config.policies.policies.clone())
        .retention(retention)
        .notes(config.notes_config())
        .note_files(note_files(&config.notes.root.value))
        .project(real_name(&config.agents.value))
        .safety(config.safety());
    let mut notices = opened.notices;
    let runtime = runtime(config, &mut notices);
    for embedder in embedders(config, runtime.as_ref())? {
        builder = builder.embedder(match meter {
            Some(meter) => meter.embedder(embedder),
            None => embedder,
        });
    }
    match llm(config) {
        Ok(Some(llm)) => {
            builder = builder.llm(match meter {
                Some(meter) => meter.llm(llm),
                None => llm,
            });
        }
        Ok(None) => {}
        // Everything works without one.
        Err(problem) => notices.push(format!("the language model is not used: {problem}")),
    }
    builder = remotes::put_in(config, builder)?;
    if let Some(reranker) = reranker(&config.reranker.value, runtime.as_ref())? {
        builder = builder.reranker(reranker);
    }
    Ok(Wired {
        memory: builder.build(),
        notices,
    })
}

/// The language model that is configured, or why it cannot be used. Nothing is asked of it here.
pub fn llm(config: &Config) -> Result<Option<Arc<dyn Llm>>, String> {
    let settings = &config.llm;
    let provider = match settings.provider.value {
        LlmProvider::None => return Ok(None),
        LlmProvider::OpenAi => Provider::OpenAi,
        LlmProvider::Anthropic => Provider::Anthropic,
    };
    if let Some(problem) = settings.problem() {
        return Err(problem);
    }
    let model = settings.model.value.as_deref().unwrap_or_default();
    let key = settings.key()?;
    let model = ModelConfig {
        key: key.map(|key| embed::Secret::new(key.reveal())),
        timeout_ms: settings.timeout_s.value.saturating_mul(1000),
        attempts: u32::try_from(settings.attempts.value).unwrap_or(u32::MAX),
        concurrent: usize::try_from(settings.concurrent.value).unwrap_or(usize::MAX),
        ..ModelConfig::new(provider, &settings.url.value, model)
    };
    let ledger = Arc::new(ledger(config));
    Ok(Some(Arc::new(Model::new(model, ledger))))
}

fn ledger(config: &Config) -> Ledger {
    let settings = &config.llm;
    // The smaller one of the model's budget and the tenant's quota.
    let tokens_of = |quota: &Quota| {
        let limits = [settings.tokens_per_day.value, quota.model_tokens_per_day];
        limits.into_iter().flatten().min()
    };
    let tenants = config.access.tenants.iter();
    let tenants = tenants.map(|(tenant, quota)| (tenant.to_string(), tokens_of(quota)));
    let budgets = Budgets {
        tokens_per_day: tokens_of(&config.access.quota),
        task_tokens_per_day: settings.task_tokens_per_day.value,
        nanos_per_day: settings.cost_per_day.value.map(|money| money.0),
    };
    let prices = Prices {
        input_nanos: settings.input_price.value.of_one(),
        output_nanos: settings.output_price.value.of_one(),
    };
    let ledger = match &settings.accounts {
        Some(path) => Ledger::in_file(path, budgets, prices),
        None => Ledger::in_memory(budgets, prices),
    };
    ledger.with_tenants(tenants.collect())
}

/// What the language model was used for, the newest day first.
pub fn llm_accounts(config: &Config) -> Result<Vec<LlmAccount>, Error> {
    ledger(config).accounts().map_err(|error| Error::File {
        path: config.llm.accounts.clone().unwrap_or_default(),
        verb: "read",
        source: std::io::Error::other(error.to_string()),
    })
}

/// Files below this folder, which may also be named by their absolute paths.
fn note_files(root: &Path) -> NoteFiles {
    // Links on the way to the root may stand in a path or not.
    let names = [std::path::absolute(root), root.canonicalize()];
    let names = names.into_iter().flatten();
    let names = names.filter_map(|name| name.to_str().map(str::to_owned));
    NoteFiles {
        files: Arc::new(mnemon_adapters::Disk::new(root)),
        roots: names.collect(),
    }
}

/// The model that was chosen, and the built-in one after it: what that has placed is still found
/// after a change. None of this asks the network.
fn embedders(
    config: &Config,
    runtime: Option<&OnnxRuntime>,
) -> Result<Vec<Arc<dyn Embedder>>, Error> {
    let chosen: Arc<dyn Embedder> = match &config.embedder.value {
        EmbedderChoice::None => return Ok(Vec::new()),
        EmbedderChoice::Builtin => return Ok(vec![Arc::new(Builtin::new()?)]),
        EmbedderChoice::MiniLm(folder) => minilm(folder, runtime)?,
        EmbedderChoice::Function(function) => Arc::new(function.clone()),
        EmbedderChoice::OpenAi { model, base_url } => {
            let key = config.embedder_key.as_ref();
            Arc::new(LazyOpenAi::new(OpenAiConfig {
                key: key.map(|key| embed::Secret::new(key.reveal())),
                attempts: ATTEMPTS,
                ..OpenAiConfig::new(base_url, model)
            }))
        }
    };
    Ok(vec![chosen, Arc::new(Builtin::new()?)])
}

/// How often an endpoint is asked before its answer is done without: somebody is waiting.
const ATTEMPTS: u32 = 3;

/// The library that runs models, if one is set and a model is chosen. Models run without it, too, but
/// slower.
#[cfg(any(feature = "minilm", feature = "crossencoder"))]
fn runtime(config: &Config, notices: &mut Vec<String>) -> Option<OnnxRuntime> {
    let library = config.onnxruntime.value.as_deref()?;
    let has_embedder = matches!(config.embedder.value, EmbedderChoice::MiniLm(_));
    if !has_embedder && config.reranker.value == RerankerChoice::None {
        return None;
    }
    match OnnxRuntime::load(library) {
        Ok(runtime) => Some(runtime),
        Err(problem) => {
            let (path, origin) = (library.display(), &config.onnxruntime.origin);
            notices.push(format!(
                "the ONNX runtime library {path} ({origin}) is not used, and models run slower: \
                 {problem}. Correct the path, or set MNEMON_ONNXRUNTIME to `none`"
            ));
            None
        }
    }
}

#[cfg(not(any(feature = "minilm", feature = "crossencoder")))]
fn runtime(_config: &Config, _notices: &mut Vec<String>) -> Option<OnnxRuntime> {
    None
}

/// Without an optional model nothing needs the library.
#[cfg(not(any(feature = "minilm", feature = "crossencoder")))]
enum OnnxRuntime {}

#[cfg(feature = "minilm")]
fn minilm(folder: &Path, runtime: Option<&OnnxRuntime>) -> Result<Arc<dyn Embedder>, Error> {
    Ok(Arc::new(embed::MiniLm::open(folder, runtime)?))
}

#[cfg(not(feature = "minilm"))]
fn minilm(_folder: &Path, _runtime: Option<&OnnxRuntime>) -> Result<Arc<dyn Embedder>, Error> {
    Err(Error::NotBuilt {
        what: "the embedder `minilm`",
        feature: "minilm",
    })
}

#[cfg(feature = "crossencoder")]
fn reranker(
    choice: &RerankerChoice,
    runtime: Option<&OnnxRuntime>,
) -> Result<Option<Arc<dyn Reranker>>, Error> {
    Ok(match choice {
        RerankerChoice::None => None,
        RerankerChoice::CrossEncoder(folder) => {
            Some(Arc::new(embed::CrossEncoder::open(folder, runtime)?))
        }
    })
}

#[cfg(not(feature = "crossencoder"))]
fn reranker(
    choice: &RerankerChoice,
    _runtime: Option<&OnnxRuntime>,
) -> Result<Option<Arc<dyn Reranker>>, Error> {
    match choice {
        RerankerChoice::None => Ok(None),
        RerankerChoice::CrossEncoder(_) => Err(Error::NotBuilt {
            what: "the reranker `crossencoder`",
            feature: "crossencoder",
        }),
    }
}

/// Brings the weights of MiniLM into the folder, from another folder or from an address.
pub async fn pull_minilm(to: &Path, from: Option<&str>) -> Result<(), EmbedError> {
    let from = match from {
        None => embed::PullSource::Url(embed::MINILM_URL.to_owned()),
        Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
            embed::PullSource::Url(url.to_owned())
        }
        Some(folder) => embed::PullSource::Folder(folder.into()),
    };
    embed::pull(to, embed::MINILM_FILES, &from).await
}

/// Where a tenant has its files below a folder: the default tenant in the folder itself, every other
/// tenant in `tenants/NAME`. So no tenant reads or writes a file of another.
fn tenant_folder(tenant: &Tenant, folder: &Path) -> PathBuf {
    match *tenant == Tenant::default() {
        true => folder.to_owned(),
        false => folder.join(TENANTS).join(tenant.as_str()),
    }
}

/// The folder that holds the folders of the tenants other than the default one.
const TENANTS: &str = "tenants";

/// Where this tenant's agents and teams have their Markdown.
pub fn agents_folder(config: &Config) -> PathBuf {
    let folder = &config.agents.value;
    let above = folder.parent().unwrap_or(Path::new(""));
    let above = tenant_folder(&config.tenant.value, above);
    folder
        .file_name()
        .map_or(above.clone(), |name| above.join(name))
}

/// The tenant's agents and teams whose memory is the Markdown in this folder.
pub fn agents(tenant: &Tenant, folder: &Path) -> Result<AgentFiles, Error> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        let what = format!("{} is not a folder with a name", folder.display());
        return Err(Invalid::new("agents", what).into());
    };
    let above = folder
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    let disk = mnemon_adapters::Disk::new(above.unwrap_or(Path::new(".")));
    let name = match *tenant == Tenant::default() {
        true => name.to_owned(),
        // Answers name files by this path, below the project.
        false => format!("{TENANTS}/{tenant}/{name}"),
    };
    let files = AgentFiles::new(Arc::new(disk), &name)?;
    Ok(files.project(real_name(folder)))
}

/// The time of the clock.
pub fn now() -> Result<Time, Error> {
    Ok(Time::from_millis(jiff::Timestamp::now().as_millisecond())?)
}

/// The circumstances of a command that begins now: all that it writes is one commit.
pub fn stamp(config: &Config) -> Result<Ctx, Error> {
    let now = now()?;
    let tenant = config.tenant.value.clone();
    Ok(Ctx::new(tenant, config.actor.value.clone(), now).as_one_commit())
}

/// The tenant's saved sessions as files in this folder.
pub fn session_files(tenant: &Tenant, folder: &Path) -> JsonSessions {
    let disk = mnemon_adapters::Disk::private(tenant_folder(tenant, folder));
    JsonSessions::new(Arc::new(disk), "")
}

/// A project's conversations, in the files below this folder. What `airsspec.toml` says there goes
/// before what `mnemon.toml` says under `[memory]`.
pub async fn open_project(config: &Config, root: &Path) -> Result<Project, Error> {
    if !root.is_dir() {
        let what = format!("{} is not a folder; make it first", root.display());
        return Err(Invalid::new("--files", what).into());
    }
    // The settings are the project's, the files the tenant's.
    let settings = Project::read_config(&files(root), config.memory).await?;
    let folder = project_folder(&config.tenant.value, root);
    let disk = Arc::new(mnemon_adapters::Disk::new(&folder));
    let log = Arc::new(mnemon_adapters::Disk::private(&folder));
    let project = Project::new(disk, log, folder.to_string_lossy(), settings)?;
    Ok(match config.store_is_below(root) {
        true => project,
        // Pages that came with a folder do not go into a memory that is not the folder's own.
        false => project.library_apart(),
    })
}

/// A memory without a file, for pages.
fn empty_library(config: &Config) -> Result<Memory, Error> {
    let mut library = Memory::builder(Arc::new(Ram::new()), Ids::new(seed()));
    if let EmbedderChoice::Builtin = config.embedder.value {
        library = library.embedder(Arc::new(Builtin::new()?));
    }
    Ok(library.safety(config.safety()).build())
}

/// The pages of a project, read into a memory of their own: a query writes to no store. `marks`
/// knows which sessions were purged. Nothing is kept for the next query: a page may be erased, and a
/// session purged, meanwhile.
pub async fn pages(
    config: &Config,
    ctx: &Ctx,
    marks: &Arc<Memory>,
    root: &Path,
) -> Result<Arc<Memory>, Error> {
    let project = open_project(config, root).await?;
    let library = empty_library(config)?;
    project.index_library_in(&library, marks, ctx).await?;
    Ok(Arc::new(library))
}

/// How the store knows a project.
pub fn project_name(config: &Config, root: &Path) -> String {
    let folder = project_folder(&config.tenant.value, root);
    folder.to_string_lossy().into_owned()
}

/// Where a tenant has its files in a project, as a memory knows it: by its real path, which no other
/// project has.
fn project_folder(tenant: &Tenant, root: &Path) -> PathBuf {
    tenant_folder(tenant, &PathBuf::from(real_name(root)))
}

/// The real path of a folder, or its absolute one as long as it is not there.
fn real_name(root: &Path) -> String {
    let real = root.canonicalize().or_else(|_| std::path::absolute(root));
    let real = real.unwrap_or_else(|_| root.to_owned());
    real.to_string_lossy().into_owned()
}

/// The tenant's files in a project, for a purge.
pub fn project(tenant: &Tenant, root: &Path) -> ProjectFiles {
    let folder = project_folder(tenant, root);
    let disk = Arc::new(mnemon_adapters::Disk::new(&folder));
    ProjectFiles {
        root: real_name(&folder),
        files: disk.clone(),
        log: disk,
    }
}

/// The root of a project, as --files takes it, from where a tenant has its files in it.
pub fn root_of(tenant: &Tenant, folder: &str) -> PathBuf {
    let folder = Path::new(folder);
    let is_root = |root: &&Path| tenant_folder(tenant, root) == folder;
    folder.ancestors().find(is_root).unwrap_or(folder).into()
}

/// Bytes of the store's file and of what is not yet written into it; `None` if it is not one file.
pub fn store_bytes(config: &Config) -> Option<u64> {
    let path = config.store.value.strip_prefix("sqlite:")?;
    let path = config.cwd.join(path.strip_prefix("//").unwrap_or(path));
    let bytes = std::fs::metadata(&path).ok()?.len();
    let mut log = path.into_os_string();
    log.push("-wal");
    let log = std::fs::metadata(log).map_or(0, |log| log.len());
    Some(bytes.saturating_add(log))
}

/// Bytes of memory that this process uses, where the system says.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What a purge does not reach: copies of the store that a restore or a repair kept next to it, which
/// are needed if that was a mistake, older versions of the tables of an index, and copies of notes at a
/// service.
pub fn kept_copies(config: &Config) -> Vec<NotErased> {
    let mut kept = copies_of_store(config);
    let service = config.remotes.long_term.url.value.as_deref();
    let service = service.filter(|_| config.notes.in_long_term.value);
    kept.extend(service.map(|url| {
        NotErased {
            path: without_passwords(url),
            why:
                "copies of notes and what was made from them are there; delete them at the service"
                    .to_owned(),
        }
    }));
    let folder = config
        .index
        .server()
        .filter(|url| url.starts_with("lance:"));
    kept.extend(folder.map(|url| {
        NotErased {
            path: url.to_owned(),
            why: "older versions of the index may hold hashes of its words, and its vector; \
              `mnemon index rebuild` removes them"
                .to_owned(),
        }
    }));
    kept
}

fn copies_of_store(config: &Config) -> Vec<NotErased> {
    let path = config.store_path().unwrap_or_default();
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let name = name.to_string_lossy();
    let kept = [format!("{name}.bad"), format!("{name}.before-restore")];
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let copies = entries.filter(|entry| {
        let entry = entry.file_name().to_string_lossy().into_owned();
        kept.iter().any(|kept| entry.starts_with(kept))
    });
    let mut copies: Vec<NotErased> = copies
        .map(|entry| NotErased {
            path: entry.path().display().to_string(),
            why: "a restore or repair kept this copy, which may hold the text; delete it when you \
                  no longer need it"
                .to_owned(),
        })
        .collect();
    copies.sort_by(|one, other| one.path.cmp(&other.path));
    copies
}

/// The tenant's folder of saved sessions, for a purge.
pub fn saved_folder(tenant: &Tenant, folder: &Path) -> SavedFolder {
    let place = tenant_folder(tenant, folder);
    SavedFolder {
        folder: place.display().to_string(),
        sessions: Arc::new(session_files(tenant, folder)),
        files: Arc::new(mnemon_adapters::Disk::new(place)),
    }
}

/// Removes stale temporary files of killed writers from the folder of agents and teams; how many.
pub async fn sweep(config: &Config) -> Result<u64, Error> {
    let folder = agents_folder(config);
    let swept = files(&folder).sweep("", Sweep::StaleBelow).await;
    Ok(swept.map_err(mnemon_engine::Error::from)?.len() as u64)
}

/// The files below this folder.
pub fn files(folder: &Path) -> impl Files {
    mnemon_adapters::Disk::new(folder)
}

/// Makes a folder that is its owner's only.
pub fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    mnemon_adapters::make_private_folder(folder)
}

/// Looks at the store from outside, without opening it for use.
pub fn examine(config: &Config) -> Result<Examination, StoreError> {
    mnemon_adapters::examine(&config.store.value)
}

/// Does what the findings proposed, and says what it did.
pub fn repair(config: &Config) -> Result<Vec<String>, StoreError> {
    mnemon_adapters::repair(&config.store.value)
}

/// Writes a copy of the store, which may be in use, to a new file.
pub fn backup(config: &Config, to: &Path, force: bool) -> Result<BackupSummary, Error> {
    let store = &config.store.value;
    match mnemon_adapters::missing(store)? {
        Some(path) => Err(Error::NoStore(path)),
        None => {
            let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.exists()) {
                let what = format!(
                    "{} does not exist; create this folder first",
                    folder.display()
                );
                return Err(Invalid::new("FILE", what).into());
            }
            Ok(mnemon_adapters::backup(store, to, force)?)
        }
    }
}

/// Checks that the file is a whole backup of a store like the configured one.
pub fn check_backup(config: &Config, from: &Path) -> Result<BackupSummary, StoreError> {
    mnemon_adapters::check_backup(&config.store.value, from)
}

/// Checks the backup, and puts a copy of it in the place of the store.
pub fn restore(config: &Config, from: &Path) -> Result<Restored, StoreError> {
    mnemon_adapters::restore(&config.store.value, from)
}

/// Opens two stores to copy one into the other. A dry run makes no target: one that is not there
/// counts as empty.
pub fn migration(config: &Config, from: &str, to: &str, dry_run: bool) -> Result<Migration, Error> {
    if mnemon_adapters::is_same_store(from, to)? {
        let what = "is the source itself; name another store";
        return Err(Invalid::new("--to", what).into());
    }
    if let Some(path) = mnemon_adapters::missing(from)? {
        return Err(Error::NoStore(path));
    }
    if mnemon_adapters::is_unused(from)? {
        let what = "does not contain a store; check the name of the database in the URL";
        return Err(Invalid::new("--from", what).into());
    }
    let source = mnemon_adapters::open_replica(from)?;
    let target: Arc<dyn Replica> = match dry_run && mnemon_adapters::is_unused(to)? {
        true => Arc::new(Ram::new()),
        false => mnemon_adapters::open_replica(to)?,
    };
    Ok(Migration::new(source, target, stamp(config)?))
}

/// A client for HTTP whose calls take no longer than this. It accepts certificates of these authorities,
/// in PEM, besides those of the system.
pub fn http_client(
    timeout: std::time::Duration,
    authorities: &[u8],
) -> Result<reqwest::Client, reqwest::Error> {
    mnemon_adapters::http_client_of(timeout, authorities)
}

/// The quotas of all tenants, with nothing counted yet.
pub fn quotas(config: &Config) -> Quotas {
    Quotas::new(config.access.quota, config.access.tenants.clone())
}

/// The tokens that are accepted besides keys, if any are configured. Keys of a file are read here.
pub fn tokens(config: &Config) -> Result<Option<Tokens>, JwksError> {
    let Some(settings) = &config.access.tokens else {
        return Ok(None);
    };
    let rules = TokenRules {
        issuer: settings.issuer.clone(),
        audience: settings.audience.clone(),
        leeway_s: settings.leeway_s,
    };
    match &settings.jwks {
        JwksPlace::File(path) => {
            let source = JwksFile(config.cwd.join(path));
            Tokens::open(rules, Box::new(source)).map(Some)
        }
        JwksPlace::Url(url) => Tokens::at_url(rules, url).map(Some),
    }
}

/// The webhooks of a store, which may reach these hosts besides public addresses.
pub fn webhooks(records: &Records, hosts: &[String]) -> Result<Webhooks, Invalid> {
    let sender = Arc::new(HttpWebhooks::new(hosts.to_vec())?);
    let holder = uuid::Uuid::new_v4().to_string();
    Ok(Webhooks::new(records, sender, holder))
}

/// The audit log, if there is a place for one.
pub fn audit_log(config: &Config) -> Option<AuditLog> {
    let path = config.access.audit.as_ref()?;
    Some(AuditLog::at(config.cwd.join(path)))
}

/// Checks one file of an audit log.
pub fn verify_audit_file(path: &Path) -> Result<Verified, AuditError> {
    audit::verify_file(path)
}

/// Unpredictable bytes from the operating system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut hasher = blake3::Hasher::new();
    // Each has 122 random bits; the hash spreads them over all bytes.
    for _ in 0..=N.div_ceil(15) {
        hasher.update(uuid::Uuid::new_v4().as_bytes());
    }
    let mut bytes = [0; N];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

/// Two processes must not make the same ids, even when they start in the same moment.
fn seed() -> u64 {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    // The bits that say "version 4" are the same in all of them, but sit in different places.
    high ^ low.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_names_what_it_does_not_reach() {
        let mut config = Config::for_store("ram:");
        assert!(kept_copies(&config).is_empty());
        config.index.url.value = "lance:vectors".to_owned();
        let paths = |config: &Config| -> Vec<String> {
            let kept = kept_copies(config).into_iter();
            kept.map(|one| one.path).collect()
        };
        assert_eq!(paths(&config), ["lance:vectors"]);
        config.remotes.long_term.url.value = Some("mem0+https://api.mem0.example".to_owned());
        assert_eq!(paths(&config), ["lance:vectors"], "notes are not sent");
        config.notes.in_long_term.value = true;
        assert_eq!(
            paths(&config),
            ["mem0+https://api.mem0.example", "lance:vectors"]
        );
    }
}
