//! The six scopes: each a small handle over the store that keeps it.

mod dialog;
mod experience;
mod procedural;
mod profile;
mod semantic;
mod state;
mod tasks;

pub use dialog::{
    Content, Dialog, DialogContext, LIMIT_TURNS, Said, SalientFact, SessionSummary, Turn, Utterance,
};
pub(crate) use dialog::{message_draft, message_of, session_of_owner, within};
pub(crate) use experience::logged;
pub use experience::{Experience, LIMIT_STEPS, LoggedStep, Step, Trace};
pub use mnemon_core::learn::Ended;
pub(crate) use procedural::sop_of;
pub use procedural::{FoundRule, FoundSkill, Procedural, Sop, TOP_SKILLS, ToldEvidence, ToolSop};
pub(crate) use profile::profile_id;
pub use profile::{Profile, UserProfile};
pub use semantic::{FoundDocument, Knowledge, Semantic, TOP_DOCS};
pub use state::{FlowState, Place, State, TaskStep};
pub use tasks::{Task, TaskList, TaskStatus};
