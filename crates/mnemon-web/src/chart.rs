//! Charts as SVG. Sizes are attributes, as the policy of the page allows no styles in the HTML.

use maud::{Markup, html};

/// A horizontal bar that is filled to a share of 1. The number stands beside it, so that it is
/// decoration for a screen reader.
pub(crate) fn bar(share: f64) -> Markup {
    let width = (share.clamp(0.0, 1.0) * 100.0).round();
    html! {
        svg.meter viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="100" height="8" rx="2" {}
            rect.fill width=(width) height="8" rx="2" {}
        }
    }
}

/// Columns that a chart has room for, at least.
const SLOTS: usize = 24;

/// Columns of counts, with a label for the first and the last.
pub(crate) fn columns(counts: &[(String, u64)], about: &str) -> Markup {
    let most = counts
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    // A single column does not fill the chart.
    let step = 600.0 / counts.len().max(SLOTS) as f64;
    let (first, last) = (counts.first(), counts.last());
    html! {
        figure.chart {
            svg viewBox="0 0 600 80" preserveAspectRatio="none" role="img" aria-label=(about) {
                @for (place, (label, count)) in counts.iter().enumerate() {
                    @let height = (*count as f64 / most as f64 * 76.0).max(if *count > 0 { 2.0 } else { 0.5 });
                    rect.fill x=(format!("{:.1}", place as f64 * step + 1.0)) y=(format!("{:.1}", 80.0 - height))
                        width=(format!("{:.1}", (step - 2.0).max(1.0))) height=(format!("{height:.1}")) rx="1" {
                        title { (label) ": " (count) }
                    }
                }
            }
            figcaption {
                span { (first.map_or("", |(label, _)| label)) }
                span { (about) }
                span { (last.map_or("", |(label, _)| label)) }
            }
        }
    }
}
