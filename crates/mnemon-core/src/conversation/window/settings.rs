//! When a window is made smaller, and what is left alone.

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::model::{Limits, limits};

/// When a window is too large, and what of it is kept as it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// From so many messages on the window is compressed, however few tokens they are. `None` by
    /// default: then only tokens count.
    pub msg_threshold: Option<usize>,
    /// What the model can read.
    pub max_token: usize,
    /// From this part of it on the window is compressed.
    pub token_ratio: f64,
    /// The last messages, which the gentle strategies leave alone. [`Settings::last_keep`] says
    /// how many they are when nobody does.
    pub last_keep: Option<usize>,
    /// A text of more characters is large.
    pub large_payload_threshold: usize,
    /// Characters of a large text that are still shown.
    pub offload_single_preview: usize,
    /// More tool messages than this in a row are worth a summary.
    pub min_consecutive_tool_messages: usize,
    /// How much of the current round its summary may have.
    pub current_round_compression_ratio: f64,
    /// Fewer tokens than this are not worth a summary.
    pub min_compression_token_threshold: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            msg_threshold: None,
            max_token: 128 * 1024,
            token_ratio: 0.75,
            last_keep: None,
            large_payload_threshold: 5 * 1024,
            offload_single_preview: 200,
            min_consecutive_tool_messages: 6,
            current_round_compression_ratio: 0.3,
            min_compression_token_threshold: 5000,
        }
    }
}

impl Settings {
    /// Tokens from which on the window is compressed.
    pub fn token_limit(&self) -> usize {
        // Both are checked: the product is no more than a few millions.
        (self.max_token as f64 * self.token_ratio) as usize
    }

    /// Whether a window of this size is compressed.
    pub fn is_triggered(&self, messages: usize, tokens: usize) -> bool {
        self.msg_threshold.is_some_and(|most| messages >= most) || tokens >= self.token_limit()
    }

    /// The last messages that the gentle strategies leave alone: as set, or else 50, or half of
    /// `msg_threshold` if that is less.
    pub fn last_keep(&self) -> usize {
        let half = self.msg_threshold.map_or(LAST_KEEP, |most| most / 2);
        self.last_keep.unwrap_or(half.min(LAST_KEEP))
    }

    /// Every rule that the settings must keep.
    pub fn check(&self) -> Result<(), Invalid> {
        let most = Limits::DEFAULT.window_messages;
        between("msg_threshold", self.msg_threshold.unwrap_or(2), 2, most)?;
        between("last_keep", self.last_keep(), 0, most)?;
        between("max_token", self.max_token, 100, limits::CONTEXT_TOKENS)?;
        fraction("token_ratio", self.token_ratio)?;
        let ratio = self.current_round_compression_ratio;
        fraction("current_round_compression_ratio", ratio)?;
        if let Some(threshold) = self.msg_threshold.filter(|most| self.last_keep() >= *most) {
            let keep = self.last_keep();
            let what = format!(
                "is {keep}, it must be less than msg_threshold ({threshold}): \
                 with that many messages left alone, none would remain to be folded"
            );
            return Err(Invalid::new("last_keep", what));
        }
        let bytes = limits::CONTENT_BYTES;
        between(
            "large_payload_threshold",
            self.large_payload_threshold,
            1,
            bytes,
        )?;
        between(
            "offload_single_preview",
            self.offload_single_preview,
            0,
            bytes,
        )?;
        let in_a_row = self.min_consecutive_tool_messages;
        between("min_consecutive_tool_messages", in_a_row, 0, most)?;
        let worth = self.min_compression_token_threshold;
        between(
            "min_compression_token_threshold",
            worth,
            0,
            limits::CONTEXT_TOKENS,
        )
    }
}

/// Messages that gentle strategies leave alone when nobody says.
const LAST_KEEP: usize = 50;

/// Checks that a setting lies between two bounds.
pub fn between(field: &str, value: usize, least: usize, most: usize) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let what = format!("is {value}, it must be between {least} and {most}");
    Err(Invalid::new(field, what))
}

/// Checks that a setting is a share.
pub fn fraction(field: &str, value: f64) -> Result<(), Invalid> {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    let what = format!("is {value}, it must be above 0 and at most 1");
    Err(Invalid::new(field, what))
}
