//! Skills and rules as people see them, and what people say about them.

use mnemon_core::learn::{Advice, Condition, Evidence, Rate, Retired, Rule, Status};
use mnemon_core::{
    Audience, Ctx, Filter, Id, Invalid, Kind, Origin, Receipt, Record, Scan, Scope, Time, Viewer,
    limits,
};
use serde::{Deserialize, Serialize};

use super::judge::evidence_of;
use super::{Learning, NotKept, books};
use crate::memory::scopes::{Sop, ToolSop, sop_of};
use crate::records::draft::to_json;
use crate::records::naming::{check_task_type, tag};
use crate::records::{Draft, Error};

/// How the tag begins that says where a lesson stands.
const STATUS: &str = "status:";

/// A rule as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleBody {
    pub task_type: String,
    pub tool: String,
    pub condition: Condition,
    pub advice: Advice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The rule in words.
    pub text: String,
}

impl RuleBody {
    pub(super) fn new(task_type: &str, rule: Rule) -> Self {
        Self {
            text: rule.text(),
            task_type: task_type.to_owned(),
            tool: rule.tool,
            condition: rule.condition,
            advice: rule.advice,
            error: rule.error,
        }
    }
}

/// What a lesson says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LessonBody {
    Skill(Sop),
    Rule(RuleBody),
}

/// A skill or a rule, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    pub id: Id,
    #[serde(flatten)]
    pub body: LessonBody,
    pub evidence: Evidence,
    /// The runs that speak for it.
    pub runs: Vec<Id>,
    /// Who may be told it.
    pub audience: Audience,
    pub version: u64,
}

impl Lesson {
    /// From its record; `None` for one that is neither. A skill that somebody wrote has no
    /// evidence, and is active.
    pub(super) fn of(record: Record) -> Option<Self> {
        let evidence = evidence_of(&record).unwrap_or_else(|| {
            let none = Rate::default();
            Evidence::counted(Status::Active, 0, none, none)
        });
        let (id, version, audience) = (record.id.clone(), record.version, record.audience());
        let runs = record.derived_from.clone();
        let body = match record.kind {
            Kind::Skill => LessonBody::Skill(sop_of(record)),
            Kind::Rule => LessonBody::Rule(serde_json::from_value(record.body?).ok()?),
            _ => return None,
        };
        Some(Self {
            id,
            body,
            evidence,
            runs,
            audience,
            version,
        })
    }

    pub fn task_type(&self) -> Option<&str> {
        match &self.body {
            LessonBody::Skill(sop) => sop.task_type.as_deref(),
            LessonBody::Rule(rule) => Some(&rule.task_type),
        }
    }

    /// The tools of a skill, in order; a rule has none.
    pub(super) fn tools(&self) -> Vec<String> {
        match &self.body {
            LessonBody::Skill(sop) => sop.tool_sops.iter().map(|s| s.tool.clone()).collect(),
            LessonBody::Rule(_) => Vec::new(),
        }
    }

    /// Why it is not told although there is enough evidence, if that is so.
    pub(super) fn held(&self) -> Option<NotKept> {
        let why = self.evidence.held.clone()?;
        Some(NotKept {
            task_type: self.task_type().unwrap_or_default().to_owned(),
            found: match &self.body {
                LessonBody::Skill(_) => NotKept::procedure(&self.tools()),
                LessonBody::Rule(rule) => format!("a rule ({})", rule.text.trim_end_matches('.')),
            },
            why,
        })
    }

    /// What it says, on one line.
    pub fn text(&self) -> String {
        match &self.body {
            LessonBody::Skill(sop) => {
                let tools: Vec<&str> = sop.tool_sops.iter().map(|s| s.tool.as_str()).collect();
                format!("{}: {}", sop.use_when, tools.join(" → "))
            }
            LessonBody::Rule(rule) => rule.text.clone(),
        }
    }

    pub(super) fn into_draft(self, created: Option<Time>) -> Result<Draft, Error> {
        let status = tag("status", self.evidence.status.as_str());
        let evidence = to_json("evidence", &self.evidence)?;
        let mut draft = match self.body {
            LessonBody::Skill(sop) => sop.into_draft(&mnemon_core::Owner::default())?,
            LessonBody::Rule(rule) => Draft {
                content: rule.text.clone(),
                kind: Some(Kind::Rule),
                tags: vec![tag("task", &rule.task_type)],
                body: Some(to_json("rule", &rule)?),
                ..Draft::default()
            },
        };
        draft.id = Some(self.id);
        draft.created = created;
        draft.belongs_to(&self.audience);
        draft.origin = Some(Origin::Derived);
        draft.derived_from = self.runs;
        draft.tags.push(status);
        draft.metadata.insert("evidence".to_owned(), evidence);
        Ok(draft)
    }
}

/// What a person says about a skill or a rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// It is good: it is told to agents.
    Approve,
    /// It is wrong: it is not told, and not learnt again.
    Reject {
        why: Option<String>,
    },
    /// It is of no use any more.
    Retire {
        why: Option<String>,
    },
    /// It is not retired by itself.
    Pin,
    Unpin,
    /// Better words for a skill. Its tools stay as they are.
    Edit {
        use_when: Option<String>,
        preferences: Option<String>,
    },
}

/// How learning stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnStatus {
    /// Steps that were read so far.
    pub steps: u64,
    /// Types of task that wait, and when they will be looked at.
    pub waiting: Vec<TaskStatus>,
    pub active: usize,
    pub candidates: usize,
    pub retired: usize,
    /// What was found and is not told to agents, at most [`limits::NOT_KEPT_LISTED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<NotKept>,
}

/// When a type of task is looked at next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    pub task_type: String,
    pub due: Time,
}

impl Learning<'_> {
    /// Skills and rules that this viewer may see, the newest first; of this type of task and in
    /// this state, if named.
    pub async fn lessons(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        task_type: Option<&str>,
        status: Option<Status>,
        limit: usize,
    ) -> Result<Vec<Lesson>, Error> {
        check_task_type(task_type)?;
        let filter = Filter {
            scopes: vec![Scope::Procedural],
            kinds: vec![Kind::Skill, Kind::Rule],
            tags: task_type
                .map(|name| tag("task", name))
                .into_iter()
                .collect(),
            ..Filter::seen_by(viewer.clone())
        };
        let procedural = self.memory.records_of(Scope::Procedural);
        let scan = Scan::new(filter, procedural.limits().page);
        let mut lessons: Vec<Lesson> = Vec::new();
        let take = |page: Vec<Record>| {
            let found = page.into_iter().filter_map(Lesson::of);
            let wanted = |lesson: &Lesson| status.is_none_or(|s| lesson.evidence.status == s);
            lessons.extend(found.filter(wanted));
            lessons.len() < limit
        };
        procedural.each_page(ctx, scan, take).await?;
        lessons.truncate(limit);
        Ok(lessons)
    }

    /// The skill or rule with this id.
    pub async fn lesson(&self, ctx: &Ctx, id: &Id) -> Result<Lesson, Error> {
        let procedural = self.memory.records_of(Scope::Procedural);
        let lesson = procedural.find(ctx, id).await?.and_then(Lesson::of);
        lesson.ok_or_else(|| Error::NotThere(format!("there is no skill or rule {id}")))
    }

    /// Takes down what a person says. Learning keeps to it from then on.
    pub async fn review(&self, ctx: &Ctx, id: &Id, review: Review) -> Result<Receipt, Error> {
        let mut lesson = self.lesson(ctx, id).await?;
        lesson.say(review, ctx.now)?;
        self.save(ctx, lesson).await
    }

    /// Writes a lesson over the version that was read. What else its record says stays.
    pub(super) async fn save(&self, ctx: &Ctx, lesson: Lesson) -> Result<Receipt, Error> {
        let procedural = self.memory.records_of(Scope::Procedural);
        let (id, version) = (lesson.id.clone(), lesson.version);
        let Some(mut record) = procedural.find(ctx, &id).await? else {
            return Err(Error::NotThere(format!("there is no skill or rule {id}")));
        };
        let draft = lesson.into_draft(None)?;
        record.version = version;
        record.content = draft.content;
        record.body = draft.body;
        record.derived_from = draft.derived_from;
        record.tags.retain(|tag| !tag.starts_with(STATUS));
        let status = draft.tags.into_iter();
        record
            .tags
            .extend(status.filter(|tag| tag.starts_with(STATUS)));
        record.metadata.extend(draft.metadata);
        procedural.update(ctx, record).await
    }

    /// Remembers a skill that comes from elsewhere, as a person's.
    pub async fn take_in(
        &self,
        ctx: &Ctx,
        user: Option<String>,
        sop: Sop,
    ) -> Result<Receipt, Error> {
        sop.check()?;
        let owner = mnemon_core::Owner {
            user,
            ..mnemon_core::Owner::default()
        };
        let shared = owner.user.is_none();
        let sop = Sop { shared, ..sop };
        self.memory
            .procedural()
            .add_skill(ctx, &owner, sop, None)
            .await
    }

    /// How learning stands.
    pub async fn status(&self, ctx: &Ctx) -> Result<LearnStatus, Error> {
        let records = self.memory.records_of(Scope::Experience);
        let diary = books::diary(records, ctx).await?.value;
        let waiting = diary.due.into_iter();
        let waiting = waiting.map(|(task_type, due)| TaskStatus { task_type, due });
        let waiting = waiting.collect();
        let lessons = self
            .lessons(
                ctx,
                &Viewer::Tenant,
                None,
                None,
                self.memory.records().limits().learn_tasks * 10,
            )
            .await?;
        let count = |status: Status| {
            let these = lessons
                .iter()
                .filter(|lesson| lesson.evidence.status == status);
            these.count()
        };
        let mut not_kept = books::unkept(records, ctx).await?;
        not_kept.extend(lessons.iter().filter_map(Lesson::held));
        not_kept.truncate(limits::NOT_KEPT_LISTED);
        Ok(LearnStatus {
            steps: diary.steps,
            waiting,
            active: count(Status::Active),
            candidates: count(Status::Candidate),
            retired: count(Status::Retired),
            not_kept,
        })
    }
}

impl Lesson {
    fn say(&mut self, review: Review, now: Time) -> Result<(), Invalid> {
        let evidence = &mut self.evidence;
        let mut put_away = |usual: &str, why: Option<String>| {
            evidence.status = Status::Retired;
            evidence.approved = false;
            evidence.retired = Some(Retired {
                at: now,
                why: why.unwrap_or_else(|| usual.to_owned()),
                by_person: true,
            });
        };
        match review {
            Review::Approve => {
                evidence.status = Status::Active;
                evidence.approved = true;
                evidence.retired = None;
                evidence.held = None;
            }
            Review::Reject { why } => put_away("a user rejected it", why),
            Review::Retire { why } => put_away("a user retired it", why),
            Review::Pin => evidence.pinned = true,
            Review::Unpin => evidence.pinned = false,
            Review::Edit {
                use_when,
                preferences,
            } => {
                let LessonBody::Skill(sop) = &mut self.body else {
                    let what = "is a rule; only skills can be edited";
                    return Err(Invalid::new("id", what));
                };
                sop.use_when = use_when.unwrap_or_else(|| sop.use_when.clone());
                sop.preferences = preferences.unwrap_or_else(|| sop.preferences.clone());
                sop.check()?;
                self.evidence.edited = true;
            }
        }
        Ok(())
    }

    /// The steps of a skill with other words; refused unless the tools are the same, in order.
    pub(super) fn reworded(&self, steps: &[ToolSop]) -> Result<(), Invalid> {
        let LessonBody::Skill(sop) = &self.body else {
            return Err(Invalid::new("id", "is of a rule"));
        };
        let tools = |steps: &[ToolSop]| -> Vec<String> {
            steps.iter().map(|step| step.tool.clone()).collect()
        };
        let (known, said) = (tools(&sop.tool_sops), tools(steps));
        if known == said {
            return Ok(());
        }
        let stranger = said.iter().find(|tool| !known.contains(tool));
        Err(match stranger {
            Some(tool) => {
                let what = format!("names the tool {tool}, which no run used");
                Invalid::new("tool_sops", what)
            }
            None => {
                let (known, said) = (known.join(", "), said.join(", "));
                let what = format!("has the tools {said}; the runs used {known}, in this order");
                Invalid::new("tool_sops", what)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_cannot_be_written_is_an_error() {
        let no_json = std::collections::BTreeMap::from([((1, 2), 3)]);
        let refused = to_json("rule", &no_json).unwrap_err();
        assert_eq!(refused.field, "rule");
    }
}
