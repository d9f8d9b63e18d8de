//! Forget a session of a user.

use std::path::{Path, PathBuf};

use mnemon_core::Ctx;
use mnemon_engine::{Forgotten, Memory, NotErased, ProjectFiles, SavedFolder, SessionForget};
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
    /// Projects whose conversation of this name is meant; without any, that of the store and those
    /// in projects that the store knows.
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

impl Response {
    /// Adds what still holds text of a session that was purged.
    pub fn list(&mut self, left: Vec<NotErased>) {
        if !left.is_empty() {
            self.status = Status::PartlyPurged;
            self.forgotten.left.extend(left);
        }
    }
}

/// `within` is the project that the store came with, if it is a project's own: such a store may name
/// any folder of this machine, so only files in the project are erased unless others were named.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    request: Request,
    within: Option<&Path>,
) -> Result<Response, Error> {
    let projects = projects(memory, ctx, &request, within).await?;
    let folders = request.folders.iter();
    let folders: Vec<SavedFolder> = folders
        .map(|folder| wiring::saved_folder(&ctx.tenant, folder))
        .collect();
    let asked = SessionForget {
        user: &request.user,
        session: &request.session,
        purge: request.purge,
        only_projects: !request.files.is_empty(),
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

/// Those that were named; or those that the store knows, and the folder that we are in. A log in the
/// latter may be of another store: it is told, but not erased.
async fn projects(
    memory: &Memory,
    ctx: &Ctx,
    request: &Request,
    within: Option<&Path>,
) -> Result<Vec<ProjectFiles>, Error> {
    let within = within.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    let is_ours = |root: &Path| {
        let real = root.canonicalize();
        let inside = |folder: &Path| real.as_ref().is_ok_and(|real| real.starts_with(folder));
        within.as_deref().is_none_or(inside)
    };
    if !request.files.is_empty() {
        let named = request.files.iter();
        return Ok(named
            .map(|root| wiring::project(&ctx.tenant, root))
            .collect());
    }
    let known = memory.session_roots(ctx, &request.session).await?;
    let known = known.into_iter().map(|root| ProjectFiles {
        // As the store knows it, whatever it is called by now.
        root: root.clone(),
        may_erase: is_ours(Path::new(&root)),
        ..wiring::project_at(Path::new(&root))
    });
    let here = ProjectFiles {
        may_erase: false,
        ..wiring::project(&ctx.tenant, Path::new("."))
    };
    let mut projects: Vec<ProjectFiles> = Vec::new();
    for project in known.chain([here]) {
        if !projects.iter().any(|other| other.root == project.root) {
            projects.push(project);
        }
    }
    Ok(projects)
}
