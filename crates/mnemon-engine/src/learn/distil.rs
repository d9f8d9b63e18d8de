//! From runs to skills and rules, each held to its record.

use std::collections::{BTreeMap, BTreeSet};

use mnemon_core::learn::{Findings, Outcome, Procedure, Rule, Run, Status, findings, rules};
use mnemon_core::{Audience, Ctx, Expect, Filter, Id, Invalid, Kind, Scope, Time, Viewer};

use super::books::{self, Diary, Unkept, Versioned};
use super::contest;
use super::judge::{Judge, Mined, Verdict, evidence_of};
use super::review::{Lesson, LessonBody};
use super::{LearnReport, Learning};
use crate::records::naming::{fixed_id, tag};
use crate::records::{Draft, Error};

/// What a look at one type of task came to.
pub(super) struct Look {
    task_type: String,
    pub(super) verdicts: Vec<Verdict>,
    unkept: Vec<Unkept>,
    /// When there will be more to say.
    next: Option<Time>,
}

impl Look {
    /// Adds what is worth telling to the report.
    pub(super) fn tell(&self, report: &mut LearnReport) {
        let told = self.verdicts.iter();
        let told = told.filter_map(|one| one.told(&self.task_type));
        report.learnt.extend(told);
        let held = self.verdicts.iter().filter_map(|one| one.lesson.held());
        let not_kept = self.unkept.iter().flat_map(|one| &one.list);
        let not_kept = not_kept.cloned().chain(held);
        report.list_not_kept(not_kept.collect());
    }
}

impl Learning<'_> {
    /// Makes everything due that an earlier version learnt and tells agents; says whether the diary
    /// changed.
    pub(super) async fn judge_again(&self, ctx: &Ctx, diary: &mut Diary) -> Result<bool, Error> {
        if !diary.is_outdated() {
            return Ok(false);
        }
        let most = self.memory.records().limits().learn_tasks * 10;
        let lessons = self.lessons(ctx, &Viewer::Tenant, None, Some(Status::Active), most);
        let lessons = lessons.await?;
        let learnt = lessons.iter().filter(|one| one.evidence.with.of > 0);
        let task_types = learnt.filter_map(Lesson::task_type).map(str::to_owned);
        diary.judge_again(task_types, ctx.now);
        Ok(true)
    }

    /// Looks at the types of task that are due, at most so many, those that wait longest first.
    /// While there are steps to read, only at those of which much is new: a long log is read
    /// through before it is looked at, and no type of task waits for its end.
    ///
    /// Whatever stops it on the way, they are still due, and doing it again yields the same.
    pub(super) async fn distil_due(
        &self,
        ctx: &Ctx,
        tasks: usize,
        report: &mut LearnReport,
    ) -> Result<(), Error> {
        let records = self.memory.records_of(Scope::Experience);
        let diary = books::diary(records, ctx).await?;
        let fresh_enough = records.limits().learn_fresh;
        let due = diary.value.to_look_at(ctx.now, report.more, fresh_enough);
        let mut looks: Vec<Look> = Vec::new();
        for task_type in due.iter().take(tasks) {
            let runs = books::newest_runs(records, ctx, task_type).await?;
            looks.push(self.look(ctx, task_type, runs).await?);
        }
        if looks.is_empty() {
            return Ok(());
        }
        let mut done = LearnReport::default();
        looks.iter().for_each(|look| look.tell(&mut done));
        let next: Vec<Option<Time>> = looks.iter().map(|look| look.next).collect();
        let (drafts, unkept) = drafts(looks)?;
        if !drafts.is_empty() {
            let procedural = self.memory.records_of(Scope::Procedural);
            procedural.put(ctx, drafts, None).await?;
        }
        report.tasks += next.len() as u64;
        report.learnt.extend(done.learnt);
        report.list_not_kept(done.not_kept);
        report.more |= due.len() > tasks;
        let mut now = books::diary(records, ctx).await?;
        if now.value.read != diary.value.read {
            // Somebody read on meanwhile, and there may be runs that were not looked at.
            report.more = true;
            return Ok(());
        }
        for (task_type, next) in due.iter().zip(next) {
            now.value.looked_at(task_type, next);
        }
        let mut books = books::unkept_drafts(records, ctx, unkept).await?;
        books.push(books::diary_draft(&now));
        records.put_screened(ctx, books, None).await?;
        Ok(())
    }

    /// What these runs say about each skill and rule. Nothing is written.
    pub(super) async fn look(
        &self,
        ctx: &Ctx,
        task_type: &str,
        runs: Vec<Run>,
    ) -> Result<Look, Error> {
        let settle_ms = self.memory.policies().learning().settle_ms;
        let (told, next) = ended(runs, ctx.now, settle_ms);
        let mut look = Look {
            task_type: task_type.to_owned(),
            verdicts: Vec::new(),
            unkept: Vec::new(),
            next,
        };
        for (circle, told) in circles(told) {
            self.look_at(ctx, circle.as_ref(), &told, &mut look).await?;
        }
        Ok(look)
    }

    /// What the runs of one circle say.
    async fn look_at(
        &self,
        ctx: &Ctx,
        circle: Option<&Audience>,
        told: &[(Run, Outcome)],
        look: &mut Look,
    ) -> Result<(), Error> {
        let settings = self.memory.policies().learning();
        let task_type = &look.task_type;
        let judge = Judge {
            task_type,
            ended_runs: told,
            settings: &settings,
            now: ctx.now,
            older: &BTreeMap::new(),
        };
        let Findings { kept, not_kept } = findings(told, &settings);
        let rules = rules(told);
        let mut ids: Vec<Id> = kept.iter().map(|one| skill_id(task_type, one)).collect();
        for rule in &rules {
            ids.push(rule_id(task_type, rule)?);
        }
        let mut there = self.known_lessons(ctx, task_type, &ids).await?;
        there.retain(|_, lesson| circle_of(&lesson.value.audience) == circle);
        let mined = Mined {
            procedures: &kept,
            rules: &rules,
        };
        let mut verdicts = Vec::new();
        for procedure in &kept {
            let known = take(&mut there, |lesson| is_same_skill(lesson, procedure));
            let id = skill_id(task_type, procedure);
            verdicts.extend(judge.skill(procedure.clone(), id, known));
        }
        for rule in &rules {
            let known = take(&mut there, |lesson| is_same_rule(lesson, rule));
            let id = rule_id(task_type, rule)?;
            verdicts.extend(judge.rule(rule.clone(), id, known));
        }
        let older = self.owners_of_older_runs(ctx, &there, told).await?;
        let judge = Judge {
            older: &older,
            ..judge
        };
        let old = there.into_values();
        verdicts.extend(old.filter_map(|old| judge.old(old, &mined)));
        contest::settle(&mut verdicts, told);
        look.verdicts.extend(verdicts);
        look.unkept
            .push(Unkept::new(&look.task_type, circle, not_kept));
        Ok(())
    }

    /// Whose the runs are that shared lessons rest on and that are not among the newest.
    async fn owners_of_older_runs(
        &self,
        ctx: &Ctx,
        lessons: &BTreeMap<Id, Versioned<Lesson>>,
        newest: &[(Run, Outcome)],
    ) -> Result<BTreeMap<Id, Audience>, Error> {
        let newest: BTreeSet<&Id> = newest.iter().map(|(run, _)| &run.id).collect();
        let shared = lessons.values().map(|known| &known.value);
        let shared = shared.filter(|lesson| {
            lesson.audience == Audience::Everyone && lesson.evidence.status != Status::Retired
        });
        let older = shared.flat_map(|lesson| &lesson.runs);
        let older: BTreeSet<&Id> = older.filter(|id| !newest.contains(id)).collect();
        let older: Vec<Id> = older.into_iter().cloned().collect();
        let records = self.memory.records_of(Scope::Experience);
        let runs = books::runs(records, ctx, &older).await?.into_iter();
        Ok(runs.map(|run| (run.value.id, run.value.audience)).collect())
    }

    /// What was learnt about this type of task before, and what is there under these ids.
    async fn known_lessons(
        &self,
        ctx: &Ctx,
        task_type: &str,
        ids: &[Id],
    ) -> Result<BTreeMap<Id, Versioned<Lesson>>, Error> {
        let procedural = self.memory.records_of(Scope::Procedural);
        let filter = Filter {
            scopes: vec![Scope::Procedural],
            kinds: vec![Kind::Skill, Kind::Rule],
            tags: vec![tag("task", task_type)],
            ..Filter::all_of_tenant()
        };
        let mut records = procedural
            .latest(ctx, filter, procedural.limits().page)
            .await?;
        // What somebody wrote by hand is not ours to judge.
        records.retain(|record| evidence_of(record).is_some_and(|known| known.with.of > 0));
        records.extend(procedural.get(ctx, ids).await?.into_iter().flatten());
        let known = records.into_iter().filter_map(|record| {
            let (expect, created) = (Expect::Version(record.version), Some(record.created));
            let value = Lesson::of(record)?;
            let id = value.id.clone();
            Some((
                id,
                Versioned {
                    value,
                    expect,
                    created,
                },
            ))
        });
        Ok(known.collect())
    }
}

/// The agent or team that an audience is; `None` for users and everyone, who learn together.
pub(super) fn circle_of(audience: &Audience) -> Option<&Audience> {
    Some(audience).filter(|audience| audience.is_closed())
}

/// The runs that may be learnt from together: those of users and of everyone, and those of each
/// agent and each team by themselves. Nobody else sees the values of such a run.
fn circles(told: Vec<(Run, Outcome)>) -> BTreeMap<Option<Audience>, Vec<(Run, Outcome)>> {
    let mut circles = BTreeMap::from([(None, Vec::new())]);
    for (run, outcome) in told {
        let circle = circle_of(&run.audience).cloned();
        circles.entry(circle).or_default().push((run, outcome));
    }
    circles
}

/// The runs that have ended, and when the next of the others will have.
pub(super) fn ended(
    runs: Vec<Run>,
    now: Time,
    settle_ms: i64,
) -> (Vec<(Run, Outcome)>, Option<Time>) {
    let mut next: Option<Time> = None;
    let mut told = Vec::new();
    for run in runs {
        match run.outcome(now, settle_ms) {
            Some(outcome) => told.push((run, outcome)),
            None => {
                let ends = run.last.plus_millis(settle_ms);
                next = Some(next.map_or(ends, |known| known.min(ends)));
            }
        }
    }
    (told, next)
}

/// What is to be written: the skills and rules that changed, and what was not kept.
#[expect(
    clippy::type_complexity,
    reason = "two lists that are made in one pass"
)]
fn drafts(looks: Vec<Look>) -> Result<(Vec<(Draft, Expect)>, Vec<Unkept>), Error> {
    let (mut drafts, mut unkept) = (Vec::new(), Vec::new());
    let mut written: BTreeSet<Id> = BTreeSet::new();
    for look in looks {
        for verdict in look.verdicts.into_iter().filter(Verdict::changed) {
            let (draft, expect) = verdict.draft()?;
            // Of a lesson that is tagged with two types of task the first says what becomes of
            // it: a second version in the same commit would be refused, and all with it.
            let first = |id: &Id| written.insert(id.clone());
            if draft.id.as_ref().is_none_or(first) {
                drafts.push((draft, expect));
            }
        }
        unkept.extend(look.unkept);
    }
    Ok((drafts, unkept))
}

/// Takes the lesson that is meant out of those that are known.
fn take(
    there: &mut BTreeMap<Id, Versioned<Lesson>>,
    is_meant: impl Fn(&Lesson) -> bool,
) -> Option<Versioned<Lesson>> {
    let mut known = there.iter();
    let (id, _) = known.find(|(_, known)| is_meant(&known.value))?;
    let id = id.clone();
    there.remove(&id)
}

/// The same steps for the same user. Ids of earlier versions did not tell users apart.
fn is_same_skill(lesson: &Lesson, procedure: &Procedure) -> bool {
    lesson.audience == procedure.audience && lesson.tools() == procedure.tools()
}

/// The same tool and condition for the same user.
fn is_same_rule(lesson: &Lesson, rule: &Rule) -> bool {
    match &lesson.body {
        LessonBody::Rule(known) => {
            let same = known.tool == rule.tool && known.condition == rule.condition;
            same && lesson.audience == rule.audience
        }
        LessonBody::Skill(_) => false,
    }
}

/// A user's own procedure and the one for everybody are two.
fn skill_id(task_type: &str, procedure: &Procedure) -> Id {
    let tools = procedure.tools();
    let whose = procedure.audience.key();
    let names = [Some(task_type), whose.as_deref()].into_iter();
    let names = names.chain(tools.iter().map(|tool| Some(tool.as_str())));
    let names: Vec<Option<&str>> = names.collect();
    fixed_id("learnt-skill", &names)
}

/// A user's own rule and the one for everybody are two.
fn rule_id(task_type: &str, rule: &Rule) -> Result<Id, Invalid> {
    let condition = serde_json::to_string(&rule.condition)
        .map_err(|error| Invalid::new("condition", error.to_string()))?;
    let whose = rule.audience.key();
    let names = [
        Some(task_type),
        whose.as_deref(),
        Some(rule.tool.as_str()),
        Some(condition.as_str()),
    ];
    Ok(fixed_id("learnt-rule", &names))
}
