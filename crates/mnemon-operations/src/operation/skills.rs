//! Operations on the skills and rules that were learnt, and on learning itself.

use mnemon_core::learn::Status;
use mnemon_core::{Id, Invalid, Owner, limits};
use mnemon_engine::Sop;
use mnemon_engine::learn::{Improved, LearnReport, LearnStatus, Lesson, Review};
use serde::{Deserialize, Serialize};

use super::learning::task_type;
use super::notes::user;
use super::records::id;
use super::{
    Access, Arguments, Field, Interface, LearnDryRun, LearnImprove, LearnRun, LearnState,
    Operation, SkillApprove, SkillEdit, SkillExport, SkillImport, SkillList, SkillPin, SkillReject,
    SkillRetire, SkillShow, SkillUnpin, Spelling,
};
use crate::{Error, api};

/// Skills and rules that are listed when nobody says.
const LISTED: usize = 100;
/// Steps that a dry run reads when nobody says.
const DRY_RUN_STEPS: usize = 100_000;
/// How often others may be faster before the rest is left to them.
const TRIES: usize = 16;
/// Skills in one import.
const IMPORTED: usize = 1000;

#[derive(Debug, Serialize, Deserialize)]
pub struct Lessons {
    pub skills: Vec<Lesson>,
}

impl Operation for SkillList {
    const COMMAND: &'static str = "skill list";
    type Answer = Lessons;

    fn fields() -> Vec<Field> {
        let status = [Status::Candidate, Status::Active, Status::Retired];
        let status = status.iter().map(|status| status.as_str());
        vec![
            task_type(),
            Field::one_of("status", status, "Status of the skills and rules"),
            user("Only skills and rules that this user may see; without it, those of all users"),
            Field::whole("limit", 1, limits::PAGE as u64, "Maximum number of results")
                .default("100"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Lessons, Error> {
        let task_type = arguments.text("task_type");
        let status = arguments.text("status").map(|word| word.parse::<Status>());
        let limit = arguments.whole("limit").unwrap_or(LISTED);
        let viewer = access.viewer(&arguments.take_owner());
        let learning = access.memory.learning();
        let skills = learning.lessons(
            access.ctx,
            &viewer,
            task_type.as_deref(),
            status.transpose()?,
            limit,
        );
        Ok(Lessons {
            skills: skills.await?,
        })
    }
}

fn of_skill() -> Vec<Field> {
    vec![id().positional(Spelling::Positional, "ID")]
}

impl Operation for SkillShow {
    const COMMAND: &'static str = "skill show";
    type Answer = Lesson;

    fn fields() -> Vec<Field> {
        of_skill()
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Lesson, Error> {
        let id = access.id(&mut arguments, "id").await?;
        Ok(access.memory.learning().lesson(access.ctx, &id).await?)
    }
}

async fn review(
    access: &Access<'_>,
    mut arguments: Arguments,
    review: Review,
) -> Result<Lesson, Error> {
    if matches!(
        review,
        Review::Edit {
            use_when: None,
            preferences: None
        }
    ) {
        let what = "is missing: give it, or preferences";
        return Err(Invalid::new("use_when", what).into());
    }
    let id = access.id(&mut arguments, "id").await?;
    let learning = access.memory.learning();
    learning.review(access.ctx, &id, review).await?;
    Ok(learning.lesson(access.ctx, &id).await?)
}

/// Each row: what a person says of a skill, the command, more fields, and the review.
macro_rules! reviews {
    ($($name:ident $command:literal $more:expr, $review:expr;)+) => {
        $(
            impl Operation for $name {
                const COMMAND: &'static str = $command;
                type Answer = Lesson;

                fn fields() -> Vec<Field> {
                    [of_skill(), $more].concat()
                }

                async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Lesson, Error> {
                    let said: fn(&Arguments) -> Review = $review;
                    let said = said(&arguments);
                    review(access, arguments, said).await
                }
            }
        )+
    };
}

fn why() -> Vec<Field> {
    let why = Field::text("why", limits::LEARN_VALUE_CHARS, "Reason");
    vec![why.prose().value("TEXT")]
}

fn wording() -> Vec<Field> {
    let text = |name, about| Field::text(name, limits::LEARN_VALUE_CHARS, about);
    let fields = [
        text("use_when", "Situation in which to use it"),
        text("preferences", "Preferences to follow"),
    ];
    let fields = fields.map(|field| field.prose().value("TEXT"));
    fields.into()
}

reviews! {
    SkillApprove "skill approve" vec![], |_| Review::Approve;
    SkillReject "skill reject" why(), |given| Review::Reject { why: given.text("why") };
    SkillRetire "skill retire" why(), |given| Review::Retire { why: given.text("why") };
    SkillPin "skill pin" vec![], |_| Review::Pin;
    SkillUnpin "skill unpin" vec![], |_| Review::Unpin;
    SkillEdit "skill edit" wording(), |given| Review::Edit {
        use_when: given.text("use_when"),
        preferences: given.text("preferences"),
    };
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Exported {
    pub skills: Vec<Sop>,
}

impl Operation for SkillExport {
    const COMMAND: &'static str = "skill export";
    type Answer = Exported;

    fn fields() -> Vec<Field> {
        vec![
            task_type(),
            user("Only skills that this user may see; without it, those of all users"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Exported, Error> {
        let task_type = arguments.text("task_type");
        let viewer = access.viewer(&arguments.take_owner());
        let (memory, ctx) = (access.memory, access.ctx);
        let skills = api::skill::export::skills(memory, ctx, &viewer, task_type.as_deref());
        Ok(Exported {
            skills: skills.await?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Imported {
    pub ids: Vec<Id>,
}

impl Operation for SkillImport {
    const COMMAND: &'static str = "skill import";
    type Answer = Imported;

    fn fields() -> Vec<Field> {
        let skills = Field::json("skills", "A list of skills, as an export has them").required();
        vec![
            skills.only(Interface::Http),
            user("User who owns them; without it, they are shared by all users"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Imported, Error> {
        let owner = access.owned(Owner {
            user: arguments.take_text("user"),
            ..Owner::default()
        });
        let skills: Vec<Sop> =
            super::arguments::read(arguments.take("skills").unwrap_or_default())?;
        if skills.len() > IMPORTED {
            let what = format!("are {}; at most {IMPORTED} are allowed", skills.len());
            return Err(Invalid::new("skills", what).into());
        }
        let ids = api::skill::import::run(access.memory, access.ctx, owner.user, skills).await?;
        Ok(Imported { ids })
    }
}

fn limit(about: &'static str, default: &'static str) -> Vec<Field> {
    vec![Field::whole("limit", 1, u64::from(u32::MAX), about).default(default)]
}

impl Operation for LearnRun {
    const COMMAND: &'static str = "learn run";
    type Answer = LearnReport;

    fn fields() -> Vec<Field> {
        limit("Maximum number of steps to read", "all")
    }

    /// In slices, so that other processes get their turn in between.
    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<LearnReport, Error> {
        let mut all = LearnReport::default();
        let mut left = arguments.whole("limit").unwrap_or(usize::MAX);
        let mut contended = 0;
        loop {
            let steps = left.min(limits::LEARN_SLICE);
            let slice = access.memory.learning().slice(access.ctx, steps).await?;
            contended += usize::from(slice.contended);
            left = left.saturating_sub(usize::try_from(slice.steps).unwrap_or(usize::MAX));
            all.add(slice);
            (access.watch)(all.steps, None);
            if !all.more || left == 0 || contended > TRIES {
                return Ok(all);
            }
        }
    }
}

impl Operation for LearnState {
    const COMMAND: &'static str = "learn status";
    type Answer = LearnStatus;

    async fn run(access: &Access<'_>, _: Arguments) -> Result<LearnStatus, Error> {
        Ok(access.memory.learning().status(access.ctx).await?)
    }
}

impl Operation for LearnDryRun {
    const COMMAND: &'static str = "learn dry-run";
    type Answer = LearnReport;

    fn fields() -> Vec<Field> {
        limit("Maximum number of steps to read", "100000")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<LearnReport, Error> {
        let limit = arguments.whole("limit").unwrap_or(DRY_RUN_STEPS);
        Ok(access.memory.learning().dry_run(access.ctx, limit).await?)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Reworded {
    pub skills: Vec<Improved>,
}

impl Operation for LearnImprove {
    const COMMAND: &'static str = "learn improve";
    type Answer = Reworded;

    fn fields() -> Vec<Field> {
        limit("Maximum number of skills", "20")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Reworded, Error> {
        let limit = arguments.whole("limit").unwrap_or(api::learn::IMPROVED);
        let skills = api::learn::improve(access.memory, access.ctx, limit).await?;
        Ok(Reworded { skills })
    }
}
