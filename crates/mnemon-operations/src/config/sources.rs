//! Which files are read, and how far each of them is believed.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::file::{self, File};
use super::trust::{Trust, TrustList};
use super::{ConfigError, Environment, Flags, Risk, known_keys};

/// A setting of a project's file that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    pub key: String,
    pub file: PathBuf,
    pub line: usize,
    pub why: Risk,
    /// Whether the file was trusted once, with another text.
    pub changed_since_trusted: bool,
    /// Whether the setting has no effect although the file is trusted.
    #[serde(skip)]
    pub is_trusted: bool,
}

/// The files that are read, the strongest first.
pub(super) struct Sources {
    pub(super) files: Vec<File>,
    pub(super) ignored: Vec<Ignored>,
    pub(super) notices: Vec<String>,
}

impl Sources {
    /// A file that was named is the only one, and is believed. Otherwise the project's file comes
    /// before the user's own, and is believed as far as the user has said.
    pub(super) fn find(flags: &Flags, env: &Environment) -> Result<Self, ConfigError> {
        let mut sources = Self {
            files: Vec::new(),
            ignored: Vec::new(),
            notices: Vec::new(),
        };
        if let Some(path) = env.named_file(flags.config.as_deref()) {
            sources.files.push(File::read(path, &known_keys())?);
            return Ok(sources);
        }
        let user = env.user_file().filter(|path| path.is_file());
        let project = env.project_file(&mut sources.notices);
        if let Some(path) = project.filter(|path| !is_same(path, user.as_deref())) {
            sources.take_project(path, env)?;
        }
        if let Some(path) = user {
            sources.files.push(File::read(path, &known_keys())?);
        }
        Ok(sources)
    }

    fn take_project(&mut self, path: PathBuf, env: &Environment) -> Result<(), ConfigError> {
        let text = file::text(&path)?;
        let trust = TrustList::of(env).map_or(Ok(Trust::Never), |list| list.trust_of(&path, &text));
        let trust = trust.unwrap_or_else(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let cause = cause.unwrap_or_default();
            self.notices
                .push(format!("no file is trusted: {error}: {cause}"));
            Trust::Never
        });
        let mut file = File::parse(path, &text, &known_keys())?;
        file.is_projects = true;
        let is_trusted = trust == Trust::Trusted;
        let held_back = file.hold_back(is_trusted, &known_keys());
        let changed_since_trusted = matches!(trust, Trust::Changed(_));
        self.ignored
            .extend(held_back.into_iter().map(|(key, line, why)| Ignored {
                key,
                file: file.path.clone(),
                line,
                why,
                changed_since_trusted,
                is_trusted,
            }));
        self.files.push(file);
        Ok(())
    }
}

fn is_same(path: &Path, other: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    other.is_some_and(|other| real(path).is_some() && real(path) == real(other))
}

/// What a project's file sets that needs the user's trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RiskySetting {
    pub key: String,
    pub value: String,
    pub line: usize,
    pub why: Risk,
}

/// A project's file, for a user who has to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    pub path: PathBuf,
    pub text: String,
    pub risky: Vec<RiskySetting>,
    /// Settings that have no effect in a project's file, even if it is trusted.
    pub never: Vec<String>,
    pub trust: Trust,
}

/// Reads a file without believing it.
pub fn inspect(path: &Path, list: &TrustList) -> Result<Inspected, ConfigError> {
    let text = file::text(path)?;
    let file = File::parse(path.to_owned(), &text, &known_keys())?;
    let (never, risky) = file.risky(&known_keys());
    Ok(Inspected {
        path: path.to_owned(),
        risky,
        never: never.into_iter().map(|setting| setting.key).collect(),
        trust: list.trust_of(path, &text)?,
        text,
    })
}

/// One sentence about all settings that have no effect.
pub fn ignored_notice(ignored: &[Ignored]) -> Option<String> {
    let first = ignored.first()?;
    let mut names: Vec<&str> = Vec::new();
    for one in ignored {
        // Policies have as many names as somebody likes to invent.
        let name = match one.key.starts_with("policy.") {
            true => "policy",
            false => one.key.as_str(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let file = first.file.display();
    if first.is_trusted {
        return Some(format!(
            "these settings of {file} are ignored, as only your own mnemon.toml may have them: {}",
            names.join(", ")
        ));
    }
    let since = match first.changed_since_trusted {
        true => "has changed since it was trusted",
        false => "is not trusted",
    };
    Some(format!(
        "{file} {since}, so these settings of it are ignored: {}. `mnemon config` says why, \
         `mnemon trust {file}` allows them",
        names.join(", ")
    ))
}
