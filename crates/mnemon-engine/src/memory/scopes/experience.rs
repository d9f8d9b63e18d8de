//! What was tried, and how it went.

use std::collections::{HashMap, HashSet};

use mnemon_core::learn::{Ended, Outcome};
use mnemon_core::{
    Ctx, Expect, Filter, Id, IdempotencyKey, Invalid, Kind, Origin, Owner, Receipt, Record, Scope,
    Time, Viewer, json, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::records::draft::to_json;
use crate::records::naming::{check_name, check_task_type, tag};
use crate::records::{Draft, Error, Records};

/// How many steps or traces are shown when nobody says.
pub const LIMIT_STEPS: usize = 50;

/// The experience of a memory.
#[derive(Clone, Copy)]
pub struct Experience<'a> {
    pub(crate) records: &'a Records,
}

/// One thing that was tried, as the caller says it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// Also read as `tool_name`.
    #[serde(alias = "tool_name", skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Without it: whether there is no error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Steps with the same one were taken for the same purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Whatever else is worth knowing; filters can ask for it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A step as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedStep {
    pub id: Id,
    #[serde(rename = "created")]
    pub at: Time,
    pub ended: Ended,
    #[serde(flatten)]
    pub step: Step,
}

/// Steps with one trace id, oldest first. A step without one is a trace by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    pub steps: Vec<LoggedStep>,
}

impl Trace {
    /// As somebody said, or else by its last step; unless one of them may still be running.
    fn ended_well(&self) -> bool {
        let said = self.steps.iter().rev().find_map(|step| {
            let said = step.step.metadata.get("outcome")?.as_str()?;
            said.parse::<Outcome>().ok()
        });
        let last = self.steps.last().map(|step| step.ended);
        let open = self.steps.iter().any(|step| step.ended == Ended::Cancelled);
        let well = last == Some(Ended::Done) && !open;
        said.map_or(well, |said| said == Outcome::Success)
    }
}

#[derive(Serialize, Deserialize)]
struct Body {
    ended: Ended,
    #[serde(flatten)]
    step: Step,
}

impl Step {
    fn check(&self) -> Result<(), Invalid> {
        check_task_type(self.task_type.as_deref())?;
        if let Some(tool) = &self.tool {
            check_name("tool", tool, limits::TASK_CHARS)?;
        }
        if let Some(trace) = &self.trace_id {
            check_name("trace_id", trace, limits::TASK_TYPE_CHARS)?;
        }
        if self.success == Some(true) && self.error.is_some() {
            let what = "is true, but an error is given; omit one of them";
            return Err(Invalid::new("success", what));
        }
        if let Some(cost) = self.cost.filter(|cost| !cost.is_finite() || *cost < 0.0) {
            let what = format!("is {cost}, it must be 0 or more");
            return Err(Invalid::new("cost", what));
        }
        self.check_size()?;
        self.check_outcome()?;
        let named = self.task_type.is_some() || self.tool.is_some();
        if !named {
            let what = "is missing; name the tool, or the task_type, of this step";
            return Err(Invalid::new("tool", what));
        }
        Ok(())
    }

    /// A word that learning does not know would end no run, and nobody would notice.
    fn check_outcome(&self) -> Result<(), Invalid> {
        let said = self.metadata.get("outcome");
        let Some(said) = said.filter(|said| !said.is_null()) else {
            return Ok(());
        };
        let word = said.as_str();
        if word.is_some_and(|word| word.parse::<Outcome>().is_ok()) {
            return Ok(());
        }
        let said = match word {
            Some(word) => format!("is `{}`", word.chars().take(60).collect::<String>()),
            None => "is no text".to_owned(),
        };
        let what = format!("{said}; a run ends with success, failure or abandoned");
        Err(Invalid::new("metadata.outcome", what))
    }

    /// Whoever learns reads many steps at once.
    fn check_size(&self) -> Result<(), Invalid> {
        let most = limits::STEP_BYTES;
        for (field, value) in [("input", &self.input), ("output", &self.output)] {
            let bytes = json::bytes(value);
            if bytes > most {
                let what = format!(
                    "has {bytes} bytes, at most {most} are allowed; log its beginning, and keep \
                     the whole as a document if it is needed"
                );
                return Err(Invalid::new(field, what));
            }
        }
        Ok(())
    }

    /// How it ended, by what it says itself.
    fn ended(&self) -> Ended {
        match self.success.unwrap_or(self.error.is_none()) {
            true => Ended::Done,
            false => Ended::Failed,
        }
    }

    /// Tags are all in one list, of which a filter asks for any: so each of them says everything
    /// that is asked for together.
    fn tags(&self, ended: Ended) -> Vec<String> {
        let ended = ended.as_str();
        let mut tags = vec![ended.to_owned()];
        tags.extend(self.task_type.iter().map(|name| tag(ended, name)));
        tags.extend(self.task_type.iter().map(|name| tag("task", name)));
        tags.extend(self.trace_id.iter().map(|id| tag("trace", id)));
        tags
    }

    fn into_draft(mut self, id: Id, owner: &Owner, ended: Ended) -> Result<Draft, Invalid> {
        self.check()?;
        self.success = Some(ended == Ended::Done);
        let what = [self.tool.as_deref(), self.task_type.as_deref()];
        let what: Vec<&str> = what.into_iter().flatten().collect();
        let why = self.error.as_deref().map(|error| format!(": {error}"));
        let content = format!(
            "{}: {}{}",
            what.join(", "),
            ended.as_str(),
            why.unwrap_or_default()
        );
        let tags = self.tags(ended);
        let metadata = std::mem::take(&mut self.metadata);
        let body = to_json("step", &Body { ended, step: self })?;
        Ok(Draft {
            id: Some(id),
            content,
            owner: owner.clone(),
            kind: Some(Kind::Step),
            body: Some(body),
            tags,
            metadata,
            origin: Some(Origin::Tool),
            ..Draft::default()
        })
    }
}

impl Experience<'_> {
    /// Remembers a step.
    pub async fn log_step(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        step: Step,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let (id, ended) = (self.records.ids.next(ctx.now), step.ended());
        let draft = step.into_draft(id, owner, ended)?;
        let put = vec![(draft, Expect::Absent)];
        self.records.put(ctx, put, key).await
    }

    /// Remembers that a step was begun. Until [`Experience::finish_step`] says how it ended, it
    /// counts as cancelled; so it does when nobody is left to say so.
    pub async fn begin_step(&self, ctx: &Ctx, owner: &Owner, step: Step) -> Result<Id, Error> {
        let id = self.records.ids.next(ctx.now);
        let draft = step.into_draft(id.clone(), owner, Ended::Cancelled)?;
        self.records.add(ctx, vec![draft], None).await?;
        Ok(id)
    }

    /// Says how a step that was begun has ended. If it was forgotten meanwhile, it stays so.
    pub async fn finish_step(
        &self,
        ctx: &Ctx,
        id: &Id,
        step: Step,
    ) -> Result<Option<Receipt>, Error> {
        let Some(begun) = self.records.find(ctx, id).await? else {
            return Ok(None);
        };
        let ended = step.ended();
        let draft = Draft {
            created: Some(begun.created),
            audience: begun.audience.clone(),
            ..step.into_draft(id.clone(), &begun.owner, ended)?
        };
        let put = vec![(draft, Expect::Version(begun.version))];
        self.records.put(ctx, put, None).await.map(Some)
    }

    /// The newest steps that failed, of this type of task if one is named, of these owners if any
    /// are.
    pub async fn get_failures(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        owner: &Owner,
        task_type: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LoggedStep>, Error> {
        self.check_limit(limit)?;
        let steps = steps_of(viewer, owner);
        let found = self.newest(ctx, steps, task_type, Ended::Failed, limit);
        found.await
    }

    /// The newest steps that were begun and of which nobody has said how they ended.
    pub async fn get_cancelled(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        owner: &Owner,
        task_type: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LoggedStep>, Error> {
        self.check_limit(limit)?;
        let steps = steps_of(viewer, owner);
        let found = self.newest(ctx, steps, task_type, Ended::Cancelled, limit);
        found.await
    }

    /// The newest traces that have a step of this type of task and that ended well: somebody said
    /// so, or else their last step went well and none is still running. What failed on the way was
    /// overcome.
    pub async fn get_successful_traces(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        owner: &Owner,
        task_type: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Trace>, Error> {
        self.check_limit(limit)?;
        let most = limit
            .saturating_mul(20)
            .clamp(1, self.records.limits().trace_steps);
        let steps = steps_of(viewer, owner);
        let done = self.newest(ctx, steps.clone(), task_type, Ended::Done, most);
        let done = done.await?;
        let mut wanted: Vec<Trace> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        for step in done {
            if wanted.len() == limit {
                break;
            }
            match step.step.trace_id.clone() {
                Some(id) if seen.insert(id.clone()) => wanted.push(Trace {
                    trace_id: Some(id),
                    steps: Vec::new(),
                }),
                Some(_) => {}
                None => wanted.push(Trace {
                    trace_id: None,
                    steps: vec![step],
                }),
            }
        }
        let mut whole = self.traces(ctx, steps, &seen).await?;
        for trace in &mut wanted {
            if let Some(id) = &trace.trace_id {
                trace.steps = whole.remove(id).unwrap_or_default();
            }
        }
        wanted.retain(Trace::ended_well);
        Ok(wanted)
    }

    /// Every step of these traces, oldest first.
    async fn traces(
        &self,
        ctx: &Ctx,
        mut steps: Filter,
        ids: &HashSet<String>,
    ) -> Result<HashMap<String, Vec<LoggedStep>>, Error> {
        let mut traces: HashMap<String, Vec<LoggedStep>> = HashMap::new();
        if ids.is_empty() {
            return Ok(traces);
        }
        steps.tags = ids.iter().map(|id| tag("trace", id)).collect();
        let records = self
            .records
            .latest(ctx, steps, self.records.limits().trace_steps)
            .await?;
        for record in records.into_iter().rev() {
            let Some(step) = logged(record) else {
                continue;
            };
            if let Some(id) = step.step.trace_id.clone() {
                traces.entry(id).or_default().push(step);
            }
        }
        Ok(traces)
    }

    async fn newest(
        &self,
        ctx: &Ctx,
        mut steps: Filter,
        task_type: Option<&str>,
        ended: Ended,
        limit: usize,
    ) -> Result<Vec<LoggedStep>, Error> {
        check_task_type(task_type)?;
        steps.tags = vec![match task_type {
            Some(name) => tag(ended.as_str(), name),
            None => ended.as_str().to_owned(),
        }];
        let records = self.records.latest(ctx, steps, limit).await?;
        Ok(records.into_iter().filter_map(logged).collect())
    }

    fn check_limit(&self, limit: usize) -> Result<(), Invalid> {
        let most = self.records.limits().steps;
        if limit > most {
            let what = format!("is {limit}, at most {most} are allowed");
            return Err(Invalid::new("limit", what));
        }
        Ok(())
    }
}

fn steps_of(viewer: &Viewer, owner: &Owner) -> Filter {
    Filter {
        owner: owner.clone(),
        scopes: vec![Scope::Experience],
        kinds: vec![Kind::Step],
        ..Filter::seen_by(viewer.clone())
    }
}

/// The step that a record keeps; `None` for one that somebody wrote by hand in another form.
pub(crate) fn logged(record: Record) -> Option<LoggedStep> {
    let mut body: Body = serde_json::from_value(record.body?).ok()?;
    body.step.metadata = record.metadata;
    Some(LoggedStep {
        id: record.id,
        at: record.created,
        ended: body.ended,
        step: body.step,
    })
}
