//! Progress on long work, when somebody is watching.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr that counts up to `total`; invisible when stderr is no terminal.
pub(super) fn bar(total: u64, noun: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = format!("{{wide_bar}} {{human_pos}} of {{human_len}} {noun}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
