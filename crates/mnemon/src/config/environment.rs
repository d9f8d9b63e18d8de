//! What the process was started with: variables, and the folders they name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ConfigError;
use crate::env_vars::{self, EnvVar};

/// The name of the configuration file.
const FILE: &str = "mnemon.toml";

/// The variables of the process, read once.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    vars: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
}

impl Environment {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            // Only used to look for a file that need not be there.
            cwd: std::env::current_dir().unwrap_or_default(),
        }
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

    fn home(&self) -> Option<PathBuf> {
        self.folder(env_vars::HOME.name)
            .or_else(|| self.folder("USERPROFILE"))
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
        let places = std::iter::once(self.cwd.join(FILE)).chain(user);
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

    /// The store that is used when nobody names one.
    pub(super) fn default_store(&self) -> Result<String, ConfigError> {
        let folder = self.data().ok_or(ConfigError::NoHome)?;
        match folder.join("mnemon.db").to_str() {
            Some(path) => Ok(format!("sqlite:{path}")),
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
