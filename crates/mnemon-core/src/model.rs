//! The nouns: records, who they belong to, who asks, and which are meant.

pub(crate) mod audience;
pub mod clock;
pub(crate) mod ctx;
pub(crate) mod days;
pub(crate) mod id;
pub mod json;
pub mod limits;
pub(crate) mod message;
pub mod note;
pub(crate) mod notices;
pub(crate) mod owner;
pub(crate) mod policy;
pub(crate) mod query;
pub(crate) mod record;
pub(crate) mod scope;
pub(crate) mod time;

pub use audience::{Audience, Viewer};
pub use clock::Clock;
pub use ctx::{CommitGroup, Ctx};
pub use days::{Asked, Days, Told};
pub use id::{Id, Ids};
pub use limits::Limits;
pub use message::{Block, Media, Message, Role};
pub use notices::Notices;
pub use owner::{Owner, Tenant, check_line};
pub use policy::{Caps, Denied, Grant, Policy, Right, Rights};
pub use query::{Cursor, Expr, Filter, Order, Page, Scan};
pub use record::{Format, Record};
pub use scope::{Kind, Namespace, Origin, Scope};
pub use time::Time;
