//! Tools for what was tried, and for the skills that were drawn from it.

use mnemon_core::{Invalid, limits};
use mnemon_engine::{FoundRule, FoundSkill, Step};
use serde_json::{Map, Value, json};

use super::super::answer::{Answer, RECALLED, Room, excerpt, quote};
use super::super::field::Field;
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use super::recall::{QUERY, user};
use crate::Error;
use crate::api;

/// What a step took or gave, in characters.
const TEXT: usize = 100_000;
/// A day, in milliseconds: no step of an agent takes longer.
const LONGEST: u64 = 86_400_000;
/// What one step costs at the most, in whatever currency.
const DEAREST: f64 = 1_000_000.0;
/// How a run may have ended.
const OUTCOMES: &[&str] = &["success", "failure", "abandoned"];
/// Fields that a step keeps in its metadata: learning knows them by these names.
const TOLD: [&str; 4] = ["goal", "outcome", "correction", "remember"];

pub(super) fn tools() -> Vec<Tool> {
    vec![log_step(), find_skills()]
}

fn task_type() -> Field {
    let about = "The type of task, such as deploy or book_flight";
    Field::text("task_type", limits::TASK_TYPE_CHARS, about).or(&["task", "type"])
}

fn log_step() -> Tool {
    Tool {
        name: "log_step",
        title: "Log a step",
        about: "Log a step of a task: the tool, what it was given, what came of it. Call it after \
            each step of a task that will come again; Mnemon draws skills and rules from many of \
            them.",
        fields: vec![
            Field::text("tool", limits::NAME_CHARS, "The tool that was used")
                .required()
                .or(&["tool_name", "name"]),
            task_type(),
            Field::object("input", "What the tool was given").or(&["arguments", "args", "params"]),
            Field::text("output", TEXT, "What came of it").or(&["result"]),
            Field::text("error", TEXT, "What went wrong, if something did"),
            Field::flag(
                "success",
                "Whether it worked; without it: whether there is no error",
            ),
            Field::whole("latency_ms", 0, LONGEST, "How long it took"),
            Field::number("cost", 0.0, DEAREST, "What it cost"),
            Field::text(
                "trace_id",
                limits::TASK_TYPE_CHARS,
                "The same for all steps of one run of the task",
            )
            .or(&["trace", "run_id", "run"]),
            Field::text(
                "goal",
                QUERY,
                "What the user asked for; with the first step of a run",
            )
            .or(&["request", "query"]),
            Field::choice(
                "outcome",
                OUTCOMES,
                "How the whole run ended; with its last step",
            ),
            Field::text(
                "correction",
                limits::LEARN_VALUE_CHARS,
                "What the user put right, in a sentence",
            ),
            Field::text(
                "remember",
                limits::LEARN_VALUE_CHARS,
                "What the user asked to remember for such tasks, in a sentence",
            ),
            Field::object(
                "metadata",
                "What was the case, such as {\"os\": \"linux\"}: rules are drawn from it",
            )
            .or(&["meta", "context"]),
            user(),
        ],
        touch: Touch::Adds,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_log(served, call)),
    }
}

async fn run_log(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let user = call.arguments.take_text("user");
    let told = TOLD.map(|name| (name, call.arguments.take(name)));
    let mut metadata = match call.arguments.take("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    for (name, value) in told {
        let Some(value) = value else {
            continue;
        };
        if metadata.contains_key(name) {
            let what = format!("is there as well; leave `metadata.{name}` out");
            return Err(Invalid::new(name, what).into());
        }
        metadata.insert(name.to_owned(), value);
    }
    let arguments = call.arguments.put("metadata", Some(metadata.into()));
    let step: Step = arguments.read()?;
    let owner = served.owner(user);
    let receipt = api::experience::log(&served.memory, &call.ctx, &owner, step).await?;
    let id = receipt.items.first().map(|item| item.id.to_string());
    let id = id.unwrap_or_default();
    Answer::with(format!("Logged as {id}."), &json!({ "id": id }))
}

fn find_skills() -> Tool {
    Tool {
        name: "find_skills",
        title: "Find skills",
        about: "Find the procedures that worked for tasks like this one, and rules about what \
            failed, each with how often. Use it before you begin a task of several steps.",
        fields: vec![
            Field::text("query", QUERY, "What is to be done, in words").or(&["q", "text", "goal"]),
            task_type(),
            Field::whole(
                "limit",
                1,
                20,
                "How many skills at the most; 3 unless you say",
            )
            .or(&["max_results", "top_k", "k", "n"]),
            user(),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: &[Profile::Agent],
        run: |served, call| Box::pin(run_find(served, call)),
    }
}

async fn run_find(served: &Served, call: Call) -> Result<Answer, Error> {
    let limit = call.arguments.whole("limit");
    let request = api::skill::search::Request {
        query: call.arguments.text("query").unwrap_or_default(),
        task_type: call.arguments.text("task_type"),
        user: Some(served.user(call.arguments.text("user"))),
        limit: limit.unwrap_or(mnemon_engine::TOP_SKILLS),
    };
    let found = api::skill::search::run(&served.memory, &call.ctx, request).await?;
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
    let rest = match left {
        0 => String::new(),
        _ => format!("\n[{left} more did not fit: ask for a larger max_tokens]\n"),
    };
    let text = format!("{RECALLED}\n{}{rest}", texts.collect::<String>());
    let data: Vec<&Value> = shown().map(|(_, data)| data).collect();
    Answer::with(
        text,
        &json!({"found": told.len(), "left_out": left, "learnt": data}),
    )
}
