//! `mnemon skill`

use std::path::{Path, PathBuf};

use mnemon_core::learn::{Evidence, Rate};
use mnemon_core::{Audience, Invalid};
use mnemon_engine::learn::{Lesson, LessonBody};
use mnemon_engine::{FoundSkill, Sop};
use serde_json::json;

use super::door::Door;
use super::shared::{Shared, Shown, call};
use super::{input, text};
use mnemon_operations::operation::{
    Exported, Imported, Lessons, SkillApprove, SkillEdit, SkillExport, SkillImport, SkillList,
    SkillPin, SkillReject, SkillRetire, SkillSearch, SkillShow, SkillUnpin, Skills,
};
use mnemon_operations::{Error, api, wiring};

/// Manage the skills and rules that were learnt
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon skill list --status candidate\n  \
    mnemon skill show ID\n  \
    mnemon skill search deploy the app --task-type deploy_app\n  \
    mnemon skill approve ID\n  \
    mnemon skill edit ID --preferences \"use pnpm\"\n  \
    mnemon skill export ./skills\n  \
    mnemon skill import ./skills --user ann")]
pub(super) enum Args {
    /// List skills and rules, the newest first
    #[command(visible_alias = "ls")]
    List(Shared<SkillList>),
    /// Show a skill or rule with its evidence
    Show(Shared<SkillShow>),
    /// Find the skills and rules for a task, as agents get them
    Search(Shared<SkillSearch>),
    /// Approve a skill or rule: agents get it from now on
    Approve(Shared<SkillApprove>),
    /// Reject a skill or rule: agents do not get it, and it is not learnt again
    Reject(Shared<SkillReject>),
    /// Retire a skill or rule that is no longer useful
    Retire(Shared<SkillRetire>),
    /// Protect a skill or rule from automatic retirement
    Pin(Shared<SkillPin>),
    /// Allow automatic retirement again
    Unpin(Shared<SkillUnpin>),
    /// Edit the wording of a skill; learning keeps your text
    Edit(Shared<SkillEdit>),
    /// Write the active skills as folders with a SKILL.md, or as JSON to stdout
    Export {
        /// Folder to write to; without it, JSON is printed
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
        #[command(flatten)]
        which: Shared<SkillExport>,
    },
    /// Import skills: a folder of SKILL.md folders, or a JSON file (- for stdin)
    Import {
        #[arg(value_name = "FOLDER|FILE|-")]
        from: PathBuf,
        #[command(flatten)]
        skills: Shared<SkillImport>,
    },
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::List(args) => args.run(door).await,
        Args::Show(args) => args.run(door).await,
        Args::Search(args) => args.run(door).await,
        Args::Approve(args) => args.run(door).await,
        Args::Reject(args) => args.run(door).await,
        Args::Retire(args) => args.run(door).await,
        Args::Pin(args) => args.run(door).await,
        Args::Unpin(args) => args.run(door).await,
        Args::Edit(args) => args.run(door).await,
        Args::Export { folder, which } => {
            let Exported { skills } = which.call(door).await?;
            export(folder.as_deref(), &skills, door).await
        }
        Args::Import { from, skills } => import(&from, skills, door).await,
    }
}

impl Shown for Lessons {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        list(&self.skills, door)
    }
}

impl Shown for Lesson {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        show(self, door)
    }
}

fn list(lessons: &[Lesson], door: &mut Door) -> Result<(), Error> {
    let width = door.out.width;
    let rows = lessons.iter().map(|lesson| {
        vec![
            lesson.id.to_string(),
            lesson.evidence.status.as_str().to_owned(),
            lesson.evidence.support.to_string(),
            how_often(lesson),
            text::cut(&lesson.text(), width.saturating_sub(78).max(30)),
        ]
    });
    door.out
        .table(&["ID", "STATUS", "RUNS", "WENT", "WHAT"], rows.collect())
}

/// A skill is told with its successes, a rule with its failures.
fn how_often(lesson: &Lesson) -> String {
    let word = match lesson.body {
        LessonBody::Skill(_) => "well",
        LessonBody::Rule(_) => "failed",
    };
    match lesson.evidence.with.of {
        0 => "-".to_owned(),
        _ => format!("{} {word}", share(lesson.evidence.with)),
    }
}

fn share(rate: Rate) -> String {
    match rate.of {
        0 => "-".to_owned(),
        of => format!("{}/{of}", rate.good),
    }
}

fn show(lesson: &Lesson, door: &mut Door) -> Result<(), Error> {
    let mut lines = match &lesson.body {
        LessonBody::Skill(sop) => skill_lines(sop),
        LessonBody::Rule(rule) => vec![rule.text.clone()],
    };
    lines.push(String::new());
    lines.extend(evidence_lines(lesson));
    lines
        .iter()
        .try_for_each(|line| door.out.line(text::clean(line)))
}

fn skill_lines(sop: &Sop) -> Vec<String> {
    let mut lines = vec![sop.use_when.clone()];
    let steps = sop.tool_sops.iter().enumerate();
    lines.extend(steps.map(|(n, step)| format!("  {}. {}: {}", n + 1, step.tool, step.action)));
    if !sop.preferences.trim().is_empty() {
        lines.push(format!("Prefer: {}", sop.preferences));
    }
    lines
}

fn evidence_lines(lesson: &Lesson) -> Vec<String> {
    let Evidence {
        status,
        support,
        with,
        without,
        interval,
        ..
    } = &lesson.evidence;
    let (rate, otherwise) = match lesson.body {
        LessonBody::Skill(_) => ("succeeded with it", "without it"),
        LessonBody::Rule(_) => ("failed where it applies", "elsewhere"),
    };
    let mut lines = vec![format!("status     {}", status.as_str())];
    if let Some(retired) = &lesson.evidence.retired {
        lines.push(format!("because    {}", retired.why));
    }
    if let Some(held) = &lesson.evidence.held {
        lines.push(format!("because    {held}"));
    }
    lines.push(format!(
        "support    {}",
        text::count(*support as u64, "run")
    ));
    lines.push(format!(
        "rate       {} {rate} ({:.0} to {:.0} %)",
        share(*with),
        interval.0 * 100.0,
        interval.1 * 100.0
    ));
    if let Some(without) = without {
        lines.push(format!("otherwise  {} {otherwise}", share(*without)));
    }
    if let Some(at) = lesson.evidence.last_confirmed {
        lines.push(format!("confirmed  {}", text::local(at)));
    }
    let marks = [
        (lesson.evidence.pinned, "pinned"),
        (lesson.evidence.approved, "approved"),
        (lesson.evidence.edited, "edited"),
    ];
    let marks: Vec<&str> = marks
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, mark)| *mark)
        .collect();
    if !marks.is_empty() {
        lines.push(format!("people     {}", marks.join(", ")));
    }
    let whose = match &lesson.audience {
        Audience::User(user) => user.clone(),
        Audience::Everyone => "everybody".to_owned(),
        closed => closed.to_string(),
    };
    lines.push(format!("for        {whose}"));
    lines
}

impl Shown for Skills {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        for line in self.skills.iter().flat_map(found_lines) {
            door.out.line(text::clean(&line))?;
        }
        for rule in &self.rules {
            door.out
                .line(text::clean(&format!("{} ({})", rule.rule, rule.id)))?;
        }
        if self.skills.is_empty() && self.rules.is_empty() {
            door.out.line("nothing fits")?;
        }
        Ok(())
    }
}

/// A skill as it was found: when it is of use, its id or its source, and the steps.
pub(super) fn found_lines(skill: &FoundSkill) -> Vec<String> {
    let place = match &skill.external {
        Some(source) => format!("from {source}"),
        None => skill.id.to_string(),
    };
    let mut lines = vec![format!("{} ({place})", skill.sop.use_when)];
    let instructions = skill.instructions.iter().flat_map(|text| text.lines());
    lines.extend(instructions.map(|line| format!("  {line}")));
    lines.extend(skill_lines(&skill.sop).into_iter().skip(1));
    lines
}

async fn export(folder: Option<&Path>, skills: &[Sop], door: &mut Door) -> Result<(), Error> {
    let Some(folder) = folder else {
        return door.out.json(&skills);
    };
    let written = api::skill::export::write(&wiring::files(folder), skills).await?;
    return_json!(door, &json!({ "files": written }));
    written.iter().try_for_each(|file| door.out.line(file))
}

async fn import(from: &Path, given: Shared<SkillImport>, door: &mut Door) -> Result<(), Error> {
    let skills = match from {
        folder if folder.is_dir() => api::skill::import::read(&wiring::files(folder)).await?,
        stdin if stdin == Path::new("-") => parse(&input::stdin()?)?,
        file => parse(&input::file(file)?)?,
    };
    let mut arguments = given.arguments()?;
    arguments.set("skills", json!(skills));
    let done = call::<SkillImport>(arguments, door).await?;
    return_json!(door, &done);
    let Imported { ids } = done;
    let count = text::count(ids.len() as u64, "skill");
    say!(door, "{count} imported")
}

/// One skill, or a list of them.
fn parse(json: &str) -> Result<Vec<Sop>, Invalid> {
    let wrong = |error: serde_json::Error| {
        Invalid::new(
            "skill",
            format!("is not a skill, nor a list of skills: {error}"),
        )
    };
    match json.trim_start().starts_with('[') {
        true => serde_json::from_str(json).map_err(wrong),
        false => serde_json::from_str(json)
            .map(|one| vec![one])
            .map_err(wrong),
    }
}
