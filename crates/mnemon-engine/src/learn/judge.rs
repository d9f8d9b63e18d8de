//! What the runs say about a skill or a rule: it comes, it stays, it goes.

use std::collections::BTreeMap;

use mnemon_core::learn::{
    Evidence, LearnSettings, Missing, Outcome, Procedure, Rate, Retired, Rule, Run, Status,
    contains, died_at, disused, follows, missing, regressed, uses, usual_beside, wilson,
};
use mnemon_core::{Audience, Expect, Id, Record, Time};

use super::books::Versioned;
use super::review::{Lesson, LessonBody, RuleBody};
use super::{Learnt, Transition};
use crate::memory::scopes::{Sop, ToolSop};
use crate::records::{Draft, Error};

/// Half of the runs must succeed with it, as sure as 95 %, before a skill is active by itself.
const ACTIVE_RATE: f64 = 0.5;
/// Why something that everybody was told is put away.
const ONE_USER: &str = "it is based on the runs of one user only";

/// A skill or a rule as it will be.
pub(super) struct Verdict {
    pub(super) lesson: Lesson,
    expect: Expect,
    created: Option<Time>,
    /// As it was; `None` for one that is new.
    before: Option<Lesson>,
    /// Why it goes, if it goes now.
    why: Option<String>,
}

impl Verdict {
    /// What happened to it; `None`: nothing worth telling, but it may have to be written.
    fn turn(&self) -> Option<Transition> {
        let evidence = &self.lesson.evidence;
        let before = self.before.as_ref().map(|lesson| &lesson.evidence);
        let was = before.map(|before| before.status);
        match (was, evidence.status) {
            (None, Status::Candidate) if evidence.held.is_some() => Some(Transition::Held),
            (None, Status::Candidate) => Some(Transition::Proposed),
            (Some(Status::Active), Status::Candidate) => Some(Transition::Held),
            (Some(Status::Retired), Status::Candidate) => Some(Transition::Proposed),
            (was, Status::Retired) if was != Some(Status::Retired) => Some(Transition::Retired),
            (was, Status::Active) if was != Some(Status::Active) => Some(Transition::Activated),
            (_, Status::Retired) => None,
            _ if before.map(|before| before.support) != Some(evidence.support) => {
                Some(Transition::Confirmed)
            }
            _ => None,
        }
    }

    pub(super) fn told(&self, task_type: &str) -> Option<Learnt> {
        let turn = self.turn()?;
        let why = match turn {
            Transition::Held => self.lesson.evidence.held.clone(),
            _ => self.why.clone(),
        };
        Some(Learnt {
            id: self.lesson.id.clone(),
            task_type: task_type.to_owned(),
            turn,
            text: self.lesson.text(),
            why,
        })
    }

    /// Whether it has to be written.
    pub(super) fn changed(&self) -> bool {
        self.before.as_ref() != Some(&self.lesson)
    }

    /// Keeps it from being told, unless a person stands by it.
    pub(super) fn hold(&mut self, why: &str) {
        hold(&mut self.lesson.evidence, why);
    }

    pub(super) fn draft(self) -> Result<(Draft, Expect), Error> {
        let draft = self.lesson.into_draft(self.created)?;
        Ok((draft, self.expect))
    }
}

fn hold(evidence: &mut Evidence, why: &str) {
    let people = evidence.pinned || evidence.approved;
    if !people && evidence.status != Status::Retired && evidence.held.is_none() {
        evidence.status = Status::Candidate;
        evidence.held = Some(why.to_owned());
    }
}

/// A procedure or a rule that the runs show now.
pub(super) struct Mined<'a> {
    pub(super) procedures: &'a [Procedure],
    pub(super) rules: &'a [Rule],
}

/// Judges the skills and rules of one type of task by its runs.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) task_type: &'a str,
    /// With how each ended, the oldest first.
    pub(super) ended_runs: &'a [(Run, Outcome)],
    pub(super) settings: &'a LearnSettings,
    pub(super) now: Time,
    /// Whom older runs are for, as far as what was learnt before rests on them.
    pub(super) older: &'a BTreeMap<Id, Audience>,
}

impl Judge<'_> {
    /// A procedure that was mined just now.
    pub(super) fn skill(
        &self,
        procedure: Procedure,
        id: Id,
        known: Option<Versioned<Lesson>>,
    ) -> Option<Verdict> {
        let tools = procedure.tools();
        let sop = sop(self.task_type, &procedure);
        let mut evidence = Evidence {
            chance: procedure.ln_chance.exp(),
            last_confirmed: procedure.last_confirmed,
            ..Evidence::counted(
                Status::Candidate,
                procedure.runs.len(),
                procedure.with,
                procedure.without,
            )
        };
        let Some(known) = known else {
            evidence.status = self.status_from_evidence(&evidence);
            self.hold_disused(&mut evidence, &[tools], &procedure.context);
            return Some(fresh(
                id,
                LessonBody::Skill(sop),
                evidence,
                procedure.runs,
                procedure.audience,
            ));
        };
        let before = known.value.evidence.clone();
        let tool_orders = tool_orders(tools, &before);
        let mut runs = procedure.runs;
        if tool_orders.len() > 1 {
            let audience = &known.value.audience;
            let (counted, of_all) = self.counted(audience, &tool_orders, &[]);
            (evidence, runs) = (
                Evidence {
                    chance: evidence.chance,
                    ..counted
                },
                of_all,
            );
        }
        keep_what_people_said(&mut evidence, &before);
        let mut lesson = known.value.clone();
        if !evidence.edited && evidence.worded_by.is_none() {
            lesson.body = LessonBody::Skill(sop);
        }
        let why = self.retire_or_revive(&mut evidence, &before, &tool_orders);
        self.hold_disused(&mut evidence, &tool_orders, &procedure.context);
        lesson.runs = runs;
        Some(judged(known, lesson, evidence, why))
    }

    /// A rule that was found just now.
    pub(super) fn rule(
        &self,
        rule: Rule,
        id: Id,
        known: Option<Versioned<Lesson>>,
    ) -> Option<Verdict> {
        let status = match self.settings.approval {
            true => Status::Candidate,
            false => Status::Active,
        };
        let mut evidence = Evidence {
            chance: rule.ln_chance.exp(),
            last_confirmed: rule.last_confirmed,
            ..Evidence::counted(status, rule.runs.len(), rule.with, rule.without)
        };
        let (runs, audience) = (rule.runs.clone(), rule.audience.clone());
        let body = LessonBody::Rule(RuleBody::new(self.task_type, rule));
        let Some(known) = known else {
            return Some(fresh(id, body, evidence, runs, audience));
        };
        let before = known.value.evidence.clone();
        keep_what_people_said(&mut evidence, &before);
        let by_person = before
            .retired
            .as_ref()
            .is_some_and(|retired| retired.by_person);
        if by_person {
            evidence.status = Status::Retired;
            evidence.retired = before.retired.clone();
        } else if evidence.approved {
            evidence.status = Status::Active;
        }
        // Its audience is part of what it is known by: it is the same as before.
        let mut lesson = known.value.clone();
        lesson.body = body;
        lesson.runs = runs;
        Some(judged(known, lesson, evidence, None))
    }

    /// One that was learnt before and that these runs do not show by themselves.
    pub(super) fn old(&self, known: Versioned<Lesson>, mined: &Mined<'_>) -> Option<Verdict> {
        let before = &known.value.evidence;
        if before.status == Status::Retired && before.retired.as_ref().is_some_and(|r| r.by_person)
        {
            return None;
        }
        match &known.value.body {
            LessonBody::Rule(_) => self.old_rule(known, mined),
            LessonBody::Skill(_) => Some(self.old_skill(known, mined)),
        }
    }

    fn old_rule(&self, known: Versioned<Lesson>, mined: &Mined<'_>) -> Option<Verdict> {
        let mut evidence = known.value.evidence.clone();
        let LessonBody::Rule(rule) = &known.value.body else {
            return None;
        };
        if evidence.status == Status::Retired {
            return None;
        }
        let shared = known.value.audience == Audience::Everyone;
        let mut twins = mined.rules.iter();
        let has_twin = twins.any(|other| {
            let same = other.tool == rule.tool && other.condition == rule.condition;
            same && (other.audience == Audience::Everyone) != shared
        });
        let why = match (shared, has_twin) {
            _ if self.is_of_one_user(&known.value) => Some(ONE_USER.to_owned()),
            // The runs show it for one user only. That user has a rule with the new evidence; what
            // everybody is told stays as several users' runs made it.
            (true, true) => None,
            (false, true) => Some("it became a shared rule".to_owned()),
            (_, false) => Some(format!(
                "the last {} runs no longer show it",
                self.ended_runs.len()
            )),
        };
        if let Some(why) = why.as_ref().filter(|_| !evidence.pinned) {
            self.retire(&mut evidence, why);
        }
        let lesson = self.given_back(&known.value);
        Some(judged(known, lesson, evidence, why))
    }

    fn old_skill(&self, known: Versioned<Lesson>, mined: &Mined<'_>) -> Verdict {
        let (before, mut lesson) = (known.value.evidence.clone(), known.value.clone());
        lesson.audience = self.given_back(&known.value).audience;
        let tools = lesson.tools();
        let tool_orders = tool_orders(tools.clone(), &before);
        let successes = self.successes();
        let lacks = missing(&tools, &successes);
        let beside = usual_beside(&tools, &successes);
        let audience = &known.value.audience;
        let (mut evidence, runs) = self.counted(audience, &tool_orders, &beside);
        if known.value.audience == Audience::Everyone && self.owner_of(&runs).is_some() {
            // One user's runs are not counted for what everybody is told.
            evidence = before.clone();
            evidence.held = None;
        } else if !runs.is_empty() {
            lesson.runs = runs.clone();
        }
        keep_what_people_said(&mut evidence, &before);
        evidence.chance = before.chance;
        let mut why = self.retire_or_revive(&mut evidence, &before, &tool_orders);
        let live = evidence.status != Status::Retired && !evidence.pinned && !evidence.approved;
        let reason = self.out_of_place(&known.value, &runs, mined);
        if let Some(reason) = reason.filter(|_| live) {
            self.retire(&mut evidence, &reason);
            why = Some(reason);
        }
        if !lacks.is_empty() {
            let lacks: Vec<String> = lacks.iter().map(Missing::text).collect();
            hold(&mut evidence, &format!("incomplete: {}", lacks.join("; ")));
        }
        self.hold_disused(&mut evidence, &tool_orders, &[]);
        judged(known, lesson, evidence, why)
    }

    /// Why a procedure that the runs do not show by themselves must go, if it must.
    fn out_of_place(&self, lesson: &Lesson, runs: &[Id], mined: &Mined<'_>) -> Option<String> {
        if self.is_of_one_user(lesson) {
            return Some(ONE_USER.to_owned());
        }
        let replaced = mined.procedures.iter().any(|other| {
            let (own, others) = (lesson.tools(), other.tools());
            let same_users =
                other.audience == Audience::Everyone || other.audience == lesson.audience;
            same_users && (is_part(&own, &others) || is_part(&others, &own))
        });
        if replaced {
            return Some("another procedure took its place".to_owned());
        }
        runs.is_empty()
            .then(|| format!("none of the last {} runs did it", self.ended_runs.len()))
    }

    /// The tools of each successful run.
    fn successes(&self) -> Vec<Vec<&str>> {
        let good = self.ended_runs.iter();
        let good = good.filter(|(_, outcome)| *outcome == Outcome::Success);
        good.map(|(run, _)| run.done()).collect()
    }

    /// Whom these runs are for, as far as they are still there, if that is not everyone.
    fn owner_of(&self, runs: &[Id]) -> Option<Audience> {
        let audiences = runs.iter().filter_map(|id| {
            let newest = self.ended_runs.iter().find(|(run, _)| run.id == *id);
            let newest = newest.map(|(run, _)| &run.audience);
            newest.or_else(|| self.older.get(id))
        });
        Audience::of_sources(audiences).filter(|audience| *audience != Audience::Everyone)
    }

    /// Whether everybody is told something that one user's runs show, and nobody else's.
    fn is_of_one_user(&self, lesson: &Lesson) -> bool {
        lesson.audience == Audience::Everyone && self.owner_of(&lesson.runs).is_some()
    }

    /// The lesson as that user's, if everybody is told what one user's runs show.
    fn given_back(&self, lesson: &Lesson) -> Lesson {
        let mut lesson = lesson.clone();
        if lesson.audience == Audience::Everyone {
            lesson.audience = self.owner_of(&lesson.runs).unwrap_or(Audience::Everyone);
        }
        lesson
    }

    /// Holds back a procedure of which the newest successes leave a step out.
    fn hold_disused(
        &self,
        evidence: &mut Evidence,
        tool_orders: &[Vec<String>],
        context: &[(String, String)],
    ) {
        let active = evidence.status == Status::Active;
        if let Some(why) = disused(&uses(tool_orders, context, self.ended_runs)).filter(|_| active)
        {
            hold(evidence, &why);
        }
    }

    /// What the runs that this audience may see say about these tools now, done in any of these ways;
    /// for everyone, the runs of all users. A run that died at a tool that is usual beside them was on
    /// its way, too.
    pub(super) fn counted(
        &self,
        audience: &Audience,
        tool_orders: &[Vec<String>],
        beside: &[String],
    ) -> (Evidence, Vec<Id>) {
        let (mut with, mut without) = (Rate::default(), Rate::default());
        let mut runs = Vec::new();
        let mut last: Option<Time> = None;
        let (viewer, is_shared) = (audience.viewer(), *audience == Audience::Everyone);
        for (run, outcome) in self.ended_runs {
            let is_counted = is_shared || viewer.sees(&run.audience);
            if *outcome == Outcome::Abandoned || !is_counted {
                continue;
            }
            let good = *outcome == Outcome::Success;
            let followed = tool_orders
                .iter()
                .any(|tools| follows(run, *outcome, tools))
                || died_at(run, *outcome, beside);
            let rate = match followed {
                true => &mut with,
                false => &mut without,
            };
            rate.of += 1;
            rate.good += usize::from(good);
            let done = run.done();
            if good && tool_orders.iter().any(|tools| contains(&done, tools)) {
                runs.push(run.id.clone());
                last = last.max(Some(run.last));
            }
        }
        let evidence = Evidence {
            last_confirmed: last,
            ..Evidence::counted(Status::Candidate, runs.len(), with, without)
        };
        (evidence, runs)
    }

    /// Whether there is enough for it to be told to agents.
    fn status_from_evidence(&self, evidence: &Evidence) -> Status {
        let sure = evidence.interval.0 >= ACTIVE_RATE;
        let enough = evidence.support >= self.settings.active_runs && sure;
        match evidence.approved || enough && !self.settings.approval {
            true => Status::Active,
            false => Status::Candidate,
        }
    }

    fn retire(&self, evidence: &mut Evidence, why: &str) {
        evidence.status = Status::Retired;
        evidence.retired = Some(Retired {
            at: self.now,
            why: why.to_owned(),
            by_person: false,
        });
    }

    /// Where a skill stands that was there before; says why it goes, if it goes now.
    fn retire_or_revive(
        &self,
        evidence: &mut Evidence,
        before: &Evidence,
        tool_orders: &[Vec<String>],
    ) -> Option<String> {
        if let Some(retired) = &before.retired {
            evidence.status = Status::Retired;
            evidence.retired = Some(retired.clone());
            let since = self.followed(tool_orders, Some(retired.at));
            let good = since.iter().filter(|well| **well).count();
            let again =
                good >= self.settings.candidate_runs && wilson(good, since.len()).0 >= ACTIVE_RATE;
            if !retired.by_person && again {
                evidence.retired = None;
                evidence.status = self.status_from_evidence(evidence);
            }
            return None;
        }
        evidence.status = match before.status {
            Status::Active => Status::Active,
            _ => self.status_from_evidence(evidence),
        };
        if evidence.pinned {
            return None;
        }
        let why = regressed(&self.followed(tool_orders, None))?;
        self.retire(evidence, &why);
        Some(why)
    }

    /// How the runs went that followed it, the oldest first.
    fn followed(&self, tool_orders: &[Vec<String>], since: Option<Time>) -> Vec<bool> {
        let runs = self.ended_runs.iter().filter(|(run, outcome)| {
            *outcome != Outcome::Abandoned
                && since.is_none_or(|since| run.last > since)
                && tool_orders
                    .iter()
                    .any(|tools| follows(run, *outcome, tools))
        });
        runs.map(|(_, outcome)| *outcome == Outcome::Success)
            .collect()
    }
}

fn keep_what_people_said(evidence: &mut Evidence, before: &Evidence) {
    evidence.pinned = before.pinned;
    evidence.edited = before.edited;
    evidence.approved = before.approved;
    evidence.worded_by.clone_from(&before.worded_by);
    evidence.also.clone_from(&before.also);
}

/// The tools in their order, and in the others that count as the same.
pub(super) fn tool_orders(tools: Vec<String>, evidence: &Evidence) -> Vec<Vec<String>> {
    std::iter::once(tools)
        .chain(evidence.also.iter().cloned())
        .collect()
}

fn fresh(
    id: Id,
    body: LessonBody,
    evidence: Evidence,
    runs: Vec<Id>,
    audience: Audience,
) -> Verdict {
    Verdict {
        lesson: Lesson {
            id,
            body,
            evidence,
            runs,
            audience,
            version: 0,
        },
        expect: Expect::Absent,
        created: None,
        before: None,
        why: None,
    }
}

fn judged(
    known: Versioned<Lesson>,
    mut lesson: Lesson,
    evidence: Evidence,
    why: Option<String>,
) -> Verdict {
    lesson.evidence = evidence;
    Verdict {
        lesson,
        expect: known.expect,
        created: known.created,
        before: Some(known.value),
        why,
    }
}

fn is_part(part: &[String], whole: &[String]) -> bool {
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    contains(&whole, part)
}

fn sop(task_type: &str, procedure: &Procedure) -> Sop {
    let steps = procedure.steps.iter().map(|step| ToolSop {
        tool: step.tool.clone(),
        action: step.action(),
    });
    Sop {
        use_when: procedure.use_when(task_type),
        tool_sops: steps.collect(),
        preferences: procedure.preferences.join("; "),
        task_type: Some(task_type.to_owned()),
        derived_from: Vec::new(),
        shared: procedure.audience == Audience::Everyone,
    }
}

/// Kept for the review: a record of a skill or a rule that nobody learnt has no evidence.
pub(super) fn evidence_of(record: &Record) -> Option<Evidence> {
    let kept = record.metadata.get("evidence")?;
    serde_json::from_value(kept.clone()).ok()
}

#[cfg(test)]
mod tests;
