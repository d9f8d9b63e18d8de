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

/// The variables of the process, read once.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    vars: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
    /// Whether another folder was named than the one that the process stands in.
    moved: bool,
}

impl Environment {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
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
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// One made up for a test.
    #[must_use]
    pub fn of(cwd: &Path, vars: &[(&str, &str)]) -> Self {
        let vars = vars
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Self {
            vars: vars.collect(),
            cwd: cwd.to_owned(),
            moved: false,
        }
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
    pub(super) fn get_named(&self, name: &str) -> Option<&str> {
        let value = self.vars.get(std::ffi::OsStr::new(name))?.to_str()?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        let value = self.vars.get(std::ffi::OsStr::new(name));
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.folder(env_vars::HOME.name)
            .or_else(|| self.folder("USERPROFILE"))
    }

    /// The user's folder for configurations, if they have moved it.
    pub(super) fn config_home(&self) -> Option<PathBuf> {
        self.folder(env_vars::XDG_CONFIG_HOME.name)
    }

    /// The file to read: the one that was asked for, or one that lies where it is looked for.
    pub(super) fn config_file(&self, flag: Option<&Path>) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(path) = flag {
            return Ok(Some(self.cwd.join(path)));
        }
        if let Some(path) = self.folder(env_vars::MNEMON_CONFIG.name) {
            return Ok(Some(self.cwd.join(path)));
        }
        let user = self
            .folder(env_vars::XDG_CONFIG_HOME.name)
            .or_else(|| Some(self.home()?.join(".config")))
            .map(|folder| folder.join("mnemon").join(FILE));
        let project = self.project().map(|folder| folder.join(FILE));
        let places = std::iter::once(self.cwd.join(FILE))
            .chain(project)
            .chain(user);
        Ok(places.into_iter().find(|path| path.is_file()))
    }

    /// The folder for what is kept.
    pub(super) fn data(&self) -> Option<PathBuf> {
        self.folder(env_vars::MNEMON_HOME.name)
            .or_else(|| Some(self.folder(env_vars::XDG_DATA_HOME.name)?.join("mnemon")))
            .or_else(|| Some(self.home()?.join(".local").join("share").join("mnemon")))
    }

    /// Where the weights of models lie.
    pub(super) fn models(&self) -> Option<PathBuf> {
        self.data().map(|folder| folder.join("models"))
    }

    /// The nearest folder, from where the user stands upwards, that has a memory of its own.
    fn project(&self) -> Option<PathBuf> {
        let folders = self.cwd.ancestors().map(|folder| folder.join(PROJECT));
        folders.into_iter().find(|folder| folder.is_dir())
    }

    /// The folder of the project, or else where the user stands.
    pub(super) fn project_root(&self) -> PathBuf {
        let project = self.project();
        let root = project.as_deref().and_then(Path::parent);
        root.unwrap_or(&self.cwd).to_owned()
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

    /// Variables that look like ours but are not.
    pub(super) fn notices(&self) -> Vec<String> {
        let names = self.vars.keys().filter_map(|name| name.to_str());
        env_vars::unknown(names)
            .into_iter()
            .map(|name| format!("the environment variable {name} is not known and was ignored"))
            .collect()
    }
}
