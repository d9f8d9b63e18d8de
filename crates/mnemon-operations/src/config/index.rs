//! `index`: the index that searches use.

use super::risk::SENDS;
use super::{ConfigError, Environment, Key, Layers, Secret, Sourced, key, keys};
use crate::env_vars;

keys! {
    INDEX = key("index", env_vars::MNEMON_INDEX, SENDS);
}

/// The index of the store itself.
pub const BUILTIN: &str = "builtin";

/// The scheme of an index in tables.
const LANCE: &str = "lance:";

/// The index that searches use, and the credentials of its server.
#[derive(Debug, Clone)]
pub struct IndexSettings {
    /// `builtin`, or the URL of an index in a search server or a folder.
    pub url: Sourced<String>,
    pub user: Option<String>,
    /// Only from the environment, so that it lies in no file of ours.
    pub password: Option<Secret>,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            url: Sourced::default(BUILTIN.to_owned()),
            user: None,
            password: None,
        }
    }
}

impl IndexSettings {
    pub(super) fn read(layers: &Layers<'_>, env: &Environment) -> Result<Self, ConfigError> {
        let password = env.get(env_vars::MNEMON_INDEX_PASSWORD)?;
        Ok(Self {
            url: layers.read_settled(&INDEX, BUILTIN.to_owned(), parse, |url, origin| {
                // A folder of tables is found like a store: beside the file that names it.
                if url.starts_with(LANCE) && !is_object_store(url) {
                    *url = env.settle(url, super::beside(origin));
                }
            })?,
            user: env.get(env_vars::MNEMON_INDEX_USER)?.map(str::to_owned),
            password: password.map(Secret::new),
        })
    }

    /// The settings of the index at this URL. The credentials are for the configured index only.
    pub(crate) fn of_url(&self, url: &str) -> Self {
        match self.url.value == url {
            true => self.clone(),
            false => Self {
                url: Sourced::default(url.to_owned()),
                ..Self::default()
            },
        }
    }

    /// The URL of an index in a search server or a folder; `None` stands for the index of the store.
    pub fn server(&self) -> Option<&str> {
        Some(self.url.value.as_str()).filter(|url| *url != BUILTIN)
    }
}

/// Whether tables are in an object store: `lance:s3://…`, but not `lance:///FOLDER`.
fn is_object_store(url: &str) -> bool {
    url.strip_prefix(LANCE)
        .is_some_and(|rest| rest.contains("://"))
}

/// The wiring knows the servers.
fn parse(text: &str) -> Result<String, String> {
    let is_server = text.contains("://") && !text.contains('@');
    let is_folder = text.starts_with(LANCE) && !is_object_store(text);
    match text == BUILTIN || is_folder || is_server {
        true => Ok(text.to_owned()),
        // The message does not repeat the text: it may hold a password.
        false => Err(format!(
            "write \"{BUILTIN}\", lance:FOLDER, lance:s3://BUCKET/PATH, \
             opensearch://HOST:PORT/NAME or milvus://HOST:PORT/NAME; the user and the password come \
             from MNEMON_INDEX_USER and MNEMON_INDEX_PASSWORD, the keys of a bucket from \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )),
    }
}
