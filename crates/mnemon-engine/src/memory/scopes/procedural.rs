//! How things are done: skills, as standard operating procedures.

use futures::future::join;
use mnemon_core::learn::{Evidence, Rate};
use mnemon_core::{
    Ctx, Expect, Filter, Id, IdempotencyKey, Invalid, Kind, Owner, Receipt, Record, Scope, Viewer,
    limits,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::semantic::unbound;
use crate::records::draft::to_json;
use crate::records::naming::{check_name, check_task_type, tag};
use crate::records::{Draft, Error, Records};
use crate::search::external::{External, merge};
use crate::search::retrieve::Enough;
use crate::search::{Hit, Query};

/// How many skills are found when nobody says.
pub const TOP_SKILLS: usize = 3;

/// Skills that are looked for beyond what is wanted: candidates and retired ones stand in the way.
const SPARE: usize = 8;

/// The skills of a memory.
#[derive(Clone, Copy)]
pub struct Procedural<'a> {
    pub(crate) records: &'a Records,
    pub(crate) external: External<'a>,
}

/// A procedure that was learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sop {
    /// When it is of use.
    pub use_when: String,
    /// What to do, in order.
    pub tool_sops: Vec<ToolSop>,
    /// What to prefer while doing it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preferences: String,
    /// The type of task it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// What it was learnt from.
    #[serde(default, skip_serializing)]
    pub derived_from: Vec<Id>,
    /// For every user of the tenant; otherwise only for the one who is named.
    #[serde(default, skip_serializing)]
    pub shared: bool,
}

/// One step of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSop {
    /// Also read as `tool_name`.
    #[serde(alias = "tool_name")]
    pub tool: String,
    /// What to do with it.
    pub action: String,
}

/// A skill that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundSkill {
    pub id: Id,
    pub score: f64,
    #[serde(flatten)]
    pub sop: Sop,
    /// What it rests on, if it was learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<ToldEvidence>,
    /// The external source that has it; such a skill is not a record of this store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<String>,
    /// The instructions of an external skill, which has no `tool_sops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What a skill or a rule rests on, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldEvidence {
    /// Runs that speak for it.
    pub support: usize,
    /// How runs went that followed it; for a rule, how often it failed where it applies.
    pub with: Rate,
    /// And the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without: Option<Rate>,
}

/// A rule that applies to a type of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundRule {
    pub id: Id,
    /// When …, avoid or do …
    pub rule: String,
    pub tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<ToldEvidence>,
}

impl Sop {
    /// Whether it can be followed.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.use_when.trim().is_empty() {
            let what = "is empty; say when this skill is of use";
            return Err(Invalid::new("use_when", what));
        }
        let (bytes, most) = (self.use_when.len(), limits::USE_WHEN_BYTES);
        if bytes > most {
            let what = format!("has {bytes} bytes, at most {most} are allowed");
            return Err(Invalid::new("use_when", what));
        }
        let (steps, most) = (self.tool_sops.len(), limits::SKILL_STEPS);
        if !(1..=most).contains(&steps) {
            let what = format!("has {steps} steps, it must have 1 to {most}");
            return Err(Invalid::new("tool_sops", what));
        }
        for (n, step) in self.tool_sops.iter().enumerate() {
            check_name(
                &format!("tool_sops[{n}].tool"),
                &step.tool,
                limits::TASK_CHARS,
            )?;
            if step.action.trim().is_empty() {
                let what = "is empty; say what to do with the tool";
                return Err(Invalid::new(format!("tool_sops[{n}].action"), what));
            }
        }
        check_task_type(self.task_type.as_deref())
    }

    pub(crate) fn into_draft(self, owner: &Owner) -> Result<Draft, Invalid> {
        self.check()?;
        let body = to_json("tool_sops", &self)?;
        let words = self.task_type.as_deref().map(spoken);
        let content = match &words {
            Some(words) => format!("{}\n{words}", self.use_when),
            None => self.use_when.clone(),
        };
        Ok(Draft {
            content,
            owner: unbound(owner, self.shared),
            kind: Some(Kind::Skill),
            body: Some(body),
            tags: self
                .task_type
                .iter()
                .map(|name| tag("task", name))
                .collect(),
            derived_from: self.derived_from,
            ..Draft::default()
        })
    }
}

/// A type of task in words that a search understands.
fn spoken(task_type: &str) -> String {
    task_type.replace(['_', '-', '.', '/'], " ")
}

impl Procedural<'_> {
    /// Remembers a skill. It belongs to no session.
    pub async fn add_skill(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        sop: Sop,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let draft = sop.into_draft(owner)?;
        let put = vec![(draft, Expect::Absent)];
        self.records.put(ctx, put, key).await
    }

    /// The skills that fit best, of those that this viewer may see. Those for this very type of
    /// task come first.
    pub async fn search_skills(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        task_type: Option<&str>,
        query: &str,
        top_k: usize,
    ) -> Result<Vec<FoundSkill>, Error> {
        check_task_type(task_type)?;
        let words = task_type.map(spoken).unwrap_or_default();
        let text = format!("{query} {words}");
        if text.trim().is_empty() {
            let what = "is empty; say what to do, or name a task_type";
            return Err(Invalid::new("query", what).into());
        }
        let query = Query {
            // Some of them may not be told.
            limit: top_k
                .saturating_mul(2)
                .saturating_add(SPARE)
                .min(self.records.limits().hits),
            ..Query::new(text.trim(), skills(viewer, Vec::new()))
        };
        // Those of this very type come first; both are looked for at the same time.
        let very = task_type.map(|name| vec![tag("task", name)]);
        let very = very.map(|tags| skills(viewer, tags));
        let filters: Vec<Filter> = very.into_iter().chain([query.filter.clone()]).collect();
        // Those of this very type are among all of them, and take up no more room there than here.
        let enough = Enough {
            count: top_k,
            of: is_told,
        };
        let own = self
            .records
            .search_each(ctx, &query, &filters, Some(enough));
        let external = self.external.search(self.records, ctx, &query);
        let (own, external) = join(own, external).await;
        let mut own = own?;
        // The last answer holds skills of all types; external skills have none.
        let all = own.pop().unwrap_or_default();
        own.push(merge(all, external, query.limit));
        let mut found: Vec<FoundSkill> = Vec::new();
        for hit in own.into_iter().flatten() {
            let known = found.iter().any(|skill| skill.id == hit.record.id);
            if !known && found.len() < top_k && is_told(&hit.record) {
                found.push(skill(hit));
            }
        }
        Ok(found)
    }
}

impl Procedural<'_> {
    /// The rules for this type of task that this viewer may see, the newest first.
    pub async fn rules_for(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        task_type: &str,
        most: usize,
    ) -> Result<Vec<FoundRule>, Error> {
        check_task_type(Some(task_type))?;
        let filter = Filter {
            kinds: vec![Kind::Rule],
            ..skills(viewer, vec![tag("task", task_type)])
        };
        let wanted = most
            .saturating_mul(2)
            .saturating_add(SPARE)
            .min(self.records.limits().hits);
        let found = self.records.latest(ctx, filter, wanted).await?;
        let found = found.into_iter().filter(is_told);
        let rules = found.map(|record| FoundRule {
            evidence: told_evidence(&record),
            tool: tool_of(&record),
            id: record.id,
            rule: record.content,
        });
        Ok(rules.take(most).collect())
    }
}

fn tool_of(record: &Record) -> String {
    let tool = record.body.as_ref().and_then(|body| body.get("tool"));
    let tool = tool.and_then(Value::as_str);
    tool.unwrap_or_default().to_owned()
}

fn skills(viewer: &Viewer, tags: Vec<String>) -> Filter {
    Filter {
        scopes: vec![Scope::Procedural],
        kinds: vec![Kind::Skill],
        tags,
        ..Filter::seen_by(viewer.clone())
    }
}

/// A record as a skill. One that was written by hand has words, but no steps.
pub(crate) fn sop_of(record: Record) -> Sop {
    let kept = record
        .body
        .and_then(|body| serde_json::from_value(body).ok());
    kept.unwrap_or(Sop {
        use_when: record.content,
        tool_sops: Vec::new(),
        preferences: String::new(),
        task_type: None,
        derived_from: Vec::new(),
        shared: false,
    })
}

fn skill(hit: Hit) -> FoundSkill {
    let Hit {
        score,
        external,
        record,
        ..
    } = hit;
    let (id, evidence) = (record.id.clone(), told_evidence(&record));
    let mut sop = sop_of(record);
    let mut instructions = None;
    if external.is_some()
        && let Some((first, below)) = sop.use_when.split_once('\n')
    {
        instructions = Some(below.trim().to_owned()).filter(|text| !text.is_empty());
        sop.use_when = first.trim_end().to_owned();
    }
    FoundSkill {
        id,
        score,
        sop,
        evidence,
        external,
        instructions,
    }
}

/// What it rests on, as far as an agent needs to know.
fn told_evidence(record: &Record) -> Option<ToldEvidence> {
    let kept = record.metadata.get("evidence")?;
    let kept: Evidence = serde_json::from_value(kept.clone()).ok()?;
    (kept.with.of > 0).then_some(ToldEvidence {
        support: kept.support,
        with: kept.with,
        without: kept.without,
    })
}

/// Whether agents are told about it.
pub(crate) fn is_told(record: &Record) -> bool {
    let kept = record.metadata.get("evidence");
    let status = kept
        .and_then(|kept| kept.get("status"))
        .and_then(Value::as_str);
    status.is_none_or(|status| status == mnemon_core::learn::Status::Active.as_str())
}
