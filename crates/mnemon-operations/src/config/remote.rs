//! `[long_term]` and `[external.NAME]`: memories and knowledge that other services keep.

use mnemon_core::{Invalid, Scope, Tenant};

use super::file::{EXTERNAL, File, Free, nearest};
use super::risk::SENDS;
use super::{
    ConfigError, Environment, Key, Layers, NONE, Origin, Row, Secret, Sourced, address, file_key,
    key, keys, without_passwords,
};
use crate::env_vars;

keys! {
    URL = key("long_term.url", env_vars::MNEMON_LONG_TERM_URL, SENDS);
    TIMEOUT = file_key("long_term.timeout_s", SENDS);
}

/// The longest that a request may take, in seconds.
const TIMEOUT_S: u64 = 10;
const MOST_TIMEOUT_S: u64 = 600;
/// The longest that a search waits for an external source, in milliseconds.
const EXTERNAL_TIMEOUT_MS: u64 = 1_500;
const MOST_EXTERNAL_TIMEOUT_MS: u64 = 30_000;
/// Hits that an external source is asked for.
const EXTERNAL_LIMIT: u64 = 10;
const MOST_EXTERNAL_LIMIT: u64 = 50;
/// External sources of one configuration.
const MOST_SOURCES: usize = 8;
/// The word for every tenant.
const ALL: &str = "*";
/// Keys of `[external.NAME]`.
const EXTERNAL_KEYS: [&str; 11] = [
    "url",
    "key_env",
    "timeout_ms",
    "limit",
    "tenants",
    "scope",
    "text",
    "title",
    "source",
    "time",
    "tenant_field",
];

/// A service that one setting names.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// `None` if there is none.
    pub url: Sourced<Option<String>>,
    pub timeout_s: Sourced<u64>,
    /// Only from the environment, so that it lies in no file of ours.
    pub key: Option<Secret>,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            url: Sourced::default(None),
            timeout_s: Sourced::default(TIMEOUT_S),
            key: None,
        }
    }
}

/// A knowledge base that searches ask besides the store.
#[derive(Debug, Clone)]
pub struct ExternalSettings {
    pub name: String,
    pub url: String,
    pub key: Option<Secret>,
    pub timeout_ms: u64,
    pub limit: usize,
    /// The tenants that may ask it; `None` stands for all.
    pub tenants: Option<Vec<Tenant>>,
    /// Semantic, or procedural for a source of skills.
    pub scope: Scope,
    /// Names of fields.
    pub text: String,
    pub title: Option<String>,
    pub source: Option<String>,
    pub time: Option<String>,
    pub tenant_field: Option<String>,
    pub origin: Origin,
}

/// Everything that other services keep.
#[derive(Debug, Clone, Default)]
pub struct Remotes {
    /// The long-term memory, if it is not this store.
    pub long_term: RemoteSettings,
    pub external: Vec<ExternalSettings>,
}

impl Remotes {
    pub(super) fn read(layers: &Layers<'_>, env: &Environment) -> Result<Self, ConfigError> {
        let seconds = |text: &str| between(text, MOST_TIMEOUT_S, "seconds");
        let long_term_key = env.get(env_vars::MNEMON_LONG_TERM_KEY)?;
        Ok(Self {
            long_term: RemoteSettings {
                url: layers.read(&URL, None, parse_url)?,
                timeout_s: layers.read(&TIMEOUT, TIMEOUT_S, seconds)?,
                key: long_term_key.map(Secret::new),
            },
            external: externals(&layers.files, env)?,
        })
    }

    /// One row for each external source.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |source: &ExternalSettings| Row {
            key: format!("{EXTERNAL}.{}.url", source.name),
            value: without_passwords(&source.url).into(),
            origin: source.origin.to_string(),
        };
        self.external.iter().map(row).collect()
    }
}

impl Layers<'_> {
    /// Variables that hold keys of external sources.
    pub(super) fn key_envs(&self) -> Vec<&str> {
        let values = self.files.iter().flat_map(|file| file.under(EXTERNAL));
        let is_key = |free: &&Free| free.names.last().is_some_and(|name| name == "key_env");
        values
            .filter(is_key)
            .map(|free| free.value.as_str())
            .collect()
    }
}

/// The sources of all files. One that several files name is the strongest file's, with all its
/// settings: a key goes to no address that it was not set with.
fn externals(files: &[File], env: &Environment) -> Result<Vec<ExternalSettings>, ConfigError> {
    let mut sources: Vec<ExternalSettings> = Vec::new();
    for file in files {
        let mut names: Vec<&String> = Vec::new();
        for free in file.under(EXTERNAL) {
            let Some((name, [_])) = free.names.split_first() else {
                let what = "write it as [external.NAME] with one value per line";
                return Err(wrong(file, free, what.to_owned()));
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            if sources.iter().all(|known| known.name != *name) {
                sources.push(external(file, name, env)?);
            }
        }
    }
    if let Some(over) = sources.get(MOST_SOURCES) {
        return Err(ConfigError::Value {
            key: "external",
            origin: over.origin.clone(),
            what: format!("there are more than {MOST_SOURCES} external sources"),
        });
    }
    Ok(sources)
}

fn wrong(file: &File, free: &Free, what: String) -> ConfigError {
    ConfigError::Syntax {
        path: file.path.clone(),
        line: free.line,
        what: format!("{EXTERNAL}.{}: {what}", free.names.join(".")),
    }
}

fn external(file: &File, name: &str, env: &Environment) -> Result<ExternalSettings, ConfigError> {
    let values = file
        .under(EXTERNAL)
        .filter(|free| free.names.first().is_some_and(|n| n == name));
    let values: Vec<&Free> = values.collect();
    let origin = Origin::File {
        path: file.path.clone(),
        line: values.first().map_or(1, |free| free.line),
    };
    let mut read = ExternalSettings {
        name: name.to_owned(),
        url: String::new(),
        key: None,
        timeout_ms: EXTERNAL_TIMEOUT_MS,
        limit: EXTERNAL_LIMIT as usize,
        tenants: Some(vec![Tenant::default()]),
        scope: Scope::Semantic,
        text: "text".to_owned(),
        title: None,
        source: None,
        time: None,
        tenant_field: None,
        origin: origin.clone(),
    };
    for free in values {
        let key = free.names.last().map_or("", String::as_str);
        if !EXTERNAL_KEYS.contains(&key) {
            return Err(ConfigError::UnknownKey {
                path: file.path.clone(),
                line: free.line,
                nearest: nearest(key, &EXTERNAL_KEYS),
                key: format!("{EXTERNAL}.{}", free.names.join(".")),
                known: EXTERNAL_KEYS.join(", "),
            });
        }
        read.set(key, &free.value, env)
            .map_err(|what| wrong(file, free, what))?;
    }
    match read.url.is_empty() {
        true => Err(ConfigError::Value {
            key: "external",
            origin,
            what: format!("[external.{name}] has no `url`"),
        }),
        false => Ok(read),
    }
}

impl ExternalSettings {
    fn set(&mut self, key: &str, value: &str, env: &Environment) -> Result<(), String> {
        let field = || check_field(value).map(Some);
        match key {
            "url" => self.url = parse_url(value)?.unwrap_or_default(),
            "key_env" => {
                // A key of another service must not be sent by mistake, or for a project.
                let is_other = env_vars::ALL.iter().any(|known| known.name == value);
                if !value.starts_with("MNEMON_") || is_other {
                    let what =
                        "the variable must be one for this source alone, such as MNEMON_KB_KEY";
                    return Err(what.to_owned());
                }
                self.key = env.get_named(value).map(Secret::new);
            }
            "timeout_ms" => {
                self.timeout_ms = between(value, MOST_EXTERNAL_TIMEOUT_MS, "milliseconds")?;
            }
            "limit" => self.limit = between(value, MOST_EXTERNAL_LIMIT, "hits")? as usize,
            "tenants" => self.tenants = parse_tenants(value)?,
            "scope" => self.scope = parse_scope(value)?,
            "text" => self.text = check_field(value)?,
            "title" => self.title = field()?,
            "source" => self.source = field()?,
            "time" => self.time = field()?,
            _ => self.tenant_field = field()?,
        }
        Ok(())
    }
}

fn check_field(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.@".contains(c);
    match !name.is_empty() && name.len() <= 256 && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "`{}` is not the name of a field: use letters, digits, _, -, @ and dots",
            name.escape_debug()
        )),
    }
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    match text.parse() {
        Ok(scope @ (Scope::Semantic | Scope::Procedural)) => Ok(scope),
        _ => Err(format!(
            "`{}` is not a scope of external sources: write `semantic` for documents, or \
             `procedural` for skills",
            text.escape_debug()
        )),
    }
}

/// With commas between them; `*` stands for all.
fn parse_tenants(text: &str) -> Result<Option<Vec<Tenant>>, String> {
    if text.trim() == ALL {
        return Ok(None);
    }
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let tenants = names.map(|name| name.parse().map_err(|invalid: Invalid| invalid.what));
    tenants.collect::<Result<Vec<Tenant>, String>>().map(Some)
}

/// `SERVICE+https://HOST`; `none` stands for none. The wiring knows the services.
fn parse_url(text: &str) -> Result<Option<String>, String> {
    if text == NONE {
        return Ok(None);
    }
    let Some((_, address)) = text.split_once('+') else {
        let what = "the address must begin with a service, such as mem0+https://…, zep+https://… or kb+https://…";
        return Err(what.to_owned());
    };
    address::check(address)?;
    Ok(Some(text.to_owned()))
}

fn between(text: &str, most: u64, unit: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "`{}` is not a whole number of {unit} between 1 and {most}",
            text.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests;
