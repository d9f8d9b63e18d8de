//! What each flow and each agent reads and writes, from the tables under `policy`.
//!
//! `[policy.default]` is for everybody, `[policy.FLOW]` for a flow, `[policy.agents.AGENT]` for an
//! agent, `[policy.FLOW.agents.AGENT]` for an agent in a flow. So no flow can be called `default` or
//! `agents` there.

use mnemon_engine::{MemoryPolicy, Policies, Whom};
use serde_json::Value;

use super::file::{File, POLICY, nearest};
use super::{ConfigError, Origin};

/// The policies, and where each value was read.
#[derive(Debug, Clone, Default)]
pub struct FlowPolicies {
    pub policies: Policies,
    origins: Vec<(Whom, String, Origin)>,
}

/// One value of a policy.
#[derive(Debug, Clone)]
pub struct PolicyRow {
    pub whom: Whom,
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

impl FlowPolicies {
    /// The policies of all files, the strongest of which comes first.
    pub(super) fn read(files: &[File]) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        for file in files.iter().rev() {
            read.take(file)?;
        }
        Ok(read)
    }

    /// What is said again goes before what was said.
    fn take(&mut self, file: &File) -> Result<(), ConfigError> {
        for free in file.under(POLICY) {
            let (path, text, line) = (&free.names, &free.value, &free.line);
            let Some((whom, key)) = split(path) else {
                let name = path.join(".");
                return Err(ConfigError::Syntax {
                    path: file.path.clone(),
                    line: *line,
                    what: format!(
                        "policy.{name} names no flow or agent; write it under [policy.default], \
                         [policy.FLOW] or [policy.agents.AGENT]"
                    ),
                });
            };
            let known = MemoryPolicy::keys();
            if !known.contains(&key) {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(ConfigError::UnknownKey {
                    path: file.path.clone(),
                    line: *line,
                    nearest: nearest(&key, &names),
                    key: format!("{whom}.{key}"),
                    known: names.join(", "),
                });
            }
            let set = self.policies.set(whom.clone(), &key, text);
            set.map_err(|invalid| ConfigError::Syntax {
                path: file.path.clone(),
                line: *line,
                what: format!("{whom}.{}: {}", invalid.field, invalid.what),
            })?;
            let origin = Origin::File {
                path: file.path.clone(),
                line: *line,
            };
            self.origins
                .retain(|(known, name, _)| (known, name) != (&whom, &key));
            self.origins.push((whom, key, origin));
        }
        Ok(())
    }

    /// Where this was said; the default if nobody did.
    pub fn origin(&self, whom: Option<&Whom>, key: &str) -> Origin {
        let mut said = self.origins.iter();
        let said = said.find(|(known, name, _)| Some(known) == whom && name == key);
        said.map_or(Origin::Default, |(.., origin)| origin.clone())
    }

    /// The policy of whoever has none of their own, and all that was said about others. A limit
    /// that is not set is left out.
    pub fn rows(&self) -> Vec<PolicyRow> {
        let default = self.policies.explain(None, None).into_iter();
        let default = default.filter(|applied| !applied.value.is_null());
        let default = default.map(|applied| PolicyRow {
            origin: self.origin(applied.from.as_ref(), &applied.key),
            whom: Whom::all(),
            key: applied.key,
            value: applied.value,
        });
        let others = self
            .origins
            .iter()
            .filter(|(whom, ..)| *whom != Whom::all());
        let others = others.map(|(whom, key, origin)| {
            let said = self.policies.said();
            let said = said.filter(|(known, name, _)| *known == whom && *name == key.as_str());
            let text = said.last().map(|(.., text)| text).unwrap_or_default();
            PolicyRow {
                whom: whom.clone(),
                key: key.clone(),
                // Numbers and truths are JSON as they stand; the one word that is not is a text.
                value: text.parse().unwrap_or_else(|_| Value::from(text)),
                origin: origin.clone(),
            }
        });
        default.chain(others).collect()
    }
}

/// Whom a value is for, and its key.
fn split(path: &[String]) -> Option<(Whom, String)> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let (whom, key) = match path.as_slice() {
        ["agents", agent, key @ ..] => (Whom::agent(*agent), key),
        ["default", key @ ..] => (Whom::all(), key),
        [flow, "agents", agent, key @ ..] => (Whom::both(*flow, *agent), key),
        [flow, key @ ..] => (Whom::flow(*flow), key),
        [] => return None,
    };
    (!key.is_empty()).then(|| (whom, key.join(".")))
}
