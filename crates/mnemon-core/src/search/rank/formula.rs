//! The weighted formula of the notes document, exactly.

use crate::model::{Record, Time, note};

/// The tokens of a query: lower case; what is neither an ASCII letter or digit, `_`, kana nor a
/// common Chinese character is a gap; tokens of one character do not count.
pub fn formula_tokens(query: &str) -> Vec<String> {
    let kept = |c: char| {
        c.is_ascii_alphanumeric()
            || c == '_'
            || matches!(c, '\u{3040}'..='\u{309F}' | '\u{30A0}'..='\u{30FF}' | '\u{4E00}'..='\u{9FAF}')
    };
    query
        .to_lowercase()
        .split(|c| !kept(c))
        // The original counts UTF-16 units; all that is kept here is one unit each.
        .filter(|token| token.chars().count() > 1)
        .map(str::to_owned)
        .collect()
}

/// How well the record matches the tokens: substrings in summary, content and tags, a bonus for
/// the last hundred hours, and a little for importance; at most 1, and 0 without tokens.
pub fn formula(record: &Record, tokens: &[String], now: Time) -> f64 {
    if tokens.is_empty() {
        return 0.0;
    }
    let content = record.content.to_lowercase();
    let summary = match &record.summary {
        Some(summary) => summary.to_lowercase(),
        None => note::summary(&record.content, note::SUMMARY_CHARS).to_lowercase(),
    };
    let tags: Vec<String> = record.tags.iter().map(|tag| tag.to_lowercase()).collect();
    let share = |matches: &dyn Fn(&str) -> bool| {
        let hits = tokens.iter().filter(|token| matches(token)).count();
        hits as f64 / tokens.len() as f64
    };
    let hours = (now.millis() - record.created.millis()) as f64 / 3_600_000.0;
    let recency = (0.1 - 0.001 * hours).max(0.0);
    let score = 0.4 * share(&|token| summary.contains(token))
        + 0.25 * share(&|token| content.contains(token))
        + 0.2 * share(&|token| tags.iter().any(|tag| tag.contains(token)))
        + recency
        + record.importance * 0.05;
    score.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ctx, Tenant};

    #[test]
    fn tokens_as_the_document_makes_them() {
        let cases: &[(&str, &[&str])] = &[
            ("API response", &["api", "response"]),
            ("foo-bar_baz.qux v2", &["foo", "bar_baz", "qux", "v2"]),
            ("認証トークンの設定", &["認証トークンの設定"]),
            ("C++ & Go!", &["go"]),
            ("café", &["caf"]),
            ("quyết định kiến trúc", &["quy", "nh", "ki", "tr"]),
        ];
        for (query, tokens) in cases {
            assert_eq!(formula_tokens(query), *tokens, "{query}");
        }
    }

    #[test]
    fn the_score_is_exact() {
        let now = Time::from_millis(1_700_000_000_000).unwrap();
        let ctx = Ctx::new(Tenant::default(), "test", now);
        let mut record = Record::note("n".parse().unwrap(), &ctx, "The API answers slowly");
        record.tags = vec!["Backend".into()];
        record.importance = 0.5;
        let tokens = formula_tokens("api backend missing");
        // summary 1/3, content 1/3, tags 1/3, fresh, importance a half
        let expected = 0.4 / 3.0 + 0.25 / 3.0 + 0.2 / 3.0 + 0.1 + 0.025;
        assert!((formula(&record, &tokens, now) - expected).abs() < 1e-12);
        let later = now.plus_millis(100 * 3_600_000);
        assert!((formula(&record, &tokens, later) - (expected - 0.1)).abs() < 1e-12);
        assert_eq!(formula(&record, &[], now), 0.0);
    }
}
