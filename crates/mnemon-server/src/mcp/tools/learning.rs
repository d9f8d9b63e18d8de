//! Tools for what was tried, and for the skills that were drawn from it.

use mnemon_engine::{FoundRule, FoundSkill};
use serde_json::json;

use super::super::answer::{Answer, RECALLED, Room, excerpt, quote, recalled};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch};
use mnemon_operations::Error;
use mnemon_operations::operation::{LogStep, SkillSearch, Skills};

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
    let items = found.skills.len() + found.rules.len();
    if items == 0 {
        return Answer::with("Nothing was learnt for this yet.", &found);
    }
    Answer::fit(&call, items, |room| listed(&found, room))
}

fn skill(skill: &FoundSkill) -> String {
    let mut text = format!("When: {}\n", skill.sop.use_when);
    if let Some(source) = &skill.external {
        text.push_str(&format!("External source: {source}\n"));
    }
    if let Some(instructions) = &skill.instructions {
        text.push_str(&format!("{instructions}\n"));
    }
    for (n, step) in skill.sop.tool_sops.iter().enumerate() {
        text.push_str(&format!("{}. {}: {}\n", n + 1, step.tool, step.action));
    }
    if !skill.sop.preferences.is_empty() {
        text.push_str(&format!("Preferences: {}\n", skill.sop.preferences));
    }
    text
}

/// As many as there is room for, skills first.
fn listed(found: &Skills, room: Room) -> Result<Answer, Error> {
    let skills: Vec<&FoundSkill> = found.skills.iter().take(room.items).collect();
    let rules = found.rules.iter().take(room.items - skills.len());
    let rules: Vec<&FoundRule> = rules.collect();
    let texts = skills.iter().map(|one| skill(one));
    let texts = texts.chain(rules.iter().map(|one| format!("Rule: {}\n", one.rule)));
    let texts = texts.map(|text| format!("\n{}", quote(&excerpt(&text, room.chars))));
    let left = found.skills.len() + found.rules.len() - skills.len() - rules.len();
    let data = json!({"skills": skills, "rules": rules, "left_out": left, "note": RECALLED});
    Answer::with(recalled(texts, left), &data)
}
