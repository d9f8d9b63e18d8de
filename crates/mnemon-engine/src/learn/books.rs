//! The records that keep how far learning has come.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use mnemon_core::learn::{NotKept as Pattern, Run};
use mnemon_core::{Audience, Ctx, Expect, Filter, Id, Kind, Origin, Record, Scope, Time, limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::NotKept;
use crate::records::naming::{fixed_id, tag};
use crate::records::{Draft, Error, Records};

/// How skills and rules are judged. With a higher number all that an earlier version learnt is
/// judged again.
const METHOD: u32 = 1;

/// How far the log has been read, and what is to be looked at when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Diary {
    /// By which [`METHOD`] everything was last looked at.
    #[serde(default)]
    pub(super) method: u32,
    /// The `seq` of the last step that was read.
    pub(super) read: u64,
    /// Steps that were read altogether.
    pub(super) steps: u64,
    pub(super) due: BTreeMap<String, Time>,
    /// Steps of each type of task that were read since it was last looked at.
    pub(super) fresh: BTreeMap<String, usize>,
}

impl Default for Diary {
    fn default() -> Self {
        Self {
            method: METHOD,
            read: 0,
            steps: 0,
            due: BTreeMap::new(),
            fresh: BTreeMap::new(),
        }
    }
}

impl Diary {
    /// The types of task that are due, those that wait longest first; if there are steps to read
    /// yet, only those of which much is new.
    pub(super) fn to_look_at(&self, now: Time, reading: bool, fresh_enough: usize) -> Vec<String> {
        let fresh = |task_type: &str| self.fresh.get(task_type).copied().unwrap_or(0);
        let due = self.due.iter().filter(|(task_type, at)| {
            **at <= now && (!reading || fresh(task_type) >= fresh_enough)
        });
        let mut due: Vec<(Time, &String)> = due.map(|(task_type, at)| (*at, task_type)).collect();
        due.sort();
        due.into_iter()
            .map(|(_, task_type)| task_type.clone())
            .collect()
    }

    /// Whether lessons were judged in another way than now.
    pub(super) fn is_outdated(&self) -> bool {
        self.method != METHOD
    }

    /// Everything is judged as it is now once these types of task were looked at.
    pub(super) fn judge_again(&mut self, task_types: impl Iterator<Item = String>, now: Time) {
        self.due
            .extend(task_types.map(|task_type| (task_type, now)));
        self.method = METHOD;
    }

    /// A type of task was looked at, and will have to be looked at again then.
    pub(super) fn looked_at(&mut self, task_type: &str, next: Option<Time>) {
        self.fresh.remove(task_type);
        match next {
            Some(at) => self.due.insert(task_type.to_owned(), at),
            None => self.due.remove(task_type),
        };
    }
}

/// What was read, and the version to be expected when it is written.
#[derive(Debug, Clone)]
pub(super) struct Versioned<T> {
    pub(super) value: T,
    pub(super) expect: Expect,
    pub(super) created: Option<Time>,
}

impl<T> Versioned<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            value,
            expect: Expect::Absent,
            created: None,
        }
    }
}

/// The reader of the diary, which is no agent that anybody runs.
const LEARNING: &str = "mnemon-learning";

pub(super) fn diary_id() -> Id {
    fixed_id("learn-diary", &[])
}

/// A step without a trace is a run by itself.
pub(super) fn run_id(task_type: &str, trace: Option<&str>, step: &Id, whose: &Audience) -> Id {
    let whose = whose.key();
    match trace {
        Some(trace) => fixed_id(
            "learn-run",
            &[Some(task_type), Some(trace), whose.as_deref()],
        ),
        None => fixed_id("learn-step", &[Some(task_type), Some(step.as_str())]),
    }
}

pub(super) async fn diary(records: &Records, ctx: &Ctx) -> Result<Versioned<Diary>, Error> {
    let Some(record) = records.find(ctx, &diary_id()).await? else {
        return Ok(Versioned::new(Diary::default()));
    };
    let body = record.body.unwrap_or_default();
    Ok(Versioned {
        // Whoever wrote something else there gets it replaced: it can be made again.
        value: serde_json::from_value(body).unwrap_or_default(),
        expect: Expect::Version(record.version),
        created: Some(record.created),
    })
}

/// The newest runs of a type of task, the oldest of them first.
pub(super) async fn newest_runs(
    records: &Records,
    ctx: &Ctx,
    task_type: &str,
) -> Result<Vec<Run>, Error> {
    let filter = Filter {
        scopes: vec![Scope::Experience],
        kinds: vec![Kind::Session],
        tags: vec![tag("run", task_type)],
        ..Filter::all_of_tenant()
    };
    let found = records
        .latest(ctx, filter, records.limits().learn_runs)
        .await?;
    let mut runs: Vec<Run> = found.into_iter().map(|record| run(record).value).collect();
    runs.sort_by_key(|run| run.order);
    Ok(runs)
}

/// The runs with these ids that are there. Steps that were forgotten are no part of them.
pub(super) async fn runs(
    records: &Records,
    ctx: &Ctx,
    ids: &[Id],
) -> Result<Vec<Versioned<Run>>, Error> {
    let found = records.get_all(ctx, ids).await?.into_iter().flatten();
    Ok(found.map(run).collect())
}

/// One that cannot be read is begun anew, over what is there.
fn run(record: Record) -> Versioned<Run> {
    let audience = record.audience();
    let kept = record.body.and_then(|body| match body {
        Value::String(text) => serde_json::from_str(&text).ok(),
        // As it was kept before.
        body => serde_json::from_value(body).ok(),
    });
    let mut run: Run = kept.unwrap_or_else(|| Run::new(record.id.clone(), "", record.created));
    let sources: HashSet<&Id> = record.derived_from.iter().collect();
    run.acts.retain(|act| sources.contains(&act.id));
    run.id = record.id;
    run.audience = audience;
    Versioned {
        value: run,
        expect: Expect::Version(record.version),
        created: Some(record.created),
    }
}

/// A record without words: only its id leads to it, and no list shows it.
fn silent(id: Id, body: &impl Serialize, created: Option<Time>) -> Draft {
    Draft {
        id: Some(id),
        scope: Some(Scope::Experience),
        kind: Some(Kind::Session),
        body: serde_json::to_value(body)
            .ok()
            .filter(|body| *body != Value::Null),
        origin: Some(Origin::Derived),
        created,
        ..Draft::default()
    }
}

pub(super) fn diary_draft(diary: &Versioned<Diary>) -> (Draft, Expect) {
    let draft = Draft {
        // It names types of tasks of every user: no user reads it.
        audience: Some(Audience::Agent(LEARNING.to_owned())),
        ..silent(diary_id(), &diary.value, diary.created)
    };
    (draft, diary.expect)
}

/// How the record is found that lists what was found and not kept.
const UNKEPT: &str = "learn:not-kept";

/// What was found for a type of task and not kept.
pub(super) struct Unkept {
    task_type: String,
    /// The agent or team whose runs show it; `None` for users' and shared runs.
    circle: Option<Audience>,
    pub(super) list: Vec<NotKept>,
    /// The runs that show it: who forgets them forgets the list.
    runs: Vec<Id>,
}

impl Unkept {
    pub(super) fn new(task_type: &str, circle: Option<&Audience>, patterns: Vec<Pattern>) -> Self {
        let list = patterns.iter().map(|pattern| NotKept {
            task_type: task_type.to_owned(),
            found: NotKept::procedure(&pattern.tools),
            why: pattern.why.clone(),
        });
        let list = list.collect();
        let runs: BTreeSet<Id> = patterns.into_iter().flat_map(|one| one.runs).collect();
        Self {
            task_type: task_type.to_owned(),
            circle: circle.cloned(),
            list,
            runs: runs.into_iter().collect(),
        }
    }
}

fn unkept_id(unkept: &Unkept) -> Id {
    let circle = unkept.circle.as_ref().and_then(Audience::key);
    let task_type = Some(unkept.task_type.as_str());
    match &circle {
        Some(circle) => fixed_id("learn-not-kept", &[task_type, Some(circle)]),
        None => fixed_id("learn-not-kept", &[task_type]),
    }
}

/// The lists that differ from what is stored.
pub(super) async fn unkept_drafts(
    records: &Records,
    ctx: &Ctx,
    lists: Vec<Unkept>,
) -> Result<Vec<(Draft, Expect)>, Error> {
    let ids: Vec<Id> = lists.iter().map(unkept_id).collect();
    let there = records.get(ctx, &ids).await?;
    let mut drafts = Vec::new();
    for ((id, list), there) in ids.into_iter().zip(lists).zip(there) {
        let known = there.as_ref().map(unkept_of).unwrap_or_default();
        if known == list.list {
            continue;
        }
        let expect = there
            .as_ref()
            .map_or(Expect::Absent, |record| Expect::Version(record.version));
        let mut draft = silent(id, &list.list, there.map(|record| record.created));
        // An empty list is not listed.
        let listed = !list.list.is_empty();
        draft.tags.extend(listed.then(|| UNKEPT.to_owned()));
        draft.audience = list.circle;
        draft.derived_from = list.runs;
        drafts.push((draft, expect));
    }
    Ok(drafts)
}

/// What was found and not kept, of the types of task that were looked at last.
pub(super) async fn unkept(records: &Records, ctx: &Ctx) -> Result<Vec<NotKept>, Error> {
    let filter = Filter {
        scopes: vec![Scope::Experience],
        kinds: vec![Kind::Session],
        tags: vec![UNKEPT.to_owned()],
        ..Filter::all_of_tenant()
    };
    let found = records.latest(ctx, filter, limits::NOT_KEPT_LISTED).await?;
    Ok(found.iter().flat_map(unkept_of).collect())
}

fn unkept_of(record: &Record) -> Vec<NotKept> {
    let body = record.body.clone().unwrap_or_default();
    serde_json::from_value(body).unwrap_or_default()
}

pub(super) fn run_draft(run: &Versioned<Run>) -> (Draft, Expect) {
    let kept = &run.value;
    // As a text: two hundred runs are read for each that is new, and a tree of JSON costs more to
    // build than the run itself.
    let text = serde_json::to_string(kept).unwrap_or_default();
    let mut draft = silent(kept.id.clone(), &text, run.created);
    draft.belongs_to(&kept.audience);
    draft.tags = vec![tag("run", &kept.task_type)];
    draft.derived_from = kept.acts.iter().map(|act| act.id.clone()).collect();
    (draft, run.expect)
}
