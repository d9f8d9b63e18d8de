//! What the process was started with: variables, and the folders they name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::origin::Origin;
use super::{ConfigError, Sourced};
use crate::env_vars::{self, EnvVar};

/// The folder of a project's own memory, and the store in it.
pub const PROJECT: &str = ".mnemon";
const STORE: &str = "mnemon.db";
/// The name of the configuration file.
const FILE: &str = "mnemon.toml";

/// The systems that keep a program's data in places of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    MacOs,
    Windows,
    /// Linux and all others follow the XDG specification.
    Xdg,
}

impl Default for Platform {
    fn default() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Xdg,
        }
    }
}

/// The variables of the process, read once.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    vars: BTreeMap<OsString, OsString>,
    platform: Platform,
    cwd: PathBuf,
    /// Whether another folder was named than the one that the process stands in.
    moved: bool,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            platform: Platform::default(),
            // Only used to look for a file that need not be there.
            cwd: std::env::current_dir().unwrap_or_default(),
            moved: false,
        }
    }

    /// The same as if the user stood in this folder.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        self.cwd = self.cwd.join(folder);
        self.moved = true;
        self
    }

    /// Where the user stands.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// One made up for a test.
    pub fn of(cwd: &Path, vars: &[(&str, &str)]) -> Self {
        let vars = vars
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Self {
            vars: vars.collect(),
            platform: Platform::default(),
            cwd: cwd.to_owned(),
            moved: false,
        }
    }

    /// The same on another system, for a test.
    #[must_use]
    pub fn on(mut self, platform: Platform) -> Self {
        self.platform = platform;
        self
    }

    /// The variable's value; empty is as good as unset.
    pub(super) fn get(&self, var: EnvVar) -> Result<Option<&str>, ConfigError> {
        let value = self.vars.get(std::ffi::OsStr::new(var.name));
        match value.filter(|value| !value.is_empty()) {
            Some(value) => value
                .to_str()
                .map(Some)
                .ok_or(ConfigError::NotText(var.name)),
            None => Ok(None),
        }
    }

    /// The value of a variable that a setting names; empty is as good as unset.
    pub fn get_named(&self, name: &str) -> Option<&str> {
        let value = self.vars.get(std::ffi::OsStr::new(name))?.to_str()?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        let value = self.vars.get(std::ffi::OsStr::new(name));
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.folder(env_vars::HOME.name)
            .or_else(|| self.folder(env_vars::USERPROFILE.name))
    }

    /// The user's folder for configurations, if they have moved it.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        self.folder(env_vars::XDG_CONFIG_HOME.name)
    }

    /// The configuration file that was asked for.
    pub(super) fn named_file(&self, flag: Option<&Path>) -> Option<PathBuf> {
        let named = flag.map(Path::to_owned);
        let named = named.or_else(|| self.folder(env_vars::MNEMON_CONFIG.name))?;
        Some(self.cwd.join(named))
    }

    /// The folder of the user's own configuration. A relative one would be another in each folder,
    /// and a repository could bring it along.
    pub(super) fn user_folder(&self) -> Option<PathBuf> {
        let folder = self
            .config_home()
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("mnemon"));
        folder.or_else(|| {
            let usual = || Some(self.home()?.join(".config").join("mnemon"));
            let roaming = self.folder(env_vars::APPDATA.name);
            self.own_folder(usual, None, roaming)
        })
    }

    /// The folder of this program on this system. A folder at the place of other systems, where
    /// earlier versions kept everything, stays in use.
    fn own_folder(
        &self,
        usual: impl Fn() -> Option<PathBuf>,
        on_mac: Option<PathBuf>,
        on_windows: Option<PathBuf>,
    ) -> Option<PathBuf> {
        let system = match self.platform {
            Platform::MacOs => on_mac,
            Platform::Windows => on_windows,
            Platform::Xdg => None,
        };
        let system = system.map(|folder| folder.join("mnemon"));
        match (usual(), system) {
            (Some(usual), Some(system)) if !usual.is_dir() => Some(system),
            (Some(usual), _) => Some(usual),
            (None, system) => system,
        }
    }

    /// The user's own configuration file, which need not be there.
    pub(super) fn user_file(&self) -> Option<PathBuf> {
        Some(self.user_folder()?.join(FILE))
    }

    /// The project's file. A link that leads out of the project is not followed: the file behind
    /// it is not the project's, and messages about it would repeat what it says.
    pub(super) fn project_file(&self, notices: &mut Vec<String>) -> Option<PathBuf> {
        let (project, refused) = self.projects();
        notices.extend(refused.iter().map(|folder| {
            format!(
                "{} is not used: it, or the store in it, leads out of the project",
                folder.display()
            )
        }));
        let root = self.project_root();
        let inner = project.map(|folder| folder.join(FILE));
        let places = std::iter::once(self.cwd.join(FILE)).chain(inner);
        for path in places.filter(|path| path.is_file()) {
            if is_below(&path, &root) {
                return Some(path);
            }
            notices.push(format!(
                "{} is not read: it is a link that leads out of the project",
                path.display()
            ));
        }
        None
    }

    /// The folder for what is kept.
    pub(super) fn data(&self) -> Option<PathBuf> {
        self.folder(env_vars::MNEMON_HOME.name)
            .or_else(|| Some(self.folder(env_vars::XDG_DATA_HOME.name)?.join("mnemon")))
            .or_else(|| {
                let usual = || Some(self.home()?.join(".local").join("share").join("mnemon"));
                let library = || Some(self.home()?.join("Library").join("Application Support"));
                let local = self.folder(env_vars::LOCALAPPDATA.name);
                let local = local.or_else(|| self.folder(env_vars::APPDATA.name));
                self.own_folder(usual, library(), local)
            })
    }

    /// Where the weights of models lie.
    pub(super) fn models(&self) -> Option<PathBuf> {
        self.data().map(|folder| folder.join("models"))
    }

    /// The nearest folder, from where the user stands upwards, that has a memory of its own.
    fn project(&self) -> Option<PathBuf> {
        self.projects().0
    }

    /// The same, and the folders on the way that are not what they seem.
    fn projects(&self) -> (Option<PathBuf>, Vec<PathBuf>) {
        let mut refused = Vec::new();
        for folder in self.cwd.ancestors().map(|folder| folder.join(PROJECT)) {
            if folder.is_dir() {
                if stays_inside(&folder) {
                    return (Some(folder), refused);
                }
                refused.push(folder);
            }
        }
        (None, refused)
    }

    /// The folder of the project, or else where the user stands.
    pub(super) fn project_root(&self) -> PathBuf {
        let project = self.project();
        let root = project.as_deref().and_then(Path::parent);
        root.unwrap_or(&self.cwd).to_owned()
    }

    /// The folder of this name where the user stands, or in the nearest folder above up to the
    /// project's root, which `.mnemon` or `.git` marks. The user's own folder and what lies above
    /// it belong to no project, and a folder of another owner may be anybody's, as in `/tmp`.
    pub(super) fn folder_above(&self, name: &str) -> Option<PathBuf> {
        let home = self.home();
        for folder in self.cwd.ancestors() {
            let is_here = folder == self.cwd;
            if !is_here && home.as_deref() == Some(folder) {
                return None;
            }
            let found = folder.join(name);
            let is_own = || is_below(&found, folder) && has_owner_of(&found, &self.cwd);
            if found.is_dir() && (is_here || is_own()) {
                let is_short = is_here && !self.moved;
                return Some(if is_short { PathBuf::from(name) } else { found });
            }
            let mut marks = [PROJECT, ".git"].into_iter();
            if marks.any(|mark| folder.join(mark).exists()) {
                return None;
            }
        }
        None
    }

    /// Something in the project's folder; as short as it can be said.
    pub(super) fn in_project(&self, name: &str) -> PathBuf {
        let root = self.project_root();
        match root == self.cwd && !self.moved {
            true => PathBuf::from(name),
            false => root.join(name),
        }
    }

    /// The store that is used when nobody names one: the project's, or else the user's. A folder
    /// that was named in the environment beats one that was merely found.
    pub(super) fn default_store(&self) -> Result<Sourced<String>, ConfigError> {
        let named = self.folder(env_vars::MNEMON_HOME.name);
        let project = self.project().filter(|_| named.is_none());
        let (folder, origin) = match project {
            Some(folder) => (folder.clone(), Origin::Project(folder)),
            None => {
                let origin = match named {
                    Some(_) => Origin::Env(env_vars::MNEMON_HOME.name),
                    None => Origin::Default,
                };
                (self.data().ok_or(ConfigError::NoHome)?, origin)
            }
        };
        match folder.join(STORE).to_str() {
            Some(path) => Ok(Sourced {
                value: format!("sqlite:{path}"),
                origin,
            }),
            None => Err(ConfigError::NotText(env_vars::MNEMON_HOME.name)),
        }
    }

    /// The store's URL with `~` meaning the user's folder, as a shell would have it, and with a
    /// relative path beginning at `base`.
    pub(super) fn settle(&self, url: &str, base: Option<&Path>) -> String {
        let Some((scheme, path)) = url.split_once(':').filter(|(_, path)| !path.is_empty()) else {
            return url.to_owned();
        };
        let settled = self.settle_path(Path::new(path), base);
        format!("{scheme}:{}", settled.display())
    }

    /// The path with `~` meaning the user's folder, and a relative one beginning at `base`.
    pub(super) fn settle_path(&self, path: &Path, base: Option<&Path>) -> PathBuf {
        match (path.strip_prefix("~"), self.home(), base) {
            (Ok(rest), Some(home), _) => home.join(rest),
            // An absolute path, and `//host/…`, stay as they are: that is what join does.
            (Err(_), _, Some(base)) => base.join(path),
            _ => path.to_owned(),
        }
    }

    /// Who acts, for the history.
    pub(super) fn actor(&self) -> String {
        let names = [env_vars::USER.name, "LOGNAME", "USERNAME"];
        let user = names
            .iter()
            .filter_map(|name| self.vars.get(std::ffi::OsStr::new(name))?.to_str())
            .find(|user| !user.trim().is_empty());
        match user {
            Some(user) => format!("cli:{user}"),
            None => "cli".to_owned(),
        }
    }

    /// Variables that look like ours but are not; those that hold keys may be called as their
    /// owner likes.
    pub(super) fn notices(&self, key_env: &str, others: &[&str]) -> Vec<String> {
        let names = self.vars.keys().filter_map(|name| name.to_str());
        let names = names.filter(|name| *name != key_env && !others.contains(name));
        env_vars::unknown(names)
            .into_iter()
            .map(|name| format!("the environment variable {name} is not known and was ignored"))
            .collect()
    }
}

/// Whether a project's memory lies in the project. A repository may hold links, which would let it
/// choose any file of the user's as the store.
pub fn stays_inside(folder: &Path) -> bool {
    let Some(project) = folder.parent() else {
        return false;
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    // The database, and what SQLite and the search index keep beside it, which comes and goes.
    let mut stores = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(STORE))
        .map(|entry| entry.path());
    is_below(folder, project) && stores.all(|path| is_plain(&path) || is_below(&path, project))
}

/// Whether it is a file or folder itself, or has gone: no link, and nothing that blocks a reader.
fn is_plain(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(meta) => meta.is_file() || meta.is_dir(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Whether the real path is below this folder's real path.
fn is_below(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder) && (path.is_file() || path.is_dir()),
        _ => false,
    }
}

/// Whether two folders have the same owner.
#[cfg(unix)]
fn has_owner_of(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = |path: &Path| path.metadata().map(|meta| meta.uid()).ok();
    owner(one).is_some() && owner(one) == owner(other)
}

#[cfg(not(unix))]
fn has_owner_of(_: &Path, _: &Path) -> bool {
    true
}

/// The same for a path of which the last parts need not be there yet.
pub(super) fn would_be_below(path: &Path, folder: &Path) -> bool {
    let there = path
        .ancestors()
        .find(|part| part.symlink_metadata().is_ok());
    let real = there.and_then(|part| part.canonicalize().ok());
    match (real, folder.canonicalize()) {
        (Some(real), Ok(folder)) => real.starts_with(folder),
        _ => false,
    }
}
