//! `mnemon history`

use mnemon_core::{Change, Changes, Id, Viewer};

use super::door::Door;
use super::{diff, text};
use crate::{Error, api};

/// Show the history of changes, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon history --limit 5\n  \
    mnemon history 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f\n  \
    mnemon history --commit 12 --json")]
pub(super) struct Args {
    /// Show only changes of this record; the first 4 characters of its id are enough if they are
    /// unique
    #[arg(value_name = "ID")]
    id: Option<Id>,
    /// Show only changes of this commit
    #[arg(long, value_name = "N")]
    commit: Option<u64>,
    /// Continue from this number, which the previous page printed
    #[arg(long, value_name = "N")]
    before: Option<u64>,
    /// Maximum number of changes
    #[arg(long, value_name = "N", default_value_t = api::history::LIMIT,
        value_parser = super::list::limit)]
    limit: usize,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let id = door.resolve(&memory, &ctx, args.id).await?.pop();
    let asked = Changes {
        viewer: Viewer::Tenant,
        id: id.clone(),
        commit: args.commit,
        before: args.before,
        limit: args.limit,
    };
    let page = api::history::run(&memory, &ctx, asked).await?;
    if let (true, Some(id)) = (page.changes.is_empty() && args.before.is_none(), id) {
        return Err(Error::Missing(vec![id]));
    }
    return_json!(door, &page);
    if page.changes.is_empty() {
        return door.out.line("nothing");
    }
    commits(&page.changes, door)?;
    door.out.next_page("--before", page.next)
}

/// The changes under the commits they belong to.
pub(super) fn commits(changes: &[Change], door: &mut Door) -> Result<(), Error> {
    let mut current = None;
    for change in changes {
        if current != Some(change.commit) {
            let (commit, at) = (change.commit, text::local(change.at));
            let actor = text::one_line(&change.actor);
            door.out.line(format!("commit {commit}, {at}, {actor}"))?;
            current = Some(commit);
        }
        diff::show(change, door)?;
    }
    Ok(())
}
