//! Tools for what was tried, and for the skills that were drawn from it.

use mnemon_engine::{FoundRule, FoundSkill};
use serde_json::{Value, json};

use super::super::answer::{Answer, Room, excerpt, quote, recalled};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch};
use crate::Error;
use crate::operation::{LogStep, SkillSearch};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::of::<LogStep, _>(
            Touch::Adds,
            "Log a step",
            "Log a step of a task: the tool, its input and its output. Call it after each step \
             of a recurring task; Mnemon learns skills and rules from the logged steps.",
            &[Profile::Agent],
            |served, call| Box::pin(log(served, call)),
        ),
        Tool::of::<SkillSearch, _>(
            Touch::Reads,
            "Find skills",
            "Find the procedures that worked for tasks like this one, and rules about what \
             failed, each with how often. Use it before you begin a task of several steps.",
            &[Profile::Agent],
            |served, call| Box::pin(find(served, call)),
        )
        .with_max_tokens(),
    ]
}

async fn log(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let receipt = call.run::<LogStep>(served).await?;
    let id = receipt.items.first().map(|item| item.id.to_string());
    let id = id.unwrap_or_default();
    Answer::with(format!("Logged as {id}."), &json!({ "id": id }))
}

async fn find(served: &Served, mut call: Call) -> Result<Answer, Error> {
    // Without a name it is the user that conversations without one belong to.
    let user = served.user(call.arguments.take_text("user"));
    call.arguments.set("user", user);
    let found = call.run::<SkillSearch>(served).await?;
    let told: Vec<(String, Value)> = (found.skills.iter().map(skill))
        .chain(found.rules.iter().map(rule))
        .collect();
    if told.is_empty() {
        return Answer::with("Nothing was learnt for this yet.", &json!({"found": 0}));
    }
    Answer::fit(&call, told.len(), |room| listed(&told, room))
}

fn skill(skill: &FoundSkill) -> (String, Value) {
    let mut text = format!("When: {}\n", skill.sop.use_when);
    for (n, step) in skill.sop.tool_sops.iter().enumerate() {
        text.push_str(&format!("{}. {}: {}\n", n + 1, step.tool, step.action));
    }
    if !skill.sop.preferences.is_empty() {
        text.push_str(&format!("Preferences: {}\n", skill.sop.preferences));
    }
    let evidence = json!(skill.evidence);
    (text, json!({"skill": skill.id, "evidence": evidence}))
}

fn rule(rule: &FoundRule) -> (String, Value) {
    let evidence = json!(rule.evidence);
    let text = format!("Rule: {}\n", rule.rule);
    (text, json!({"rule": rule.id, "evidence": evidence}))
}

fn listed(told: &[(String, Value)], room: Room) -> Result<Answer, Error> {
    let shown = || told.iter().take(room.items);
    let texts = shown().map(|(text, _)| format!("\n{}", quote(&excerpt(text, room.chars))));
    let left = told.len() - shown().count();
    let data: Vec<&Value> = shown().map(|(_, data)| data).collect();
    let data = json!({"found": told.len(), "left_out": left, "learnt": data});
    Answer::with(recalled(texts, left), &data)
}
