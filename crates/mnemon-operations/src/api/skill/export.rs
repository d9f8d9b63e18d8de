//! Skills as files: a folder with a `SKILL.md` each.

use std::collections::BTreeSet;

use mnemon_core::files::Files;
use mnemon_core::learn::Status;
use mnemon_core::{Ctx, Viewer};
use mnemon_engine::learn::{LessonBody, skill_file, skill_folder};
use mnemon_engine::{Memory, Sop};

use crate::Error;

/// Skills that one export holds at the most.
pub const LIMIT: usize = 1000;

/// The active skills that this viewer may see.
pub async fn skills(
    memory: &Memory,
    ctx: &Ctx,
    viewer: &Viewer,
    task_type: Option<&str>,
) -> Result<Vec<Sop>, Error> {
    let learning = memory.learning();
    let found = learning.lessons(ctx, viewer, task_type, Some(Status::Active), LIMIT);
    let found = found
        .await?
        .into_iter()
        .filter_map(|lesson| match lesson.body {
            LessonBody::Skill(sop) if !sop.tool_sops.is_empty() => Some(sop),
            _ => None,
        });
    Ok(found.collect())
}

/// Writes skills below the folder, over what an earlier export wrote there: the files.
pub async fn write(folder: &dyn Files, skills: &[Sop]) -> Result<Vec<String>, Error> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut files = Vec::new();
    for sop in skills {
        let plain = skill_folder(sop);
        let mut name = plain.clone();
        let mut number = 2;
        while !names.insert(name.clone()) {
            name = format!("{plain}-{number}");
            number += 1;
        }
        let file = skill_file(&name, sop);
        let there = folder
            .read(&file.path)
            .await
            .map_err(mnemon_engine::Error::from)?;
        let stamp = there.as_ref().map(|there| &there.stamp);
        let written = folder.write(&file.path, file.text.as_bytes(), stamp).await;
        written.map_err(mnemon_engine::Error::from)?;
        files.push(file.path);
    }
    Ok(files)
}
