//! Which model reads the best hits once more.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// A model that reads a question and a hit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RerankerChoice {
    /// The order of the arms stays.
    None,
    /// A cross-encoder, with its `model.onnx` in this folder.
    CrossEncoder(PathBuf),
}

impl RerankerChoice {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            Some(("crossencoder", folder)) if !folder.is_empty() => {
                Ok(Self::CrossEncoder(folder.into()))
            }
            _ => Err(format!(
                "`{}` is not a reranker; write `none` or `crossencoder:FOLDER`",
                text.escape_debug()
            )),
        }
    }
}

impl fmt::Display for RerankerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::CrossEncoder(folder) => write!(f, "crossencoder:{}", folder.display()),
        }
    }
}

impl Serialize for RerankerChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_and_printed() {
        for text in ["none", "crossencoder:/models/ce"] {
            assert_eq!(RerankerChoice::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "crossencoder", "crossencoder:", "minilm:/x"] {
            let error = RerankerChoice::parse(bad).unwrap_err();
            assert!(error.contains("crossencoder:FOLDER"), "{error}");
        }
    }
}
