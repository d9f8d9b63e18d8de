//! How many tokens a text is.

use crate::error::words;

/// Counts the tokens of a text as a family of models does, or says a number they do not exceed.
pub trait Counter: Send + Sync {
    /// Whose tokens they are.
    fn family(&self) -> Family;

    /// The tokens of this text, or more, never less. What looks like a control sign of the model
    /// counts as the text that it is.
    fn count(&self, text: &str) -> usize;
}

words! {
    /// Models that cut text alike.
    Family, "family" {
        /// Counted exactly.
        O200k = "o200k",
        /// Counted exactly.
        Cl100k = "cl100k",
        /// Whatever the model: at most so many, by [`Bound`](super::Bound).
        Any = "any",
        /// Whatever the model, and beyond doubt: a token has at least one byte.
        Bytes = "bytes",
    }
}

impl Family {
    /// The family of this model. A name that nobody knows is of the family [`Any`](Self::Any).
    ///
    /// ```
    /// use mnemon_core::budget::{Family, Named};
    /// assert_eq!(Family::of("gpt-4o-mini"), Named { family: Family::O200k, known: true });
    /// assert_eq!(Family::of("hal-9000"), Named { family: Family::Any, known: false });
    /// ```
    pub fn of(model: &str) -> Named {
        let model = model.trim().to_lowercase();
        // A provider may stand before the name, and `ft:` before a model that was tuned.
        let name = model.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let by_name = name.parse().ok();
        let by_model = || {
            let (_, family) = MODELS.iter().find(|(start, _)| fits(name, start))?;
            Some(*family)
        };
        match by_name.or_else(by_model) {
            Some(family) => Named {
                family,
                known: true,
            },
            None => Named {
                family: Self::Any,
                known: false,
            },
        }
    }
}

/// A model's family, and whether the model's name was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    pub family: Family,
    pub known: bool,
}

/// Beginnings of the models' names, the longer before the shorter.
const MODELS: &[(&str, Family)] = &[
    ("gpt-5", Family::O200k),
    ("gpt-4.5", Family::O200k),
    ("gpt-4.1", Family::O200k),
    ("gpt-4o", Family::O200k),
    ("gpt-oss", Family::O200k),
    ("chatgpt-4o", Family::O200k),
    ("o1", Family::O200k),
    ("o3", Family::O200k),
    ("o4", Family::O200k),
    ("gpt-4", Family::Cl100k),
    ("gpt-3.5", Family::Cl100k),
    ("gpt-35", Family::Cl100k),
    ("text-embedding-3", Family::Cl100k),
    // Vocabularies from before 2022, of which the bound knows nothing.
    ("text-davinci", Family::Bytes),
    ("code-davinci", Family::Bytes),
    ("davinci", Family::Bytes),
    ("p50k", Family::Bytes),
    ("r50k", Family::Bytes),
    ("gpt2", Family::Bytes),
    ("claude", Family::Any),
    ("gemini", Family::Any),
    ("gemma", Family::Any),
    ("llama", Family::Any),
    ("meta-llama", Family::Any),
    ("mistral", Family::Any),
    ("mixtral", Family::Any),
    ("qwen", Family::Any),
    ("deepseek", Family::Any),
];

/// Whether the name is this one, or begins with it where a word or a number ends: `o1` means
/// `o1-mini` and not `o100`.
fn fits(name: &str, start: &str) -> bool {
    let Some(rest) = name.strip_prefix(start) else {
        return false;
    };
    let ends_in_digit = start.ends_with(|c: char| c.is_ascii_digit());
    let goes_on = rest.starts_with(|c: char| c.is_ascii_digit());
    !(ends_in_digit && goes_on)
}

/// A token has at least one byte: the bound that needs no belief.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bytes;

impl Counter for Bytes {
    fn family(&self) -> Family {
        Family::Bytes
    }

    fn count(&self, text: &str) -> usize {
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        let cases = [
            ("gpt-4o-2024-08-06", Family::O200k),
            ("GPT-4.1-nano", Family::O200k),
            ("gpt-5-mini", Family::O200k),
            ("o3-mini", Family::O200k),
            ("gpt-4-turbo", Family::Cl100k),
            ("gpt-3.5-turbo", Family::Cl100k),
            ("openai/gpt-4o", Family::O200k),
            ("ft:gpt-4o:us::x", Family::O200k),
            ("text-davinci-003", Family::Bytes),
            ("claude-sonnet-4", Family::Any),
            ("gemini-2.5-pro", Family::Any),
            ("meta-llama/Llama-3.1-8B", Family::Any),
            ("mistral-large", Family::Any),
            ("qwen2.5", Family::Any),
            ("bytes", Family::Bytes),
            ("cl100k", Family::Cl100k),
        ];
        for (model, family) in cases {
            let named = Named {
                family,
                known: true,
            };
            assert_eq!(Family::of(model), named, "{model}");
        }
        for unknown in ["", "o100", "hal-9000", "gpt", "my gpt-4o"] {
            let named = Family::of(unknown);
            assert_eq!((named.family, named.known), (Family::Any, false));
        }
    }
}
