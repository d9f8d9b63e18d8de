//! Around a node: read before it, write after it.

use std::fmt::Display;

use mnemon_core::{Ctx, Id, Invalid, Owner, Receipt, Scope, Time, limits};
use serde::Serialize;
use serde_json::{Value, json};

use crate::memory::scopes::Step;
use crate::memory::{Memory, MemoryItem, MemoryQuery, MemoryWriteEvent};
use crate::records::Error;

/// A node of a flow that is about to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Who it is, and what it needs to know.
    pub query: MemoryQuery,
    /// What it runs; without it, the node's own name.
    pub tool: Option<String>,
    pub input: Value,
    pub trace_id: Option<String>,
}

impl Node {
    /// A node that asks this.
    pub fn new(query: MemoryQuery) -> Self {
        Self {
            query,
            tool: None,
            input: Value::Null,
            trace_id: None,
        }
    }

    fn step(&self, outcome: NodeOutcome) -> Step {
        let named = self.tool.as_ref().or(self.query.node_id.as_ref());
        Step {
            task_type: self.query.task_type.clone(),
            tool: Some(named.unwrap_or(&self.query.agent_id).clone()),
            input: self.input.clone(),
            output: outcome.output,
            success: None,
            error: outcome.error,
            latency_ms: outcome.latency_ms,
            cost: outcome.cost,
            trace_id: self.trace_id.clone(),
            ..Step::default()
        }
    }

    fn owner(&self) -> Owner {
        Owner {
            user: Some(self.query.user_id.clone()),
            agent: Some(self.query.agent_id.clone()),
            session: Some(self.query.session_id.clone()),
            flow: self.query.flow_id.clone(),
            node: self.query.node_id.clone(),
        }
    }
}

/// How a node ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeOutcome {
    pub output: Value,
    pub error: Option<String>,
    pub latency_ms: Option<u64>,
    pub cost: Option<f64>,
}

/// A node that ran.
#[derive(Debug)]
pub struct Ran<T, E> {
    /// What it gave back. Whatever happens to the memory, the work is not lost.
    pub result: Result<T, E>,
    /// The step that was written; `None` if the policy wants none.
    pub step: Result<Option<Id>, Error>,
}

impl Memory {
    /// Before a node runs: what it needs to know.
    pub async fn before(&self, ctx: &Ctx, node: &Node) -> Result<Vec<MemoryItem>, Error> {
        self.read(ctx, &node.query).await
    }

    /// After a node ran: how it went.
    pub async fn after(
        &self,
        ctx: &Ctx,
        node: &Node,
        outcome: NodeOutcome,
    ) -> Result<Receipt, Error> {
        let step = serde_json::to_value(node.step(outcome));
        let data = match step {
            Ok(Value::Object(data)) => data,
            Ok(_) => serde_json::Map::new(),
            Err(error) => return Err(Invalid::new("outcome", error.to_string()).into()),
        };
        let query = &node.query;
        let event = MemoryWriteEvent {
            user_id: query.user_id.clone(),
            session_id: query.session_id.clone(),
            agent_id: query.agent_id.clone(),
            flow_id: query.flow_id.clone(),
            node_id: query.node_id.clone(),
            scope: Scope::Experience,
            data,
            meta: serde_json::Map::new(),
        };
        self.write(ctx, &event).await
    }

    /// Runs a node between reading and writing, and measures how long it takes.
    ///
    /// The step is written before the node runs, as one that was cancelled, and is replaced when
    /// the node has ended. So nothing is missing when the future is dropped on the way or the
    /// process is killed: the step that was begun then says so. Nobody could write it any more.
    ///
    /// Only what is wrong with the question keeps the node from running. If the step cannot be
    /// written, the node runs all the same and [`Ran::step`] says why.
    pub async fn around<T, E, Run, Running>(
        &self,
        ctx: &Ctx,
        clock: impl Fn() -> Time,
        node: &Node,
        run: Run,
    ) -> Result<Ran<T, E>, Error>
    where
        T: Serialize,
        E: Display,
        Run: FnOnce(Vec<MemoryItem>) -> Running,
        Running: Future<Output = Result<T, E>>,
    {
        let at = |now: Time| Ctx { now, ..ctx.clone() };
        let known = self.before(&at(clock()), node).await?;
        let begun = self.begin(&at(clock()), node).await;
        let start = clock();
        let result = run(known).await;
        let end = clock();
        let passed = end.millis().saturating_sub(start.millis());
        let outcome = NodeOutcome {
            output: match &result {
                Ok(output) => shown(output),
                Err(_) => Value::Null,
            },
            error: result.as_ref().err().map(ToString::to_string),
            latency_ms: Some(u64::try_from(passed).unwrap_or(0)),
            cost: None,
        };
        let step = self.finish(&at(end), node, begun, outcome).await;
        Ok(Ran { result, step })
    }

    async fn begin(&self, ctx: &Ctx, node: &Node) -> Result<Option<Id>, Error> {
        let query = &node.query;
        let (flow, agent) = (query.flow_id.as_deref(), Some(query.agent_id.as_str()));
        let policy = self.policies.of(flow, agent);
        if !policy.write_experience {
            return Ok(None);
        }
        if let Some(most) = policy.writes_per_minute.of(Scope::Experience) {
            self.rates
                .count(ctx, flow, agent, Scope::Experience, most)?;
        }
        let step = node.step(NodeOutcome::default());
        let (experience, owner) = (self.experience(), node.owner());
        experience.begin_step(ctx, &owner, step).await.map(Some)
    }

    async fn finish(
        &self,
        ctx: &Ctx,
        node: &Node,
        begun: Result<Option<Id>, Error>,
        outcome: NodeOutcome,
    ) -> Result<Option<Id>, Error> {
        let Some(id) = begun? else {
            return Ok(None);
        };
        let step = node.step(outcome);
        self.experience().finish_step(ctx, &id, step).await?;
        Ok(Some(id))
    }
}

/// What a node gave back, cut if it is too much to be remembered with every step.
fn shown(output: &impl Serialize) -> Value {
    let value = match serde_json::to_value(output) {
        Ok(value) => value,
        Err(error) => return json!({ "not_json": error.to_string() }),
    };
    let text = value.to_string();
    if text.len() <= limits::STEP_OUTPUT_BYTES {
        return value;
    }
    let head: String = text.chars().take(limits::STEP_OUTPUT_BYTES / 8).collect();
    json!({ "cut": true, "bytes": text.len(), "head": head })
}
