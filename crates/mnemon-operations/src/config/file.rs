//! `mnemon.toml` as a flat list of keys, each with its line.

use std::io::Read;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::address::without_passwords;
use super::risk::ProjectRule;
use super::sources::RiskySetting;
use super::{ConfigError, Key, Origin, Risk, memory_json};

/// A configuration file is a page of settings; a larger one is a mistake.
const MOST_BYTES: u64 = 1024 * 1024;

/// The table that holds the policies of flows and agents.
pub(super) const POLICY: &str = "policy";
/// The table that holds the settings of single tenants.
pub(super) const TENANTS: &str = "server.tenants";
/// The table that holds the knowledge bases that searches ask besides the store.
pub(super) const EXTERNAL: &str = "external";
/// Tables in which users choose the names of the inner tables.
const FREE: [&str; 3] = [POLICY, TENANTS, EXTERNAL];

/// What a configuration file says.
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Whether it was found in a project's folder, where anybody may have put it.
    pub(super) is_projects: bool,
    /// Key, value as text, line.
    values: Vec<(String, String, usize)>,
    free: Vec<Free>,
}

/// A value in one of the tables of [`FREE`].
pub(super) struct Free {
    table: &'static str,
    /// The names from the table down to the value.
    pub(super) names: Vec<String>,
    pub(super) value: String,
    pub(super) line: usize,
}

impl Free {
    /// Policies switch scopes on and say what is learnt without a person's approval; settings of a
    /// tenant lift its quotas; an external source is sent every query.
    fn rule(&self) -> ProjectRule {
        match self.table {
            EXTERNAL => super::risk::SENDS,
            _ => super::risk::WEAKENS,
        }
    }

    fn key(&self) -> String {
        format!("{}.{}", self.table, self.names.join("."))
    }
}

impl File {
    /// Reads the file; a key that is not among `known` is refused.
    pub(super) fn read(path: PathBuf, known: &[&Key]) -> Result<Self, ConfigError> {
        let text = text(&path)?;
        Self::parse(path, &text, known)
    }

    pub(super) fn parse(path: PathBuf, text: &str, known: &[&Key]) -> Result<Self, ConfigError> {
        if memory_json::is_one(&path) {
            let values = memory_json::read(&path, text)?;
            let free = Vec::new();
            return Ok(Self {
                path,
                is_projects: false,
                values,
                free,
            });
        }
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            path: path.clone(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            what: error.message().to_owned(),
        })?;
        let mut walk = Walk {
            file: Self {
                path,
                is_projects: false,
                values: Vec::new(),
                free: Vec::new(),
            },
            text,
            known,
        };
        walk.table("", table.get_ref())?;
        Ok(walk.file)
    }

    /// Drops the settings that a project's file may not have: their keys, lines and why.
    pub(super) fn hold_back(
        &mut self,
        is_trusted: bool,
        known: &[&Key],
    ) -> Vec<(String, usize, Risk)> {
        let mut dropped = Vec::new();
        self.values.retain(|(key, _, line)| {
            let risk = rule_of(key, known).forbids(is_trusted);
            dropped.extend(risk.map(|risk| (key.clone(), *line, risk)));
            risk.is_none()
        });
        self.free.retain(|free| {
            let risk = free.rule().forbids(is_trusted);
            dropped.extend(risk.map(|risk| (free.key(), free.line, risk)));
            risk.is_none()
        });
        dropped.sort_by_key(|(_, line, _)| *line);
        dropped
    }

    /// The settings that have no effect in a project's file, and those that the user must trust.
    pub(super) fn risky(&self, known: &[&Key]) -> (Vec<RiskySetting>, Vec<RiskySetting>) {
        let values = self.values.iter();
        let values =
            values.map(|(key, value, line)| (key.clone(), value, *line, rule_of(key, known)));
        let free = self.free.iter();
        let free = free.map(|free| (free.key(), &free.value, free.line, free.rule()));
        let all = values.chain(free);
        let risky = all.filter_map(|(key, value, line, rule)| {
            let why = rule.forbids(false)?;
            let setting = RiskySetting {
                key,
                value: without_passwords(value),
                line,
                why,
            };
            Some((rule.forbids(true).is_some(), setting))
        });
        let mut risky: Vec<(bool, RiskySetting)> = risky.collect();
        risky.sort_by_key(|(_, setting)| setting.line);
        let (never, risky): (Vec<_>, Vec<_>) = risky.into_iter().partition(|(never, _)| *never);
        let settings = |of: Vec<(bool, RiskySetting)>| of.into_iter().map(|(_, one)| one).collect();
        (settings(never), settings(risky))
    }

    /// The values of one of the tables of [`FREE`].
    pub(super) fn under(&self, table: &str) -> impl Iterator<Item = &Free> {
        self.free.iter().filter(move |free| free.table == table)
    }

    pub(super) fn get(&self, key: &str) -> Option<(String, Origin)> {
        let (_, text, line) = self.values.iter().find(|(name, ..)| name == key)?;
        let origin = Origin::File {
            path: self.path.clone(),
            line: *line,
        };
        Some((text.clone(), origin))
    }
}

struct Walk<'a> {
    file: File,
    text: &'a str,
    known: &'a [&'a Key],
}

impl Walk<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            let line = line_of(self.text, name.span().start);
            if let Some(free) = FREE.into_iter().find(|free| *free == key)
                && let DeValue::Table(table) = value.get_ref()
            {
                self.free(free, &[], table)?;
                continue;
            }
            let inner = format!("{key}.");
            let is_leaf = self.known.iter().any(|known| known.name == key);
            let is_branch = self
                .known
                .iter()
                .any(|known| known.name.starts_with(&inner));
            match value.get_ref() {
                DeValue::Table(table) if is_branch => self.table(&key, table)?,
                value if is_leaf => self.leaf(key, value, line)?,
                _ => return Err(self.unknown(key, line)),
            }
        }
        Ok(())
    }

    /// Flows, agents and tenants have names of their own, so that any key may come here.
    fn free(
        &mut self,
        of: &'static str,
        names: &[String],
        table: &DeTable<'_>,
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            let mut names = names.to_vec();
            names.push(name.get_ref().to_string());
            let line = line_of(self.text, name.span().start);
            match value.get_ref() {
                DeValue::Table(table) => self.free(of, &names, table)?,
                value => {
                    let value = self.text_of(&names.join("."), value, line)?;
                    self.file.free.push(Free {
                        table: of,
                        names,
                        value,
                        line,
                    });
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, key: String, value: &DeValue<'_>, line: usize) -> Result<(), ConfigError> {
        let text = self.text_of(&key, value, line)?;
        self.file.values.push((key, text, line));
        Ok(())
    }

    fn text_of(&self, key: &str, value: &DeValue<'_>, line: usize) -> Result<String, ConfigError> {
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(truth) => truth.to_string(),
            other => {
                return Err(ConfigError::Syntax {
                    path: self.file.path.clone(),
                    line,
                    what: format!(
                        "{key} is of type {}, but it must be a text, a number, or true or false",
                        other.type_str()
                    ),
                });
            }
        };
        Ok(text)
    }

    fn unknown(&self, key: String, line: usize) -> ConfigError {
        let mut names: Vec<&str> = self.known.iter().map(|known| known.name).collect();
        names.extend(FREE);
        let nearest = nearest(&key, &names);
        // A typo within a section is mended by the names of that section.
        let section = key
            .split_once('.')
            .map(|(section, _)| format!("{section}."));
        let is_in_section = |name: &&str| section.as_ref().is_some_and(|own| name.starts_with(own));
        if names.iter().any(is_in_section) {
            names.retain(is_in_section);
        }
        ConfigError::UnknownKey {
            path: self.file.path.clone(),
            line,
            nearest,
            key,
            known: names.join(", "),
        }
    }
}

/// A key that nobody knows is refused before; should one come here, it is not believed.
fn rule_of(key: &str, known: &[&Key]) -> ProjectRule {
    let known = known.iter().find(|known| known.name == key);
    known.map_or(super::risk::WEAKENS, |key| key.rule)
}

/// The whole file, if it is not larger than such a file is.
pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let read = || {
        let file = std::fs::File::open(path)?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            let what = format!("it has more than {MOST_BYTES} bytes");
            return Err(std::io::Error::other(what));
        }
        let text = String::from_utf8(bytes);
        text.map_err(|_| std::io::Error::other("it is not UTF-8 text"))
    };
    read().map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// The known name that was most likely meant.
pub(super) fn nearest(key: &str, names: &[&str]) -> Option<String> {
    let names = names.iter();
    names
        .map(|name| (strsim::jaro_winkler(key, name), name))
        .filter(|(nearness, _)| *nearness > 0.8)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| (*name).to_owned())
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|byte| **byte == b'\n').count() + 1
}
