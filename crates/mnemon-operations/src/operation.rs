//! One definition for each operation: its fields with their limits, aliases and defaults, and the
//! call behind them.
//!
//! The command line makes its arguments from the fields (`cli::shared`), MCP its schemas. Both check
//! what they are sent by [`Arguments::check_on`], and errors name a field as the interface spells
//! it. [Decision 15](../../../docs/decisions/0015-operations.md) says why it is a table and not a
//! derived type.

pub mod arguments;
pub mod field;

pub mod agents;
mod context;
mod conversations;
mod documents;
mod files;
mod indexes;
mod keys;
mod learning;
mod long_term;
mod maintenance;
mod notes;
mod records;
pub mod routes;
mod search;
mod sessions;
mod skills;
pub mod teams;
mod webhooks;
pub mod when;

use std::pin::Pin;
use std::sync::Arc;

use mnemon_core::{Ctx, Id, Invalid, Owner, Time, Viewer};
use mnemon_engine::Memory;

pub use arguments::Arguments;
pub use conversations::{
    Events, MODES, Messages, Passages, Previews, Snapshot, forgetting, mode_word,
};
pub use documents::SentDocument;
pub use field::{Field, Interface, Shape, Spelling};
pub use indexes::{IndexChecked, IndexRebuilt};
pub use keys::KeyPage;
pub use learning::{FailedSteps, Skills, TracedSteps};
pub use records::Stored;
pub use search::WouldForget;
pub use sessions::DeletedSession;
pub use skills::{Exported, Imported, Lessons, Reworded};
pub use webhooks::{CreatedWebhook, DeletedWebhook, FailedDeliveries, Redelivered, WebhookPage};

use crate::Error;
use crate::config::Config;

/// Declares the operations, and the list of all of them that the test of the fields walks: an
/// operation that is not named here does not exist.
macro_rules! operations {
    ($($(#[$about:meta])* $name:ident)+) => {
        $($(#[$about])* #[derive(Debug)] pub struct $name;)+

        /// Every operation.
        pub fn all() -> Vec<Definition> {
            let here = vec![$(Definition::of::<$name, _>()),+];
            let all = [here, agents::definitions(), teams::definitions()];
            all.into_iter().flatten().collect()
        }
    };
}

operations! {
    NoteAdd NoteSearch NoteGet NoteList NoteDelete NoteClear NoteStats NoteCleanup
    Add Update Undo Get History Stats Read Write
    Search List Forget ForgetOne ForgetPreview
    /// The options by which several commands choose records; the answer is a filter.
    Selection
    /// The options that say whose records are meant.
    Ownership
    Context
    LogStep Failures Traces SkillSearch SkillList SkillShow SkillExport SkillImport
    SkillApprove SkillReject SkillRetire SkillPin SkillUnpin SkillEdit
    LearnRun LearnState LearnDryRun LearnImprove
    SessionSave SessionLoad SessionList SessionFork SessionSnapshot SessionRestore SessionDelete
    ChatAppend ChatRead ChatRecord ChatReload ChatQuery
    ChatList ChatShow ChatTail ChatEvents ChatCompress ChatCompressPreview
    ChatFork ChatSnapshot ChatRestore ChatClear ChatDelete ChatDeleteSnapshot
    /// The options by which a command names a conversation; the answer is the conversation.
    Conversation
    /// The same with the size of its window.
    ConversationWindow
    Record Retrieve
    KeyCreate KeyList KeyRevoke KeyRotate
    WebhookCreate WebhookList WebhookFailed WebhookRedeliver WebhookDelete
    Upkeep Reembed Doctor PolicyShow IndexCheck IndexRebuild
    DocumentAdd DocumentKnown
}

/// Something that a caller can ask of a memory, through whichever interface. The memory is a store,
/// the files of agents, or the configuration.
pub trait Operation<On = Arc<Memory>>: Send + Sync + 'static {
    /// The command, without the name of the program: `note add`; empty if there is none.
    const COMMAND: &'static str = "";
    /// The tool; empty if there is none.
    const TOOL: &'static str = "";
    type Answer: Send;

    fn fields() -> Vec<Field> {
        Vec::new()
    }

    /// The arguments have been checked against the fields.
    fn run(
        access: &Access<'_, On>,
        arguments: Arguments,
    ) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// A call that has begun.
pub type Call<'a, Answer> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send + 'a>>;

/// Calls an operation. Boxed: every interface calls it, and each would get a copy of its code.
pub fn call<'a, O: Operation<On>, On: Sync>(
    access: &'a Access<'_, On>,
    arguments: Arguments,
) -> Call<'a, O::Answer> {
    Box::pin(O::run(access, arguments))
}

/// Is called with how much of a long operation is done, and how much there is, if that is known.
pub type Watch<'a> = &'a (dyn Fn(u64, Option<u64>) + Send + Sync);

/// For an operation that nobody watches.
pub fn unwatched(_: u64, _: Option<u64>) {}

/// The user, or the session, of a call that names none.
pub const USER: &str = "default";

/// A memory, and who asks for what is in it.
pub struct Access<'a, On = Arc<Memory>> {
    pub memory: &'a On,
    pub ctx: &'a Ctx,
    pub config: &'a Config,
    pub interface: Interface,
    /// The user that the caller is: the one that a tool is called for. The command line has none,
    /// and a user that it names is the owner of the records that are meant.
    pub user: Option<&'a str>,
    /// The agent that the caller is.
    pub agent: Option<&'a str>,
    /// Whether a key binds the caller to the user: only the user's own records may be changed.
    pub own_only: bool,
    /// Who wants to know how far a long operation is.
    pub watch: Watch<'a>,
}

impl Access<'_> {
    /// Who sees the answer: the user and the agent that are named, the caller, or the tenant.
    fn viewer(&self, owner: &Owner) -> Viewer {
        let user = owner.user.clone().or(self.user.map(str::to_owned));
        let agent = owner.agent.clone().or(self.agent.map(str::to_owned));
        Viewer::of_caller(user, agent)
    }

    /// The record that the caller means by an id, or by the beginning of one.
    async fn id(&self, arguments: &mut Arguments, name: &str) -> Result<Id, Error> {
        let id = arguments.take_id(name)?;
        let viewer = self.viewer(&Owner::default());
        let records = self.memory.records();
        Ok(records.resolve(self.ctx, &viewer, id).await?)
    }

    /// The same for several.
    async fn ids(&self, ids: &[String]) -> Result<Vec<Id>, Error> {
        let (records, viewer) = (self.memory.records(), self.viewer(&Owner::default()));
        let mut meant = Vec::new();
        for id in ids {
            let id = id.trim().parse();
            let id = id.map_err(|wrong: Invalid| Invalid::new("ids", wrong.what))?;
            meant.push(records.resolve(self.ctx, &viewer, id).await?);
        }
        Ok(meant)
    }

    /// That a caller who is bound to a user owns these records. Records that the caller may not see
    /// are as good as missing.
    async fn check_own(&self, ids: &[Id]) -> Result<(), Error> {
        let (true, Some(user)) = (self.own_only, self.user) else {
            return Ok(());
        };
        let viewer = self.viewer(&Owner::default());
        let records = self.memory.records();
        let found = records.get_seen_by(self.ctx, &viewer, ids).await?;
        let missing = ids.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing: Vec<Id> = missing.map(|(id, _)| id.clone()).collect();
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        let mut owners = found.iter().flatten().map(|record| &record.owner.user);
        match owners.all(|owner| owner.as_deref() == Some(user)) {
            true => Ok(()),
            false => {
                let what = "this key is for one user only, and changes only records of that user";
                Err(Error::Forbidden(what.to_owned()))
            }
        }
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

/// The names and fields of an operation, which tests compare between the interfaces.
pub struct Definition {
    pub command: &'static str,
    pub tool: &'static str,
    pub fields: Vec<Field>,
}

impl Definition {
    fn of<O: Operation<On>, On>() -> Self {
        Self {
            command: O::COMMAND,
            tool: O::TOOL,
            fields: O::fields(),
        }
    }
}
