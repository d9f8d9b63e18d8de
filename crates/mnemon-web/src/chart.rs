//! Charts as SVG. Sizes are attributes, as the policy of the page allows no styles in the HTML.

use maud::{Markup, html};

/// A horizontal bar that is filled to a share of 1, for a number in the next cell. A page of hits has
/// two hundred of them, so it has one element only; the stylesheet draws the rest.
pub(crate) fn bar(share: f64) -> Markup {
    let width = (share.clamp(0.0, 1.0) * 100.0).round();
    html! {
        svg.meter viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.fill width=(width) height="8" {}
        }
    }
}

/// Size of a chart of lines; the stylesheet stretches it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// A line of a chart: its name, its class, and points of time and share of the height.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: &'a str,
    pub(crate) points: Vec<(i64, f64)>,
}

/// Lines over time, with labels for the beginning and the end.
pub(crate) fn lines(lines: &[Line<'_>], about: &str, ends: (&str, &str)) -> Markup {
    let times = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|(at, _)| *at))
    };
    let first = times().min().unwrap_or(0);
    let span = (times().max().unwrap_or(first) - first).max(1) as f64;
    let place = |(at, share): &(i64, f64)| {
        let x = (*at - first) as f64 / span * WIDTH;
        let y = HEIGHT - share.clamp(0.0, 1.0) * (HEIGHT - 4.0) - 2.0;
        (x, y)
    };
    html! {
        figure.chart {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(about) {
                @for line in lines {
                    @let places: Vec<(f64, f64)> = line.points.iter().map(place).collect();
                    path class={ "line " (line.class) } d=(path(&places)) { title { (line.name) } }
                }
            }
            figcaption {
                span { (ends.0) }
                span { (about) }
                span { (ends.1) }
            }
            @if lines.len() > 1 {
                p.legend { @for line in lines { span class={ "key " (line.class) } { (line.name) } } }
            }
        }
    }
}

/// The commands of a path through these places. A single place becomes a short line.
fn path(places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (place, (x, y)) in places.iter().enumerate() {
        let command = if place == 0 { 'M' } else { 'L' };
        path.push_str(&format!("{command}{x:.1} {y:.1}"));
    }
    if let [(_, y)] = places {
        path.push_str(&format!("L{WIDTH:.1} {y:.1}"));
    }
    path
}
