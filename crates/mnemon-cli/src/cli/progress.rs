//! Progress on long work, when somebody is watching.

use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::out::Out;

/// A bar on stderr that counts up to `total`; invisible when stderr is not a terminal, or with
/// `--quiet`.
pub(super) fn bar(out: &Out, total: u64, noun: &str) -> ProgressBar {
    let target = match out.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let template = format!("{{wide_bar}} {{human_pos}} of {{human_len}} {noun}{{left}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        let time = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let total = state.len().unwrap_or_default();
            if let Some(left) = left(state.pos(), total, state.elapsed()) {
                let _ = write!(text, ", {} left", HumanDuration(left));
            }
        };
        bar.set_style(style.with_key("left", time));
    }
    bar
}

/// Work that is done before the rest can be estimated: less says more about the start than about
/// the work.
const PER_CENT: u64 = 3;

/// The time that the rest takes if it goes on as before; `None` as long as nobody can tell.
fn left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let is_begun = elapsed >= Duration::from_secs(1) && done * 100 >= total * PER_CENT;
    if !is_begun || done == 0 || done >= total {
        return None;
    }
    let rest = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    Duration::try_from_secs_f64(rest.ceil()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_shown_when_it_can_be_told() {
        let after = |done, millis| left(done, 20_000, Duration::from_millis(millis));
        for (done, millis) in [(0, 0), (0, 5000), (1, 3000), (599, 9000), (19_999, 10)] {
            assert_eq!(after(done, millis), None, "{done} after {millis} ms");
        }
        assert_eq!(after(600, 1200), Some(Duration::from_secs(39)));
        assert_eq!(after(10_000, 6000), Some(Duration::from_secs(6)));
        assert_eq!(after(19_999, 12_000), Some(Duration::from_secs(1)));
        assert_eq!(after(20_000, 12_000), None);
        assert_eq!(left(0, 0, Duration::from_secs(9)), None);
    }
}
