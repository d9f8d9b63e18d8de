//! How much of what was planted can still be read.

use std::fmt;

use super::{Decision, Meeting, Question};

/// Counts over one or several talks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    pub decisions: usize,
    /// Decisions that can be read with their owners.
    pub kept: usize,
    /// Decisions that can be read, with or without their owners.
    pub kept_bare: usize,
    pub replaced: usize,
    /// Replaced statements that a summary still shows.
    pub stale: usize,
    pub answered: usize,
    /// Answered questions that a summary shows without their answer.
    pub shown_open: usize,
    pub open: usize,
    pub kept_open: usize,
    pub facts: usize,
    pub kept_facts: usize,
    pub fixed: usize,
    /// Failures that a summary shows without their fix.
    pub shown_broken: usize,
    /// Lines of small talk in summaries.
    pub small_talk: usize,
}

impl std::ops::AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.decisions += other.decisions;
        self.kept += other.kept;
        self.kept_bare += other.kept_bare;
        self.replaced += other.replaced;
        self.stale += other.stale;
        self.answered += other.answered;
        self.shown_open += other.shown_open;
        self.open += other.open;
        self.kept_open += other.kept_open;
        self.facts += other.facts;
        self.kept_facts += other.kept_facts;
        self.fixed += other.fixed;
        self.shown_broken += other.shown_broken;
        self.small_talk += other.small_talk;
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |a: usize, of: usize| {
            format!("{a} of {of} ({:.1} %)", a as f64 * 100.0 / of.max(1) as f64)
        };
        write!(
            f,
            "decisions with owners {}, without {}; stale {}; answered shown as open {}; \
             open questions {}; facts {}; fixed shown as broken {}; small talk {}",
            part(self.kept, self.decisions),
            part(self.kept_bare, self.decisions),
            part(self.stale, self.replaced),
            part(self.shown_open, self.answered),
            part(self.kept_open, self.open),
            part(self.kept_facts, self.facts),
            part(self.shown_broken, self.fixed),
            self.small_talk,
        )
    }
}

/// What of a meeting can be read: `hot` are messages as they were said, `folded` the texts of
/// summaries and pages.
#[must_use]
pub fn score(meeting: &Meeting, hot: &[String], folded: &[String]) -> Score {
    let folded: Vec<String> = lines(folded);
    let all: Vec<String> = folded.iter().cloned().chain(lines(hot)).collect();
    let mut score = Score::default();
    for decision in &meeting.decisions {
        score.decisions += 1;
        score.kept += usize::from(is_kept(decision, &all, true));
        score.kept_bare += usize::from(is_kept(decision, &all, false));
        if let Some(old) = &decision.replaced {
            score.replaced += 1;
            score.stale += usize::from(is_stale(decision, old, &folded));
        }
    }
    for question in &meeting.questions {
        let has = |lines: &[String]| lines.iter().any(|line| line.contains(&low(&question.text)));
        match question.answers.is_empty() {
            true => {
                score.open += 1;
                score.kept_open += usize::from(has(&all));
            }
            false => {
                score.answered += 1;
                score.shown_open += usize::from(is_shown_open(question, &folded));
            }
        }
    }
    for fact in &meeting.facts {
        score.facts += 1;
        score.kept_facts += usize::from(all.iter().any(|line| line.contains(&low(fact))));
    }
    for (failure, fix) in &meeting.fixed {
        score.fixed += 1;
        let bad = |line: &String| {
            line.contains(&low(failure)) && !line.contains(&low(fix)) && !line.contains("fixed")
        };
        score.shown_broken += usize::from(folded.iter().any(bad));
    }
    let small = meeting.small_talk.iter().map(|text| low(text));
    let small: std::collections::BTreeSet<String> = small.collect();
    let said = |line: &&String| {
        small
            .iter()
            .any(|talk| line.ends_with(&format!(": {talk}")))
    };
    score.small_talk = folded.iter().filter(said).count();
    score
}

fn low(text: &str) -> String {
    text.to_lowercase()
}

fn lines(texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .flat_map(|text| text.lines())
        .map(low)
        .collect()
}

fn is_kept(decision: &Decision, lines: &[String], with_owner: bool) -> bool {
    let needed = decision.subject.iter().chain([&decision.choice]);
    let mut needed: Vec<String> = needed.map(|word| low(word)).collect();
    if with_owner {
        needed.extend(decision.owner.as_deref().map(low));
    }
    // The owner may stand in the message right after the decision, and the subject in the question
    // right before it.
    let near = |lines: &[String]| {
        let text = lines.join("\n");
        needed.iter().all(|word| text.contains(word.as_str()))
    };
    lines.windows(3.min(lines.len().max(1))).any(near)
}

/// A line that says the old choice, and not the new one, and is no question.
fn is_stale(decision: &Decision, old: &str, folded: &[String]) -> bool {
    let needed = decision.subject.iter().map(|word| low(word));
    let needed: Vec<String> = needed.chain([low(old)]).collect();
    folded.iter().any(|line| {
        needed.iter().all(|word| line.contains(word.as_str()))
            && !line.contains(&low(&decision.choice))
    })
}

fn is_shown_open(question: &Question, folded: &[String]) -> bool {
    folded.iter().any(|line| {
        line.contains(&low(&question.text))
            && !question
                .answers
                .iter()
                .any(|answer| line.contains(&low(answer)))
    })
}
