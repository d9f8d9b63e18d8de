//! When a window is made smaller, and what is left alone.

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::model::{Limits, limits};

/// When a window is too large, and what of it is kept as it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// From so many messages on the window is compressed.
    pub msg_threshold: usize,
    /// What the model can read.
    pub max_token: usize,
    /// From this part of it on the window is compressed.
    pub token_ratio: f64,
    /// The last messages, which the gentle strategies leave alone.
    pub last_keep: usize,
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
            msg_threshold: 100,
            max_token: 128 * 1024,
            token_ratio: 0.75,
            last_keep: 50,
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
    #[must_use]
    pub fn token_limit(&self) -> usize {
        // Both are checked: the product is no more than a few millions.
        (self.max_token as f64 * self.token_ratio) as usize
    }

    /// Whether a window of this size is compressed.
    #[must_use]
    pub fn is_triggered(&self, messages: usize, tokens: usize) -> bool {
        messages >= self.msg_threshold || tokens >= self.token_limit()
    }

    /// Every rule that the settings must keep.
    pub fn check(&self) -> Result<(), Invalid> {
        let most = Limits::DEFAULT.window_messages;
        between("msg_threshold", self.msg_threshold, 2, most)?;
        between("max_token", self.max_token, 100, limits::CONTEXT_TOKENS)?;
        fraction("token_ratio", self.token_ratio)?;
        let ratio = self.current_round_compression_ratio;
        fraction("current_round_compression_ratio", ratio)?;
        if self.last_keep >= self.msg_threshold {
            let (keep, threshold) = (self.last_keep, self.msg_threshold);
            let what = format!(
                "is {keep}, which must be less than msg_threshold ({threshold}): \
                 otherwise nothing could ever be compressed"
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

    /// Characters that a summary of so many may have: a part of them, and no more than leaves most
    /// of the window to what was said.
    pub(super) fn summary_chars(&self, chars: usize) -> usize {
        let part = chars * 3 / 10;
        part.min(limits::WINDOW_SUMMARY_CHARS)
            .min(self.token_limit() / 2)
    }
}

fn between(field: &str, value: usize, least: usize, most: usize) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let what = format!("is {value}, it must lie between {least} and {most}");
    Err(Invalid::new(field, what))
}

fn fraction(field: &str, value: f64) -> Result<(), Invalid> {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    let what = format!("is {value}, it must lie above 0 and not above 1");
    Err(Invalid::new(field, what))
}
