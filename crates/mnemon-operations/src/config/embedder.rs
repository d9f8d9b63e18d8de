//! Which model places records by their meaning, and the key for it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::Invalid;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};
use mnemon_core::vector::MAX_DIMENSION;
use serde::{Serialize, Serializer};

use super::address;

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
    /// A function of the program that has opened the store. No configuration file can name one.
    Function(EmbeddingFunction),
}

impl EmbedderChoice {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            let shown = address::without_passwords(text);
            format!("`{}` {what}; {FORMS}", shown.escape_debug())
        };
        match text.split_once(':') {
            None if text == "builtin" => Ok(Self::Builtin),
            None if text == "none" => Ok(Self::None),
            Some(("minilm", "")) => Err(wrong("names no folder")),
            Some(("minilm", folder)) => Ok(Self::MiniLm(folder.into())),
            Some(("openai", rest)) => Self::openai(rest),
            _ => Err(wrong("is not an embedder")),
        }
    }

    /// The messages repeat nothing of what was written: it may hold a password.
    fn openai(rest: &str) -> Result<Self, String> {
        let named = rest.split_once('@').filter(|(model, _)| !model.is_empty());
        let Some((model, base_url)) = named else {
            return Err(format!("`openai:` needs a model and an address; {FORMS}"));
        };
        if base_url.contains('@') {
            let what = "the address must not contain a user name or password";
            return Err(format!("{what}; set MNEMON_EMBEDDER_KEY instead; {FORMS}"));
        }
        let checked = address::check(base_url);
        checked.map_err(|_| format!("`openai:` needs an http or https address; {FORMS}"))?;
        Ok(Self::OpenAi {
            model: model.to_owned(),
            base_url: base_url.to_owned(),
        })
    }
}

impl fmt::Display for EmbedderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("builtin"),
            Self::None => f.write_str("none"),
            Self::MiniLm(folder) => write!(f, "minilm:{}", folder.display()),
            Self::OpenAi { model, base_url } => write!(f, "openai:{model}@{base_url}"),
            Self::Function(function) => f.write_str(&function.model.name),
        }
    }
}

impl Serialize for EmbedderChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

type Vectors = Vec<Option<Vec<f32>>>;
type Call = dyn Fn(&[&str]) -> Result<Vectors, String> + Send + Sync;

/// An embedder that a program brings along, such as a function in Python.
#[derive(Clone)]
pub struct EmbeddingFunction {
    model: ModelId,
    call: Arc<Call>,
}

impl EmbeddingFunction {
    /// Longest name of a model, in characters.
    pub const MAX_NAME: usize = 200;

    /// The function returns a vector for each text, or `None` for a text without a meaning. Vectors of
    /// functions with the same name and dimension are compared with each other.
    pub fn new(
        name: &str,
        dimension: usize,
        call: impl Fn(&[&str]) -> Result<Vectors, String> + Send + Sync + 'static,
    ) -> Result<Self, Invalid> {
        let is_name = !name.trim().is_empty() && !name.chars().any(char::is_control);
        if !is_name || name.chars().count() > Self::MAX_NAME {
            let most = Self::MAX_NAME;
            let what =
                format!("must be the name of the model, with 1 to {most} printable characters");
            return Err(Invalid::new("embed_model", what));
        }
        if !(1..=MAX_DIMENSION).contains(&dimension) {
            let what = format!("{dimension} is not between 1 and {MAX_DIMENSION}");
            return Err(Invalid::new("dimensions", what));
        }
        let name = format!("function:{name}");
        Ok(Self {
            model: ModelId { name, dimension },
            call: Arc::new(call),
        })
    }
}

impl fmt::Debug for EmbeddingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model.fmt(f)
    }
}

impl PartialEq for EmbeddingFunction {
    fn eq(&self, other: &Self) -> bool {
        self.model == other.model
    }
}

impl Eq for EmbeddingFunction {}

#[async_trait]
impl Embedder for EmbeddingFunction {
    fn model(&self) -> &ModelId {
        &self.model
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        (self.call)(texts).map_err(|problem| EmbedError::BadAnswer {
            what: problem,
            source: None,
        })
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
            "openai:m@http://u\u{3a}PW@x",
            "openai:m@u\u{3a}PW@x",
            "openai:u\u{3a}PW@x",
            "http://u\u{3a}PW@x",
        ] {
            let error = EmbedderChoice::parse(bad).unwrap_err();
            assert!(error.contains("openai:MODEL@BASE_URL"), "{error}");
            assert!(!error.contains("PW"), "{error}");
        }
    }

    #[test]
    fn a_function_has_a_name_and_a_dimension() {
        let made =
            |name: &str, dimension| EmbeddingFunction::new(name, dimension, |_| Ok(Vec::new()));
        let longest = "x".repeat(EmbeddingFunction::MAX_NAME);
        for name in ["m", "sentence-transformers/all-MiniLM-L6-v2", &longest] {
            let choice = EmbedderChoice::Function(made(name, MAX_DIMENSION).unwrap());
            assert_eq!(choice.to_string(), format!("function:{name}"));
        }
        for name in ["", " ", "a\nb", &format!("{longest}x")] {
            assert_eq!(made(name, 8).unwrap_err().field, "embed_model");
        }
        for dimension in [0, MAX_DIMENSION + 1] {
            assert_eq!(made("m", dimension).unwrap_err().field, "dimensions");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("k3y")), "***");
    }
}
