//! One definition for each operation: its fields with their limits, aliases and defaults, and the
//! call behind them.
//!
//! The command line makes its arguments from the fields (`cli::shared`), MCP its schemas. Both check
//! what they are sent by [`Arguments::check_on`], and errors name a field as the interface spells
//! it. [Decision 15](../../../docs/decisions/0015-operations.md) says why it is a table and not a
//! derived type.

pub(crate) mod arguments;
pub(crate) mod field;

mod context;
mod learning;
mod notes;
mod records;
mod search;
pub(crate) mod when;

use mnemon_core::{Ctx, Id, Owner, Time, Viewer};
use mnemon_engine::Memory;

pub(crate) use arguments::Arguments;
pub(crate) use field::{Field, Interface, Shape, Spelling};
pub(crate) use notes::{
    NoteAdd, NoteCleanup, NoteClear, NoteDelete, NoteGet, NoteList, NoteSearch, NoteStats,
};

pub(crate) use context::Context;
pub(crate) use learning::{LogStep, SkillSearch};
pub(crate) use records::{Add, Stored, Undo, Update};
pub(crate) use search::Search;

use crate::Error;

/// Something that a caller can ask of a memory, through whichever interface.
pub(crate) trait Operation: Send + Sync + 'static {
    /// The command, without the name of the program: `note add`.
    const COMMAND: &'static str;
    /// The tool.
    const TOOL: &'static str;
    type Answer: serde::Serialize + Send;

    fn fields() -> Vec<Field>;

    /// The arguments have been checked against the fields.
    fn run(
        access: &Access<'_>,
        arguments: Arguments,
    ) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// The user, or the session, of a call that names none.
pub(crate) const USER: &str = "default";

/// A memory, and who asks for what is in it.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) ctx: &'a Ctx,
    /// The user that the caller is: the one that a tool is called for. The command line has none,
    /// and a user that it names is the owner of the records that are meant.
    pub(crate) user: Option<&'a str>,
    /// Whether a tool is called, and not a command.
    pub(crate) is_tool: bool,
}

impl Access<'_> {
    /// Who sees the answer: the user and the agent that are named, the caller, or the tenant.
    fn viewer(&self, owner: &Owner) -> Viewer {
        let user = owner.user.clone().or(self.user.map(str::to_owned));
        Viewer::of_caller(user, owner.agent.clone())
    }

    /// The record that the caller means by an id, or by the beginning of one.
    async fn id(&self, arguments: &mut Arguments, name: &str) -> Result<Id, Error> {
        let id = arguments.take_id(name)?;
        let viewer = self.viewer(&Owner::default());
        let records = self.memory.records();
        Ok(records.resolve(self.ctx, &viewer, id).await?)
    }

    /// When a record with this `ttl` expires.
    fn expires(&self, arguments: &mut Arguments) -> Result<Option<Time>, Error> {
        let ttl = arguments.take_text("ttl");
        let ahead = ttl.map(|ttl| when::ahead("ttl", &ttl, self.ctx.now));
        Ok(ahead.transpose()?)
    }

    /// Whose a new record is: the caller's, unless a user is named.
    fn owned(&self, mut owner: Owner) -> Owner {
        owner.user = owner.user.or(self.user.map(str::to_owned));
        owner
    }
}

/// What a test compares of an operation.
#[cfg(test)]
pub(crate) struct Definition {
    pub(crate) command: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) fields: Vec<Field>,
}

#[cfg(test)]
mod tests;
