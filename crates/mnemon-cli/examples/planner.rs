//! A planner and a worker that share a memory: one file, no model, no key, no server.
//!
//! ```sh
//! cargo run -p mnemon-cli --example planner
//! ```
//!
//! The planner asks what it needs to know (what was said, who asks, which skills and documents
//! fit) and makes a plan; a language model would do that in earnest. The worker runs the plan's
//! tools. The first try fails, the memory keeps why, and the next planner sees it.

#![allow(
    clippy::print_stdout,
    reason = "an example shows what it does; it is no part of the program"
)]

use mnemon_core::{Ctx, Role, Scope, Time};
use mnemon_engine::{
    Memory, MemoryItem, MemoryQuery, MemoryWriteEvent, Node, Payload, Place, Task, TaskStatus,
    TaskStep,
};
use mnemon_operations::config::Config;
use mnemon_operations::wiring;
use serde_json::{Map, Value, json};

type Failed = Box<dyn std::error::Error>;

const USER: &str = "ann";
const SESSION: &str = "s1";
const FLOW: &str = "smart_buyer";
const TASK: &str = "build_search_agent";
const PLACE: Place<'static> = Place {
    user: USER,
    session: SESSION,
    flow: Some(FLOW),
    agent: None,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let store = format!("sqlite:{}", folder.path().join("memory.db").display());
    for line in play(&store).await? {
        println!("{line}");
    }
    Ok(())
}

/// The whole story on this store, told in lines.
pub(crate) async fn play(store: &str) -> Result<Vec<String>, Failed> {
    let mut config = Config::for_store(store);
    let policies = &mut config.policies.policies;
    policies.set(mnemon_engine::Whom::flow(FLOW), "max_docs", "8")?;
    let memory = wiring::open(&config)?.memory;
    let mut story = Story {
        memory,
        config,
        lines: Vec::new(),
    };
    story.prepare().await?;
    for utterance in ["Build me a search agent", "Please try again"] {
        let ctx = story.ctx()?;
        let dialog = story.memory.dialog();
        dialog
            .append(&ctx, USER, SESSION, Role::User, utterance)
            .await?;
        let plan = story.planner(utterance).await?;
        story.worker(&plan).await?;
    }
    story.forget().await?;
    Ok(story.lines)
}

struct Story {
    memory: Memory,
    config: Config,
    lines: Vec<String>,
}

impl Story {
    fn ctx(&self) -> Result<Ctx, Failed> {
        Ok(wiring::stamp(&self.config)?)
    }

    fn tell(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    async fn write(&self, scope: Scope, data: Value) -> Result<(), Failed> {
        let event = MemoryWriteEvent {
            user_id: USER.to_owned(),
            session_id: SESSION.to_owned(),
            agent_id: "setup".to_owned(),
            flow_id: Some(FLOW.to_owned()),
            node_id: None,
            scope,
            data: data.as_object().cloned().unwrap_or_default(),
            meta: Map::new(),
        };
        self.memory.write(&self.ctx()?, &event).await?;
        Ok(())
    }

    /// What is there before the user speaks: a profile, a document, a skill.
    async fn prepare(&self) -> Result<(), Failed> {
        let profile = json!({"name": "Ann", "style": "brief answers"});
        self.write(Scope::Profile, profile).await?;
        let document = json!({
            "content": "A search agent calls the index service over HTTP and ranks what it returns.",
            "source": "handbook.md",
            "shared": true,
        });
        self.write(Scope::Semantic, document).await?;
        let skill = json!({
            "use_when": "build a search agent",
            "task_type": TASK,
            "tool_sops": [
                {"tool": "create_repo", "action": "create a repository from the template"},
                {"tool_name": "HttpRequestTool", "action": "ask the index service for a token"},
            ],
            "preferences": "retry with a longer timeout",
            "shared": true,
        });
        self.write(Scope::Procedural, skill).await
    }

    /// Reads, makes a plan, and writes it down as tasks.
    async fn planner(&mut self, utterance: &str) -> Result<Vec<String>, Failed> {
        let node = Node::new(MemoryQuery {
            flow_id: Some(FLOW.to_owned()),
            node_id: Some("planner_node".to_owned()),
            query: Some(utterance.to_owned()),
            task_type: Some(TASK.to_owned()),
            ..MemoryQuery::new(USER, SESSION, "planner", Scope::ALL)
        });
        let ctx = self.ctx()?;
        let ran = self
            .memory
            .around(&ctx, now, &node, |known| async move {
                Ok::<_, std::convert::Infallible>((prompt(&known), plan(&known)))
            })
            .await?;
        let Ok((prompt, plan)) = ran.result;
        self.tell(format!("planner hears: {utterance}"));
        for line in prompt {
            self.tell(format!("  {line}"));
        }
        let mut tasks: Vec<Task> = Vec::new();
        for tool in &plan {
            let before: Vec<&str> = tasks
                .last()
                .map(|task| task.id.as_str())
                .into_iter()
                .collect();
            tasks.push(Task::new(tool).after(&before));
        }
        let state = self.memory.state();
        state.save_tasks(&self.ctx()?, PLACE, tasks, None).await?;
        Ok(plan)
    }

    /// Runs what can start until nothing can.
    async fn worker(&mut self, plan: &[String]) -> Result<(), Failed> {
        let trace = format!("{SESSION}-{}", self.lines.len());
        for _ in plan {
            let startable = self.memory.state().startable(&self.ctx()?, PLACE).await?;
            let Some(task) = startable.into_iter().next() else {
                break;
            };
            let node = Node {
                tool: Some(task.id.clone()),
                input: json!({"action": task.id}),
                trace_id: Some(trace.clone()),
                query: MemoryQuery {
                    flow_id: Some(FLOW.to_owned()),
                    node_id: Some("http_tool_node".to_owned()),
                    task_type: Some(TASK.to_owned()),
                    ..MemoryQuery::new(USER, SESSION, "worker_agent", &[Scope::Experience])
                },
            };
            let ctx = self.ctx()?;
            let ran = self
                .memory
                .around(&ctx, now, &node, |known| tool(&task.id, failures(&known)))
                .await?;
            let (status, error) = match ran.result {
                Ok(_) => (TaskStatus::Done, None),
                Err(error) => (TaskStatus::Failed, Some(error)),
            };
            let said = error.as_deref().unwrap_or("ok").to_owned();
            self.tell(format!("worker runs {}: {said}", task.id));
            let step = TaskStep {
                task_id: task.id,
                step: "run".to_owned(),
                status,
                error,
            };
            let state = self.memory.state();
            state
                .log_task_step(&self.ctx()?, PLACE, &step, None)
                .await?;
        }
        let ctx = self.ctx()?;
        let traces = self
            .memory
            .experience()
            .get_successful_traces(
                &ctx,
                &mnemon_core::Viewer::Tenant,
                &mnemon_core::Owner::default(),
                Some(TASK),
                50,
            )
            .await?;
        let whole = traces.iter().filter(|trace| trace.trace_id.is_some());
        self.tell(format!("successful traces so far: {}", whole.count()));
        Ok(())
    }

    /// The session goes; profile, document and skill stay.
    async fn forget(&mut self) -> Result<(), Failed> {
        let ctx = self.ctx()?;
        let gone = self
            .memory
            .delete_session(&ctx, USER, SESSION, false)
            .await?;
        let left = self.memory.records().stats(&ctx).await?.records();
        self.tell(format!(
            "the session is forgotten: {} records gone, {left} left",
            gone.records
        ));
        Ok(())
    }
}

fn now() -> Time {
    let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = passed.map_or(0, |passed| passed.as_millis());
    Time::EPOCH.plus_millis(i64::try_from(millis).unwrap_or(0))
}

/// What a model would be told.
fn prompt(known: &[MemoryItem]) -> Vec<String> {
    let payloads = known.iter().filter_map(MemoryItem::payload);
    let lines = payloads.flat_map(|payload| match payload {
        Payload::Dialog(context) => vec![format!("turns: {}", context.turns.len())],
        Payload::Profile { profile, .. } => vec![format!("profile: {}", json!(profile))],
        Payload::Procedural { skills, .. } => skills
            .iter()
            .map(|skill| format!("skill: {}", skill.sop.use_when))
            .collect(),
        Payload::Semantic { docs } => docs
            .iter()
            .map(|doc| format!("document: {}", doc.content))
            .collect(),
        Payload::Experience { failures, .. } => failures
            .iter()
            .filter_map(|step| Some(format!("failed before: {}", step.step.error.as_ref()?)))
            .collect(),
        Payload::State(_) => Vec::new(),
    });
    lines.collect()
}

/// Without a model the plan is the best skill's, or one step.
fn plan(known: &[MemoryItem]) -> Vec<String> {
    let skills = known.iter().filter_map(|item| match item.payload() {
        Some(Payload::Procedural { skills, .. }) => skills.first(),
        _ => None,
    });
    let steps = skills.flat_map(|skill| &skill.sop.tool_sops);
    let steps: Vec<String> = steps.map(|step| step.tool.clone()).collect();
    match steps.is_empty() {
        true => vec!["think".to_owned()],
        false => steps,
    }
}

fn failures(known: &[MemoryItem]) -> usize {
    let failures = known.iter().filter_map(|item| match item.payload() {
        Some(Payload::Experience { failures, .. }) => Some(failures.len()),
        _ => None,
    });
    failures.sum()
}

/// A tool that times out until experience has taught it to wait longer.
async fn tool(name: &str, failed_before: usize) -> Result<Value, String> {
    if name == "HttpRequestTool" && failed_before == 0 {
        return Err("timeout after 5 s".to_owned());
    }
    Ok(json!({"status": 200}))
}
