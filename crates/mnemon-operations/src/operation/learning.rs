//! Operations on what was tried, and on the skills that were drawn from it.

use mnemon_core::{Invalid, Receipt, limits};
use mnemon_engine::{FoundRule, FoundSkill, LIMIT_STEPS, LoggedStep, Step, TOP_SKILLS, Trace};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::context::QUERY;
use super::notes::{metadata, owner, user};
use super::{
    Access, Arguments, Failures, Field, LogStep, Operation, SkillSearch, Spelling, Traces,
};
use crate::{Error, api};

/// What a step took or gave, in characters.
const TEXT: usize = 100_000;
/// A day, in milliseconds: no step of an agent takes longer.
const LONGEST_MS: u64 = 86_400_000;
/// What one step costs at the most, in whatever currency.
const COST_MAX: f64 = 1_000_000.0;
const OUTCOMES: &[&str] = &["success", "failure", "abandoned"];
/// Fields that a step keeps in its metadata: learning knows them by these names.
const IN_METADATA: [&str; 4] = ["goal", "outcome", "correction", "remember"];

pub(super) fn task_type() -> Field {
    let about = "The type of task, such as deploy or book_flight";
    let field = Field::text("task_type", limits::TASK_TYPE_CHARS, about);
    field.or(&["task", "type"]).value("TYPE")
}

impl Operation for LogStep {
    const COMMAND: &'static str = "experience log";
    const TOOL: &'static str = "log_step";
    type Answer = Receipt;

    fn fields() -> Vec<Field> {
        let goal = "The user's request; with the first step of a run";
        let run = "Id of the run, the same for all its steps";
        let remember = "An instruction of the user for such tasks, in a sentence";
        let facts = "Circumstances, such as {\"os\": \"linux\"}: rules are derived from them";
        let sentence = |name, about| Field::text(name, limits::LEARN_VALUE_CHARS, about);
        let mut fields = vec![
            Field::text("tool", limits::NAME_CHARS, "The tool that was used")
                .or(&["tool_name", "name"]),
            task_type(),
            Field::object("input", "Input of the tool").or(&["arguments", "args", "params"]),
            Field::text("output", TEXT, "Output of the tool").or(&["result"]),
            Field::text("error", TEXT, "Error, if the step failed"),
            Field::flag(
                "success",
                "The step succeeded; default: true unless there is an error",
            ),
            Field::whole("latency_ms", 0, LONGEST_MS, "Duration in milliseconds"),
            Field::number("cost", 0.0, COST_MAX, "Cost of the step"),
            Field::text("trace_id", limits::TASK_TYPE_CHARS, run).or(&["trace", "run_id", "run"]),
            Field::text("goal", QUERY, goal).or(&["request", "query"]),
            Field::choice(
                "outcome",
                OUTCOMES,
                "Result of the whole run; with its last step",
            ),
            sentence("correction", "A correction by the user, in a sentence"),
            sentence("remember", remember),
            metadata(facts).or(&["meta", "meta_json", "context"]),
        ];
        fields.extend(owner("The owner"));
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Receipt, Error> {
        let owner = access.owned(arguments.take_owner());
        let mut metadata = match arguments.take("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        for name in IN_METADATA {
            let Some(value) = arguments.take(name) else {
                continue;
            };
            if metadata.insert(name.to_owned(), value).is_some() {
                let what = format!("is there as well; leave `metadata.{name}` out");
                return Err(Invalid::new(name, what).into());
            }
        }
        arguments.set("metadata", metadata);
        let step: Step = arguments.read()?;
        api::experience::log(access.memory, access.ctx, &owner, step).await
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FailedSteps {
    pub failures: Vec<LoggedStep>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct TracedSteps {
    pub traces: Vec<Trace>,
}

fn steps() -> Vec<Field> {
    let most = limits::PAGE as u64;
    let limit = Field::whole("limit", 1, most, "Maximum number of results").default("20");
    let mut fields = vec![task_type(), limit];
    fields.extend(owner("User it is about or from"));
    fields
}

impl Operation for Failures {
    const COMMAND: &'static str = "experience failures";
    type Answer = FailedSteps;

    fn fields() -> Vec<Field> {
        steps()
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<FailedSteps, Error> {
        let owner = arguments.take_owner();
        let (viewer, task_type) = (access.viewer(&owner), arguments.text("task_type"));
        let limit = arguments.whole("limit").unwrap_or(LIMIT_STEPS);
        let experience = access.memory.experience();
        let found =
            experience.get_failures(access.ctx, &viewer, &owner, task_type.as_deref(), limit);
        Ok(FailedSteps {
            failures: found.await?,
        })
    }
}

impl Operation for Traces {
    const COMMAND: &'static str = "experience traces";
    type Answer = TracedSteps;

    fn fields() -> Vec<Field> {
        steps()
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<TracedSteps, Error> {
        let owner = arguments.take_owner();
        let (viewer, task_type) = (access.viewer(&owner), arguments.text("task_type"));
        let limit = arguments.whole("limit").unwrap_or(LIMIT_STEPS);
        let experience = access.memory.experience();
        let task_type = task_type.as_deref();
        let found = experience.get_successful_traces(access.ctx, &viewer, &owner, task_type, limit);
        Ok(TracedSteps {
            traces: found.await?,
        })
    }
}

/// The skills that fit a task, and the rules of its type.
#[derive(Debug, Serialize, Deserialize)]
pub struct Skills {
    pub skills: Vec<FoundSkill>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<FoundRule>,
}

impl Operation for SkillSearch {
    const COMMAND: &'static str = "skill search";
    const TOOL: &'static str = "find_skills";
    type Answer = Skills;

    fn fields() -> Vec<Field> {
        vec![
            Field::text("query", QUERY, "The task, as text")
                .or(&["q", "text", "goal"])
                .positional(Spelling::Words, "QUERY"),
            task_type(),
            Field::whole("limit", 1, 20, "Maximum number of skills, and of rules")
                .default("3")
                .or(&["max_results", "top_k", "k", "n"]),
            user("The user who may see them"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Skills, Error> {
        let (ctx, known) = (access.ctx, access.memory.procedural());
        let (query, task_type) = (arguments.needed("query"), arguments.text("task_type"));
        let limit = arguments.whole("limit").unwrap_or(TOP_SKILLS);
        let viewer = access.viewer(&arguments.take_owner());
        let skills = known.search_skills(ctx, &viewer, task_type.as_deref(), &query, limit);
        Ok(Skills {
            skills: skills.await?,
            rules: match task_type {
                Some(task_type) => known.rules_for(ctx, &viewer, &task_type, limit).await?,
                None => Vec::new(),
            },
        })
    }
}
