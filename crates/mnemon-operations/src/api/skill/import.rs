//! Skills from files: `SKILL.md` folders, or the JSON form.

use mnemon_core::files::Files;
use mnemon_core::{Ctx, Id, Invalid};
use mnemon_engine::learn::read_skill_file;
use mnemon_engine::{Memory, Sop};

use crate::Error;

/// The name of a skill's file.
const FILE: &str = "SKILL.md";

/// Every skill below the folder, with its path. One that cannot be read names its file, and
/// nothing is taken in.
pub async fn read(folder: &dyn Files) -> Result<Vec<Sop>, Error> {
    let listed = folder.list("").await.map_err(mnemon_engine::Error::from)?;
    let mut skills = Vec::new();
    for file in listed {
        let is_skill = file.path == FILE || file.path.ends_with(&format!("/{FILE}"));
        if !is_skill {
            continue;
        }
        let read = folder
            .read(&file.path)
            .await
            .map_err(mnemon_engine::Error::from)?;
        let bytes = read.map(|file| file.bytes).unwrap_or_default();
        let text =
            String::from_utf8(bytes).map_err(|_| Invalid::new(&file.path, "is not UTF-8 text"))?;
        let sop = read_skill_file(&text)
            .map_err(|wrong| Invalid::new(&file.path, format!("{} {}", wrong.field, wrong.what)))?;
        skills.push(sop);
    }
    Ok(skills)
}

/// Takes skills in for a user; without one, all users share them.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    user: Option<String>,
    skills: Vec<Sop>,
) -> Result<Vec<Id>, Error> {
    for sop in &skills {
        sop.check()?;
    }
    let mut ids = Vec::new();
    for sop in skills {
        let learning = memory.learning();
        let receipt = learning.take_in(ctx, user.clone(), sop).await?;
        ids.extend(receipt.items.into_iter().map(|item| item.id));
    }
    Ok(ids)
}
