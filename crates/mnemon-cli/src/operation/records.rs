//! Operations on records of any kind.

use mnemon_core::{Changes, Id, Invalid, Owner, Viewer, limits};
use mnemon_engine::{Edit, Edited};

use super::notes::{metadata, namespace, tags, ttl};
use super::{Access, Arguments, Field, Operation, Spelling};
use crate::{Error, api};

/// The record that is meant.
pub(super) fn id() -> Field {
    let about = "The id, from an earlier answer, or its first characters (4 or more)";
    let field = Field::text("id", limits::ID_CHARS, about).required();
    field.or(&["reference_id", "ref_id", "note_id", "memory_id"])
}

#[derive(Debug)]
pub(crate) struct Update;

impl Operation for Update {
    const COMMAND: &'static str = "update";
    const TOOL: &'static str = "memory_update";
    type Answer = Edited;

    fn fields() -> Vec<Field> {
        let version = "Only if it still has this version";
        vec![
            id().positional(Spelling::Positional, "ID"),
            Field::text("content", limits::CONTENT_BYTES, "The new content")
                .or(&["text", "note", "memory", "data", "body"])
                .positional(Spelling::Words, "CONTENT")
                .piped(),
            tags("New tags instead of the old"),
            Field::number("importance", 0.0, 1.0, "From 0 (least) to 1 (most)").rare(),
            namespace("How long it is kept from now on").rare(),
            ttl(),
            metadata("Added to its metadata; null removes a key").rare(),
            Field::whole("if_version", 1, u64::from(u32::MAX), version)
                .or(&["version"])
                .rare(),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Edited, Error> {
        let viewer = access.viewer(&Owner::default());
        let id = access.id(&mut arguments, "id").await?;
        if arguments.is_empty() {
            let what = "is missing: give a new content, or name another field to change";
            return Err(Invalid::new("content", what).into());
        }
        let edit = Edit {
            expires: access.expires(&mut arguments)?,
            ..arguments.read()?
        };
        let records = access.memory.records();
        Ok(records.edit(access.ctx, &viewer, &id, edit).await?)
    }
}

#[derive(Debug)]
pub(crate) struct Undo;

impl Operation for Undo {
    const COMMAND: &'static str = "undo";
    const TOOL: &'static str = "memory_undo";
    type Answer = api::undo::Response;

    fn fields() -> Vec<Field> {
        let record = "The newest commit that touched this record";
        vec![
            Field::whole("commit", 1, u64::from(u32::MAX), "The commit")
                .default("the newest")
                .rare()
                .positional(Spelling::Each, "COMMIT"),
            Field::text("record", limits::ID_CHARS, record)
                .or(&["id", "note_id"])
                .value("ID"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let record = match arguments.has("record") {
            true => Some(access.id(&mut arguments, "record").await?),
            false => None,
        };
        let commit = arguments.whole("commit").map(|commit| commit as u64);
        if commit.is_some() && record.is_some() {
            let what = "is given beside a record; give one of the two";
            return Err(Invalid::new("commit", what).into());
        }
        let commit = match (commit, access.user) {
            (commit, None) => commit,
            (commit, Some(_)) => Some(own_commit(access, commit, record.as_ref()).await?),
        };
        let request = api::undo::Request { commit, record };
        api::undo::run(access.memory, access.ctx, request).await
    }
}

/// The commit that a user means, if they may see every change of it: nobody undoes another's work.
async fn own_commit(
    access: &Access<'_>,
    commit: Option<u64>,
    record: Option<&Id>,
) -> Result<u64, Error> {
    let (records, ctx) = (access.memory.records(), access.ctx);
    let changes = |viewer: Viewer, commit, id: Option<&Id>, limit| {
        let asked = Changes {
            viewer,
            id: id.cloned(),
            commit,
            before: None,
            limit,
        };
        async move { records.history(ctx, &asked).await }
    };
    let viewer = access.viewer(&Owner::default());
    let newest = changes(viewer.clone(), commit, record, 1).await?;
    let none = || Error::NothingToUndo(record.cloned());
    let commit = newest.first().ok_or_else(none)?.commit;
    let most = limits::CHANGES;
    let seen = changes(viewer, Some(commit), None, most).await?;
    let all = changes(Viewer::Tenant, Some(commit), None, most).await?;
    match seen.len() == all.len() && all.len() < most {
        true => Ok(commit),
        false => Err(none()),
    }
}
