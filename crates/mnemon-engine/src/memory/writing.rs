//! After a node ran: this happened.

use mnemon_core::{
    Ctx, Fate, Id, IdempotencyKey, Invalid, Outcome, Owner, Receipt, Role, Scope, Time,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::memory::Memory;
use crate::memory::reading::check_caller;
use crate::memory::scopes::{
    Content, Knowledge, Place, Sop, Step, Task, TaskStatus, TaskStep, Utterance,
};
use crate::records::Error;
use crate::records::draft::intent;

/// What a node tells after it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryWriteEvent {
    pub user_id: String,
    pub session_id: String,
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    pub scope: Scope,
    /// What to remember, in the form of its scope.
    pub data: Map<String, Value>,
    /// `idempotency_key` (any scope), `expected_version` (state, profile), `trace_id`
    /// (experience). Dialog, semantic and experience keep the other members as metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

impl MemoryWriteEvent {
    fn owner(&self) -> Owner {
        Owner {
            user: Some(self.user_id.clone()),
            agent: Some(self.agent_id.clone()),
            session: Some(self.session_id.clone()),
            flow: self.flow_id.clone(),
            node: self.node_id.clone(),
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            user: &self.user_id,
            session: &self.session_id,
            flow: self.flow_id.as_deref(),
            agent: Some(&self.agent_id),
        }
    }

    fn data<T: DeserializeOwned>(&self) -> Result<T, Invalid> {
        let data = Value::Object(self.data.clone());
        serde_path_to_error::deserialize(data).map_err(|error| {
            let field = match error.path().to_string().as_str() {
                "." => "data".to_owned(),
                path => format!("data.{path}"),
            };
            let what = format!("does not fit scope {}: {}", self.scope, error.inner());
            Invalid::new(field, what)
        })
    }

    /// Whether it could be written, before anything is.
    fn check(&self) -> Result<(Wish, Meta), Invalid> {
        let names = [&self.user_id, &self.session_id, &self.agent_id];
        check_caller(names, [&self.flow_id, &self.node_id])?;
        let mut meta = Meta::read(self)?;
        let wish = match self.scope {
            Scope::Dialog => Wish::dialog(self.data()?, &mut meta)?,
            Scope::State => Wish::state(self.data()?)?,
            Scope::Semantic => {
                let mut knowledge: Knowledge = self.data()?;
                knowledge.metadata.append(&mut meta.rest);
                Wish::Knowledge(Box::new(knowledge))
            }
            Scope::Procedural => {
                let sop: Sop = self.data()?;
                sop.check()?;
                Wish::Skill(Box::new(sop))
            }
            Scope::Profile => Wish::Profile(self.data.clone()),
            Scope::Experience => {
                let mut step: Step = self.data()?;
                if step.trace_id.is_none() {
                    step.trace_id = meta.trace_id.take();
                }
                step.metadata.append(&mut meta.rest);
                Wish::Step(Box::new(step))
            }
        };
        meta.check_empty(self.scope)?;
        Ok((wish, meta))
    }
}

/// What `meta` says that we understand, and the rest.
struct Meta {
    key: Option<IdempotencyKey>,
    expected_version: Option<u64>,
    trace_id: Option<String>,
    rest: Map<String, Value>,
}

impl Meta {
    fn read(event: &MemoryWriteEvent) -> Result<Self, Invalid> {
        let mut rest = event.meta.clone();
        let text = |name: &str, value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Invalid::new(format!("meta.{name}"), "must be a text")),
        };
        let key = text("idempotency_key", rest.remove("idempotency_key"))?;
        let wish = (event.scope, event.place().flow, &event.owner(), &event.data);
        let key = key.map(|key| intent(&key, &wish)).transpose()?;
        let versioned = matches!(event.scope, Scope::State | Scope::Profile);
        let expected_version = match rest.get("expected_version") {
            Some(version) if versioned => Some(version.as_u64().ok_or_else(|| {
                Invalid::new(
                    "meta.expected_version",
                    "must be a whole number; 0 for a new record",
                )
            })?),
            _ => None,
        };
        if versioned {
            rest.remove("expected_version");
        }
        let trace_id = match event.scope {
            Scope::Experience => text("trace_id", rest.remove("trace_id"))?,
            _ => None,
        };
        Ok(Self {
            key,
            expected_version,
            trace_id,
            rest,
        })
    }

    /// What nobody took would be lost.
    fn check_empty(&self, scope: Scope) -> Result<(), Invalid> {
        let Some(name) = self.rest.keys().next() else {
            return Ok(());
        };
        let known = match scope {
            Scope::State | Scope::Profile => "idempotency_key, expected_version",
            _ => "idempotency_key",
        };
        let what = format!(
            "`{}` is not a field of this data in scope {scope}; the fields are: {known}",
            name.escape_debug()
        );
        Err(Invalid::new("meta", what))
    }
}

/// What dialog data may say: a message, messages, a summary or a fact.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DialogData {
    role: Option<Role>,
    content: Option<Content>,
    name: Option<String>,
    id: Option<String>,
    metadata: Map<String, Value>,
    timestamp: Option<Time>,
    messages: Option<Vec<Utterance>>,
    summary: Option<String>,
    covers: Vec<Id>,
    fact: Option<String>,
    importance: Option<f64>,
}

/// What state data may say: a state, tasks, or a step of a task.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StateData {
    state: Option<Map<String, Value>>,
    tasks: Option<Vec<Task>>,
    task_id: Option<String>,
    step: Option<String>,
    status: Option<TaskStatus>,
    error: Option<String>,
}

/// What is to be written.
enum Wish {
    Messages(Vec<Utterance>),
    Summary {
        text: String,
        covers: Vec<Id>,
    },
    Fact {
        text: String,
        importance: Option<f64>,
    },
    State(Map<String, Value>),
    Tasks(Vec<Task>),
    TaskStep(TaskStep),
    Knowledge(Box<Knowledge>),
    Skill(Box<Sop>),
    Profile(Map<String, Value>),
    Step(Box<Step>),
}

/// Exactly one of these must be said.
fn one_of(said: &[(&str, bool)]) -> Result<(), Invalid> {
    let names: Vec<&str> = said.iter().map(|(name, _)| *name).collect();
    let given: Vec<&str> = said
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name)
        .collect();
    match given.as_slice() {
        [_] => Ok(()),
        [] => Err(Invalid::new(
            "data",
            format!("has no data; give one of: {}", names.join(", ")),
        )),
        several => Err(Invalid::new(
            "data",
            format!(
                "has {}; only one of them is possible",
                several.join(" and ")
            ),
        )),
    }
}

impl Wish {
    fn dialog(data: DialogData, meta: &mut Meta) -> Result<Self, Invalid> {
        one_of(&[
            ("content", data.content.is_some()),
            ("messages", data.messages.is_some()),
            ("summary", data.summary.is_some()),
            ("fact", data.fact.is_some()),
        ])?;
        if let Some(content) = data.content {
            let Some(role) = data.role else {
                let what = "is missing; say who speaks: user, assistant, system or tool";
                return Err(Invalid::new("data.role", what));
            };
            let mut metadata = data.metadata;
            metadata.append(&mut meta.rest);
            return Ok(Self::Messages(vec![Utterance {
                id: data.id,
                role,
                content,
                name: data.name,
                metadata,
                timestamp: data.timestamp,
            }]));
        }
        if let Some(mut messages) = data.messages {
            for message in &mut messages {
                message.metadata.extend(meta.rest.clone());
            }
            meta.rest.clear();
            return Ok(Self::Messages(messages));
        }
        Ok(match (data.summary, data.fact) {
            (Some(text), _) => Self::Summary {
                text,
                covers: data.covers,
            },
            (None, fact) => Self::Fact {
                text: fact.unwrap_or_default(),
                importance: data.importance,
            },
        })
    }

    fn state(data: StateData) -> Result<Self, Invalid> {
        one_of(&[
            ("state", data.state.is_some()),
            ("tasks", data.tasks.is_some()),
            ("task_id", data.task_id.is_some()),
        ])?;
        if let Some(state) = data.state {
            return Ok(Self::State(state));
        }
        if let Some(tasks) = data.tasks {
            return Ok(Self::Tasks(tasks));
        }
        let (Some(step), Some(status)) = (data.step, data.status) else {
            let what = "is not complete; a step of a task has task_id, step and status";
            return Err(Invalid::new("data", what));
        };
        Ok(Self::TaskStep(TaskStep {
            task_id: data.task_id.unwrap_or_default(),
            step,
            status,
            error: data.error,
        }))
    }
}

impl Memory {
    /// Remembers what happened. What the policy does not want is rejected in the receipt, which is
    /// no error; what comes too often is one.
    pub async fn write(&self, ctx: &Ctx, event: &MemoryWriteEvent) -> Result<Receipt, Error> {
        let (wish, meta) = event.check()?;
        let flow = event.flow_id.as_deref();
        let agent = Some(event.agent_id.as_str());
        let policy = self.policies.of(flow, agent);
        if event.scope == Scope::Experience && !policy.write_experience {
            return Ok(self.rejected(ctx, "the policy says write_experience = false"));
        }
        if let Some(most) = policy.writes_per_minute.of(event.scope) {
            self.rates.count(ctx, flow, agent, event.scope, most)?;
        }
        self.fulfil(ctx, event, wish, meta).await
    }

    /// A receipt of something that was not written.
    fn rejected(&self, ctx: &Ctx, why: &str) -> Receipt {
        Receipt {
            commit: None,
            items: vec![Outcome {
                id: self.records().ids.next(ctx.now),
                fate: Fate::Rejected {
                    why: why.to_owned(),
                },
            }],
            cascaded: Vec::new(),
            evicted: Vec::new(),
            notices: Vec::new(),
        }
    }

    async fn fulfil(
        &self,
        ctx: &Ctx,
        event: &MemoryWriteEvent,
        wish: Wish,
        meta: Meta,
    ) -> Result<Receipt, Error> {
        let (owner, place) = (event.owner(), event.place());
        let (user, session) = (&event.user_id, &event.session_id);
        let (key, version) = (meta.key, meta.expected_version);
        let (dialog, state) = (self.dialog(), self.state());
        match wish {
            Wish::Messages(said) => dialog.append_all(ctx, &owner, said, key).await,
            Wish::Summary { text, covers } => {
                let summary = dialog.update_summary(ctx, user, session, &text, covers, key);
                summary.await
            }
            Wish::Fact { text, importance } => {
                dialog.add_fact(ctx, &owner, &text, importance, key).await
            }
            Wish::State(saved) => state.save_state(ctx, place, saved, version, key).await,
            Wish::Tasks(tasks) => state.save_tasks(ctx, place, tasks, key).await,
            Wish::TaskStep(step) => state.log_task_step(ctx, place, &step, key).await,
            Wish::Knowledge(known) => self.semantic().remember(ctx, &owner, *known, key).await,
            Wish::Skill(sop) => self.procedural().add_skill(ctx, &owner, *sop, key).await,
            Wish::Profile(changes) => {
                let profile = self.profile();
                profile
                    .update_profile(ctx, user, &changes, version, key)
                    .await
            }
            Wish::Step(step) => self.experience().log_step(ctx, &owner, *step, key).await,
        }
    }
}
