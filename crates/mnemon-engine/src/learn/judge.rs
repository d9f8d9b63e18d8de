//! What the runs say about a skill or a rule: it comes, it stays, it goes.

use mnemon_core::learn::{
    Evidence, LearnSettings, Outcome, Procedure, Rate, Retired, Rule, Run, Status, contains,
    follows, regressed, wilson,
};
use mnemon_core::{Expect, Id, Record, Time};

use super::kept::Versioned;
use super::review::{Lesson, LessonBody, RuleBody};
use super::{Learnt, Turn};
use crate::scoped::{Sop, ToolSop};
use crate::{Draft, Error};

/// Half of the runs must succeed with it, as sure as 95 %, before a skill is active by itself.
const ACTIVE_RATE: f64 = 0.5;

/// A skill or a rule as it will be.
pub(super) struct Verdict {
    pub(super) lesson: Lesson,
    pub(super) expect: Expect,
    created: Option<Time>,
    /// What happened to it; `None`: nothing worth telling, but it may have to be written.
    pub(super) turn: Option<(Turn, Option<String>)>,
    pub(super) changed: bool,
}

impl Verdict {
    pub(super) fn told(&self, task_type: &str) -> Option<Learnt> {
        let (turn, why) = self.turn.clone()?;
        Some(Learnt {
            id: self.lesson.id.clone(),
            task_type: task_type.to_owned(),
            turn,
            text: self.lesson.text(),
            why,
        })
    }

    pub(super) fn draft(self) -> Result<(Draft, Expect), Error> {
        let draft = self.lesson.into_draft(self.created)?;
        Ok((draft, self.expect))
    }
}

/// Where skills and rules of one type of task are judged.
pub(super) struct Bench<'a> {
    pub(super) task_type: &'a str,
    /// The oldest first.
    pub(super) told: &'a [(Run, Outcome)],
    pub(super) settings: &'a LearnSettings,
    pub(super) now: Time,
}

impl Bench<'_> {
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
            evidence.status = self.grown(&evidence);
            return Some(self.fresh(
                id,
                LessonBody::Skill(sop),
                evidence,
                procedure.runs,
                procedure.user,
            ));
        };
        let before = known.value.evidence.clone();
        let ways = ways(tools, &before);
        let mut runs = procedure.runs;
        if ways.len() > 1 {
            let (counted, of_all) = self.counted(&ways);
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
            lesson.user = procedure.user;
        }
        let why = self.retire_or_revive(&mut evidence, &before, &ways);
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
        let (runs, user) = (rule.runs.clone(), rule.user.clone());
        let body = LessonBody::Rule(RuleBody::new(self.task_type, rule));
        let Some(known) = known else {
            return Some(self.fresh(id, body, evidence, runs, user));
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
        let mut lesson = known.value.clone();
        if !evidence.edited && evidence.worded_by.is_none() {
            lesson.body = body;
        }
        lesson.runs = runs;
        Some(judged(known, lesson, evidence, None))
    }

    /// One that was learnt before and that these runs do not show by themselves.
    pub(super) fn old(&self, known: Versioned<Lesson>, mined: &[Vec<String>]) -> Option<Verdict> {
        let before = known.value.evidence.clone();
        if before.status == Status::Retired && before.retired.as_ref().is_some_and(|r| r.by_person)
        {
            return None;
        }
        let mut lesson = known.value.clone();
        match &lesson.body {
            LessonBody::Rule(_) => {
                if before.pinned || before.status == Status::Retired {
                    return None;
                }
                let mut evidence = before;
                let why = format!("the last {} runs do not show it any more", self.told.len());
                self.retire(&mut evidence, &why);
                Some(judged(known, lesson, evidence, Some(why)))
            }
            LessonBody::Skill(sop) => {
                let tools: Vec<String> = sop.tool_sops.iter().map(|s| s.tool.clone()).collect();
                let ways = ways(tools.clone(), &before);
                let (mut evidence, runs) = self.counted(&ways);
                keep_what_people_said(&mut evidence, &before);
                evidence.chance = before.chance;
                let mut why = self.retire_or_revive(&mut evidence, &before, &ways);
                let replaced = mined
                    .iter()
                    .any(|other| is_part(&tools, other) || is_part(other, &tools));
                let live =
                    evidence.status != Status::Retired && !evidence.pinned && !evidence.approved;
                if live && (replaced || runs.is_empty()) {
                    let reason = match replaced {
                        true => "another procedure took its place".to_owned(),
                        false => format!("none of the last {} runs did it", self.told.len()),
                    };
                    self.retire(&mut evidence, &reason);
                    why = Some(reason);
                }
                lesson.runs = match runs.is_empty() {
                    true => lesson.runs,
                    false => runs,
                };
                Some(judged(known, lesson, evidence, why))
            }
        }
    }

    fn fresh(
        &self,
        id: Id,
        body: LessonBody,
        evidence: Evidence,
        runs: Vec<Id>,
        user: Option<String>,
    ) -> Verdict {
        let turn = match evidence.status {
            Status::Active => Turn::Activated,
            _ => Turn::Proposed,
        };
        Verdict {
            lesson: Lesson {
                id,
                body,
                evidence,
                runs,
                user,
                version: 0,
            },
            expect: Expect::Absent,
            created: None,
            turn: Some((turn, None)),
            changed: true,
        }
    }

    /// What the runs say about these tools now, done in any of these ways.
    pub(super) fn counted(&self, ways: &[Vec<String>]) -> (Evidence, Vec<Id>) {
        let (mut with, mut without) = (Rate::default(), Rate::default());
        let mut runs = Vec::new();
        let mut last: Option<Time> = None;
        for (run, outcome) in self.told {
            if *outcome == Outcome::Abandoned {
                continue;
            }
            let good = *outcome == Outcome::Success;
            let rate = match ways.iter().any(|tools| follows(run, *outcome, tools)) {
                true => &mut with,
                false => &mut without,
            };
            rate.of += 1;
            rate.good += usize::from(good);
            let done = run.done();
            if good && ways.iter().any(|tools| contains(&done, tools)) {
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
    fn grown(&self, evidence: &Evidence) -> Status {
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
        ways: &[Vec<String>],
    ) -> Option<String> {
        if let Some(retired) = &before.retired {
            evidence.status = Status::Retired;
            evidence.retired = Some(retired.clone());
            let since = self.followed(ways, Some(retired.at));
            let good = since.iter().filter(|well| **well).count();
            let again =
                good >= self.settings.candidate_runs && wilson(good, since.len()).0 >= ACTIVE_RATE;
            if !retired.by_person && again {
                evidence.retired = None;
                evidence.status = self.grown(evidence);
            }
            return None;
        }
        evidence.status = match before.status {
            Status::Active => Status::Active,
            _ => self.grown(evidence),
        };
        if evidence.pinned {
            return None;
        }
        let why = regressed(&self.followed(ways, None))?;
        self.retire(evidence, &why);
        Some(why)
    }

    /// How the runs went that followed it, the oldest first.
    fn followed(&self, ways: &[Vec<String>], since: Option<Time>) -> Vec<bool> {
        let runs = self.told.iter().filter(|(run, outcome)| {
            *outcome != Outcome::Abandoned
                && since.is_none_or(|since| run.last > since)
                && ways.iter().any(|tools| follows(run, *outcome, tools))
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
pub(super) fn ways(tools: Vec<String>, evidence: &Evidence) -> Vec<Vec<String>> {
    std::iter::once(tools)
        .chain(evidence.also.iter().cloned())
        .collect()
}

fn judged(
    known: Versioned<Lesson>,
    mut lesson: Lesson,
    evidence: Evidence,
    why: Option<String>,
) -> Verdict {
    let before = &known.value.evidence;
    let turn = match (before.status, evidence.status) {
        (was, Status::Retired) if was != Status::Retired => Some((Turn::Retired, why)),
        (was, Status::Active) if was != Status::Active => Some((Turn::Activated, None)),
        (Status::Retired, Status::Candidate) => Some((Turn::Proposed, None)),
        _ if before.support != evidence.support && evidence.status != Status::Retired => {
            Some((Turn::Confirmed, None))
        }
        _ => None,
    };
    lesson.evidence = evidence;
    Verdict {
        changed: lesson != known.value,
        lesson,
        expect: known.expect,
        created: known.created,
        turn,
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
        shared: procedure.user.is_none(),
    }
}

/// Kept for the review: a record of a skill or a rule that nobody learnt has no evidence.
pub(super) fn evidence_of(record: &Record) -> Option<Evidence> {
    let kept = record.metadata.get("evidence")?;
    serde_json::from_value(kept.clone()).ok()
}
