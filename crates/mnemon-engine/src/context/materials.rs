//! From what the scopes answer to what a context is chosen from.

use mnemon_core::budget::{Material, Section};
use mnemon_core::{Block, Kind, Origin};
use serde_json::{Map, Value};

use crate::memory::scopes::{
    DialogContext, FoundDocument, FoundRule, FoundSkill, Said, Sop, profile_id,
};
use crate::memory::{MemoryItem, MemoryQuery, Payload, StatePayload};

/// A turn is worth so much of the one after it.
const TURN_FADES: f64 = 0.97;

/// Everything that the scopes said. What has no text has nothing to say.
pub(super) fn of(items: &[MemoryItem], about: &MemoryQuery) -> Vec<Material> {
    let payloads = items.iter().filter_map(MemoryItem::payload);
    let materials = payloads.flat_map(|payload| one(payload, about));
    materials
        .filter(|material| !material.text.trim().is_empty())
        .collect()
}

fn one(payload: &Payload, about: &MemoryQuery) -> Vec<Material> {
    match payload {
        Payload::Profile { profile, .. } => {
            let id = profile_id(&about.user_id);
            let text = lines(profile);
            // Who somebody is goes into every prompt.
            vec![Material {
                pinned: true,
                ..Material::new(Section::Profile, id, text)
            }]
        }
        Payload::Dialog(context) => dialog(context),
        Payload::Procedural { skills, rules } => {
            let mut found = ranked(skills, |skill| skill.score, skill);
            found.extend(rules.iter().map(rule));
            found
        }
        Payload::Semantic { docs } => ranked(docs, |doc| doc.score, document),
        Payload::State(state) => self::state(state, about),
        Payload::Experience { .. } => Vec::new(),
    }
}

/// Members of an object, one on each line.
fn lines(object: &Map<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        value => format!("{name}: {value}"),
    };
    object.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn dialog(context: &DialogContext) -> Vec<Material> {
    let summary = context.summary.as_ref();
    let summary =
        summary.map(|summary| Material::new(Section::Summary, summary.id.clone(), &summary.text));
    let facts = context.facts.iter().map(|fact| Material {
        value: 0.5 + fact.importance / 2.0,
        ..Material::new(Section::Facts, fact.id.clone(), &fact.text)
    });
    let said: Vec<&Said> = context
        .turns
        .iter()
        .flat_map(|turn| &turn.messages)
        .collect();
    let turns = said.iter().rev().scan(1.0, |value, said| {
        let turn = Material {
            value: *value,
            order: said.at.millis(),
            role: Some(said.role),
            ..Material::new(Section::Turns, said.id.clone(), words(said))
        };
        *value *= TURN_FADES;
        Some(turn)
    });
    summary.into_iter().chain(facts).chain(turns).collect()
}

/// The text of a message, and what it did besides talking.
fn words(said: &Said) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !said.content.trim().is_empty() {
        parts.push(said.content.clone());
    }
    parts.extend(said.blocks.iter().filter_map(deed));
    parts.join("\n")
}

fn deed(block: &Block) -> Option<String> {
    match block {
        // What was thought is the model's own business, and text is there already.
        Block::Text { .. } | Block::Thinking { .. } => None,
        Block::Image { .. } => Some("[image]".to_owned()),
        Block::Audio { .. } => Some("[audio]".to_owned()),
        Block::Video { .. } => Some("[video]".to_owned()),
        Block::ToolUse { name, input, .. } => {
            let input = Value::Object(input.clone());
            Some(format!("[calls {name} with {input}]"))
        }
        Block::ToolResult { name, output, .. } => {
            let texts = output.iter().filter_map(|part| match part {
                Block::Text { text } => Some(text.clone()),
                part => deed(part),
            });
            let texts: Vec<String> = texts.collect();
            Some(format!("[{name} answers]\n{}", texts.join("\n")))
        }
    }
}

/// What was found by searching, each worth its part of the best.
fn ranked<T>(
    found: &[T],
    score: impl Fn(&T) -> f64,
    material: impl Fn(&T) -> Material,
) -> Vec<Material> {
    let best = found.iter().map(&score).fold(0.0, f64::max);
    let value = |one: &T| if best > 0.0 { score(one) / best } else { 1.0 };
    let materials = found.iter().map(|one| Material {
        value: value(one),
        ..material(one)
    });
    materials.collect()
}

fn skill(skill: &FoundSkill) -> Material {
    let Sop {
        use_when,
        tool_sops,
        preferences,
        ..
    } = &skill.sop;
    let mut lines = vec![format!("Use when: {use_when}")];
    let steps = tool_sops.iter().enumerate();
    lines.extend(steps.map(|(n, step)| format!("{}. {}: {}", n + 1, step.tool, step.action)));
    lines.extend(skill.instructions.clone());
    if !preferences.trim().is_empty() {
        lines.push(format!("Prefer: {preferences}"));
    }
    Material {
        summary: Some(use_when.clone()),
        external: skill.external.clone(),
        ..Material::new(Section::Skills, skill.id.clone(), lines.join("\n"))
    }
}

/// What failed before is worth as much as the best skill.
fn rule(rule: &FoundRule) -> Material {
    Material::new(Section::Skills, rule.id.clone(), &rule.rule)
}

fn document(doc: &FoundDocument) -> Material {
    let section = match doc.kind {
        Kind::Document | Kind::Chunk => Section::Documents,
        _ => Section::Facts,
    };
    Material {
        summary: doc.summary.clone(),
        order: doc.created.millis(),
        file: (doc.origin == Origin::File || section == Section::Documents).then(|| file_of(doc)),
        external: doc.external.clone(),
        ..Material::new(section, doc.id.clone(), &doc.content)
    }
}

/// The file that it was read from. A heading in it may say anything and is left out.
fn file_of(doc: &FoundDocument) -> String {
    let named = doc.metadata.get("file").and_then(Value::as_str);
    let source = doc.source.as_deref().unwrap_or_default();
    named.unwrap_or(source).to_owned()
}

fn state(state: &StatePayload, about: &MemoryQuery) -> Vec<Material> {
    let place = about.place();
    let held = Material::new(Section::State, place.id("state"), lines(&state.state));
    let tasks = state.tasks.iter().map(|task| {
        let title = task.title.as_deref().unwrap_or(&task.id);
        let ready = state.startable.contains(&task.id);
        let note = if ready { ", can start now" } else { "" };
        format!("{title}: {}{note}", task.status.as_str())
    });
    let tasks = tasks.collect::<Vec<_>>().join("\n");
    let tasks = Material::new(Section::State, place.id("tasks"), tasks);
    vec![held, tasks]
}
