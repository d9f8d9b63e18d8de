//! A summary without a model: the sentences that a reader would miss most, in their own order.

use std::collections::{HashMap, HashSet};

use super::cues::{is_failure, worth};
use super::predicates::output_text;
use super::tokens::flat_json;
use crate::model::{Block, Message, Role};

/// A sentence is cut after so many characters.
const LINE: usize = 280;
/// Sentences that are looked at in one message; of more, the first and the last ones.
const SENTENCES: usize = 400;
/// Shown of what a tool was given.
const INPUT: usize = 60;

/// Something that can be said in a line.
struct Unit {
    /// Who says it, with the colon; empty if the line says it itself.
    who: String,
    text: String,
    score: f64,
}

impl Unit {
    fn line(&self) -> String {
        format!("- {}{}", self.who, self.text)
    }
}

/// What these messages say, in about `chars` characters and never in more, but for one short line.
/// The same messages always give the same summary.
#[must_use]
pub fn extract(messages: &[Message], chars: usize) -> String {
    let mut units = Vec::new();
    let mut calls: HashMap<&str, String> = HashMap::new();
    let last_user = messages.iter().rposition(|m| m.role == Role::User);
    for (at, message) in messages.iter().enumerate() {
        let from = units.len();
        said(message, &mut units);
        for block in &message.content {
            tools(block, &mut calls, &mut units);
        }
        if Some(at) == last_user {
            for unit in units.iter_mut().skip(from) {
                unit.score += 1.0;
            }
        }
    }
    let lines = chosen(units, chars);
    if lines.is_empty() {
        return "(nothing was said in words)".to_owned();
    }
    lines.join("\n")
}

/// The best lines that fit together, in the order in which they were said.
fn chosen(units: Vec<Unit>, chars: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut ranked: Vec<(usize, f64, String)> = Vec::new();
    for (at, unit) in units.into_iter().enumerate() {
        if seen.insert(unit.text.to_lowercase()) {
            ranked.push((at, unit.score, unit.line()));
        }
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut left = chars;
    let mut taken: Vec<(usize, String)> = Vec::new();
    for (at, _, line) in ranked {
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

/// The sentences of a message's text.
fn said(message: &Message, units: &mut Vec<Unit>) {
    let text = message.text_content();
    let all = sentences(&text);
    let (count, half) = (all.len(), SENTENCES / 2);
    let who = match (&message.name, message.role) {
        (Some(name), Role::User) => format!("{}: ", cut(name, 40)),
        (_, Role::User) => "user: ".to_owned(),
        (_, Role::Assistant) => "assistant: ".to_owned(),
        (_, Role::System) => "system: ".to_owned(),
        (_, Role::Tool) => "tool: ".to_owned(),
    };
    let speaker = match message.role {
        Role::User => 1.0,
        Role::Assistant | Role::System => 0.4,
        Role::Tool => 0.0,
    };
    for (at, sentence) in all.into_iter().enumerate() {
        if at >= half && at + half < count {
            continue;
        }
        // A line of an earlier summary says itself who said it, and was found worth keeping.
        let (who, text, kept) = match sentence.strip_prefix("- ") {
            Some(line) => (String::new(), line, 1.0),
            None => (who.clone(), sentence, 0.0),
        };
        let edge = if at == 0 || at + 1 == count { 0.5 } else { 0.0 };
        let words = text.split_whitespace().count();
        let thin = if words < 3 && text.chars().count() < 12 {
            -1.5
        } else {
            0.0
        };
        units.push(Unit {
            score: worth(text) + speaker + edge + kept + thin,
            text: cut(text, LINE),
            who,
        });
    }
}

/// What tools were asked, and what came of it.
fn tools<'a>(block: &'a Block, calls: &mut HashMap<&'a str, String>, units: &mut Vec<Unit>) {
    match block {
        Block::ToolUse {
            id, name, input, ..
        } => {
            let input = match input.is_empty() {
                true => String::new(),
                false => cut(&flat_json(input), INPUT),
            };
            calls.insert(id, format!("{name}({input})"));
        }
        Block::ToolResult {
            id, name, output, ..
        } => {
            let call = calls.get(id.as_str()).cloned();
            let said = output_text(output);
            let outcome = outcome(&said);
            let failed = is_failure(&outcome);
            units.push(Unit {
                who: format!("{} → ", call.unwrap_or_else(|| format!("{name}()"))),
                score: worth(&outcome).min(3.0) + if failed { 2.0 } else { 1.0 },
                text: outcome,
            });
        }
        _ => {}
    }
}

/// The line of an output that says most: the first failure, else its first line and its last.
fn outcome(output: &str) -> String {
    let mut lines = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let Some(first) = lines.next() else {
        return "no output".to_owned();
    };
    if is_failure(first) {
        return cut(first, LINE);
    }
    let mut last = first;
    for line in lines {
        if is_failure(line) {
            return cut(line, LINE);
        }
        last = line;
    }
    match last == first {
        true => cut(first, LINE),
        false => format!("{} … {}", cut(first, LINE / 2), cut(last, LINE / 2)),
    }
}

/// Lines and sentences. Tags of earlier replacements and empty lines are left out.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = without_tag(line).trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with("- ") {
            found.push(line);
            continue;
        }
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let end = at + c.len_utf8();
            let next = chars.peek().map(|(_, next)| *next);
            let stops = match c {
                '。' | '！' | '？' => !matches!(next, Some('」' | '』' | '）')),
                '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
                _ => false,
            };
            if stops {
                found.extend(line.get(start..end).map(str::trim));
                start = end;
            }
        }
        found.extend(line.get(start..).map(str::trim));
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

fn without_tag(line: &str) -> &str {
    match line.find("<!-- CONTEXT_OFFLOAD") {
        Some(at) => line.get(..at).unwrap_or_default(),
        None => line,
    }
}

/// The beginning of the text, on one line.
fn cut(text: &str, chars: usize) -> String {
    let one_line = text.replace(['\n', '\r', '\t'], " ");
    if one_line.chars().count() <= chars {
        return one_line;
    }
    let head: String = one_line.chars().take(chars.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}
