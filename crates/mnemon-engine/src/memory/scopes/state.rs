//! Where flows and tasks stand.

use mnemon_core::{
    Ctx, Expect, Id, IdempotencyKey, Invalid, Kind, Origin, Owner, Receipt, Record, Scope,
    StoreError, Time, Viewer, limits,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::tasks::{Task, TaskList, TaskStatus};
use crate::records::draft::to_json;
use crate::records::naming::{check_name, fixed_id};
use crate::records::{Draft, Error, Records};

/// The states of a memory.
#[derive(Clone, Copy)]
pub struct State<'a> {
    pub(crate) records: &'a Records,
}

/// Which state: of a flow in a user's session. Without a flow, of the session itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub user: &'a str,
    pub session: &'a str,
    pub flow: Option<&'a str>,
    /// The agent that asks, which sees what is private to it.
    pub agent: Option<&'a str>,
}

impl Place<'_> {
    pub(crate) fn id(&self, sort: &str) -> Id {
        fixed_id(sort, &[Some(self.user), self.flow, Some(self.session)])
    }

    fn viewer(&self) -> Viewer {
        Viewer::person(Some(self.user.to_owned()), self.agent.map(str::to_owned))
    }

    fn owner(&self) -> Result<Owner, Invalid> {
        check_name("user", self.user, limits::NAME_CHARS)?;
        check_name("session", self.session, limits::NAME_CHARS)?;
        if let Some(flow) = self.flow {
            check_name("flow", flow, limits::NAME_CHARS)?;
        }
        Ok(Owner {
            user: Some(self.user.to_owned()),
            session: Some(self.session.to_owned()),
            flow: self.flow.map(str::to_owned),
            ..Owner::default()
        })
    }
}

/// A flow's state as it was saved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowState {
    pub id: Id,
    pub state: Map<String, Value>,
    /// To be handed back when it is saved, so that nobody's change is lost.
    pub version: u64,
    pub updated: Time,
}

/// A step of a task, and where the task stands after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStep {
    pub task_id: String,
    pub step: String,
    pub status: TaskStatus,
    pub error: Option<String>,
}

impl State<'_> {
    /// The state, if one was saved.
    pub async fn get_state(&self, ctx: &Ctx, place: Place<'_>) -> Result<Option<FlowState>, Error> {
        place.owner()?;
        let record = self.one(ctx, place, "state").await?;
        Ok(record.map(|record| FlowState {
            state: object(record.body),
            id: record.id,
            version: record.version,
            updated: record.updated,
        }))
    }

    /// Saves the state. With the version that it was read at (0: there was none), a save over
    /// somebody else's change is a conflict that names the version that is there.
    pub async fn save_state(
        &self,
        ctx: &Ctx,
        place: Place<'_>,
        state: Map<String, Value>,
        expected_version: Option<u64>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let draft = Draft {
            id: Some(place.id("state")),
            owner: place.owner()?,
            kind: Some(Kind::State),
            body: Some(Value::Object(state)),
            origin: Some(Origin::Agent),
            ..Draft::default()
        };
        let expect = match expected_version {
            None => Expect::Anything,
            Some(0) => Expect::Absent,
            Some(version) => Expect::Version(version),
        };
        self.records.put(ctx, vec![(draft, expect)], key).await
    }

    /// The tasks of a flow in a session.
    pub async fn get_tasks(&self, ctx: &Ctx, place: Place<'_>) -> Result<TaskList, Error> {
        place.owner()?;
        Ok(self.list(ctx, place).await?.0)
    }

    /// Puts tasks into the list, each in place of the one with its name. Tasks that would wait
    /// for each other in a circle are refused.
    pub async fn save_tasks(
        &self,
        ctx: &Ctx,
        place: Place<'_>,
        tasks: Vec<Task>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        if tasks.is_empty() {
            return Err(Invalid::new("tasks", "is empty; give the state to save").into());
        }
        let change = |list: &mut TaskList| list.merge(tasks.clone());
        self.change(ctx, place, change, None, key).await
    }

    /// What can start now.
    pub async fn startable(&self, ctx: &Ctx, place: Place<'_>) -> Result<Vec<Task>, Error> {
        let list = self.get_tasks(ctx, place).await?;
        Ok(list.startable().into_iter().cloned().collect())
    }

    /// Logs a step of a task, and where the task stands after it. A task that nobody listed is
    /// put on the list.
    pub async fn log_task_step(
        &self,
        ctx: &Ctx,
        place: Place<'_>,
        logged: &TaskStep,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let (task_id, step) = (logged.task_id.as_str(), logged.step.as_str());
        let (status, error) = (logged.status, logged.error.as_deref());
        check_name("task_id", task_id, limits::TASK_CHARS)?;
        check_name("step", step, limits::TASK_CHARS)?;
        let change = |list: &mut TaskList| {
            let known = list.tasks.iter().find(|task| task.id == task_id);
            let mut task = known.cloned().unwrap_or_else(|| Task::new(task_id));
            task.status = status;
            task.step = Some(step.to_owned());
            task.error = error.map(str::to_owned);
            list.merge(vec![task])
        };
        let outcome = error.map_or(String::new(), |error| format!(": {error}"));
        let log = Draft {
            content: format!("{task_id}, {step}: {}{outcome}", status.as_str()),
            owner: place.owner()?,
            scope: Some(Scope::State),
            kind: Some(Kind::Event),
            body: Some(json!({
                "task_id": task_id, "step": step, "status": status, "error": error,
            })),
            origin: Some(Origin::Agent),
            derived_from: vec![place.id("tasks")],
            ..Draft::default()
        };
        self.change(ctx, place, change, Some(log), key).await
    }

    /// Reads the list, changes it and writes it back with `along`; again if somebody else was
    /// faster.
    async fn change(
        &self,
        ctx: &Ctx,
        place: Place<'_>,
        change: impl Fn(&mut TaskList) -> Result<(), Invalid>,
        along: Option<Draft>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let owner = place.owner()?;
        let mut tries = 0;
        loop {
            let (mut list, version) = self.list(ctx, place).await?;
            change(&mut list)?;
            let body = to_json("tasks", &list)?;
            let draft = Draft {
                id: Some(place.id("tasks")),
                owner: owner.clone(),
                kind: Some(Kind::Task),
                body: Some(body),
                origin: Some(Origin::Agent),
                ..Draft::default()
            };
            let expect = version.map_or(Expect::Absent, Expect::Version);
            let mut puts = vec![(draft, expect)];
            puts.extend(along.clone().map(|log| (log, Expect::Absent)));
            tries += 1;
            match self.records.put(ctx, puts, key.clone()).await {
                Err(Error::Store(StoreError::Conflict { .. })) if tries < limits::CHANGE_TRIES => {}
                done => return done,
            }
        }
    }

    async fn list(&self, ctx: &Ctx, place: Place<'_>) -> Result<(TaskList, Option<u64>), Error> {
        let Some(record) = self.one(ctx, place, "tasks").await? else {
            return Ok((TaskList::default(), None));
        };
        let body = record.body.unwrap_or_default();
        let list = serde_json::from_value(body)
            .map_err(|error| Invalid::new(record.id.as_str(), error.to_string()))?;
        Ok((list, Some(record.version)))
    }

    async fn one(&self, ctx: &Ctx, place: Place<'_>, sort: &str) -> Result<Option<Record>, Error> {
        let (viewer, ids) = (place.viewer(), [place.id(sort)]);
        let found = self.records.get_seen_by(ctx, &viewer, &ids).await?;
        Ok(found.into_iter().flatten().next())
    }
}

/// The members of an object; none if it is something else.
pub(super) fn object(body: Option<Value>) -> Map<String, Value> {
    match body {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
