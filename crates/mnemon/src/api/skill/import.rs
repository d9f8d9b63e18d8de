//! Skills from files: `SKILL.md` folders, or the JSON form.

use mnemon_core::files::Files;
use mnemon_core::{Ctx, Id, Invalid};
use mnemon_engine::learn::read_skill_file;
use mnemon_engine::{Memory, Sop};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The name of a skill's file.
const FILE: &str = "SKILL.md";

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Whose they are; shared by all users otherwise.
    pub user: Option<String>,
    /// Skills in the JSON form.
    pub skills: Vec<Sop>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub ids: Vec<Id>,
}

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

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    for sop in &request.skills {
        sop.check()?;
    }
    let mut ids = Vec::new();
    for sop in request.skills {
        let learning = memory.learning();
        let receipt = learning.take_in(ctx, request.user.clone(), sop).await?;
        ids.extend(receipt.items.into_iter().map(|item| item.id));
    }
    Ok(Response { ids })
}
