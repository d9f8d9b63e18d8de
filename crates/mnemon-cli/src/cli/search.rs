//! `mnemon search`

use console::style;
use mnemon_core::rank::{Evidence, Parts, Recipe};
use mnemon_core::text::{index_terms, query_terms};
use mnemon_core::{Kind, Record};
use mnemon_engine::Hit;
use std::collections::HashSet;

use super::door::Door;
use super::shared::{Shared, call_with_files};
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::Search;

/// Search all records by words and meaning
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon search what does Ann drink --user ann\n  \
    mnemon search \"deployment decision\" --kind decision --since 30d --explain\n  \
    mnemon search tea --filter '{\"lang\":\"en\",\"rating\":{\"$gte\":3}}' --json\n  \
    mnemon search --recipe recent --limit 5\n\n\
    A score estimates the probability that the hit answers the query: 0.8 means the same for\n\
    every query. If nothing is known, no hit is shown; --min-score 0 shows the nearest.")]
pub(super) struct Args {
    #[command(flatten)]
    search: Shared<Search>,
    /// Show how the score of each hit was computed
    #[arg(long)]
    explain: bool,
    /// Show the whole content of each hit
    #[arg(long)]
    full: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let arguments = args.search.arguments()?;
    let query = arguments.text("query").unwrap_or_default();
    let words = query_words(&query);
    let is_cut = !query.is_empty() && arguments.number("min_score") != Some(0.0);
    let found = call_with_files::<Search>(arguments, door).await?;
    return_json!(door, &found);
    if found.hits.is_empty() {
        return nothing(is_cut, door);
    }
    for (n, hit) in found.hits.iter().enumerate() {
        head(n + 1, hit, found.recipe, door)?;
        content(&hit.record, &words, args.full, door)?;
        if args.explain {
            explain(hit, door)?;
        }
    }
    Ok(())
}

/// Says that nothing is known, and how to see the records whose scores are too low.
pub(super) fn nothing(is_cut: bool, door: &mut Door) -> Result<(), Error> {
    door.out.line(match is_cut {
        true => "nothing known; --min-score 0 shows the nearest records",
        false => "nothing known",
    })
}

/// Rank, score, id, date, the external source, who said it, how it is tagged; below it where it is
/// from.
fn head(rank: usize, hit: &Hit, recipe: Recipe, door: &mut Door) -> Result<(), Error> {
    let record = &hit.record;
    let score = score(hit.score, recipe);
    let mut parts = vec![
        format!("{rank:>2}."),
        score,
        record.id.to_string(),
        text::local(record.created),
    ];
    let external = hit.external.as_deref();
    parts.extend(external.map(|name| format!("from {}", text::one_line(name))));
    let speaker = record
        .metadata
        .get("speaker")
        .and_then(|name| name.as_str());
    parts.extend(speaker.map(text::one_line));
    parts.extend(Some(text::tags(record)).filter(|tags| !tags.is_empty()));
    let line = text::cut(&parts.join("  "), door.out.width);
    // Cutting takes the padding away that lines up the ranks.
    let pad = if rank < 10 { " " } else { "" };
    say!(door, "{pad}{}", style(line).dim())?;
    match record.location() {
        Some(place) => {
            let line = text::cut(&place, door.out.width.saturating_sub(INDENT.len()));
            say!(door, "{INDENT}{}", style(line).dim())
        }
        None => Ok(()),
    }
}

/// The formula counts in percent, with a tie rounded up as its document has it.
fn score(score: f64, recipe: Recipe) -> String {
    if recipe == Recipe::Formula {
        // A tie in decimals is seldom one in binary: 0.1225 lies a hair below.
        let tenths = (score * 1000.0 + 1e-9).round();
        return format!("{:.1} %", tenths / 10.0);
    }
    format!("{score:.2}")
}

const INDENT: &str = "    ";

fn content(
    record: &Record,
    words: &HashSet<String>,
    full: bool,
    door: &mut Door,
) -> Result<(), Error> {
    if full {
        for line in text::clean(&record.content).lines() {
            say!(door, "{INDENT}{}", highlight(line, words))?;
        }
        return Ok(());
    }
    let head = match (&record.summary, record.kind) {
        // The summary of a chunk says where it stands, which is shown above.
        (_, Kind::Chunk) => text::below_headings(&record.content),
        (Some(summary), _) => summary,
        (None, _) => text::first_paragraph(&record.content),
    };
    let line = text::cut(head, door.out.width.saturating_sub(INDENT.len()));
    say!(door, "{INDENT}{}", highlight(&line, words))
}

/// The words of a query that are worth pointing at, as the index knows them.
fn query_words(query: &str) -> HashSet<String> {
    let terms = query_terms(query).into_iter();
    terms
        .filter(|term| !term.stop)
        .map(|term| term.text)
        .collect()
}

/// The line with every word that matches set off, when somebody sees it.
fn highlight(line: &str, words: &HashSet<String>) -> String {
    let mut out = String::with_capacity(line.len());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first));
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        let hit = is_word(first)
            && index_terms(run)
                .iter()
                .any(|term| words.contains(&term.text));
        match hit {
            true => out.push_str(&style(run).bold().to_string()),
            false => out.push_str(run),
        }
        rest = after;
    }
    out
}

/// Columns of a bar that is full: an arm that gave all there was to give.
const BAR: f32 = 30.0;

fn explain(hit: &Hit, door: &mut Door) -> Result<(), Error> {
    let Some(parts) = hit.parts else {
        return say!(door, "{INDENT}this recipe has one score and no parts");
    };
    let matched = text::one_line(&hit.matched.join(", "));
    let words = bar("words", parts.words) + "  " + &matched;
    door.out.line(words.trim_end())?;
    door.out.line(bar("meaning", parts.meaning))?;
    if parts.told > 0.0 {
        door.out.line(bar("days", parts.told))?;
    }
    door.out.line(factors(&parts))?;
    if let Some(reread) = parts.reread {
        door.out.line(bar("reread", reread))?;
    }
    let Evidence {
        coverage, nearness, ..
    } = parts.evidence;
    let coverage = coverage.map(|share| match hit.matched.is_empty() && parts.told > 0.0 {
        true => "the days of the query".to_owned(),
        false => format!("{:.0} % of the query's words", share * 100.0),
    });
    let nearness = nearness.map(|over| format!("meaning {over:+.1} deviations from unrelated"));
    let evidence: Vec<String> = coverage.into_iter().chain(nearness).collect();
    say!(door, "{INDENT}score: {}", evidence.join(", "))
}

fn bar(name: &str, share: f32) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR).round() as usize;
    let empty = BAR as usize - full.min(BAR as usize);
    format!(
        "{INDENT}{name:<8}{}{} {share:.2}",
        "█".repeat(full),
        "░".repeat(empty)
    )
}

fn factors(parts: &Parts) -> String {
    let factors = [
        ("speaker", parts.speaker),
        ("date", parts.date),
        ("answer", parts.answer),
        ("asking", parts.asking),
        ("recency", parts.recency),
        ("importance", parts.importance),
    ];
    let factors = factors.map(|(name, factor)| format!("{name} {factor:.2}"));
    let (sum, order) = (parts.sum(), parts.score());
    format!(
        "{INDENT}order: {sum:.2} × {} = {order:.2}",
        factors.join(" × ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_of_the_formula_are_rounded_up() {
        let cases = [
            (0.1225, "12.3 %"),
            (0.1224, "12.2 %"),
            (1.0, "100.0 %"),
            (0.0005, "0.1 %"),
        ];
        for (value, text) in cases {
            assert_eq!(score(value, Recipe::Formula), text);
        }
        assert_eq!(score(0.5, Recipe::Hybrid), "0.50");
    }

    #[test]
    fn bars_have_one_length() {
        for share in [0.0, 0.37, 0.5, 1.0, 7.0, f32::NAN] {
            let drawn = bar("words", share);
            let blocks = drawn.chars().filter(|c| "█░".contains(*c)).count();
            assert_eq!(blocks, 30, "{drawn}");
        }
    }
}
