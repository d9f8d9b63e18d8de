//! A summary without a model: the statements that a reader would miss, in their own order.
//!
//! Sentences become [`Statement`]s; `relations` joins decisions with their owners and questions
//! with their answers, and drops what was answered, taken back or fixed. What is left is chosen by
//! its score as long as there is room. The same messages always give the same summary.

mod cues;
mod owners;
mod readings;
mod relations;
mod sentences;
mod statement;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cues::{content_words, details, is_failure};
pub use readings::Readings;
use relations::relate;
use sentences::{cut, is_fragment};
use serde_json::Value;
use statement::{Kind, Statement, speaker, statements};

use super::predicates::{chars, output_text};
use super::prompts::PLAN_TOOLS;
use crate::model::{Block, Message};

/// An outcome of a tool is cut after so many characters.
const OUTCOME: usize = 200;
/// Shown of what a tool was given.
const INPUT: usize = 60;
/// Below this score a statement is left out beside better ones, however much room there is.
const WORTH: f64 = 1.0;
/// Words that name what a range of messages is about.
const TOPICS: usize = 6;

/// What these messages say, in at most `chars` characters but for one short line.
pub fn extract(messages: &[Message], chars: usize) -> String {
    Extract::of(messages, &[]).text(chars)
}

/// What one message says by itself. A message is read once; its statements are related to those of
/// the others whenever some of them are summarised.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    said: Vec<Statement>,
    /// Calls of tools: their ids, and how an outcome names them. Calls that only keep a plan have
    /// no outcome.
    calls: Vec<(String, Option<String>)>,
    /// What tools gave back, by the ids of the calls.
    results: Vec<(String, Statement)>,
    /// The beginning of the text, for a summary of nothing but code or data.
    opening: Option<Statement>,
    chars: usize,
}

impl Reading {
    /// Reads the message.
    pub fn of(message: &Message) -> Self {
        let text = message.text_content();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut reading = Self {
            said: statements(message),
            opening: (!text.is_empty()).then(|| Statement {
                who: speaker(message),
                text: cut(&text, OUTCOME),
                score: 0.5,
                ..Statement::default()
            }),
            chars: chars(message),
            ..Self::default()
        };
        for block in &message.content {
            match block {
                Block::ToolUse {
                    id, name, input, ..
                } => {
                    let mut given = input.values().filter_map(Value::as_str);
                    let given = given.find(|text| !text.is_empty());
                    let given = given.map(|text| format!(" {}", cut(text, INPUT)));
                    let call = format!("{name}{}", given.unwrap_or_default());
                    let call = (!PLAN_TOOLS.contains(&name.as_str())).then_some(call);
                    reading.calls.push((id.clone(), call));
                }
                Block::ToolResult {
                    id, name, output, ..
                } => {
                    let result = outcome(name, &output_text(output));
                    reading.results.extend(result.map(|one| (id.clone(), one)));
                }
                _ => {}
            }
        }
        reading
    }

    /// Characters of all that can be read in the message.
    pub fn chars(&self) -> usize {
        self.chars
    }
}

/// The statements of some messages, from which summaries of any size are made.
#[derive(Debug, Clone)]
pub struct Extract {
    said: Vec<Statement>,
}

impl Extract {
    /// Reads the messages, and those that follow them, which may answer or take back what is said
    /// in them.
    pub fn of(messages: &[Message], following: &[Message]) -> Self {
        let read = |messages: &[Message]| -> Vec<Arc<Reading>> {
            let readings = messages.iter().map(Reading::of);
            readings.map(Arc::new).collect()
        };
        Self::from_readings(&read(messages), &read(following))
    }

    /// The same, of messages that were read before.
    pub fn from_readings(messages: &[Arc<Reading>], following: &[Arc<Reading>]) -> Self {
        Self {
            said: related(messages, following),
        }
    }

    /// What is said, in at most `chars` characters but for one short line.
    pub fn text(&self, chars: usize) -> String {
        let lines = chosen(&self.said, chars);
        match lines.is_empty() {
            true => "(no text)".to_owned(),
            false => lines.join("\n"),
        }
    }

    /// A few words for what the messages are about.
    pub fn topics(&self) -> Vec<String> {
        let matters = self.said.iter().filter(|s| s.score >= 7.0 && !s.dropped);
        let mut texts: Vec<&str> = matters.map(|s| s.text.as_str()).collect();
        if texts.is_empty() {
            texts = self.said.iter().map(|s| s.text.as_str()).collect();
        }
        topics(&texts)
    }
}

/// The words that come up most: what a range of messages is about.
fn topics(texts: &[&str]) -> Vec<String> {
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for (at, text) in texts.iter().enumerate() {
        let words = content_words(text).into_iter();
        for word in words.filter(|word| word.chars().count() > 2) {
            counts.entry(word).or_insert((0, at)).0 += 1;
        }
    }
    let mut ranked: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    ranked.sort_by(|(a, (many, first)), (b, (more, then))| {
        more.cmp(many).then(first.cmp(then)).then(a.cmp(b))
    });
    ranked.truncate(TOPICS);
    ranked.into_iter().map(|(word, _)| word).collect()
}

/// The statements of the messages, with what was answered, taken back or fixed marked as dropped.
fn related(messages: &[Arc<Reading>], following: &[Arc<Reading>]) -> Vec<Statement> {
    let mut said: Vec<Statement> = Vec::new();
    let mut calls: HashMap<&str, Option<&str>> = HashMap::new();
    for (at, read) in messages.iter().chain(following).enumerate() {
        let placed = |statement: &Statement| Statement {
            at,
            ..statement.clone()
        };
        said.extend(read.said.iter().map(placed));
        let named = read.calls.iter();
        calls.extend(named.map(|(id, call)| (id.as_str(), call.as_deref())));
        for (id, result) in &read.results {
            match calls.get(id.as_str()) {
                Some(None) => {}
                Some(Some(call)) => said.push(Statement {
                    who: (*call).to_owned(),
                    ..placed(result)
                }),
                None => said.push(placed(result)),
            }
        }
    }
    let first_user = said
        .iter_mut()
        .find(|s| s.who == "user" && s.kind != Kind::SmallTalk);
    if let Some(request) = first_user {
        request.score += 3.0;
    }
    relate(&mut said);
    // A correction in a later message is repeated here if only these messages name its owner.
    said.retain(|statement| statement.at < messages.len() || statement.inherits);
    if !said.iter().any(|statement| statement.at < messages.len()) {
        let texts = messages.iter().filter_map(|read| read.opening.clone());
        said.extend(texts);
    }
    said
}

/// The best lines that fit together, in the order in which they were said. If every statement
/// was dropped, the dropped ones are used, superseded ones last.
fn chosen(said: &[Statement], chars: usize) -> Vec<String> {
    let shown: [fn(&Statement) -> bool; 3] = [|s| !s.dropped, |s| !s.superseded, |_| true];
    let lines = shown.iter().map(|shown| best(said, shown, chars));
    let mut lines = lines.skip_while(Vec::is_empty);
    lines.next().unwrap_or_default()
}

fn best(said: &[Statement], shown: &fn(&Statement) -> bool, chars: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut ranked: Vec<(usize, f64, String)> = Vec::new();
    for (at, statement) in said.iter().enumerate().filter(|(_, s)| shown(s)) {
        if seen.insert(statement.text.to_lowercase()) {
            ranked.push((at, statement.score, statement.line()));
        }
    }
    // Of equal ones the newest is kept.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    // Where nothing is worth showing, everything is shown that is more than small talk.
    let worthy = ranked.first().is_some_and(|(_, score, _)| *score >= WORTH);
    let least = if worthy { WORTH } else { f64::MIN_POSITIVE };
    let mut left = chars;
    let mut taken: Vec<(usize, String)> = Vec::new();
    for (at, score, line) in ranked {
        if score < least && !taken.is_empty() {
            break;
        }
        let size = line.chars().count() + 1;
        if size <= left {
            left -= size;
            taken.push((at, line));
        } else if taken.is_empty() {
            // One line at least, however little room there is.
            taken.push((at, cut(&line, chars.max(20))));
            break;
        }
    }
    taken.sort_by_key(|(at, _)| *at);
    taken.into_iter().map(|(_, line)| line).collect()
}

/// What came of a call.
fn outcome(tool: &str, output: &str) -> Option<Statement> {
    let text = telling_line(output)?;
    let failed = is_failure(&text);
    Some(Statement {
        who: tool.to_owned(),
        kind: Kind::Outcome,
        score: details(&text).min(1.5) + if failed { 4.0 } else { 0.5 },
        text,
        ..Statement::default()
    })
}

/// The line of an output that says most: the first failure, else its first line of prose and its
/// last one. `None` for code and data.
fn telling_line(output: &str) -> Option<String> {
    let lines = output.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !is_fragment(line))
        .collect();
    if let Some(failure) = lines.iter().find(|line| is_failure(line)) {
        return Some(cut(failure, OUTCOME));
    }
    match lines.as_slice() {
        [] => None,
        [only] => Some(cut(only, OUTCOME)),
        [first, .., last] => Some(format!(
            "{} … {}",
            cut(first, OUTCOME / 2),
            cut(last, OUTCOME / 2)
        )),
    }
}
