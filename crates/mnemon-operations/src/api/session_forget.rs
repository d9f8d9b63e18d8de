//! Forget a session of a user.

use std::path::PathBuf;

use mnemon_core::Ctx;
use mnemon_engine::{
    Conversation, Forgotten, Memory, NotErased, ProjectFiles, SavedFolder, SessionForget,
};
use serde::{Deserialize, Serialize};

use crate::{Error, wiring};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub user: String,
    pub session: String,
    /// Erase it and its history permanently, instead of keeping it for undo.
    #[serde(default)]
    pub purge: bool,
    /// Projects whose conversation of this name is meant; without any, that of no project.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Folders in which states of the latter were saved.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
}

/// How far it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub status: Status,
    #[serde(flatten)]
    pub forgotten: Forgotten,
    /// Conversations of the same user and name in projects: they were not meant, and stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<InProject>,
}

/// The project of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InProject {
    /// The name of its folder.
    pub project: String,
    /// Its root folder, if the store has recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<PathBuf>,
}

impl InProject {
    /// The project of the conversation, if it has one.
    pub async fn of(
        memory: &Memory,
        ctx: &Ctx,
        conversation: &Conversation,
    ) -> Result<Option<Self>, Error> {
        let Some(named) = &conversation.project else {
            return Ok(None);
        };
        let root = memory.project_root(ctx, conversation).await?;
        let (project, _) = named.rsplit_once('.').unwrap_or((named, ""));
        Ok(Some(Self {
            project: project.to_owned(),
            files: root.map(|root| wiring::root_of(&ctx.tenant, &root)),
        }))
    }
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

/// Forgets it. Nothing else of that name is touched.
pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (projects, folders) = request.places(ctx);
    let asked = request.asked(&projects, &folders);
    let forgotten = memory.forget_session(ctx, &asked).await?;
    let status = match request.purge {
        _ if forgotten.is_nothing(request.purge) => Status::Nothing,
        false => Status::Forgotten,
        true if forgotten.is_whole() => Status::Purged,
        true => Status::PartlyPurged,
    };
    let mut elsewhere = Vec::new();
    if request.files.is_empty() {
        let all = memory.conversations(ctx, Some(&request.user)).await?;
        for one in all.iter().filter(|one| one.session == request.session) {
            elsewhere.extend(InProject::of(memory, ctx, one).await?);
        }
    }
    Ok(Response {
        status,
        forgotten,
        elsewhere,
    })
}

/// Whether there is anything to forget.
pub async fn is_there(memory: &Memory, ctx: &Ctx, request: &Request) -> Result<bool, Error> {
    let (projects, folders) = request.places(ctx);
    let asked = request.asked(&projects, &folders);
    Ok(memory.has_session(ctx, &asked).await?)
}

impl Request {
    fn places(&self, ctx: &Ctx) -> (Vec<ProjectFiles>, Vec<SavedFolder>) {
        let projects = self.files.iter();
        let projects = projects.map(|root| wiring::project(&ctx.tenant, root));
        let folders = self.folders.iter();
        let folders = folders.map(|folder| wiring::saved_folder(&ctx.tenant, folder));
        (projects.collect(), folders.collect())
    }

    fn asked<'a>(
        &'a self,
        projects: &'a [ProjectFiles],
        folders: &'a [SavedFolder],
    ) -> SessionForget<'a> {
        SessionForget {
            user: &self.user,
            session: &self.session,
            purge: self.purge,
            projects,
            folders,
        }
    }
}
