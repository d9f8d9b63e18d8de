//! From materials to a context: choose, write, count, and shrink until it fits.

use serde::{Deserialize, Serialize};

use super::choose::{Chooser, Fate};
use super::render::{self, ChatMessage};
use super::{Budget, Counter, Family, Form, Material, Section};
use crate::error::Invalid;
use crate::model::{Id, limits};

/// Characters of what is said about a material that was left out.
const SUMMARY_CHARS: usize = 100;

/// What goes into the prompt, and what does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compiled {
    pub form: Form,
    /// What is sent: for [`Form::Messages`] the JSON of `messages`.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<ChatMessage>>,
    /// The tokens of what is sent, counted after it was written. Messages include what a chat
    /// model adds to each; no message at all is nothing.
    pub tokens: usize,
    pub budget: usize,
    /// How they were counted.
    pub family: Family,
    /// The first so many bytes of `text` hold only what seldom changes: they are the same in the
    /// next call, unless a profile, a summary or a skill is another.
    pub prefix_bytes: usize,
    /// What is in it, in the order in which it stands there.
    pub taken: Vec<Taken>,
    /// What is not, the most valuable first.
    pub left_out: Vec<LeftOut>,
    pub sections: Vec<SectionReport>,
}

/// A material that is in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub id: Id,
    pub section: Section,
    pub tokens: usize,
    /// Whether only its beginning is there.
    pub cut: bool,
}

/// A material that is not in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub id: Id,
    pub section: Section,
    pub summary: String,
    /// What it would have taken.
    pub tokens: usize,
    #[serde(flatten)]
    pub why: Why,
}

/// Why a material was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Why {
    /// The budget was used by what is worth more.
    NoRoom,
    /// Its section takes no more.
    Ceiling,
    /// A newer turn did not fit, and a conversation has no holes.
    OlderTurn,
    /// Another one that is in the context says it.
    Duplicate { of: Id },
    /// It has no text.
    Empty,
}

/// How one section fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionReport {
    pub section: Section,
    pub taken: usize,
    pub left_out: usize,
    /// Of its items and its heading, each counted by itself.
    pub tokens: usize,
    pub floor: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<usize>,
}

/// The best context of these materials that has no more tokens than the budget.
///
/// What is returned was counted as a whole, as it is sent. If nothing fits, it is empty.
pub fn compile(
    materials: &[Material],
    budget: &Budget,
    form: Form,
    counter: &dyn Counter,
) -> Result<Compiled, Invalid> {
    budget.check()?;
    if materials.len() > limits::CONTEXT_MATERIALS {
        let (count, most) = (materials.len(), limits::CONTEXT_MATERIALS);
        return Err(Invalid::new(
            "materials",
            format!("there are {count}, at most {most} are allowed; narrow the search"),
        ));
    }
    let mut chooser = Chooser::new(materials, budget, form, counter);
    chooser.run();
    let order = reading_order(materials);
    let mut tail = tail(&chooser, materials, budget, form);
    // Tokens of parts do not add up to those of the whole, so the whole is counted, and what it
    // has too many is taken off. The first count nearly always ends it.
    let (output, tokens) = loop {
        let output = write(&chooser, materials, &order, &tail, form);
        let tokens = render::measure(&output.text, output.messages.as_deref(), counter);
        if tokens <= budget.tokens {
            break (output, tokens);
        }
        if !tail.is_empty() {
            tail.clear();
        } else if !chooser.shrink(tokens - budget.tokens) {
            break (Output::nothing(form), 0);
        }
    };
    Ok(Compiled {
        form,
        text: output.text,
        messages: output.messages,
        tokens,
        budget: budget.tokens,
        family: counter.family(),
        prefix_bytes: output.prefix_bytes,
        taken: taken(&chooser, materials, &order),
        left_out: left_out(&chooser, materials),
        sections: sections(&chooser, materials, budget),
    })
}

/// By section, then by their place in it.
fn reading_order(materials: &[Material]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..materials.len()).collect();
    order.sort_by_key(|at| {
        let material = materials.get(*at);
        (material.map(|m| (m.section, m.order, m.id.as_str())), *at)
    });
    order
}

struct Output {
    text: String,
    messages: Option<Vec<ChatMessage>>,
    prefix_bytes: usize,
}

impl Output {
    fn nothing(form: Form) -> Self {
        match form {
            Form::Messages => Self {
                text: render::json(&[]),
                messages: Some(Vec::new()),
                prefix_bytes: 0,
            },
            _ => Self {
                text: String::new(),
                messages: None,
                prefix_bytes: 0,
            },
        }
    }
}

/// Everything that was taken, in reading order.
fn chosen<'a>(
    chooser: &'a Chooser<'_>,
    materials: &'a [Material],
    order: &'a [usize],
) -> impl Iterator<Item = (&'a Material, usize, Option<&'a str>)> {
    order.iter().filter_map(|at| {
        let material = materials.get(*at)?;
        match chooser.fates.get(*at)? {
            Fate::Taken(tokens, cut) => Some((material, *tokens, cut.as_deref())),
            _ => None,
        }
    })
}

fn write(
    chooser: &Chooser<'_>,
    materials: &[Material],
    order: &[usize],
    tail: &[String],
    form: Form,
) -> Output {
    let items: Vec<Item<'_>> = chosen(chooser, materials, order)
        .map(|(material, _, cut)| (material, cut))
        .collect();
    if items.is_empty() && tail.is_empty() {
        return Output::nothing(form);
    }
    match form {
        Form::Messages => write_messages(&items, tail),
        _ => write_text(&items, tail, form),
    }
}

/// A material, and its beginning if it was cut.
type Item<'a> = (&'a Material, Option<&'a str>);

fn write_text(items: &[Item<'_>], tail: &[String], form: Form) -> Output {
    let (open, close) = render::frame(form);
    let stable = items.partition_point(|(material, _)| material.section.is_stable());
    let (first, second) = items.split_at(stable);
    let mut text = open;
    write_sections(&mut text, first, form);
    let prefix_bytes = text.len();
    write_sections(&mut text, second, form);
    write_tail(&mut text, tail, form);
    text.push_str(&close);
    Output {
        text,
        messages: None,
        prefix_bytes,
    }
}

fn write_sections(text: &mut String, items: &[Item<'_>], form: Form) {
    for group in items.chunk_by(|(a, _), (b, _)| a.section == b.section) {
        let Some((first, _)) = group.first() else {
            continue;
        };
        let (open, close) = render::heading(form, first.section);
        text.push_str(&open);
        for (material, cut) in group {
            let content = cut.unwrap_or(&material.text);
            text.push_str(&render::item(form, material, content, cut.is_some()));
        }
        text.push_str(&close);
    }
}

fn write_tail(text: &mut String, tail: &[String], form: Form) {
    if tail.is_empty() {
        return;
    }
    let (open, close) = render::tail_heading(form);
    text.push_str(&open);
    text.extend(tail.iter().map(String::as_str));
    text.push_str(&close);
}

/// What seldom changes is the system's message, then come the turns, then what was looked up for
/// this question: in the role of the user, since it may say anything.
fn write_messages(items: &[Item<'_>], tail: &[String]) -> Output {
    let form = Form::Messages;
    let stable = items.partition_point(|(material, _)| material.section.is_stable());
    let (first, rest) = items.split_at(stable);
    let turns = rest.partition_point(|(material, _)| material.section == Section::Turns);
    let (turns, last) = rest.split_at(turns);
    let (open, close) = render::frame(form);
    let message = |role: &str, items: &[Item<'_>], tail: &[String]| {
        let mut content = open.clone();
        write_sections(&mut content, items, form);
        write_tail(&mut content, tail, form);
        content.push_str(&close);
        ChatMessage {
            role: role.to_owned(),
            content,
        }
    };
    let mut messages = Vec::new();
    if !first.is_empty() {
        messages.push(message("system", first, &[]));
    }
    // Without the bracket that closes the list.
    let prefix_bytes = render::json(&messages).len() - 1;
    messages.extend(turns.iter().map(|(material, cut)| {
        render::turn_message(material, cut.unwrap_or(&material.text), cut.is_some())
    }));
    if !last.is_empty() || !tail.is_empty() {
        messages.push(message("user", last, tail));
    }
    Output {
        text: render::json(&messages),
        messages: Some(messages),
        prefix_bytes,
    }
}

/// Lines about what was left out, as many as there is room for.
fn tail(chooser: &Chooser<'_>, materials: &[Material], budget: &Budget, form: Form) -> Vec<String> {
    if !budget.also_known {
        return Vec::new();
    }
    let Some(mut left) = chooser.left().checked_sub(chooser.tail_opening()) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let missed = missing(chooser, materials);
    let missed = missed
        .iter()
        .filter(|(_, _, why)| !matches!(why, Why::Duplicate { .. } | Why::Empty));
    for (_, material, _) in missed.take(limits::CONTEXT_ALSO_KNOWN) {
        let line = render::tail_line(form, &material.id, &summary(material));
        let Some(rest) = left.checked_sub(chooser.tail_cost(&line)) else {
            continue;
        };
        left = rest;
        lines.push(line);
    }
    lines
}

/// What was left out, the most valuable first.
fn missing<'a>(
    chooser: &'a Chooser<'_>,
    materials: &'a [Material],
) -> Vec<(usize, &'a Material, &'a Why)> {
    let all = materials.iter().zip(&chooser.fates).enumerate();
    let mut missing: Vec<(usize, &Material, &Why)> = all
        .filter_map(|(at, (material, fate))| match fate {
            Fate::Left(why) => Some((at, material, why)),
            Fate::Open => Some((at, material, &Why::NoRoom)),
            Fate::Taken(..) => None,
        })
        .collect();
    missing.sort_by(|(_, a, _), (_, b, _)| {
        let value = b.value.total_cmp(&a.value);
        value.then_with(|| (a.section, a.order, &a.id).cmp(&(b.section, b.order, &b.id)))
    });
    missing
}

/// What to say of a material that is not there, on one short line.
fn summary(material: &Material) -> String {
    let text = material.summary.as_deref().unwrap_or(&material.text);
    let head: String = text.chars().take(SUMMARY_CHARS * 4).collect();
    let head = render::plain(&head);
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUMMARY_CHARS {
        return line;
    }
    let short: String = line.chars().take(SUMMARY_CHARS).collect();
    format!("{}…", short.trim_end())
}

fn taken(chooser: &Chooser<'_>, materials: &[Material], order: &[usize]) -> Vec<Taken> {
    chosen(chooser, materials, order)
        .map(|(material, tokens, cut)| Taken {
            id: material.id.clone(),
            section: material.section,
            tokens,
            cut: cut.is_some(),
        })
        .collect()
}

fn left_out(chooser: &Chooser<'_>, materials: &[Material]) -> Vec<LeftOut> {
    let missing = missing(chooser, materials).into_iter();
    missing
        .map(|(at, material, why)| LeftOut {
            id: material.id.clone(),
            section: material.section,
            summary: summary(material),
            tokens: chooser.cost_of(at),
            why: why.clone(),
        })
        .collect()
}

fn sections(chooser: &Chooser<'_>, materials: &[Material], budget: &Budget) -> Vec<SectionReport> {
    let report = |section: Section| {
        let fates = materials.iter().zip(&chooser.fates);
        let own = fates.filter(|(material, _)| material.section == section);
        let (taken, left): (Vec<_>, Vec<_>) =
            own.partition(|(_, fate)| matches!(fate, Fate::Taken(..)));
        let share = budget.share(section);
        SectionReport {
            section,
            taken: taken.len(),
            left_out: left.len(),
            tokens: if taken.is_empty() {
                0
            } else {
                chooser.tokens_of(section)
            },
            floor: share.floor,
            ceiling: share.ceiling,
        }
    };
    Section::ALL.iter().copied().map(report).collect()
}
