//! `mnemon update`

use mnemon_engine::Edited;

use super::door::Door;
use super::shared::{Shared, Shown};
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::Update;

/// Change a record: its content, tags, metadata, importance or how long it is kept
///
/// Fields that are not named stay. The earlier version stays in the history, and undo restores it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon update 0192e4a6 \"Ann prefers coffee\"\n  \
    mnemon update 0192e4a6 --tag drinks --tag ann --importance 0.9\n  \
    mnemon update seed --ttl 2y --if-version 3")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) change: Shared<Update>,
}

impl Shown for Edited {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let (id, version) = (&self.id, self.version);
        let expires = text::expires(self.expires);
        say!(door, "updated {id} to version {version}{expires}")?;
        door.out.undo_with(self.commit)
    }
}
