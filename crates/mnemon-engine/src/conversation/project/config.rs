//! `[memory]` of `airsspec.toml`.

use mnemon_core::window::{Settings, between, fraction};
use mnemon_core::{Invalid, Limits, limits};
use serde::{Deserialize, Serialize};

/// How the conversations of a project are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectConfig {
    /// The newest messages that a window shows.
    pub hot_window_size: usize,
    /// The share of the tokens from which on the window is compressed.
    pub compression_threshold: f64,
    /// Messages for one part of a page; at least two.
    pub chunk_size: usize,
    /// Tokens that the model takes. The document does not say where this comes from: it is a key
    /// of our own.
    pub max_tokens: usize,
}

/// Messages that one part of a page may be made from.
const MOST_CHUNK: usize = 1000;

impl Default for ProjectConfig {
    fn default() -> Self {
        Self {
            hot_window_size: 30,
            compression_threshold: 0.8,
            chunk_size: 10,
            max_tokens: 131_072,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    memory: MemoryTable,
}

/// What a file says of the settings.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MemoryTable {
    hot_window_size: Option<usize>,
    compression_threshold: Option<f64>,
    chunk_size: Option<usize>,
    max_tokens: Option<usize>,
}

impl ProjectConfig {
    /// Reads the text of `airsspec.toml`; what it does not say is as in `plain`. Other tables and
    /// keys are somebody else's.
    pub fn from_toml(text: &str, plain: Self) -> Result<Self, Invalid> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                let before = text.get(..span.start).unwrap_or_default();
                before.matches('\n').count() + 1
            });
            Invalid::new(format!("line {line}"), error.message())
        })?;
        let said = file.memory;
        let config = Self {
            hot_window_size: said.hot_window_size.unwrap_or(plain.hot_window_size),
            compression_threshold: said
                .compression_threshold
                .unwrap_or(plain.compression_threshold),
            chunk_size: said.chunk_size.unwrap_or(plain.chunk_size),
            max_tokens: said.max_tokens.unwrap_or(plain.max_tokens),
        };
        config.check()?;
        Ok(config)
    }

    /// The settings of a window: tokens alone decide when it is compressed.
    pub fn settings(&self, plain: Settings) -> Settings {
        Settings {
            msg_threshold: None,
            max_token: self.max_tokens,
            token_ratio: self.compression_threshold,
            ..plain
        }
    }

    /// Every rule that the settings must keep.
    pub fn check(&self) -> Result<(), Invalid> {
        let most = Limits::DEFAULT.window_messages;
        between("hot_window_size", self.hot_window_size, 1, most)?;
        between("chunk_size", self.chunk_size, 2, MOST_CHUNK)?;
        between("max_tokens", self.max_tokens, 100, limits::CONTEXT_TOKENS)?;
        fraction("compression_threshold", self.compression_threshold)
    }
}
