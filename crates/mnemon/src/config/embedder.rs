//! Which model places records by their meaning, and the key for it.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// The forms that a choice may have, for messages.
const FORMS: &str = "write `builtin`, `none`, `minilm:FOLDER` or `openai:MODEL@BASE_URL`";

/// A model that places records by their meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// The one in the binary.
    Builtin,
    /// None: records are found by their words.
    None,
    /// all-MiniLM-L6-v2, with its weights in this folder.
    MiniLm(PathBuf),
    /// An endpoint that speaks OpenAI's `/embeddings`.
    OpenAi { model: String, base_url: String },
}

impl EmbedderChoice {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("`{}` {what}; {FORMS}", text.escape_debug());
        match text.split_once(':') {
            None if text == "builtin" => Ok(Self::Builtin),
            None if text == "none" => Ok(Self::None),
            Some(("minilm", "")) => Err(wrong("names no folder")),
            Some(("minilm", folder)) => Ok(Self::MiniLm(folder.into())),
            Some(("openai", rest)) => match rest.split_once('@') {
                Some((model, url)) if !model.is_empty() && is_http(url) => Ok(Self::OpenAi {
                    model: model.to_owned(),
                    base_url: url.to_owned(),
                }),
                _ => Err(wrong("names no model at an http address")),
            },
            _ => Err(wrong("is no embedder")),
        }
    }
}

fn is_http(url: &str) -> bool {
    let rest = url.strip_prefix("http://");
    rest.or_else(|| url.strip_prefix("https://"))
        .is_some_and(|rest| !rest.is_empty())
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::None => f.write_str("none"),
            Self::MiniLm(folder) => write!(f, "minilm:{}", folder.display()),
            Self::OpenAi { model, base_url } => write!(f, "openai:{model}@{base_url}"),
        }
    }
}

impl Serialize for EmbedderChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A key: it is never printed, and not among the settings that are shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// The key itself, for the one that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_and_printed() {
        for text in [
            "builtin",
            "none",
            "minilm:/models/minilm",
            "openai:text-embedding-3-small@https://api.openai.com/v1",
            "openai:a:b@http://localhost:11434/v1",
        ] {
            assert_eq!(EmbedderChoice::parse(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "Builtin",
            "minilm",
            "minilm:",
            "openai:x",
            "openai:@http://a",
            "openai:m@ftp://x",
        ] {
            let error = EmbedderChoice::parse(bad).unwrap_err();
            assert!(error.contains("openai:MODEL@BASE_URL"), "{error}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("k3y")), "***");
    }
}
