//! `mnemon history`

use std::time::Duration;

use mnemon_core::{Change, Filter};

use super::door::Door;
use super::shared::{Shared, Shown};
use super::{diff, text};
use mnemon_operations::operation::History;
use mnemon_operations::{Error, api};

/// Show the history of changes, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon history --limit 5\n  \
    mnemon history 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f\n  \
    mnemon history --commit 12 --json")]
pub(super) struct Args {
    #[command(flatten)]
    page: Shared<History>,
    /// Print new changes of all processes, oldest first, until interrupted; with --json one per line
    #[arg(long, conflicts_with_all = ["id", "commit", "before", "limit"])]
    follow: bool,
}

/// How often other processes' changes are looked for.
const POLL: Duration = Duration::from_millis(500);
/// Changes that are read at once.
const PAGE: usize = 100;

impl Args {
    pub(super) async fn run(self, door: &mut Door) -> Result<(), Error> {
        match self.follow {
            true => follow(door).await,
            false => self.page.run(door).await,
        }
    }
}

async fn follow(door: &mut Door) -> Result<(), Error> {
    let memory = door.memory()?;
    let feed = memory.records().feed();
    let mut reached = feed.newest(&door.ctx()?).await?;
    loop {
        let everything = Filter::all_of_tenant();
        let page = feed.next(&door.ctx()?, &everything, reached, PAGE).await?;
        match door.out.json {
            true => print_json(&page.changes, door)?,
            false => commits(&page.changes, door)?,
        }
        door.out.flush()?;
        reached = page.reached;
        if !page.more {
            tokio::time::sleep(POLL).await;
        }
    }
}

fn print_json(changes: &[Change], door: &mut Door) -> Result<(), Error> {
    let mut changes = changes.iter();
    changes.try_for_each(|change| door.out.json_line(change))
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
