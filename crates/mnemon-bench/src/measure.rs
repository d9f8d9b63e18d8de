//! Timing and tables.

use std::time::{Duration, Instant};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How long each call took, sorted.
pub(crate) struct Times(Vec<Duration>);

impl From<Vec<Duration>> for Times {
    fn from(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }
}

impl Times {
    /// Times one call after the other.
    pub(crate) fn of<E>(
        count: usize,
        mut call: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut times = Vec::with_capacity(count);
        for number in 0..count {
            let start = Instant::now();
            call(number)?;
            times.push(start.elapsed());
        }
        Ok(Self::from(times))
    }

    /// The time that this share of the calls kept below, in microseconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.0.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// How many of these happen in a second.
pub(crate) fn rate(count: usize, start: Instant) -> f64 {
    count as f64 / start.elapsed().as_secs_f64()
}

/// Two rates that were measured in turn, round by round: on a busy machine a figure alone says
/// little, and what was measured minutes apart does not compare. Medians.
pub(crate) struct Beside {
    pub(crate) one: f64,
    pub(crate) other: f64,
    pub(crate) ratio: f64,
}

impl Beside {
    pub(crate) fn of(
        rounds: usize,
        mut measure: impl FnMut(usize) -> Outcome<(f64, f64)>,
    ) -> Outcome<Self> {
        let pairs: Vec<(f64, f64)> = (0..rounds).map(&mut measure).collect::<Outcome<_>>()?;
        Ok(Self {
            one: median(pairs.iter().map(|(one, _)| *one)),
            other: median(pairs.iter().map(|(_, other)| *other)),
            ratio: median(pairs.iter().map(|(one, other)| one / other)),
        })
    }
}

pub(crate) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}

/// Rows of a table, a label and a figure per size.
pub(crate) struct Table {
    sizes: Vec<usize>,
    rows: Vec<(String, Vec<f64>)>,
}

impl Table {
    pub(crate) fn new(sizes: &[usize]) -> Self {
        Self {
            sizes: sizes.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a figure to the row of this label.
    pub(crate) fn add(&mut self, label: &str, figure: f64) {
        match self.rows.iter_mut().find(|(name, _)| name == label) {
            Some((_, figures)) => figures.push(figure),
            None => self.rows.push((label.to_owned(), vec![figure])),
        }
    }

    /// Prints it as Markdown, with the growth from the first size to the last.
    pub(crate) fn print(&self) {
        let sizes: Vec<String> = self.sizes.iter().map(usize::to_string).collect();
        println!("| | {} | last/first |", sizes.join(" | "));
        println!("|---|{}---|", "---|".repeat(sizes.len()));
        for (label, figures) in &self.rows {
            let cells: Vec<String> = figures.iter().map(|figure| short(*figure)).collect();
            let growth = match (figures.first(), figures.last()) {
                (Some(first), Some(last)) if *first != 0.0 => format!("{:.2}", last / first),
                _ => String::new(),
            };
            println!("| {label} | {} | {growth} |", cells.join(" | "));
        }
    }
}

fn short(figure: f64) -> String {
    if figure >= 100.0 {
        format!("{figure:.0}")
    } else if figure < 2.0 {
        format!("{figure:.3}")
    } else {
        format!("{figure:.2}")
    }
}
