//! `mnemon history`

use mnemon_core::Change;

use super::door::Door;
use super::shared::{Shared, Shown};
use super::{diff, text};
use crate::operation::History;
use crate::{Error, api};

/// Show the history of changes, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon history --limit 5\n  \
    mnemon history 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f\n  \
    mnemon history --commit 12 --json")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) page: Shared<History>,
}

impl Shown for api::history::Response {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.changes.is_empty() {
            return door.out.line("nothing");
        }
        commits(&self.changes, door)?;
        door.out.next_page("--before", self.next)
    }
}

/// The changes under the commits they belong to.
pub(super) fn commits(changes: &[Change], door: &mut Door) -> Result<(), Error> {
    let mut current = None;
    for change in changes {
        if current != Some(change.commit) {
            let (commit, at) = (change.commit, text::local(change.at));
            let actor = text::one_line(&change.actor);
            say!(door, "commit {commit}, {at}, {actor}")?;
            current = Some(commit);
        }
        diff::show(change, door)?;
    }
    Ok(())
}
