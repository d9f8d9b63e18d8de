//! Forget a session of a user.

use std::path::{Path, PathBuf};

use mnemon_core::Ctx;
use mnemon_engine::{Forgotten, Memory, ProjectFiles, SavedFolder, SessionForget};
use serde::{Deserialize, Serialize};

use crate::{Error, wiring};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub user: String,
    pub session: String,
    /// Erase it and its history for good, instead of keeping it for undo.
    #[serde(default)]
    pub purge: bool,
    /// Projects in which the session has a log or pages, besides those that the store knows.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Folders in which its states were saved.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
}

/// How far it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Forgotten,
    Purged,
    /// Something still holds text of the session; the answer lists it.
    PartlyPurged,
    /// There was nothing of it.
    Nothing,
}

/// How much is gone, how much stays because it has other sources, and what could not be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub status: Status,
    #[serde(flatten)]
    pub forgotten: Forgotten,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let projects = projects(memory, ctx, &request).await?;
    let folders = request.folders.iter();
    let folders: Vec<SavedFolder> = folders
        .map(|folder| wiring::saved_folder(&ctx.tenant, folder))
        .collect();
    let asked = SessionForget {
        user: &request.user,
        session: &request.session,
        purge: request.purge,
        projects: &projects,
        folders: &folders,
    };
    let forgotten = memory.forget_session(ctx, &asked).await?;
    let status = match request.purge {
        _ if forgotten.is_nothing() => Status::Nothing,
        false => Status::Forgotten,
        true if forgotten.is_whole() => Status::Purged,
        true => Status::PartlyPurged,
    };
    Ok(Response { status, forgotten })
}

/// Those that were named, those that the store knows, and the folder that we are in. A log in the
/// latter may be of another store: it is told, but not erased.
async fn projects(
    memory: &Memory,
    ctx: &Ctx,
    request: &Request,
) -> Result<Vec<ProjectFiles>, Error> {
    let known = memory.session_roots(ctx, &request.session).await?;
    let named = request
        .files
        .iter()
        .map(|root| wiring::project(&ctx.tenant, root));
    let known = known.into_iter().map(|root| ProjectFiles {
        // As the store knows it, whatever it is called by now.
        root: root.clone(),
        ..wiring::project_at(Path::new(&root))
    });
    let here = ProjectFiles {
        may_erase: false,
        ..wiring::project(&ctx.tenant, Path::new("."))
    };
    let mut projects: Vec<ProjectFiles> = Vec::new();
    for project in named.chain(known).chain([here]) {
        if !projects.iter().any(|other| other.root == project.root) {
            projects.push(project);
        }
    }
    Ok(projects)
}
